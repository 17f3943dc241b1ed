"""Mounters held to their promises; the real one in a mount namespace of its own."""

from __future__ import annotations

import fcntl
import re
import subprocess
from pathlib import Path

import pytest

from nodealloc.errors import RetryableError
from nodealloc.testing.volume_plugins import check_block_tools, check_filesystems
from nodealloc.testing.volumes import FakeMounter, check_mounter
from nodealloc.volumes import LinuxMounter, LinuxMountTable, MountError, OutsideRootError, SafeRoot
from nodealloc.volumes.plugins._block_tools import LinuxBlockTools, LinuxFilesystems
from tests.real.volumes_namespace import enter_user_namespace, in_namespace
from tests.real.volumes_node import loop_devices


def test_the_fake_mounter_keeps_its_promises(tmp_path: Path) -> None:
    """The mounter of the mind passes the same check as the real one."""
    fake = FakeMounter(str(tmp_path))
    check_mounter(fake, fake, str(tmp_path))


@pytest.mark.real
@pytest.mark.root
@pytest.mark.forks
@pytest.mark.usefixtures("as_root")
def test_the_linux_mounter_keeps_its_promises(tmp_path: Path) -> None:
    """Real mounts, real mountinfo, real refusals of links."""

    def child() -> None:
        table = LinuxMountTable()
        check_mounter(LinuxMounter(SafeRoot(str(tmp_path))), table, str(tmp_path))
        table.close()

    in_namespace(child)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.real
@pytest.mark.root
@pytest.mark.usefixtures("as_root")
def test_real_block_tools_keep_their_promises(tmp_path: Path) -> None:
    """Loop devices and ext4 of this machine pass the same checks as the fakes."""
    loop_devices()
    check_block_tools(LinuxBlockTools(), str(tmp_path / "a.img"))
    check_filesystems(LinuxFilesystems(), LinuxBlockTools(), str(tmp_path / "b.img"))


@pytest.mark.real
@pytest.mark.root
@pytest.mark.usefixtures("as_root")
def test_a_tool_of_an_earlier_life_is_waited_for(tmp_path: Path) -> None:
    """A mkfs that outlives its agent holds the device; the next life makes no second one beside it."""
    loop_devices()
    tools, image = LinuxBlockTools(), tmp_path / "disk.img"
    image.write_bytes(bytes(8 << 20))
    device = tools.attach(str(image))
    with Path(device).open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        outlives = subprocess.Popen(["sleep", "30"], pass_fds=(held.fileno(),))
    try:
        with pytest.raises(RetryableError, match="still being worked on"):
            LinuxFilesystems().make(device, "ext4")
        assert LinuxFilesystems().probe(device) is None
    finally:
        outlives.kill()
        outlives.wait()
    LinuxFilesystems().make(device, "ext4")
    assert LinuxFilesystems().probe(device) == "ext4"
    told = subprocess.run(["dumpe2fs", "-h", device], check=True, capture_output=True, text=True).stdout
    assert re.search(r"^Reserved block count: +0$", told, re.MULTILINE), "pods are to have all of it"
    tools.detach(str(image))


@pytest.mark.real
@pytest.mark.root
@pytest.mark.forks
@pytest.mark.usefixtures("as_root")
def test_a_locked_mount_is_refused_and_not_tried_for_ever(tmp_path: Path) -> None:
    """A mount that came with a user namespace cannot be taken off in it: an error, no loop."""
    target = tmp_path / "locked"
    target.mkdir()

    def child() -> None:
        mounter = LinuxMounter(SafeRoot(str(tmp_path)))
        mounter.mount("tmpfs", str(target), fstype="tmpfs")
        refused = enter_user_namespace()
        if refused:
            (tmp_path / "refused").write_text(refused)
            return
        assert mounter.is_mounted(str(target))
        with pytest.raises(MountError, match="is locked"):
            mounter.unmount(str(target))

    in_namespace(child)
    if (tmp_path / "refused").exists():
        pytest.skip((tmp_path / "refused").read_text())


@pytest.mark.real
@pytest.mark.root
@pytest.mark.forks
@pytest.mark.usefixtures("as_root")
def test_a_read_only_bind_forbids_what_its_source_forbids(tmp_path: Path) -> None:
    """No program with another user's rights and no device appears by it, nor as it becomes writable."""
    source, target = tmp_path / "source", tmp_path / "target"
    source.mkdir()
    target.mkdir()

    def child() -> None:
        mounter = LinuxMounter(SafeRoot(str(tmp_path)))
        mounter.mount("tmpfs", str(source), fstype="tmpfs", options=["nosuid", "nodev", "noexec"])
        for options in (["bind", "ro"], ["remount", "bind"]):
            mounter.mount(str(source), str(target), options=options)
            found = {one.target: one for one in LinuxMountTable().entries()}[str(target)]
            assert {"nosuid", "nodev", "noexec"} < set(found.options)
            assert found.read_only is ("ro" in options)

    in_namespace(child)


@pytest.mark.real
@pytest.mark.root
@pytest.mark.forks
@pytest.mark.usefixtures("as_root")
def test_options_are_those_of_the_mount_command(tmp_path: Path) -> None:
    """Words that no file system knows are for the kernel or for nobody; the last of two counts."""
    target = tmp_path / "target"
    target.mkdir()
    words = [
        "defaults",
        "ro",
        "rw",
        "noexec",
        "exec",
        "nosuid",
        "nodiratime",
        "dirsync",
        "_netdev",
        "size=1m",
    ]

    def child() -> None:
        LinuxMounter(SafeRoot(str(tmp_path))).mount("tmpfs", str(target), fstype="tmpfs", options=words)
        found = {one.target: one for one in LinuxMountTable().entries()}[str(target)]
        assert {"rw", "nosuid", "nodiratime"} <= set(found.options)
        assert "noexec" not in found.options
        assert {"rw", "dirsync", "size=1024k"} <= set(found.super_options)

    in_namespace(child)


@pytest.mark.real
@pytest.mark.root
@pytest.mark.forks
@pytest.mark.usefixtures("as_root")
def test_a_bind_from_below_the_root_follows_no_link(tmp_path: Path) -> None:
    """A staged directory swapped for a link shows no pod what lies outside."""
    (tmp_path / "outside").mkdir()
    root = tmp_path / "root"
    (root / "pod").mkdir(parents=True)
    (root / "staged").symlink_to(tmp_path / "outside")

    def child() -> None:
        mounter = LinuxMounter(SafeRoot(str(root)))
        with pytest.raises(OutsideRootError, match="symbolic link"):
            mounter.mount(str(root / "staged"), str(root / "pod"), options=["bind"])
        assert not mounter.is_mounted(str(root / "pod"))
        mounter.mount(str(tmp_path / "outside"), str(root / "pod"), options=["bind"])
        mounter.unmount(str(root / "pod"))
        with pytest.raises(MountError, match=f"mount {root}/pod: .*source {root}/pod"):
            mounter.mount(str(root / "pod"), str(root / "pod"), fstype="no such type")

    in_namespace(child)
