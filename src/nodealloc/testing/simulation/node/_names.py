"""Checkers of full names: at most one pod of a name is here at a time."""

from __future__ import annotations

from nodealloc.testing.simulation.node._events import Event, What
from nodealloc.testing.simulation.node._guarantee import Guarantee

__all__ = ["OneOfAName", "TwinsWait"]


class OneOfAName(Guarantee):
    """Guarantee 3, for static pods that follow each other under one name."""

    words = "a pod begins when nothing runs, and nothing is mounted, of one that had its name before"

    def heard(self, event: Event, /) -> None:
        """A sandbox, or a start, that somebody waits for has no namesake of which something is there."""
        if event.id in self.environment.containers.late:
            return
        pod = self.pod(event.uid) if event.what in {What.STARTED, What.SANDBOX_MADE} else None
        if pod is None:
            return
        others = {one.uid for one in self.environment.known.values() if one.name == pod.name} - {event.uid}
        for uid in others:
            left = self._left(uid)
            assert not left, (
                f"{event.what.value} of {event.uid}, and of {uid}, which had the name {pod.name} before, "
                f"there is {left[0]}"
            )

    def _left(self, uid: str) -> list[str]:
        containers = self.environment.containers
        runs = [one for one in containers.running_of(uid) if one not in containers.late]
        boxes = [
            one.record.id
            for one in containers.sandboxes
            if one.record.pod.uid == uid and one.record.is_ready and one.record.id not in containers.late
        ]
        return [*runs, *boxes, *(key for key, owner in self.environment.volumes.mounts if owner == uid)]

    def settled(self) -> None:
        """By now who is in no source was told gone: nobody takes it for the one that has its name."""
        wanted = {uid for pods in self.environment.pods.values() for uid in pods}
        for uid in self.environment.told.keys() - wanted - self.environment.gone:
            raise AssertionError(f"no source has {uid} any more, and nobody says that it is gone")


class TwinsWait(Guarantee):
    """Ours: of two manifests of one name in one source the one that came first counts."""

    words = "of two static pods of one name nothing is done, or told, of the second before the first is gone"

    def heard(self, event: Event, /) -> None:
        """It has no sandbox, and nobody is told of it."""
        if event.what in {What.SANDBOX_MADE, What.TOLD, What.MOUNTED, What.LIMITED}:
            assert not self.environment.is_held_back(event.uid), (
                f"{event.what.value} of {event.uid}, whose name another one has that was there before it"
            )
