"""What is left when every counted resource may leave nodes out.

Several resources each choose a set of nodes, and what counts is what the sets
have in common. A resource that is counted may leave a node out as long as the
rest still holds enough: it *pays* for the node out of what it has to spare. So
a set can come out exactly if each of the other nodes is paid for by some
resource. Sets that come out stay such when they grow: fewer nodes are paid for.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import TypeAlias

from nodealloc.idset import bits, lowest
from nodealloc.topology._counted import CountedHints
from nodealloc.topology._hints import NumaMask
from nodealloc.topology._walk import Keep, walk
from nodealloc.topology._work import Work

__all__ = ["Narrowing"]

_Purse: TypeAlias = tuple[int, ...]
"""What one resource has to spare of each need, and last the nodes it has left out."""

_Purses: TypeAlias = tuple[_Purse, ...]

_FREE: tuple[_Purses, ...] = ((),)
"""One resource can pay for all that may still be left out."""


class _NodeCosts:
    """One resource: what each node of the space costs it."""

    def __init__(self, hints: CountedHints, nodes: tuple[int, ...]) -> None:
        self.shared: list[list[tuple[NumaMask, int]]] = []
        self.costs: list[list[int]] = []
        self.most: list[list[int]] = []
        spare: list[int] = []
        for need in hints.needs:
            costs, most = dict.fromkeys(nodes, 0), dict.fromkeys(nodes, 0)
            shared: list[tuple[NumaMask, int]] = []
            for place, amount in need.amounts:
                here = place & hints.nodes
                alone = not here & (here - 1)
                if not alone:
                    shared.append((here, amount))
                for node in bits(here):
                    if node in costs:
                        most[node] += amount
                        costs[node] += amount if alone else 0
            self.costs.append([costs[node] for node in nodes])
            self.most.append([most[node] for node in nodes])
            self.shared.append(shared)
            spare.append(need.held_by(hints.nodes) - need.wanted)
        self.purse: _Purse = (*spare, 0)
        self._cheapest: dict[int, list[list[int]]] = {}
        self._dearest: dict[int, list[list[int]]] = {}

    def paid(self, purse: _Purse, place: int, node: int) -> _Purse | None:
        """The purse after leaving a node out; None when it cannot."""
        gone = purse[-1] | node
        left = [have - costs[place] for have, costs in zip(purse[:-1], self.costs, strict=True)]
        for row, shared in enumerate(self.shared):
            for nodes, amount in shared:
                if nodes & node and not nodes & ~gone:
                    left[row] -= amount
        if left and min(left) < 0:
            return None
        return (*left, gone if any(self.shared) else 0)

    def at_most(self, purse: _Purse, undecided: int) -> int:
        """How many of the undecided nodes it could pay for, were they the cheapest."""
        sums = self._cheapest.get(undecided)
        if sums is None:
            sums = self._cheapest[undecided] = [
                [0, *accumulate(sorted(costs[:undecided]))] for costs in self.costs
            ]
        return min(
            [bisect_right(row, have) - 1 for row, have in zip(sums, purse[:-1], strict=True)],
            default=undecided,
        )

    def pays_any(self, purse: _Purse, undecided: int, count: int) -> bool:
        """Whether it can pay for any so many of the undecided nodes."""
        sums = self._dearest.get(undecided)
        if sums is None:
            sums = self._dearest[undecided] = [
                [0, *accumulate(sorted(most[:undecided], reverse=True))] for most in self.most
            ]
        return all(row[count] <= have for row, have in zip(sums, purse[:-1], strict=True))


class Narrowing:
    """Sets that can come out of all nodes that the resources have in common, as a `Space`.

    The state is every way to have paid so far, as what each resource has left;
    ways that leave less of everything than another are forgotten.

    Args:
        counted: The resources; each has at least one set. Equal ones are one object and stand together.
        among: Nodes that all of them, and the hints that are listed, have in common.
        work: What is spent.
    """

    def __init__(self, counted: Sequence[CountedHints], among: NumaMask, work: Work) -> None:
        self.nodes: tuple[int, ...] = tuple(bits(among))
        self._among = among
        self._work = work
        work.spend(2 + len(self.nodes) * sum([len(hints.needs) for hints in counted]))
        self._payers: list[_NodeCosts] = []
        self._twins: list[int] = []  # places of resources that are equal to the one before
        for place, one in enumerate(counted):
            if place and counted[place - 1] is one:
                self._payers.append(self._payers[-1])
                self._twins.append(place)
            else:
                self._payers.append(_NodeCosts(one, self.nodes))

    def lowest(self, width: int) -> NumaMask:
        """The lowest set of so many nodes; 0 when there is none."""
        first = lowest(self._among, width)
        if first.bit_count() == width and self.surely(first):
            return first
        return next(self.ascending(width), 0)

    def ascending(self, width: int, keep: Keep | None = None) -> Iterator[NumaMask]:
        """Every set of so many nodes, ascending."""
        return walk(self, width, self._work, keep)

    def start(self, take: int, /) -> tuple[_Purses, ...]:
        """See `Space`."""
        first: _Purses = tuple([payer.purse for payer in self._payers])
        return _FREE if self._free(first, len(self.nodes), take) else (first,)

    def without(self, state: tuple[_Purses, ...], place: int, take: int, /) -> tuple[_Purses, ...] | None:
        """See `Space`."""
        if state is _FREE:
            return state
        node = 1 << self.nodes[place]
        found: set[_Purses] = set()
        self._work.spend(len(state) * len(self._payers) * 2)
        for purses in state:
            ways: list[_Purses] = []
            for at, (payer, purse) in enumerate(zip(self._payers, purses, strict=True)):
                left = payer.paid(purse, place, node)
                if left is not None:
                    ways.append(self._ordered(purses, at, left))
                    if left == purse:  # nothing is as good as paying nothing
                        ways = ways[-1:]
                        break
            found.update(ways)
        for purses in found:
            if self._free(purses, place, take):
                return _FREE
        return self._not_worse(found) or None

    def taking(self, state: tuple[_Purses, ...], place: int, /) -> tuple[_Purses, ...]:
        """See `Space`."""
        del place
        return state

    def may(self, state: tuple[_Purses, ...], undecided: int, take: int, /) -> bool:
        """See `Space`."""
        if state is _FREE:
            return True
        if take == 0:
            left: tuple[_Purses, ...] | None = state
            for place in range(undecided - 1, -1, -1):
                left = self.without(left, place, 0) if left else None
            return left is not None
        out = undecided - take
        self._work.spend(len(state) * len(self._payers))
        return out == 0 or any(
            sum([payer.at_most(purse, undecided) for payer, purse in zip(self._payers, purses, strict=True)])
            >= out
            for purses in state
        )

    def _free(self, purses: _Purses, undecided: int, take: int) -> bool:
        return any(
            payer.pays_any(purse, undecided, undecided - take)
            for payer, purse in zip(self._payers, purses, strict=True)
        )

    def surely(self, kept: NumaMask) -> bool:
        """Whether all nodes but these can be paid for, each by the first who can; False may be wrong."""
        purses = [payer.purse for payer in self._payers]
        for place, node in enumerate(self.nodes):
            if kept >> node & 1:
                continue
            self._work.spend(1)
            for at, payer in enumerate(self._payers):
                left = payer.paid(purses[at], place, 1 << node)
                if left is not None:
                    purses[at] = left
                    break
            else:
                return False
        return True

    def _ordered(self, purses: _Purses, at: int, left: _Purse) -> _Purses:
        """The purses with one of them changed; those of equal resources in one order."""
        changed = [*purses[:at], left, *purses[at + 1 :]]
        for _ in self._twins:
            for place in self._twins:
                if changed[place] < changed[place - 1]:
                    changed[place - 1], changed[place] = changed[place], changed[place - 1]
        return tuple(changed)

    def _not_worse(self, found: set[_Purses]) -> tuple[_Purses, ...]:
        kept: list[_Purses] = []
        for purses in sorted(found, reverse=True):
            self._work.spend(1 + 4 * len(kept))
            if not any(_as_good(other, purses) for other in kept):
                kept.append(purses)
        return tuple(kept)


def _as_good(one: _Purses, other: _Purses) -> bool:
    """Whether one way leaves as much of everything as another, having left out no other nodes."""
    return all(
        mine[-1] == theirs[-1] and all(have >= had for have, had in zip(mine[:-1], theirs[:-1], strict=True))
        for mine, theirs in zip(one, other, strict=True)
    )
