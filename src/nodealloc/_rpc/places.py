"""Which call begins next, and which gives way to it: rules for a bounded number at once, no clock."""

from __future__ import annotations

import heapq
import itertools
from collections import Counter
from collections.abc import Container, Hashable, Iterator
from typing import Generic, TypeVar

from nodealloc.errors import ConfigurationError

__all__ = ["Places"]

_LONGER = 8
"""How much longer each turn is than the one before."""
_MOST_KNOWN = 1 << 13
"""Peers whose turns are counted; those that were met first are forgotten."""
_MOST_TURNS = 6
"""Past them a turn gets no longer."""

T = TypeVar("T", bound=Hashable)
E = TypeVar("E", bound=tuple[object, object, object])


class Places(Generic[T]):
    """So many places, and a line of those who wait for one. For one thread.

    While there is room, every call begins, and stays. Where more are to be made than
    may, the one whose peer has had the fewest turns is next, and one whose turn is
    over gives way to it: a turn is short the first time, eight times that the second,
    and so on. Half of the places are kept for first turns: beyond it, who has the longest
    turn leaves for one before that is over. So a newcomer that answers
    at once is heard at once, one that is slow some time later, and those that hang
    wait for each other.

    Of peers that have had as many turns, the first of each owner comes before the
    second of any: a thousand peers of one owner wait behind each other.

    Args:
        most: Places, at least 1.
        first_s: How long a first turn is where others wait.
    """

    def __init__(self, most: int, /, *, first_s: float) -> None:
        if most < 1:
            raise ConfigurationError(f"{most} conversations at once would be none: give 1 or more")
        self._most = most
        self._first_s = first_s
        self._numbers = itertools.count()
        self._turns: dict[Hashable, int] = {}
        # By lane, first turns and later ones: calls that wait; those with a place; when their turns are over.
        self._lines: tuple[list[tuple[tuple[int, int, int], T, Hashable]], ...] = ([], [])
        self._taken: tuple[dict[T, Hashable], ...] = ({}, {})
        self._over: tuple[list[tuple[float, int, T]], ...] = ([], [])
        self._waiting: set[T] = set()
        self._owners: dict[T, Hashable] = {}
        self._of_owner = Counter[Hashable]()

    def __len__(self) -> int:
        return len(self._waiting) + sum(map(len, self._taken))

    def wait(self, call: T, peer: Hashable, owner: Hashable = None, /) -> bool:
        """Stand in the line, behind others of that owner; None for one who has nobody else here.

        Returns:
            Whether nobody else of that owner stands in the line or has a place.
        """
        self._waiting.add(call)
        turns = self._turns.get(peer, 0)
        before = 0
        if owner is not None:
            before = self._of_owner[owner]
            self._of_owner[owner] += 1
            self._owners[call] = owner
        place = turns, before, next(self._numbers)
        line = self._lines[min(turns, 1)]
        heapq.heappush(line, (place, call, peer))
        if len(line) > 2 * (len(self._waiting) + 1):
            _keep(line, self._waiting)
        return not before

    def leave(self, call: T, /) -> None:
        """Go, from the line or from a place."""
        self._waiting.discard(call)
        self._forget_owner(call)
        for taken in self._taken:
            taken.pop(call, None)

    def forget(self, peer: Hashable, /) -> None:
        """It has answered: next time it is a newcomer again."""
        self._turns.pop(peer, None)

    def begin(self, now_s: float, /) -> Iterator[tuple[T, T | None]]:
        """Each call that begins now, and the one that gives way to it, which is out then; None for none."""
        for lane, line in enumerate(self._lines):
            while line:
                (turns, _, _), call, peer = line[0]
                if call in self._waiting:
                    has_room, leaves = self._room(lane, now_s)
                    if not has_room:
                        break
                    heapq.heappop(line)
                    self._give_place(call, peer, turns, lane, now_s)
                    yield call, leaves
                else:
                    heapq.heappop(line)

    def next_s(self) -> float | None:
        """When the first turn is over whose place is wanted; None while nobody waits."""
        tops = [
            over[0][0]
            for lane, line in enumerate(self._lines)
            if line
            for where in self._lanes_to_leave(lane)
            if (over := self._by_end(where))
        ]
        return min(tops, default=None)

    def _give_place(self, call: T, peer: Hashable, turns: int, lane: int, now_s: float) -> None:
        self._waiting.discard(call)
        self._taken[lane][call] = peer
        over_s = now_s + self._first_s * _LONGER ** min(turns, _MOST_TURNS)
        over = self._over[lane]
        heapq.heappush(over, (over_s, next(self._numbers), call))
        if len(over) > 2 * (len(self._taken[lane]) + 1):
            _keep(over, self._taken[lane], at=2)
        self._turns.pop(peer, None)
        self._turns[peer] = turns + 1
        if len(self._turns) > _MOST_KNOWN:
            del self._turns[next(iter(self._turns))]

    def _room(self, lane: int, now_s: float) -> tuple[bool, T | None]:
        """Whether there is a place, and who leaves it."""
        if sum(map(len, self._taken)) < self._most:
            return True, None
        if lane == 0 and len(self._taken[1]) > max(1, self._most // 2):
            over = self._over[1]
            _keep(over, self._taken[1], at=2)
            last = max(over)
            over.remove(last)
            heapq.heapify(over)
            return True, self._left(1, last[2])
        for where in self._lanes_to_leave(lane):
            over = self._by_end(where)
            if over and over[0][0] <= now_s:
                return True, self._left(where, heapq.heappop(over)[2])
        return False, None

    def _left(self, lane: int, call: T) -> T:
        del self._taken[lane][call]
        self._forget_owner(call)
        return call

    def _forget_owner(self, call: T) -> None:
        owner = self._owners.pop(call, None)
        if owner is not None:
            self._of_owner[owner] -= 1
            if not self._of_owner[owner]:
                del self._of_owner[owner]

    def _lanes_to_leave(self, lane: int) -> Iterator[int]:
        """From which lanes somebody may have to leave for one of this; first the one beyond its half."""
        if len(self._taken[1 - lane]) > self._most // 2:
            yield 1 - lane
        yield lane

    def _by_end(self, lane: int) -> list[tuple[float, int, T]]:
        """The calls that have a place there, the one whose turn is over first in front."""
        over, taken = self._over[lane], self._taken[lane]
        while over and over[0][2] not in taken:
            heapq.heappop(over)
        return over


def _keep(heap: list[E], calls: Container[object], *, at: int = 1) -> None:
    """Forget those that have left: where nobody looks for the first one, they would stay for good.

    Done when half of them have, it costs each call no more than its place in the heap did.
    """
    heap[:] = [entry for entry in heap if entry[at] in calls]
    heapq.heapify(heap)
