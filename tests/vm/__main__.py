"""`python -m tests.vm [-- COMMAND…]`: run tests on a machine with four NUMA nodes and cgroup v2.

Fetches Debian's emulator and kernel into `.cache/vm`, boots, runs
`pytest -m vm` on the files of this clone with this interpreter, and brings the
result back. Changes made inside vanish with the machine. Nothing is left
running, whatever happens.

Exit status: that of the first command that failed inside, else 0; 75 when the
machine cannot be had here (the reason is printed), 124 when time ran out.
"""

from __future__ import annotations

import argparse
import compileall
import contextlib
import io
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tests.archives import unpack
from tests.cri.packages import Unavailable as NoContainerd
from tests.cri.packages import fetch as fetch_containerd
from tests.vm.guest import initramfs
from tests.vm.hardware import arguments, file_server
from tests.vm.packages import Unavailable, fetch

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

ROOT = Path(__file__).parent.parent.parent
CACHE = ROOT / ".cache" / "vm"
RESULT_MIB = 16
NOT_HERE = 75
TIME_OUT = 124
_LIBRARIES = ("usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu")
_BOOT_S = 30
"""Kept from the time that commands get, for the boot and for bringing the result back."""


def main() -> int:
    """Boot, run, bring back."""
    parser = argparse.ArgumentParser(prog="python -m tests.vm", description=__doc__)
    parser.add_argument("--seconds", type=int, default=280, help="time for everything (default: 280)")
    parser.add_argument("--result", type=Path, default=CACHE / "result", help="folder for the result")
    parser.add_argument("--demo", action="store_true", help="run the example agent after the tests")
    parser.add_argument(
        "--short", action="store_true", help="leave out slow tests and the real container, as in CI"
    )
    parser.add_argument(
        "--apart", action="store_true", help="each command in a machine of its own, all at once, as in CI"
    )
    parser.add_argument("command", nargs="*", help="run this instead of the tests; write -- before it")
    chosen = parser.parse_args()
    started = time.monotonic()
    try:
        packages = fetch(CACHE)
        commands = _commands(chosen.command, demo=chosen.demo, short=chosen.short)
        left = chosen.seconds - int(time.monotonic() - started)
        if chosen.apart and len(commands) > 1:
            return _apart(commands, chosen.result, left)
        boot(packages, commands, chosen.result, left)
    except Unavailable as reason:
        print(f"vm: not run: {reason}")
        return NOT_HERE
    except TimeoutError as reason:
        print(f"vm: {reason}")
        return TIME_OUT
    print(f"vm: {time.monotonic() - started:.0f} s in all; result in {chosen.result}")
    return _report(chosen.result, commands)


def _commands(command: Sequence[str], *, demo: bool, short: bool) -> list[list[str]]:
    if command:
        return [list(command)]
    pytest = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    marked = "vm and not slow" if short else "vm"
    # Folders of their own: pytest looks for those of runs before it, and may end in a warning of its own.
    commands = [
        [*pytest, "--basetemp=/tmp/a", "-m", marked, "--junitxml=/run/result/vm.xml", *_marked()],
        # The same tests that the host ran on its own cgroups, here on v2 alone.
        [*pytest, "--basetemp=/tmp/b", "--junitxml=/run/result/cgroups.xml", "tests/real/test_cgroups.py"],
    ]
    if demo:
        commands.append([sys.executable, "-m", "examples.agent.demo"])
    return commands if short else [*commands, *_containers()]


def _apart(commands: Sequence[Sequence[str]], result: Path, seconds: int) -> int:
    """Run each command in a machine of its own, all at once; the status of one that failed, where one did.

    A machine that is emulated may stand still, kernel and all: one that does not finish in two thirds
    of the time is booted once more.
    """
    places = {str(result / str(number)): command for number, command in enumerate(commands)}
    found = _boots(places, seconds * 2 // 3)
    stood = {place: places[place] for place, status in found.items() if status == TIME_OUT}
    if stood:
        found |= _boots(stood, seconds)
    return max(found.values(), key=lambda status: (status not in {0, NOT_HERE}, status))


def _boots(places: Mapping[str, Sequence[str]], seconds: int) -> dict[str, int]:
    """The status of each machine, by the folder of its result."""
    this = [sys.executable, "-m", "tests.vm", "--seconds", str(seconds), "--result"]
    with contextlib.ExitStack() as running:
        machines: dict[str, subprocess.Popen[bytes]] = {}
        for place, command in places.items():
            machine = subprocess.Popen([*this, place, "--", *command], cwd=ROOT)
            running.callback(machine.wait)
            running.callback(machine.terminate)
            machines[place] = machine
        return {place: machine.wait() for place, machine in machines.items()}


def _containers() -> list[list[str]]:
    """One real container on cgroup v2. Its packages are fetched here, as there is no network inside."""
    try:
        fetch_containerd(ROOT / ".cache" / "cri", "1.6")
    except NoContainerd as reason:
        print(f"vm: no containers inside: {reason}")
        return []
    chosen = ["--version", "1.6", "--seconds", "400", "--", "-k", "cgroup_v2"]
    return [[sys.executable, "-m", "tests.cri", *chosen]]


def _marked() -> list[str]:
    """Test files that speak of the mark `vm`; to collect all others takes a minute there."""
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    return [str(path.relative_to(ROOT)) for path in files if "mark.vm" in path.read_text()]


def boot(packages: Path, commands: Sequence[Sequence[str]], result: Path, seconds: int) -> None:
    """Run commands in a new machine and unpack what they left.

    Raises:
        Unavailable: This is not root, or the emulator or the file server does not start here.
        TimeoutError: The machine did not finish in time; it was killed.
    """
    if os.geteuid() != 0:
        raise Unavailable("the server that shows this machine's files to the virtual one needs root")
    work = CACHE / f"work-{os.getpid()}"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    # What would be compiled inside is compiled there at every start, and takes a minute.
    for folder in ("src", "examples", "tests"):
        compileall.compile_dir(ROOT / folder, quiet=2)
    environment = {
        "NODEALLOC_VM": "1",
        # Emulation is many times slower than the machine it runs on.
        "NODEALLOC_PATIENCE_S": "120",
        "PATH": os.environ["PATH"],
        "HOME": "/root",
        "TERM": "dumb",
        "PYTHONDONTWRITEBYTECODE": "1",
        "HYPOTHESIS_STORAGE_DIRECTORY": "/run/hypothesis",
    }
    inside = max(seconds - _BOOT_S, 20)
    (work / "initramfs").write_bytes(
        initramfs(packages, commands, folder=ROOT, environment=environment, seconds=inside)
    )
    with (work / "result.img").open("wb") as image:
        image.truncate(RESULT_MIB << 20)
    try:
        with _running(file_server(packages, work), packages, work / "share.log"):
            _wait_for(work / "share.sock", work / "share.log")
            with _running(arguments(packages, work), packages, work / "emulator.log") as machine:
                try:
                    machine.wait(seconds)
                except subprocess.TimeoutExpired:
                    raise TimeoutError(f"killed after {seconds} s\n{_tail(work / 'console.log')}") from None
        _unpack(work, result)
    finally:
        shutil.rmtree(work, ignore_errors=True)


@contextlib.contextmanager
def _running(command: Sequence[str], packages: Path, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A program in a session of its own, which ends with this block."""
    libraries = ":".join(str(packages / folder) for folder in _LIBRARIES)
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, "LD_LIBRARY_PATH": libraries},
            start_new_session=True,
        )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _wait_for(socket: Path, log: Path) -> None:
    for _ in range(100):
        if socket.exists():
            return
        time.sleep(0.05)
    raise Unavailable(f"the file server does not start: {_tail(log)}")


def _tail(path: Path, lines: int = 15) -> str:
    text = path.read_text(errors="replace") if path.exists() else ""
    return "\n".join(text.splitlines()[-lines:])


def _unpack(work: Path, result: Path) -> None:
    shutil.rmtree(result, ignore_errors=True)
    result.mkdir(parents=True)
    content = (work / "result.img").read_bytes()
    if not content.strip(b"\0"):
        raise Unavailable(
            "the machine came back without a result:\n"
            + _tail(work / "console.log")
            + _tail(work / "emulator.log")
        )
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        unpack(archive, result)
    shutil.copy(work / "console.log", result / "console.log")


def _report(result: Path, commands: Sequence[Sequence[str]]) -> int:
    failed = 0
    for number, command in enumerate(commands):
        output, status = result / f"{number}.out", result / f"{number}.status"
        code = int(status.read_text()) if status.exists() else TIME_OUT
        print(f"vm: {' '.join(command)}: exit status {code}")
        print(output.read_text(errors="replace") if output.exists() else "(it was not reached)")
        failed = failed or code
    return failed


def _on_termination(_number: int, _frame: object) -> None:
    raise SystemExit(TIME_OUT)


if __name__ == "__main__":
    # So that what runs is ended as well when somebody ends this.
    signal.signal(signal.SIGTERM, _on_termination)
    sys.exit(main())
