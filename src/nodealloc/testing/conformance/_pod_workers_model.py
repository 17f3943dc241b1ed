"""A model that recorded rows of kind `pod_workers` are replayed on: what workers are told, do and answer.

No node runs it. `PodLives` has the engine in place of workers; the model takes the table of a life
and the grace from `podlife`, so the rows bind those.

A worker handles one thing at a time. `received` takes what it is told, `begun`
says what it does about that, `ended` what follows from how that went. Nothing
here acts, and nothing waits.

Source: kubelet ``pod_workers.go``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from nodealloc import _attrs as attrs
from nodealloc._frozen import Frozen, freeze
from nodealloc.podfacts import LifeState
from nodealloc.podlife._life import LifeEvent
from nodealloc.testing.conformance._pod_worker_values import (
    Asked,
    Resync,
    UpdateKind,
    Work,
    WorkEnd,
    Worker,
    WorkerUpdate,
    WorkKind,
    worker_grace_s,
)

__all__ = ["Known", "Workers"]


@attrs.frozen(kw_only=True)
class Known:
    """What housekeeping is told of a worker that goes on.

    Attributes:
        kind: What it does next.
        is_orphan: Whether nobody wants its pod.
        has_config: Whether its pod came from a source.
        is_static: Whether from one of the node's own.
    """

    kind: WorkKind
    is_orphan: bool
    has_config: bool
    is_static: bool


@attrs.frozen(kw_only=True)
class Workers:
    """All workers, by their pods' uids. An immutable value.

    Attributes:
        workers: Each with what it knows.
        lines: Full name to the static pods that wait for it, in the order they came.
        holders: Full name to the static pod that has it.
        is_synced: Whether it is known which pods there should be.
    """

    workers: Mapping[str, Worker] = attrs.field(factory=Frozen[str, Worker], validator=freeze)
    lines: Mapping[str, tuple[str, ...]] = attrs.field(factory=Frozen[str, tuple[str, ...]], validator=freeze)
    holders: Mapping[str, str] = attrs.field(factory=Frozen[str, str], validator=freeze)
    is_synced: bool = False

    def received(
        self, update: WorkerUpdate, /, *, nothing_runs: bool = False
    ) -> tuple[Workers, tuple[str, ...]]:
        """A worker is told something; a pod that nobody knew gets one.

        Args:
            update: What.
            nothing_runs: The runtime has no container and no sandbox of the pod that runs.

        Returns:
            What is known from now on, and the notices that are given at once.
        """
        uid = update.pod.uid
        if update.is_orphan and update.kind is not UpdateKind.KILL:
            return self, ()
        worker = self.workers.get(uid)
        is_new = worker is None
        if worker is None:
            worker = Worker(full_name=update.pod.full_name)
            if update.pod.has_ended and nothing_runs and not update.is_orphan:
                worker = attrs.evolve(worker.moved(LifeEvent.FOUND_ENDED), began_to_end=True)
        elif worker.life.is_ending and update.kind is UpdateKind.CREATE:
            return _with(self, uid, attrs.evolve(worker, comes_again=True)), ()
        notices = (update.notice,) if update.notice else ()
        if update.is_orphan:
            worker = attrs.evolve(worker, seen_running=True)
        if worker.life is LifeState.FINISHED:
            return _with(self, uid, worker), ()  # whoever asks for its end hears nothing
        if worker.has_terminated and update.is_orphan:
            return _with(self, uid, worker), ()
        known = worker.newest_pod if update.is_orphan else update.pod
        worker = worker.told(update, known or update.pod)
        asked = Asked(kind=update.kind, pod=known, orphan=None if known else update.pod)
        if worker.life is LifeState.TERMINATING:
            asked, notices = attrs.evolve(asked, grace_s=worker.grace_s), ()
        done = _with(self, uid, attrs.evolve(worker, waiting=asked, is_working=True, has_signal=True))
        if is_new and update.pod.is_static and not update.is_orphan:
            line = (*self.lines.get(worker.full_name, ()), uid)
            done = attrs.evolve(done, lines={**self.lines, worker.full_name: line})
        return done, notices

    def begun(self, uid: str, /, *, can_look: bool = True) -> tuple[Workers, Work | Resync | None]:
        """A worker looks what it was told, and begins.

        Args:
            uid: Whose.
            can_look: Whether the runtime can say how the pod is; nothing is done to the pod otherwise.

        Returns:
            What is known from now on, and what it does; or, where its pod may not
            start yet, when it looks again; None where there is nothing to do.
        """
        worker = self.workers.get(uid)
        if worker is None or worker.has_ended or not worker.has_signal:
            return self, None
        worker = attrs.evolve(worker, has_signal=False)
        if worker.waiting is None:
            return _with(self, uid, worker), None
        taken = self
        asked = worker.waiting
        # An orphan is ended without ever having started.
        if not worker.is_started and asked.orphan is None:
            if asked.pod is not None and asked.pod.is_static:
                if worker.life.is_ending:
                    worker = attrs.evolve(worker, waiting=None)
                    return _over(self, uid, worker), None
                taken, may_start = _in_line(self, uid, worker.full_name)
                if not may_start:
                    return _with(taken, uid, attrs.evolve(worker, is_working=False)), Resync.BACK_OFF
            worker = attrs.evolve(worker.moved(LifeEvent.MAY_START), is_started=True)
        last = asked.after(worker.last)
        kind = worker.next_kind
        if kind is WorkKind.TERMINATE and last.orphan is not None:
            kind = WorkKind.TERMINATE_ORPHAN
        worker = attrs.evolve(worker, waiting=None, last=last, doing=kind, is_cancelled=False)
        if kind in {WorkKind.TERMINATE, WorkKind.TERMINATE_ORPHAN} and (
            can_look or kind is WorkKind.TERMINATE_ORPHAN
        ):
            worker = attrs.evolve(worker, began_to_end=True)
        return _with(taken, uid, worker), Work(kind=kind, asked=last, status=worker.status)

    def ended(self, uid: str, end: WorkEnd, /) -> tuple[Workers, Resync | None, tuple[str, ...]]:
        """A worker has done what it began.

        Returns:
            What is known from now on; when it looks again, None where it was the
            last thing to do; and the notices that are given.
        """
        worker = self.workers[uid]
        kind, worker = worker.doing, attrs.evolve(worker, doing=None)
        done = end in {WorkEnd.DONE, WorkEnd.TERMINAL}
        notices: tuple[str, ...] = ()
        resync = _RESYNCS[end]
        if done and kind is WorkKind.TAKE_BACK:
            return _over(self, uid, worker), None, ()
        if done and kind is WorkKind.TERMINATE_ORPHAN:
            return _without(self, uid), None, ()
        if done and kind is WorkKind.TERMINATE:
            notices = worker.notices
            worker = attrs.evolve(worker.moved(LifeEvent.CONTAINERS_GONE), notices=(), status="").again()
            resync = Resync.NOW
        elif end is WorkEnd.TERMINAL and kind is WorkKind.SYNC:
            worker = _by_itself(worker).again()
            resync = Resync.NOW
        working = worker.waiting is not None
        worker = attrs.evolve(worker, is_working=working, has_signal=working)
        return _with(self, uid, worker), resync, notices

    def synced(self, wanted: Collection[str], /) -> tuple[Workers, Mapping[str, Known]]:
        """It is known which pods there should be: who is not among them ends.

        Args:
            wanted: Uids of all pods that sources have.

        Returns:
            What is known from now on, and the workers that go on.
        """
        after, known = attrs.evolve(self, is_synced=True), dict[str, Known]()
        for uid, worker in self.workers.items():
            is_orphan = uid not in wanted
            kept: Worker | None = worker
            if is_orphan or worker.comes_again:
                kept = _unwanted(worker, is_orphan=is_orphan)
            if kept is None:
                after = _without(after, uid)
                continue
            after, pod = _with(after, uid, kept), kept.pod
            known[uid] = Known(
                kind=kept.next_kind,
                is_orphan=is_orphan,
                has_config=pod is not None,
                is_static=pod is not None and pod.is_static,
            )
        return after, known

    def terminating_name(self, full_name: str, /) -> bool:
        """Whether the static pod that has a name is ending, so that its mirror stays."""
        holder = self.workers.get(self.holders.get(full_name, ""))
        return holder is not None and holder.life is LifeState.TERMINATING


def _with(workers: Workers, uid: str, worker: Worker) -> Workers:
    if workers.workers.get(uid) == worker:
        return workers
    return attrs.evolve(workers, workers={**workers.workers, uid: worker})


def _without(workers: Workers, uid: str) -> Workers:
    gone = workers.workers[uid]
    left = {one: worker for one, worker in workers.workers.items() if one != uid}
    return attrs.evolve(_nameless(workers, uid, gone.full_name), workers=left)


def _over(workers: Workers, uid: str, worker: Worker) -> Workers:
    return _nameless(_with(workers, uid, worker.over()), uid, worker.full_name)


def _nameless(workers: Workers, uid: str, full_name: str) -> Workers:
    """A pod gives up its name."""
    if workers.holders.get(full_name) != uid:
        return workers
    holders = {name: one for name, one in workers.holders.items() if name != full_name}
    return attrs.evolve(workers, holders=holders)


def _in_line(workers: Workers, uid: str, full_name: str) -> tuple[Workers, bool]:
    """One static pod of a name at a time, in the order they came; who has to end is passed over."""
    holder = workers.holders.get(full_name)
    if holder is not None:
        return workers, holder == uid
    line = workers.lines.get(full_name, ())
    while line:
        first = workers.workers.get(line[0])
        if first is not None and not first.life.is_ending:
            break
        line = line[1:]
    if line and line[0] != uid:
        return attrs.evolve(workers, lines={**workers.lines, full_name: line}), False
    lines = {name: uids for name, uids in workers.lines.items() if name != full_name}
    if line[1:]:
        lines[full_name] = line[1:]
    return attrs.evolve(workers, lines=lines, holders={**workers.holders, full_name: uid}), True


def _unwanted(worker: Worker, *, is_orphan: bool) -> Worker | None:
    """A worker whose pod no source has, or that is to come again; None for one that is forgotten."""
    if worker.life is LifeState.FINISHED:
        return None
    if not is_orphan:
        return worker
    worker = attrs.evolve(worker, is_deleted=True)
    if not worker.is_started and not worker.seen_running:
        return None
    if not worker.life.is_ending:
        pod = None if worker.last is None else worker.last.pod
        grace_s = 1.0 if pod is None else worker_grace_s(worker.grace_s, pod, None)
        worker = attrs.evolve(worker.moved(LifeEvent.END_ASKED), grace_s=grace_s)
    return worker.again()


def _by_itself(worker: Worker) -> Worker:
    """Nothing of its pod will run again; how long the rest of it has nobody says."""
    return attrs.evolve(worker.moved(LifeEvent.NOTHING_LEFT_TO_RUN), began_to_end=True)


_RESYNCS = {
    WorkEnd.DONE: Resync.RESYNC,
    WorkEnd.TERMINAL: Resync.RESYNC,
    WorkEnd.FAILED: Resync.BACK_OFF,
    WorkEnd.NETWORK_NOT_READY: Resync.TRANSIENT,
    WorkEnd.CANCELLED: Resync.BACK_OFF,
}
