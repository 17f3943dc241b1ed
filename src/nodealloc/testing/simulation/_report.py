"""Values only: what a run came to, and what it found."""

from __future__ import annotations

from nodealloc import _attrs as attrs
from nodealloc.dsw_asw import Summary

__all__ = ["Report", "ViolationError"]


class ViolationError(AssertionError):
    """A checker, or the simulation itself, found something that must not be.

    Attributes:
        what: What it was.
        seed: Of the run.
        at_s: Virtual seconds since its beginning.
        story: What happened last, one line each.
        headline: All but the story, in one line.
    """

    def __init__(self, what: str, seed: int, at_s: float, story: tuple[str, ...]) -> None:
        self.headline: str = f"seed {seed}, at {at_s:.3f} s: {what}"
        super().__init__("\n  ".join((self.headline, *story)))
        self.what = what
        self.seed = seed
        self.at_s = at_s
        self.story = story


@attrs.frozen(kw_only=True)
class Report:
    """What a run came to.

    Attributes:
        operations: Port calls and calls of the executor.
        faults: How many struck.
        lives: Processes, the first one included.
        passed_s: Virtual seconds.
        summary: Of the last pass.
    """

    operations: int
    faults: int
    lives: int
    passed_s: float
    summary: Summary

    def __str__(self) -> str:
        """`1200 operations, 31 faults, 5 lives, 1.5 node-hours`."""
        hours = self.passed_s / 3600.0
        return (
            f"{self.operations} operations, {self.faults} faults, {self.lives} lives, {hours:.1f} node-hours"
        )
