"""Static pods as they are seen of a kubelet that has no API server."""

from __future__ import annotations

import contextlib
import threading
from typing import Final

from nodealloc._typed import typed
from nodealloc.dsw_asw import Clock, SystemClock
from nodealloc.errors import NodeallocError, RetryableError
from nodealloc.podfacts import LifeState, PodPhase, PodStatus
from nodealloc.podlife import EndingKind, PodLives
from nodealloc.podsources import PodSources
from nodealloc.podstatus import Sink

__all__ = ["StaticPodSink"]

_SOON_S: Final = 0.05
_FORGOTTEN_S: Final = 2.0
"""So often a kubelet forgets what it told of pods that are no more."""


class StaticPodSink:
    """A `Sink` before another one: what a kubelet without an API server would list.

    Nothing is told of a pod that has not been let in yet, nor of one that waits for
    its predecessor; of one that was refused, only that. A pod whose manifest was taken
    away is gone at once, though its containers still end. Put back within 2 s it is told
    as it was last; put back later, as it is told next. Thread-safe.

    Args:
        sink: Is told.
        lives: How far pods have come.
        sources: Which pods should be here; driven by whoever made them.
        admission: Name of the preparation that lets pods in.
        clock: Time for those 2 s.

    Source: kubelet ``pod/pod_manager.go`` (`GetPods`), as its read-only port lists them.
    """

    @typed
    def __init__(
        self,
        sink: Sink,
        lives: PodLives,
        sources: PodSources,
        *,
        admission: str = "admission",
        clock: Clock | None = None,
    ) -> None:
        self._clock: Clock = SystemClock() if clock is None else clock
        self._sink, self._lives, self._sources, self._admission = sink, lives, sources, admission
        self._lock = threading.Lock()
        self._shown: set[str] = set()
        self._hidden: dict[str, float] = {}
        self._last: dict[str, PodStatus] = {}
        self._said = sources.pods.watch(self._follow)

    def heard(self) -> None:
        """Every source was heard: pods of an earlier life that none of them has are gone."""
        for uid in self._lives.facts.snapshot():
            if uid not in self._sources.pods:
                self._try_to_hide(uid)

    def told(self, uid: str, status: PodStatus, /) -> None:
        """See `Sink.told`.

        Raises:
            RetryableError: The pod has not been let in yet, or waits for its name.
        """
        if self._is_early(uid, status):
            raise RetryableError(f"pod {uid} has not been let in yet, or waits for its name", after_s=_SOON_S)
        with self._lock:
            self._last[uid] = status
        if uid not in self._sources.pods:
            self._hide(uid)
            return
        with self._lock:
            self._hidden.pop(uid, None)
            self._shown.add(uid)
        self._sink.told(uid, status)
        if uid not in self._sources.pods:  # gone meanwhile, and told so before this
            with self._lock:
                self._hidden.pop(uid, None)
            self._hide(uid)

    def gone(self, uid: str, /) -> None:
        """See `Sink.gone`."""
        self._hide(uid)
        with self._lock:
            self._hidden.pop(uid, None)
            self._shown.discard(uid)
            self._last.pop(uid, None)

    def _is_early(self, uid: str, status: PodStatus) -> bool:
        record = self._lives.pods.get(uid)
        if record is None:
            return False
        if record.ending is not None and record.ending.kind is EndingKind.REFUSED:
            return status.phase is not PodPhase.FAILED
        is_in = self._admission in record.edition_ready
        return record.life is LifeState.WAITING or (record.life is LifeState.SYNCING and not is_in)

    def _hide(self, uid: str) -> None:
        with self._lock:
            is_known = uid in self._shown or uid in self._lives.facts or uid in self._sources.pods
            if uid in self._hidden or not is_known:
                return
            self._hidden[uid] = self._clock.monotonic_s()
        try:
            self._sink.gone(uid)
        except BaseException:
            with self._lock:
                self._hidden.pop(uid, None)  # whoever is told of it next says so again
            raise

    def _follow(self) -> None:
        for uid in self._said.take():
            if uid in self._sources.pods:
                self._show(uid)
            else:
                self._try_to_hide(uid)

    def _try_to_hide(self, uid: str) -> None:
        with contextlib.suppress(NodeallocError, OSError):  # said with whatever is told of it next
            self._hide(uid)

    def _show(self, uid: str) -> None:
        with self._lock:
            since_s = self._hidden.get(uid)
            last = self._last.get(uid)
            if since_s is None or last is None or self._clock.monotonic_s() - since_s > _FORGOTTEN_S:
                return
            self._hidden.pop(uid, None)
        told: PodStatus | None = None
        try:
            while last is not None and last is not told:  # newer than that may have been told meanwhile
                self._sink.told(uid, last)
                told, last = last, self._last.get(uid)
        except (NodeallocError, OSError):  # told when it changes next
            with self._lock:
                self._hidden[uid] = since_s
