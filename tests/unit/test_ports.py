"""Every public Protocol has somebody who keeps it in the kit, and a check that says so."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import pkgutil
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import attrs
import pytest

import nodealloc
from nodealloc.cgroups import CgroupName, Limits
from nodealloc.checkpoint import JsonCheckpoint, MemoryStore
from nodealloc.cpuset import CpuAllocator, CpuLayout, CPUSet, KubeletPicker, StaticPolicy
from nodealloc.devices import Device, DeviceAllocator, DeviceLedger, DeviceList, Inventory, PluginOptions
from nodealloc.dsw_asw import Cancel, Done, Outcome, Plan, Step, View
from nodealloc.dsw_asw._cancellation import Cancellation
from nodealloc.idset import NodeSet
from nodealloc.machine import machine_from_text
from nodealloc.memblocks import MemoryAllocator
from nodealloc.pluginreg import PluginInfo
from nodealloc.podfacts import Exited, PodIdentity
from nodealloc.podlife import HookCall
from nodealloc.podspec import (
    Container,
    ExecAction,
    LifecycleHandler,
    Pod,
    Quantity,
    SleepAction,
    TcpSocketAction,
    Volume,
)
from nodealloc.probes import Question, ReplyKind, TcpProber
from nodealloc.runtime import (
    CommandResult,
    ContainerConfig,
    PodReport,
    PullCredentials,
    RuntimeRefusedError,
    SandboxConfig,
)
from nodealloc.testing.abilities import (
    FakeCpuAllocator,
    check_accounts,
    check_adopts,
    check_confines,
    check_remembers,
    filled,
)
from nodealloc.testing.admission import check_resized_workload, check_resizes
from nodealloc.testing.cgroups import (
    FakeCgroups,
    check_cgroup_driver,
    check_process_driver,
    check_tree_reader,
)
from nodealloc.testing.checkpoint import check_checkpoint, check_store
from nodealloc.testing.cpuset import FakeCpusetWriter, check_cpuset_writer, check_picker
from nodealloc.testing.devices import FakePlugin, check_allocator_keeper, check_connection
from nodealloc.testing.dirwatch import FakeWatcher, check_watcher
from nodealloc.testing.dsw_asw import (
    ManualCancel,
    ManualExecutor,
    MemoryJournal,
    VirtualClock,
    check_cancel,
    check_clock,
    check_executor,
    check_journal,
    check_plan,
)
from nodealloc.testing.node import (
    FakeAdvisor,
    FakeRuntime,
    check_advisor,
    check_kubelet_file,
    check_regranted,
    check_runtime,
)
from nodealloc.testing.pluginreg import (
    FakeAsyncRegistration,
    FakeRegistration,
    RecordingHandler,
    check_async_registration,
    check_handler,
    check_registration,
)
from nodealloc.testing.podfacts import FakePods, check_pod_source
from nodealloc.testing.podlife import (
    FakeCredentials,
    FakeEnvironment,
    FakeHooks,
    FakePreparer,
    PlainConfiguration,
    check_configures,
    check_credential_source,
    check_environment_source,
    check_hook_runner,
    check_preparer,
)
from nodealloc.testing.podsources import FakeSource, check_source
from nodealloc.testing.podstatus import FakeSink, check_sink
from nodealloc.testing.probes import FakeProber, check_exchanges, check_exec, check_prober
from nodealloc.testing.runtime import (
    FakeContainerRuntime,
    check_command_runner,
    check_containers,
    check_event_feed,
    check_images,
    check_looks,
    check_sandboxes,
)
from nodealloc.testing.topology import (
    FakeAllocator,
    check_allocator,
    check_comparison,
    check_reports,
    workload,
)
from nodealloc.testing.volume_plugins import (
    FakeBlockTools,
    FakeFilesystems,
    check_block_tools,
    check_filesystems,
    check_plugin,
)
from nodealloc.testing.volume_sources import (
    FakeAttachments,
    FakeConfigSource,
    FakeLeftovers,
    FakeMountWatch,
    FakeTokens,
    check_attach_verifier,
    check_claim_resolver,
    check_config_source,
    check_leftovers,
    check_mount_watch,
    check_token_source,
    check_watchable,
)
from nodealloc.testing.volumes import FakeClaims, FakeHost, FakeMounter, check_mounter
from nodealloc.topology import (
    Claim,
    ClaimKind,
    Closest,
    LeastAllocated,
    MostAllocated,
    Narrowest,
    NumaTopology,
    Owner,
    Policy,
    Snapshot,
    TopologyHint,
    Workload,
)
from nodealloc.volumes import Found, Use, VolumeSpec
from nodealloc.volumes.plugins import TokenRequest

ROOT = CgroupName.of("check")
MACHINE = machine_from_text("2 sockets x 4 cores")
SIZES = [Claim(owner=Owner("db", "app"), amounts={"cpu": Quantity.of(cpus)}) for cpus in (2, 4, 99)]


def resizes() -> None:
    """One who grows and shrinks, and pods of which one container lends to the next."""
    check_resizes(resizable(), *SIZES)
    here = machine_from_text("1 socket x 8 cores, memory=16Gi")
    policy = StaticPolicy.of(here, reserved=1, resizable=True)
    lending, shrunk = (lends("4", main) for main in ("4", "1"))
    for allocator in (MemoryAllocator.of(here), CpuAllocator(policy=policy)):
        check_resized_workload(allocator, lending, shrunk)
        check_resized_workload(allocator, shrunk, lending)


def lends(first: str, main: str) -> Workload:
    """An init member, and a main one that reuses what it had: CPUs, and as many GiB."""
    init, app = (
        {"cpu": Quantity.parse(size), "memory": Quantity.parse(f"{size}Gi")} for size in (first, main)
    )
    return Workload(
        key="job",
        claims=(
            Claim(owner=Owner("job", "first"), amounts=init, kind=ClaimKind.INIT),
            Claim(owner=Owner("job", "app"), amounts=app, reuse=("first",)),
        ),
    )


def resizable() -> CpuAllocator:
    """CPUs of which the first of `SIZES` is granted, and as many to somebody else."""
    policy = StaticPolicy.of(machine_from_text("2 sockets x 4 cores"), reserved=1, resizable=True)
    granted = CpuAllocator(policy=policy)
    for claim in (SIZES[0], attrs.evolve(SIZES[0], owner=Owner("web", "app"))):
        answer = granted.allocate(claim, TopologyHint(None, preferred=True))
        assert isinstance(answer, CpuAllocator)
        granted = answer
    return granted


NUMA = NumaTopology(nodes=(0, 1), distances={0: {0: 10, 1: 21}, 1: {0: 21, 1: 10}})
GPU = "example.com/gpu"
GPUS = FakeAllocator.of(GPU, {0: 2, 1: 2})
ASKED = workload("job", {"example.com/gpu": 2, "cpu": 2})
CPUS = FakeCpuAllocator.of({0: 4, 1: 4})
JOBS = [
    workload("job", {"cpu": 2}, {"cpu": 1}),
    Workload(
        key="half",
        claims=(Claim(owner=Owner("half", "app"), amounts={"cpu": Quantity.parse("1500m")}),),
    ),
]


def cgroups() -> FakeCgroups:
    """A fake with the root that the checks need."""
    fake = FakeCgroups()
    fake.apply(ROOT, Limits())
    return fake


def registration() -> None:
    """A fake on whose socket somebody answers."""
    info = PluginInfo(type="DevicePlugin", name="example.com/gpu", endpoint="/a")
    check_registration(FakeRegistration({"/a": info}), "/a", "/b")


def async_registration() -> None:
    """The same, asked without waiting."""
    info = PluginInfo(type="DevicePlugin", name="example.com/gpu", endpoint="/a")
    check_async_registration(FakeAsyncRegistration({"/a": info}), "/a", "/b")


def store() -> None:
    """Opened again over what it held."""
    data: dict[str, bytes] = {}
    held: list[MemoryStore] = []

    def reopen(formats: object) -> MemoryStore:
        if held:
            data.update(held[-1].data())
            for gone in set(data) - set(held[-1].data()):
                del data[gone]
        held.append(MemoryStore(formats, data=data))  # type: ignore[arg-type]
        return held[-1]

    check_store(reopen)


def runtime() -> None:
    """Container ids are numbers that rise."""
    fake, numbers = FakeRuntime(), iter("12345678")

    def start(owner: Owner) -> str:
        number = next(numbers)
        fake.start(owner, number)
        return number

    check_runtime(fake, start, fake.stop)


TOKENS = [
    TokenRequest(namespace="n", service_account="a", pod_name="web", pod_uid="u", audience=one)
    for one in "xy"
]


def box(uid: str) -> SandboxConfig:
    """A sandbox of a pod, with something to keep."""
    return SandboxConfig(
        pod=PodIdentity(uid=uid, namespace="default", name=uid),
        attempt=1,
        hostname=uid,
        labels={"app": uid},
        annotations={"note": "kept"},
    )


APP = ContainerConfig(
    name="app", image="busybox", definition="5eed", labels={"app": "a"}, annotations={"note": "kept"}
)


class Leaving(FakeContainerRuntime):
    """Its containers called `leaves-N` end by themselves as soon as they were started, with N."""

    def start_container(self, container_id: str, /) -> None:
        """Nobody stops them."""
        super().start_container(container_id)
        listed = [one for pod in self.listing().pods.values() for one in pod.containers]
        name = next(one.name for one in listed if one.id == container_id)
        if name.startswith("leaves-"):
            self.exit(container_id, Exited(code=int(name.removeprefix("leaves-"))))


ENDS = {code: attrs.evolve(APP, name=f"leaves-{code}") for code in (0, 3)}


def containers() -> None:
    """One that runs on, and two that end by themselves."""
    check_containers(Leaving(), box("u"), APP, ends=ENDS)


def commands() -> None:
    """One container that answers two commands."""
    fake = FakeContainerRuntime()
    sandbox = box("u")
    app = fake.create_container(fake.run_sandbox(sandbox), APP, sandbox)
    fake.start_container(app)
    left: dict[Sequence[str], CommandResult] = {
        ("true",): CommandResult(code=0),
        ("false",): CommandResult(code=1, errors=b"no"),
    }
    fake.commands = lambda _, command: left[tuple(command)]
    check_command_runner(fake, app, left)


def asked_well_and_sick() -> None:
    """Two containers."""
    fake = FakeProber()
    fake.says("sick", ReplyKind.FAILURE, "status 500")
    well, sick = (Question(action=ExecAction(), container_id=one) for one in ("well", "sick"))
    check_prober(fake, well=well, sick=sick)


def exchanging() -> None:
    """A port that listens, one that does not, and one whose queue is full."""

    def at(port: int, timeout_s: float = 20.0) -> Question:
        action = TcpSocketAction(port=port)
        return Question(action=action, address="127.0.0.1", port=port, timeout_s=timeout_s)

    with socket.create_server(("127.0.0.1", 0)) as good, socket.socket() as full:
        with socket.create_server(("127.0.0.1", 0)) as gone:
            closed = gone.getsockname()[1]
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        port = full.getsockname()[1]
        with contextlib.ExitStack() as held:
            for _ in range(4):
                one = held.enter_context(socket.socket())
                one.setblocking(False)
                one.connect_ex(("127.0.0.1", port))
            check_exchanges(
                TcpProber(), well=at(good.getsockname()[1]), sick=at(closed), silent=at(port, 0.05)
            )


def executed() -> None:
    """One container that answers two commands, and has no third."""
    fake = FakeContainerRuntime()
    sandbox = box("u")
    app = fake.create_container(fake.run_sandbox(sandbox), APP, sandbox)
    fake.start_container(app)

    def answer(_id: str, command: Sequence[str]) -> CommandResult:
        if tuple(command) == ("absent",):
            raise RuntimeRefusedError("run_command", "UNKNOWN", "no such file")
        return CommandResult(code=int(tuple(command) == ("false",)))

    fake.commands = answer
    check_exec(fake, app, {("true",): 0, ("false",): 1}, absent=("absent",))


def looks() -> None:
    """Pulling an image is no change, a sandbox is one."""
    check_looks(FakeContainerRuntime(), [box("u"), box("v")])
    fake, cancel = FakeContainerRuntime(), ManualCancel()
    uids = iter("uv")
    check_event_feed(fake, lambda: fake.run_sandbox(box(next(uids))), cancel, cancel.set)


def connection() -> None:
    """Its devices can be changed."""

    def make(
        devices: Sequence[Device],
    ) -> tuple[FakePlugin, Callable[[Sequence[Device]], None], Callable[[], None]]:
        plugin = FakePlugin(devices)
        return plugin, plugin.set_devices, plugin.hang

    check_connection(make)


def regranted() -> None:
    """One of two owners of devices gives them back."""
    listed = DeviceList.of([Device(f"gpu-{number}") for number in range(3)], nodes=(0,))
    known = Inventory(resource="example.com/gpu").registered(1, now_s=0.0)
    serving = known.listed(1, listed, PluginOptions(), now_s=0.0)
    jobs = [workload(name, {"example.com/gpu": 1}) for name in "ab"]
    before = filled(DeviceAllocator().with_inventory(serving), jobs)
    check_regranted(before, before.release("a"), jobs)


def cpu_node() -> Snapshot:
    """Empty, with CPUs."""
    allocators = (CpuAllocator.of(MACHINE),)
    return Snapshot(numa=NUMA, policy=Policy.parse("best-effort"), allocators=allocators)


@attrs.frozen
class Counting:
    """A `Domain` in which a key's record is to become what is wanted."""

    def plan(self, view: View[str, int, int, str], /) -> Plan[int, str]:
        """One step where the two differ."""
        if view.want == view.have:
            return Plan()
        return Plan(steps=[Step(scope=("count",), verb="set", detail=str(view.want))])

    def perform(self, step: Step[str], _cancel: Cancel, /) -> str:
        """Nothing to do."""
        return step.verb

    def settled(self, have: int | None, _step: Step[str], outcome: Outcome[str], /) -> int | None:
        """Nothing to write."""
        assert isinstance(outcome, Done)
        return have


def plugin_of_everything() -> None:
    """A volume that needs every ability."""
    host = FakeHost()
    check_plugin(host, host.disk("d", 1 << 20), Use(pod_uid="u"))


def claims() -> None:
    """One is bound, one is not."""
    bound = VolumeSpec(plugin="example.com/disk", name="d")
    volumes = [Volume(name=one, kind="persistentVolumeClaim", spec={"claimName": one}) for one in "ab"]
    check_claim_resolver(FakeClaims({"a": bound}), Pod(uid="u", name="u"), *volumes)


def fake_sink() -> None:
    """A sink that remembers shows what it was told."""
    sink = FakeSink()
    check_sink(sink, sink.statuses.get)


def pod_source() -> None:
    """Two pods are known."""
    pods = FakePods()
    pods.put(Pod(uid="u"))
    pods.put(Pod(uid="v"))
    check_pod_source(pods, "u", ["u", "v"])
    check_pod_source(pods, "u")


def a_pod() -> Pod:
    """One with a container."""
    return Pod(uid="u", name="web", containers=(Container(name="app", image="busybox"),))


def preparer() -> None:
    """A part that can be seen."""
    fake = FakePreparer()
    check_preparer(fake, a_pod(), is_there=lambda pod: pod.uid in fake.there)


def credentials() -> FakeCredentials:
    """Somebody for one registry."""
    return FakeCredentials({"r.test": (PullCredentials(username="me", password="secret word"),)})  # noqa: S106 - invented


def environment() -> FakeEnvironment:
    """One object of each kind is there."""
    return FakeEnvironment(config_maps={("n", "o"): {"a": "1"}}, secrets={("n", "o"): {"a": b"1"}})


def hook_runner() -> None:
    """One hook that runs, one that fails, one that goes on."""
    good = HookCall(
        pod=a_pod(),
        container=a_pod().containers[0],
        container_id="c",
        handler=LifecycleHandler(sleep=SleepAction(seconds=1)),
        timeout_s=120.0,
        report=PodReport(uid="u"),
    )
    bad, endless = (attrs.evolve(good, container_id=one) for one in ("bad", "endless"))
    hooks = FakeHooks(answer=lambda call: "no" if call is bad else "", endless=frozenset({"endless"}))
    check_hook_runner(hooks, good, bad, endless)


def config_source() -> FakeConfigSource:
    """One object is there."""
    source = FakeConfigSource()
    source.put("n", "o", {"a": b"1"})
    return source


def watched() -> None:
    """Each change is another version."""
    source = config_source()
    check_watchable(source, ("n", "o"), lambda: source.put("n", "o", {"a": b"2"}), within_s=1.0)


def block_tools(folder: Path) -> None:
    """An image file for both."""
    image = folder / "image"
    tools = FakeBlockTools()
    image.touch()
    check_block_tools(tools, str(image))


def filesystems(folder: Path) -> None:
    """On an image of the fake tools."""
    tools = FakeBlockTools()
    check_filesystems(FakeFilesystems(), tools, str(folder / "other"))


def comparisons() -> None:
    """All that ship."""
    for one in (Narrowest(), Closest(), LeastAllocated(), MostAllocated()):
        check_comparison(one, NUMA)


def mounts(folder: Path) -> None:
    """One fake is both."""
    fake = FakeMounter(str(folder))
    check_mounter(fake, fake, str(folder))


def mount_watch() -> None:
    """A loss is what the test puts."""
    fake = FakeMountWatch()
    check_mount_watch(fake, LEFT, lambda: None, lambda: fake.gone.append(LEFT))


def executor() -> None:
    """It runs what it is told to."""
    one = ManualExecutor()
    check_executor(one, one.run_all)


def cancelling() -> None:
    """The one that tests set by hand, and the engine's own."""
    by_hand, own = ManualCancel(), Cancellation(threading.Lock())
    check_cancel(by_hand, by_hand.set)
    check_cancel(own, own.set)


def journal() -> None:
    """In memory; it refuses what its fault refuses, all of it."""
    one: MemoryJournal[int] = MemoryJournal()
    check_journal(one, lambda: one.rows, (1, 2))


def poke(watcher: object) -> None:
    """Say so when something changed."""
    assert isinstance(watcher, FakeWatcher)
    watcher.poke()


LEFT = Found(plugin="example.com/gone", name="v", pod_uid="u")
KEPT: dict[str, Callable[[Path], object]] = {
    "admission.Resizes": lambda _: resizes(),
    "cgroups.CgroupDriver": lambda _: check_cgroup_driver(cgroups(), ROOT),
    "cgroups.ProcessDriver": lambda _: check_process_driver(cgroups(), ROOT),
    "cgroups.TreeReader": lambda _: check_tree_reader(cgroups(), ROOT),
    "checkpoint.Checkpoint": lambda _: check_checkpoint(JsonCheckpoint(kind="k", version=1, value={"a": 1})),
    "checkpoint.Store": lambda _: store(),
    "cpuset.CpusetWriter": lambda _: check_cpuset_writer(
        FakeCpusetWriter({"web": CPUSet.of(0, 1), "db": CPUSet.of(2)}),
        "web",
        [CPUSet.of(0, 2), CPUSet.of(1)],
        absent="nobody",
        beside="db",
        mems=NodeSet.of(0),
    ),
    "cpuset.Picker": lambda _: check_picker(KubeletPicker(), CpuLayout.of(MACHINE)),
    "devices.AllocatorKeeper": lambda _: check_allocator_keeper(DeviceLedger),
    "devices.PluginConnection": lambda _: connection(),
    "dirwatch.Watcher": lambda folder: check_watcher(lambda _: FakeWatcher(), folder / "reg", nudge=poke),
    "dsw_asw.Cancel": lambda _: cancelling(),
    "dsw_asw.Clock": lambda _: check_clock(VirtualClock()),
    "dsw_asw.Domain": lambda _: check_plan(Counting(), View(key="a", want=1)),
    "dsw_asw.Executor": lambda _: executor(),
    "dsw_asw.Journal": lambda _: journal(),
    "node.Advisor": lambda _: check_advisor(FakeAdvisor(2), cpu_node),
    "node.KubeletFile": lambda _: check_kubelet_file(cpu_node()[CpuAllocator], JOBS),
    "node.Runtime": lambda _: runtime(),
    "node.TellsRegranted": lambda _: regranted(),
    "pluginreg.AsyncRegistration": lambda _: async_registration(),
    "pluginreg.PluginHandler": lambda _: check_handler(RecordingHandler(), "example.com/gpu", "/a", ["v1"]),
    "pluginreg.Registration": lambda _: registration(),
    "probes.Exchanges": lambda _: exchanging(),
    "probes.Exec": lambda _: executed(),
    "probes.Prober": lambda _: asked_well_and_sick(),
    "runtime.CommandRunner": lambda _: commands(),
    "runtime.Containers": lambda _: containers(),
    "runtime.Images": lambda _: check_images(FakeContainerRuntime(), "another"),
    "runtime.Looks": lambda _: looks(),
    "runtime.Sandboxes": lambda _: check_sandboxes(FakeContainerRuntime(), box("u")),
    "topology.Accounts": lambda _: check_accounts(CPUS, JOBS, NUMA),
    "topology.Adopts": lambda _: check_adopts(CPUS, JOBS),
    "topology.Allocator": lambda _: check_allocator(GPUS, ASKED, NUMA),
    "topology.Comparison": lambda _: comparisons(),
    "topology.Confines": lambda _: check_confines(CPUS, JOBS),
    "topology.Remembers": lambda _: check_remembers(CPUS, JOBS),
    "topology.Reports": lambda _: check_reports(GPUS, workload("job", {GPU: 2}, {GPU: 1}), NUMA),
    "volumes.AttachVerifier": lambda _: check_attach_verifier(
        FakeAttachments({"p/v": "/dev/v"}), "p/v", "p/w"
    ),
    "volumes.ClaimResolver": lambda _: claims(),
    "volumes.Leftovers": lambda _: check_leftovers(FakeLeftovers([LEFT]), LEFT),
    "volumes.MountTable": mounts,
    "volumes.MountWatch": lambda _: mount_watch(),
    "volumes.Mounter": mounts,
    "volumes.Plugin": lambda _: plugin_of_everything(),
    "podfacts.PodSource": lambda _: pod_source(),
    "podlife.Configures": lambda _: check_configures(PlainConfiguration(), a_pod()),
    "podlife.CredentialSource": lambda _: check_credential_source(
        credentials(), a_pod(), "r.test/a:1", "other.test/a:1"
    ),
    "podlife.EnvironmentSource": lambda _: check_environment_source(environment(), ("n", "o")),
    "podlife.HookRunner": lambda _: hook_runner(),
    "podlife.Preparer": lambda _: preparer(),
    "podsources.Source": lambda _: check_source(
        FakeSource(pods=[a_pod(), attrs.evolve(a_pod(), uid="v", name="db")]), ["web", "db"]
    ),
    "podstatus.Sink": lambda _: fake_sink(),
    "volumes.plugins.BlockTools": block_tools,
    "volumes.plugins.ConfigSource": lambda _: check_config_source(config_source(), ("n", "o"), ("n", "p")),
    "volumes.plugins.Filesystems": filesystems,
    "volumes.plugins.TokenSource": lambda _: check_token_source(FakeTokens(), *TOKENS),
    "volumes.plugins.WatchableConfigSource": lambda _: watched(),
}
"""Protocol to its check, run on what the kit has in its place."""

EXEMPT = {
    "agent.Beside": "two verbs of what an agent starts and stops, kept by what each of those is",
    "cgroups.TreeDriver": "CgroupDriver, ProcessDriver and TreeReader in one; FakeCgroups is all three",
    "devices.PluginCalls": "half of PluginConnection, checked as one",
    "devices.PluginWatch": "half of PluginConnection, checked as one",
    "dsw_asw.Observer": "it only listens: nothing that it does is relied on; RecordingObserver keeps all",
    "podlife.CanStopConfiguring": "an ability of Configures, checked with it",
    "podlife.PodRuntime": "four Protocols of runtime in one object, each checked by itself",
    "runtime.WholeRuntime": "Protocols of runtime in one object, each checked by itself",
    "topology.NumaMachine": "read and not called; a Machine is one",
    "podstatus.LifeFacts": "read and not called; a PodFacts of podlife is one",
    "podstatus.ProbeResults": "read and not called; a PodVerdicts of probes is one",
    "topology.Serves": "an ability of Allocator, checked with it",
    "volumes.CanAge": "an ability of Plugin, checked with it",
    "volumes.CanAttach": "an ability of Plugin, checked with it",
    "volumes.CanExpand": "an ability of Plugin, checked with it",
    "volumes.CanMount": "an ability of Plugin, checked with it",
    "volumes.CanReconstruct": "an ability of Plugin, checked with it",
    "volumes.CanRevise": "an ability of Plugin, checked with it",
    "volumes.CanStage": "an ability of Plugin, checked with it",
}
"""Protocol to the reason why it has no check of its own."""


def protocols() -> Iterator[tuple[str, type]]:
    """Every Protocol that a public module outside the kit exports."""
    for module in pkgutil.walk_packages(nodealloc.__path__, "nodealloc."):
        name = module.name.removeprefix("nodealloc.")
        if name.startswith("testing") or any(part.startswith("_") for part in name.split(".")):
            continue
        here = importlib.import_module(module.name)
        for exported in here.__all__:
            one = getattr(here, exported)
            if inspect.isclass(one) and getattr(one, "_is_protocol", False):
                yield f"{name}.{exported}", one


def test_every_protocol_is_kept_or_exempt_for_a_reason() -> None:
    """A new Protocol is found here; so is one that has gone."""
    there = [name for name, _ in protocols()]
    assert sorted({**KEPT, **EXEMPT}) == sorted(there)
    assert not set(KEPT) & set(EXEMPT)


@pytest.mark.parametrize("name", sorted(KEPT))
def test_the_kit_keeps_its_own_promises(name: str, tmp_path: Path) -> None:
    """The fake, or the value that needs none, passes the check that users run on theirs."""
    KEPT[name](tmp_path)


WIDE = {
    "runtime.Containers": (5, "the whole life of one container, which whoever does a part of it does all of"),
    "runtime.Looks": (4, "a runtime that has no events says so, and is looked at all the same"),
}
"""Protocol to how many methods it has, and why it is no narrower."""


def test_protocols_stay_narrow() -> None:
    """Three methods at most, those of a Protocol's parts apart; five where a reason is given."""
    for name, one in protocols():
        own = [key for key, value in vars(one).items() if key[0] != "_" and inspect.isfunction(value)]
        allowed, _reason = WIDE.get(name, (3, ""))
        assert len(own) <= allowed <= 5, f"{name} has {own}"


def test_a_runtime_is_asked_through_five_protocols() -> None:
    """Look, sandboxes, containers, images, commands: nobody has to know more of a runtime."""
    of_runtime = {one.__name__ for name, one in protocols() if name.startswith("runtime.")}
    whole = {"WholeRuntime"}  # the five of them in one object
    assert of_runtime == whole | {"CommandRunner", "Containers", "Images", "Looks", "Sandboxes"}
