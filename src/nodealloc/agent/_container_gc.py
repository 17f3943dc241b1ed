"""Removes what is left of containers when a kubelet does: each second, and each minute."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Final, Protocol

from nodealloc._typed import typed
from nodealloc.dsw_asw import Clock, Executor, Group, Periodic
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

__all__ = ["ContainerGc"]

_LOOK_S: Final = 1.0
_LATE_S: Final = 0.3  # what ended just before a look is seen to have
_LOOK_AFTER: Final = 2
_COLLECT: Final = 60


class _Removing(Containers, Sandboxes, Protocol):
    """What a collection calls."""


class ContainerGc(Group):
    """Removes records of dead containers and sandboxes when a kubelet does, not with their pods.

    Each second it finds who has died: of a pod that is gone all dead containers go
    then. Each other second it looks which pods no source has any more; each minute
    what is left of those goes. It is for lives with `podlife.Rules(clears_away=False)`.

    Args:
        runtime: Removes them.
        watch: Sees what there is.
        lives: Which pods are over.
        executor: Runs the calls; by default a thread for each.
        clock: Time between looks.
        unix_s: Time of day, in seconds, from which a container's age counts.

    Source: kubelet ``kubelet.go`` (`podKiller`, `syncLoop`), ``kuberuntime_gc.go``, seen from outside.
    """

    @typed
    def __init__(
        self,
        runtime: _Removing,
        *,
        watch: RuntimeWatch,
        lives: PodLives,
        executor: Executor | None = None,
        clock: Clock | None = None,
        unix_s: Callable[[], float] = time.time,
    ) -> None:
        self._runtime, self._watch, self._lives, self._unix_s = runtime, watch, lives, unix_s
        self._gone: frozenset[str] = frozenset()
        self._looks_after = self._collects = 0
        self._dead: set[str] = set()
        super().__init__(
            Periodic(
                self._look,
                every_s=_LOOK_S,
                first_s=_LATE_S,
                executor=executor,
                clock=clock,
                name="collection",
            ),
            name="collection",
        )

    def _look(self, turn: int) -> None:
        if not self._lives.is_ready():
            return
        # Looks that took long, or failed, leave turns out.
        if turn >= self._looks_after:
            self._looks_after = _next(turn, _LOOK_AFTER)
            wanted = self._lives.wanted.snapshot().items()
            self._gone = frozenset(uid for uid, want in wanted if want.value.is_removed)
        pods = {uid: one.value for uid, one in self._watch.seen.snapshot().items()}
        for pod in pods.values():
            self._remove_died(pod)
        self._dead &= {cid for pod in pods.values() for cid in pod.marks}
        if turn >= self._collects:
            self._collects = _next(turn, _COLLECT)
            self._collect(pods)

    def _remove_died(self, pod: PodListing) -> None:
        """Note which containers have died; of a pod that is over all go as soon as another one has."""
        dead = [one.id for one in pod.containers if one.state is RunState.EXITED]
        if not self._dead.issuperset(dead) and not self._is_about_to_end(pod):
            self._dead.update(dead)
            if self._is_over(pod.uid):
                self._remove(dead)

    def _is_about_to_end(self, pod: PodListing) -> bool:
        """Whether all of its containers have died and its life has not ended yet: the next look will do."""
        record = self._lives.pods.get(pod.uid)
        is_dead = all(one.state is RunState.EXITED for one in pod.containers)
        return is_dead and record is not None and record.life is LifeState.TERMINATING

    def _is_over(self, uid: str) -> bool:
        """Whether nothing of a pod is kept: nobody knows it, or it was sent away and has ended."""
        record = self._lives.pods.get(uid)
        if record is None:
            return uid not in self._lives.wanted
        kind = None if record.ending is None else record.ending.kind
        is_evicted = kind is EndingKind.EVICTED
        # Whom it refused a kubelet does not work on, so that of what it was before nothing is kept.
        is_gone = uid in self._gone or bool(record.pod.deletion_timestamp) or kind is EndingKind.REFUSED
        return is_evicted or (is_gone and record.life.is_over)

    def _collect(self, pods: Mapping[str, PodListing]) -> None:
        over = {uid for uid in pods if self._is_over(uid)}
        runs = [one for pod in pods.values() for one in pod.containers]
        # What is about to start has not died: nothing that has is one too many because of it.
        begun = [one for one in runs if one.state is not RunState.CREATED]
        plan = plan_container_gc(begun, ContainerGcPolicy(), now_s=self._unix_s(), ended=over, rules=KUBELET)
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


def _next(turn: int, every: int) -> int:
    return turn - turn % every + every
