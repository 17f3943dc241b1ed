"""What people type by mistake: taken for what it says, or refused in a sentence of the library's own."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from nodealloc import checkpoint, cpuset, devices, dsw_asw, machine, memblocks, pluginreg
from nodealloc import topology as t
from nodealloc.allocatable import Reservation, ReservationError
from nodealloc.cgroups import CgroupName, Limits, TreeOptions
from nodealloc.cpuset import CpuAllocator, CpuLayout, CPUSet, StaticPolicy
from nodealloc.cpuset._state import CpuState
from nodealloc.devices.plugins import DevicePlugins
from nodealloc.errors import ConfigurationError, DecodeError, NodeallocError
from nodealloc.idset import NodeSet
from nodealloc.machine import machine_from_text
from nodealloc.memblocks import MemoryAllocator
from nodealloc.node import FORMATS, NodeAllocator
from nodealloc.podfacts import NodeView
from nodealloc.podspec import Container, Pod, Quantity, Variable, Volume
from nodealloc.testing.cgroups import FakeCgroups
from nodealloc.testing.dsw_asw import ManualExecutor
from nodealloc.testing.podfacts import FakePods
from nodealloc.testing.topology import FakeAllocator, workload
from nodealloc.volumes import SafeRoot, VolumeManager, VolumeSpec
from nodealloc.volumes.plugins import HostPath
from tests.unit.test_ports import Counting

MACHINE = machine_from_text("2 sockets x 4 cores, memory=8Gi")
FOUND = machine.Discovery(machine=MACHINE)
NUMA = t.NumaTopology(nodes=(0, 1), distances={0: {0: 10, 1: 21}, 1: {0: 21, 1: 10}})
CPUS = CpuAllocator.of(MACHINE)
SNAPSHOT = t.Snapshot(numa=NUMA, allocators=(CPUS,))
JOB = workload("job", {"cpu": 1})
OWNER = t.Owner("job", "app-0")
MANIFEST = {"metadata": {"name": "web"}, "spec": {"containers": [{"name": "app", "image": "i"}]}}

Call = Callable[[], object]


def wrong(value: object) -> Any:
    """A value of a type that does not belong there."""
    return value


def manifest(**spec: object) -> Mapping[str, object]:
    """One with a name, and this spec."""
    return {"metadata": {"name": "web"}, "spec": spec}


def container(**fields: object) -> Mapping[str, object]:
    """A manifest of one container with these fields."""
    return manifest(containers=[{"name": "app", "image": "i", **fields}])


STORE = checkpoint.MemoryStore(FORMATS)
LOOP: dict[str, Any] = {
    "desired": dsw_asw.World("desired"),
    "actual": dsw_asw.World("actual"),
    "executor": ManualExecutor(),
}


def started(store: checkpoint.Store | None = None) -> NodeAllocator:
    """A node that has read its store."""
    node = NodeAllocator(SNAPSHOT, store or checkpoint.MemoryStore(FORMATS))
    node.start()
    return node


def admitted() -> t.Placed:
    """With the job in."""
    placed = t.admit(SNAPSHOT, JOB)
    assert isinstance(placed, t.Placed)
    return placed


REFUSED: Mapping[str, tuple[Call, str]] = {
    # Admission.
    "admit a manifest": (lambda: t.admit(SNAPSHOT, wrong(MANIFEST)), "Pod.from_manifest"),
    "admit None": (lambda: t.admit(SNAPSHOT, wrong(None)), "a Pod or a Workload"),
    "admit the wrong way round": (lambda: t.admit(wrong(JOB), wrong(SNAPSHOT)), "expected a Snapshot"),
    "release from a pod": (lambda: t.release(wrong(JOB), "job"), "expected a Snapshot"),
    "release an owner": (lambda: t.release(SNAPSHOT, wrong(OWNER)), "owner.workload"),
    "release a pod": (lambda: t.release(SNAPSHOT, wrong(Pod(uid="u"))), "workload's key"),
    "a member that is no text": (lambda: t.release(SNAPSHOT, "job", wrong(OWNER)), "a member's name"),
    "policy of words": (lambda: t.Policy(name=wrong("foo")), "'single-numa-node'"),
    "policy is a machine": (lambda: t.Snapshot(numa=NUMA, policy=wrong(MACHINE)), "a Policy"),
    "snapshot policy of words": (lambda: t.Snapshot(numa=NUMA, policy=wrong("foo")), "single-numa-node"),
    "scope of words": (lambda: t.Snapshot(numa=NUMA, scope=wrong("bogus")), "'container', 'pod'"),
    "scope parsed": (lambda: t.Scope.parse(wrong(None)), "topology scope"),
    "one allocator": (lambda: t.Snapshot(numa=NUMA, allocators=wrong(CPUS)), "a tuple of allocators"),
    "no allocator": (lambda: t.Snapshot(numa=NUMA, allocators=wrong((None,))), "an allocator"),
    "numa is a machine": (lambda: t.Snapshot(numa=wrong(MACHINE)), "NumaTopology"),
    "search steps": (lambda: t.Policy(search_steps=0), "1 or more"),
    "max nodes of words": (lambda: t.Policy(max_nodes=wrong("8")), "a whole number"),
    "options as a text": (lambda: t.Policy.parse("none", wrong("a=b")), "a mapping"),
    "option not a text": (
        lambda: t.Policy.parse("none", {"prefer-closest-numa-nodes": wrong(None)}),
        "true or false",
    ),
    "nodes as a number": (lambda: t.NumaTopology(nodes=wrong(2)), "a tuple of node ids"),
    "nodes as words": (lambda: t.NumaTopology(nodes=wrong(("0", "1"))), "a tuple of node ids"),
    "distances as rows": (
        lambda: t.NumaTopology(nodes=(0, 1), distances=wrong([[10, 21], [21, 10]])),
        "node id to a mapping",
    ),
    "distances as rows in a mapping": (
        lambda: t.NumaTopology(nodes=(0, 1), distances=wrong({0: [10, 21], 1: [21, 10]})),
        "a mapping of node id",
    ),
    "merge by a word": (lambda: t.merge(wrong("restricted"), [], NUMA), "a Policy"),
    "merge on a tuple": (
        lambda: t.merge(
            t.Policy.parse("restricted"), [{"cpu": [t.TopologyHint(1, preferred=True)]}], wrong((0, 1))
        ),
        "NumaTopology",
    ),
    "a hint of text": (
        lambda: t.merge(t.Policy.parse("best-effort"), [{"cpu": [wrong(("0-1", True))]}], NUMA),
        "is no hint; give TopologyHint",
    ),
    "a hint of no nodes": (
        lambda: t.merge(t.Policy.parse("best-effort"), [{"cpu": [wrong((0, True))]}], NUMA),
        "use None for any node",
    ),
    "a hint made of text": (lambda: t.TopologyHint(wrong("0-1"), preferred=True), r"NodeSet\('0-1'\).mask"),
    "a hint made of a set": (lambda: t.TopologyHint(wrong(NodeSet.of(0)), preferred=True), "a mask of one"),
    "a hint made of no nodes": (lambda: t.TopologyHint(0, preferred=True), "None for any node, found 0"),
    "a hint below no nodes": (lambda: t.TopologyHint(-1, preferred=True), "found -1"),
    "a hint of a truth": (lambda: t.TopologyHint(wrong(True), preferred=True), "found True"),
    "a hint that may be good": (
        lambda: t.TopologyHint(1, preferred=wrong("yes")),
        "True or False, found 'yes'",
    ),
    "a workload without claims": (
        lambda: t.admit(SNAPSHOT, t.Workload(key="job", claims=())),
        "has no claims: give one for each member",
    ),
    "node: a workload without claims": (
        lambda: started().admit(t.Workload(key="job", claims=())),
        "has no claims: give one for each member",
    ),
    "a workload without a key": (
        lambda: t.admit(
            SNAPSHOT, t.Workload(key="", claims=(t.Claim(owner=t.Owner("", "rank-0"), amounts={}),))
        ),
        "of 'rank-0' has no key; give one of its own",
    ),
    "a pod without a uid": (
        lambda: t.admit(SNAPSHOT, Pod(uid="", name="web", containers=(Container(name="c"),))),
        "pod default/web has no uid; give it one of its own",
    ),
    "node: a pod without a uid": (
        lambda: started().admit(Pod(uid="", name="web", containers=(Container(name="c"),))),
        "pod default/web has no uid; give it one of its own",
    ),
    "owner as a tuple": (lambda: t.Claim(owner=wrong(("a", "b")), amounts={}), "Owner"),
    "amounts negative": (lambda: t.Claim(owner=OWNER, amounts={"cpu": Quantity.of(-2)}), "0 or more"),
    "amounts of words": (lambda: t.Claim(owner=OWNER, amounts={"cpu": wrong("many")}), "not a quantity"),
    "reuse as a text": (lambda: t.Claim(owner=OWNER, amounts={}, reuse=wrong("init")), "a tuple of names"),
    "kind of words": (lambda: t.Claim(owner=OWNER, amounts={}, kind=wrong("app")), "'init', 'sidecar'"),
    "a pod without containers": (lambda: t.admit(SNAPSHOT, Pod(uid="u")), "at least one"),
    "claims of dicts": (lambda: t.Workload(key="job", claims=wrong(({},))), "a Claim"),
    # CPUs.
    "CPUSet of a number": (lambda: CPUSet(wrong(5)), r"CPUSet.of\(5\)"),
    "CPUSet junk": (lambda: CPUSet("abc"), "decimal id"),
    "CPUSet of a half": (lambda: CPUSet.of(wrong(1.0)), "whole number"),
    "CPUSet of True": (lambda: CPUSet.of(True), "whole number"),
    "CPUSet.parse None": (lambda: CPUSet.parse(wrong(None)), "expected a text"),
    "CPUSet.parse number": (lambda: CPUSet.parse(wrong(5)), "expected a text"),
    "CPUSet.parse bytes": (lambda: CPUSet.parse(wrong(b"")), "decode it"),
    "CPUSet.parse newline": (lambda: CPUSet.parse("0-3\n"), "strip"),
    "CPUSet.parse two dashes": (lambda: CPUSet.parse("0-3-5"), "separate ranges by commas"),
    "mask of text": (lambda: CPUSet.from_mask(wrong("3")), "integer"),
    "reserved: all but text": (lambda: StaticPolicy.of(MACHINE, reserved=wrong("x")), "decimal id"),
    "reserved: nodes": (lambda: StaticPolicy.of(MACHINE, reserved=wrong(NodeSet.of(0))), "reserved"),
    "reserved: half": (lambda: StaticPolicy.of(MACHINE, reserved=wrong(0.5)), "reserved"),
    "reserved: negative": (lambda: StaticPolicy.of(MACHINE, reserved=-1), "reserved"),
    "reserved: elsewhere": (lambda: StaticPolicy.of(MACHINE, reserved="64"), "not online"),
    "static of a discovery": (lambda: StaticPolicy.of(wrong(FOUND)), r"discovery.machine"),
    "static of text": (lambda: StaticPolicy.of(wrong("2 sockets")), "machine_from_text"),
    "option unknown": (lambda: StaticPolicy.of(MACHINE, options=wrong({"full": "true"})), "unknown option"),
    "options a word": (lambda: StaticPolicy.of(MACHINE, options=wrong("full-pcpus-only")), "StaticOptions"),
    "topology policy typo": (
        lambda: StaticPolicy.of(MACHINE, options={"align-by-socket": "true"}, topology_policy="single-numa"),
        "single-numa-node",
    ),
    "topology policy contradicts": (
        lambda: StaticPolicy.of(
            MACHINE, options={"align-by-socket": "true"}, topology_policy="single-numa-node"
        ),
        "contradicts",
    ),
    "picker is a class": (lambda: StaticPolicy.of(MACHINE, picker=wrong(cpuset.KubeletPicker)), "pick"),
    "allocator by a word": (lambda: CpuAllocator(policy=wrong("static")), "StaticPolicy.of"),
    "allocator by a machine": (lambda: CpuAllocator(policy=wrong(MACHINE)), "StaticPolicy.of"),
    "take from a machine": (lambda: cpuset.take_cpus(wrong(MACHINE), CPUSet.of(0), 1), "CpuLayout.of"),
    "take from words": (lambda: cpuset.take_cpus(CpuLayout.of(MACHINE), wrong("x"), 1), "decimal id"),
    "take a half": (lambda: cpuset.take_cpus(CpuLayout.of(MACHINE), CPUSet.of(0), wrong(0.5)), "whole"),
    "cpus of text": (lambda: CPUS.cpus_of(wrong("job")), "Owner"),
    "exclusive of text": (lambda: CPUS.exclusive_of(wrong("job")), "Owner"),
    # Machines.
    "text None": (lambda: machine_from_text(wrong(None)), "expected a text"),
    "discover None": (lambda: machine.discover(wrong(None)), "path of a sysfs"),
    "draw text holders": (lambda: machine.draw_text(MACHINE, wrong({"a": {1}})), "CPUSet"),
    "draw a text": (lambda: machine.draw_text(MACHINE, wrong("0-3")), "a mapping"),
    "draw a discovery": (lambda: machine.draw_text(wrong(FOUND)), "discovery.machine"),
    "draw a discovery as SVG": (lambda: machine.draw_svg(wrong(FOUND)), "discovery.machine"),
    "layout of a discovery": (lambda: CpuLayout.of(wrong(FOUND)), "discovery.machine"),
    # Memory.
    "memory policy lower case": (
        lambda: MemoryAllocator.of(MACHINE, policy=wrong("none")),
        "'None', 'Static'",
    ),
    "memory policy that pins nothing": (
        lambda: MemoryAllocator.of(MACHINE, policy=wrong("None")),
        "UnpinnedMemory",
    ),
    "memory policy typo": (lambda: MemoryAllocator.of(MACHINE, policy=wrong("Statik")), "'None', 'Static'"),
    "memory of a discovery": (lambda: MemoryAllocator.of(wrong(FOUND)), "discovery.machine"),
    "reserved memory amount": (
        lambda: MemoryAllocator.of(MACHINE, reserved={0: {"memory": "x"}}),
        "quantity",
    ),
    "reserved memory flat": (lambda: MemoryAllocator.of(MACHINE, reserved=wrong({"memory": "1Gi"})), "node"),
    "reserved memory number": (lambda: MemoryAllocator.of(MACHINE, reserved=wrong(5)), "mapping"),
    # Pods.
    "quantity of a number": (lambda: Quantity.parse(wrong(5)), "Quantity.of"),
    "requests of words": (lambda: Container(name="a", requests={"cpu": wrong("x y")}), "not a quantity"),
    "requests as a list": (lambda: Container(name="a", requests=wrong(["cpu"])), "a mapping"),
    "containers as dicts": (lambda: Pod(uid="u", containers=wrong(({"name": "a"},))), "a Container"),
    "a pod of no uid": (lambda: Pod(uid=wrong(None)), "a text"),
    "manifest empty": (lambda: Pod.from_manifest({}), "needed"),
    "manifest as text": (lambda: Pod.from_manifest("kind: Pod"), r"^pod: .*json.loads|yaml"),
    "metadata empty": (lambda: Pod.from_manifest({"metadata": {}, "spec": MANIFEST["spec"]}), "a name is"),
    "spec empty": (lambda: Pod.from_manifest({"metadata": {"name": "a"}, "spec": {}}), "container"),
    "container empty": (lambda: Pod.from_manifest(manifest(containers=[{"name": "a"}, {}])), r"\[1\]"),
    "container null": (lambda: Pod.from_manifest(manifest(containers=[{"name": "a"}, None])), r"\[1\]"),
    "volumes empty": (
        lambda: Pod.from_manifest(manifest(containers=[{"name": "a"}], volumes=[{}, {}])),
        r"volumes\[0\].*a name is needed|a name is needed @ \$.spec.volumes\[0\]",
    ),
    "volume null": (
        lambda: Pod.from_manifest(manifest(containers=[{"name": "a"}], volumes=[None])),
        r"volumes\[0\]",
    ),
    "mount null": (lambda: Pod.from_manifest(container(volumeMounts=[None])), r"volumeMounts\[0\]"),
    "mount empty": (lambda: Pod.from_manifest(container(volumeMounts=[{}])), r"volumeMounts\[0\]"),
    "limit for limits": (lambda: Pod.from_manifest(container(resources={"limit": {"cpu": 1}})), "limits"),
    "resource for resources": (
        lambda: Pod.from_manifest(container(resource={"limits": {"cpu": 1}})),
        "resources",
    ),
    # Files.
    "commit a dict": (
        lambda: checkpoint.MemoryStore({"*": checkpoint.JsonCheckpoint.unmarshal}).commit(wrong({"k": {}})),
        "JsonCheckpoint",
    ),
    "CPU state of text": (lambda: checkpoint.CpuManagerState.unmarshal(wrong("{}")), "bytes"),
    "CPU state of a dict": (lambda: checkpoint.CpuManagerState.unmarshal(wrong({})), "bytes"),
    "a record that is torn": (lambda: checkpoint.JsonCheckpoint.unmarshal(b"torn"), "no JSON"),
    # Nodes and loops.
    "a node of a machine": (lambda: NodeAllocator(wrong(MACHINE), STORE), "Snapshot.of"),
    "a node without a store": (lambda: NodeAllocator(SNAPSHOT, wrong(None)), "FileStore"),
    "files as a text": (lambda: NodeAllocator(SNAPSHOT, STORE, kubelet_files="cpu"), "a list of names"),
    "files of nobody": (lambda: NodeAllocator(SNAPSHOT, STORE, kubelet_files=["cpus"]), "which are: cpu"),
    "a store without formats": (
        lambda: checkpoint.MemoryStore({}),
        "formats: expected at least one key",
    ),
    "a node over a store of other formats": (
        lambda: NodeAllocator(SNAPSHOT, checkpoint.MemoryStore(checkpoint.KUBELET_FORMATS)),
        "without formats for workload",
    ),
    "a node over a store without the file it keeps": (
        lambda: NodeAllocator(
            SNAPSHOT,
            checkpoint.MemoryStore(checkpoint.row_formats("workload", "set-aside")),
            kubelet_files=["cpu"],
        ),
        "without formats for cpu_manager_state",
    ),
    "a ledger over a store of other formats": (
        lambda: devices.DeviceLedger(
            devices.DeviceAllocator(nodes=(0,)), store=checkpoint.MemoryStore(checkpoint.row_formats("pod"))
        ),
        "without formats for kubelet_internal_checkpoint",
    ),
    "a node that holds something": (
        lambda: NodeAllocator(admitted().snapshot, STORE),
        "job is admitted there; give a snapshot with nothing held",
    ),
    "node: admit a manifest": (lambda: started().admit(wrong(MANIFEST)), "Pod.from_manifest"),
    "node: release an owner": (lambda: started().release(wrong(OWNER)), "owner.workload"),
    "node: start a text": (lambda: started().before_start(wrong("job"), "id"), "Owner"),
    "a loop without a domain": (lambda: dsw_asw.Reconciler(wrong(None), **LOOP), "perform"),
    "a loop without an executor": (
        lambda: dsw_asw.Reconciler(Counting(), **{**LOOP, "executor": None}),
        "submit",
    ),
    # Cgroups.
    "name of text": (lambda: CgroupName(wrong("kubepods")), r"CgroupName.of|CgroupName.parse"),
    "bytes of text": (lambda: Limits(memory_bytes=wrong("1Gi")), "Quantity"),
    "cpus of nodes": (lambda: Limits(cpus=wrong(NodeSet.of(0))), "CPUSet"),
    "shares a half": (lambda: Limits(cpu_shares=wrong(2.5)), "whole number"),
    "root with dots": (lambda: TreeOptions(root="/kubepods/.."), r"\.\."),
    "root a number": (lambda: TreeOptions(root=wrong(5)), "CgroupName"),
    "memory reserve": (lambda: TreeOptions(memory_reserve_percent=101), "from 0 to 100"),
    "apply by text": (lambda: FakeCgroups().apply(wrong("/kubepods"), Limits()), "CgroupName"),
    "reserve words": (lambda: Reservation(kube_reserved={"cpu": wrong("x y")}), "not a quantity"),
    "reserve a list": (lambda: Reservation(kube_reserved=wrong(["cpu"])), "a mapping"),
    # Loops.
    "back-off upside down": (lambda: dsw_asw.BackOff(initial_s=10, max_s=1), "max_s"),
    "back-off negative": (lambda: dsw_asw.BackOff(initial_s=-1), "0 or more"),
    # Devices and plugins.
    "devices of words": (lambda: devices.DeviceList.of(wrong(["gpu0"]), nodes=(0,)), r"Device\(id="),
    "device at a list": (
        lambda: devices.DeviceList.of([devices.Device("a", numa_nodes=wrong([0]))], nodes=(0,)),
        "mask",
    ),
    "phase of words": (lambda: devices.Inventory(resource="a/b", phase=wrong("served")), "'serving'"),
    "plugins of an allocator": (
        lambda: DevicePlugins(wrong(devices.DeviceAllocator(nodes=(0,)))),
        "DeviceLedger",
    ),
    # Volumes.
    "plugin as a class": (
        lambda: VolumeManager(wrong([HostPath]), pods=FakePods(), executor=ManualExecutor()),
        "an instance",
    ),
    "root is not there": (lambda: SafeRoot("/nonexistent"), "directory"),
    "root is a file": (lambda: SafeRoot(__file__), "directory"),
    "root is relative": (lambda: SafeRoot("."), "absolute"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_wrong_input_is_refused_in_words(name: str) -> None:
    """One family of errors; the text says what came and what would be right."""
    call, says = REFUSED[name]
    with pytest.raises(ConfigurationError, match=says) as caught:
        call()
    assert isinstance(caught.value, ValueError)
    assert len(str(caught.value)) < 1000, "nobody reads a whole machine"


TAKEN: Mapping[str, tuple[Call, object]] = {
    "policy": (lambda: t.Policy(name=wrong("single-numa-node")).name, t.PolicyName.SINGLE_NUMA_NODE),
    "snapshot policy": (
        lambda: t.Snapshot(numa=NUMA, policy=wrong("restricted")).policy,
        t.Policy(name=t.PolicyName.RESTRICTED),
    ),
    "scope": (lambda: t.Snapshot(numa=NUMA, scope=wrong("pod")).scope, t.Scope.POD),
    "allocators as a list": (lambda: t.Snapshot(numa=NUMA, allocators=wrong([CPUS])).allocators, (CPUS,)),
    "no distances": (lambda: t.NumaTopology(nodes=(0,), distances=None).distances, {}),
    "no NUMA nodes": (lambda: t.NumaTopology(nodes=()).mask, 0),
    "amounts as numbers": (
        lambda: t.Claim(owner=OWNER, amounts={"cpu": wrong(2), "memory": wrong("1Gi")}).amounts,
        {"cpu": Quantity.of(2), "memory": Quantity.of(1 << 30)},
    ),
    "a set from its text": (lambda: CPUSet("0-3"), CPUSet.of(0, 1, 2, 3)),
    "a set from its repr": (lambda: eval(repr(CPUSet.of(0, 1, 8))), CPUSet.of(0, 1, 8)),  # noqa: S307
    "nodes from their text": (lambda: NodeSet("0,2"), NodeSet.of(0, 2)),
    "of a text": (lambda: CPUSet.of(wrong("0-3")), CPUSet.parse("0-3")),
    "of a list": (lambda: CPUSet.of(wrong([0, 1])), CPUSet.of(0, 1)),
    "of a range": (lambda: CPUSet.of(wrong(range(2))), CPUSet.of(0, 1)),
    "reserved as text": (lambda: StaticPolicy.of(MACHINE, reserved="0-1").reserved, CPUSet.of(0, 1)),
    "reserved as a set": (lambda: StaticPolicy.of(MACHINE, reserved=wrong({0, 1})).reserved, CPUSet.of(0, 1)),
    "everything reserved": (lambda: StaticPolicy.of(MACHINE, reserved=8).allocatable, 0),
    "options as a mapping": (
        lambda: StaticPolicy.of(MACHINE, options={"full-pcpus-only": "true"}).options.full_pcpus_only,
        True,
    ),
    "take from text": (
        lambda: cpuset.take_cpus(CpuLayout.of(MACHINE), "0-3", 2),
        CPUSet.of(0, 1),
    ),
    "memory policy": (
        lambda: MemoryAllocator.of(MACHINE, policy=wrong("Static")),
        MemoryAllocator.of(MACHINE),
    ),
    "reserved memory as quantities": (
        lambda: MemoryAllocator.of(MACHINE, reserved={0: {"memory": Quantity.of("1Gi")}}),
        MemoryAllocator.of(MACHINE, reserved={0: {"memory": 1 << 30}}),
    ),
    "reserved memory as texts": (
        lambda: MemoryAllocator.of(MACHINE, reserved={0: {"memory": "1Gi"}}),
        MemoryAllocator.of(MACHINE, reserved={0: {"memory": 1 << 30}}),
    ),
    "reserved memory as a flag": (
        lambda: MemoryAllocator.of(MACHINE, reserved="0:memory=1Gi"),
        MemoryAllocator.of(MACHINE, reserved={0: {"memory": 1 << 30}}),
    ),
    "requests as numbers": (
        lambda: Container(name="a", requests={"cpu": wrong(2)}).requests,
        {"cpu": Quantity.of(2)},
    ),
    "holders as text": (
        lambda: machine.draw_text(MACHINE, {"a": "0-1"}),
        machine.draw_text(MACHINE, {"a": CPUSet.of(0, 1)}),
    ),
    "limits on CPUs as text": (lambda: Limits(cpus=wrong("0-1")).cpus, CPUSet.of(0, 1)),
    "limits on nodes as text": (lambda: Limits(mems=wrong("0")).mems, NodeSet.of(0)),
    "root as text": (lambda: TreeOptions(root="/kubepods").root, CgroupName.of("kubepods")),
    "reserve as texts": (
        lambda: Reservation(kube_reserved={"cpu": wrong("500m")}).kube_reserved,
        {"cpu": Quantity.of("500m")},
    ),
    "phase": (
        lambda: devices.Inventory(resource="a/b", phase=wrong("serving")).phase,
        devices.Phase.SERVING,
    ),
}


@pytest.mark.parametrize("name", TAKEN)
def test_words_mean_what_they_say(name: str) -> None:
    """A configuration's own words, and numbers where the unit is plain, stand for the value."""
    call, expected = TAKEN[name]
    assert call() == expected


def test_directories_are_made_or_named(tmp_path: Path) -> None:
    """A registrar makes its directory; one that cannot be made is an error of the library's own."""
    (tmp_path / "file").write_text("")
    registrar = pluginreg.PluginRegistrar(tmp_path / "file" / "below", {})
    with pytest.raises(NodeallocError, match="below"):
        registrar.start()
    registrar.stop()


def test_what_is_not_there_to_be_read_has_a_readers_remedy() -> None:
    """Nobody wanted to write there."""
    with pytest.raises(NodeallocError, match=r"read failed .*name a store") as caught:
        checkpoint.inspect("/nonexistent/store")
    assert "nothing was changed" not in str(caught.value)


def test_every_error_of_configuration_is_of_one_family() -> None:
    """One `except` catches whatever is wrong in a configuration."""
    family = (
        DecodeError,
        ReservationError,
        cpuset.PickerError,
        memblocks.ReservationMismatchError,
        t.DistanceError,
        t.HintError,
        t.TooManyNodesError,
        t.UnknownOptionError,
        t.UnknownPolicyError,
        machine.NotAMachineError,
    )
    for error in family:
        assert issubclass(error, ConfigurationError), error
        assert issubclass(error, ValueError), error


def mappings() -> Mapping[str, object]:
    """Mappings inside values that are called immutable."""
    granted = t.admit(SNAPSHOT, JOB)
    assert isinstance(granted, t.Admitted)
    cpus = granted.snapshot.allocators[0]
    assert isinstance(cpus, CpuAllocator)
    claim = JOB.claims[0]
    node = started()
    node.admit(JOB)
    recorded = node.records["job"]
    box = Container(name="a", requests={"cpu": Quantity.of(1)}, variables=(Variable(name="a", value="b"),))
    pod = Pod(uid="u", containers=(box,), labels={"a": "b"}, annotations={"a": "b"})
    return {
        "claim.amounts": claim.amounts,
        "claim.settings": t.Claim(owner=OWNER, amounts={}, settings={"a": "b"}).settings,
        "container.requests": box.requests,
        "container.env": box.env,
        "pod.labels": pod.labels,
        "pod.annotations": pod.annotations,
        "snapshot.admitted": granted.snapshot.admitted,
        "state.assignments": cpus.state.assignments,
        "state.assignments[]": cpus.state.assignments["job"],
        "admitted.affinity": granted.affinity,
        "numa.distances": NUMA.distances,
        "numa.distances[]": NUMA.distances[0],
        "context.allocated": t.ComparisonContext(numa=NUMA, allocated={0: 0.5}).allocated,
        "availability.free": FakeAllocator.of("cpu", {0: 1}).availability(JOB.claims)[0].free,
        "fake.held": FakeAllocator(name="cpu", units={0: 1}, held={OWNER: 1}).held,
        "inventory": devices.DeviceList.of([devices.Device("a", numa_nodes=1)], nodes=(0,)).by_node,
        "volume.config": VolumeSpec(plugin="a/b", name="v", config={"a": "b"}).config,
        "view.labels": NodeView(name="n", labels={"a": "b"}).labels,
        "file.entries": checkpoint.CpuManagerState(
            policy_name="static", default_cpuset="0", entries={"u": {"c": "1"}}
        ).entries,
        "limits": Limits(hugepage_bytes={2 << 20: 2 << 20}).hugepage_bytes,
        "machine": MACHINE.numa_nodes[0].hugepages,
        "volume": Volume(name="a", kind="emptyDir", spec={"medium": "Memory"}).spec,
        "record.affinity": recorded.affinity,
        "record.grants": recorded.grants,
        "devices.inventories": devices.DeviceAllocator(inventories={}).inventories,
        "devices.grants": devices.DeviceAllocator(grants={}).grants,
        "confinement": t.Confinement(devices={"a/b": ("0",)}).devices,
        "state": CpuState(assignments={"a": {}}).assignments,
    }


@pytest.mark.parametrize("name", mappings())
def test_what_is_called_immutable_is(name: str) -> None:
    """Nobody changes a mapping that other snapshots share; it still travels and copies."""
    mapping: Any = mappings()[name]
    for change in (
        lambda: mapping.__setitem__("x", 1),
        mapping.clear,
        lambda: mapping.update(x=1),
        lambda: mapping.pop(next(iter(mapping), "x")),
    ):
        with pytest.raises((TypeError, AttributeError)):
            change()
    for same in (pickle.loads(pickle.dumps(mapping)), copy.deepcopy(mapping), copy.copy(mapping)):  # noqa: S301
        assert same == mapping
        with pytest.raises((TypeError, AttributeError)):
            same["x"] = 1


def test_the_callers_mapping_is_not_the_values() -> None:
    """What was handed in may change afterwards; the value does not."""
    amounts = {"cpu": Quantity.of(1)}
    claim = t.Claim(owner=OWNER, amounts=amounts)
    amounts["cpu"] = Quantity.of(9)
    assert claim.amounts == {"cpu": Quantity.of(1)}


def test_json_inside_a_value_is_frozen_all_the_way_down() -> None:
    """Lists and mappings below a volume's settings refuse changes, and are written out as plain ones."""
    mine: Any = {"sources": [{"configMap": {"name": "a"}}]}
    volume = Volume(name="a", kind="projected", spec=mine)
    pod = Pod(uid="u", name="p", containers=(Container(name="a", image="b"),), volumes=(volume,))
    as_it_came = copy.deepcopy(mine)
    inside: Any = volume.spec
    for same in (inside, copy.deepcopy(inside), pickle.loads(pickle.dumps(inside))):  # noqa: S301
        with pytest.raises(TypeError, match="immutable"):
            same["sources"].append({})
        with pytest.raises(TypeError, match="immutable"):
            same["sources"][0] = {}
        with pytest.raises(TypeError, match="immutable"):
            same["sources"][0]["configMap"].update(name="b")
    mine["sources"].clear()
    written: Any = pod.to_manifest()
    (found,) = written["spec"]["volumes"]
    assert found["projected"] == as_it_came
    found["projected"]["sources"].append({})
    assert inside == as_it_came


@pytest.mark.parametrize("given", [(1, "a"), ("u", None), (b"u", "a"), ("u", 0)])
def test_an_owner_is_two_texts(given: tuple[Any, Any]) -> None:
    """An owner of other types would never be found again under its text; it is refused where it is made."""
    with pytest.raises(ConfigurationError, match="Owner"):
        t.Owner(*given)
