"""Device plugins in other languages: how they are built, and how they are run once they are."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["LANGUAGES", "Absent", "build", "command", "install"]

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
PROTOS = ROOT / "proto" / "nodealloc" / "_proto"
GOCODE = Path("/usr/share/gocode")
LANGUAGES = ("go", "js")
_TOOLS = {"go": ("go", "protoc", "protoc-gen-go"), "js": ("node", "npm")}
_DEBIAN = {
    "go": (
        "golang-go",
        "golang-google-grpc-dev",
        "golang-goprotobuf-dev",
        "golang-github-fsnotify-fsnotify-dev",
        "protobuf-compiler",
    ),
    "js": ("nodejs", "npm"),
}
_GOCODE = ("google.golang.org/grpc", "github.com/golang/protobuf", "github.com/fsnotify/fsnotify")
_NPM = ("@grpc/grpc-js@1", "@grpc/proto-loader@0.7")
_GO_PACKAGES = {"api": "deviceplugin_v1beta1.proto", "registry": "pluginregistration_v1.proto"}
_SECONDS = 300


class Absent(Exception):  # noqa: N818 - it is a reason to skip, not a fault
    """Why plugins of a language cannot be had here."""


def command(language: str, directory: Path, name: str, resource: str, /, *, found: bool) -> list[str]:
    """How to run a plugin with four devices.

    Args:
        language: One of `LANGUAGES`.
        directory: Of the sockets.
        name: Of its own socket.
        resource: What it serves.
        found: It waits to be found, and does not register on `kubelet.sock`.

    Raises:
        Absent: It is not built.
    """
    place = _place(language)
    if not (place / "complete").exists():
        raise Absent(f"the plugin in {language} is not built: nox -s foreign")
    if language == "go":
        flags = [f"-directory={directory}", f"-name={name}", f"-resource={resource}", "-devices=4"]
        return [str(place / "plugin"), *flags, *(["-registry"] if found else [])]
    said = [str(PROTOS), str(directory), name, resource, "4", *(["--registry"] if found else [])]
    return ["node", str(place / "plugin.js"), *said]


def build(language: str, /) -> Path:
    """Build the plugin of a language; done once for each state of its sources.

    Raises:
        Absent: A tool or a package is missing here, or refuses.
    """
    place = _place(language)
    if (place / "complete").exists():
        return place
    if lacking := _lacking(language):
        raise Absent(f"{' and '.join(lacking)} missing; Debian has it in: {' '.join(_DEBIAN[language])}")
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    if language == "go":
        _build_go(place)
    else:
        shutil.copy(HERE / "plugin.js", place)
        _run(["npm", "install", "--no-audit", "--no-fund", "--prefix", str(place), *_NPM], place)
    (place / "complete").touch()
    return place


def install(language: str, /) -> None:
    """Install Debian's packages for a language where something is missing, whoever brought the rest.

    Raises:
        Absent: That cannot be done.
    """
    if not _lacking(language):
        return
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise Absent("packages are installed by root, on Debian")
    _run(["apt-get", "install", "-y", "--no-install-recommends", *_DEBIAN[language]], ROOT)


def _lacking(language: str) -> list[str]:
    """Tools and packages that are not here, whoever they would be from."""
    tools = [tool for tool in _TOOLS[language] if shutil.which(tool) is None]
    packages = [one for one in _GOCODE if not (GOCODE / "src" / one).is_dir()] if language == "go" else []
    return [*tools, *packages]


def _build_go(place: Path) -> None:
    source = place / "src"
    for package, proto in _GO_PACKAGES.items():
        target = source / "nodealloc" / package
        target.mkdir(parents=True)
        out = f"--go_out=plugins=grpc,import_path={package}:{target}"
        _run(["protoc", f"-I{PROTOS}", out, proto], place)
    main = source / "nodealloc" / "main"
    main.mkdir()
    shutil.copy(HERE / "plugin.go", main)
    env = {
        "GOPATH": f"{place}:{GOCODE}",
        "GO111MODULE": "off",
        "GOCACHE": str(place / "cache"),
        "GOFLAGS": "",
    }
    _run(["go", "build", "-o", str(place / "plugin"), "nodealloc/main"], place, env)
    shutil.rmtree(place / "cache")


def _place(language: str) -> Path:
    """Where a plugin is built; another place for other sources."""
    digest = hashlib.sha256()
    for source in sorted([HERE / f"plugin.{language}", *PROTOS.glob("*.proto")]):
        digest.update(source.read_bytes())
    return ROOT / ".cache" / "foreign" / f"{language}-{digest.hexdigest()[:12]}"


def _run(command: Sequence[str], place: Path, env: dict[str, str] | None = None) -> None:
    try:
        done = subprocess.run(
            command,
            cwd=place,
            env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Absent(f"{command[0]}: {error}") from error
    if done.returncode:
        sys.stderr.write(done.stdout + done.stderr)
        *_, last = ["", *(done.stderr or done.stdout).strip().splitlines()]
        raise Absent(f"{' '.join(command[:3])} … ended with {done.returncode}: {last}")
