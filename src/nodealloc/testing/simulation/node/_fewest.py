"""Fewer faults: which of those of a seed suffice to break the same guarantee."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Sequence
from typing import TypeVar

from nodealloc import _attrs as attrs
from nodealloc.testing.simulation._chance import FaultOccurrence
from nodealloc.testing.simulation._report import ViolationError
from nodealloc.testing.simulation.node._simulation import Line, NodeSimulation, Wiring

__all__ = ["Shrunk", "fewest", "shrunk"]

T = TypeVar("T")

_AROUND = 3
"""Lines of a story that are told before and after each fault."""
_AT_END = 12
"""Lines of it that are told of its end."""
_MOST = 60
"""Lines of it that are told in all."""


def fewest(items: Sequence[T], suffice: Callable[[Sequence[T]], bool], /, *, tries: int) -> tuple[T, ...]:
    """A small part of the items that suffices: no half, quarter, … of it can be left out, if the tries last.

    Args:
        items: They suffice; none that was left out comes back, and their order stays.
        suffice: Whether a part does; asked once at most for each part.
        tries: How often it is asked at most.

    Source: ours; the search is that of A. Zeller's "Yesterday, my program worked".

        >>> fewest(range(100), lambda part: {17, 80} <= set(part), tries=60)
        (17, 80)
    """
    left, asked = tuple(items), 0
    parts = min(2, len(left))
    known: set[tuple[T, ...]] = {left}
    while left:
        size = -(-len(left) // parts)
        for at in range(0, len(left), size):
            fewer = (*left[:at], *left[at + size :])
            if fewer in known:
                continue
            if asked >= tries:
                return left
            asked += 1
            known.add(fewer)
            if suffice(fewer):
                left, parts = fewer, min(max(parts - 1, 2), len(fewer))
                break
        else:
            if size == 1:
                return left
            parts = min(2 * parts, len(left))
    return left


@attrs.frozen(kw_only=True)
class Shrunk:
    """A violation with the fewest faults that were found to lead to it.

    Attributes:
        violation: What was found in the life with these faults alone.
        faults: They.
        of: How many struck in the life of the seed.
        lives: How many lives were tried.
        story: What happened around the faults and at the end, of the pod in question and the whole node.
    """

    violation: ViolationError
    faults: tuple[FaultOccurrence, ...]
    of: int
    lives: int
    story: tuple[str, ...]

    def __str__(self) -> str:
        said = f"{len(self.faults)} of {self.of} faults suffice; with these alone"
        if not self.faults:
            said = "no fault is needed; without any"
        lines = "".join(f"\n  {line}" for line in self.story)
        return f"{said}, at {self.violation.at_s:.3f} s: {self.violation.what}{lines}"


@attrs.frozen(kw_only=True)
class _Ended:
    """How a life ended."""

    kind: str
    violation: ViolationError | None
    faults: tuple[FaultOccurrence, ...]
    operations: int
    is_settling: bool
    story: tuple[str, ...]


def shrunk(
    seed: int, wiring: Callable[[], Wiring], /, *, tries: int = 60, seconds: float = 60.0
) -> Shrunk | None:
    """Live a seed again and again with fewer of its faults, as long as the same guarantee is broken.

    Args:
        seed: Whose life breaks a guarantee.
        wiring: Makes the wiring, anew for each life.
        tries: Lives at most.
        seconds: Real seconds after which none begins.

    Returns:
        None where the seed breaks no guarantee.
    """
    first = _lived(seed, wiring(), None, None)
    if first.violation is None:
        return None
    # What broke before faults stopped breaks by then with fewer, or it is not tried for longer.
    at_most = None if first.is_settling else 2 * first.operations
    until_s, lives, best = time.monotonic() + seconds, 1, first

    def suffice(faults: Collection[FaultOccurrence]) -> bool:
        nonlocal lives, best
        if time.monotonic() > until_s:
            return False
        lives += 1
        ended = _lived(seed, wiring(), faults, at_most)
        if ended.kind != first.kind:
            return False
        best = ended
        return True

    faults = first.faults
    if faults:
        faults = fewest(_kinds_that_matter(faults, suffice), suffice, tries=tries)
    if best.violation is None:
        raise AssertionError("a life that breaks a guarantee has a violation")
    # Some of those that were let strike were never asked for: they changed nothing.
    return Shrunk(
        violation=best.violation,
        faults=tuple(one for one in faults if one in best.faults),
        of=len(first.faults),
        lives=lives,
        story=best.story,
    )


def _kinds_that_matter(
    faults: tuple[FaultOccurrence, ...], suffice: Callable[[Collection[FaultOccurrence]], bool]
) -> tuple[FaultOccurrence, ...]:
    """Without all faults of one name, for each name without which it suffices; the commonest first."""
    if suffice(()):
        return ()
    names = [one.fault for one in faults]
    for name in sorted(set(names), key=lambda name: (-names.count(name), name)):
        fewer = tuple(one for one in faults if one.fault != name)
        if fewer and len(fewer) < len(faults) and suffice(fewer):
            faults = fewer
    return faults


def _lived(
    seed: int, wiring: Wiring, only: Collection[FaultOccurrence] | None, at_most: int | None
) -> _Ended:
    with NodeSimulation(seed, wiring, only=only) as node:
        violation = None
        try:
            node.run(at_most=at_most)
        except ViolationError as error:
            violation = error
        chance = node.simulation.chance
        return _Ended(
            kind="" if violation is None else node.broken or _kind(violation.what),
            violation=violation,
            faults=tuple(chance.faults_made),
            operations=node.report().operations,
            is_settling=not chance.is_on,
            story=() if violation is None else _story(tuple(node.story), node.about),
        )


def _kind(what: str) -> str:
    """What all violations of a kind have in common: their words without figures."""
    return re.sub(r"[\d.,]+", "#", what)[:40]


def _story(lines: Sequence[Line], uid: str) -> tuple[str, ...]:
    """The lines around each fault, and the last ones; a gap is told as one."""
    ours = [line for line in lines if not line.uid or line.uid == uid or not uid]
    told: set[int] = set(range(max(0, len(ours) - _AT_END), len(ours)))
    for at, line in enumerate(ours):
        if line.is_fault:
            told.update(range(max(0, at - _AROUND), min(len(ours), at + _AROUND + 1)))
    story: list[str] = []
    before = -1
    for at in sorted(told)[-_MOST:]:
        if at != before + 1:
            story.append(f"{'…':>10}")
        mark = "  <- fault" if ours[at].is_fault else ""
        story.append(f"{ours[at]}{mark}")
        before = at
    return tuple(story)
