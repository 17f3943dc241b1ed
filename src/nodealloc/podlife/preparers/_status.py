"""That others were told of a pod before anything of it is made."""

from __future__ import annotations

import threading

from nodealloc._typed import typed, typed_methods
from nodealloc.dsw_asw import Cancel, Clock, SystemClock, World
from nodealloc.errors import ConfigurationError
from nodealloc.podlife._ports import LifeTold
from nodealloc.podspec import Pod
from nodealloc.verdicts import Admitted, NotYet

__all__ = ["StatusPreparer"]


@typed_methods
class StatusPreparer:
    """A `Preparer` that is ready once others were told of the pod, or had their time for it.

    Give its `Preparation` the same world as `wakes`, so that nobody polls.

    Args:
        told: What others were told of pods, by uid.
        most_s: So long at most they are waited for, in seconds; one that hangs
            holds no pod up for longer.
        clock: Time for that.

    Raises:
        ConfigurationError: No time at all, or something else than a world.
    """

    @typed
    def __init__(
        self, told: World[str, LifeTold], *, most_s: float = 1.0, clock: Clock | None = None
    ) -> None:
        if not most_s > 0:
            raise ConfigurationError(
                f"most_s {most_s:g} waits for nobody; give seconds beyond 0, or leave it out"
            )
        self._told, self._most_s = told, most_s
        self._clock: Clock = SystemClock() if clock is None else clock
        self._lock = threading.Lock()
        self._since_s: dict[str, float] = {}

    def make_ready(self, pod: Pod, _cancel: Cancel, /) -> Admitted | NotYet:
        """See `Preparer.make_ready`."""
        told = self._told.get(pod.uid)
        if told is not None and told.was_told:
            return Admitted()
        now_s = self._clock.monotonic_s()
        with self._lock:
            left_s = self._since_s.setdefault(pod.uid, now_s) + self._most_s - now_s
        if left_s <= 0:
            return Admitted()
        return NotYet(blocker="status", message="nobody was told of the pod yet", after_s=left_s)

    def take_back(self, pod: Pod, _cancel: Cancel, /) -> None:
        """See `Preparer.take_back`: what was told stays told."""
        with self._lock:
            self._since_s.pop(pod.uid, None)
