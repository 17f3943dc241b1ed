"""Device plugins in processes of their own, over real sockets: their life, their habits, their misdeeds."""

from __future__ import annotations

import gc
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Self

import grpc
import pytest

from nodealloc.devices import (
    Capacity,
    Deadlines,
    Device,
    DeviceAllocator,
    DeviceLedger,
    Launch,
    Phase,
    PluginConnection,
    PluginLimits,
    PluginRefusedError,
    PluginUnavailableError,
    RegistrationRefusedError,
)
from nodealloc.devices.plugins import DevicePlugins
from nodealloc.devices.plugins._codec import RegisterRequest
from nodealloc.devices.plugins._grpc import GrpcConnection
from nodealloc.devices.plugins._registration import introduce
from nodealloc.errors import PermanentError
from nodealloc.pluginreg import GrpcRegistration, PluginRegistrar
from nodealloc.podspec import Quantity
from nodealloc.testing.device_plugin import Behaviour, DevicePluginServer, main, numbered
from nodealloc.testing.devices import FakePlugin, PluginProcess, check_connection, wait_until
from nodealloc.testing.pluginreg import (
    bare_socket,
    check_async_registration,
    check_handler,
    check_registration,
)
from nodealloc.topology import Claim, NotYet, Owner, TopologyHint

pytestmark = pytest.mark.real

GPU = "example.com/gpu"
QUICK = Deadlines(connect_s=1.0, preferred_s=0.3, allocate_s=0.3, pre_start_s=0.3)


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory with a path short enough for sockets."""
    path = Path(tempfile.mkdtemp(prefix="na-"))
    yield path / "dp"
    shutil.rmtree(path, ignore_errors=True)


class Agent:
    """A program that serves device plugins, as small as it can be."""

    def __init__(
        self, directory: Path, *, grace_s: float = 300.0, limits: PluginLimits | None = None
    ) -> None:
        self.ledger = DeviceLedger(DeviceAllocator(nodes=(0, 1)))
        self.plugins = DevicePlugins(
            self.ledger,
            directory=directory,
            connect=lambda socket: GrpcConnection(socket, deadlines=QUICK, limits=limits),
            grace_s=grace_s,
            look_s=0.05,
        )

    def __enter__(self) -> Self:
        self.plugins.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.plugins.stop()

    def phase(self, resource: str = GPU) -> Phase | None:
        """Where a plugin's life stands."""
        inventory = self.ledger.current().inventories.get(resource)
        return None if inventory is None else inventory.phase

    def wait(self, allocatable: int, resource: str = GPU) -> None:
        """Wait until so many devices are healthy."""
        wait_until(
            lambda: self.plugins.capacity().get(resource, Capacity(-1, -1)).allocatable == allocatable,
            what=f"{allocatable} {resource}; {self.plugins.status()}",
        )

    def wait_phase(self, phase: Phase, resource: str = GPU) -> None:
        """Wait for a phase."""
        wait_until(lambda: self.phase(resource) is phase, what=f"{phase}; {self.plugins.status()}")

    def grant(self, workload: str, count: int, affinity: int | None = None) -> frozenset[str]:
        """Admit, in as many rounds as the plugin's advice takes; the ids."""
        claim = Claim(owner=Owner(workload, "c"), amounts={GPU: Quantity.of(count)})
        hint = TopologyHint(affinity, True)
        for _ in range(3):
            outcome = self.ledger.current().allocate(claim, hint)
            if not isinstance(outcome, DeviceAllocator) or not self.plugins.ask(outcome):
                break
        _, after = self.ledger.alter(lambda allocator: granted(allocator, claim, hint).without_answers())
        return after.grants[workload]["c", GPU].ids

    def launch(self, workload: str) -> Launch:
        """Prepare and start its container."""
        self.plugins.prepare(workload)
        self.plugins.pre_start(Owner(workload, "c"))
        launch = self.plugins.launch(Owner(workload, "c"))
        assert isinstance(launch, Launch)
        return launch


def granted(allocator: DeviceAllocator, claim: Claim, hint: TopologyHint) -> DeviceAllocator:
    """The allocator after a claim that has to fit."""
    answer = allocator.allocate(claim, hint)
    assert isinstance(answer, DeviceAllocator), answer
    return answer


@pytest.fixture
def agent(place: Path) -> Iterator[Agent]:
    """A running agent."""
    with Agent(place) as running:
        yield running


def plugin(place: Path, *arguments: str) -> PluginProcess:
    """A plugin's process in the agent's directory."""
    return PluginProcess("--directory", str(place), "--devices", "4", "--numa", "0-1", *arguments)


def test_the_life_of_a_plugin(agent: Agent, place: Path) -> None:
    """Register, list, advise, allocate, prepare; die; come back; nothing that is in use is lost."""
    with plugin(place, "--preferred", "--pre-start") as process:
        agent.wait(4)
        assert agent.grant("p", 1, affinity=2) == {"dev-3"}
        launch = agent.launch("p")
        assert launch.env == {"GPU_VISIBLE_DEVICES": "dev-3"}
        assert process.wait_for("allocated") == process.wait_for("prepared") == "dev-3"
        process.kill()
    agent.wait_phase(Phase.LOST)
    assert agent.plugins.capacity()[GPU] == Capacity(4, 0)
    assert agent.grant("p", 1) == {"dev-3"}
    assert agent.plugins.launch(Owner("p", "c")) == launch
    with plugin(place):
        agent.wait(4)
        assert agent.grant("p", 1) == {"dev-3"}
        assert not agent.grant("q", 3) & {"dev-3"}


def test_rights_of_sockets_and_directory(agent: Agent, place: Path) -> None:
    """Nobody else may look into the directory or talk to the socket."""
    assert agent.phase() is None
    assert place.stat().st_mode & 0o777 == 0o750
    assert (place / "kubelet.sock").stat().st_mode & 0o777 == 0o660


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        (RegisterRequest(version="v1beta1", endpoint="../x.sock", resource=GPU), "outside"),
        (RegisterRequest(version="v1beta1", endpoint="a\0b", resource=GPU), "leads nowhere"),
        (RegisterRequest(version="v1beta1", endpoint="é" * 60, resource=GPU), "too long"),
        (RegisterRequest(version="v1alpha", endpoint="x.sock", resource=GPU), "v1beta1"),
        (RegisterRequest(version="v1beta1", endpoint="x.sock", resource="cpu"), "extended resource"),
        (RegisterRequest(version="v1beta1", endpoint="kubelet.sock", resource=GPU), "the agent's own"),
    ],
)
def test_registrations_that_are_refused(
    agent: Agent, place: Path, request_: RegisterRequest, said: str
) -> None:
    """The plugin hears why, and nothing is known of it."""
    with pytest.raises(RegistrationRefusedError, match=said):
        introduce(place / "kubelet.sock", request_)
    assert agent.plugins.status() == ()


def test_a_registration_through_links_in_a_circle_is_refused(agent: Agent, place: Path) -> None:
    """The plugin hears why; the agent sees no error of its own."""
    (place / "loop").symlink_to("loop")
    with pytest.raises(RegistrationRefusedError, match=r"leads nowhere|outside"):
        introduce(place / "kubelet.sock", RegisterRequest(version="v1beta1", endpoint="loop/x", resource=GPU))
    assert agent.plugins.status() == ()


@pytest.mark.parametrize(
    ("made", "seen"),
    [
        (os.fspath, "nothing is there"),
        (os.mkfifo, "a FIFO is there"),
        (bare_socket, "nobody listens"),
        (Path.mkdir, "a directory is there"),
    ],
)
def test_a_plugin_that_is_not_there_is_told_by_what_is(
    place: Path, made: Callable[[Path], object], seen: str
) -> None:
    """By itself gRPC would say no more than that its deadline passed."""
    place.mkdir()
    made(place / "x.sock")
    connection = GrpcConnection(str(place / "x.sock"), deadlines=Deadlines(connect_s=0.2))
    with pytest.raises(PluginUnavailableError, match=seen):
        connection.options()
    connection.close()


def test_a_plugin_that_does_not_speak_grpc_is_told_apart(place: Path) -> None:
    """Something that takes callers and says nothing is named as what it is."""
    place.mkdir()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(place / "x.sock"))
        server.listen()
        connection = GrpcConnection(str(place / "x.sock"), deadlines=Deadlines(connect_s=0.2))
        with pytest.raises(PluginUnavailableError, match="does not answer in gRPC"):
            connection.options()
        connection.close()


def test_a_plugin_that_serves_only_after_it_registered(agent: Agent, place: Path) -> None:
    """It is told that nobody answers; once it begins to listen it is taken on all the same."""
    late = RegisterRequest(version="v1beta1", endpoint="late.sock", resource=GPU)
    with pytest.raises(PluginUnavailableError, match="nothing is there"):
        introduce(place / "kubelet.sock", late)
    server = DevicePluginServer(GPU, numbered(2), place / "late.sock")
    server.start()
    agent.wait(2)
    assert agent.phase() is Phase.SERVING
    server.stop()


def test_plugins_register_again_when_the_agent_restarts(place: Path) -> None:
    """The start of an agent sweeps the directory: that is how plugins notice."""
    with Agent(place) as first, plugin(place) as process:
        first.wait(4)
        first.plugins.stop()
        with Agent(place) as second:
            second.wait(4)
            assert process.count("registered") == 2


def test_the_own_socket_is_served_anew(agent: Agent, place: Path) -> None:
    """Whoever wipes the directory makes plugins register again, not vanish."""
    with plugin(place) as process:
        agent.wait(4)
        shutil.rmtree(place)
        process.wait_for("registered", 2)
        agent.wait(4)


def test_a_plugin_that_serves_on_keeps_its_socket_when_the_agents_is_removed(
    agent: Agent, place: Path
) -> None:
    """Its stream never ended; to take its socket away would only make its devices unhealthy."""
    with plugin(place, "--once") as process:
        agent.wait(4)
        (place / "kubelet.sock").unlink()
        wait_until((place / "kubelet.sock").exists)
        assert list(place.glob("example*.sock"))
        agent.wait(4)
        assert process.count("registered") == 1


def test_two_agents_do_not_fight_over_a_directory(agent: Agent, place: Path) -> None:
    """The second is refused, and nothing of the first is swept."""
    with plugin(place, "--once"):
        agent.wait(4)
        with pytest.raises(PermanentError, match="listens there already"):
            Agent(place).plugins.start()
        assert list(place.glob("example*.sock"))


def test_an_agent_that_was_ousted_says_so_and_leaves_the_other_alone(
    agent: Agent, place: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A program that takes the socket over, as a kubelet does, keeps it while it listens."""
    path = place / "kubelet.sock"
    path.unlink()
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(path))
        other.listen()
        mark = path.stat().st_ino
        wait_until(lambda: "somebody else listens" in caplog.text)
        agent.plugins.reconcile()
        assert path.stat().st_ino == mark
        assert caplog.text.count("somebody else listens") == 1
    wait_until(lambda: "serving it anew" in caplog.text)
    wait_until(path.exists)


def test_an_agent_that_ends_leaves_anothers_socket(place: Path) -> None:
    """A server of gRPC by itself would remove whatever stands where they once listened."""
    plugins = DevicePlugins(DeviceLedger(DeviceAllocator()), directory=place, look_s=60.0)
    plugins.start()
    path = place / "kubelet.sock"
    path.unlink()
    bare_socket(path)
    plugins.stop()
    assert path.exists()


def test_an_empty_first_list(agent: Agent, place: Path) -> None:
    """Habit: the first list has no devices, the second has all; requests in between wait."""
    server = DevicePluginServer(GPU, (), place / "e.sock")
    server.start()
    server.introduce(place / "kubelet.sock")
    agent.wait_phase(Phase.SERVING)
    claim = Claim(owner=Owner("p", "c"), amounts={GPU: Quantity.of(1)})
    assert isinstance(agent.ledger.current().allocate(claim, TopologyHint(None, True)), NotYet)
    server.set_devices(numbered(3))
    agent.wait(3)
    server.stop()


def test_a_plugin_that_dies_at_its_options(agent: Agent, place: Path) -> None:
    """Habit: it crashes on GetDevicePluginOptions; its resource is away, the neighbour's is not."""
    with (
        plugin(place, "--crash-on", "GetDevicePluginOptions") as bad,
        plugin(place, "--resource", "example.com/nic"),
    ):
        assert bad.wait() == 3
        agent.wait_phase(Phase.LOST)
        agent.wait(4, "example.com/nic")


def test_a_plugin_that_leaves_its_socket_behind(agent: Agent, place: Path) -> None:
    """Habit: its socket outlives it; the next one takes the place over."""
    with plugin(place, "--leave-socket") as process:
        agent.wait(4)
        assert process.terminate() == 0
    assert (place / "example.com-gpu.sock").exists()
    agent.wait_phase(Phase.LOST)
    with plugin(place):
        agent.wait(4)


def test_a_plugin_that_takes_any_id(agent: Agent, place: Path) -> None:
    """Habit: a plugin accepts ids that it never listed; only listed ones are ever asked for."""
    with plugin(place) as process:
        agent.wait(4)
        agent.grant("p", 4)
        agent.launch("p")
        assert process.wait_for("allocated") == "dev-0,dev-1,dev-2,dev-3"


def test_a_plugin_that_is_found_by_its_socket(place: Path) -> None:
    """Habit: it waits in a registry directory and offers an old version beside the new one."""
    registry = place.parent / "registry"
    ledger = DeviceLedger(DeviceAllocator(nodes=(0, 1)))
    with (
        DevicePlugins(ledger, roots=[registry]) as plugins,
        PluginRegistrar(registry, {"DevicePlugin": plugins}),
        PluginProcess(
            "--directory", str(registry), "--registry", "--versions", "v1alpha1,v1beta1", "--devices", "2"
        ) as process,
    ):
        wait_until(lambda: GPU in plugins.capacity() and plugins.capacity()[GPU].allocatable == 2)
        assert process.wait_for("registered") == GPU
        process.terminate()
        wait_until(lambda: ledger.current().inventories[GPU].phase is Phase.LOST)


def test_a_plugin_of_a_version_that_nobody_speaks(place: Path) -> None:
    """It is told the reason through its registration socket."""
    registry = place.parent / "registry"
    with (
        DevicePlugins(DeviceLedger(DeviceAllocator())) as plugins,
        PluginRegistrar(registry, {"DevicePlugin": plugins}),
        PluginProcess("--directory", str(registry), "--registry", "--versions", "v9") as process,
    ):
        assert "v1beta1 is needed" in process.wait_for("refused")
        assert plugins.status() == ()


def test_registering_twice(agent: Agent, place: Path) -> None:
    """The second registration is that of the same plugin: its stream goes on, and no other is opened."""
    with plugin(place, "--register-twice") as process:
        process.wait_for("registered")
        agent.wait(4)
        assert [(one.generation, one.trouble) for one in agent.plugins.status()] == [(1, "")]
        assert process.events.count(("called", "GetDevicePluginOptions")) == 2
        assert process.events.count(("called", "ListAndWatch")) == 1


@pytest.mark.parametrize(
    ("switches", "phase", "said"),
    [
        (["--hang", "GetDevicePluginOptions"], Phase.LOST, "DEADLINE_EXCEEDED"),
        (["--hang", "ListAndWatch"], Phase.CONNECTING, ""),
        (["--garbage", "ListAndWatch"], Phase.LOST, "BAD ANSWER"),
        (["--garbage", "GetDevicePluginOptions"], Phase.LOST, "BAD ANSWER"),
        (["--status", "ListAndWatch"], Phase.LOST, "INTERNAL"),
        (["--crash-after", "1"], Phase.LOST, "ListAndWatch"),
        (["--end-after", "1"], Phase.LOST, "END OF STREAM"),
    ],
)
def test_misdeeds_are_that_plugins_trouble(
    agent: Agent, place: Path, switches: Sequence[str], phase: Phase, said: str
) -> None:
    """Whatever it does, its own resource says so and the neighbour goes on."""
    with plugin(place, *switches) as bad, plugin(place, "--resource", "example.com/nic"):
        bad.wait_for("called")
        agent.wait_phase(phase)
        agent.wait(4, "example.com/nic")
        trouble = {status.resource: status.trouble for status in agent.plugins.status()}
        assert said in trouble[GPU]
        assert trouble["example.com/nic"] == ""


def test_refused_and_hung_calls(agent: Agent, place: Path) -> None:
    """Calls that a plugin refuses, forgets or garbles are errors; the grant can be given back."""
    cases = {
        "--refuse-allocate=on fire": (PluginRefusedError, "on fire"),
        "--hang=Allocate": (PluginUnavailableError, "DEADLINE_EXCEEDED"),
        "--garbage=Allocate": (PluginRefusedError, "BAD ANSWER"),
        "--status=Allocate": (PluginRefusedError, "INTERNAL"),
        "--crash-on=Allocate": (PluginUnavailableError, "UNAVAILABLE"),
    }
    for switch, (kind, said) in cases.items():
        with plugin(place, switch):
            agent.wait(4)
            agent.grant("p", 2)
            with pytest.raises(kind, match=said):
                agent.plugins.prepare("p")
            agent.ledger.alter(lambda allocator: allocator.release("p"))
            assert agent.ledger.current().grants == {}
        agent.wait(0)


def test_a_plugin_without_an_opinion(agent: Agent, place: Path) -> None:
    """Advice that does not come, or names devices that do not exist, decides nothing."""
    for switch in ("--hang=GetPreferredAllocation", "--garbage=GetPreferredAllocation", "--wrong-ids"):
        with plugin(place, "--preferred", switch):
            agent.wait(4)
            assert agent.grant("p", 1) == {"dev-0"}
            agent.ledger.alter(lambda allocator: allocator.release("p"))
        agent.wait(0)


def test_strange_lists_are_handled_and_said(agent: Agent, place: Path) -> None:
    """Doubled and missing ids, unknown health, absent NUMA nodes: the rest counts, people are told."""
    with plugin(place, "--wrong-ids", "--foreign-nodes", "--strange-health", "Fine"):
        agent.wait_phase(Phase.SERVING)
        (status,) = agent.plugins.status()
        assert status.capacity == Capacity(4, 0)
        said = " ".join(status.findings)
        assert all(word in said for word in ("twice", "without id", "'Fine'", "999"))


class Busy(DeviceLedger):
    """A keeper that takes its time over the first list; counts what it is asked to change."""

    def __init__(self, allocator: DeviceAllocator) -> None:
        super().__init__(allocator)
        self.changes = 0
        self.free = threading.Event()

    def alter(
        self, change: Callable[[DeviceAllocator], DeviceAllocator], /
    ) -> tuple[DeviceAllocator, DeviceAllocator]:
        """See `AllocatorKeeper`; the first change is the registration."""
        self.changes += 1
        if self.changes > 1:
            self.free.wait()
        return super().alter(change)


def test_a_flood_of_lists_ends_in_the_newest(place: Path) -> None:
    """Of five thousand lists that come while the first is in use, hardly any is looked at but the newest.

    Some hundred may still be on their way when the first one is done with.
    """
    ledger = Busy(DeviceAllocator(nodes=(0, 1)))
    with (
        DevicePlugins(ledger, directory=place, look_s=60.0) as plugins,
        plugin(place, "--flood", "5000") as process,
    ):
        process.wait_for("listed")
        time.sleep(2)  # they are sent; a loaded machine takes its time to read them
        ledger.free.set()
        wait_until(lambda: plugins.capacity().get(GPU) == Capacity(4, 4))
        assert ledger.changes < 1000


def test_health_that_flaps_tells_who_is_touched(agent: Agent, place: Path) -> None:
    """Every change of health names the workload that holds the device."""
    with plugin(place, "--flap-s", "0.2"):
        agent.wait(4)
        agent.grant("p", 4)
        stream = agent.plugins.events()
        touched = [one for _ in range(3) for event in stream.take(10.0) for one in event.touched]
    assert {one.owner for one in touched} == {Owner("p", "c")}
    assert ("dev-0",) in [one.unhealthy for one in touched]


def test_devices_that_change(agent: Agent, place: Path) -> None:
    """A device that leaves is no longer offered; it stays with its holder."""
    with plugin(place, "--change-s", "0.2"):
        agent.wait(4)
        held = agent.grant("p", 4)
        wait_until(lambda: not held.issubset(agent.ledger.current().inventories[GPU].devices.ids))
        assert agent.ledger.current().grants["p"]["c", GPU].ids == held
        assert not agent.grant("q", 1) & held


def test_slow_answers_are_waited_for(agent: Agent, place: Path) -> None:
    """Slow within the deadline is not wrong."""
    with plugin(place, "--slow-s", "0.1"):
        agent.wait(4)
        agent.grant("p", 1)
        assert agent.launch("p").env


def test_after_the_grace_period_capacity_is_zero(place: Path) -> None:
    """What was granted stands; what is new is refused; a plugin that comes back is welcome."""
    with Agent(place, grace_s=0.3) as agent:
        with plugin(place):
            agent.wait(4)
            agent.grant("p", 2)
        agent.wait_phase(Phase.GONE)
        assert agent.plugins.capacity()[GPU] == Capacity(0, 0)
        assert agent.ledger.current().grants["p"]["c", GPU].ids == {"dev-0", "dev-1"}
        with plugin(place):
            agent.wait(4)


@pytest.mark.parametrize("size", [(4 << 20) + 1, 70 << 20])
def test_a_giant_message(agent: Agent, place: Path, size: int) -> None:
    """More than a kubelet takes is an error on that plugin; it says what came and which limit it is."""
    server = DevicePluginServer(GPU, (Device("x" * size),), place / "giant.sock")
    server.start()
    server.introduce(place / "kubelet.sock")
    agent.wait_phase(Phase.LOST)
    (status,) = agent.plugins.status()
    said = re.search(r"its message has ([0-9,]+) bytes, and 4,194,304 are taken at the most", status.trouble)
    assert said is not None, status.trouble
    assert size < int(said[1].replace(",", "")) < size + 100
    assert "giant.sock: ListAndWatch" in status.trouble
    assert "raise PluginLimits.list_bytes" in status.trouble
    server.stop()


def test_a_list_beyond_what_a_kubelet_takes_where_it_may_be(place: Path) -> None:
    """Plugins whose lists are longer are taken by whoever says so."""
    server = DevicePluginServer(GPU, (Device("x" * (5 << 20)),), place / "large.sock")
    with Agent(place, limits=PluginLimits(list_bytes=6 << 20)) as agent:
        server.start()
        server.introduce(place / "kubelet.sock")
        agent.wait(1)
        server.stop()


def test_bytes_from_a_fuzzer(agent: Agent, place: Path) -> None:
    """Junk on the registration socket, over gRPC and raw, leaves the service serving."""
    channel = grpc.insecure_channel(f"unix:{place / 'kubelet.sock'}")
    register = channel.unary_unary("/v1beta1.Registration/Register")
    for data in (b"\xff" * 50, b"\x0a\xff\xff\xff\xff\x0f", os.urandom(300), b"\x0a\x02\xff\xfe"):
        with pytest.raises(grpc.RpcError) as caught:
            register(data, timeout=5.0)
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    channel.close()
    for _ in range(5):
        with socket.socket(socket.AF_UNIX) as raw:
            raw.connect(str(place / "kubelet.sock"))
            raw.sendall(os.urandom(200))
    with plugin(place):
        agent.wait(4)


def test_a_path_too_long_for_a_socket(place: Path) -> None:
    """The error says how long is too long."""
    with pytest.raises(PermanentError, match="107 is the limit"):
        DevicePlugins(DeviceLedger(DeviceAllocator()), directory=place / ("x" * 100)).start()


def test_connections_keep_their_promises(place: Path) -> None:
    """The fake and the real connection hold the same check."""
    place.mkdir()
    server = DevicePluginServer(GPU, (), place / "check.sock")

    def hang() -> None:
        server.behaviour = Behaviour(hang=frozenset({"Allocate", "PreStartContainer"}))

    def real(devices: Sequence[Device]) -> tuple[PluginConnection, object, object]:
        server.set_devices(tuple(devices))
        server.start()
        return GrpcConnection(str(server.socket)), lambda listed: server.set_devices(tuple(listed)), hang

    def fake(devices: Sequence[Device]) -> tuple[PluginConnection, object, object]:
        plugin = FakePlugin(devices)
        return plugin, plugin.set_devices, plugin.hang

    try:
        check_connection(real)  # type: ignore[arg-type]
    finally:
        server.stop()
    check_connection(fake)  # type: ignore[arg-type]


@pytest.mark.parametrize("ends", ["agent", "plugin"])
def test_a_connection_that_was_closed_leaves_no_call_behind(place: Path, ends: str) -> None:
    """What the collector found of it at the end of the program would wait for a lock, perhaps forever."""
    place.mkdir()
    server = DevicePluginServer(GPU, numbered(1), place / "call.sock")
    server.start()
    connection = GrpcConnection(str(server.socket))
    lists = connection.lists()
    gc.collect()
    gc.disable()
    before = calls_under_way()
    try:
        assert len(next(lists)) == 1
        assert calls_under_way() == before + 1
        if ends == "plugin":
            server.stop()
            with pytest.raises(PluginUnavailableError):
                next(lists)
        connection.close()
        assert calls_under_way() == before
        assert not [one.name for one in threading.enumerate() if one.name == "device lists of call.sock"]
    finally:
        gc.enable()
        server.stop()


def test_who_follows_a_plugin_sleeps_while_nothing_comes(place: Path) -> None:
    """The iterator that gRPC has would wake its thread, and another one, ten times a second."""
    place.mkdir()
    server = DevicePluginServer(GPU, numbered(1), place / "quiet.sock")
    server.start()
    connection = GrpcConnection(str(server.socket))
    assert len(next(connection.lists())) == 1
    (reader,) = [one for one in threading.enumerate() if one.name == "device lists of quiet.sock"]
    status = Path(f"/proc/self/task/{reader.native_id}/status")

    def slept() -> int:
        line = next(one for one in status.read_text().splitlines() if one.startswith("voluntary_ctxt"))
        return int(line.split()[1])

    time.sleep(0.2)
    before = slept()
    time.sleep(1.0)
    assert slept() - before <= 1
    connection.close()
    server.stop()


def calls_under_way() -> int:
    """Streams of gRPC's client that somebody or something still holds, and that have not ended."""
    calls = [one for one in gc.get_objects() if issubclass(type(one), grpc.aio.UnaryStreamCall)]
    return sum(not one.done() for one in calls)


def test_handlers_and_registration_sockets_keep_their_promises(place: Path) -> None:
    """`DevicePlugins` is a handler, and the client of registration sockets holds its check."""
    place.mkdir()
    server = DevicePluginServer(GPU, numbered(1), place / "r.sock")
    server.start()
    client, absent = GrpcRegistration(info_s=1.0), str(place / "absent.sock")
    check_registration(client, str(server.socket), absent)
    check_async_registration(client, str(server.socket), absent)
    with DevicePlugins(DeviceLedger(DeviceAllocator())) as plugins:
        check_handler(plugins, GPU, str(server.socket), ["v1beta1"])
    server.stop()


def test_a_hundred_thousand_devices_in_one_list(agent: Agent, place: Path) -> None:
    """One message of several megabytes, counted to the last device."""
    server = DevicePluginServer(GPU, numbered(100_000, numa=(0, 1)), place / "many.sock")
    server.start()
    server.introduce(place / "kubelet.sock")
    agent.wait(100_000)
    assert len(agent.grant("p", 50_001, affinity=1)) == 50_001
    server.stop()


def test_the_command_line_says_what_it_takes(capsys: pytest.CaptureFixture[str]) -> None:
    """Every switch to misbehave is in the help."""
    with pytest.raises(SystemExit):
        main(["--help"])
    said = capsys.readouterr().out
    assert all(f"--{name.replace('_', '-')}" in said for name in Behaviour.__annotations__)


@pytest.mark.parametrize("code", [code.name for code in grpc.StatusCode if code is not grpc.StatusCode.OK])
def test_every_status_is_away_or_refused(place: Path, code: str) -> None:
    """Whatever status a plugin makes up, it is one of two errors, with the status named."""
    behaviour = Behaviour(status=frozenset({"Allocate", "ListAndWatch"}), status_code=code)
    server = DevicePluginServer(GPU, numbered(1), place / "s.sock", behaviour=behaviour)
    server.start()
    connection = GrpcConnection(str(server.socket), deadlines=QUICK)
    with pytest.raises((PluginRefusedError, PluginUnavailableError), match=code):
        connection.allocate(["dev-0"])
    with pytest.raises((PluginRefusedError, PluginUnavailableError), match=code):
        next(connection.lists())
    connection.close()
    server.stop()


def test_a_plugin_with_a_path_of_its_own(place: Path) -> None:
    """Habit: the path is built in; a bind mount in a private namespace leads it here."""
    command = f"mkdir -p /var/lib/kubelet && mount --bind {place.parent} /var/lib/kubelet"
    probe = subprocess.run(
        ["unshare", "-m", "sh", "-c", command], capture_output=True, text=True, check=False
    )
    if probe.returncode:
        pytest.skip(f"no private mount namespace: {probe.stderr.strip()}")
    serve = f"exec {sys.executable} -m nodealloc.testing.device_plugin --devices 4"
    with Agent(place.parent / "device-plugins") as agent:
        process = subprocess.Popen(
            ["unshare", "-m", "sh", "-c", f"{command} && {serve}"], stdout=subprocess.DEVNULL
        )
        try:
            agent.wait(4)
            assert agent.phase() is Phase.SERVING
        finally:
            process.kill()
            process.wait()


@pytest.mark.parametrize("name", ["a b", "a%20b", "a#b", "a?b", "ä", "a:b"])
def test_paths_that_look_like_uris(place: Path, name: str) -> None:
    """A directory may be called anything; gRPC takes paths for URIs, and nobody notices here."""
    directory = place.parent / name
    with Agent(directory) as agent:
        server = DevicePluginServer(GPU, numbered(2), directory / "p.sock")
        server.start()
        server.introduce(directory / "kubelet.sock")
        agent.wait(2)
        assert GrpcRegistration(info_s=1.0).info(str(server.socket)).name == GPU
        server.stop()


def test_a_plugin_ends_with_whoever_started_it(place: Path) -> None:
    """A test that is killed leaves no plugin behind."""
    code = (
        "import sys; from nodealloc.testing.devices import PluginProcess; "
        "PluginProcess('--directory', sys.argv[1]).wait_for('serving')"
    )
    subprocess.run([sys.executable, "-c", code, str(place)], check=True)
    server = GrpcConnection(str(place / "example.com-gpu.sock"), deadlines=QUICK)

    def gone() -> bool:
        try:
            server.options()
        except PluginUnavailableError:
            return True
        return False

    wait_until(gone)
    assert gone(), "it came back"
    server.close()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--numa", "x"], "decimal id"),
        (["--devices", "-1"], "below 0"),
        (["--slow-s", "nan"], "0 or more"),
        (["--status-code", "FOO"], "invalid choice"),
        (["--directory", "/proc/nowhere"], "cannot serve"),
        (["--directory", "y" * 120], "107 is the limit"),
    ],
)
def test_the_test_plugin_refuses_words_that_make_no_sense(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a line on standard error, without a trace."""
    with pytest.raises(SystemExit):
        main(words)
    assert said in capsys.readouterr().err.splitlines()[-1]
