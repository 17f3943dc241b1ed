"""The shell: looks at a runtime all the time, and keeps what it saw."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from nodealloc._typed import typed, typed_methods
from nodealloc.checkpoint import JsonCheckpoint, require_formats, row_key
from nodealloc.dsw_asw import (
    Clock,
    Executor,
    Group,
    Journal,
    Near,
    Observer,
    Reconciler,
    Remember,
    SystemClock,
    ThreadExecutor,
    World,
)
from nodealloc.runtime._codec import RUNTIME_ROWS, pod_to_checkpoint
from nodealloc.runtime._health import Heard, RuntimeHealth
from nodealloc.runtime._known import PodKnown
from nodealloc.runtime._listing import Oddity, PodListing
from nodealloc.runtime._ports import Looks
from nodealloc.runtime._relist import EVENTS, HEALTH, LISTING, Answered, Asked, Inspections, Pace, Questions
from nodealloc.runtime._reports import PodReport

__all__ = ["RuntimeWatch"]

_NOT_YET: Final = Oddity(uid="", what="the runtime has not been listed since the start")


@typed_methods
class RuntimeWatch(Group):
    """Looks at a runtime: lists, inspects what changed, follows events, keeps every end.

    A `Group` of `nodealloc.dsw_asw`: start it, or put it into a group of your
    own. What differs from one listing to the next is in `seen` at once; what an
    inspection adds follows in `pods`, pod by pod, so that one that hangs delays
    itself alone. Wait for changes by making one of the two worlds a `Near`.

    Args:
        looks: The runtime.
        events: Its events, which only hurry the next listing.
        journal: Where ends are remembered before anybody hears of them; None to forget
            them with the process. A store of `nodealloc.checkpoint` is one.
        known: What was remembered (`pod_from_checkpoint`).
        pace: How often it is asked, and how long it may take.
        executor: Runs calls; by default a thread for each.
        clock: Time for periods and deadlines.
        observer: Is told of progress.

    Attributes:
        seen: What the newest listing shows, by uid.
        pods: What is known of each pod; the engine writes it.
        answers: What came of listing and of asking for the health, by `listing` and `health`.
    """

    @typed
    def __init__(
        self,
        looks: Looks,
        *,
        events: Looks | None = None,
        journal: Journal[JsonCheckpoint] | None = None,
        known: Mapping[str, PodKnown] | None = None,
        pace: Pace = Pace(),  # noqa: B008 - immutable
        executor: Executor | None = None,
        clock: Clock | None = None,
        observer: Observer | None = None,
    ) -> None:
        require_formats(journal, (f"{RUNTIME_ROWS}.*",), "RuntimeWatch, journal")
        self.seen: World[str, PodListing] = World("runtime listings")
        self.pods: World[str, PodKnown] = World("runtime pods")
        self.answers: World[str, Answered] = World("runtime answers")
        self._looks = looks
        self._asked: World[str, Asked] = World("runtime questions")
        self._told: World[str, int] = World("told ends")
        for key in (LISTING, HEALTH, EVENTS):
            self._asked.put(key, Asked(), by="start")
        for uid, pod in (known or {}).items():
            self.pods.put(uid, pod, by="remembered")
            # Until the first listing nobody can say that it is gone.
            self.seen.put(uid, PodListing(uid=uid, oddities=(_NOT_YET,)), by="remembered")
        running = ThreadExecutor("runtime") if executor is None else executor
        time: Clock = SystemClock() if clock is None else clock
        self._clock = time
        told = Near(self._told, lambda uid: [uid])
        super().__init__(
            Reconciler(
                Questions(looks, self.seen, self._event, events=events, pace=pace),
                desired=self._asked,
                actual=self.answers,
                executor=running,
                clock=time,
                observer=observer,
                name="runtime questions",
            ),
            Reconciler(
                Inspections(looks, told, pace=pace),
                desired=self.seen,
                actual=self.pods,
                executor=running,
                near=[told],
                remember=None if journal is None else Remember(journal=journal, rows=self._rows),
                clock=time,
                observer=observer,
                name="runtime inspections",
            ),
            name="runtime",
        )

    @typed
    def hurry(self, within_s: float = 0.0, /) -> int:
        """List soon; from any thread, as often as anybody likes.

        Args:
            within_s: How long it may wait, in seconds, for another hurry that it can go with.

        Returns:
            The number that `listed` answers as `shown`, or a higher one, when a listing that began
            after this call was taken over.
        """
        answered, due_s = self.listed(), self._clock.monotonic_s() + within_s

        def hurried(asked: Asked | None) -> Asked:
            before = asked or Asked()
            return before.hurried_by(due_s, answered.number) if within_s > 0 else before.hurried()

        record = self._asked.alter(LISTING, hurried, by="hurry")
        return 0 if record is None else record.value.number

    def listed(self) -> Answered:
        """What came of listing so far; watch `answers` to hear of the next one."""
        return self.answers.get(LISTING) or Answered()

    def _event(self) -> None:
        self.hurry()

    @typed
    def ask(self, uid: str, /) -> PodReport:
        """The runtime's answer of a pod now, in the caller's thread; what is known here stays as it is.

        Raises as `Looks.inspect` does.
        """
        return self._looks.inspect(uid)

    def heard(self) -> Heard:
        """When the runtime was last heard, and what it said of itself."""
        listing, asked = self.listed(), self.answers.get(HEALTH) or Answered()
        return Heard(
            listing=listing.count,
            listed_s=listing.answered_s,
            failed_s=listing.failed_s,
            error=listing.error,
            health=asked.value if isinstance(asked.value, RuntimeHealth) else None,
            oddities=listing.value if isinstance(listing.value, tuple) else (),
            health_error=asked.error,
        )

    def stored(self) -> frozenset[str]:
        """Containers whose end is kept: their records may go."""
        return frozenset(one for record in self.pods.snapshot().values() for one in record.value.ends)

    @typed
    def forget(self, uid: str, /) -> None:
        """Nobody needs the ends of a pod any more; they go once nothing of it is listed."""
        for other in [one for one in self._told.snapshot() if one not in self.pods and one not in self.seen]:
            self._told.drop(other, by="forget")
        if uid in self.pods or uid in self.seen:
            self._told.put(uid, 1, by="forget")

    def _rows(self, uid: str, known: PodKnown | None) -> Mapping[str, JsonCheckpoint | None]:
        key, stored = row_key(RUNTIME_ROWS, uid), self.pods.get(uid)
        if known is None:
            return {key: None}
        if stored is not None and stored.ends == known.ends and stored.live == known.live:
            return {}  # a report is asked for again
        return {key: pod_to_checkpoint(known)}
