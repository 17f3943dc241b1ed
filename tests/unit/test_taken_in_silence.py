"""Wrong values on which nothing breaks at once: they would mean something else later, or nothing at all."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from typing import Any, cast

import pytest

from nodealloc.admission import AppArmor, MakingRoom, allocation, chain_of
from nodealloc.allocatable import Reservation, usable_by_pods
from nodealloc.cgroups import CgroupMount, CgroupName, PodOptions, TreeOptions, stand_in
from nodealloc.checkpoint import (
    FileStore,
    JsonCheckpoint,
    MemoryManagerState,
    MemoryStore,
    SqliteStore,
    row_formats,
)
from nodealloc.cpuset import CpuAllocator
from nodealloc.cri import CriRuntime, follow_log
from nodealloc.devices import (
    Deadlines,
    Device,
    DeviceAllocator,
    DeviceLedger,
    DeviceList,
    Grant,
    Inventory,
    pick,
)
from nodealloc.devices.plugins import DevicePlugins
from nodealloc.dsw_asw import Group, Near, World
from nodealloc.errors import ConfigurationError, DecodeError
from nodealloc.kubeconfig import KubeletConfig, NodePlan, kubelet_config
from nodealloc.machine import draw_svg, draw_text, machine_from_text
from nodealloc.memblocks import Block, hugepages
from nodealloc.node import FORMATS, NodeAllocator
from nodealloc.pluginreg import GrpcRegistration, PluginRegistrar
from nodealloc.podfacts import (
    ContainerStatus,
    EventKind,
    Exited,
    HostPort,
    LifeState,
    NodeView,
    PodEvent,
    PodIdentity,
    PodSighting,
    PodStatus,
    host_ports_of,
)
from nodealloc.podlife import (
    ExitRule,
    ImageFacts,
    NodeSettings,
    PodFolders,
    PodSeen,
    Preparation,
    RestartBackOff,
    Restarts,
)
from nodealloc.podsources import FolderSource, HttpSource, MergedUpdates, PodSources, Polling
from nodealloc.podspec import Pod, ProfileType, Quantity, TcpSocketAction
from nodealloc.podstatus import CallSink, JsonLinesSink, Observed, StatusManager, TellingOptions, status_of
from nodealloc.probes import (
    Asking,
    ContainerKind,
    ContainerVerdicts,
    HttpProber,
    Passed,
    ProbeKind,
    ProbeOptions,
    Probers,
    Question,
    Reply,
    Tally,
    TcpProber,
    asks,
    look,
)
from nodealloc.runtime import (
    ContainerConfig,
    ContainerRecord,
    Disk,
    HostDevice,
    HostMount,
    LinuxResources,
    PodKnown,
    PodReport,
    PortMapping,
    Security,
    SecurityProfile,
    containers_to_drop,
)
from nodealloc.testing.cgroups import FakeCgroups
from nodealloc.testing.dsw_asw import ManualCancel, ManualExecutor
from nodealloc.testing.podfacts import FakePods
from nodealloc.testing.podlife import FakePreparer
from nodealloc.testing.runtime import FakeContainerRuntime
from nodealloc.topology import Claim, Confinement, Owner, Policy, Shortfall, Snapshot, node_masks
from nodealloc.verdicts import NotYet
from nodealloc.volumes import VolumeManager

MACHINE = machine_from_text("4 cores")
CPUS = CpuAllocator.of(MACHINE)
SNAPSHOT = Snapshot.of(MACHINE, allocators=(CPUS,))
STORE = MemoryStore(FORMATS)
POD = Pod(uid="u", name="web")
ASKING = Asking(kind=ProbeKind.LIVENESS)


def started() -> NodeAllocator:
    """A node that has read its store."""
    node = NodeAllocator(SNAPSHOT, MemoryStore(FORMATS))
    node.start()
    return node


def plugins() -> DevicePlugins:
    """What no plugin has registered with."""
    return DevicePlugins(DeviceLedger(DeviceAllocator()))


def wrong(value: object) -> Any:
    """A value of a type that does not belong there."""
    return value


def closed_sink() -> JsonLinesSink:
    """One that nothing can be told."""
    sink = JsonLinesSink(os.devnull, lambda _: POD)
    sink.close()
    return sink


SILENT: Mapping[str, tuple[Callable[[], object], str]] = {
    "an allocation that ends before it begins": (lambda: Deadlines(allocate_s=-1), "allocate_s"),
    "a retry in the past": (lambda: DeviceAllocator(retry_s=-1), "retry_s"),
    "no patience": (lambda: NodeAllocator(SNAPSHOT, STORE, patience_s=-1), "patience_s"),
    "a view of nothing": (lambda: NodeAllocator(SNAPSHOT, STORE, view=wrong("node")), "view"),
    "pods that are a number": (lambda: VolumeManager([], pods=wrong(5), executor=ManualExecutor()), "pods"),
    "a deadline in words": (
        lambda: VolumeManager([], pods=FakePods(), executor=ManualExecutor(), deadline_s=wrong("2m")),
        "deadline_s",
    ),
    "a neighbour of a number": (lambda: Near(wrong(5), lambda key: [key]), "world"),
    "a record's kind of a number": (lambda: JsonCheckpoint(kind=wrong(5), version=1, value=None), "kind"),
    "a version of a half": (
        lambda: JsonCheckpoint(kind="a", version=wrong(1.5), value=None),
        "version",
    ),
    "fewer than no nodes": (lambda: Policy(max_nodes=-1), "max_nodes"),
    "half a step": (lambda: Policy(search_steps=wrong(1.5)), "search_steps"),
    "a picture as wide as a truth": (lambda: draw_text(MACHINE, width=wrong(True)), "width"),
    "an endless picture": (lambda: draw_svg(MACHINE, width=wrong(math.inf)), "width"),
    "memory below 0": (lambda: PodOptions(allocatable_memory_bytes=-1), "allocatable_memory_bytes"),
    "a tree below 0": (
        lambda: TreeOptions(allocatable_memory_bytes=-1),
        "allocatable_memory_bytes",
    ),
    "a registrar of no sockets": (lambda: PluginRegistrar("/run", {}, most_sockets=0), "most_sockets"),
    "a code of a half": (lambda: Exited(code=wrong(1.5)), "code"),
    "a port that is a truth": (lambda: HostPort(port=wrong(True)), "port"),
    "a mount of nothing": (lambda: CgroupMount(path=wrong(None), version=2, controllers=()), "path"),
    "a file's policy of a number": (lambda: MemoryManagerState(policy_name=wrong(5)), "policy_name"),
    "a listener of a number": (lambda: Group(name="a").add_listener(wrong(5)), "on_work"),
    "a claim that is a text": (lambda: CPUS.hints(wrong(("app",))), "claims"),
    "an owner that is a text": (lambda: CPUS.confinement(wrong("job")), "Owner"),
    "changes of None": (lambda: STORE.commit(wrong(None)), "changes"),
    # What only the next page of a program would have shown.
    "an answer of a prober in words": (lambda: Reply(wrong("success")), "ReplyKind.SUCCESS"),
    "a sighting in words": (lambda: PodSighting(POD, wrong("ended")), "PodLife"),
    "a pod for a pod's identity": (
        lambda: PodEvent(pod=wrong(POD), kind=EventKind.NORMAL, reason="a"),
        "PodIdentity",
    ),
    "a status with a state in words": (lambda: ContainerStatus(name="a", state=wrong("running")), "state"),
    "a manifest for a pod": (lambda: Observed(pod=wrong({"metadata": {}})), "Observed: pod"),
    "a block below 0": (lambda: Block(nodes=1, resource="memory", size_bytes=wrong("1Gi")), "size_bytes"),
    "a shortfall in words": (
        lambda: Shortfall(resource="cpu", wanted=wrong("2"), free=1),
        "wanted: expected a whole number",
    ),
    "a grant of a text": (lambda: Grant(places=wrong({0: "gpu0"})), "places"),
    "pages of 3 bytes": (lambda: hugepages(3), "a power of two"),
    "pages below 0": (lambda: hugepages(-2), "a power of two"),
    "names for a text": (lambda: started().release_stale(wrong("job")), "wanted: expected several of text"),
    "nobody for a pod": (lambda: started().mark_ending(wrong(None)), "pod: expected a Pod"),
    "a view that a function forgot": (
        lambda: started().alter_view(lambda _: wrong(None)),
        "what the function answered: expected a NodeView",
    ),
    "an allocator in the place of another": (
        lambda: started().alter("cpu", lambda _: DeviceAllocator(nodes=(0,))),
        "an allocator named 'cpu'",
    ),
    "a ledger of nothing": (
        lambda: DeviceLedger(DeviceAllocator(nodes=(0,))).alter(lambda _: wrong(None)),
        "what the function answered: expected a DeviceAllocator",
    ),
    "devices that are prepared for an owner": (
        lambda: DevicePlugins(DeviceLedger(DeviceAllocator(nodes=(0,)))).prepare(wrong(Owner("u", "app"))),
        "prepare: expected a workload's key",
    ),
    "devices that are prepared once more for a text": (
        lambda: DevicePlugins(DeviceLedger(DeviceAllocator(nodes=(0,)))).pre_start(wrong("u")),
        "DevicePlugins.pre_start: owner: expected an Owner",
    ),
    "devices of a text": (
        lambda: DevicePlugins(DeviceLedger(DeviceAllocator(nodes=(0,)))).launch(wrong("u")),
        "DevicePlugins.launch: owner: expected an Owner",
    ),
    "a wait for what is mounted for a pod, and no uid": (
        lambda: VolumeManager([], pods=FakePods(), executor=ManualExecutor()).wait_for_unmount(wrong(POD)),
        "VolumeManager.wait_for_unmount: uid: expected a text",
    ),
    "one volume for several": (
        lambda: VolumeManager([], pods=FakePods(), executor=ManualExecutor()).mark_reported_in_use("a/b"),
        "VolumeManager.mark_reported_in_use: volumes: expected several of text",
    ),
    "plugins over CPUs": (
        lambda: DevicePlugins(wrong(started().allocator(CpuAllocator))),
        "what the keeper keeps: expected a DeviceLedger",
    ),
    "an advisor in words": (lambda: started().advise_with(wrong("x")), "advisor"),
    "a database of no file": (lambda: SqliteStore(":memory:", FORMATS), "MemoryStore"),
    "an empty path": (lambda: FolderSource(""), "not an empty one"),
    "an empty path of a store": (lambda: FileStore("", FORMATS), "not an empty one"),
    "one more argument that is wrong": (
        lambda: Confinement.of(Confinement(), wrong("0-3")),
        "parts: expected a Confinement",
    ),
    "kinds in a list": (lambda: row_formats(wrong(["pod"])), "kinds: expected a text"),
    "a member of a group in words": (lambda: Group(wrong("a")), "members: expected a Driven"),
    "a period of none": (lambda: Polling(periods={"file": 0}), "above 0"),
    "a source of another name": (
        lambda: PodSources({"file": FolderSource("/run")}).hurry("files"),
        "none of the sources file",
    ),
    "fewer than none kept": (lambda: containers_to_drop([], keep=-1), "0 or more"),
    "a hierarchy of version 3": (lambda: CgroupMount(path="/a", version=3), "from 1 to 2"),
    "a stand-in of version 3": (lambda: stand_in("/nonexistent", version=3), "1 or 2"),
    "a preparation without a name": (
        lambda: Preparation(name="", why="a", by=FakePreparer()),
        "a text that is not empty",
    ),
    "a prober that cannot": (
        lambda: HttpProber().probe(Question(action=TcpSocketAction(port=1), address="127.0.0.1", port=1)),
        "HttpGetAction",
    ),
    "a world changed by nothing": (lambda: World[str, int]("a").alter("k", wrong(None)), "a function"),
    "a listing of none": (lambda: World[str, int]("a").replace(wrong([1])), "a mapping"),
    "an allocator at a number": (lambda: SNAPSHOT[wrong(0)], "an allocator's class, or its name"),
    "nodes in words": (lambda: node_masks(wrong("01")), "ids of nodes"),
    "no handler of a chain": (lambda: chain_of().without(wrong("taints")), "which has shutdown, pressure"),
    "a handler of another chain": (lambda: chain_of().without(host_ports_of), "a handler of this chain"),
    "a view given out from": (lambda: allocation(wrong(NodeView(name="n"))), "snapshot: expected a Snapshot"),
    "memory without its unit": (lambda: machine_from_text("4 cores, memory=8"), "write 8Gi"),
    "an attempt below 0": (
        lambda: ContainerConfig(name="a", image="b", attempt=-1),
        "attempt: expected a whole number, 0 or more",
    ),
    "a generation below 0": (lambda: Snapshot(numa=SNAPSHOT.numa, generation=-1), "generation: expected"),
    "a container without a name": (lambda: ContainerConfig(name="", image="b"), "ContainerConfig.name"),
    "a mount to nowhere": (lambda: HostMount(host_path="/data", container_path=""), "container_path"),
    "a port beyond the last": (lambda: PortMapping(container_port=70000), "from 1 to 65535"),
    "an allocator of another machine": (
        lambda: Snapshot.of(MACHINE, allocators=(CpuAllocator.of(machine_from_text("2 sockets x 2 cores")),)),
        "cpu on NUMA node 1, and the machine has nodes 0",
    ),
    "a status for a sink that was closed": (lambda: closed_sink().told("u", PodStatus()), "was closed"),
    "limits as a dict, for the fake as well": (
        lambda: FakeCgroups().apply(CgroupName.of("a"), wrong({"memory": 1})),
        "limits: expected a Limits",
    ),
    "an address of probes that is a name": (lambda: ProbeOptions(node_ip="node-1"), "an IP address"),
    "no address of probes": (lambda: ProbeOptions(node_ip=""), "an IP address"),
    "an address of a node that is a name": (lambda: TellingOptions(node_ips=["node-1"]), "an IP address"),
    "addresses in one text": (
        lambda: status_of(Observed(pod=POD), node_ips=wrong("10.0.0.1")),
        "addresses in a list or tuple",
    ),
    "another pod's report": (
        lambda: Observed(pod=POD, report=PodReport(uid="other")),
        "of pod other, and observed is pod u",
    ),
    "room to be made by nobody": (
        lambda: MakingRoom(blocker="room", message="wait", victims=()),
        "uids of pods to end",
    ),
    "a handler that was not made": (lambda: chain_of(wrong(AppArmor)), "such as AppArmor"),
    "a container without an id": (
        lambda: started().before_start(Owner("u", "app"), ""),
        "the runtime's id of the container",
    ),
    "a log that is looked at without a pause": (
        lambda: follow_log("/nonexistent", ManualCancel(), look_s=0),
        "above 0",
    ),
    "an address without a host": (lambda: HttpSource("http:///pods"), "expected an address such as"),
    "an address with a blank": (lambda: HttpSource("http://host/a b"), "without blanks"),
    "a port beyond all": (lambda: HttpSource("http://host:99999/"), "expected an address such as"),
    "a port in words": (lambda: HttpSource("http://host:https/"), "expected an address such as"),
    "a header of two lines": (
        lambda: HttpSource("http://host/", headers={"A": ("b\r\nC: d",)}),
        "write one line of printable text",
    ),
    "a header whose name is none": (
        lambda: HttpSource("http://host/", headers={"A b": ("c",)}),
        "is no header",
    ),
    "a node below 0": (lambda: DeviceAllocator(nodes=(-1,)), "DeviceAllocator.nodes: expected ids of NUMA"),
    "a node twice": (lambda: DeviceAllocator(nodes=(0, 0)), "ascending, each once"),
    "nodes from the last on": (lambda: DeviceAllocator(nodes=(1, 0)), "ascending, each once"),
    "no node at all": (lambda: DeviceAllocator(nodes=()), "ascending, each once"),
    "a node without a name": (
        lambda: NodeSettings(name="", memory_capacity_bytes=1),
        "NodeSettings.name: expected a text that is not empty",
    ),
    "a name server by its name": (
        lambda: NodeSettings(name="n", memory_capacity_bytes=1, cluster_dns=("dns",)),
        "NodeSettings.cluster_dns: expected an IP address",
    ),
    "logs in wherever the process is": (
        lambda: NodeSettings(name="n", memory_capacity_bytes=1, logs_directory="logs"),
        "NodeSettings.logs_directory: expected an absolute path",
    ),
    "a mount from wherever the runtime is": (
        lambda: HostMount(host_path="data", container_path="/data"),
        "HostMount.host_path: expected an absolute path",
    ),
    "a mount to wherever the program is": (
        lambda: HostMount(host_path="/data", container_path="data"),
        "HostMount.container_path: expected an absolute path",
    ),
    "a device in a container by its bare name": (
        lambda: HostDevice(host_path="/dev/null", container_path="null"),
        "HostDevice.container_path: expected an absolute path",
    ),
    "a device by its bare name": (
        lambda: HostDevice(host_path="null", container_path="/dev/null"),
        "HostDevice.host_path: expected an absolute path",
    ),
    "another pod's report in what is known": (
        lambda: PodKnown(uid="u", report=PodReport(uid="other")),
        "PodKnown is of pod u, and the report is of pod other",
    ),
    "a claim that takes over from itself": (
        lambda: Claim(owner=Owner("u", "app"), amounts={"cpu": Quantity.of(1)}, reuse=("app",)),
        "Claim.reuse of app: names the member itself",
    ),
    "a prober in the place of another": (
        lambda: Probers(http=TcpProber()),
        "Probers.http: a TcpProber asks by tcp; give it as tcp",
    ),
    "a verdict in words": (lambda: ContainerVerdicts(startup=wrong("passed")), "startup: expected a NoProbe"),
    "a kind of probe in words": (
        lambda: asks(wrong("liveness"), LifeState.SYNCING, ContainerKind.MAIN),
        "asks: kind: expected one of ProbeKind.STARTUP",
    ),
    "a life in words": (
        lambda: look(Tally(), ASKING, None, life=wrong("syncing"), now_s=0),
        "look: life: expected one of LifeState",
    ),
    "shares below 0": (
        lambda: LinuxResources(cpu_shares=-5),
        "LinuxResources.cpu_shares: expected a whole number from 2 to 262144, or None",
    ),
    "a score beyond the kernel's": (lambda: LinuxResources(oom_score_adj=1001), "from -1000 to 1000"),
    "memory of nothing": (lambda: LinuxResources(memory_bytes=0), "LinuxResources.memory_bytes: expected"),
    "pages of less than nothing": (
        lambda: LinuxResources(hugepages_bytes={"2MB": -1}),
        r"hugepages_bytes\[2MB\]: expected a whole number, 0 or more",
    ),
    "a disk below 0": (
        lambda: Disk(capacity_bytes=-1, available_bytes=0),
        "Disk.capacity_bytes: expected a whole number, 0 or more",
    ),
    "less than nothing left": (
        lambda: Disk(capacity_bytes=1, available_bytes=-1),
        "Disk.available_bytes: expected a whole number, 0 or more",
    ),
    "a cluster's name server by its name": (
        lambda: kubelet_config({"clusterDNS": ["dns"]}),
        r"expected an IP address such as 10.0.0.1, found 'dns' .*clusterDNS",
    ),
    "a container's state in words": (
        lambda: ContainerRecord(
            id="c",
            pod=PodIdentity(uid="u", namespace="d", name="n"),
            name="app",
            sandbox_id="s",
            state=wrong("running"),
        ),
        "ContainerRecord.state: expected a RunState",
    ),
    "a picture of less than nothing": (
        lambda: draw_svg(MACHINE, width=-5),
        "draw_svg, width: expected pixels",
    ),
    "a device on node -1": (lambda: DeviceList.of([Device("a")], nodes=(-1,)), "id -1 is outside 0 to 65535"),
    "a place for a device's health": (
        lambda: DeviceList.of([Device("a", wrong((0,)))], nodes=(0,)),
        "health of a device: expected a text such as Healthy",
    ),
    "a grant on node -5": (lambda: Grant.of([("a", (-5,))]), "Grant.places: expected ids of NUMA nodes"),
    "a resource without a name": (lambda: Inventory(resource=""), "Inventory.resource: expected a text"),
    "a plugin that has no time at all": (lambda: Deadlines(allocate_s=0), "Deadlines.allocate_s: expected"),
    "a plugin that has all time": (lambda: Deadlines(connect_s=math.inf), "Deadlines.connect_s: expected"),
    "fewer than no devices": (
        lambda: pick(DeviceList(), -1, available=0, reusable=0, affinity=None, prefer=lambda _, __: None),
        "pick, wanted: expected a whole number of devices",
    ),
    "the devices of nobody": (
        lambda: DeviceLedger(DeviceAllocator()).release(wrong(None)),
        "DeviceLedger.release: workload: expected a text",
    ),
    "other permissions": (
        lambda: HostDevice(host_path="/dev/null", container_path="/dev/null", permissions="rwx"),
        "HostDevice.permissions: expected letters of rwm",
    ),
    "a port at a name": (
        lambda: PortMapping(container_port=1, host_ip="localhost"),
        "PortMapping.host_ip: expected an IP address",
    ),
    "a user below 0": (lambda: Security(user=-1), "Security.user: expected an id, 0 or more"),
    "a group below 0": (lambda: Security(user=0, groups=(-1,)), "Security.groups: expected an id"),
    "a profile without its file": (
        lambda: SecurityProfile(type=ProfileType.LOCALHOST),
        "SecurityProfile.localhost: expected the profile's file",
    ),
    "an image of a user below 0": (lambda: ImageFacts(id="a", user=-1), "ImageFacts.user: expected"),
    "folders in wherever the process is": (
        lambda: PodFolders(""),
        "PodFolders.root: expected an absolute path",
    ),
    "a question at no port": (
        lambda: Question(action=TcpSocketAction(port=1), port=-1),
        "Question.port: expected a whole number from 0 to 65535",
    ),
    "a question that cannot be answered in time": (
        lambda: Question(action=TcpSocketAction(port=1), timeout_s=0),
        "Question.timeout_s: expected a number above 0",
    ),
    "a verdict of a kind in words": (
        lambda: ContainerVerdicts().with_verdict(wrong("liveness"), Passed()),
        "with_verdict: kind: expected one of ProbeKind",
    ),
    "the verdict of a word": (
        lambda: ContainerVerdicts()[wrong("liveness")],
        "kind: expected one of ProbeKind",
    ),
    "a truth for seconds": (
        lambda: NotYet(blocker="a", message="b", after_s=wrong(True)),
        "after_s is True; give finite seconds",
    ),
    "more than all for pods": (
        lambda: usable_by_pods({"cpu": Quantity.of(4)}, Reservation(system_reserved={"cpu": -1})),
        "system-reserved cpu -1 is negative; reserve 0 or more",
    ),
    "a pod's uid for several": (
        lambda: StatusManager(CallSink(print, print), World("pods"), executor=ManualExecutor()).heard("abc"),
        "StatusManager.heard: uids: expected several of text, found 'abc'",
    ),
    "a container for several": (
        lambda: Restarts().poked("web"),
        "Restarts.poked: names: expected several of text, found 'web'",
    ),
    "a source for several": (
        lambda: MergedUpdates().has_heard("file"),
        "MergedUpdates.has_heard: sources: expected several of text, found 'file'",
    ),
    "an init container for several": (
        lambda: PodSeen(report=PodReport(uid="u"), completed=wrong("migrate")),
        "PodSeen: completed: expected a set of text, found 'migrate'",
    ),
    "a pod that nobody has seen": (
        lambda: PodSeen(report=wrong(None)),
        "PodSeen: report: expected a PodReport",
    ),
    "one exit status in two rules": (
        lambda: RestartBackOff(
            exits=(
                ExitRule(codes=frozenset({0, 1}), base_s=0, cap_s=0),
                ExitRule(codes=frozenset({1, 2}), base_s=5, cap_s=9),
            )
        ),
        "RestartBackOff.exits: exit status 1 is in two rules",
    ),
    "a runtime at an address of TCP": (
        lambda: CriRuntime("tcp://x"),
        "CriRuntime: path: expected the path of a Unix socket, such as /run/x.sock or unix:///run/x.sock",
    ),
    "a socket at a path from nowhere": (
        lambda: CriRuntime("unix://run/x.sock"),
        "CriRuntime: path: expected",
    ),
    "a grace that is over": (
        lambda: CriRuntime("/run/x.sock").stop_container("x", -1),
        "CriRuntime.stop_container: grace_s: expected a number of seconds, 0 or more, found -1",
    ),
    "a command that is one text": (
        lambda: CriRuntime("/run/x.sock").run_command("c", "ls", 1.0),
        "CriRuntime.run_command: command: expected a list or tuple of text, found 'ls'",
    ),
    "a command that is one text, in memory": (
        lambda: FakeContainerRuntime().run_command("c", "ls", 1.0),
        "FakeContainerRuntime.run_command: command: expected a list or tuple of text, found 'ls'",
    ),
    "a source without a name": (
        lambda: PodSources({"": FolderSource("/run")}),
        "PodSources: a source without a name; give it one, such as 'file'",
    ),
    "faults that are told to a number": (
        lambda: PodSources({"file": FolderSource("/run")}).tell_faults(cast("Any", 5)),
        "PodSources.tell_faults: tell: expected something to call, found 5",
    ),
    "a call that no runtime has": (
        lambda: FakeContainerRuntime().lose_answer("nosuch"),
        "call: expected the name of a method of the runtime, such as 'create_container', found 'nosuch'",
    ),
    "versions of a plugin that are one text": (
        lambda: plugins().register("example.com/gpu", "/run/x.sock", "v1beta1"),
        "DevicePlugins.register: versions: expected a list or tuple of text, found 'v1beta1'",
    ),
    "no versions of a plugin": (
        lambda: plugins().validate("example.com/gpu", "/run/x.sock", wrong(None)),
        "DevicePlugins.validate: versions: expected a list or tuple of text, found None",
    ),
    "an endpoint that is none": (
        lambda: plugins().register("example.com/gpu", wrong(None), ["v1beta1"]),
        "DevicePlugins.register: endpoint: expected a text, found None",
    ),
    "a plugin without a name that goes": (
        lambda: plugins().deregister(wrong(None), "/run/x.sock"),
        "DevicePlugins.deregister: name: expected a text, found None",
    ),
    "no time for a plugin to say who it is": (
        lambda: GrpcRegistration(info_s=0),
        "GrpcRegistration: info_s: expected a number of seconds above 0, found 0",
    ),
    "no time for a plugin to take the news": (
        lambda: GrpcRegistration(notify_s=0.0),
        "GrpcRegistration: notify_s: expected a number of seconds above 0, found 0.0",
    ),
    "a wait for events that is a text": (
        lambda: plugins().events().take(wrong("1")),
        "DeviceEvents.take: timeout_s: expected a number of seconds, 0 or more or None, found '1'",
    ),
    "a wait for events that is over": (
        lambda: plugins().events().take(-1.0),
        "DeviceEvents.take: timeout_s: expected a number of seconds, 0 or more or None, found -1.0",
    ),
    "capacity without memory": (
        lambda: NodePlan.of(KubeletConfig(), MACHINE, name="n", capacity={}, kernel="6.1"),
        "machine_capacity",
    ),
}


@pytest.mark.parametrize("name", SILENT)
def test_a_wrong_value_is_refused_where_it_is_given(name: str) -> None:
    """Its argument is named, so that nobody looks for it where it shows."""
    call, argument = SILENT[name]
    with pytest.raises((ConfigurationError, DecodeError), match=argument):
        call()
