"""The volumes of a simulated node: what is mounted for whom, and calls of a plugin that hang and fail."""

from __future__ import annotations

import errno
import math
from collections.abc import Callable

from nodealloc.podspec import Pod, Volume
from nodealloc.testing.simulation._clock import SimulatedClock
from nodealloc.testing.simulation._life import Life
from nodealloc.testing.simulation.node._events import Event, Events, What
from nodealloc.testing.simulation.node._pods import SHARED
from nodealloc.testing.volumes import FakeHost
from nodealloc.volumes import VolumeSpec

__all__ = ["SimulatedVolumes"]

_KINDS = {"mount": What.MOUNTED, "unmount": What.UNMOUNTED}


class SimulatedVolumes(FakeHost):
    """A volume plugin and the machine below it, over all lives of an agent; also what a life finds there.

    A volume of a pod's own is mounted, and the one that pods share is attached
    and staged first. Faults, by name: `mount fails`, `mount is slow`, `mount
    hangs`, before a call or after it, when its effect is there and nobody knows.

    Args:
        clock: The machine's.
        events: Is told of mounts.
    """

    def __init__(self, clock: SimulatedClock, events: Events) -> None:
        super().__init__(kinds=("emptyDir", "csi"))
        self._clock = clock
        self._events = events

    def serve(self, life: Life) -> SimulatedVolumes:
        """From now on this life calls."""
        self.fault: Callable[[str], None] = lambda name: self._happen(life, name)
        self.calls.clear()
        return self

    def spec(self, pod: Pod, volume: Volume, /) -> VolumeSpec:
        """A volume of the pod's own, or the one that pods share."""
        return self.disk(SHARED) if volume.name == SHARED else super().spec(pod, volume)

    def power_cut(self) -> None:
        """Nothing is mounted any more."""
        self.mounts.clear()
        self.staged.clear()
        self.attached.clear()

    def _happen(self, life: Life, name: str) -> None:
        when, verb, *about = name.split()
        what = _KINDS.get(verb)
        if when == "before":
            life.enter()
        elif what is not None:
            volume, uid = about
            self._events.happen(Event(what=what, at_s=self._clock.awake_s, uid=uid, id=volume))
        strikes = life.chance.strikes
        uid = about[1] if what is not None else ""
        if strikes("mount is slow"):
            self._hung(uid)
            life.pause(life.chance.rng.uniform(1.0, 100.0))
        if strikes("mount hangs"):
            self._hung(uid)
            life.pause(math.inf)
        if strikes("mount fails"):
            raise OSError(errno.EIO, "the device does not answer")
        if when == "after":
            life.leave()

    def _hung(self, uid: str) -> None:
        self._events.happen(Event(what=What.HUNG, at_s=self._clock.awake_s, uid=uid, value="mount"))
