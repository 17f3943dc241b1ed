"""What seldom shows: nobody who asks, names that resemble others, orders, members of one workload."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs

from nodealloc.podspec import Quantity
from nodealloc.testing._allocator_calls import ANYWHERE, Promises, allocate, pickled, pure, released, stranger
from nodealloc.testing._allocator_checks import check_hints
from nodealloc.testing._wording import told
from nodealloc.topology import (
    Allocator,
    ClaimKind,
    CountedHints,
    NotYet,
    Owner,
    Reports,
    Serves,
    Shortfall,
    Workload,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nodealloc.topology import Claim, TopologyHint

__all__ = [
    "check_asks_nothing",
    "check_edges",
    "check_first_hints",
    "check_together",
    "check_unknown_release",
    "filled_by",
]

_NOBODYS: Final = "check-nobody-has-it"
"""A resource that no allocator manages."""
_TRIED: Final = 8
"""Hints for a whole workload that are tried."""


def check_asks_nothing(allocator: Allocator, claim: Claim, promises: Promises) -> None:
    """Neither hints nor grants for a claim that asks for nothing that is served here."""
    none = dict.fromkeys(claim.amounts, Quantity())
    first = allocator.hints((claim,))
    if not isinstance(first, NotYet):
        kept = pickled(first, f"{allocator.name}, hints")
        for factor in (2, 1 << 20):
            allocator.hints((stranger(claim, factor),))
        assert first == kept, f"{allocator.name}: an answer of hints changed when others were asked for"
    if isinstance(allocator, Serves):
        for resource in check_hinted(allocator, claim, promises):
            assert allocator.serves(resource), (
                f"{allocator.name}: hints for {resource}, which it does not serve"
            )
        assert not allocator.serves(_NOBODYS), f"{allocator.name}: says that it serves {_NOBODYS}"
    for amounts in ({}, none, {_NOBODYS: Quantity.of(1)}):
        asked = attrs.evolve(stranger(claim), amounts=amounts)
        hints = check_hints(allocator, (asked,), promises)
        about = ", ".join(f"{name}={amount}" for name, amount in amounts.items()) or "nothing"
        assert not isinstance(hints, NotYet), f"{allocator.name}: not ready for a claim of {about}"
        assert not hints, f"{allocator.name}: hints {dict(hints)} for a claim that asks for {about}"
        answer = allocate(allocator, asked, ANYWHERE, f"{allocator.name}, a claim of {about}")
        assert answer == allocator, (
            f"{allocator.name}: a claim that asks for {about} was not answered with the value itself"
        )


def check_hinted(allocator: Allocator, claim: Claim, promises: Promises) -> Sequence[str]:
    """The resources of a claim for which there are hints."""
    hints = check_hints(allocator, (stranger(claim),), promises)
    return () if isinstance(hints, NotYet) else tuple(hints)


def check_unknown_release(allocator: Allocator) -> None:
    """Whoever is not known holds nothing."""
    same = released(allocator, "no such workload")
    assert same == allocator, f"{allocator.name}: releasing an unknown workload changed something"


def check_edges(allocator: Allocator, asked: Workload, promises: Promises) -> None:
    """Everything here but what a claim of nothing is answered, which `check_asks_nothing` looks at."""
    _check_nobody(allocator)
    check_first_hints(allocator, asked.claims, promises)
    for claim in asked.claims:
        _check_neighbours(allocator, claim, promises)
        _check_other_amounts(allocator, claim)
        _check_equal_values(allocator, claim)
        _check_lent(allocator, _lending(claim), promises)
    for factor in (1, 2, 3):
        check_together(allocator, _times(asked, factor), promises)
    _check_lent(allocator, asked, promises)
    full = filled_by(allocator, asked)
    if full is None:
        return
    _check_names(full, asked)
    _check_namesake(full, asked)


def _check_nobody(allocator: Allocator) -> None:
    """Nobody asks for anything."""
    where = f"{allocator.name}, hints for no claims"
    hints = pure(allocator, where, lambda: allocator.hints(()))
    assert isinstance(hints, NotYet) or not hints, f"{where}: answered {hints}"


def check_first_hints(allocator: Allocator, claims: Sequence[Claim], promises: Promises) -> None:
    """Where nobody holds anything, one node that is enough is preferred: nothing better ever comes.

    Of several nodes it cannot be told: what is reserved may need one more than the machine itself would.
    """
    hints = check_hints(allocator, claims, promises)
    if isinstance(hints, NotYet) or not promises.exact_hints:
        return
    for resource, options in hints.items():
        single = [hint for hint in _some(options) if hint.affinity and hint.affinity.bit_count() == 1]
        assert not single or any(hint.preferred for hint in single), (
            f"{allocator.name}, hints for {resource}: nobody holds anything, and none is preferred "
            f"of {', '.join(map(told, single))}"
        )


def _some(options: Sequence[TopologyHint] | CountedHints | None) -> Sequence[TopologyHint]:
    return options.some(_TRIED) if isinstance(options, CountedHints) else tuple(options or ())


def _check_neighbours(allocator: Allocator, claim: Claim, promises: Promises) -> None:
    """A resource whose name resembles one that is served here is somebody else's."""
    for resource in check_hinted(allocator, claim, promises):
        domain, _, short = resource.rpartition("/")
        for other in (f"{resource}-check", f"check.{domain}/{short}" if domain else f"check-{resource}"):
            where = f"{allocator.name}, a claim of {other}"
            one = attrs.evolve(stranger(claim), amounts={other: Quantity.of(1)})
            hints = allocator.hints((one,))
            assert isinstance(hints, NotYet) or not hints, f"{where}: hints for {', '.join(hints)}"
            answer = allocate(allocator, one, ANYWHERE, where)
            is_left = isinstance(answer, (Shortfall, NotYet)) or answer == allocator
            assert is_left, f"{where}: granted something, and it serves {resource}"
            assert answer != allocator or not _says_it_serves(allocator, other), (
                f"{allocator.name}: says that it serves {other}"
            )


def _says_it_serves(allocator: object, resource: str) -> bool:
    return isinstance(allocator, Serves) and allocator.serves(resource)


def _check_other_amounts(allocator: Allocator, claim: Claim) -> None:
    """What else is asked for, and in which order, changes nothing."""
    one = stranger(claim)
    more = attrs.evolve(one, amounts={_NOBODYS: Quantity.of(1), **dict(reversed([*one.amounts.items()]))})
    plain = allocate(allocator, one, ANYWHERE, f"{allocator.name}, claim {claim.owner.member}")
    answer = allocate(allocator, more, ANYWHERE, f"{allocator.name}, claim {claim.owner.member} and more")
    assert answer == plain, (
        f"{allocator.name}, claim {claim.owner.member}: granted otherwise when {_NOBODYS} is asked for as "
        "well, and before the others"
    )


def _check_equal_values(allocator: Allocator, claim: Claim) -> None:
    """Of two that hold something one goes and comes back; where that makes an equal value, nothing tells."""
    for sizes in ((1, 1, 1), (1, 2, 1), (2, 1, 1)):
        _check_equal(allocator, claim, sizes)


def _check_equal(allocator: Allocator, claim: Claim, sizes: tuple[int, int, int]) -> None:
    names = ("check-first", "check-second", "check-third")
    first, second, third = (stranger(claim, size, name) for name, size in zip(names, sizes, strict=True))
    one = _granted(_granted(allocator, first), second)
    other = _granted(one and released(one, first.owner.workload), first)
    if one is None or other is None or other != one:
        return
    where = f"{allocator.name}, claim {claim.owner.member}"
    alike = allocate(one, third, ANYWHERE, where) == allocate(other, third, ANYWHERE, where)
    alike = alike and one.hints((third,)) == other.hints((third,))
    assert alike, f"{where}: two equal values answer differently: who came last is in neither of them"


def _granted(allocator: Allocator | None, claim: Claim) -> Allocator | None:
    if allocator is None:
        return None
    answer = allocate(allocator, claim, ANYWHERE, f"{allocator.name}, claim {claim.owner.member}")
    return None if isinstance(answer, (Shortfall, NotYet)) else answer


def check_together(allocator: Allocator, asked: Workload, promises: Promises) -> None:
    """What is hinted for all claims of a workload together has room for each of them in turn."""
    if not promises.every_hint_grants or len(asked.claims) < 2:
        return
    hints = check_hints(allocator, asked.claims, promises)
    if isinstance(hints, NotYet):
        return
    for hint in (hint for options in hints.values() for hint in _some(options)[:_TRIED]):
        value = allocator
        for claim in asked.claims:
            where = f"{allocator.name}, claim {claim.owner.member} with all of {asked.key} on {told(hint)}"
            answer = allocate(value, claim, hint, where)
            assert not isinstance(answer, Shortfall), (
                f"{where}: hinted for all of them, then refused: {answer}"
            )
            value = value if isinstance(answer, NotYet) else answer


def filled_by(allocator: Allocator, asked: Workload) -> Allocator | None:
    """With all claims granted on any node; None where they are not."""
    value: Allocator | None = allocator
    for claim in asked.claims:
        value = _granted(value, claim)
    return value


def _times(asked: Workload, factor: int) -> Workload:
    """So many times the amounts."""
    return attrs.evolve(
        asked,
        claims=tuple(
            attrs.evolve(stranger(claim, factor, asked.key), reuse=claim.reuse) for claim in asked.claims
        ),
    )


def _lending(claim: Claim) -> Workload:
    """A member that ends, and two behind it of which one may have what it held."""
    key = "check-lent"
    first = attrs.evolve(stranger(claim, key=key), owner=Owner(key, "ends"), kind=ClaimKind.INIT)
    rest = (
        attrs.evolve(first, owner=Owner(key, name), kind=ClaimKind.MAIN, reuse=("ends",))
        for name in ("stays", "stays-too")
    )
    return Workload(key=key, claims=(first, *rest))


def _check_lent(allocator: Allocator, asked: Workload, promises: Promises) -> None:
    """Members that run together hold what they ask for together; what ended is lent to one of them."""
    full = filled_by(allocator, asked)
    if full is None or not (isinstance(allocator, Reports) and isinstance(full, Reports)):
        return
    now = {one.resource: one for one in full.availability(asked.claims)}
    for before in allocator.availability(asked.claims):
        if before.resource not in now:
            continue
        gone = sum(before.free.values()) - sum(now[before.resource].free.values())
        rounded = len(before.free) if promises.fractions else 0
        assert gone >= before.wanted - rounded, (
            f"{allocator.name}, {before.resource}: the members of {asked.key} want {before.wanted} at their "
            f"peak, and {gone} fewer are free: two of them were granted the same, or it is counted wrongly"
        )


def _check_names(full: Allocator, asked: Workload) -> None:
    """Names that only resemble those that hold something release nothing."""
    key = asked.key
    for other in ("", key[1:], key[:-1], f"{key}-", f"-{key}", key.upper()):
        if other != key:
            same = released(full, other) == full
            assert same, f"{full.name}: {key} holds something, and releasing {other!r} changed something"
    for member in ("", *_resembling(asked)):
        same = released(full, key, member) == full
        assert same, (
            f"{full.name}: releasing the member {member!r} of {key}, which it has not, changed something"
        )


def _resembling(asked: Workload) -> Iterator[str]:
    members = {claim.owner.member for claim in asked.claims}
    for member in sorted(members):
        yield from (
            name for name in (member[1:], member[:-1], f"{member}0", f"-{member}") if name not in members
        )


def _check_namesake(full: Allocator, asked: Workload) -> None:
    """Members of two workloads may have one name."""
    for claim in asked.claims:
        mine = claim.owner
        if released(full, mine.workload, mine.member) == full:
            continue
        after = released(full, "check-namesake", mine.member)
        assert after == full, (
            f"{full.name}: {mine.member} of a workload that holds nothing was released, and with it that of "
            f"{mine.workload}"
        )
        other = allocate(full, stranger(claim, key="check-namesake"), ANYWHERE, f"{full.name}, a namesake")
        if isinstance(other, (Shortfall, NotYet)) or other == full:
            continue
        left = released(other, "check-namesake", mine.member)
        lost = released(left, mine.workload, mine.member) == left
        assert not lost, f"{full.name}: releasing {Owner('check-namesake', mine.member)} took {mine} along"
