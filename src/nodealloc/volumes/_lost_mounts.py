"""Looking for mounts that somebody else took off, once the volumes rest."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from typing_extensions import override

from nodealloc.dsw_asw import Clock, Driven, Passing, Summary, World
from nodealloc.volumes._model import ActualVolume, VolumeId, VolumeSpec
from nodealloc.volumes._ports import Found, MountWatch
from nodealloc.volumes._settle import lost

__all__ = ["LostMounts"]

_log = logging.getLogger("nodealloc.volumes")


class LostMounts(Passing):
    """One more part of the volume manager's passes: asks the `MountWatch`, and writes what it doubts.

    Mounts of our own change the table as well: it is read when they rest, not
    after each.

    Args:
        watch: Tells which mounts went.
        actual: The volumes that are there.
        mounting: Whoever mounts; looked at only while it rests.
        clock: Time for `every_s`.
        every_s: Seconds between looks that nobody asked for; None for never.
        wake: Called when a look is due.
    """

    def __init__(
        self,
        watch: MountWatch,
        actual: World[VolumeId, ActualVolume],
        mounting: Driven,
        *,
        clock: Clock,
        every_s: float | None,
        wake: Callable[[], None],
    ) -> None:
        self._watch = watch
        self._actual = actual
        self._mounting = mounting
        self._clock = clock
        self._every_s = every_s
        self._wake = wake
        self._lock = threading.Lock()  # two threads may make passes
        self._asked = True
        self._looked_s = clock.monotonic_s()
        self._changes = actual.watch(self._note)

    def ask(self) -> None:
        """Look in the next pass in which the volumes rest."""
        self._asked = True

    def look_soon(self) -> None:
        """Look as soon as the volumes rest, and have a pass made for it."""
        self._asked = True
        self._wake()

    @property
    @override
    def has_work(self) -> bool:
        """Whether a look is due and the volumes rest."""
        if not self._asked and self.seconds_to_next() != 0:
            return False
        return not (self._mounting.has_work or self._mounting.running())

    def seconds_to_next(self) -> float | None:
        """How long until a look is due by itself."""
        if self._every_s is None:
            return None
        return max(0.0, self._looked_s + self._every_s - self._clock.monotonic_s())

    @override
    def begin_pass(self) -> None:
        """Nothing to settle, nothing to remember."""

    @override
    def end_pass(self, _error: Exception | None, /) -> Summary:
        """Look now."""
        self._asked = False
        self._looked_s = self._clock.monotonic_s()
        try:
            with self._lock:
                gone = self._watch.lost()
        except Exception:  # noqa: BLE001 - what cannot be looked at must not stop the passes
            _log.exception("looking for lost mounts raised; the next look comes with a change or the resync")
            return self.glance()
        for one in gone:
            self._doubt(one)
        return self.glance()

    @override
    def abandon_pass(self) -> None:
        """Look again."""
        self._asked = True

    def close(self) -> None:
        """Look no more."""
        self._changes.close()

    def _note(self) -> None:
        self._asked = True
        self._changes.take()

    def _doubt(self, gone: Found) -> None:
        """A mount may be of a volume that pods share, or of one that is its pod's own."""
        for owner in dict.fromkeys((gone.pod_uid, "")):
            key = VolumeSpec(plugin=gone.plugin, name=gone.name, pod_uid=owner).id
            self._actual.alter(key, lambda before: lost(before, gone.pod_uid), by="mount watch")
