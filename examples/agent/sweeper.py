"""Removes what has ended: of each container that still is to run, all but the newest dead instance."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable

from nodealloc.errors import NodeallocError
from nodealloc.podlife import PodLives
from nodealloc.runtime import ContainerRecord, Containers, RunState, RuntimeWatch, containers_to_drop

__all__ = ["Sweeper"]

_KEPT = 1
_PERIOD_S = 60.0


class Sweeper:
    """A thread that follows what the runtime is seen to have; an end is stored before its record goes."""

    def __init__(self, runtime: Containers, watch: RuntimeWatch, lives: PodLives) -> None:
        self._runtime, self._watch, self._lives = runtime, watch, lives
        self._work = threading.Event()
        self._over = False
        self._changes = watch.pods.watch(self._work.set)
        self._thread = threading.Thread(target=self._run, name="sweeper", daemon=True)

    def start(self) -> None:
        """Go."""
        self._thread.start()

    def stop(self) -> None:
        """End."""
        self._over = True
        self._work.set()
        self._thread.join(5.0)

    def _run(self) -> None:
        while not self._over:
            self._work.wait(_PERIOD_S)
            self._work.clear()
            for uid in self._changes.take():
                known = self._watch.pods.get(uid)
                if known is not None and known.report is not None and uid in self._lives.pods:
                    self._sweep([one.record for one in known.report.containers])

    def _sweep(self, containers: list[ContainerRecord]) -> None:
        newest = {one.name: one for one in reversed(containers) if one.state is RunState.EXITED}
        going = [
            containers_to_drop(containers, keep=_KEPT, because_of=one.id, stored=self._watch.stored())
            for one in newest.values()
        ]
        self._remove(one for some in going for one in some)

    def _remove(self, ids: Iterable[str]) -> None:
        for one in ids:
            with contextlib.suppress(NodeallocError):  # the next change asks again
                self._runtime.remove_container(one)
