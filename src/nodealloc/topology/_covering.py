"""Sets of nodes that hold enough of everything that is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import TypeAlias

from nodealloc.idset import bits, lowest
from nodealloc.topology._masks import NumaMask
from nodealloc.topology._needs import Need
from nodealloc.topology._walk import Keep, walk
from nodealloc.topology._work import Work

__all__ = ["Covering"]

_Missing: TypeAlias = tuple[int, ...]
"""Of each need what the nodes that are taken do not hold."""

_State: TypeAlias = tuple[_Missing, NumaMask, int]
"""What is missing, the nodes that are taken, and the kinds of nodes that are left out no longer."""

_ONE = 1 << 60
"""What a need counts in the sum of all."""


class Covering:
    """Sets of some nodes that meet needs, as a `Space` and by questions.

    Two nodes that hold the same of everything are of one kind. Where only the
    lowest set is asked for, a node is taken only with all lower ones of its
    kind: a set without one of them would not be the lowest.

    Args:
        needs: What a set has to hold.
        among: The nodes.
        work: What the questions take their work from.
    """

    def __init__(self, needs: Sequence[Need], among: NumaMask, work: Work) -> None:
        self.nodes: tuple[int, ...] = tuple(bits(among))
        self._among = among
        self._work = work
        self._needs = [need for need in needs if need.wanted > 0]
        work.spend(2 + len(self.nodes) * len(self._needs))
        self._shared = [
            tuple([(place & among, amount) for place, amount in need.amounts if place & (place - 1)])
            for need in self._needs
        ]
        self._gains = [_gains(need, among, self.nodes) for need in self._needs]
        self._wanted = [need.wanted for need in self._needs]
        if len(self._gains) > 1:  # the sum of all needs is one more, which several short ones fail together
            scales = [_ONE // wanted for wanted in self._wanted]
            self._gains.append(
                [
                    sum([scale * gain for scale, gain in zip(scales, column, strict=True)])
                    for column in zip(*self._gains, strict=True)
                ]
            )
            self._wanted.append(sum([scale * need for scale, need in zip(scales, self._wanted, strict=True)]))
        self._best: dict[int, list[list[int]]] = {}
        self._kinds: list[int] = []

    def holds(self, mask: NumaMask) -> bool:
        """Whether a set of the nodes meets the needs."""
        self._work.spend(1 + len(self._needs) * mask.bit_count() // 8)
        return all(need.held_by(mask) >= need.wanted for need in self._needs)

    def fewest(self, containing: NumaMask = 0) -> int:
        """How many nodes a set has at least; 0 when not even all of them suffice."""
        count = len(self.nodes)
        if not count or containing & ~self._among or not self.holds(self._among):
            return 0
        least = max(self.least(), containing.bit_count())
        return next(width for width in range(least, count + 1) if self.lowest(width, containing))

    def least(self) -> int:
        """No set has fewer nodes; the narrowest may have more."""
        return max([1, *[self._bound(row) for row in range(len(self._wanted))]])

    def lowest(self, width: int, containing: NumaMask = 0) -> NumaMask:
        """The lowest set of so many nodes that contains these; 0 when there is none."""
        if not 0 < width <= len(self.nodes) or containing & ~self._among:
            return 0
        first = containing | lowest(self._among & ~containing, width - containing.bit_count())
        if first.bit_count() == width and self.holds(first):
            return first
        if width == 1:
            return self._first_alone()
        if containing:
            return next(
                self.ascending(width, lambda taken, undecided, _: self._can(taken, undecided, containing)), 0
            )
        self._kinds = self._kinds_of_nodes()
        try:
            return next(self.ascending(width), 0)
        finally:
            self._kinds = []

    def _first_alone(self) -> NumaMask:
        """The lowest node that meets the needs by itself."""
        wanted = self._wanted
        for place, node in enumerate(self.nodes):
            if all(gains[place] >= need for gains, need in zip(self._gains, wanted, strict=True)):
                return 1 << node
        return 0

    def ascending(self, width: int, keep: Keep | None = None) -> Iterator[NumaMask]:
        """Every set of so many nodes, ascending."""
        return walk(self, width, self._work, keep)

    def start(self, take: int, /) -> _State:
        """See `Space`."""
        del take
        return tuple(self._wanted), 0, 0

    def without(self, state: _State, place: int, take: int, /) -> _State | None:
        """See `Space`."""
        del take
        if self._kinds and state[2] & 1 << self._kinds[place]:
            return None
        return state

    def taking(self, state: _State, place: int, /) -> _State | None:
        """See `Space`."""
        missing, taken, kinds = state
        self._work.spend(len(missing))
        node = 1 << self.nodes[place]
        left = [short - gains[place] for short, gains in zip(missing, self._gains, strict=True)]
        for row, shared in enumerate(self._shared):
            for nodes, amount in shared:
                if nodes & node and nodes & taken:  # has been counted with the node before
                    left[row] += amount
                    if len(self._shared) > 1:
                        left[-1] += amount * (_ONE // self._wanted[row])
        if self._kinds:
            kinds |= 1 << self._kinds[place]
        return tuple(left), taken | node, kinds

    def may(self, state: _State, undecided: int, take: int, /) -> bool:
        """See `Space`."""
        missing = state[0]
        if take == 0:
            return max(missing, default=0) <= 0
        best = self._best.get(undecided)
        if best is None:
            self._work.spend(undecided * len(self._gains) // 4)
            best = self._best[undecided] = [
                [0, *accumulate(sorted(gains[:undecided], reverse=True))] for gains in self._gains
            ]
        return all(short <= sums[take] for short, sums in zip(missing, best, strict=True))

    def _can(self, taken: NumaMask, undecided: int, containing: NumaMask) -> bool:
        """Whether nodes that have to be in it are taken, or undecided yet."""
        below = (1 << self.nodes[undecided]) - 1 if undecided < len(self.nodes) else -1
        return not containing & ~(taken | below)

    def _bound(self, row: int) -> int:
        """How many nodes one need takes at least."""
        held = 0
        for count, gain in enumerate(sorted(self._gains[row], reverse=True), start=1):
            held += gain
            if held >= self._wanted[row]:
                return count
        return len(self.nodes)

    def _kinds_of_nodes(self) -> list[int]:
        kinds: dict[tuple[object, ...], int] = {}
        found: list[int] = []
        for place, node in enumerate(self.nodes):
            held: tuple[object, ...] = (
                tuple([gains[place] for gains in self._gains]),
                tuple(
                    [tuple([nodes for nodes, _ in shared if nodes >> node & 1]) for shared in self._shared]
                ),
            )
            found.append(kinds.setdefault(held, len(kinds)))
        return found


def _gains(need: Need, among: NumaMask, nodes: tuple[int, ...]) -> list[int]:
    """What each node by itself holds of a need."""
    held = dict.fromkeys(nodes, 0)
    for place, amount in need.amounts:
        if place & (place - 1):
            for node in bits(place & among):
                held[node] += amount
        elif place & among:
            held[place.bit_length() - 1] += amount
    return [held[node] for node in nodes]
