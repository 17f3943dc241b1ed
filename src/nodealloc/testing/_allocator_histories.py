"""What only shows in the long run: histories of admit and release, and a node that fills up."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import attrs

from nodealloc.podspec import Quantity
from nodealloc.testing._allocator_checks import (
    ANYWHERE,
    allocate,
    check_accounts,
    check_copy,
    check_hints,
    check_offers,
    figures,
    pinned,
    released,
    stranger,
    told,
)
from nodealloc.topology import NotYet, Shortfall, TopologyHint

if TYPE_CHECKING:
    from nodealloc.testing._allocator_checks import Promises
    from nodealloc.topology import Allocator, Claim, Workload

__all__ = ["check_fills_up", "check_history"]

_MOST_GRANTS = 1024
"""So many of the largest claim that an empty node grants, at least, and nothing ran out."""
_LARGEST = 1 << 50
"""A claim of so many times the amounts that was granted is not looked at for a limit."""
_NANO = 10**9


@attrs.define
class _History:
    """One node through a random history.

    Attributes:
        value: The allocator by now.
        holders: Workloads for which something was taken.
        promises: What it is held to.
        choose: Where chances come from.
    """

    value: Allocator
    promises: Promises
    choose: random.Random
    holders: list[str] = attrs.field(factory=list[str])

    def admit(self, claims: tuple[Claim, ...], key: str) -> None:
        """All claims of a workload or, where one falls short, none."""
        before = self.value
        for claim in claims:
            where = f"{before.name}, claim {claim.owner.member} among {len(self.holders)} workloads"
            hints = check_hints(self.value, (claim,), self.promises)
            if isinstance(hints, NotYet):
                break
            offers = [(name, hint) for name, options in hints.items() for hint in options or ()]
            resource, hint = self.choose.choice([*offers, ("", ANYWHERE)])
            answer = allocate(self.value, claim, hint, where)
            if isinstance(answer, (Shortfall, NotYet)):
                self._refused(hint, answer, where)
                break
            earlier, self.value = self.value, answer
            self._check_holders(f"granting {key}")
            if answer != earlier:
                check_accounts(earlier, answer, claim, (resource, hint), self.promises)
        else:
            if self.value != before:
                self.holders.append(key)
            return
        self.value = released(self.value, key)
        if self.promises.exact_release:
            assert self.value == before, f"{before.name}: releasing what was half granted left something"

    def release(self, key: str) -> None:
        """One workload, whole."""
        self.value = released(self.value, key)
        self.holders.remove(key)
        same = released(self.value, key) == self.value
        assert same, f"{self.value.name}: releasing {key} again changed something"
        self._check_holders(f"releasing {key}")

    def _refused(self, hint: TopologyHint, answer: Shortfall | NotYet, where: str) -> None:
        offered = hint.affinity is not None and isinstance(answer, Shortfall)
        refused = offered and self.promises.every_hint_grants
        assert not refused, f"{where}: hinted {told(hint)}, then refused it: {answer}"

    def _check_holders(self, what: str) -> None:
        for key in self.holders:
            still = self.value.release(key) != self.value
            assert still, f"{self.value.name}: {what} took away what {key} holds"


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
        claims = tuple(
            attrs.evolve(stranger(claim, factor, key), reuse=claim.reuse) for claim in asked.claims
        )
        some = claims if choose.random() < 0.5 else (choose.choice(claims),) if claims else ()
        history.admit(some, key)
    check_copy(history.value)
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
    granted = _fill(allocator, claim, most, promises)
    assert granted < _MOST_GRANTS, (
        f"{where}: the largest that an empty node grants was granted {granted} times over: "
        "what one holds stays free for the next"
    )
    if promises.fractions:  # what is dropped of each adds up
        _fill(allocator, claim, 1, promises)


def _fill(allocator: Allocator, claim: Claim, factor: int, promises: Promises) -> int:
    """The same claim again and again, until it is refused; then all is given back."""
    where = f"{allocator.name}, many claims like {claim.owner.member}"
    value, granted = allocator, 0
    while granted < _MOST_GRANTS:
        answer = allocate(value, stranger(claim, factor, f"check-{granted}"), ANYWHERE, where)
        if isinstance(answer, (Shortfall, NotYet)):
            break
        value, granted = answer, granted + 1
        _check_total(allocator, claim, factor * granted, where)
    check_offers(value, stranger(claim), promises)
    for number in range(granted):
        value = value.release(f"check-{number}")
    assert value == allocator, f"{where}: all were released, and the value is not the first"
    return granted


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
        asked = claim.amounts.get(name, Quantity(0))
        # Of some claims only a part is wanted here; the rest is somebody else's.
        exact = asked.nanos if abs(asked.value - entry.wanted) <= 1 else entry.wanted * _NANO
        there = sum(entry.allocatable.values())
        assert exact * times <= (there + len(entry.allocatable)) * _NANO, (
            f"{where}: {Quantity(exact * times)} of {name} were granted, and there are {there}"
        )
