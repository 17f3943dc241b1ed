"""Debian's container runtimes, unpacked into a folder; nothing is installed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["VERSIONS", "Unavailable", "fetch"]

VERSIONS = {"1.6": "bookworm", "1.7": "trixie", "2.1": "sid"}
"""Version of containerd to the suite that has it; runc is always the oldest suite's."""

_TOOLS = ("runc", "busybox-static")
_NETWORK = "containernetworking-plugins"
_DONE = "complete"
_NETWORK_DONE = "complete-network"


class Unavailable(Exception):  # noqa: N818 - it is a reason to skip, not a fault
    """Why a runtime cannot be had here."""


def fetch(cache: Path, version: str, /, *, network: bool = False) -> Path:
    """Folder with containerd of a version, runc and busybox; fetched once, then taken from the cache.

    With `network` also the plugins by which pods get addresses.

    Uses apt with lists of its own, as any user, and leaves the machine's own
    package state alone.

    Raises:
        Unavailable: This is no Debian, or the packages cannot be fetched.
    """
    root = cache / version
    if (root / _DONE).exists():
        if network and not (root / _NETWORK_DONE).exists():
            _add_network(cache, root)
        return root
    for tool in ("apt-get", "dpkg-deb"):
        if shutil.which(tool) is None:
            raise Unavailable(f"{tool} is missing: the packages are Debian's")
    archives = cache / f"archives-{version}"
    archives.mkdir(parents=True, exist_ok=True)
    _run(["apt-get", *_lists(cache, VERSIONS["1.6"]), "-q", "download", *_TOOLS], cwd=archives)
    _run(["apt-get", *_lists(cache, VERSIONS[version]), "-q", "download", "containerd"], cwd=archives)
    shutil.rmtree(root, ignore_errors=True)
    for archive in sorted(archives.glob("*.deb")):
        _run(["dpkg-deb", "-x", str(archive), str(root)])
    shutil.rmtree(archives)
    (root / _DONE).touch()
    if network:
        _add_network(cache, root)
    return root


def _add_network(cache: Path, root: Path) -> None:
    archives = cache / "archives-network"
    archives.mkdir(parents=True, exist_ok=True)
    _run(["apt-get", *_lists(cache, VERSIONS["1.6"]), "-q", "download", _NETWORK], cwd=archives)
    for archive in archives.glob("*.deb"):
        _run(["dpkg-deb", "-x", str(archive), str(root)])
    shutil.rmtree(archives)
    (root / _NETWORK_DONE).touch()


def _lists(cache: Path, suite: str) -> list[str]:
    """Options for package lists of one suite below the cache, brought up to date once."""
    state = cache / f"apt-{suite}"
    sources = state / "sources.list"
    options = [
        *("-o", f"Dir::State::lists={state}/lists", "-o", f"Dir::Cache={state}/cache"),
        *("-o", f"Dir::Etc::sourcelist={sources}", "-o", "Dir::Etc::sourceparts=-"),
        # Where nothing answers, that is the reason to skip, and it has to be found soon.
        *("-o", "Acquire::Retries=0", "-o", "Acquire::http::Timeout=15", "-o", "Acquire::https::Timeout=15"),
    ]
    if not sources.exists():
        for folder in ("lists/partial", "cache/archives/partial"):
            (state / folder).mkdir(parents=True, exist_ok=True)
        key = "/usr/share/keyrings/debian-archive-keyring.gpg"
        sources.write_text(f"deb [signed-by={key}] {_address()} {suite} main\n")
        try:
            _run(["apt-get", *options, "-q", "update"])
        except Unavailable:
            sources.unlink()
            raise
    return options


def _address() -> str:
    """Where the machine's own sources say that Debian is."""
    folder = Path("/etc/apt")
    files = [*folder.glob("sources.list"), *folder.glob("sources.list.d/*")]
    words = " ".join(path.read_text(errors="replace") for path in files if path.is_file())
    found = re.search(r"(https?://\S+/debian)/?(?=\s)", words)
    if found is None:
        raise Unavailable("the machine's package sources name no Debian archive")
    return found[1]


def _run(command: Sequence[str], *, cwd: Path | None = None) -> str:
    try:
        done = subprocess.run(
            command,
            cwd=cwd,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            env={**os.environ, "LC_ALL": "C"},
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"{command[0]}: {error}") from None
    if done.returncode:
        last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
        raise Unavailable(f"{command[0]} failed: {' '.join(last)}")
    return done.stdout
