"""Values only: one pod's worker, what it is told, and what it does; for `_pod_workers_model` alone."""

from __future__ import annotations

import enum

from nodealloc import _attrs as attrs
from nodealloc.podfacts import LifeState
from nodealloc.podlife import KUBELET, POD_LIFE
from nodealloc.podlife._grace import effective_grace_s
from nodealloc.podlife._life import LifeEvent

__all__ = [
    "Asked",
    "Resync",
    "UpdateKind",
    "Work",
    "WorkEnd",
    "WorkKind",
    "Worker",
    "WorkerPod",
    "WorkerUpdate",
    "worker_grace_s",
]


class UpdateKind(enum.Enum):
    """Why a worker is told of its pod."""

    CREATE = "create"
    UPDATE = "update"
    SYNC = "sync"
    KILL = "kill"


class WorkKind(enum.Enum):
    """What a worker does."""

    SYNC = "sync"
    TERMINATE = "terminating"
    TERMINATE_ORPHAN = "terminating_runtime"
    TAKE_BACK = "terminated"


class WorkEnd(enum.Enum):
    """How that went."""

    DONE = "ok"
    TERMINAL = "terminal"
    """Done, and nothing of the pod will run again."""
    FAILED = "error"
    NETWORK_NOT_READY = "network_error"
    CANCELLED = "canceled"


class Resync(enum.Enum):
    """When a worker looks at its pod again though nobody told it to."""

    NOW = "now"
    RESYNC = "resync"
    BACK_OFF = "backoff"
    TRANSIENT = "transient"


@attrs.frozen(kw_only=True)
class WorkerPod:
    """What a worker needs to know of a pod.

    Attributes:
        uid: Which.
        full_name: Its name space and name; of static pods, one of a name runs.
        is_static: Whether it comes from a source of the node's own.
        is_deleted: Whether its deletion was asked for.
        has_ended: Whether its phase is final.
        own_s: Its own grace in seconds; None where it says nothing.
        deletion_s: That of its deletion; None where that says nothing.
        revision: Tells versions of it apart.
    """

    uid: str
    full_name: str = ""
    is_static: bool = False
    is_deleted: bool = False
    has_ended: bool = False
    own_s: float | None = None
    deletion_s: float | None = None
    revision: str = ""


@attrs.frozen(kw_only=True)
class WorkerUpdate:
    """What a worker is told.

    Attributes:
        kind: Why.
        pod: The pod as it is now.
        is_orphan: Whether only the runtime knows it; `pod` is what the runtime says then.
        evicts: Of a `KILL`: it makes room.
        grace_s: Of a `KILL`: how long it has at most, in seconds.
        status: Of a `KILL`: the name of what is to be told of the pod.
        notice: Of a `KILL`: the name of who waits for its end.
    """

    kind: UpdateKind
    pod: WorkerPod
    is_orphan: bool = False
    evicts: bool = False
    grace_s: float | None = None
    status: str = ""
    notice: str = ""


@attrs.frozen(kw_only=True)
class Asked:
    """What a worker works on.

    Attributes:
        kind: Of the update that asked for it.
        pod: The newest form of the pod from a source; None for an orphan of the runtime.
        orphan: The pod as the runtime knows it, where only that asks for its end.
        grace_s: How long it has to end, in seconds; None where nobody said.
    """

    kind: UpdateKind
    pod: WorkerPod | None = None
    orphan: WorkerPod | None = None
    grace_s: float | None = None

    def after(self, before: Asked | None, /) -> Asked:
        """With what was known before and this says nothing about."""
        if before is None:
            return self
        pod = self.pod if before.pod is None or self.orphan is None else before.pod
        grace_s = before.grace_s if self.grace_s is None else self.grace_s
        return attrs.evolve(self, pod=pod, grace_s=grace_s)


@attrs.frozen(kw_only=True)
class Work:
    """What a worker begins.

    Attributes:
        kind: What it does.
        asked: About what.
        status: What is to be told of the pod that ends, by name; "" for nothing.
    """

    kind: WorkKind
    asked: Asked
    status: str = ""


@attrs.frozen(kw_only=True)
class Worker:
    """One pod's worker.

    Attributes:
        full_name: Of its pod.
        life: How far its pod has come.
        waiting: What it was told and has not begun.
        last: What it worked on last.
        doing: What it has begun and not ended.
        has_ended: Whether it is over: it ends with its pod.
        has_signal: Whether it was woken and has not looked yet.
        is_working: Whether it was told something that it has not done.
        is_started: Whether it has begun anything.
        began_to_end: Whether its pod's containers are being told to end.
        is_deleted: Whether nobody wants the pod any more.
        is_evicted: Whether it makes room.
        seen_running: Whether it was asked for because the runtime knew the pod.
        comes_again: Whether a pod of this uid was created while this one ended.
        is_cancelled: Whether what it does was asked to stop.
        grace_s: How long its pod has to end; None where nobody said.
        notices: Who waits for the end of the containers.
        status: What is to be told of the pod, by name; "" for nothing.
    """

    full_name: str
    life: LifeState = LifeState.WAITING
    waiting: Asked | None = None
    last: Asked | None = None
    doing: WorkKind | None = None
    has_ended: bool = False
    has_signal: bool = False
    is_working: bool = False
    is_started: bool = False
    began_to_end: bool = False
    is_deleted: bool = False
    is_evicted: bool = False
    seen_running: bool = False
    comes_again: bool = False
    is_cancelled: bool = False
    grace_s: float | None = None
    notices: tuple[str, ...] = ()
    status: str = ""

    @property
    def pod(self) -> WorkerPod | None:
        """The newest form of its pod that it has taken up; before that, the one that waits."""
        asked = self.last or self.waiting
        return None if asked is None else asked.pod

    @property
    def newest_pod(self) -> WorkerPod | None:
        """The newest form of its pod that a source gave."""
        return next((one.pod for one in (self.waiting, self.last) if one is not None and one.pod), None)

    @property
    def has_terminated(self) -> bool:
        """Whether no container of its pod runs, or ever will."""
        return self.life.is_over

    @property
    def next_kind(self) -> WorkKind:
        """What it does next."""
        return _KINDS.get(self.life, WorkKind.SYNC)

    def moved(self, event: LifeEvent, /) -> Worker:
        """After an event, by the table of a pod's life."""
        return attrs.evolve(self, life=POD_LIFE.after(self.life, event))

    def again(self) -> Worker:
        """Woken for what it worked on last, unless it was told something newer."""
        if self.waiting is not None or self.last is None:
            return self
        return attrs.evolve(self, waiting=self.last, is_working=True, has_signal=True)

    def over(self) -> Worker:
        """It has ended with its pod."""
        return attrs.evolve(
            self, life=LifeState.FINISHED, has_ended=True, is_working=False, has_signal=False, doing=None
        )

    def told(self, update: WorkerUpdate, pod: WorkerPod, /) -> Worker:
        """Its pod may have to end because of an update, and how fast."""
        after, was_ending = self, self.life.is_ending
        if not was_ending:
            for_end = update.is_orphan or pod.is_deleted
            evicts = update.evicts and not (for_end or pod.has_ended)
            if for_end or pod.has_ended or update.kind is UpdateKind.KILL:
                after = attrs.evolve(
                    self.moved(LifeEvent.END_ASKED), is_deleted=self.is_deleted or for_end, is_evicted=evicts
                )
        if after.life is not LifeState.TERMINATING:
            return after
        grace_s = worker_grace_s(self.grace_s, pod, update.grace_s)
        shortened = bool(self.grace_s) and self.grace_s != grace_s
        return attrs.evolve(
            after,
            grace_s=grace_s,
            notices=self.notices + ((update.notice,) if update.notice else ()),
            status=update.status or self.status,
            is_cancelled=self.is_cancelled or (self.doing is not None and (shortened or not was_ending)),
        )


_KINDS = {
    LifeState.TERMINATING: WorkKind.TERMINATE,
    LifeState.TERMINATED: WorkKind.TAKE_BACK,
    LifeState.FINISHED: WorkKind.TAKE_BACK,
}


def worker_grace_s(before_s: float | None, pod: WorkerPod, asked_s: float | None) -> float:
    """`effective_grace_s` of a pod."""
    return effective_grace_s(
        before_s, own_s=pod.own_s, deletion_s=pod.deletion_s, override_s=asked_s, rules=KUBELET
    )
