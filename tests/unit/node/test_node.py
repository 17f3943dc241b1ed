"""The node's shell: start, admit, bind, release, and what a crash leaves behind."""

from __future__ import annotations

from collections.abc import Mapping

import attrs
import pytest

from nodealloc.checkpoint import (
    CPU_STATE,
    Checkpoint,
    Contents,
    CpuManagerState,
    JsonCheckpoint,
    MemoryStore,
    Since,
    StoreFailedError,
)
from nodealloc.cpuset import CpuAllocator, CPUSet, StaticPolicy
from nodealloc.devices import DeviceAllocator
from nodealloc.errors import ConfigurationError, RetryableError
from nodealloc.machine import Machine, machine_from_text
from nodealloc.memblocks import (
    MemoryAllocator,
    UnpinnedMemory,
)
from nodealloc.node import FORMATS, NodeAllocator, NoKubeletFileError, NotAdmittedError, NotRememberedError
from nodealloc.node._held_allocator import HeldAllocator
from nodealloc.podspec import Pod
from nodealloc.testing.abilities import FakeCpuAllocator, check_remembers
from nodealloc.testing.devices import check_allocator_keeper
from nodealloc.testing.node import FakeRuntime, check_runtime
from nodealloc.testing.topology import FakeAllocator
from nodealloc.topology import (
    Admitted,
    Allocator,
    NotYet,
    Owner,
    Policy,
    Shortfall,
    Snapshot,
    TopologyHint,
    UnknownAllocatorError,
    workload_of,
)
from nodealloc.verdicts import Refused

MACHINE = machine_from_text("2 sockets x 4 cores x 2 threads, memory=8Gi")


def empty(machine: Machine = MACHINE, reserved: str = "0") -> Snapshot:
    """A node with nothing held."""
    policy = StaticPolicy.of(machine, reserved=CPUSet.parse(reserved))
    memory = MemoryAllocator.of(machine, reserved={0: {"memory": 256 << 20}})
    return Snapshot.of(
        machine,
        policy=Policy.parse("restricted"),
        allocators=(CpuAllocator(policy=policy), memory),
    )


def pod(name: str, cpu: int = 2, *containers: str) -> Pod:
    """A guaranteed pod with these CPUs for each container."""
    limits = {"cpu": cpu, "memory": "64Mi"}
    named = [{"name": one, "resources": {"limits": limits}} for one in containers or ("app",)]
    return Pod.from_manifest({"metadata": {"name": name, "uid": name}, "spec": {"containers": named}})


def node(
    store: MemoryStore, runtime: FakeRuntime | None = None, snapshot: Snapshot | None = None
) -> NodeAllocator:
    """A node that has not been started."""
    return NodeAllocator(snapshot or empty(), store, runtime=runtime)


def started(store: MemoryStore, runtime: FakeRuntime | None = None) -> NodeAllocator:
    """A node after a clean start."""
    fresh = node(store, runtime)
    assert fresh.start().is_clean
    return fresh


def restarted(store: MemoryStore) -> MemoryStore:
    """What the next process finds."""
    return MemoryStore(FORMATS, data=store.data())


def cpus(holder: NodeAllocator, owner: Owner) -> str:
    """What an owner holds for itself."""
    return str(next(a for a in holder.snapshot.allocators if isinstance(a, CpuAllocator)).exclusive_of(owner))


def test_a_decision_is_stored_before_it_is_answered() -> None:
    """The store has the workload's row when `admit` returns."""
    store = MemoryStore(FORMATS)
    holder = started(store)
    assert not holder.holds("web")
    assert isinstance(holder.admit(pod("web")), Admitted)
    assert list(store.data()) == ["workload.web"]
    assert holder.holds("web")
    holder.release("web")
    assert not holder.holds("web")


def test_a_refusal_stores_nothing() -> None:
    """A pod that does not fit leaves store and snapshot as they were."""
    store = MemoryStore(FORMATS)
    holder = started(store)
    before = holder.snapshot
    assert isinstance(holder.admit(pod("huge", 64)), Refused)
    assert (holder.snapshot, dict(store.data())) == (before, {})


def test_a_restart_moves_nothing_and_refuses_nobody() -> None:
    """Recorded pods are admitted again with the same answer, without a runtime that answers."""
    store, runtime = MemoryStore(FORMATS), FakeRuntime()
    first = started(store, runtime)
    pods = [pod(f"p{number}", 2, "a", "b") for number in range(3)]
    answers = [first.admit(one) for one in pods]
    runtime.reachable = False
    second = started(restarted(store), runtime)
    for one, before in zip(pods, answers, strict=True):
        again = second.admit(one)
        assert isinstance(again, Admitted)
        assert isinstance(before, Admitted)
        assert again.repeated
        assert again.affinity == before.affinity
        for member in ("a", "b"):
            owner = Owner(one.uid, member)
            assert cpus(second, owner) == cpus(first, owner) != ""


def test_until_the_runtime_answers_new_pods_have_to_wait() -> None:
    """Not yet, with the runtime's own patience; admitted as soon as it answers."""
    runtime = FakeRuntime()
    runtime.reachable = False
    holder = started(MemoryStore(FORMATS), runtime)
    answer = holder.admit(pod("web"))
    assert isinstance(answer, NotYet)
    assert (answer.blocker, answer.after_s) == ("runtime", 2.0)
    runtime.reachable = True
    assert isinstance(holder.admit(pod("web")), Admitted)


def test_a_node_that_was_not_started_admits_nobody() -> None:
    """The answer names what is missing."""
    answer = node(MemoryStore(FORMATS)).admit(pod("web"))
    assert isinstance(answer, NotYet)
    assert "start()" in answer.message
    with pytest.raises(ValueError, match="start"):
        node(MemoryStore(FORMATS)).accept()


class FullStore(MemoryStore):
    """A store whose disk can be filled."""

    full = False

    def commit(self, changes: Mapping[str, Checkpoint | None], /) -> None:
        """Store, or say that the disk is full."""
        if self.full:
            raise StoreFailedError("memory", "write", 28, "no space left on device")
        super().commit(changes)


def test_what_cannot_be_remembered_is_not_granted() -> None:
    """With a full disk the answer is not yet, and nothing is held; releases say so too."""
    store = FullStore(FORMATS)
    holder = started(store)
    holder.admit(pod("web"))
    before = holder.snapshot
    store.full = True
    answer = holder.admit(pod("db"))
    assert isinstance(answer, NotYet)
    assert "no space left" in answer.message
    with pytest.raises(RetryableError):
        holder.release("web")
    with pytest.raises(RetryableError):
        holder.before_start(Owner("web", "app"), "1")
    assert holder.snapshot is before
    store.full = False
    assert isinstance(holder.admit(pod("db")), Admitted)


class SilentStore(MemoryStore):
    """Cannot be written, and does not say why."""

    def commit(self, changes: Mapping[str, Checkpoint | None], /) -> None:
        """Raise without a word."""
        raise RetryableError("")


def test_a_store_that_does_not_say_why_is_named_all_the_same() -> None:
    """A verdict says something, whatever a port's error says."""
    answer = started(SilentStore(FORMATS)).admit(pod("db"))
    assert isinstance(answer, NotYet)
    assert (answer.blocker, answer.message, answer.after_s) == ("store", "the store is busy", 1.0)


def test_a_node_starts_on_a_full_disk() -> None:
    """Who is recorded stays; others wait for the store, and come in as soon as it can be written."""
    first = FullStore(FORMATS)
    started(first).admit(pod("web"))
    store = FullStore(FORMATS, data=first.data())
    store.full = True
    holder = NodeAllocator(empty(), store, kubelet_files=["cpu"])
    assert holder.start().is_clean
    assert isinstance(holder.admit(pod("web")), Admitted)
    answer = holder.admit(pod("db"))
    assert isinstance(answer, NotYet)
    assert answer.blocker == "store"
    store.full = False
    assert isinstance(holder.admit(pod("db")), Admitted)
    assert CPU_STATE in store.data()


def test_release_gives_everything_back() -> None:
    """After the last release the store and the allocators are as at the start."""
    store = MemoryStore(FORMATS)
    holder = started(store)
    for name in ("a", "b"):
        holder.admit(pod(name, 2, "x", "y"))
    holder.release("a", "x")
    assert cpus(holder, Owner("a", "x")) == ""
    assert cpus(holder, Owner("a", "y")) != ""
    for name in ("b", "a", "a", "unknown"):
        holder.release(name)
    assert dict(store.data()) == {}
    assert holder.snapshot.allocators == empty().allocators


def test_a_member_that_is_released_takes_its_own_binding_along() -> None:
    """The other members' containers stay bound, through a restart as well."""
    store = MemoryStore(FORMATS)
    holder = started(store)
    holder.admit(pod("a", 2, "x", "y"))
    for name in ("x", "y"):
        holder.before_start(Owner("a", name), f"c-{name}")
    holder.release("a", "x")
    again = started(restarted(store))
    for one in (holder, again):
        assert not one.after_stop(Owner("a", "x"), "c-x")
        assert one.after_stop(Owner("a", "y"), "c-y")


def test_memory_that_nobody_pins_is_not_remembered() -> None:
    """With the policy None a row holds CPUs alone, and a restart changes nothing."""
    unpinned = UnpinnedMemory()
    snapshot = attrs.evolve(empty(), allocators=(empty().allocators[0], unpinned))
    store = MemoryStore(FORMATS)
    first = node(store, snapshot=snapshot)
    assert first.start().is_clean
    first.admit(pod("a"))
    assert list(first.records["a"].grants) == ["cpu"]
    second = node(restarted(store), snapshot=snapshot)
    assert second.start().is_clean
    assert second.snapshot.allocators == first.snapshot.allocators


def test_a_node_keeps_devices_as_a_ledger_does() -> None:
    """One allocator of a node passes the check of every keeper of devices."""

    def make(devices: DeviceAllocator) -> HeldAllocator[DeviceAllocator]:
        snapshot = attrs.evolve(empty(), allocators=(devices,))
        holder = NodeAllocator(snapshot, MemoryStore(FORMATS))
        holder.start()
        return holder.allocator(DeviceAllocator)

    check_allocator_keeper(make)
    gpus = make(DeviceAllocator(name="gpus"))
    gpus.alter(lambda one: attrs.evolve(one, nodes=(7,)))
    assert gpus.current() == DeviceAllocator(name="gpus", nodes=(7,))


def test_a_container_is_bound_and_confined() -> None:
    """CPUs and memory nodes of the grant; shared ones for who holds none."""
    holder = started(MemoryStore(FORMATS))
    holder.admit(pod("db", 4))
    own = holder.before_start(Owner("db", "app"), "c1")
    assert str(own.cpus) == cpus(holder, Owner("db", "app"))
    assert own.cpus == own.exclusive
    assert own.mems is not None
    best_effort = Pod.from_manifest({"metadata": {"name": "x"}, "spec": {"containers": [{"name": "c"}]}})
    holder.admit(best_effort)
    shared = holder.before_start(Owner(best_effort.uid, "c"), "c2")
    assert shared.cpus is not None
    assert not shared.exclusive
    assert shared.cpus.isdisjoint(own.exclusive)


def test_a_late_stop_leaves_the_successor_alone() -> None:
    """Only the container that is bound is unbound; an unknown owner cannot start."""
    store = MemoryStore(FORMATS)
    holder = started(store)
    holder.admit(pod("db"))
    owner = Owner("db", "app")
    holder.before_start(owner, "old")
    holder.before_start(owner, "new")
    assert not holder.after_stop(owner, "old")
    assert holder.records["db"].bound == {"app": "new"}
    again = started(restarted(store))
    assert again.after_stop(owner, "new")
    assert again.records["db"].bound == {}
    assert not again.after_stop(Owner("nobody", "app"), "new")
    with pytest.raises(NotAdmittedError, match="admit"):
        holder.before_start(Owner("db", "other"), "x")


def test_stale_workloads_go_only_when_the_runtime_confirms() -> None:
    """Neither what is wanted nor what runs is released, and nothing while the runtime is silent."""
    store, runtime = MemoryStore(FORMATS), FakeRuntime()
    holder = started(store, runtime)
    for name in ("wanted", "runs", "stale"):
        holder.admit(pod(name))
    runtime.start(Owner("runs", "app"), "1")
    runtime.reachable = False
    with pytest.raises(RetryableError):
        holder.release_stale({"wanted"})
    runtime.reachable = True
    assert holder.release_stale({"wanted"}) == ("stale",)
    assert sorted(holder.records) == ["runs", "wanted"]
    runtime.stop("1")
    assert holder.release_stale({"wanted"}) == ("runs",)


def test_a_changed_machine_is_a_report_and_not_a_failure() -> None:
    """Workloads stay, move or have to go; nothing new comes in until the report is accepted."""
    store = MemoryStore(FORMATS)
    first = started(store)
    first.admit(pod("small", 1))
    first.admit(pod("large", 6))
    smaller = machine_from_text("1 socket x 2 cores x 2 threads, memory=8Gi")
    second = node(restarted(store), snapshot=empty(smaller))
    report = second.start()
    assert not report.is_clean
    assert set(report.evicted) == {"large"}
    assert isinstance(second.admit(pod("small", 1)), Admitted)
    waiting = second.admit(pod("new", 1))
    assert isinstance(waiting, NotYet)
    assert "accepted" in waiting.message
    second.accept()
    assert isinstance(second.admit(pod("new", 1)), Admitted)
    assert "large" not in second.records
    assert "evict large" in str(report)


def test_moves_are_remembered_once_accepted() -> None:
    """CPUs that became reserved are exchanged, and a third start is clean."""
    store = MemoryStore(FORMATS)
    started(store).admit(pod("db", 2))
    later = restarted(store)
    second = node(later, snapshot=empty(reserved="0-1,8-9"))
    report = second.start()
    assert report.moved
    second.accept()
    third = node(restarted(later), snapshot=empty(reserved="0-1,8-9"))
    assert third.start().is_clean
    assert cpus(third, Owner("db", "app")) == cpus(second, Owner("db", "app"))


def test_damage_is_reported_and_holds_back_new_pods() -> None:
    """A row that makes no sense is named; the others are kept."""
    store = MemoryStore(FORMATS)
    holder = started(store)
    for name in ("a", "b"):
        holder.admit(pod(name))
    data = dict(store.data())
    data["workload.a"] = data["workload.a"][:-9]
    data["workload.c"] = JsonCheckpoint(kind="other", version=7, value={}).marshal()
    second = node(MemoryStore(FORMATS, data=data))
    report = second.start()
    assert {one.key for one in report.damaged} == {"workload.a", "workload.c"}
    assert report.kept == ("b",)
    assert isinstance(second.admit(pod("b")), Admitted)
    assert isinstance(second.admit(pod("new")), NotYet)
    second.accept()
    assert isinstance(second.admit(pod("new")), Admitted)


def test_the_kubelet_can_take_over() -> None:
    """On request the kubelet's own state file is written with each commit."""
    store = MemoryStore(FORMATS)
    holder = NodeAllocator(empty(), store, kubelet_files=["cpu", "memory"])
    holder.start()
    at_start = dict(store.data())
    holder.admit(pod("db", 2))
    state = CpuManagerState.unmarshal(store.data()[CPU_STATE])
    state.verify()
    assert state.entries == {"db": {"app": cpus(holder, Owner("db", "app"))}}
    holder.release("db")
    assert dict(store.data()) == at_start


def test_an_allocator_that_cannot_be_remembered_is_refused_at_once() -> None:
    """Its grants would be lost at the next restart; the error says what it lacks."""
    with pytest.raises(NotRememberedError, match=r"moody \(Moody\) .* give it `remembered` and `restored`"):
        NodeAllocator(attrs.evolve(empty(), allocators=(Moody(),)), MemoryStore(FORMATS))


@pytest.mark.parametrize("asked", ["cpu", ["cpus"], ["cpu", "example.com/gpu"]])
def test_a_kubelets_file_that_nobody_keeps_is_refused(asked: str | list[str]) -> None:
    """Text, a typo, and an allocator without such a file: the hand-back would be lost without a word."""
    fake = FakeCpuAllocator(units=FakeAllocator.of("example.com/gpu", {0: 1}))
    snapshot = attrs.evolve(empty(), allocators=(*empty().allocators, fake))
    with pytest.raises(NoKubeletFileError, match="which are: cpu, memory"):
        NodeAllocator(snapshot, MemoryStore(FORMATS), kubelet_files=asked)


def test_two_allocators_with_one_kubelets_file_are_refused() -> None:
    """The one would write over what the other wrote."""
    twins = attrs.evolve(empty(), allocators=(DeviceAllocator(name="gpus"), DeviceAllocator(name="nics")))
    with pytest.raises(NoKubeletFileError, match="'nics' beside 'gpus', which keeps the same file"):
        NodeAllocator(twins, MemoryStore(FORMATS), kubelet_files=["gpus", "nics"])
    NodeAllocator(twins, MemoryStore(FORMATS), kubelet_files=["nics"])


@attrs.frozen
class Moody:
    """An allocator that counts how often it was altered."""

    mood: int = 0
    name: str = "moody"

    def hints(self, _claims: object, /) -> dict[str, None]:
        """No preference."""
        return {}

    def allocate(self, _claim: object, _affinity: TopologyHint, /) -> Allocator | Shortfall:
        """Nothing to do."""
        return self

    def release(self, _workload: str, _member: str | None = None, /) -> Allocator:
        """Nothing to do."""
        return self


def test_an_allocator_can_be_altered() -> None:
    """Its successor is the current one; an unchanged answer changes nothing."""
    holder = started(MemoryStore(FORMATS))
    holder.admit(pod("db"))
    before = holder.snapshot
    cpu = before[CpuAllocator]
    assert holder.alter("cpu", lambda one: one) == (cpu, cpu)
    assert holder.snapshot is before
    was, moved = holder.alter("cpu", lambda one: one.release("db"))
    assert was is cpu
    assert holder.snapshot["cpu"] is moved
    with pytest.raises(UnknownAllocatorError, match="no allocator cpus"):
        holder.alter("cpus", lambda one: one)
    assert "cpu" not in holder.records["db"].grants


def test_the_report_is_a_line_for_each_change() -> None:
    """A clean one is a single line that says what happened since."""
    fresh = node(MemoryStore(FORMATS))
    assert str(fresh.start()) == "start after new: 0 workloads kept"
    with pytest.raises(ValueError, match="started before"):
        fresh.start()
    assert Contents().since is Since.NEW


@pytest.mark.parametrize("name", ["cpu", "memory"])
def test_what_pods_are_granted_is_remembered(name: str) -> None:
    """It comes back through JSON."""
    check_remembers(empty()[name], [workload_of(pod(one, 2, "a", "b")) for one in ("x", "y")])


def test_an_allocator_of_a_node_has_the_class_that_was_asked_for() -> None:
    """By class where there is one, by name where there are several; another class is an error."""
    twins = (DeviceAllocator(name="gpus"), DeviceAllocator(name="nics"))
    holder = NodeAllocator(attrs.evolve(empty(), allocators=twins), MemoryStore(FORMATS))
    holder.start()
    with pytest.raises(UnknownAllocatorError, match="ask by name"):
        holder.allocator(DeviceAllocator)
    assert holder.allocator(DeviceAllocator, "nics").current() == twins[1]
    with pytest.raises(ConfigurationError, match="gpus is a DeviceAllocator, no CpuAllocator"):
        holder.allocator(CpuAllocator, "gpus").current()


def test_the_fake_runtime_is_a_runtime() -> None:
    """It is held to the check that real ones are held to."""
    runtime = FakeRuntime()
    numbers = iter("12345678")

    def start(owner: Owner) -> str:
        number = next(numbers)
        runtime.start(owner, number)
        return number

    check_runtime(runtime, start, runtime.stop)

    def start_again(owner: Owner) -> str:
        runtime.start(owner, "9")
        return "9"

    with pytest.raises(AssertionError, match="twice"):
        check_runtime(runtime, start_again, runtime.stop)
