"""What an agent's standard error has when plugins do what plugins do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.real

ROOT = Path(__file__).parents[2]
AGENT = """
import examples.agent
import socket, sys, tempfile
from pathlib import Path

assert "grpc" not in sys.modules, "too late: gRPC reads its environment when it is loaded"
from nodealloc.devices import *
from nodealloc.devices.plugins import *
from nodealloc.devices.plugins._codec import RegisterRequest
from nodealloc.devices.plugins._registration import introduce
from nodealloc.testing.devices import PluginProcess, wait_until

GPU = "example.com/gpu"
directory = Path(tempfile.mkdtemp(prefix="na-")) / "dp"
ledger, quick = DeviceLedger(DeviceAllocator()), Deadlines(connect_s=0.3)
with DevicePlugins(ledger, directory=directory, deadlines=quick) as plugins:
    def healthy():
        return plugins.capacity().get(GPU, Capacity(0, 0)).allocatable
    for end in (PluginProcess.terminate, PluginProcess.kill, PluginProcess.terminate):
        with PluginProcess("--directory", str(directory), "--devices", "2") as process:
            wait_until(lambda: healthy() == 2)
            end(process)
        wait_until(lambda: healthy() == 0)
    for name, refusal in (("nothing.sock", PluginUnavailableError), ("../x", RegistrationRefusedError)):
        request = RegisterRequest(version="v1beta1", endpoint=name, resource=GPU)
        try:
            introduce(directory / "kubelet.sock", request)
        except refusal:
            print("told", name)
    for word in (b"HTTP/1.1 400 no", b"PRI * HTTP/2.0", b""):
        with socket.socket(socket.AF_UNIX) as raw:
            raw.connect(str(directory / "kubelet.sock"))
            raw.sendall(word)
"""


def test_an_agents_standard_error_is_its_own() -> None:
    """Plugins that end, die, lead nowhere or talk nonsense leave no line of gRPC's and no traceback there."""
    environment = {name: value for name, value in os.environ.items() if name != "GRPC_VERBOSITY"}
    environment["PYTHONPATH"] = os.pathsep.join(
        [str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")]
    )
    done = subprocess.run(
        [sys.executable, "-c", AGENT],
        capture_output=True,
        text=True,
        env=environment,
        timeout=120,
        check=False,
    )
    assert (done.stderr, done.returncode) == ("", 0)
    assert done.stdout.splitlines() == ["told nothing.sock", "told ../x"]
