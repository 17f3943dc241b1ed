"""Which NUMA nodes give an equal share each, and who of them gives the rest."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import combinations

from nodealloc import _attrs as attrs

__all__ = ["Split", "splits"]

_TRIES = 20_000
"""Combinations looked at in one size; beyond (some 17 nodes) the emptiest nodes are taken."""

_EXACT = 1000
"""Nodes times CPUs below which different sums of squares never round to one score."""


@attrs.frozen
class Split:
    """A way to spread a number of CPUs.

    Attributes:
        share: CPUs that each of `nodes` gives.
        nodes: Ranks of NUMA nodes.
        donors: Those of `nodes` that give one group more in turn, until the
            number is reached.
    """

    share: int
    nodes: tuple[int, ...]
    donors: tuple[int, ...]


def splits(free: Sequence[int], count: int, size: int, group: int, /) -> Iterator[Split]:
    """Spread `count` CPUs over `size` nodes so that what is left is most even.

    Args:
        free: Free CPUs of each NUMA node, in the order in which ties are broken.
        count: Whole CPUs; a multiple of `group`.
        size: How many nodes give; at least 1.
        group: CPUs go in groups of this many.

    Yields:
        The split that the kubelet settles on, then the one that it meant where
        that is another; nothing where no `size` nodes can serve.

    Source: kubelet ``cm/cpumanager/cpu_assignment.go``: the standard deviation
    of what is left on all nodes, to three places, is to be least; the first
    combination wins a tie.
    """
    if size == 1 and len(free) * max(free) < _EXACT:
        emptiest = max(free)
        if emptiest >= count:
            yield Split(count, (free.index(emptiest),), ())
        return
    search = _Search(free, count, size, group)
    found = search.best()
    if found is None:
        return
    nodes, donors, exact = found
    seen = _overwritten(nodes, range(len(free)), stopped=exact)
    lent = _overwritten(donors, search.pool(nodes), stopped=False)
    if (seen, lent) != (nodes, donors):
        yield Split(search.share, seen, lent)
    yield Split(search.share, nodes, donors)


class _Search:
    def __init__(self, free: Sequence[int], count: int, size: int, group: int) -> None:
        self.free = free
        self.size = size
        self.group = group
        self.share = count // size // group * group
        self.turns = (count - self.share * size) // group
        left = sum(free) - count
        mean = _thousandths(left / len(free))
        self.offset = len(free) * mean * mean - 2 * mean * left
        self.squares = sum(value * value for value in free)

    def best(self) -> tuple[tuple[int, ...], tuple[int, ...], bool] | None:
        """Nodes and donors of the lowest score, and whether that is 0; None where nobody can."""
        able = [rank for rank, value in enumerate(self.free) if value >= self.share]
        tries: Iterator[tuple[int, ...]] = combinations(able, self.size)
        if math.comb(len(able), self.size) > _TRIES:
            emptiest = sorted(able, key=self.free.__getitem__, reverse=True)
            tries = iter([tuple(sorted(emptiest[: self.size]))])
        best = math.inf
        found: tuple[tuple[int, ...], tuple[int, ...]] | None = None
        for nodes in tries:
            squares = self.squares + sum(self.share * (self.share - 2 * self.free[rank]) for rank in nodes)
            score, donors = self._donors(nodes, squares, best) if self.turns else (self._score(squares), ())
            if score < best:
                best, found = score, (nodes, donors)
                if best == 0:
                    break
        return None if found is None else (*found, best == 0)

    def pool(self, nodes: tuple[int, ...]) -> list[int]:
        """Who of the nodes has a whole group left after giving the share."""
        return [rank for rank in nodes if self.free[rank] - self.share >= self.group]

    def _donors(self, nodes: tuple[int, ...], squares: int, bound: float) -> tuple[float, tuple[int, ...]]:
        """Best score below `bound` of these nodes and its donors; infinite where there is none."""
        pool = self.pool(nodes)
        left = [self.free[rank] - self.share for rank in pool]
        floor = self._floor(left, squares)
        best, chosen = bound, None
        if floor < bound:
            for size in range(len(pool), 0, -1):
                if best <= floor:
                    break
                best, chosen = self._of_size(size, left, squares, best, chosen)
        return (math.inf, ()) if chosen is None else (best, tuple(pool[place] for place in chosen))

    def _floor(self, left: Sequence[int], squares: int) -> float:
        """What no choice of donors comes below: always the emptiest node gives next."""
        group, rest = self.group, list(left)
        for _ in range(self.turns):
            most = max(rest, default=0)
            if most < group:
                return math.inf
            rest[rest.index(most)] -= group
            squares += group * (group - 2 * most)
        return self._score(squares)

    def _of_size(
        self, size: int, left: Sequence[int], squares: int, best: float, chosen: tuple[int, ...] | None
    ) -> tuple[float, tuple[int, ...] | None]:
        """The first subset of `size` donors that scores below `best`, and is best at that."""
        turns, group = self.turns, self.group
        if size >= turns:
            # Only the first `turns` of a subset give; the others stand behind them.
            reach = len(left) - size + turns
            most = sum(sorted(left[:reach])[reach - turns :])
            score = self._score(squares + group * (turns * group - 2 * most))
            if score < best:
                for givers in combinations(range(reach), turns):
                    total = sum(left[place] for place in givers)
                    if total == most or self._score(squares + group * (turns * group - 2 * total)) == score:
                        behind = range(givers[-1] + 1, givers[-1] + 1 + size - turns)
                        return score, (*givers, *behind)
            return best, chosen
        if math.comb(len(left), size) > _TRIES:
            return best, chosen
        for subset in combinations(range(len(left)), size):
            given = self._in_turn([left[place] for place in subset])
            if given is not None and (score := self._score(squares + given)) < best:
                best, chosen = score, subset
        return best, chosen

    def _in_turn(self, left: list[int]) -> int | None:
        """Change of the squares when these give in turn, or None where they have too few groups."""
        group, turns = self.group, self.turns
        if sum(value // group for value in left) < turns:
            return None
        change = 0
        while turns:
            for place, value in enumerate(left):
                if value >= group and turns:
                    left[place] -= group
                    change += group * (group - 2 * value)
                    turns -= 1
        return change

    def _score(self, squares: int) -> float:
        """Standard deviation over all nodes: their sum never varies, so the squares decide."""
        spread = (squares + self.offset) / len(self.free)
        return _thousandths(math.sqrt(spread)) if spread > 0 else 0.0


def _thousandths(value: float) -> float:
    return math.floor(value * 1000 + 0.5) / 1000


def _overwritten(chosen: tuple[int, ...], ranks: Sequence[int], *, stopped: bool) -> tuple[int, ...]:
    """A choice as the kubelet remembers it after it went on looking.

    Its slice shares memory with the combinations that it looks at afterwards;
    memory doubles as a slice grows, so that places 4, 6 to 8, and 10 to 16 are
    written over: by the last combination that begins alike, or, where a score
    of 0 stopped the search, by the next one. Recorded decisions depend on it.
    """
    if len(chosen) < 4 or len(chosen) - 1 == 1 << (len(chosen) - 2).bit_length():
        return chosen
    kept = (1 << (len(chosen) - 1).bit_length() - 1) + 1
    if not stopped:
        return chosen[:kept] + tuple(ranks[kept - len(chosen) :])
    following = _next(chosen, ranks)
    return following if following[:kept] == chosen[:kept] else chosen


def _next(chosen: tuple[int, ...], ranks: Sequence[int]) -> tuple[int, ...]:
    """The combination behind `chosen` in lexicographic order; itself where it is the last."""
    places = [ranks.index(rank) for rank in chosen]
    for i in range(len(places) - 1, -1, -1):
        if places[i] < len(ranks) - len(places) + i:
            moved = (*places[:i], *range(places[i] + 1, places[i] + 1 + len(places) - i))
            return tuple(ranks[place] for place in moved)
    return chosen
