"""Each plugin's life on real mounts, in a mount namespace of its own, driven by the manager."""

from __future__ import annotations

import os
import shutil
import socket
import stat
import threading
import time
from pathlib import Path

import pytest

from nodealloc.podspec import Container, Pod, Volume, VolumeUse
from nodealloc.testing.volumes import claiming_pod
from nodealloc.volumes import (
    LinuxMountTable,
    VolumeMode,
)
from nodealloc.volumes.plugins import (
    ConfigObject,
)
from tests.real.volumes_namespace import in_namespace
from tests.real.volumes_node import Node, attached_loops, loop_devices, on, pod

pytestmark = [
    pytest.mark.real,
    pytest.mark.root,
    pytest.mark.forks,
    pytest.mark.usefixtures("as_root"),
]


def test_empty_dir_on_disk(tmp_path: Path) -> None:
    """Everybody may write; it goes with its pod, content and links and all."""

    def test(node: Node) -> None:
        path = Path(node.run(pod("emptyDir", {})))
        assert stat.S_IMODE(path.stat().st_mode) == 0o777
        (path / "deep").mkdir()
        (path / "deep/file").write_text("x")
        outside = node.base / "outside"
        outside.write_text("precious")
        (path / "link").symlink_to(outside)
        node.end("pod")
        assert not path.exists()
        assert outside.read_text() == "precious"

    on(tmp_path, test)


def test_empty_dir_in_memory(tmp_path: Path) -> None:
    """A tmpfs of the size that was asked for, mounted once."""

    def test(node: Node) -> None:
        path = node.run(pod("emptyDir", {"medium": "Memory", "sizeLimit": "1Mi"}))
        assert stat.S_IMODE(Path(path).stat().st_mode) == 0o1777
        found = os.statvfs(path)
        assert found.f_blocks * found.f_frsize == 1 << 20
        with pytest.raises(OSError, match="No space"):
            Path(path, "big").write_bytes(b"x" * (2 << 20))
        node.manager.refresh("pod")
        node.settle()
        assert sum(one.target == path for one in LinuxMountTable().entries()) == 1
        node.end("pod")

    on(tmp_path, test)


def test_a_mount_taken_off_by_somebody_else_comes_back(tmp_path: Path) -> None:
    """The table tells of the change, the doubted pod is made sure of, right mounts are not stacked."""

    def test(node: Node) -> None:
        path = node.run(pod("emptyDir", {"medium": "Memory"}))
        table = LinuxMountTable()
        table.wait(0.0)
        node.mounter.unmount(path)
        assert table.wait(5.0)
        assert path not in [one.target for one in table.entries()]
        for _ in range(2):
            node.manager.observe("pod")
            node.settle()
            assert [one.target for one in table.entries()].count(path) == 1
        table.close()
        node.end("pod")

    on(tmp_path, test)


def test_a_busy_unmount_waits_and_succeeds(tmp_path: Path) -> None:
    """An open file holds the mount; it is tried again with back-off and no data is touched."""

    def test(node: Node) -> None:
        path = node.run(pod("emptyDir", {"medium": "Memory"}))
        with Path(path, "file").open("w"):
            node.end("pod")
            assert node.mounter.is_mounted(path)
            assert "busy" in str(node.manager.actual.snapshot() and failures(node))
        node.clock.advance(130.0)
        node.settle()

    on(tmp_path, test)


def failures(node: Node) -> list[str]:
    """Every error of every volume."""
    engine = node.manager._mounting
    return [str(one) for key in node.manager.actual.snapshot() for one in engine.failures(key)]


def test_host_path_checks_types(tmp_path: Path) -> None:
    """Each type passes on its own kind and is named on another; other pods go on."""

    def test(node: Node) -> None:
        base = node.base / "host"
        base.mkdir()
        (base / "file").write_text("x")
        server = socket.socket(socket.AF_UNIX)
        os.chdir(base)
        server.bind("socket")
        good = {
            "Directory": base,
            "File": base / "file",
            "Socket": base / "socket",
            "CharDevice": Path("/dev/null"),
            "DirectoryOrCreate": base / "new/deep",
            "FileOrCreate": base / "fresh",
            "": base / "whatever",
        }
        for kind, path in good.items():
            assert node.run(pod("hostPath", {"path": str(path), "type": kind}, uid=f"p{kind}")) == str(path)
            node.end(f"p{kind}")
        for kind in ("File", "Socket", "CharDevice", "BlockDevice", "FileOrCreate"):
            node.pods.put(pod("hostPath", {"path": str(base), "type": kind}, uid=kind))
            node.manager.pod_changed(kind)
            node.settle()
            assert f"is no {kind} but a directory" in node.manager.volumes_of(kind)[0].error
        for bad in ({"path": "/a/../b"}, {"path": "relative"}, {"path": "/x", "type": "Floppy"}):
            node.pods.put(pod("hostPath", bad, uid="bad"))
            node.manager.pod_changed("bad")
            node.settle()
            assert node.manager.volumes_of("bad")[0].error
        for uid in list(node.pods.sightings):
            node.end(uid)
        assert (base / "fresh").exists()
        server.close()

    on(tmp_path, test)


def test_config_maps_change_all_at_once(tmp_path: Path) -> None:
    """Files, modes, items; an update swaps one link; an unchanged one writes nothing."""

    def test(node: Node) -> None:
        node.objects.put("settings", "1", a="one", b="two")
        path = Path(node.run(pod("configMap", {"name": "settings", "defaultMode": 0o400})))
        assert (path / "a").read_text() == "one"
        assert stat.S_IMODE((path / "a").stat().st_mode) == 0o400
        before = (path / "..data").readlink()
        held = (path / "..data").resolve()
        node.manager.refresh("pod")
        node.settle()
        assert (path / "..data").readlink() == before
        node.objects.put("settings", "2", a="ONE", c="three")
        node.manager.refresh("pod")
        node.settle()
        assert sorted(one.name for one in path.iterdir() if not one.name.startswith("..")) == ["a", "c"]
        assert (path / "a").read_text() == "ONE"
        assert not held.exists()
        node.end("pod")
        node.run(
            pod(
                "configMap", {"name": "settings", "items": [{"key": "a", "path": "deep/er/A", "mode": 0o440}]}
            )
        )
        assert (path / "deep/er/A").read_text() == "ONE"
        node.end("pod")

    on(tmp_path, test)


def test_secrets_lie_in_memory_and_optional_ones_may_be_absent(tmp_path: Path) -> None:
    """A tmpfs for a secret; an absent one is waited for, an optional one is empty."""

    def test(node: Node) -> None:
        node.objects.put("key", "1", word="s3cret")
        path = node.run(pod("secret", {"secretName": "key"}))
        entry = next(one for one in LinuxMountTable().entries() if one.target == path)
        assert entry.fstype == "tmpfs"
        assert Path(path, "word").read_text() == "s3cret"
        node.end("pod")
        node.pods.put(pod("secret", {"secretName": "none"}))
        node.manager.pod_changed("pod")
        node.settle()
        assert "does not exist" in node.manager.volumes_of("pod")[0].error
        node.end("pod")
        node.run(pod("secret", {"secretName": "none", "optional": True}, uid="other"))
        node.end("other")

    on(tmp_path, test)


@pytest.mark.parametrize("bad", ["../up", "/abs", "a/../../b", "..data", "/a//b", "."])
def test_no_item_leads_out_of_its_volume(tmp_path: Path, bad: str) -> None:
    """A path of an item, or a key, that leaves the volume is refused by name."""

    def test(node: Node) -> None:
        node.objects.put("settings", "1", a="one")
        node.pods.put(pod("configMap", {"name": "settings", "items": [{"key": "a", "path": bad}]}))
        node.manager.pod_changed("pod")
        node.settle()
        assert "leads out of the volume" in node.manager.volumes_of("pod")[0].error
        node.objects.held["odd"] = ConfigObject(data={bad: b"x"}, version="1")
        node.pods.put(pod("configMap", {"name": "odd"}, uid="odd"))
        node.manager.pod_changed("odd")
        node.settle()
        assert "leads out of the volume" in node.manager.volumes_of("odd")[0].error
        node.end("pod")
        node.end("odd")

    on(tmp_path, test)


def test_local_block_is_formatted_once_shared_grown_and_kept(tmp_path: Path) -> None:
    """Two pods on one image; data survive pods, growth and restarts; loops are given back."""
    loop_devices()
    image = tmp_path / "disk.img"

    def test(node: Node) -> None:
        def size(megabytes: int) -> None:
            node.claims.volumes["disk"] = node.local.volume("disk", str(image), size_bytes=megabytes << 20)

        size(16)
        one = Path(node.run(claiming_pod("one", "disk")))
        other = Path(node.run(claiming_pod("other", "disk")))
        (one / "file").write_text("kept")
        assert (other / "file").read_text() == "kept"
        assert len(attached_loops(image)) == 1
        before = os.statvfs(one).f_blocks
        size(32)
        node.manager.refresh("one")
        node.settle()
        assert image.stat().st_size == 32 << 20
        grown_online = os.statvfs(one).f_blocks > before
        node.end("one")
        node.end("other")
        assert attached_loops(image) == []
        again = Path(node.run(claiming_pod("again", "disk")))
        assert (again / "file").read_text() == "kept"
        assert os.statvfs(again).f_blocks > before
        node.end("again")
        print("grown online" if grown_online else "grown at the next mount")

    on(tmp_path, test)


def test_the_loop_device_of_an_image_that_was_deleted_is_given_back(tmp_path: Path) -> None:
    """Else the device, and the room on the disk, are gone until the next boot."""
    loop_devices()
    image = tmp_path / "disk.img"

    def test(node: Node) -> None:
        node.claims.volumes["data"] = node.local.volume("data", str(image), size_bytes=8 << 20)
        node.run(claiming_pod("a", "data"))
        image.unlink()
        assert len(attached_loops(Path(f"{image} (deleted)"))) == 1
        node.end("a")
        assert attached_loops(Path(f"{image} (deleted)")) == []

    on(tmp_path, test)


@pytest.mark.slow
def test_local_block_grows_xfs_while_it_is_mounted(tmp_path: Path) -> None:
    """A pod sees more room without a remount, and its data stay."""
    loop_devices()
    if shutil.which("mkfs.xfs") is None or shutil.which("xfs_growfs") is None:
        pytest.skip("mkfs.xfs and xfs_growfs are not on this machine")
    image = tmp_path / "disk.img"

    def test(node: Node) -> None:
        def size(megabytes: int) -> None:
            claim = node.local.volume("disk", str(image), size_bytes=megabytes << 20, fstype="xfs")
            node.claims.volumes["disk"] = claim

        size(320)
        place = Path(node.run(claiming_pod("one", "disk")))
        (place / "file").write_text("kept")
        before = os.statvfs(place).f_blocks
        size(400)
        node.manager.refresh("one")
        node.settle()
        assert os.statvfs(place).f_blocks > before
        assert (place / "file").read_text() == "kept"
        node.end("one")
        assert attached_loops(image) == []

    on(tmp_path, test)


def test_local_block_never_formats_what_is_not_empty(tmp_path: Path) -> None:
    """Bytes that no file system owns are data: refused, by name, and untouched."""
    loop_devices()
    image = tmp_path / "data.img"
    image.write_bytes(b"precious data" + bytes(4 << 20))

    def test(node: Node) -> None:
        node.claims.volumes["disk"] = node.local.volume("disk", str(image))
        node.pods.put(claiming_pod("pod", "disk"))
        node.manager.pod_changed("pod")
        node.settle()
        assert "is not empty and holds no file system" in node.manager.volumes_of("pod")[0].error
        node.end("pod")

    on(tmp_path, test)
    assert image.read_bytes().startswith(b"precious data")


def test_local_block_as_a_raw_device(tmp_path: Path) -> None:
    """Block mode links the device into the pod, and never makes a file system."""
    loop_devices()
    image = tmp_path / "raw.img"

    def test(node: Node) -> None:
        node.claims.volumes["raw"] = node.local.volume(
            "raw", str(image), size_bytes=4 << 20, mode=VolumeMode.BLOCK
        )
        path = node.run(
            Pod(
                uid="pod",
                volumes=(Volume(name="raw", kind="persistentVolumeClaim", spec={"claimName": "raw"}),),
                containers=(
                    Container(name="c", volumes=(VolumeUse(name="raw", path="/dev/x", block=True),)),
                ),
            )
        )
        assert "/volumeDevices/" in path
        assert stat.S_ISBLK(Path(path).stat().st_mode)
        node.claims.volumes["raw"] = node.local.volume(
            "raw", str(image), size_bytes=8 << 20, mode=VolumeMode.BLOCK
        )
        node.manager.refresh("pod")
        node.settle()
        assert node.manager.volumes_of("pod")[0].size_bytes == 8 << 20
        node.end("pod")
        assert attached_loops(image) == []

    on(tmp_path, test)


def test_a_pod_may_have_a_volume_read_only_beside_one_that_writes(tmp_path: Path) -> None:
    """Each bind has its own rights; a half-made one is restricted; a changed wish is followed."""
    loop_devices()

    def test(node: Node) -> None:
        node.claims.volumes["disk"] = node.local.volume(
            "disk", str(node.base / "disk.img"), size_bytes=16 << 20
        )
        writes = Path(node.run(claiming_pod("writes", "disk")))
        reader = Pod(
            uid="reads",
            volumes=(
                Volume(
                    name="disk", kind="persistentVolumeClaim", spec={"claimName": "disk", "readOnly": True}
                ),
            ),
            containers=(Container(name="c", volumes=(VolumeUse(name="disk", path="/v"),)),),
        )
        reads = Path(node.run(reader))
        (writes / "file").write_text("x")
        with pytest.raises(OSError, match="Read-only"):
            (reads / "file").write_text("y")
        assert (reads / "file").read_text() == "x"
        node.mounter.mount("none", str(reads), options=["remount", "bind"])
        use = node.manager.desired.get("nodealloc.io/local-block/disk")
        assert use is not None
        node.local.mount(use.spec, use.uses["reads"], "")
        with pytest.raises(OSError, match="Read-only"):
            (reads / "file").write_text("y")
        node.pods.put(claiming_pod("reads", "disk"))
        node.manager.pod_changed("reads")
        node.settle()
        (reads / "file").write_text("z")
        assert (writes / "file").read_text() == "z"
        node.end("writes")
        node.end("reads")

    on(tmp_path, test)


def test_a_hundred_pods_on_one_real_volume(tmp_path: Path) -> None:
    """A hundred binds of one staged image, in threads; all go, and the loop with them."""
    loop_devices()
    image = tmp_path / "disk.img"

    def child() -> None:
        node = Node(tmp_path, threads=True)
        node.claims.volumes["disk"] = node.local.volume("disk", str(image), size_bytes=16 << 20)
        with node.manager:
            for number in range(100):
                node.pods.put(claiming_pod(f"pod-{number}", "disk"))
            node.manager.pods_changed()
            for number in range(100):
                node.manager.wait_for_attach_and_mount(f"pod-{number}", timeout_s=60.0)
            # Other agents of this machine may have volumes of their own.
            pods = f"{node.root.path}/pods/"
            binds = [one for one in LinuxMountTable().entries() if one.target.startswith(pods)]
            assert len(binds) == 100
            node.pods.sightings.clear()
            node.manager.pods_changed()
            until = time.monotonic() + 60
            while len(node.manager.actual) and time.monotonic() < until:
                time.sleep(0.01)
        node.assert_clean()
        assert attached_loops(image) == []

    in_namespace(child)


def test_a_mount_that_hangs_delays_nobody(tmp_path: Path) -> None:
    """One plugin call blocks; another pod is mounted meanwhile, and stopping reports the hang."""

    def child() -> None:
        node = Node(tmp_path, threads=True)
        hang = threading.Event()
        mount = node.mounter.mount

        def stuck(source: str, target: str, /, **options: object) -> None:
            if "/stuck/" in target:
                hang.wait(20)
            mount(source, target, **options)  # type: ignore[arg-type]

        node.mounter.mount = stuck  # type: ignore[method-assign]
        loop = node.manager
        loop.start()
        for uid in ("stuck", "quick"):
            node.pods.put(pod("emptyDir", {"medium": "Memory"}, uid=uid))
            node.manager.pod_changed(uid)
        node.manager.wait_for_attach_and_mount("quick", timeout_s=10.0)
        left = loop.stop(0.05)
        assert [one.scope[1] for one in left] == ["stuck"]
        hang.set()
        assert node.manager.close(10.0) == ()

    in_namespace(child)


def test_links_and_dots_of_a_pod_lead_nowhere(tmp_path: Path) -> None:
    """A pod directory swapped for a link, odd uids and volume names: refused, nothing outside is touched."""

    def test(node: Node) -> None:
        outside = node.base / "outside"
        (outside / "volumes/kubernetes.io~empty-dir/v").mkdir(parents=True)
        (outside / "volumes/kubernetes.io~empty-dir/v/precious").write_text("x")
        pods = node.base / "root/pods"
        pods.mkdir()
        (pods / "linked").symlink_to(outside)
        for uid, name in (
            ("linked", "v"),
            ("..", "v"),
            ("a/b", "v"),
            ("plain", ".."),
            ("plain2", "x/../../y"),
        ):
            node.pods.put(pod("emptyDir", {"medium": "Memory"}, uid=uid, name=name))
            node.manager.pod_changed(uid)
        node.settle()
        for uid in list(node.pods.sightings):
            assert "nothing outside the root" in node.manager.volumes_of(uid)[0].error, uid
            node.pods.sightings.pop(uid)
            node.manager.pod_changed(uid)
        node.settle()
        assert (outside / "volumes/kubernetes.io~empty-dir/v/precious").read_text() == "x"
        assert [one.target for one in LinuxMountTable().entries() if str(node.base) in one.target] == []
        (pods / "linked").unlink()
        node.clock.advance(200.0)
        node.settle()

    on(tmp_path, test)


def test_reconstruct_passes_foreign_files_over_and_cleans_unknown_plugins(tmp_path: Path) -> None:
    """Files, links and odd directories are left; an unknown plugin's mount goes, a full directory stays."""

    def test(node: Node) -> None:
        pods = node.base / "root/pods"
        for path in ("uid/volumes/odd~plugin/mounted", "uid/volumes/odd~plugin/full", "uid/foreign"):
            (pods / path).mkdir(parents=True)
        (pods / "a file").write_text("x")
        (pods / "uid/volumes/file").write_text("x")
        (pods / "uid/volumes/odd~plugin/full/data").write_text("precious")
        mounted = str(pods / "uid/volumes/odd~plugin/mounted")
        node.mounter.mount("tmpfs", mounted, fstype="tmpfs")
        node.mounter.mount("tmpfs", mounted, fstype="tmpfs")
        found = node.manager.reconstruct()
        assert {one.name for one in found} == {"mounted", "full"}
        node.manager.pods_changed()
        node.settle()
        assert not Path(mounted).exists()
        assert (pods / "uid/volumes/odd~plugin/full/data").read_text() == "precious"
        assert any("remove it by hand" in one for one in failures(node))
        shutil.rmtree(pods)
        node.clock.advance(200.0)
        node.settle()

    on(tmp_path, test)
