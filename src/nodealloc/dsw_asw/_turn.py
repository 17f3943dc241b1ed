"""What one reconciler carries from the plans of a pass to its starts."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

from nodealloc.dsw_asw._plans import Plan

__all__ = ["Turn"]

K = TypeVar("K", bound=Hashable)
H = TypeVar("H")
S = TypeVar("S")


class Turn(Generic[K, H, S]):
    """One pass between its beginning and its end.

    Attributes:
        keys: What was due.
        left: How many more were, which are left to the next one.
        now_s: When it planned, on the engine's clock.
        plans: What was planned, in order.
        intents: Key to its record before and as its plan wants it.
        held: Keys whose steps must not start: their record is not written down.
        tally: Counts for the summary.
    """

    __slots__ = ("held", "intents", "keys", "left", "now_s", "plans", "tally")

    def __init__(self) -> None:
        self.keys: dict[K, None] = {}
        self.left = 0
        self.now_s = 0.0
        self.plans: list[tuple[K, Plan[H, S]]] = []
        self.intents: dict[K, tuple[H | None, H | None]] = {}
        self.held: set[K] = set()
        self.tally: dict[str, int] = {}

    def count(self, what: str) -> None:
        """One more."""
        self.tally[what] = self.tally.get(what, 0) + 1
