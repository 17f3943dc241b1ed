"""What others mount where volumes stand, and file systems that are full: neither holds anything up."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from nodealloc.dsw_asw import ThreadExecutor
from nodealloc.podspec import Pod, Volume
from nodealloc.testing.podfacts import FakePods
from nodealloc.volumes import (
    LinuxMounter,
    MountedHereError,
    PodsDirectory,
    SafeRoot,
    SubPaths,
    Use,
    VolumeManager,
    leave_pod,
    pod_path,
)
from nodealloc.volumes.plugins import EmptyDir
from nodealloc.volumes.plugins._atomic_files import FileContent, write_files
from tests.real.test_volumes_hang import Server
from tests.real.volumes_namespace import in_namespace

pytestmark = [
    pytest.mark.real,
    pytest.mark.root,
    pytest.mark.forks,
    pytest.mark.usefixtures("as_root"),
]

POD = Pod(uid="b", name="pod")
USE = Use(pod_uid="b", generation=1, volume="v")
PLACES = ["pods/b", "pods/b/volumes", "pods/b/volumes/p", "plugins/p", "plugins/p/mounts"]


class Node:
    """Directories of three pods and a plugin, and who mounts."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.root = SafeRoot(str(base))
        self.mounter = LinuxMounter(self.root)
        self.directory = PodsDirectory(self.root, self.mounter)
        self.server = Server()
        for uid in "abc":
            (base / f"pods/{uid}/volumes/p/v").mkdir(parents=True)
        (base / "plugins/p/mounts/s").mkdir(parents=True)

    def hang(self, place: str) -> None:
        """Mount a file system that never answers."""
        self.mounter.mount("silent", str(self.base / place), fstype="fuse", options=self.server.connect())


def on(base: Path, test: Callable[[Node], None], *, fuse: bool = True) -> None:
    """Run a test in a child of its own, which an alarm ends: what hangs is a failure."""
    if fuse:
        try:
            os.close(os.open("/dev/fuse", os.O_RDWR))
        except OSError as error:
            pytest.skip(f"this machine gives no FUSE: {error}")

    def child() -> None:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(30)
        node = Node(base)
        try:
            test(node)
        finally:
            node.server.abort()

    in_namespace(child)


def manager(node: Node) -> VolumeManager:
    """One that begins."""
    return VolumeManager(
        [EmptyDir(node.root, node.mounter)],
        pods=FakePods(),
        executor=ThreadExecutor(),
        leftovers=node.directory,
    )


@pytest.mark.parametrize("is_gone", [False, True], ids=["hung", "gone"])
@pytest.mark.parametrize("place", PLACES)
def test_a_dead_mount_above_volumes_stops_no_start(tmp_path: Path, place: str, is_gone: bool) -> None:
    """It is foreign, and not looked into; what stands beside it is taken over."""

    def test(node: Node) -> None:
        node.hang(place)
        if is_gone:
            node.server.abort()
        found = manager(node).reconstruct()
        pods = {one.pod_uid for one in found if one.pod_uid}
        assert pods == ({"a", "c"} if place.startswith("pods") else {"a", "b", "c"})
        assert any(not one.pod_uid for one in found) is place.startswith("pods")

    on(tmp_path, test)


@pytest.mark.parametrize("is_gone", [False, True], ids=["hung", "gone"])
@pytest.mark.parametrize("place", PLACES[:3])
def test_a_dead_mount_above_volumes_stops_no_tidying(tmp_path: Path, place: str, is_gone: bool) -> None:
    """Empty directories of pods before and after it go; it stays."""

    def test(node: Node) -> None:
        for uid in "abc":
            (node.base / f"pods/{uid}/volumes/p/v").rmdir()
        node.hang(place)
        if is_gone:
            node.server.abort()
        node.directory.tidy()
        assert [one.name for one in (node.base / "pods").iterdir()] == ["b"]
        leave_pod(node.root, pod_path(node.root, "p", "b", "v"))
        assert node.mounter.is_mounted(str(node.base / place))

    on(tmp_path, test)


@pytest.mark.parametrize("place", ["pods/b", "pods/b/volumes", "pods/b/volumes/kubernetes.io~empty-dir"])
def test_a_volume_below_a_mount_is_unmounted(tmp_path: Path, place: str) -> None:
    """Where an administrator gave a pod's directory a disk of its own, volumes go and the directory stays."""

    def test(node: Node) -> None:
        node.root.make_directory(str(node.base / place))
        node.mounter.mount("tmpfs", str(node.base / place), fstype="tmpfs")
        plugin = EmptyDir(node.root, node.mounter)
        spec = plugin.spec(POD, Volume(name="v", kind="emptyDir", spec={"medium": "Memory"}))
        plugin.mount(spec, USE, "")
        plugin.unmount(spec, USE)
        assert not Path(plugin.path(spec, USE)).exists()
        assert node.mounter.is_mounted(str(node.base / place))

    on(tmp_path, test, fuse=False)


@pytest.mark.parametrize("is_gone", [False, True], ids=["hung", "gone"])
def test_a_dead_mount_in_a_volume_is_found_without_a_look_into_it(tmp_path: Path, is_gone: bool) -> None:
    """Deleting the volume is refused at once and names the mount; it goes on when that is taken off."""

    def test(node: Node) -> None:
        plugin = EmptyDir(node.root, node.mounter)
        spec = plugin.spec(POD, Volume(name="v", kind="emptyDir"))
        plugin.mount(spec, USE, "")
        inner = Path(plugin.path(spec, USE), "deep", "inner")
        inner.mkdir(parents=True)
        node.hang(str(inner.relative_to(node.base)))
        if is_gone:
            node.server.abort()
        with pytest.raises(MountedHereError) as caught:
            plugin.unmount(spec, USE)
        assert caught.value.paths == (str(inner),)
        node.mounter.unmount(str(inner))
        plugin.unmount(spec, USE)
        assert not inner.exists()

    on(tmp_path, test)


def test_a_part_whose_server_is_gone_is_bound_anew(tmp_path: Path) -> None:
    """The next instance of its container has what is there by now."""

    def test(node: Node) -> None:
        folder = node.base / "host"
        folder.mkdir()
        parts = SubPaths(node.root, node.mounter)
        bound = parts.bind("b", "c", 0, volume="v", folder=str(folder), path="x")
        node.mounter.unmount(bound)
        node.hang(bound.removeprefix(f"{node.root.path}/"))
        node.server.abort()
        assert parts.bind("b", "c", 0, volume="v", folder=str(folder), path="x") == bound
        assert Path(bound).samefile(folder / "x")
        parts.clean("b")

    on(tmp_path, test)


def test_a_full_file_system_takes_a_smaller_change(tmp_path: Path) -> None:
    """Large contents that do not fit leave the room that there was to the small one that follows."""

    def test(node: Node) -> None:
        node.mounter.mount("tmpfs", str(node.base / "pods"), fstype="tmpfs", options=["size=600k"])
        fd = os.open(node.base / "pods", os.O_RDONLY | os.O_DIRECTORY)
        write_files(fd, {"key": FileContent(b"old", 0o644)})
        for number in range(5):
            with pytest.raises(OSError, match="No space left") as caught:
                write_files(fd, {"key": FileContent(b"%d" % number * 800_000, 0o644)})
            assert caught.value.errno == errno.ENOSPC
        write_files(fd, {"key": FileContent(b"small", 0o644)})
        assert (node.base / "pods/key").read_bytes() == b"small"
        assert len([*(node.base / "pods").iterdir()]) == 3
        os.close(fd)

    on(tmp_path, test, fuse=False)
