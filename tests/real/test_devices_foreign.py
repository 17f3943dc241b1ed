"""Device plugins in Go and JavaScript, with other people's gRPC: nothing of nodealloc is in them."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from nodealloc.devices import DeviceAllocator, DeviceLedger, Launch, Phase
from nodealloc.devices.plugins import DevicePlugins
from nodealloc.pluginreg import PluginRegistrar
from nodealloc.podspec import Quantity
from nodealloc.testing.devices import PluginProcess, wait_until
from nodealloc.topology import Claim, Owner, TopologyHint
from tests.foreign.built import LANGUAGES, Absent, command

pytestmark = [pytest.mark.real, pytest.mark.foreign, pytest.mark.parametrize("language", LANGUAGES)]

GPU = "example.com/gpu"
OWNER = Owner("p", "c")


class Foreign(PluginProcess):
    """A plugin's process that is not ours; what it says has the same form."""

    def __init__(self, language: str, directory: Path, *, found: bool = False) -> None:
        try:
            words = command(language, directory, "foreign.sock", GPU, found=found)
        except Absent as reason:
            pytest.skip(str(reason))
        self.events: list[tuple[str, str]] = []
        self._process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        threading.Thread(target=self._read, daemon=True).start()

    def sicken(self) -> None:
        """Have its first device become unhealthy."""
        os.kill(self._process.pid, signal.SIGUSR2)


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory with a path short enough for sockets."""
    path = Path(tempfile.mkdtemp(prefix="na-"))
    yield path / "dp"
    shutil.rmtree(path, ignore_errors=True)


def agent(place: Path | None) -> tuple[DeviceLedger, DevicePlugins]:
    """A program that serves device plugins, as small as it can be."""
    ledger = DeviceLedger(DeviceAllocator(nodes=(0, 1)))
    return ledger, DevicePlugins(ledger, directory=place, look_s=0.05)


def wait(plugins: DevicePlugins, allocatable: int) -> None:
    """Wait until so many devices are healthy and the plugin serves."""
    wait_until(
        lambda: any(
            one.phase is Phase.SERVING and one.capacity.allocatable == allocatable for one in plugins.status()
        ),
        what=f"{allocatable} {GPU}; {plugins.status()}",
    )


def granted(allocator: DeviceAllocator, claim: Claim, hint: TopologyHint) -> DeviceAllocator:
    """The allocator after a claim that has to fit."""
    after = allocator.allocate(claim, hint)
    assert isinstance(after, DeviceAllocator)
    return after


def test_its_life(language: str, place: Path) -> None:
    """Register, list with places, advise, allocate, prepare; fall ill, be killed, come back."""
    ledger, plugins = agent(place)
    claim = Claim(owner=OWNER, amounts={GPU: Quantity.of(1)})
    hint = TopologyHint(2, True)
    with plugins:
        with Foreign(language, place) as process:
            wait(plugins, 4)
            assert plugins.ask(granted(ledger.current(), claim, hint))
            _, outcome = ledger.alter(lambda one: granted(one, claim, hint).without_answers())
            assert outcome.grants["p"]["c", GPU].places == {1: (f"{language}-3",)}
            plugins.prepare("p")
            plugins.pre_start(OWNER)
            launch = plugins.launch(OWNER)
            assert isinstance(launch, Launch)
            assert launch.env == {"DEVICES": f"{language}-3"}
            assert launch.cdi_devices == (f"{GPU}={language}-3",)
            assert process.wait_for("prepared") == process.wait_for("allocated") == f"{language}-3"
            process.sicken()
            wait(plugins, 3)
            process.kill()
            wait_until(lambda: plugins.status()[0].phase is Phase.LOST)
        with Foreign(language, place):
            wait(plugins, 4)
            assert plugins.launch(OWNER) == launch


def test_it_comes_back_to_another_agent(language: str, place: Path) -> None:
    """The agent ends and another starts: `kubelet.sock` is a new one, and the plugin sees that."""
    _, first = agent(place)
    with first:
        process = Foreign(language, place)
        wait(first, 4)
    with process:
        _, second = agent(place)
        with second:
            wait(second, 4)
            assert process.count("registered") == 2


def test_it_sees_the_agents_socket_made_anew(language: str, place: Path) -> None:
    """Somebody removes `kubelet.sock`; the agent serves it anew, and the plugin registers again."""
    _, plugins = agent(place)
    with plugins, Foreign(language, place) as process:
        wait(plugins, 4)
        (place / "kubelet.sock").unlink()
        process.wait_for("registered", 2)
        wait(plugins, 4)


def test_it_is_found_by_its_socket(language: str, place: Path) -> None:
    """The other way in: a directory is watched, the plugin says who it is and hears that it was taken."""
    _, plugins = agent(None)
    with plugins, PluginRegistrar(place, {"DevicePlugin": plugins}) as registrar:
        with Foreign(language, place, found=True) as process:
            assert process.wait_for("registered") == GPU
            wait(plugins, 4)
            process.kill()
        wait_until(lambda: plugins.status()[0].phase is Phase.LOST)
        (place / "foreign.sock").unlink(missing_ok=True)
        wait_until(lambda: not registrar.status())
