"""A containerd of one's own: started, killed, started again, inside namespaces that `__main__` made."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

from nodealloc.cri import CriDeadlines, CriRuntime
from nodealloc.errors import NodeallocError
from tests.cri.images import archive

if TYPE_CHECKING:
    from collections.abc import Generator

__all__ = ["CDI_FOLDER", "PAUSE", "Containerd", "running"]

PAUSE = "localhost/pause:1"
CDI_FOLDER = "cdi"
_PATIENCE_S = float(os.environ.get("NODEALLOC_PATIENCE_S", "20"))
"""Emulated machines are many times slower."""


class Containerd:
    """One daemon with its folder.

    Attributes:
        root: Debian's packages, unpacked.
        folder: Everything that it writes.
        socket: Where it listens.
        version: `1.6`, `1.7` or `2.1`.
    """

    def __init__(self, root: Path, folder: Path, version: str) -> None:
        self.root = root
        self.folder = folder
        self.version = version
        self.socket = folder / "c.sock"
        self._process: subprocess.Popen[bytes] | None = None
        (folder / CDI_FOLDER).mkdir(parents=True)
        (folder / "config.toml").write_text(self._config())

    @property
    def busybox(self) -> Path:
        """The program that all images consist of."""
        found = [one for one in (self.root / "bin/busybox", self.root / "usr/bin/busybox") if one.exists()]
        return found[0]

    def launch(self) -> None:
        """Start it and return at once."""
        environment = {**os.environ, "PATH": f"{self._bin()}:{self.root / 'usr/sbin'}:{os.environ['PATH']}"}
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._bin() / "containerd", "--config", self.folder / "config.toml"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
            )

    def start(self) -> None:
        """Start it and wait until it answers."""
        self.launch()
        runtime = CriRuntime(self.socket, deadlines=CriDeadlines(look_s=5.0))
        ends_s = time.monotonic() + _PATIENCE_S
        while True:
            try:
                runtime.health()
            except NodeallocError:
                if time.monotonic() > ends_s:
                    raise
                time.sleep(0.02)
            else:
                runtime.close()
                return

    def kill(self) -> None:
        """SIGKILL it; what it started runs on."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()

    def stop(self) -> None:
        """End it."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(10)

    def ctr(self, *words: str) -> str:
        """Its own command."""
        command = [str(self._bin() / "ctr"), "--address", str(self.socket), "-n", "k8s.io", *words]
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout

    def trust(self, registry: str) -> None:
        """Let it speak plain HTTP to a registry, which newer versions have to be told."""
        folder = self.folder / "hosts" / registry
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "hosts.toml").write_text(f'server = "http://{registry}"\n')

    def _bin(self) -> Path:
        return self.root / "usr" / "bin"

    def _config(self) -> str:
        runc = next(one for one in self.root.glob("usr/*bin/runc"))
        new = self.version.startswith("2")
        plugin = "io.containerd.cri.v1.runtime" if new else "io.containerd.grpc.v1.cri"
        images = "io.containerd.cri.v1.images" if new else plugin
        cdi = ["enable_cdi = true", f'cdi_spec_dirs = ["{self.folder / CDI_FOLDER}"]']
        pinned = f'[plugins."{images}".pinned_images]\nsandbox = "{PAUSE}"' if new else ""
        lines = [
            f"version = {3 if new else 2}",
            f'root = "{self.folder / "root"}"',
            f'state = "{self.folder / "state"}"',
            f'temp = "{self.folder / "tmp"}"',
            f'[grpc]\naddress = "{self.socket}"',
            f'[ttrpc]\naddress = "{self.socket}.ttrpc"',
            f'[plugins."io.containerd.internal.v1.opt"]\npath = "{self.folder / "opt"}"',
            f'[plugins."{plugin}"]',
            "restrict_oom_score_adj = true",
            "disable_apparmor = true",
            "disable_hugetlb_controller = false",
            "tolerate_missing_hugetlb_controller = true",
            *([] if new else [f'sandbox_image = "{PAUSE}"']),
            *([] if self.version == "1.6" else cdi),
            f'[plugins."{plugin}".containerd]',
            *([] if new else ['snapshotter = "overlayfs"']),
            f'[plugins."{plugin}".containerd.runtimes.runc]\nruntime_type = "io.containerd.runc.v2"',
            f'[plugins."{plugin}".containerd.runtimes.runc.options]',
            f'BinaryName = "{runc}"\nSystemdCgroup = false',
            pinned,
            *([f'[plugins."{images}".registry]\nconfig_path = "{self.folder / "hosts"}"'] if new else []),
        ]
        return "\n".join(lines) + "\n"


@contextlib.contextmanager
def running(root: Path, folder: Path, version: str) -> Generator[Containerd]:
    """A containerd with its two images, for as long as the block lasts."""
    shutil.rmtree(folder, ignore_errors=True)
    one = Containerd(root, folder, version)
    try:
        one.start()
        archive(one.busybox, folder / "images.tar")
        one.ctr("images", "import", str(folder / "images.tar"))
        yield one
    finally:
        one.stop()
