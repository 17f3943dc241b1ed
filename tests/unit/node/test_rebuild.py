"""Nodes that are rebuilt from what runs, taken over from a kubelet, and looked at."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import attrs
import pytest

from nodealloc.checkpoint import (
    CPU_STATE,
    DEVICE_STATE,
    MEMORY_STATE,
    Checkpoint,
    CpuManagerState,
    CpuManagerStateV1,
    DeviceManagerState,
    JsonCheckpoint,
    MemoryBlock,
    MemoryManagerState,
    MemoryStore,
    PodDevices,
)
from nodealloc.cpuset import CpuAllocator, CPUSet, NonePolicy
from nodealloc.devices import Device, DeviceAllocator, DeviceList, Inventory, Phase, PluginOptions
from nodealloc.idset import NodeSet
from nodealloc.machine import machine_from_cadvisor, machine_from_text
from nodealloc.memblocks import MemoryAllocator
from nodealloc.node import (
    FORMATS,
    AdoptionError,
    Confinement,
    NodeAllocator,
    confinement_of,
    describe,
    holdings,
    resource_use,
)
from nodealloc.node._codec import to_checkpoint
from nodealloc.podspec import Json, Pod
from nodealloc.testing.topology import workload
from nodealloc.topology import (
    Admitted,
    Claim,
    Hints,
    NotYet,
    Owner,
    Policy,
    Restored,
    Snapshot,
    TopologyHint,
)

MACHINE = machine_from_text("2 sockets x 4 cores x 2 threads, memory=8Gi")


def empty() -> Snapshot:
    """A node with CPUs, memory and devices, and nothing held."""
    return Snapshot.of(
        MACHINE,
        policy=Policy.parse("best-effort"),
        allocators=(
            DeviceAllocator(nodes=(0, 1)),
            CpuAllocator.of(MACHINE, reserved=CPUSet.of(0)),
            MemoryAllocator.of(MACHINE, reserved={0: {"memory": 256 << 20}}),
        ),
    )


def pod(name: str, cpu: int = 2) -> Pod:
    """A guaranteed pod of one container."""
    limits = {"cpu": cpu, "memory": "64Mi"}
    containers = [{"name": "app", "resources": {"limits": limits}}]
    return Pod.from_manifest({"metadata": {"name": name, "uid": name}, "spec": {"containers": containers}})


def damaged() -> NodeAllocator:
    """A node whose only record cannot be read."""
    node = NodeAllocator(empty(), MemoryStore(FORMATS, data={"workload.db": b"{"}))
    assert not node.start().is_clean
    return node


def test_what_runs_is_adopted_where_it_runs() -> None:
    """The CPUs and nodes of a running container are held again, and nobody else gets them."""
    store = MemoryStore(FORMATS, data={"workload.db": b"{"})
    node = NodeAllocator(empty(), store)
    assert not node.start().is_clean
    where = Confinement(cpus=CPUSet.of(5, 13), exclusive=CPUSet.of(5, 13), mems=NodeSet.of(1))
    node.adopt(pod("db"), {"app": where})
    node.adopt(pod("db"), {})
    assert isinstance(node.admit(pod("new")), NotYet)
    node.accept()
    assert node.before_start(Owner("db", "app"), "c1").cpus == CPUSet.of(5, 13)
    assert [one.nodes for one in holdings(node.snapshot) if one.resource == "memory"] == [NodeSet.of(1)]
    assert isinstance(node.admit(pod("db")), Admitted)
    for number in range(6):
        node.admit(pod(f"p{number}"))
    taken = [CPUSet.parse(one.what) for one in holdings(node.snapshot) if one.resource == "cpu"]
    assert sum(map(len, taken)) == len({cpu for cpus in taken for cpu in cpus}) == 14
    later = NodeAllocator(empty(), MemoryStore(FORMATS, data=store.data()))
    assert "db" in later.start().kept
    assert holdings(later.snapshot) == holdings(node.snapshot)


def test_what_runs_on_others_cpus_is_not_adopted() -> None:
    """CPUs that are held, reserved or absent are refused with the owner and the remedy."""
    node = damaged()
    first = Confinement(exclusive=CPUSet.of(5, 13))
    node.adopt(pod("db"), {"app": first})
    before = node.snapshot
    for cpus in (CPUSet.of(5), CPUSet.of(0, 8), CPUSet.of(99)):
        with pytest.raises(AdoptionError, match="other/app runs where it cannot stay") as caught:
            node.adopt(pod("other"), {"app": Confinement(exclusive=cpus)})
        assert caught.value.owner == Owner("other", "app")
    assert node.snapshot is before


def test_what_has_no_memory_left_where_it_runs_is_not_adopted() -> None:
    """The static policy would widen to a second node; a container that runs has its pages on one."""
    node = damaged()
    large = Pod.from_manifest(
        {
            "metadata": {"name": "large", "uid": "large"},
            "spec": {"containers": [{"name": "app", "resources": {"limits": {"cpu": 1, "memory": "9Gi"}}}]},
        }
    )
    with pytest.raises(AdoptionError, match="nodes 1 have too little memory left, 0-1 would"):
        node.adopt(large, {"app": Confinement(exclusive=CPUSet.of(5), mems=NodeSet.of(1))})
    node.adopt(large, {"app": Confinement(exclusive=CPUSet.of(5), mems=NodeSet.of(0, 1))})
    assert {one.nodes for one in holdings(node.snapshot) if one.resource == "memory"} == {NodeSet.of(0, 1)}


def test_a_kubelets_node_is_taken_over(vectors: Path) -> None:
    """The genuine files of a node with four NUMA nodes: everybody stays where they are."""
    folder = vectors / "state_files"
    machine = machine_from_cadvisor(json.loads((folder / "four-nodes.machineinfo.json").read_text()))
    files = {
        key: (folder / f"four-nodes.{key}").read_bytes() for key in (CPU_STATE, MEMORY_STATE, DEVICE_STATE)
    }
    start = Snapshot.of(
        machine,
        policy=Policy.parse("single-numa-node"),
        allocators=(
            DeviceAllocator(nodes=tuple(machine.nodes)),
            CpuAllocator.of(machine, reserved=CPUSet.of(0)),
            MemoryAllocator.of(machine, reserved={0: {"memory": 209715200}}),
        ),
    )
    store = MemoryStore(FORMATS, data=files)
    node = NodeAllocator(start, store)
    report = node.start()
    assert report.taken_over
    assert set(report.kept) == {"g1", "g2"}
    assert "taken over" in str(report)
    cpus = {one.owner.workload: one.what for one in holdings(node.snapshot) if one.resource == "cpu"}
    assert cpus == {"g1": "2-3", "g2": "4-5"}
    devices = {
        one.owner.workload: one.what
        for one in holdings(node.snapshot)
        if one.resource == "example.com/deviceA"
    }
    assert devices == {"g1": "A1", "g2": "A2"}
    spec = {"containers": [{"name": "c"}]}
    answer = node.admit(Pod.from_manifest({"metadata": {"name": "g1", "uid": "g1"}, "spec": spec}))
    assert isinstance(answer, Admitted)
    assert node.records["g1"].workload.claims[0].owner == Owner("g1", "c")
    later = NodeAllocator(start, MemoryStore(FORMATS, data=store.data()))
    assert not later.start().taken_over
    assert holdings(later.snapshot) == holdings(node.snapshot)


def test_a_device_of_two_pods_is_told_where_it_is_taken_over() -> None:
    """A kubelet lets both keep it and says nothing; here both keep it, and whoever reads the report knows."""
    gpu = "example.com/gpu"
    entries = (
        PodDevices(pod_uid="one", container_name="a", resource_name=gpu, device_ids={0: ("g0", "g1")}),
        PodDevices(pod_uid="two", container_name="b", resource_name=gpu, device_ids={0: ("g1",)}),
        PodDevices(pod_uid="two", container_name="init", resource_name=gpu, device_ids={0: ("g1",)}),
    )
    store = MemoryStore(
        FORMATS, data={DEVICE_STATE: DeviceManagerState(pod_device_entries=entries).marshal()}
    )
    start = Snapshot.of(machine_from_text("4 cores"), allocators=(DeviceAllocator(),))
    node = NodeAllocator(start, store)
    report = node.start()
    assert set(report.kept) == {"one", "two"}
    told = f"{gpu} g1 is held by one/a, two/b, two/init at once: all keep it, and nobody else gets it; "
    assert report.notes == (f"{told}end all of these pods but one",)
    again = NodeAllocator(start, MemoryStore(FORMATS, data=store.data())).start()
    assert again.notes == report.notes
    node.release("two")
    assert NodeAllocator(start, MemoryStore(FORMATS, data=store.data())).start().notes == ()


def test_cpus_that_a_kubelet_wrote_down_twice_are_told() -> None:
    """A kubelet would not start on this file; here the pod keeps its CPUs alone, and the report says so."""
    file = CpuManagerState(
        policy_name="static",
        default_cpuset="0,2-3",
        entries={"one": {"a": "1-2"}, "two": {"b": "3"}},
    )
    store = MemoryStore(FORMATS, data={CPU_STATE: file.marshal()})
    machine = machine_from_text("4 cores")
    cpus = CpuAllocator.of(machine, reserved=CPUSet.of(0))
    node = NodeAllocator(Snapshot.of(machine, allocators=(cpus,)), store)
    report = node.start()
    told = "stand in defaultCpuSet, too, on which a kubelet does not start"
    assert [note.partition(": they are its own")[0] for note in report.notes] == [
        f"cpu_manager_state: CPUs 2 of one/a {told}",
        f"cpu_manager_state: CPUs 3 of two/b {told}",
    ]
    assert report.kept == ("one", "two")


@pytest.mark.parametrize(("uid", "words"), [("", "needs a name"), ("x" * 300, "at most 200 are allowed")])
def test_a_pod_that_nothing_can_be_kept_of_is_told_at_the_start(uid: str, words: str) -> None:
    """It was taken over, and each commit from then on was refused, whoever asked for something."""
    file = CpuManagerState(policy_name="static", default_cpuset="0,3", entries={uid: {"a": "1-2"}})
    node = NodeAllocator(empty(), MemoryStore(FORMATS, data={CPU_STATE: file.marshal()}))
    (damaged,) = node.start().damaged
    assert damaged.key == CPU_STATE
    assert damaged.reason.startswith("a pod in it has a uid that nothing can be kept under: ")
    assert words in damaged.reason


@pytest.mark.parametrize("kind", ["cpu_manager_state", "memory_manager_state", "kubelet_internal_checkpoint"])
def test_every_recorded_file_is_taken_over_or_reported(kind: str, vectors: Path) -> None:
    """Files of other machines end in a report, never in an exception."""
    with gzip.open(vectors / "checkpoint_files.jsonl.gz", "rt") as lines:
        rows = [row for row in map(json.loads, lines) if row["kind"] == kind][:40]
    for row in rows:
        node = NodeAllocator(empty(), MemoryStore(FORMATS, data={kind: row["file"].encode()}))
        assert str(node.start()).startswith("start after")


def test_views_tell_what_is_held_and_left() -> None:
    """CPUs, memory and devices by owner and by node; releasing restores the view."""
    devices = DeviceList.of([Device("a", numa_nodes=0b01), Device("b")], nodes=(0, 1))
    serving = Inventory(resource="example.com/gpu", phase=Phase.CONNECTING, generation=1, since_s=0.0)
    serving = serving.listed(1, devices, PluginOptions(), now_s=0.0)
    node = NodeAllocator(empty(), MemoryStore(FORMATS))
    node.start()
    node.allocator(DeviceAllocator).alter(lambda one: one.with_inventory(serving))
    before = resource_use(node.snapshot)
    asked = {"cpu": 2, "memory": "64Mi", "example.com/gpu": 2}
    spec = {"containers": [{"name": "app", "resources": {"limits": asked}}]}
    answer = node.admit(Pod.from_manifest({"metadata": {"name": "t", "uid": "t"}, "spec": spec}))
    assert isinstance(answer, Admitted), answer
    held = {one.resource: one for one in holdings(node.snapshot)}
    assert (held["cpu"].amount, held["memory"].amount, held["example.com/gpu"].what) == (2, 64 << 20, "a, b")
    left = {(one.resource, one.node): one.available for one in resource_use(node.snapshot)}
    assert left["example.com/gpu", 0] == left["example.com/gpu", None] == 0
    assert left["cpu", 0] + left["cpu", 1] == 13
    text = describe(node.snapshot)
    assert "t/app holds 2 example.com/gpu on nodes 0: a, b" in text
    assert "example.com/gpu on node 0: 0 of 1 left" in text
    assert "example.com/gpu on no node: 0 of 1 left" in text
    node.release("t")
    assert resource_use(node.snapshot) == before
    assert holdings(node.snapshot) == ()


def test_nothing_is_left_to_give_where_nobody_gets_cpus_of_their_own() -> None:
    """Under the policy none, as a kubelet reports no exclusive CPUs."""
    node = attrs.evolve(empty(), allocators=(CpuAllocator(policy=NonePolicy.of(MACHINE)),))
    assert {(one.allocatable, one.available) for one in resource_use(node)} == {(0, 0)}


class CountingStore(MemoryStore):
    """A store that counts how often each key was committed."""

    def __init__(self) -> None:
        super().__init__(FORMATS)
        self.commits = Counter[str]()

    def commit(self, changes: Mapping[str, Checkpoint | None], /) -> None:
        """Count, and store."""
        self.commits.update(list(changes))
        super().commit(changes)


def test_the_kubelets_device_file_is_written_when_a_kubelet_would_read_something_else() -> None:
    """A new resource, a grant, an end; not when devices fall ill, come or go."""
    store = CountingStore()
    node = NodeAllocator(empty(), store, kubelet_files=["devices"])
    node.start()
    devices = node.allocator(DeviceAllocator)

    def listed(count: int, *ill: int) -> int:
        found = [Device(f"gpu-{n}", "Unhealthy" if n in ill else "Healthy") for n in range(count)]
        known = devices.current().inventories.get("example.com/gpu")
        known = known or Inventory(resource="example.com/gpu").registered(1, now_s=0.0)
        new = known.listed(1, DeviceList.of(found, nodes=(0, 1)), PluginOptions(), now_s=0.0)
        devices.alter(lambda one: one.with_inventory(new))
        return store.commits[DEVICE_STATE]

    assert [listed(2), listed(2, 0), listed(3), listed(1), listed(4)] == [2] * 5
    spec = {"containers": [{"name": "app", "resources": {"limits": {"example.com/gpu": 1}}}]}
    assert isinstance(
        node.admit(Pod.from_manifest({"metadata": {"name": "t", "uid": "t"}, "spec": spec})), Admitted
    )
    assert store.commits[DEVICE_STATE] == 3
    node.admit(pod("no-devices"))
    rows = store.commits["workload.t"]
    assert listed(4, 3) == 3
    assert store.commits["workload.t"] == rows == 1, "a row was written whose grants are as they were"
    state = store.read().get(DEVICE_STATE, DeviceManagerState)
    assert state is not None
    assert (state.registered_devices or {}).keys() == {"example.com/gpu"}
    assert [one.pod_uid for one in state.pod_device_entries or ()] == ["t"]
    node.release("t")
    assert store.commits[DEVICE_STATE] == 4


SENSELESS: dict[str, Checkpoint] = {
    CPU_STATE: CpuManagerState(policy_name="static", default_cpuset="x"),
    MEMORY_STATE: MemoryManagerState(
        policy_name="Static",
        entries={"p": {"c": (MemoryBlock(numa_affinity=(1 << 40,), type="memory", size=5),)}},
    ),
    DEVICE_STATE: DeviceManagerState(
        pod_device_entries=(
            PodDevices(pod_uid="p", container_name="c", resource_name="r", device_ids={-7: ("a",)}),
        )
    ),
}


@pytest.mark.parametrize("key", SENSELESS)
def test_a_sound_kubelet_file_that_makes_no_sense_is_reported(key: str) -> None:
    """Its checksum is right and its lists name what no machine has: a report, no exception."""
    node = NodeAllocator(empty(), MemoryStore(FORMATS, data={key: SENSELESS[key].marshal()}))
    report = node.start()
    assert [one.key for one in report.damaged] == [key]
    assert isinstance(node.admit(pod("new")), NotYet)


@pytest.mark.parametrize("value", [[1], None, "a", 3])
def test_a_sound_record_that_is_no_mapping_is_reported(value: Json) -> None:
    """Its checksum is right, and it is no record at all: a report, no exception."""
    made = JsonCheckpoint(kind="workload", version=1, value=value)
    node = NodeAllocator(empty(), MemoryStore(FORMATS, data={"workload.a": made.marshal()}))
    assert [one.key for one in node.start().damaged] == ["workload.a"]


@pytest.mark.parametrize("name", ["cpu", "memory", "devices"])
def test_a_sound_record_with_senseless_grants_is_reported(name: str) -> None:
    """What no allocator wrote damages its own workload; the others are kept."""
    store = MemoryStore(FORMATS)
    first = NodeAllocator(empty(), store)
    first.start()
    for one in ("good", "bad"):
        first.admit(pod(one))
    record = attrs.evolve(first.records["bad"], grants={**first.records["bad"].grants, name: 5})
    store.commit({"workload.bad": to_checkpoint(record)})
    later = NodeAllocator(empty(), MemoryStore(FORMATS, data=store.data()))
    report = later.start()
    assert [one.key for one in report.damaged] == ["workload.bad"]
    assert report.kept == ("good",)
    assert {one.owner.workload for one in holdings(later.snapshot)} == {"good"}


def test_a_record_under_another_key_is_reported() -> None:
    """A file that somebody copied would outlive the release of its workload, and come back."""
    store = MemoryStore(FORMATS)
    first = NodeAllocator(empty(), store)
    first.start()
    first.admit(pod("db"))
    data = {**store.data(), "workload.copy": store.data()["workload.db"]}
    later_store = MemoryStore(FORMATS, data=data)
    later = NodeAllocator(empty(), later_store)
    report = later.start()
    assert [(one.key, one.reason) for one in report.damaged] == [
        ("workload.copy", "it is the record of db, put under another key")
    ]
    assert report.kept == ("db",)
    later.accept()
    later.release("db")
    assert set(later_store.data()) == {"set-aside.workload.copy"}


LONG = "workload." + 190 * "x"


@pytest.mark.parametrize(
    ("key", "kept_as"),
    [
        ("workload.db", "set-aside.workload.db"),
        (CPU_STATE, "set-aside.cpu_manager_state"),
        (LONG, "set-aside.workload." + 164 * "x" + "~"),
    ],
)
@pytest.mark.parametrize("by", ["accept", "adopt"])
def test_what_makes_no_sense_is_kept_when_its_key_is_written_anew(key: str, kept_as: str, by: str) -> None:
    """Byte for byte, for whoever can read it; the next start is clean."""
    old = CpuManagerStateV1(policy_name="static", default_cpuset="0,3-15", entries={"4f3c": "1-2"})
    strange: Checkpoint = old if key == CPU_STATE else JsonCheckpoint(kind="other", version=7, value=["ä"])
    store = MemoryStore(FORMATS, data={key: strange.marshal()})
    node = NodeAllocator(empty(), store, kubelet_files=["cpu"])
    [damage] = node.start().damaged
    assert f"{key}, and as {kept_as}" in damage.kept_as
    assert set(store.data()) == {key}
    if by == "adopt":
        node.adopt(pod("db"), {"app": Confinement(exclusive=CPUSet.parse("1,9"), mems=NodeSet.of(0))})
        assert [one for one in store.data() if one.startswith(kept_as)]
    node.accept()
    [aside] = [one for one in store.data() if one.startswith("set-aside.")]
    assert aside.startswith(kept_as)
    kept = JsonCheckpoint.unmarshal(store.data()[aside])
    assert kept.value == {"key": key, "text": strange.marshal().decode()}
    node.accept()
    later = NodeAllocator(empty(), MemoryStore(FORMATS, data=store.data()), kubelet_files=["cpu"])
    report = later.start()
    assert report.is_clean
    assert report.kept == (("db",) if by == "adopt" else ())


def test_a_kubelet_file_of_the_first_layout_waits_for_the_runtime() -> None:
    """It names container ids: reported, and nobody new comes in over CPUs that are in use."""
    old = CpuManagerStateV1(policy_name="static", default_cpuset="0,3-15", entries={"4f3c": "1-2"})
    node = NodeAllocator(empty(), MemoryStore(FORMATS, data={CPU_STATE: old.marshal()}))
    report = node.start()
    assert [one.key for one in report.damaged] == [CPU_STATE]
    assert "migrate" in str(report)
    assert isinstance(node.admit(pod("new")), NotYet)


def test_a_kubelets_file_that_nobody_reads_is_told(vectors: Path) -> None:
    """The node is taken over as far as its allocators go, and the report names what was left."""
    folder = vectors / "state_files"
    files = {key: (folder / f"four-nodes.{key}").read_bytes() for key in (CPU_STATE, MEMORY_STATE)}
    machine = machine_from_cadvisor(json.loads((folder / "four-nodes.machineinfo.json").read_text()))
    cpus = CpuAllocator.of(machine, reserved=CPUSet.of(0))
    node = NodeAllocator(Snapshot.of(machine, allocators=[cpus]), MemoryStore(FORMATS, data=files))
    report = node.start()
    assert report.kept == ("g1", "g2")
    assert "memory_manager_state is there, and no allocator of this node reads it" in str(report)


def test_a_kubelets_file_is_read_once(vectors: Path) -> None:
    """Of two device allocators the first holds what the file says, the other nothing."""
    data = {DEVICE_STATE: (vectors / "state_files" / f"four-nodes.{DEVICE_STATE}").read_bytes()}
    twins = [DeviceAllocator(nodes=(0, 1), name=name) for name in ("gpus", "nics")]
    node = NodeAllocator(Snapshot.of(MACHINE, allocators=twins), MemoryStore(FORMATS, data=data))
    assert node.start().taken_over
    assert set(node.allocator(DeviceAllocator, "gpus").current().grants) == {"g1", "g2"}
    assert node.allocator(DeviceAllocator, "nics").current().grants == {}


def test_records_of_version_1_are_read(vectors: Path) -> None:
    """Byte for byte what an earlier release wrote: everybody holds what they held, and nothing is written."""
    recorded = json.loads((vectors / "state_files" / "node-records-v1.json").read_text())
    store = MemoryStore(FORMATS, data={key: text.encode() for key, text in recorded["store"].items()})
    before = dict(store.data())
    node = NodeAllocator(empty(), store, kubelet_files=["cpu", "memory", "devices"])
    assert str(node.start()) == "start after new: 4 workloads kept"
    held = [
        [one.owner.workload, one.owner.member, one.resource, one.amount, str(one.nodes), one.what]
        for one in holdings(node.snapshot)
    ]
    assert held == recorded["holdings"]
    for owner, (cpus, exclusive, mems) in recorded["confinements"].items():
        where = confinement_of(node.snapshot, Owner(*owner.split("|")))
        assert (str(where.cpus), str(where.exclusive)) == (cpus, exclusive)
        assert (None if where.mems is None else str(where.mems)) == mems
    assert node.records["db"].bound == {"server": "c1"}
    rows = {key: data for key, data in store.data().items() if key.startswith("workload.")}
    assert rows == {key: data for key, data in before.items() if key.startswith("workload.")}
    assert store.data()[CPU_STATE] == before[CPU_STATE]
    assert store.data()[MEMORY_STATE] == before[MEMORY_STATE]


@attrs.frozen
class Licences:
    """An allocator that can do nothing but grant and be remembered."""

    held: frozenset[str] = frozenset()
    name: str = "licences"

    def hints(self, _claims: Sequence[Claim], /) -> Hints:
        """No preference."""
        return {}

    def allocate(self, claim: Claim, _affinity: TopologyHint, /) -> Licences:
        """One each."""
        asks = "example.com/licence" in claim.amounts
        return attrs.evolve(self, held=self.held | {claim.owner.workload}) if asks else self

    def release(self, workload: str, _member: str | None = None, /) -> Licences:
        """Give it back."""
        return attrs.evolve(self, held=self.held - {workload})

    def remembered(self, workload: str, /) -> Json:
        """That it has one."""
        return True if workload in self.held else None

    def restored(self, grants: Mapping[str, Json], /) -> Restored:
        """As it was."""
        return Restored(allocator=attrs.evolve(self, held=frozenset(grants)))


def test_what_an_allocator_cannot_adopt_is_not_adopted() -> None:
    """Without the ability nobody knows what a container uses; one that asks for nothing of it is taken in."""
    cpus = empty()[CpuAllocator]
    store = MemoryStore(FORMATS, data={"workload.db": b"{"})
    node = NodeAllocator(Snapshot.of(MACHINE, allocators=[cpus, Licences()]), store)
    node.start()
    where = {"app-0": Confinement(exclusive=CPUSet.of(5))}
    with pytest.raises(AdoptionError, match="licences cannot tell what it uses"):
        node.adopt(workload("a", {"cpu": 1, "example.com/licence": 1}), where)
    node.adopt(workload("b", {"cpu": 1}), where)
    assert [one.owner.workload for one in holdings(node.snapshot)] == ["b"]
