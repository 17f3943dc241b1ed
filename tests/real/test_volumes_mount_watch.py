"""Somebody else unmounts a pod's volume on this machine; the manager notices in its pass."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from nodealloc.testing.volume_sources import check_mount_watch
from nodealloc.testing.volumes import claiming_pod
from nodealloc.volumes import Found, LinuxMounter, LinuxMountTable, SafeRoot, WatchedMounter
from tests.real.volumes_namespace import in_namespace
from tests.real.volumes_node import Node, loop_devices, on, pod

pytestmark = [
    pytest.mark.real,
    pytest.mark.root,
    pytest.mark.forks,
    pytest.mark.usefixtures("as_root"),
]


def somebody_else(node: Node) -> LinuxMounter:
    """Who takes mounts off without telling."""
    return LinuxMounter(node.root)


@pytest.mark.parametrize(
    "uid", ["plain", "with space", "tab\tand\nnewline", "back\\slash\\040", "größe", "\udcff"]
)
def test_the_watch_of_this_machine_keeps_its_promises(tmp_path: Path, uid: str) -> None:
    """Whatever the kernel escapes in a name."""
    place = tmp_path / "pods" / uid / "volumes/a~b/v"

    def child() -> None:
        place.mkdir(parents=True)
        root = SafeRoot(str(tmp_path))
        mounter, table = LinuxMounter(root), LinuxMountTable()
        check_mount_watch(
            WatchedMounter(root, mounter, table),
            Found(plugin="a/b", name="v", pod_uid=uid),
            lambda: mounter.mount("tmpfs", str(place), fstype="tmpfs"),
            lambda: mounter.unmount(str(place)),
        )
        table.close()

    in_namespace(child)


def test_an_unmounted_volume_comes_back_in_the_next_passes(tmp_path: Path) -> None:
    """A tmpfs is there again before anything else happens, once; the pod's end takes it down."""

    def test(node: Node) -> None:
        path = node.run(pod("emptyDir", {"medium": "Memory"}))
        somebody_else(node).unmount(path)
        node.settle()
        assert [one.target for one in LinuxMountTable().entries()].count(path) == 1
        assert node.manager.volumes_of("pod")[0].mounted
        node.end("pod")

    on(tmp_path, test)


def test_an_unmounted_stage_is_not_missed_by_the_next_pod(tmp_path: Path) -> None:
    """A pod that comes after it gets the disk, not the empty directory below."""
    loop_devices()

    def test(node: Node) -> None:
        image = str(node.base / "disk.img")
        node.claims.volumes["disk"] = node.local.volume("disk", image, size_bytes=16 << 20)
        first = Path(node.run(claiming_pod("first", "disk")))
        (first / "file").write_text("kept")
        somebody_else(node).unmount(node.root.join("plugins", "nodealloc.io~local-block", "mounts", "disk"))
        node.settle()
        assert (Path(node.run(claiming_pod("second", "disk"))) / "file").read_text() == "kept"
        node.end("first")
        node.end("second")

    on(tmp_path, test)


def test_a_loop_that_is_told_of_the_table_looks_at_once(tmp_path: Path) -> None:
    """A thread of the caller waits on a table of its own; nobody names a pod."""

    def child() -> None:
        node, table = Node(tmp_path, threads=True), LinuxMountTable()
        stop = threading.Event()

        def tell() -> None:
            while not stop.is_set():
                if table.wait(0.05):
                    node.manager.mounts_changed()

        teller = threading.Thread(target=tell)
        teller.start()
        with node.manager:
            node.pods.put(pod("emptyDir", {"medium": "Memory"}))
            node.manager.pod_changed("pod")
            node.manager.wait_for_attach_and_mount("pod", timeout_s=30.0)
            path = node.manager.volumes_of("pod")[0].path
            somebody_else(node).unmount(path)
            patience = threading.Event()
            for _ in range(1000):
                if node.mounter.is_mounted(path):
                    break
                patience.wait(0.02)
            assert node.mounter.is_mounted(path)
            node.pods.sightings.clear()
            node.manager.pods_changed()
            node.manager.wait_for_unmount("pod", timeout_s=30.0)
        stop.set()
        teller.join()
        table.close()

    in_namespace(child)
