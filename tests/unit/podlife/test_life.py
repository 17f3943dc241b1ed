"""How far a pod has come, how long it has to end, and who of its containers waits for whom."""

from __future__ import annotations

import attrs
import pytest

from nodealloc.podfacts import LifeState
from nodealloc.podlife import (
    KUBELET,
    POD_LIFE,
    LifeEvent,
    Rules,
    stop_timeout_s,
)
from nodealloc.podlife._grace import (
    effective_grace_s,
    kill_grace_s,
    stops_after,
)
from nodealloc.podlife._worker import (
    UpdateKind,
    Work,
    WorkEnd,
    WorkerPod,
    WorkerUpdate,
    WorkKind,
)
from nodealloc.podlife._workers import Workers
from nodealloc.podspec import Container, Pod

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


def test_the_table_is_walked() -> None:
    """Every state can be reached, and every pod can finish, wherever it is."""
    assert set(POD_LIFE.paths()) == set(LifeState)
    for state in LifeState:
        assert LifeState.FINISHED in attrs.evolve(POD_LIFE, start=state).paths()


def test_there_is_no_way_back() -> None:
    """Whatever happens, a pod only goes down the list of states."""
    order = list(LifeState)
    for state in LifeState:
        for event in LifeEvent:
            assert order.index(POD_LIFE.after(state, event)) >= order.index(state)


def test_a_grace_only_shrinks() -> None:
    """Whoever asks for more than was asked before is not heard, in any order."""
    assert effective_grace_s(None, own_s=30) == 30
    assert effective_grace_s(30, own_s=30, deletion_s=3) == 3
    assert effective_grace_s(3, own_s=30, deletion_s=15, override_s=40) == 3


def test_a_grace_of_nothing_is_a_grace() -> None:
    """Zero seconds are kept by us; for the kubelet they are not set, and another wish counts."""
    assert effective_grace_s(None, own_s=30, deletion_s=0, override_s=40) == 0
    assert effective_grace_s(None, own_s=30, deletion_s=0, override_s=40, rules=KUBELET) == 40
    assert effective_grace_s(None, own_s=30, deletion_s=0, rules=KUBELET) == 1


def test_a_failed_probe_has_a_grace_of_its_own() -> None:
    """Deletion comes first, then the probe, then the pod; where nobody says anything it is 2 s."""
    assert kill_grace_s(own_s=30, deletion_s=5, probe_s=9) == 5
    assert kill_grace_s(own_s=30, probe_s=9) == 9
    assert kill_grace_s(own_s=30) == 30
    assert kill_grace_s(own_s=None, probe_s=9) == 2


def test_hooks_and_waiting_fit_into_the_grace() -> None:
    """What is left is left; the kubelet gives 2 s more than was asked, and counts whole seconds."""
    assert stop_timeout_s(10, 3.5, 4) == 2.5
    assert stop_timeout_s(10, 9, 4) == 0
    assert stop_timeout_s(10, 3.5, 4.9, rules=KUBELET) == 3
    assert stop_timeout_s(0, rules=KUBELET) == 2


SIDECARS = Pod(
    uid="u",
    name="web",
    init_containers=(
        Container(name="log", restartable=True),
        Container(name="setup"),
        Container(name="proxy", restartable=True),
        Container(name="vpn", restartable=True),
    ),
    containers=(Container(name="app"),),
)


def test_sidecars_end_behind_all_that_come_after_them() -> None:
    """Main containers at once, then the last sidecar, then the one before."""
    after = stops_after(SIDECARS, ["log", "vpn", "app", "proxy"])
    assert after == {
        "app": frozenset(),
        "vpn": {"app"},
        "proxy": {"app", "vpn"},
        "log": {"app", "vpn", "proxy"},
    }


def test_a_sidecar_that_has_ended_breaks_no_chain() -> None:
    """The first still waits for the last; with the kubelet it does not."""
    assert stops_after(SIDECARS, ["log", "vpn"])["log"] == {"vpn"}
    assert stops_after(SIDECARS, ["log", "vpn"], rules=KUBELET)["log"] == frozenset()


@pytest.mark.parametrize(("rules", "told"), [(Rules(), ("waiting",)), (KUBELET, ())])
def test_who_waits_for_a_pod_that_has_finished_hears_so(rules: Rules, told: tuple[str, ...]) -> None:
    """It is said at once; the kubelet never says it."""
    workers, _ = Workers(rules=rules).received(CREATE)
    workers, _, _ = run(workers, WorkEnd.TERMINAL)
    workers, _, _ = run(workers)
    workers, work, _ = run(workers)
    assert work.kind is WorkKind.TAKE_BACK
    assert workers.received(kill(notice="waiting"))[1] == told


@pytest.mark.parametrize(("rules", "grace_s"), [(Rules(), 30.0), (KUBELET, None)])
def test_a_pod_that_ends_by_itself_has_its_own_grace(rules: Rules, grace_s: float | None) -> None:
    """Its sidecars have as long as it says; with the kubelet nobody knows how long."""
    workers, _ = Workers(rules=rules).received(CREATE)
    workers, _, _ = run(workers, WorkEnd.TERMINAL)
    _, work, _ = run(workers)
    assert (work.kind, work.asked.grace_s) == (WorkKind.TERMINATE, grace_s)


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
