"""The agent seen from outside: its process, what it says, what it left on disk, what the kernel does."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Generator
from pathlib import Path
from queue import Empty, Queue

from nodealloc.cgroups import CgroupName, detect
from nodealloc.errors import NodeallocError
from nodealloc.idset import CPUSet
from nodealloc.volumes import LinuxMounter, SafeRoot, parse_mountinfo

__all__ = ["AgentProcess", "DemoError", "clean", "held", "may_mount", "mounts", "remembered", "start_plugin"]

PATIENCE_S = float(os.environ.get("NODEALLOC_PATIENCE_S", "30"))


class DemoError(Exception):
    """Something was not as it should be."""


class AgentProcess:
    """One agent process and what it says.

    Args:
        arguments: Of `python -m examples.agent`.
        echo: Whether to print what it says.
    """

    def __init__(self, arguments: list[str], *, echo: bool = True) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-u", "-X", "faulthandler", "-m", "examples.agent", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._echo = echo
        self._lines: Queue[str] = Queue()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        if self.process.stdout is None:
            return
        with self.process.stdout as stdout:
            for line in stdout:
                if self._echo:
                    print(f"  | {line}", end="", flush=True)
                self._lines.put(line)

    def wait_for(self, words: str) -> list[str]:
        """All lines up to one that begins with `words`; an agent that has died or hangs says where."""
        said: list[str] = []
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            with contextlib.suppress(Empty):
                said.append(self._lines.get(timeout=0.2))
                if said[-1].startswith(words):
                    return said
            if self.process.poll() is not None and self._lines.empty():
                break
        told = f"exit status {self.process.poll()}; it said last:\n{''.join([*said[-20:], *self._stacks()])}"
        raise DemoError(f"the agent did not say {words!r}; {told}")

    def end(self, number: signal.Signals) -> None:
        """Send a signal and wait; an agent that does not end says where it stands, and is ended."""
        self.process.send_signal(number)
        try:
            self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            told = "".join(self._stacks())
            raise DemoError(f"the agent did not end at {number.name}; it stood at:\n{told}") from None
        self._listener.join(5)

    def _stacks(self) -> list[str]:
        """What every thread of an agent that still runs was doing; it has ended then."""
        if self.process.poll() is not None:
            return []
        self.process.send_signal(signal.SIGABRT)
        self.process.wait(PATIENCE_S)
        self._listener.join(5)
        return list(self._lines.queue)


def may_mount() -> bool:
    """Whether this process can mount a tmpfs; tried out and taken back."""
    with tempfile.TemporaryDirectory() as folder:
        mounter = LinuxMounter(SafeRoot(folder))
        place = Path(folder, "probe")
        place.mkdir()
        try:
            mounter.mount("tmpfs", str(place), fstype="tmpfs")
        except NodeallocError:
            return False
        mounter.unmount(str(place))
        return True


def start_plugin(state: Path, *options: str) -> subprocess.Popen[bytes]:
    """A device plugin in a process of its own, for `example.com/gpu`."""
    (state / "device-plugins").mkdir(parents=True, exist_ok=True)
    plugin = ["--resource", "example.com/gpu", "--devices", "4", "--with-parent"]
    plugin += ["--directory", str(state / "device-plugins")]
    with (state / "plugin.log").open("a") as log:
        command = [sys.executable, "-m", "nodealloc.testing.device_plugin", *plugin, *options]
        return subprocess.Popen(command, stdout=log, stderr=log)


def remembered(folder: Path) -> dict[str, bytes]:
    """What a checkpoint directory holds, byte for byte; not who wrote it."""
    decisions = (path for path in sorted(folder.iterdir()) if not path.name.startswith("."))
    return {path.name: path.read_bytes() for path in decisions}


def held(state: Path) -> dict[str, tuple[int, CPUSet]]:
    """Container (`uid_name`) to its pid and the CPUs on which the kernel lets it run."""
    found: dict[str, tuple[int, CPUSet]] = {}
    for path in sorted((state / "containers").glob("*.json")):
        pid = int(json.loads(path.read_text())["pid"])
        with contextlib.suppress(ProcessLookupError, FileNotFoundError):
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX":
                found[path.stem] = (pid, CPUSet(os.sched_getaffinity(pid)))
    return found


def mounts(state: Path) -> list[str]:
    """Everything that is mounted below the agent's folder."""
    below = f"{state.resolve()}/"
    table = parse_mountinfo(Path("/proc/self/mountinfo").read_text(errors="surrogateescape"))
    return [mount.target for mount in table if mount.target.startswith(below)]


@contextlib.contextmanager
def clean(cgroup: str) -> Generator[Path]:
    """A folder to work in; afterwards neither it nor its cgroups nor its processes are left."""
    folder = Path(tempfile.mkdtemp(prefix="nodealloc-"))
    switches = {path: path.read_text() for path in _switches()}
    try:
        yield folder
    finally:
        for pid, _ in held(folder / "state").values():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)
        for target in mounts(folder):
            with contextlib.suppress(NodeallocError):
                LinuxMounter(SafeRoot(str(folder))).unmount(target, lazy=True)
        with contextlib.suppress(NodeallocError, OSError):
            driver, name = detect(), CgroupName.of(cgroup)
            driver.kill(name)
            driver.remove(name)
        for path, before in switches.items():
            for controller in set(path.read_text().split()) - set(before.split()):
                with contextlib.suppress(OSError):
                    path.write_text(f"-{controller}")
        shutil.rmtree(folder, ignore_errors=True)


def _switches() -> list[Path]:
    """Which controllers the roots of cgroup v2 hand down: the agent switches on what it needs."""
    with contextlib.suppress(NodeallocError):
        roots = [Path(mount.path, "cgroup.subtree_control") for mount in detect().layout.mounts]
        return [path for path in roots if path.is_file()]
    return []
