"""`python -m tests.cri [--version V]... [-- PYTEST…]`: tests on a real containerd, in namespaces of its own.

Fetches Debian's packages into `.cache/cri`, starts containerd where it sees
neither the machine's network nor its processes, and runs `pytest -m cri` with
this interpreter. Nothing is installed; when it ends, whatever it started has
ended as well, and its cgroups are gone.

Exit status: of the first version whose tests failed, else 0; 75 when no
version can be had here (the reasons are printed), 124 when time ran out.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.cri.folders import mount_points
from tests.cri.packages import VERSIONS, Unavailable, fetch

ROOT = Path(__file__).parent.parent.parent
CACHE = ROOT / ".cache" / "cri"
COMPILED = {"PYTHONPYCACHEPREFIX": str(CACHE / "pyc"), "PYTHONDONTWRITEBYTECODE": ""}
"""An agent that starts anew finds its modules compiled, as one that is installed does."""
NOT_HERE = 75
TIME_OUT = 124
CGROUPS = os.environ.get("NODEALLOC_CRI_CGROUPS", f"nodealloc-cri-{os.getpid()}")
"""Of this run alone, and the same inside: one that runs beside takes its own away when it ends."""
_HARD_CODED = ("/run/containerd", "/run/runc")
"""Where shims and runc keep their state, whatever they are told; a tmpfs is mounted there inside."""
_TESTS = ("tests/real/test_cri.py", "tests/real/test_podlife_cri.py", "tests/real/test_agent_takeover.py")
_UNSHARE = ("unshare", "-n", "-m", "-p", "-f", "--mount-proc", "--propagation", "private", "--kill-child")


def main() -> int:
    """Fetch, go into namespaces, test each version."""
    parser = argparse.ArgumentParser(prog="python -m tests.cri", description=__doc__)
    parser.add_argument("--version", action="append", choices=sorted(VERSIONS), help="default: 1.6 and 1.7")
    parser.add_argument("--seconds", type=int, default=280, help="time for a version (default: 280)")
    parser.add_argument("--pace", action="store_true", help="measure twenty pods instead (see pace.py)")
    parser.add_argument("--module", help="run this module there instead of the tests, with what follows --")
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    parser.add_argument("pytest", nargs="*", help="options for pytest; write -- before them")
    chosen = parser.parse_args()
    if chosen.inside:
        return inside(chosen.inside, chosen.pytest, "tests.cri.pace" if chosen.pace else chosen.module)
    module = ["--module", chosen.module] if chosen.module else []
    words = [*(["--pace"] if chosen.pace else []), *module, "--", *chosen.pytest]
    codes = [outside(version, words, chosen.seconds) for version in chosen.version or ["1.6", "1.7"]]
    if all(code == NOT_HERE for code in codes):
        return NOT_HERE
    return next((code for code in codes if code not in (0, NOT_HERE)), 0)


def outside(version: str, words: list[str], seconds: int) -> int:
    """One version; its status, or that it cannot be had."""
    started = time.monotonic()
    try:
        _check_namespaces()
        fetch(CACHE, version)
    except Unavailable as reason:
        print(f"cri: containerd {version} not run: {reason}")
        return NOT_HERE
    command = [*_UNSHARE, sys.executable, "-m", "tests.cri", "--inside", version, *words]
    try:
        left_s = max(20.0, seconds - (time.monotonic() - started))
        with mount_points(_HARD_CODED):
            told = {**os.environ, "NODEALLOC_CRI_CGROUPS": CGROUPS}
            code = subprocess.run(command, cwd=ROOT, env=told, check=False, timeout=left_s).returncode
    except subprocess.TimeoutExpired:
        code = TIME_OUT
    finally:
        _remove_cgroups()
    print(f"cri: containerd {version}: exit status {code} after {time.monotonic() - started:.0f} s")
    return code


def _check_namespaces() -> None:
    if os.geteuid() != 0:
        raise Unavailable("containers need root")
    if shutil.which("unshare") is None or shutil.which("ip") is None:
        raise Unavailable("unshare or ip is missing")
    done = subprocess.run([*_UNSHARE, "true"], capture_output=True, text=True, check=False)
    if done.returncode:
        raise Unavailable(f"no namespaces of its own: {done.stderr.strip()}")


def inside(version: str, words: list[str], module: str | None) -> int:
    """In the namespaces: a loopback, a place for shims, then the tests, or a module of one's choice."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    for folder in _HARD_CODED:
        Path(folder).mkdir(parents=True, exist_ok=True)
        _mount_tmpfs(folder)
    with tempfile.TemporaryDirectory(prefix="nacri-") as folder:
        _mount_tmpfs(folder)
        environment = {
            **os.environ,
            **COMPILED,
            "NODEALLOC_CRI_ROOT": str(CACHE / version),
            "NODEALLOC_CRI_FOLDER": folder,
            "NODEALLOC_CRI_VERSION": version,
            "TMPDIR": folder,
        }
        tests = ["pytest", "-q", "-m", "cri", "-p", "no:cacheprovider", *words, *_TESTS]
        command = [sys.executable, "-m", *([module, *words] if module else tests)]
        code = subprocess.run(command, env=environment, check=False).returncode
        with contextlib.suppress(OSError):
            shutil.copy(f"{folder}/containerd/log", CACHE / f"log-{version}")
        subprocess.run(["umount", "-l", folder], check=False)
    return code


def _mount_tmpfs(folder: str) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"tmpfs", folder.encode(), b"tmpfs", 0, b""):
        raise OSError(ctypes.get_errno(), f"tmpfs on {folder}")


def _remove_cgroups() -> None:
    """What containers lived in; all of it is empty by now."""
    for top in Path("/sys/fs/cgroup").glob(f"*/{CGROUPS}"):
        below = sorted((Path(at) for at, _, _ in os.walk(top)), key=lambda one: len(one.parts), reverse=True)
        for folder in below:
            for _ in range(50):
                try:
                    folder.rmdir()
                    break
                except OSError:
                    time.sleep(0.02)


if __name__ == "__main__":
    sys.exit(main())
