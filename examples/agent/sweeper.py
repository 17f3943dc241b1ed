"""Removes what is left of pods that are gone, when a kubelet does: each second, and each minute."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterable
from itertools import count
from typing import Protocol

from nodealloc.errors import NodeallocError
from nodealloc.podfacts import LifeState
from nodealloc.podlife import EndingKind, PodLives
from nodealloc.runtime import (
    KUBELET,
    ContainerGcPolicy,
    Containers,
    PodListing,
    RunState,
    RuntimeWatch,
    Sandboxes,
    plan_container_gc,
    plan_sandbox_gc,
)

__all__ = ["Collector"]

_LOOK_S = 1.0
_LATE_S = 0.3  # what ended just before a look is seen to have
_LOOK_AFTER = 2
_COLLECT = 60


class _Removing(Containers, Sandboxes, Protocol):
    """What a collector calls."""


class Collector:
    """A thread that removes what a kubelet removes, when it does.

    Each second it finds who has died: of a pod that is gone all dead containers
    go then. Each other second it looks which pods no source has any more; each
    minute what is left of those goes.
    """

    def __init__(self, runtime: _Removing, watch: RuntimeWatch, lives: PodLives) -> None:
        self._runtime, self._watch, self._lives = runtime, watch, lives
        self._over = threading.Event()
        self._began_s = time.monotonic() + _LATE_S
        self._gone: set[str] = set()
        self._dead: set[str] = set()
        self._thread = threading.Thread(target=self._run, name="collector", daemon=True)

    def start(self) -> None:
        """Go."""
        self._thread.start()

    def stop(self) -> None:
        """End."""
        self._over.set()
        self._thread.join(5.0)

    def _run(self) -> None:
        for turn in count():
            if self._over.wait(max(0.0, self._began_s + turn * _LOOK_S - time.monotonic())):
                return
            if not self._lives.is_ready():
                continue
            if turn % _LOOK_AFTER == 0:
                wanted = self._lives.wanted.snapshot().items()
                self._gone = {uid for uid, want in wanted if want.value.is_removed}
            pods = {uid: one.value for uid, one in self._watch.seen.snapshot().items()}
            for pod in pods.values():
                self._bury(pod)
            self._dead &= {cid for pod in pods.values() for cid in pod.marks}
            if turn % _COLLECT == 0:
                self._collect(pods)

    def _bury(self, pod: PodListing) -> None:
        """Remove the dead of a pod that is gone, once another one of them is found."""
        dead = [one.id for one in pod.containers if one.state is RunState.EXITED]
        if not self._dead.issuperset(dead):
            self._dead.update(dead)
            if self._is_over(pod.uid):
                self._remove(dead)

    def _is_over(self, uid: str) -> bool:
        """Whether nothing of a pod is kept: nobody knows it, or it was sent away and has ended."""
        record = self._lives.pods.get(uid)
        if record is None:
            return uid not in self._lives.wanted
        is_evicted = record.ending is not None and record.ending.kind is EndingKind.EVICTED
        return is_evicted or (uid in self._gone and record.life in {LifeState.TERMINATED, LifeState.FINISHED})

    def _collect(self, pods: dict[str, PodListing]) -> None:
        over = {uid for uid in pods if self._is_over(uid)}
        runs = [one for pod in pods.values() for one in pod.containers]
        plan = plan_container_gc(runs, ContainerGcPolicy(), now_s=time.time(), ended=over, rules=KUBELET)
        self._remove(plan.remove)
        left = [one for one in runs if one.id not in plan.remove]
        boxes = [one for pod in pods.values() for one in pod.sandboxes]
        for one in plan_sandbox_gc(boxes, left, ended=over):
            with contextlib.suppress(NodeallocError):  # the next minute asks again
                self._runtime.remove_sandbox(one)

    def _remove(self, ids: Iterable[str]) -> None:
        for one in ids:
            with contextlib.suppress(NodeallocError):
                self._runtime.remove_container(one)
