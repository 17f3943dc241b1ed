"""One probe of one container as it is being asked, and when each is due."""

from __future__ import annotations

import heapq
import itertools
from typing import TypeAlias

from nodealloc.probes._asks import Ask
from nodealloc.probes._kinds import ProbeKind
from nodealloc.probes._tally import Instance, Tally

__all__ = ["Key", "Line", "Timetable"]

Key: TypeAlias = tuple[str, str, ProbeKind]
"""Pod's uid, container's name, kind of probe."""


class Line:
    """One probe of one container as it is being asked.

    Attributes:
        key: Which.
        ask: What is asked now.
        asked: What the present question asks.
        instance: The container as `ask` has it; None where that was not worked out yet.
        busy: The instance and the kind of probe: of these one question is under way at most.
        tally: What the answers came to.
        started_s: When the instance started, on the asking clock; None for long ago.
        due_s: When it is asked next; None while it rests.
        is_first: Whether nobody of this instance was asked yet.
        is_paced: Whether that moment keeps to the pace of first questions.
        number: Of the question that is under way; 0 for none.
        asked_s: When the present question was due; its period counts from there.
        tries: How often the present question was tried.
    """

    __slots__ = (
        "ask",
        "asked",
        "asked_s",
        "busy",
        "due_s",
        "instance",
        "is_first",
        "is_paced",
        "key",
        "number",
        "started_s",
        "tally",
        "tries",
    )

    def __init__(self, key: Key, ask: Ask, tally: Tally) -> None:
        self.key, self.ask, self.tally = key, ask, tally
        self.asked: Ask | None = None
        self.instance: Instance | None = None
        self.busy = ""
        self.started_s: float | None = None
        self.due_s: float | None = None
        self.is_first = True
        self.is_paced = False
        self.number = 0
        self.asked_s = 0.0
        self.tries = 0


class Timetable:
    """When each line is due; not thread-safe.

    Args:
        first_per_s: First questions a second; each next one gets the next place.
    """

    def __init__(self, first_per_s: float) -> None:
        self._gap_s = 1.0 / first_per_s
        self._next_place_s = float("-inf")
        self._due: list[tuple[float, int, Line]] = []
        self._numbers = itertools.count()

    def place(self, now_s: float, /) -> float:
        """The next free moment for a first question."""
        found = max(now_s, self._next_place_s)
        self._next_place_s = found + self._gap_s
        return found

    def add(self, line: Line, due_s: float, /, *, is_paced: bool = False) -> None:
        """Ask it then."""
        line.due_s, line.asked_s, line.is_paced = due_s, due_s, is_paced
        heapq.heappush(self._due, (due_s, next(self._numbers), line))

    def next_s(self) -> float | None:
        """When the next one is due."""
        while self._due and self._due[0][2].due_s != self._due[0][0]:
            heapq.heappop(self._due)
        return self._due[0][0] if self._due else None

    def take(self, now_s: float, /) -> Line | None:
        """The next that is due by now."""
        due_s = self.next_s()
        if due_s is None or due_s > now_s:
            return None
        line = heapq.heappop(self._due)[2]
        line.due_s = None
        return line
