"""What one pass did."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from nodealloc import _attrs as attrs
from nodealloc._typed import typed_on_error

__all__ = ["Summary"]


@attrs.frozen(kw_only=True)
class Summary:
    """Counts of one pass, or of several added up.

    Attributes:
        passes: How many passes.
        planned: Keys that were planned.
        started: Operations handed to the executor.
        done: Operations that ended well.
        failed: Operations and plans that failed.
        uncertain: Operations that nobody knows the result of, those past their
            deadline included.
        cancelled: Operations that stopped because they were asked to, or never began.
        held_off: Steps whose last try failed and was not made good, at the end of the last pass.
        blocked: Steps of the last pass that another operation in their scope kept from starting.
        running: Operations that have not ended, at the end of the last pass.
        left: Keys that were due, and that the last pass left to the next one.
        next_due_s: When the next pass is due by itself, on the engine's clock;
            None when only an event can bring one.
    """

    passes: int = 0
    planned: int = 0
    started: int = 0
    done: int = 0
    failed: int = 0
    uncertain: int = 0
    cancelled: int = 0
    held_off: int = 0
    blocked: int = 0
    running: int = 0
    left: int = 0
    next_due_s: float | None = None

    @property
    def is_idle(self) -> bool:
        """Whether there was nothing to plan, to start or to settle."""
        return not (
            self.planned or self.started or self.done or self.failed or self.uncertain or self.cancelled
        )

    @classmethod
    @typed_on_error
    def of_one_pass(cls, parts: Iterable[Summary], /, resting: Sequence[Summary] = ()) -> Summary:
        """What several did that made one pass together, beside others that had nothing to do."""
        planned = started = done = failed = uncertain = cancelled = blocked = held_off = running = left = 0
        due: list[float] = []
        for one in parts:
            planned += one.planned
            started += one.started
            done += one.done
            failed += one.failed
            uncertain += one.uncertain
            cancelled += one.cancelled
            blocked += one.blocked
            held_off += one.held_off
            running += one.running
            left += one.left
            if one.next_due_s is not None:
                due.append(one.next_due_s)
        for one in resting:
            held_off += one.held_off
            running += one.running
            if one.next_due_s is not None:
                due.append(one.next_due_s)
        return cls(
            passes=1,
            planned=planned,
            started=started,
            done=done,
            failed=failed,
            uncertain=uncertain,
            cancelled=cancelled,
            held_off=held_off,
            blocked=blocked,
            running=running,
            left=left,
            next_due_s=min(due, default=None),
        )

    def __add__(self, later: Summary, /) -> Summary:
        """Both passes as one; what is said of an end, from `held_off` on, is the later one's."""
        return Summary(
            passes=self.passes + later.passes,
            planned=self.planned + later.planned,
            started=self.started + later.started,
            done=self.done + later.done,
            failed=self.failed + later.failed,
            uncertain=self.uncertain + later.uncertain,
            cancelled=self.cancelled + later.cancelled,
            held_off=later.held_off,
            blocked=later.blocked,
            running=later.running,
            left=later.left,
            next_due_s=later.next_due_s,
        )
