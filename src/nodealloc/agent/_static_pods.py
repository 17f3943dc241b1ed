"""Static pods as they are seen of a kubelet that has no API server."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from nodealloc._typed import typed
from nodealloc.agent._admission import AdmissionPreparer
from nodealloc.dsw_asw import Clock, SystemClock
from nodealloc.errors import NodeallocError, RetryableError
from nodealloc.podfacts import LifeState, PodPhase, PodStatus
from nodealloc.podlife import EndingKind, PodLives
from nodealloc.podsources import PodSources
from nodealloc.podstatus import Sink

__all__ = ["StaticPodSink"]

if TYPE_CHECKING:
    from nodealloc.podlife import PodRecord

_log = logging.getLogger("nodealloc.agent")
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
        again: Is called with the uid of a pod that was told too early, once it may be told, so that
            whoever tells need not wait for a next try; from any thread, and not to wait.

    Source: kubelet ``pod/pod_manager.go`` (`GetPods`), as its read-only port lists them.
    """

    @typed
    def __init__(
        self,
        sink: Sink,
        lives: PodLives,
        sources: PodSources,
        *,
        admission: str = AdmissionPreparer.NAME,
        clock: Clock | None = None,
        again: Callable[[str], object] | None = None,
    ) -> None:
        self._clock: Clock = SystemClock() if clock is None else clock
        self._sink, self._lives, self._sources, self._admission = sink, lives, sources, admission
        self._lock = threading.Lock()
        self._shown: set[str] = set()
        self._hidden: dict[str, float] = {}
        self._last: dict[str, PodStatus] = {}
        self._again = again
        self._early: set[str] = set()
        self._said = sources.pods.watch(self._follow)
        self._moved = None if again is None else lives.pods.watch(self._let_in)

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
        with self._lock:
            self._early.add(uid)  # before the look: whoever is let in meanwhile is heard of
        if self._is_early(uid, status):
            raise RetryableError(f"pod {uid} has not been let in yet, or waits for its name", after_s=_SOON_S)
        with self._lock:
            self._early.discard(uid)
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
            self._early.discard(uid)
            self._last.pop(uid, None)

    def _is_early(self, uid: str, status: PodStatus) -> bool:
        record = self._lives.pods.get(uid)
        if record is not None and _is_refused(record):
            return status.phase is not PodPhase.FAILED
        return record is not None and self._waits(record)

    def _waits(self, record: PodRecord) -> bool:
        is_in = self._admission in record.edition_ready
        return record.life is LifeState.WAITING or (record.life is LifeState.SYNCING and not is_in)

    def _let_in(self) -> None:
        """Have those told that were told too early, as soon as they may be."""
        if self._moved is None or self._again is None:
            return
        moved = self._moved.take()
        with self._lock:
            early = self._early.intersection(moved)
        for uid in early:
            record = self._lives.pods.get(uid)
            if record is None or _is_refused(record) or not self._waits(record):
                with self._lock:
                    self._early.discard(uid)
                self._again(uid)

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
            try:
                if uid in self._sources.pods:
                    self._show(uid)
                else:
                    self._try_to_hide(uid)
            except Exception:  # noqa: BLE001 - nobody else tells of the other pods
                _log.exception(
                    "telling that static pod %s came or went raised; it is told with the next", uid
                )

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


def _is_refused(record: PodRecord) -> bool:
    return record.ending is not None and record.ending.kind is EndingKind.REFUSED
