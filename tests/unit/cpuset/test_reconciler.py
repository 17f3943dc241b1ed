"""What was granted gets written: once, in the right order, and again when somebody else interferes."""

from __future__ import annotations

import pytest

from nodealloc.cpuset import (
    CpuAllocator,
    CPUSet,
    CpusetBusyError,
    CpusetReconciler,
    CpusetWriteError,
)
from nodealloc.cpuset._confinement import Applied, Wanted, settled_confinement
from nodealloc.dsw_asw import Failed, InlineExecutor, Step, ThreadExecutor, WaitTimeoutError
from nodealloc.idset import NodeSet
from nodealloc.machine import machine_from_text
from nodealloc.podspec import Quantity
from nodealloc.testing.cpuset import FakeCpusetWriter, check_cpuset_writer
from nodealloc.testing.dsw_asw import ManualExecutor, VirtualClock
from nodealloc.topology import Claim, Owner, TopologyHint

ANYWHERE = TopologyHint(None, preferred=True)
ALL = CPUSet.parse("0-7")


def claim(workload: str, cpus: int) -> Claim:
    """A claim of a job's only member."""
    return Claim(owner=Owner(workload, "main"), amounts={"cpu": Quantity.of(cpus)})


def granted(node: CpuAllocator, *claims: Claim) -> CpuAllocator:
    """The node with these granted."""
    for one in claims:
        answer = node.allocate(one, ANYWHERE)
        assert isinstance(answer, CpuAllocator)
        node = answer
    return node


@pytest.fixture
def node() -> CpuAllocator:
    """Eight CPUs, the first reserved."""
    return CpuAllocator.of(machine_from_text("8 cores"), reserved=CPUSet.of(0))


@pytest.fixture
def writer() -> FakeCpusetWriter:
    """Three containers on all CPUs."""
    return FakeCpusetWriter({"web": ALL, "log": ALL, "db": ALL})


def reconciler(writer: FakeCpusetWriter, node: CpuAllocator) -> CpusetReconciler:
    """One that does everything inside `reconcile`, with `web` and `log` in the shared pool."""
    made = CpusetReconciler(writer, executor=InlineExecutor(), allocator=node, clock=VirtualClock())
    made.add("web", Owner("web", "main"))
    made.add("log", Owner("log", "main"))
    made.reconcile()
    return made


def test_what_is_as_it_should_be_is_never_written(writer: FakeCpusetWriter, node: CpuAllocator) -> None:
    """After a start containers are read once, and then left alone."""
    keeper = reconciler(writer, node)
    assert writer.calls == ["read web", "read log"]
    keeper.add("web", Owner("web", "main"))
    keeper.follow(node)
    keeper.follow(granted(node, claim("job", 2)).release("job"))
    assert keeper.reconcile().started == 0
    assert writer.calls == ["read web", "read log"]


def test_shared_containers_leave_before_an_exclusive_one_moves_in(
    writer: FakeCpusetWriter, node: CpuAllocator
) -> None:
    """A grant shrinks the pool's containers first; then nobody intrudes."""
    keeper = reconciler(writer, node)
    writer.sets["db"] = (CPUSet.of(7), None)
    keeper.add("db", Owner("job", "main"))
    keeper.reconcile()
    writer.calls.clear()
    keeper.follow(granted(node, claim("job", 2)))
    assert keeper.intruders("db") == ("log", "web")
    keeper.reconcile()
    assert writer.calls == ["write web 0,3-7", "write log 0,3-7", "write db 1-2"]
    assert keeper.intruders("db") == ()
    keeper.follow(node)
    keeper.reconcile()
    assert writer.sets["web"] == (ALL, None)


def test_applied_is_recorded_after_the_write_returned(writer: FakeCpusetWriter, node: CpuAllocator) -> None:
    """While a write is under way, what is applied is what was."""
    executor = ManualExecutor()
    keeper = CpusetReconciler(writer, executor=executor, allocator=node, clock=VirtualClock())
    keeper.add("web", Owner("web", "main"))
    keeper.reconcile()
    executor.run_all()
    keeper.follow(granted(node, claim("job", 2)))
    keeper.reconcile()
    assert keeper.applied("web") == Applied(cpus=ALL)
    assert not keeper.is_in_line("web")
    executor.run_all()
    keeper.reconcile()
    assert keeper.applied("web") == Applied(cpus=CPUSet.parse("0,3-7"))
    assert keeper.is_in_line("web")


def test_what_somebody_else_wrote_is_repaired(writer: FakeCpusetWriter, node: CpuAllocator) -> None:
    """A look at all containers writes the one that drifted, and no other."""
    keeper = reconciler(writer, node)
    writer.sets["web"] = (CPUSet.of(3), None)
    writer.calls.clear()
    keeper.observe()
    keeper.reconcile()
    assert writer.calls == ["read log", "read web", "write web 0-7"]
    keeper.observe(["log"])
    keeper.reconcile()
    assert writer.calls[3:] == ["read log"]


def test_containers_are_looked_at_now_and_then(writer: FakeCpusetWriter, node: CpuAllocator) -> None:
    """With `recheck_s` drift is repaired without being told of, and not before its time."""
    clock = VirtualClock()
    keeper = CpusetReconciler(writer, executor=InlineExecutor(), allocator=node, clock=clock, recheck_s=10.0)
    keeper.add("web", Owner("web", "main"))
    keeper.reconcile()
    writer.sets["web"] = (CPUSet.of(3), None)
    clock.advance(9)
    keeper.reconcile()
    assert writer.sets["web"][0] == CPUSet.of(3)
    clock.advance(1)
    keeper.reconcile()
    assert writer.sets["web"][0] == ALL


def test_a_write_that_fails_half_way_is_looked_at_and_done_again(
    writer: FakeCpusetWriter, node: CpuAllocator
) -> None:
    """After a failure the set is read, and written when its back-off is over."""
    clock = VirtualClock()
    keeper = CpusetReconciler(writer, executor=InlineExecutor(), allocator=node, clock=clock)
    keeper.add("web", Owner("web", "main"), mems=NodeSet.of(0))
    writer.fail("web", CpusetBusyError("web", "still wider below"))
    keeper.reconcile()
    assert writer.sets["web"] == (ALL, NodeSet.of(0))
    assert "still wider below" in str(keeper.failures("web")[0])
    keeper.follow(granted(node, claim("job", 2)))
    writer.fail("web", CpusetWriteError("web", "0,3-7", "no"))
    keeper.reconcile()
    assert keeper.applied("web") == Applied(cpus=ALL, mems=NodeSet.of(0))
    writer.fail("web", None)
    clock.advance(60)
    keeper.reconcile()
    assert writer.sets["web"] == (CPUSet.parse("0,3-7"), NodeSet.of(0))
    assert keeper.is_in_line("web")


def test_one_that_hangs_delays_no_other(writer: FakeCpusetWriter, node: CpuAllocator) -> None:
    """While one container's runtime hangs, the others are written; later it is looked at again."""
    executor = ThreadExecutor()
    keeper = CpusetReconciler(writer, executor=executor, allocator=node, deadline_s=0.05)
    for name in ("web", "log"):
        keeper.add(name, Owner(name, "main"))
    _settle(keeper, "web", "log")
    gate = writer.hang("web")
    keeper.follow(granted(node, claim("job", 2)))
    _settle(keeper, "log")
    assert writer.sets["log"] == (CPUSet.parse("0,3-7"), None)
    while keeper.applied("web") is not None:
        keeper.engine.wait_for_work(5)
        keeper.reconcile()
    keeper.add("db", Owner("job", "main"))
    assert "web" in keeper.intruders("db")
    gate.set()
    _settle(keeper, "web")
    assert writer.sets["web"] == (CPUSet.parse("0,3-7"), None)
    keeper.close(5)


def _settle(keeper: CpusetReconciler, *targets: str) -> None:
    keeper.reconcile()
    while not all(keeper.is_in_line(target) for target in targets):
        assert keeper.engine.wait_for_work(10)
        keeper.reconcile()


def test_an_empty_set_is_never_written(writer: FakeCpusetWriter) -> None:
    """When the pool runs dry its containers keep what they have, and are named."""
    node = CpuAllocator.of(machine_from_text("8 cores"))
    keeper = reconciler(writer, node)
    writer.calls.clear()
    keeper.follow(granted(node, claim("job", 8)))
    keeper.reconcile()
    assert writer.calls == []
    assert keeper.starved() == ("log", "web")


def test_a_container_that_ended_is_forgotten(writer: FakeCpusetWriter, node: CpuAllocator) -> None:
    """Nothing is written for it any more; one that comes again under its name is read anew."""
    keeper = reconciler(writer, node)
    keeper.remove("web")
    keeper.remove("web")
    writer.calls.clear()
    keeper.follow(granted(node, claim("job", 2)))
    keeper.reconcile()
    assert writer.calls == ["write log 0,3-7"]
    keeper.add("web", Owner("job", "main"))
    keeper.reconcile()
    assert writer.calls[1:] == ["read web", "write web 1-2"]


def test_a_write_that_outlives_its_container_is_not_believed(
    writer: FakeCpusetWriter, node: CpuAllocator
) -> None:
    """What ends after `remove` leaves no record behind."""
    executor = ManualExecutor()
    keeper = CpusetReconciler(writer, executor=executor, allocator=node, clock=VirtualClock())
    keeper.add("web", Owner("web", "main"))
    keeper.reconcile()
    keeper.remove("web")
    executor.run_all()
    keeper.reconcile()
    assert keeper.applied("web") is None


def test_an_owner_may_change(writer: FakeCpusetWriter, node: CpuAllocator) -> None:
    """A target that is given to another owner follows that one."""
    keeper = reconciler(writer, granted(node, claim("job", 2)))
    keeper.add("web", Owner("job", "main"))
    keeper.reconcile()
    assert writer.sets["web"][0] == CPUSet.parse("1-2")


def test_an_absent_container_waits_until_it_is_there(node: CpuAllocator) -> None:
    """A container that is announced before it exists is written once it does."""
    clock, writer = VirtualClock(), FakeCpusetWriter()
    keeper = CpusetReconciler(writer, executor=InlineExecutor(), allocator=node, clock=clock)
    keeper.add("late", Owner("web", "main"))
    keeper.reconcile()
    writer.sets["late"] = (CPUSet.of(5), None)
    clock.advance(60)
    keeper.reconcile()
    assert writer.sets["late"] == (ALL, None)


def test_waiting_for_ones_own_cpus(writer: FakeCpusetWriter, node: CpuAllocator) -> None:
    """An exclusive container may wait until it is alone; a wait that runs out says for whom."""
    keeper = reconciler(writer, node)
    keeper.add("db", Owner("job", "main"))
    keeper.follow(granted(node, claim("job", 2)))
    with pytest.raises(WaitTimeoutError) as caught:
        keeper.wait_exclusive("db", timeout_s=0.0)
    assert {one.key: one.what for one in caught.value.missing} == {
        "db": "is not confined to 1-2 yet",
        "web": "still runs on 1-2",
        "log": "still runs on 1-2",
    }
    keeper.reconcile()
    keeper.wait_exclusive("db")


def test_who_is_gone_intrudes_on_nobody(writer: FakeCpusetWriter, node: CpuAllocator) -> None:
    """A container that ended unannounced holds up no exclusive one; when it is back it is read anew."""
    keeper = reconciler(writer, node)
    keeper.add("db", Owner("job", "main"))
    del writer.sets["web"]
    keeper.follow(granted(node, claim("job", 2)))
    keeper.reconcile()
    assert keeper.applied("web") is None
    assert keeper.intruders("db") == ()


def test_the_fake_keeps_a_writers_promises(writer: FakeCpusetWriter) -> None:
    """The fake passes the check that real writers pass."""
    check_cpuset_writer(
        writer, "web", [CPUSet.of(1), CPUSet.of(2, 3), ALL], absent="nobody", mems=NodeSet.of(0)
    )
    with pytest.raises(CpusetWriteError, match="no such CPUs"):
        FakeCpusetWriter({"web": ALL}, online=ALL).write("web", CPUSet.of(9), None)


class Forgetful(FakeCpusetWriter):
    """A writer that takes an empty set."""

    def write(self, target: str, cpus: CPUSet, mems: NodeSet | None, /) -> None:
        """Write what is asked, whatever it is."""
        if cpus:
            super().write(target, cpus, mems)


def test_the_check_can_fail() -> None:
    """A writer that swallows an empty set is caught."""
    with pytest.raises(AssertionError, match="an empty set was taken"):
        check_cpuset_writer(Forgetful({"web": ALL}), "web", [CPUSet.of(1), ALL], absent="nobody")


def test_who_is_in_the_way_is_known_before_there_is_a_container(
    writer: FakeCpusetWriter, node: CpuAllocator
) -> None:
    """Of an owner that was granted CPUs; of one that shares nobody is."""
    keeper = reconciler(writer, node)
    keeper.follow(granted(node, claim("db", 2)))
    assert keeper.intruders_of(Owner("db", "main")) == ("log", "web")
    assert keeper.intruders_of(Owner("web", "main")) == ()
    keeper.reconcile()
    assert keeper.intruders_of(Owner("db", "main")) == ()


def test_who_is_being_moved_onto_cpus_may_be_there_already(
    writer: FakeCpusetWriter, node: CpuAllocator
) -> None:
    """A write that began before they were granted counts until it is known what came of it."""
    executor, clock = ManualExecutor(), VirtualClock()
    writer.sets["web"] = (CPUSet.parse("0,3-7"), None)
    keeper = CpusetReconciler(writer, executor=executor, allocator=node, clock=clock)
    keeper.add("web", Owner("web", "main"))
    keeper.reconcile()
    executor.run_all()
    keeper.reconcile()  # begins to write 0-7
    keeper.follow(granted(node, claim("job", 2)))
    owner = Owner("job", "main")
    assert keeper.applied("web") == Applied(cpus=CPUSet.parse("0,3-7"))
    assert keeper.intruders_of(owner) == ("web",)
    executor.run_all()
    assert writer.sets["web"] == (ALL, None)
    assert keeper.intruders_of(owner) == ("web",)
    keeper.reconcile()  # begins to write 0,3-7
    assert keeper.intruders_of(owner) == ("web",)
    executor.run_all()
    keeper.reconcile()
    assert keeper.intruders_of(owner) == ()


def test_a_write_that_failed_may_have_moved_its_container() -> None:
    """Until it was read again it counts on the CPUs that it had and on those that it was to have."""
    before = Applied(cpus=CPUSet.parse("0,3-7"))
    wanted = Wanted(target="web", owner=Owner("web", "main"), cpus=CPUSet.parse("0-2"))
    step = Step(scope=("web",), verb="write", detail=wanted)
    failed = settled_confinement(before, step, Failed(OSError("no"), began_s=0.0, ended_s=1.0))
    assert failed == Applied(cpus=ALL, checked=False)
