"""The walk over sets of nodes: ascending as numbers, leaving out what cannot come to anything.

Nodes are decided from the highest to the lowest, each first left out and then
taken in, so that the sets of one size come in ascending order and the first
one is the lowest. What makes a set possible is a `Space`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, Protocol, TypeAlias, TypeVar

from nodealloc.topology._masks import NumaMask
from nodealloc.topology._work import Work

__all__ = ["Keep", "Space", "walk"]

S = TypeVar("S")

Keep: TypeAlias = Callable[[NumaMask, int, int], bool]
"""Whether a branch is worth a look: (nodes taken so far, nodes undecided, how many of these to take)."""


class Space(Protocol, Generic[S]):
    """Which sets are possible, decided node by node from the highest down.

    A state says what the decisions so far leave. Places count the space's nodes
    ascending from 0; while `undecided` nodes are left, these are the lowest ones.
    """

    @property
    def nodes(self) -> tuple[int, ...]:
        """Node ids, ascending."""
        ...

    def start(self, take: int, /) -> S | None:
        """Nothing decided, so many of the nodes to take; None when nothing is possible."""
        ...

    def without(self, state: S, place: int, take: int, /) -> S | None:
        """The node at a place left out, so many of the lower ones to take; None when nothing is possible."""
        ...

    def taking(self, state: S, place: int, /) -> S | None:
        """The node at a place taken in; None when nothing is possible then."""
        ...

    def may(self, state: S, undecided: int, take: int, /) -> bool:
        """Whether so many of the undecided nodes can be possible.

        False is certain, and so is True once `take` is 0.
        """
        ...


def walk(space: Space[S], width: int, work: Work, keep: Keep | None = None) -> Iterator[NumaMask]:
    """Every possible set of `width` nodes, ascending.

    Raises:
        WorkLimitError: `work` is used up.
    """
    nodes = space.nodes
    undecided = len(nodes)
    if not 0 < width <= undecided:
        return
    start = space.start(width)
    open_ends: list[tuple[int, int, S, NumaMask]] = []
    if start is not None:
        open_ends.append((undecided, width, start, 0))
    while open_ends:
        undecided, take, state, taken = open_ends.pop()
        work.spend(2)
        if not space.may(state, undecided, take) or (keep is not None and not keep(taken, undecided, take)):
            continue
        if take == 0:
            yield taken
            continue
        place = undecided - 1
        inside = space.taking(state, place)
        if inside is not None:
            open_ends.append((place, take - 1, inside, taken | 1 << nodes[place]))
        if take < undecided:
            outside = space.without(state, place, take)
            if outside is not None:
                open_ends.append((place, take, outside, taken))
