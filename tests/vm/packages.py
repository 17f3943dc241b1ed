"""Debian's packages for the virtual machine, unpacked into a folder; nothing is installed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["Unavailable", "fetch"]

_KERNEL = "linux-image-cloud-amd64"
_EMULATOR = "qemu-system-x86"
_DONE = "complete"


class Unavailable(Exception):  # noqa: N818 - it is a reason to skip, not a fault
    """Why the virtual machine cannot be had here."""


def fetch(cache: Path, /) -> Path:
    """Folder with emulator, kernel and busybox; fetched once, then taken from the cache.

    Uses apt with lists of its own where the machine has none, as any user, and
    leaves the machine's own package state alone.

    Raises:
        Unavailable: This is no Debian, or the packages cannot be fetched.
    """
    unpacked = cache / "root"
    if (unpacked / _DONE).exists():
        return unpacked
    for tool in ("apt-get", "apt-cache", "dpkg-deb"):
        if shutil.which(tool) is None:
            raise Unavailable(f"{tool} is missing: the packages of the virtual machine are Debian's")
    if os.uname().machine != "x86_64":
        raise Unavailable(f"the virtual machine is for x86_64, this is {os.uname().machine}")
    archives = cache / "archives"
    archives.mkdir(parents=True, exist_ok=True)
    try:
        _download(archives, ())
    except Unavailable:
        _download(archives, _own_lists(cache))
    shutil.rmtree(unpacked, ignore_errors=True)
    for archive in sorted(archives.glob("*.deb")):
        _run(["dpkg-deb", "-x", str(archive), str(unpacked)])
    (unpacked / _DONE).touch()
    shutil.rmtree(archives)
    return unpacked


def _download(archives: Path, options: Sequence[str]) -> None:
    simulated = _run(["apt-get", *options, "-s", "--no-install-recommends", "install", _EMULATOR])
    names = re.findall(r"^Inst (\S+)", simulated, re.MULTILINE) or [_EMULATOR]
    kernel = re.search(r"linux-image-\d\S*", _run(["apt-cache", *options, "depends", _KERNEL]))
    if kernel is None:
        raise Unavailable(f"{_KERNEL} names no kernel; the package lists may be out of date")
    wanted = sorted(
        {*names, _EMULATOR, "qemu-system-common", "qemu-system-data", "seabios", "busybox-static"}
    )
    _run(["apt-get", *options, "-q", "download", *wanted, kernel[0]], cwd=archives)


def _own_lists(cache: Path) -> list[str]:
    """Options for package lists below the cache, brought up to date."""
    state = cache / "apt"
    for folder in ("lists/partial", "cache/archives/partial"):
        (state / folder).mkdir(parents=True, exist_ok=True)
    options = ["-o", f"Dir::State::lists={state}/lists", "-o", f"Dir::Cache={state}/cache"]
    _run(["apt-get", *options, "-q", "update"])
    return options


def _run(command: Sequence[str], *, cwd: Path | None = None) -> str:
    try:
        done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=180, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"{command[0]}: {error}") from None
    if done.returncode:
        last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
        raise Unavailable(f"{' '.join(command[:1])} failed: {' '.join(last)}")
    return done.stdout
