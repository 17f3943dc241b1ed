"""What only shows in the long run: histories of admit and release, and a node that fills up."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from nodealloc import _attrs as attrs
from nodealloc.podspec import Quantity
from nodealloc.testing._allocator_calls import (
    ANYWHERE,
    allocate,
    check_copy,
    figures,
    pinned,
    released,
    stranger,
)
from nodealloc.testing._allocator_checks import (
    check_accounts,
    check_claim,
    check_elsewhere,
    check_hints,
    check_no_node_is_missing,
    check_offers,
    check_shortfall,
)
from nodealloc.testing._allocator_edges import check_first_hints
from nodealloc.testing._allocator_use import check_totals
from nodealloc.testing._wording import told
from nodealloc.topology import NotYet, Reports, Shortfall, TopologyHint

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nodealloc.testing._allocator_calls import Promises
    from nodealloc.topology import Allocator, Claim, Workload

__all__ = ["check_fills_up", "check_history"]

_MOST_GRANTS = 1024
"""So many of the largest claim that an empty node grants, at least, and nothing ran out."""
_MANY = 32
"""Holders of the smallest claim at a time."""
_LARGEST = 1 << 50
"""A claim of so many times the amounts that was granted is not looked at for a limit."""
_NANO = 10**9


@attrs.define
class _History:
    """One node through a random history.

    Attributes:
        value: The allocator by now.
        promises: What it is held to.
        choose: Where chances come from.
        answered: Whether there were hints at some time.
        calls: Claims that were asked for where, and workloads that were released, in order.
        holders: Workloads for which something was taken.
        claims: What each of them asked for.
    """

    value: Allocator
    promises: Promises
    choose: random.Random
    answered: bool = False
    calls: list[tuple[Claim, TopologyHint] | str] = attrs.field(
        factory=list["tuple[Claim, TopologyHint] | str"]
    )
    holders: list[str] = attrs.field(factory=list[str])
    claims: dict[str, tuple[Claim, ...]] = attrs.field(factory=dict[str, "tuple[Claim, ...]"])

    def admit(self, claims: tuple[Claim, ...], key: str) -> None:
        """All claims of a workload or, where one falls short, none."""
        before = self.value
        for claim in claims:
            where = f"{before.name}, claim {claim.owner.member} among {len(self.holders)} workloads"
            hints = check_hints(self.value, (claim,), self.promises)
            if isinstance(hints, NotYet):
                assert not self.answered, f"{where}: answered before, and now says {hints}"
                break
            self.answered = True
            offers = [(name, hint) for name, options in hints.items() for hint in options or ()]
            if not claim.reuse:
                check_elsewhere(self.value, claim, {hint.affinity for _, hint in offers}, self.promises)
            resource, hint = self.choose.choice([*offers, ("", ANYWHERE)])
            answer = allocate(self.value, claim, hint, where)
            self.calls.append((claim, hint))
            assert not isinstance(answer, NotYet), f"{where}: hinted at nodes, and then is {answer}"
            if isinstance(answer, Shortfall):
                self._refused(claim, hint, answer, where, is_pinned=pinned(hints))
                break
            earlier, self.value = self.value, answer
            if answer != earlier:
                check_accounts(earlier, answer, claim, (resource, hint), self.promises)
            self._check_holders(earlier, key, f"granting {key}")
        else:
            if self.value != before:
                self.holders.append(key)
                self.claims[key] = claims
                other = stranger(claims[0])
                hints = check_hints(self.value, (other,), self.promises)
                check_no_node_is_missing(self.value, other, hints, self.promises)
            return
        self._release(key)
        if self.promises.exact_release:
            assert self.value == before, f"{before.name}: releasing what was half granted left something"

    def release(self, key: str) -> None:
        """One workload, whole."""
        before = self.value
        self._release(key)
        self.holders.remove(key)
        same = released(self.value, key) == self.value
        assert same, f"{self.value.name}: releasing {key} again changed something"
        self._check_holders(before, key, f"releasing {key}")
        if self.promises.exact_release:
            self._check_again(before, key)

    def _release(self, key: str) -> None:
        self.calls.append(key)
        self.value = released(self.value, key)

    def replayed(self, value: Allocator) -> Allocator:
        """What the same calls make of a value now."""
        for call in self.calls:
            if isinstance(call, str):
                value = value.release(call)
                continue
            answer = value.allocate(*call)
            value = value if isinstance(answer, (Shortfall, NotYet)) else answer
        return value

    def _refused(
        self, claim: Claim, hint: TopologyHint, answer: Shortfall, where: str, *, is_pinned: bool
    ) -> None:
        refused = hint.affinity is not None and self.promises.every_hint_grants
        assert not refused, f"{where}: hinted {told(hint)}, then refused it: {answer}"
        # Of a machine in use what is free may be promised to groups of nodes.
        check_shortfall(answer, claim, hint, where, self.promises, counted=False)
        nowhere = hint.affinity is None and is_pinned and self.promises.exact
        assert not nowhere, f"{where}: hinted at nodes, and refuses it on any node: {answer}"

    def _check_again(self, before: Allocator, key: str) -> None:
        """What is released comes back as it was, when nobody else came meanwhile."""
        for other in self.holders:
            one, two = released(released(before, key), other), released(released(before, other), key)
            assert one == two, (
                f"{before.name}: {key} and {other} were released in this order and the other way round, "
                "and what is left differs"
            )

    def _check_holders(self, before: Allocator, who: str, what: str) -> None:
        """Whoever else holds something holds it still, on the nodes where it was."""
        for key in self.holders:
            if key == who:
                continue
            still = self.value.release(key) != self.value
            assert still, f"{self.value.name}: {what} took away what {key} holds"
            if not self.promises.exact_release:
                continue
            for claim in self.claims[key]:
                was, now = _places(before, claim), _places(self.value, claim)
                assert was == now, (
                    f"{self.value.name}: {what} moved what {key} holds from {_told(was)} to {_told(now)}"
                )
                if self.promises.fractions:  # figures are rounded
                    continue
                was_freed, now_freed = _freed(before, claim), _freed(self.value, claim)
                assert was_freed == now_freed, (
                    f"{self.value.name}: {what} changed how much {key} holds: its release "
                    f"freed {was_freed}, and frees {now_freed}"
                )


def _places(value: Allocator, claim: Claim) -> Mapping[str, Sequence[TopologyHint]]:
    """Where a claim is held, as its hints say."""
    hints = value.hints((claim,))
    if isinstance(hints, NotYet):
        return {}
    return {name: tuple(options or ()) for name, options in hints.items()}


def _told(places: Mapping[str, Sequence[TopologyHint]]) -> str:
    return "; ".join(told(hint) for hints in places.values() for hint in hints) or "nowhere"


def _freed(value: Allocator, claim: Claim) -> Mapping[tuple[str, int], int]:
    """How much more is free, by resource and node, once the workload of a claim is released."""
    held, left = _free(value, claim), _free(value.release(claim.owner.workload), claim)
    return {key: count - held.get(key, 0) for key, count in left.items()}


def _free(value: Allocator, claim: Claim) -> Mapping[tuple[str, int], int]:
    if not isinstance(value, Reports):
        return {}
    entries = value.availability((stranger(claim),))
    return {(one.resource, node): count for one in entries for node, count in one.free.items()}


def check_history(
    allocator: Allocator, asked: Workload, promises: Promises, *, steps: int, seed: int
) -> None:
    """Random admissions and releases of workloads like this one; at the end all goes back."""
    choose = random.Random(seed)
    history = _History(allocator, promises, choose)
    for step in range(steps):
        if history.holders and choose.random() < 0.4:
            history.release(choose.choice(history.holders))
            continue
        key, factor = f"check-{step}", choose.choice((1, 1, 1, 2, 3))
        if history.holders and choose.random() < 0.5:  # a name that begins or ends with another one
            known = choose.choice(history.holders)
            key = f"{known}-{step}" if step % 2 else f"{step}-{known}"
        claims = tuple(stranger(claim, factor, key) for claim in asked.claims)
        if choose.random() < 0.5:
            pairs = zip(claims, asked.claims, strict=True)
            history.admit(tuple(attrs.evolve(mine, reuse=its.reuse) for mine, its in pairs), key)
        else:  # where nothing may be lent, all that is granted is counted
            history.admit((choose.choice(claims),) if claims else (), key)
    check_copy(history.value)
    assert history.replayed(allocator) == history.value, (
        f"{allocator.name}: the same calls on the same value ended differently: "
        "the answer depends on something beside the value and the claim"
    )
    choose.shuffle(order := list(history.holders))
    for key in order:
        history.release(key)
    assert history.value == allocator, (
        f"{allocator.name}: after a history of {steps} steps all was released, and the value is not the first"
    )


def check_fills_up(allocator: Allocator, claim: Claim, promises: Promises) -> None:
    """The largest claim that is granted is granted a few times, then refused in words."""
    if not pinned(check_hints(allocator, (stranger(claim),), promises)):
        return
    where = f"{allocator.name}, many claims like {claim.owner.member}"
    most = _largest(allocator, claim, where)
    if most == 0:
        return
    check_offers(allocator, stranger(claim, most + 1), promises)
    check_claim(allocator, stranger(claim, most), promises)
    for factor in (most // 2 + 1, most):
        check_first_hints(allocator, (stranger(claim, factor),), promises)
    granted = _fill(allocator, claim, most, promises, most=_MOST_GRANTS)
    assert granted < _MOST_GRANTS, (
        f"{where}: the largest that an empty node grants was granted {granted} times over: "
        "what one holds stays free for the next"
    )
    # What is dropped of each fraction adds up; of whole units some holders at a time are enough.
    units = _fill(allocator, claim, 1, promises, most=_MOST_GRANTS if promises.fractions else _MANY)
    check_totals(allocator, claim, units, most, promises)


def _fill(allocator: Allocator, claim: Claim, factor: int, promises: Promises, *, most: int) -> int:
    """The same claim again and again, until it is refused; then all is given back."""
    where = f"{allocator.name}, many claims like {claim.owner.member}"
    value, granted = allocator, 0
    answer: Allocator | Shortfall | NotYet = allocator
    while granted < most:
        answer = allocate(value, stranger(claim, factor, f"check-{granted}"), ANYWHERE, where)
        if isinstance(answer, (Shortfall, NotYet)):
            break
        value, granted = answer, granted + 1
        _check_total(allocator, claim, factor * granted, where)
    check_offers(value, stranger(claim), promises)
    if isinstance(answer, Shortfall):
        _check_full(allocator, value, stranger(claim, factor), where, promises)
        check_shortfall(answer, stranger(claim, factor), ANYWHERE, where, promises)
    for number in range(min(granted, _MANY)):
        held = value.release(f"check-{number}") != value
        assert held, f"{where}: {granted} were granted, and check-{number} holds nothing any more"
    for number in range(granted):
        value = value.release(f"check-{number}")
    assert value == allocator, f"{where}: all were released, and the value is not the first"
    return granted


def _check_full(empty: Allocator, full: Allocator, claim: Claim, where: str, promises: Promises) -> None:
    """Who had nodes to hint at is not without a preference now that none is left."""
    before, now = empty.hints((claim,)), full.hints((claim,))
    if isinstance(before, NotYet) or isinstance(now, NotYet) or not promises.exact:
        return
    for resource, options in before.items():
        lost = options is not None and now.get(resource, ()) is None
        assert not lost, (
            f"{where}: it is refused on any node, and hints have no preference about {resource} (None); "
            "an empty list says that nothing is possible"
        )


def _largest(allocator: Allocator, claim: Claim, where: str) -> int:
    """How many times the claim's amounts are granted at once, to one that asks."""

    def granted(factor: int) -> bool:
        answer = allocate(allocator, stranger(claim, factor), ANYWHERE, where)
        return not isinstance(answer, (Shortfall, NotYet))

    if not granted(1):
        return 0
    low = 1
    while granted(2 * low):
        low *= 2
        assert low < _LARGEST, f"{where}: {low} times as much was granted; a node has an end"
    high = 2 * low
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if granted(middle) else (low, middle)
    return low


def _check_total(allocator: Allocator, claim: Claim, times: int, where: str) -> None:
    """Together no more than there is; fractions count as what they are, figures may be rounded."""
    for name, entry in figures(allocator, claim).items():
        asked = claim.amounts.get(name, Quantity())
        # Of some claims only a part is wanted here; the rest is somebody else's.
        exact = asked.nanos if abs(asked.value - entry.wanted) <= 1 else entry.wanted * _NANO
        there = sum(entry.allocatable.values())
        assert exact * times <= (there + len(entry.allocatable)) * _NANO, (
            f"{where}: {Quantity(nanos=exact * times)} of {name} were granted, and there are {there}"
        )
