"""Plugins and agent as processes that are killed and started in any order."""

from __future__ import annotations

import random
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import cast

import pytest

from nodealloc.checkpoint import KUBELET_FORMATS, FileStore
from nodealloc.devices import DeviceAllocator, DeviceLedger
from nodealloc.devices.plugins import DevicePlugins
from nodealloc.podspec import Quantity
from nodealloc.testing.device_plugin import DevicePluginServer, numbered
from nodealloc.testing.devices import wait_until
from nodealloc.topology import Claim, NotYet, Owner, TopologyHint
from tests.apart import CLEAN
from tests.often import often

pytestmark = pytest.mark.real

RESOURCES = ("example.com/gpu", "example.com/nic")
DEVICES = 6


def run_plugin(directory: Path, resource: str) -> None:
    """A plugin's process: serves, and registers whenever it has to."""
    server = DevicePluginServer(
        resource, numbered(DEVICES, numa=(0, 1), prefix=resource[-3:]), directory / f"{resource[-3:]}.sock"
    )
    server.start()
    server.keep_introducing(directory / "kubelet.sock", threading.Event())


def run_agent(directory: Path, state: Path, pipe: Connection) -> None:
    """An agent's process: admits and releases as it is told, and answers when it is remembered."""
    store = FileStore(state, KUBELET_FORMATS, wait=True)
    begin = DeviceAllocator(nodes=(0, 1), awaited=frozenset(RESOURCES))
    ledger = DeviceLedger.load(begin, store, now_s=time.monotonic())
    with DevicePlugins(ledger, directory=directory) as plugins:
        while True:
            what, workload, resource = pipe.recv()
            if what == "admit":
                pipe.send(admit(ledger, workload, resource))
            elif what == "release":
                pipe.send(release(ledger, workload))
            else:
                pipe.send((held(ledger.current()), {r: c.allocatable for r, c in plugins.capacity().items()}))


def admit(ledger: DeviceLedger, workload: str, resource: str) -> str:
    """Grant one device, or say what the answer was."""
    claim = Claim(owner=Owner(workload, "c"), amounts={resource: Quantity.of(1)})
    said: list[str] = []

    def change(allocator: DeviceAllocator) -> DeviceAllocator:
        answer = allocator.allocate(claim, TopologyHint(None, True))
        if isinstance(answer, DeviceAllocator):
            said.append(min(answer.grants[workload]["c", resource].ids))
            return answer
        said.append("not yet" if isinstance(answer, NotYet) else "no")
        return allocator

    ledger.alter(change)
    return said[-1]


def release(ledger: DeviceLedger, workload: str) -> str:
    """Give back what it holds."""
    ledger.alter(lambda allocator: allocator.release(workload))
    return "released"


def held(allocator: DeviceAllocator) -> dict[str, str]:
    """Workload to its device."""
    return {
        workload: min(identity for grant in grants.values() for identity in grant.ids)
        for workload, grants in allocator.grants.items()
    }


class Machine:
    """The processes of one node, and what its agent has promised."""

    def __init__(self, root: Path) -> None:
        self.directory = root / "dp"
        self.state = root / "state"
        self.promised: dict[str, str] = {}
        self.grants = 0
        self._running: dict[str, ForkServerProcess] = {}
        self._pipe: Connection | None = None

    def start(self, name: str) -> None:
        """Start a plugin, or the agent."""
        if name == "agent":
            self._pipe, end = CLEAN.Pipe()
            process = CLEAN.Process(target=run_agent, args=(self.directory, self.state, end))
        else:
            process = CLEAN.Process(target=run_plugin, args=(self.directory, name))
        process.daemon = True
        process.start()
        self._running[name] = process

    def kill(self, name: str) -> None:
        """SIGKILL."""
        process = self._running.pop(name)
        process.kill()
        process.join()
        process.close()

    def ask(self, what: str, workload: str = "", resource: str = "") -> object:
        """Have the agent do something and wait for its answer."""
        assert self._pipe is not None
        self._pipe.send((what, workload, resource))
        assert self._pipe.poll(20.0), "the agent does not answer"
        return self._pipe.recv()

    def state_now(self) -> tuple[dict[str, str], dict[str, int]]:
        """Workload to its device, and what is allocatable by resource."""
        return cast("tuple[dict[str, str], dict[str, int]]", self.ask("state"))

    def close(self) -> None:
        """Kill everything."""
        for name in list(self._running):
            self.kill(name)


@pytest.fixture
def machine() -> Iterator[Machine]:
    """An agent and two plugins, started from a process that has all modules loaded."""
    root = Path(tempfile.mkdtemp(prefix="na-"))
    one = Machine(root)
    for name in ("agent", *RESOURCES):
        one.start(name)
    yield one
    one.close()
    shutil.rmtree(root, ignore_errors=True)


def live(machine: Machine, restarts: int, rng: random.Random) -> None:
    """Kill and start processes in random order, with work in between; check after each start of the agent."""
    number = 0
    for _ in range(restarts):
        for _ in range(rng.randrange(4)):
            if machine.promised and rng.random() < 0.45:
                workload = rng.choice(list(machine.promised))
                assert machine.ask("release", workload) == "released"
                del machine.promised[workload]
                continue
            number += 1
            answer = machine.ask("admit", f"w{number}", rng.choice(RESOURCES))
            if answer not in ("no", "not yet"):
                machine.promised[f"w{number}"] = str(answer)
                machine.grants += 1
        name = rng.choice(("agent", *RESOURCES))
        machine.kill(name)
        if rng.random() < 0.5:
            time.sleep(rng.random() * 0.05)
        machine.start(name)
        if name == "agent":
            found, _ = machine.state_now()
            assert found == machine.promised, "an allocation was lost, or came from nowhere"
        if rng.random() < 0.5:
            wait_until(lambda: complete(machine), what="all devices of all plugins")


def complete(machine: Machine) -> bool:
    """Whether all devices of all plugins are there."""
    return machine.state_now()[1] == dict.fromkeys(RESOURCES, DEVICES)


def settled(machine: Machine, workload: str, resource: str) -> object:
    """The agent's answer, once it is not "not yet": a plugin may register a second time."""
    answers: list[object] = []

    def asked() -> bool:
        answers.append(machine.ask("admit", workload, resource))
        return answers[-1] != "not yet"

    wait_until(asked, what="an answer")
    return answers[-1]


def check_end(machine: Machine) -> None:
    """Devices are those of the plugins, no allocation is lost, none is double."""
    wait_until(lambda: complete(machine), what="all devices of all plugins")
    found, _ = machine.state_now()
    assert found == machine.promised
    assert len(set(found.values())) == len(found)
    free = 2 * DEVICES - len(found)
    answers = [settled(machine, f"last{n}", resource) for n in range(DEVICES) for resource in RESOURCES]
    granted = [str(answer) for answer in answers if answer != "no"]
    assert len(granted) == free
    assert not set(granted) & set(found.values())


def test_ten_restarts(machine: Machine) -> None:
    """Plugins and agent die in any order; nothing that was promised is lost or given twice."""
    live(machine, 10, random.Random(1))
    check_end(machine)


@pytest.mark.slow
def test_two_hundred_restarts(machine: Machine) -> None:
    """Two hundred of them."""
    restarts = often(200)
    live(machine, restarts, random.Random(2))
    assert machine.grants > restarts // 4, "there was nothing to lose"
    check_end(machine)


def test_a_plugin_waits_where_a_file_stands_in_the_place_of_its_folder(tmp_path: Path) -> None:
    """It says so once, and serves again when its folder is back."""
    folder = Path(tempfile.mkdtemp(prefix="na-"))
    told: list[tuple[str, str]] = []
    server = DevicePluginServer(
        RESOURCES[0], numbered(1), folder / "dp" / "gpu.sock", tell=lambda *what: told.append(what)
    )
    server.start()
    stop = threading.Event()
    keeping = threading.Thread(target=server.keep_introducing, args=(tmp_path / "kubelet.sock", stop))
    keeping.start()
    try:
        shutil.rmtree(folder / "dp")
        (folder / "dp").write_text("", encoding="utf-8")
        wait_until(lambda: "unserved" in [what for what, _ in told])
        time.sleep(0.2)
        assert [what for what, _ in told].count("unserved") == 1
        assert str(folder / "dp") in dict(told)["unserved"]
        (folder / "dp").unlink()
        wait_until(server.socket.exists)
    finally:
        stop.set()
        keeping.join()
        server.stop()
        shutil.rmtree(folder)


def test_a_plugin_stops_where_a_file_stands_in_the_place_of_its_folder() -> None:
    """Its socket went with the folder."""
    folder = Path(tempfile.mkdtemp(prefix="na-"))
    server = DevicePluginServer(RESOURCES[0], numbered(1), folder / "dp" / "gpu.sock")
    server.start()
    shutil.rmtree(folder / "dp")
    (folder / "dp").write_text("", encoding="utf-8")
    server.stop()
    server.stop()
    shutil.rmtree(folder)
