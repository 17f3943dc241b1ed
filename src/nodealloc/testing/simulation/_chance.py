"""Faults by odds, drawn from one seed."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping

__all__ = ["ORDINARY", "Chance"]

ORDINARY = frozenset({"call takes time", "executor runs at once"})
"""What may happen and is no fault: it is neither counted nor told."""


class Chance:
    """Says whether a named fault strikes now; counts those that did.

    Args:
        rng: What a seed stands for.
        odds: Fault to its probability each time somebody asks; one that is absent never strikes.

    Attributes:
        rng: The same; whoever has a choice to make draws from it.
        struck: Fault to how often it struck.
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

    def __init__(self, rng: random.Random, odds: Mapping[str, float] | None = None) -> None:
        self.rng = rng
        self.struck: Counter[str] = Counter()
        self.is_on: bool = True
        self.on_strike: Callable[[str], object] = lambda _fault: None
        self._odds = dict(odds or {})
        self._armed: Counter[str] = Counter()

    def strikes(self, fault: str, /) -> bool:
        """Whether this fault strikes now."""
        if self._armed and self._armed[fault]:
            self._armed[fault] -= 1
            return self._struck(fault)
        odds = self._odds.get(fault)
        if not odds or not self.is_on or self.rng.random() >= odds:
            return False
        return self._struck(fault)

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
