"""Faults by odds, drawn from one seed."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

__all__ = ["ORDINARY", "Chance", "FaultOccurrence"]

ORDINARY = frozenset({"call takes time", "executor runs at once"})
"""What may happen and is no fault: it is neither counted nor told."""


class FaultOccurrence(NamedTuple):
    """One fault that struck.

    Attributes:
        fault: Its name.
        asked: How often somebody had asked for it by then, 1 for the first time.
    """

    fault: str
    asked: int

    def __str__(self) -> str:
        return f"{self.fault} (when it was asked for the {self.asked:,}. time)"


class Chance:
    """Says whether a named fault strikes now; counts those that did.

    Args:
        rng: What a seed stands for.
        odds: Fault to its probability each time somebody asks; one that is absent never strikes.
        only: No others than these strike, and these do whatever their odds; None for as the
            odds have it. What is drawn is drawn all the same, so that the strikes of one run
            lead to the very same run.

    Attributes:
        rng: The same; whoever has a choice to make draws from it.
        struck: Fault to how often it struck.
        faults_made: The same in the order in which they struck, without what was armed.
        is_on: Whether faults strike at all.
        on_strike: Is called with each fault that strikes.

    Example:
        >>> chance = Chance(random.Random(7), {"disk full": 0.5})
        >>> [chance.strikes("disk full") for _ in range(4)], chance.strikes("fire")
        ([True, True, False, True], False)
        >>> chance.arm("fire")
        >>> chance.strikes("fire"), chance.strikes("fire"), chance.struck["fire"]
        (True, False, 1)
    """

    def __init__(
        self,
        rng: random.Random,
        odds: Mapping[str, float] | None = None,
        *,
        only: Collection[FaultOccurrence] | None = None,
    ) -> None:
        self.rng = rng
        self.struck: Counter[str] = Counter()
        self.faults_made: list[FaultOccurrence] = []
        self.is_on: bool = True
        self.on_strike: Callable[[str], object] = lambda _fault: None
        self._odds = dict(odds or {})
        self._asked = dict.fromkeys(self._odds, 0)
        self._only = None if only is None else frozenset(only)
        self._armed: Counter[str] = Counter()

    def strikes(self, fault: str, /) -> bool:
        """Whether this fault strikes now."""
        if self._armed and self._armed[fault]:
            self._armed[fault] -= 1
            return self._struck(fault)
        odds = self._odds.get(fault)
        if not odds or not self.is_on:
            return False
        strikes = self.rng.random() < odds
        if fault in ORDINARY:
            return strikes
        asked = self._asked[fault] = self._asked[fault] + 1
        if self._only is not None:
            strikes = (fault, asked) in self._only
        if strikes:
            self.faults_made.append(FaultOccurrence(fault, asked))
            return self._struck(fault)
        return False

    def arm(self, fault: str, /, times: int = 1) -> None:
        """Let a fault strike the next time that somebody asks, whatever its odds."""
        self._armed[fault] += times

    def stop(self) -> None:
        """Nothing strikes from now on, not even what is armed."""
        self.is_on = False
        self._armed.clear()

    def _struck(self, fault: str) -> bool:
        if fault in ORDINARY:
            return True
        self.struck[fault] += 1
        self.on_strike(fault)
        return True
