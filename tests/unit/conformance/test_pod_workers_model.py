"""The model of a kubelet's workers: who is told of an end, who interrupts whom, who waits in line."""

from __future__ import annotations

import attrs

from nodealloc.podfacts import LifeState
from nodealloc.testing.conformance._pod_worker_values import (
    UpdateKind,
    Work,
    WorkEnd,
    WorkerPod,
    WorkerUpdate,
    WorkKind,
)
from nodealloc.testing.conformance._pod_workers_model import Workers

WEB = WorkerPod(uid="u", full_name="default/web", own_s=30.0, revision="1")
CREATE = WorkerUpdate(kind=UpdateKind.CREATE, pod=WEB)


def kill(grace_s: float | None = None, notice: str = "") -> WorkerUpdate:
    """Somebody on the node wants the pod to end."""
    return WorkerUpdate(kind=UpdateKind.KILL, pod=WEB, grace_s=grace_s, notice=notice)


def run(workers: Workers, end: WorkEnd = WorkEnd.DONE) -> tuple[Workers, Work, tuple[str, ...]]:
    """The worker of `u` does one thing."""
    workers, work = workers.begun("u")
    assert isinstance(work, Work)
    workers, _, notices = workers.ended("u", end)
    return workers, work, notices


def test_who_waits_for_a_pod_that_has_finished_hears_nothing() -> None:
    """A kubelet never says so; `PodLives` does."""
    workers, _ = Workers().received(CREATE)
    workers, _, _ = run(workers, WorkEnd.TERMINAL)
    workers, _, _ = run(workers)
    workers, work, _ = run(workers)
    assert work.kind is WorkKind.TAKE_BACK
    assert workers.received(kill(notice="waiting"))[1] == ()


def test_a_pod_that_ends_by_itself_has_no_grace_that_anybody_knows() -> None:
    """With `PodLives` it has its own."""
    workers, _ = Workers().received(CREATE)
    workers, _, _ = run(workers, WorkEnd.TERMINAL)
    _, work, _ = run(workers)
    assert (work.kind, work.asked.grace_s) == (WorkKind.TERMINATE, None)


def test_a_shorter_grace_interrupts_what_runs() -> None:
    """What ends the pod is asked to stop, and begins again with less time; a longer one changes nothing."""
    workers, _ = Workers().received(CREATE)
    workers, _, _ = run(workers)
    workers, _ = workers.received(kill(15.0, notice="first"))
    workers, _ = workers.begun("u")
    longer, _ = workers.received(kill(20.0))
    assert not longer.workers["u"].is_cancelled
    workers, _ = workers.received(kill(3.0, notice="second"))
    assert workers.workers["u"].is_cancelled
    workers, _, notices = workers.ended("u", WorkEnd.CANCELLED)
    assert notices == ()
    _, work, notices = run(workers)
    assert (work.asked.grace_s, notices) == (3.0, ("first", "second"))


def test_an_orphan_has_never_started() -> None:
    """A static pod that comes under its uid meanwhile finishes unstarted; another one ends in its place."""
    orphan = WorkerUpdate(kind=UpdateKind.KILL, pod=WorkerPod(uid="u"), is_orphan=True)
    workers, _ = Workers().received(orphan)
    workers, work, _ = run(workers, WorkEnd.FAILED)
    assert work.kind is WorkKind.TERMINATE_ORPHAN
    static, _ = workers.received(WorkerUpdate(kind=UpdateKind.UPDATE, pod=attrs.evolve(WEB, is_static=True)))
    static, begun = static.begun("u")
    assert begun is None
    assert static.workers["u"].life is LifeState.FINISHED
    other, _ = workers.received(WorkerUpdate(kind=UpdateKind.UPDATE, pod=WEB))
    _, work, _ = run(other)
    assert work.kind is WorkKind.TERMINATE


def test_static_pods_of_a_name_run_one_at_a_time() -> None:
    """The second starts when the first has finished; one that was told to end meanwhile never does."""
    first = attrs.evolve(WEB, is_static=True)
    second, third = attrs.evolve(first, uid="v"), attrs.evolve(first, uid="w")
    workers = Workers()
    for pod in (first, second, third):
        workers, _ = workers.received(WorkerUpdate(kind=UpdateKind.CREATE, pod=pod))
    workers, _, _ = run(workers)
    workers, begun = workers.begun("v")
    assert not isinstance(begun, Work)
    workers, _ = workers.received(WorkerUpdate(kind=UpdateKind.KILL, pod=second))
    workers, _ = workers.received(WorkerUpdate(kind=UpdateKind.KILL, pod=first))
    assert not workers.terminating_name("default/other")
    assert workers.terminating_name("default/web")
    for _ in range(2):
        workers, _, _ = run(workers)
    assert workers.workers["u"].life is LifeState.FINISHED
    workers, _ = workers.received(WorkerUpdate(kind=UpdateKind.UPDATE, pod=third))
    workers, begun = workers.begun("w")
    assert isinstance(begun, Work)
    assert workers.begun("v")[0].workers["v"].life is LifeState.FINISHED
