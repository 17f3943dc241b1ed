"""One call of an allocator: its answer, the same when repeated, and everything else as it was."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeAlias, TypeGuard, TypeVar

from nodealloc import _attrs as attrs
from nodealloc.podspec import Quantity
from nodealloc.testing._wording import is_listed, told
from nodealloc.topology import (
    Allocator,
    Availability,
    Claim,
    HintError,
    Hints,
    NotYet,
    NumaTopology,
    Owner,
    Reports,
    Shortfall,
    TopologyHint,
)

__all__ = [
    "ANYWHERE",
    "Offer",
    "Promises",
    "allocate",
    "check_copy",
    "figures",
    "is_allocator",
    "pickled",
    "pinned",
    "pure",
    "released",
    "stranger",
]

T = TypeVar("T")

Offer: TypeAlias = tuple[str, TopologyHint]
"""A hint, and for which resource it was given; "" for none."""

ANYWHERE = TopologyHint(affinity=None, preferred=False)


@attrs.frozen(kw_only=True)
class Promises:
    """Which of the promises an allocator is held to, and on which machine.

    Attributes:
        numa: The machine.
        every_hint_grants: See `check_allocator`.
        exact_release: See `check_allocator`.
        exact_hints: See `check_allocator`.
        fractions: Whether claims ask for parts of units, so that figures are rounded.
    """

    numa: NumaTopology
    every_hint_grants: bool
    exact_release: bool
    exact_hints: bool
    fractions: bool

    @property
    def exact(self) -> bool:
        """Whether hints and grants can be counted to the unit."""
        return self.exact_hints and self.every_hint_grants


def pickled(value: T, where: str) -> T:
    """The value as another process would have it."""
    try:
        copy: T = pickle.loads(pickle.dumps(value))  # noqa: S301
    except Exception as error:
        raise AssertionError(f"{where}: cannot be pickled: {error!r}") from error
    return copy


def check_copy(allocator: Allocator) -> None:
    """Values of one content are equal, also those that have travelled."""
    same = pickled(allocator, allocator.name) == allocator
    assert same, f"{allocator.name}: pickling changed the value, or it has no equality (use attrs.frozen)"


def pure(allocator: Allocator, where: str, call: Callable[[], T]) -> T:
    """The call's answer, which must not change the allocator and must be the same again."""
    before = pickled(allocator, where)
    try:
        first, second = call(), call()
    except (AssertionError, HintError):
        raise
    except Exception as error:
        said = "answer with a Shortfall where there is too little, with NotYet while it cannot be told"
        raise AssertionError(f"{where}: raised {error!r}; {said}") from error
    assert first == second, f"{where}: answered differently the second time"
    assert allocator == before, f"{where}: changed the allocator that was asked"
    return first


def allocate(
    allocator: Allocator, claim: Claim, hint: TopologyHint, where: str
) -> Allocator | Shortfall | NotYet:
    """The answer to a claim, checked for its type and for leaving everything as it was."""
    asked = pickled(claim, where)

    def call() -> Allocator | Shortfall | NotYet:
        answer = allocator.allocate(claim, hint)
        assert claim == asked, f"{where}: allocate changed the claim that it was given"
        return answer

    answer = pure(allocator, f"{where}, allocate on {told(hint)}", call)
    right = isinstance(answer, (Shortfall, NotYet)) or is_allocator(answer)
    assert right, f"{where}: answered {answer!r} where an allocator, a Shortfall or NotYet belongs"
    return answer


def released(allocator: Allocator, workload: str, member: str | None = None) -> Allocator:
    """The value after a release, which must leave the one before it alone."""
    what = workload if member is None else f"{workload}/{member}"
    where = f"{allocator.name}, release of {what}"
    after = pure(allocator, where, partial(allocator.release, workload, member))
    assert is_allocator(after), f"{where}: answered {after!r} where an allocator belongs"
    return after


def stranger(claim: Claim, factor: int = 1, key: str = "check-stranger") -> Claim:
    """The same amounts, so many times, for a workload that nobody has heard of."""
    amounts = {name: Quantity(nanos=amount.nanos * factor) for name, amount in claim.amounts.items()}
    return attrs.evolve(claim, owner=Owner(key, claim.owner.member), amounts=amounts, reuse=())


def pinned(hints: Hints | NotYet) -> bool:
    """Whether an answer speaks of nodes for some resource, so that granting has to take something."""
    return not isinstance(hints, NotYet) and any(options for options in hints.values())


def figures(allocator: Allocator, claim: Claim) -> Mapping[str, Availability]:
    """What is reported for a claim by a stranger; nothing where the allocator does not report."""
    if not isinstance(allocator, Reports):
        return {}
    asked = (stranger(claim),)
    where = f"{allocator.name}, availability"
    entries = pure(allocator, where, lambda: allocator.availability(asked))
    assert is_listed(entries), f"{where}: answered {entries!r} where a list belongs"
    return {entry.resource: entry for entry in entries}


def is_allocator(value: object) -> TypeGuard[Allocator]:
    """Whether a value allocates and releases as well as whatever else it does."""
    return hasattr(value, "allocate") and hasattr(value, "release")
