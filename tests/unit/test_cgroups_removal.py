"""Removal: one at a time, with back-off, and who is in the way by name."""

from __future__ import annotations

import threading

from nodealloc.cgroups import (
    BackOff,
    CgroupName,
    LimitRefusedError,
    Process,
    QosTree,
    Removals,
    RemovalState,
    TreeOptions,
)
from nodealloc.podspec import Container, Pod, Quantity
from nodealloc.testing.cgroups import FakeCgroups

ROOT = CgroupName.of("kubepods")


def pod(uid: str, cpu: str = "1") -> Pod:
    """A burstable pod."""
    return Pod(uid=uid, containers=(Container(name="app", requests={"cpu": Quantity.parse(cpu)}),))


def test_stuck_processes_are_named_and_waited_for() -> None:
    """A pod that cannot go is tried again later and later, and others go meanwhile."""
    driver = FakeCgroups(running={7, 8})
    tree = QosTree(driver, TreeOptions(), removals=Removals(driver, back_off=BackOff(initial_s=1, max_s=3)))
    tree.sync([pod("a"), pod("b")], now_s=0)
    stuck = ROOT.child("burstable").child("poda")
    driver.attach(stuck, 7)
    driver.attach(ROOT.child("burstable").child("podb"), 8)
    driver.unkillable = {7}
    first = {removal.name: removal for removal in tree.sync([], now_s=0).removals}
    assert first[stuck].state is RemovalState.STUCK
    assert [process.pid for process in first[stuck].stuck] == [7]
    assert "7" in str(first[stuck])
    assert first[ROOT.child("burstable").child("podb")].state is RemovalState.REMOVED
    driver.calls.clear()
    (second,) = tree.sync([], now_s=0.5).removals
    assert (second.state, second.after_s) == (RemovalState.BACKING_OFF, 0.5)
    assert driver.calls == []
    assert [tree.sync([], now_s=now).removals[0].after_s for now in (1, 3, 6)] == [2, 3, 3]
    driver.unkillable = set()
    (last,) = tree.sync([], now_s=9).removals
    assert (last.state, str(last)) == (RemovalState.REMOVED, f"cgroup {stuck}: removed")
    assert tree.sync([], now_s=9).removals == ()


def test_pod_that_comes_back_is_not_held_up_by_its_removal() -> None:
    """The same uid again forgets the back-off."""
    driver = FakeCgroups(running={7})
    removals = Removals(driver)
    tree = QosTree(driver, TreeOptions(), removals=removals)
    tree.sync([pod("a")], now_s=0)
    name = ROOT.child("burstable").child("poda")
    driver.attach(name, 7)
    driver.unkillable = {7}
    tree.sync([], now_s=0)
    assert removals.pending() == (name,)
    tree.sync([pod("a", cpu="2")], now_s=0)
    assert removals.pending() == ()


def test_one_removal_in_flight_for_a_name() -> None:
    """A second caller is told that the first is at it; the driver is called once."""
    entered, go_on = threading.Event(), threading.Event()
    calls: list[CgroupName] = []

    class Slow:
        """A driver whose kill takes its time."""

        def kill(self, name: CgroupName, /) -> tuple[Process, ...]:
            """Wait to be told."""
            calls.append(name)
            entered.set()
            go_on.wait(10)
            return ()

        def remove(self, name: CgroupName, /) -> None:
            """Nothing is left to do."""

    removals = Removals(Slow())
    thread = threading.Thread(target=removals.remove, args=(ROOT,), kwargs={"now_s": 0})
    thread.start()
    assert entered.wait(10)
    assert removals.remove(ROOT, now_s=0).state is RemovalState.IN_FLIGHT
    go_on.set()
    thread.join()
    assert calls == [ROOT]


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

    class Refusing:
        """Nobody is there, but the directory may not be removed."""

        def kill(self, _name: CgroupName, /) -> tuple[Process, ...]:
            """Nobody is left."""
            return ()

        def remove(self, name: CgroupName, /) -> None:
            """Refuse."""
            raise LimitRefusedError(name, "/c", "a directory", 1)

    removal = Removals(Refusing()).remove(ROOT, now_s=5)
    assert (removal.state, removal.after_s, removal.failures) == (RemovalState.STUCK, 0.5, 1)
    assert "not permitted" in removal.reason
