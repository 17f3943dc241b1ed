"""Removal: one at a time, with back-off, and who is in the way by name."""

from __future__ import annotations

import threading

from nodealloc.cgroups import CgroupName, LimitRefusedError, Limits, QosTree, RemovalState, TreeOptions
from nodealloc.cgroups._errors import Process
from nodealloc.dsw_asw import BackOff, ThreadExecutor
from nodealloc.podspec import Container, Pod, Quantity
from nodealloc.testing.cgroups import FakeCgroups
from nodealloc.testing.devices import wait_until
from nodealloc.testing.dsw_asw import ManualExecutor, RecordingObserver, VirtualClock

ROOT = CgroupName.of("kubepods")
BURSTABLE = ROOT.child("burstable")


def pod(uid: str, cpu: str = "1") -> Pod:
    """A burstable pod."""
    return Pod(uid=uid, containers=(Container(name="app", requests={"cpu": Quantity.parse(cpu)}),))


def test_stuck_processes_are_named_and_waited_for() -> None:
    """A pod that cannot go is tried again later and later, and others go meanwhile."""
    driver, clock = FakeCgroups(running={7, 8}), VirtualClock()
    tree = QosTree(driver, TreeOptions(), clock=clock, back_off=BackOff(initial_s=1, max_s=3))
    tree.reconcile([pod("a"), pod("b")])
    stuck = BURSTABLE.child("poda")
    driver.attach(stuck, 7)
    driver.attach(BURSTABLE.child("podb"), 8)
    driver.unkillable = {7}
    first = {removal.name: removal for removal in tree.reconcile([]).removals}
    assert first[stuck].state is RemovalState.STUCK
    assert [process.pid for process in first[stuck].stuck] == [7]
    assert "7" in str(first[stuck])
    assert first[BURSTABLE.child("podb")].state is RemovalState.REMOVED
    driver.calls.clear()
    clock.advance(0.5)
    (second,) = tree.reconcile([]).removals
    assert (second.state, second.after_s) == (RemovalState.BACKING_OFF, 0.5)
    assert [call for call in driver.calls if call[0] != "apply"] == []
    waits: list[tuple[RemovalState, float, int]] = []
    for wait_s in (0.5, 2, 3):
        clock.advance(wait_s)
        (removal,) = tree.reconcile().removals
        waits.append((removal.state, removal.after_s, removal.failures))
    assert waits == [(RemovalState.STUCK, 2, 2), (RemovalState.STUCK, 3, 3), (RemovalState.STUCK, 3, 4)]
    driver.unkillable = set()
    clock.advance(3)
    (last,) = tree.reconcile().removals
    assert (last.state, str(last)) == (RemovalState.REMOVED, f"cgroup {stuck}: removed")
    assert tree.reconcile().removals == ()


def test_pod_that_comes_back_is_not_held_up_by_its_removal() -> None:
    """The same uid again is written in full at once, although its removal failed."""
    driver, clock = FakeCgroups(running={7}), VirtualClock()
    tree = QosTree(driver, TreeOptions(), clock=clock)
    tree.reconcile([pod("a")])
    name = BURSTABLE.child("poda")
    driver.attach(name, 7)
    driver.unkillable = {7}
    assert not tree.reconcile([]).is_settled
    report = tree.reconcile([pod("a", cpu="2")])
    assert report.is_settled
    assert report.applied[name] == Limits(cpu_shares=2048)
    clock.advance(1000)
    assert tree.reconcile().is_settled
    assert driver.read(name) is not None


def test_one_removal_that_hangs_delays_no_other_cgroup() -> None:
    """Its pod may come back meanwhile, and is made anew only when it has gone; others are written at once."""
    entered, go_on = threading.Event(), threading.Event()

    class Slow(FakeCgroups):
        """A driver whose kill takes its time."""

        def kill(self, name: CgroupName, /) -> tuple[Process, ...]:
            """Wait to be told."""
            entered.set()
            go_on.wait(10)
            return super().kill(name)

    driver = Slow(running=())
    tree = QosTree(driver, TreeOptions(), executor=ThreadExecutor("cgroup"))
    with tree.engine:
        tree.follow([pod("a")])
        wait_until(lambda: tree.reconcile().is_settled)
        tree.follow([])
        assert entered.wait(10)
        (removal,) = tree.reconcile().removals
        assert (removal.state, str(removal)) == (
            RemovalState.IN_FLIGHT,
            f"cgroup {BURSTABLE.child('poda')}: in flight",
        )
        tree.follow([pod("a", cpu="2"), pod("b")])
        wait_until(lambda: driver.read(BURSTABLE.child("podb")) is not None, what="the other pod")
        left = driver.read(BURSTABLE.child("poda"))
        assert left is not None
        assert left.cpu_shares == 1024
        go_on.set()
        wait_until(lambda: tree.reconcile().is_settled)
        again = driver.read(BURSTABLE.child("poda"))
        assert again is not None
        assert again.cpu_shares == 2048


def test_a_write_that_hangs_delays_no_other_pod() -> None:
    """Each cgroup has an operation of its own; what stands below one that is missing waits for it."""
    driver, executor = FakeCgroups(), ManualExecutor()
    tree = QosTree(driver, TreeOptions(), executor=executor)
    assert tree.reconcile([pod("a"), pod("b")]).waiting == {
        ROOT,
        BURSTABLE,
        ROOT.child("besteffort"),
        BURSTABLE.child("poda"),
        BURSTABLE.child("podb"),
    }
    for made in (1, 2, 2):  # the root, its classes, the pods
        assert len(executor) == made
        for _ in range(made):
            executor.run()
        tree.reconcile()
    assert tree.reconcile().is_settled
    tree.reconcile([pod("a", cpu="2"), pod("b", cpu="2")])
    executor.run(2)  # the others hang
    assert tree.reconcile().waiting == {BURSTABLE, BURSTABLE.child("poda")}


def test_back_off_grows_to_its_most() -> None:
    """Half a second, doubled each time, two minutes at most."""
    back_off = BackOff()
    assert [back_off.after(failures) for failures in (1, 2, 3, 1000)] == [0.5, 1, 2, 122]


def test_processes_describe_themselves() -> None:
    """Name and state where they are known."""
    assert str(Process(0)) == "a process of another PID namespace"
    assert str(Process(5)) == "5"
    assert str(Process(5, "a) b", "D")) == "5 (a) b, state D)"


def test_removal_that_is_refused_is_tried_later() -> None:
    """An error of the driver is a reason to wait, and is told."""

    class Refusing(FakeCgroups):
        """Nobody is there, but the directory may not be removed."""

        def remove(self, name: CgroupName, /) -> None:
            """Refuse."""
            raise LimitRefusedError(name, "/c", "a directory", 1)

    tree = QosTree(Refusing(), TreeOptions(), clock=VirtualClock())
    tree.reconcile([pod("a")])
    (removal,) = tree.reconcile([]).removals
    assert (removal.state, removal.after_s, removal.failures) == (RemovalState.STUCK, 0.5, 1)
    assert "not permitted" in removal.reason


def test_a_pod_that_comes_has_no_other_pod_looked_at() -> None:
    """The limits of its class change, which concerns nobody below it."""
    observer = RecordingObserver()
    tree = QosTree(FakeCgroups(), TreeOptions(), observer=observer)
    tree.reconcile([pod(f"p{number}") for number in range(50)])
    observer.summaries.clear()
    tree.reconcile([pod(f"p{number}") for number in range(51)])
    assert 2 <= sum(summary.planned for summary in observer.summaries) <= 6
