"""A mount that really hangs: a FUSE whose server never answers. Everything else goes on.

Whoever looks into such a mount waits in the kernel, until the connection is
closed; then the mount stays, and each look into it fails. Tests run in a child
that an alarm ends; with it goes the connection, so nothing can stay behind.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from nodealloc.dsw_asw import DeadlineError, ThreadExecutor
from nodealloc.podspec import Pod, Volume
from nodealloc.testing.podfacts import FakePods
from nodealloc.volumes import (
    LinuxMounter,
    LinuxMountTable,
    PodsDirectory,
    SafeRoot,
    Use,
    VolumeManager,
    VolumeSpec,
    WatchedMounter,
    pod_path,
)
from nodealloc.volumes.plugins import EmptyDir
from tests.real.volumes_namespace import in_namespace
from tests.real.volumes_node import pod

pytestmark = [
    pytest.mark.real,
    pytest.mark.root,
    pytest.mark.forks,
    pytest.mark.usefixtures("as_root"),
]

ENOUGH_S = 60


class Server:
    """The far end of FUSE mounts, which says nothing."""

    def __init__(self) -> None:
        self.open: list[int] = []

    def connect(self) -> list[str]:
        """Mount options of a new connection."""
        self.open.append(os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC))
        return [f"fd={self.open[-1]}", "rootmode=40000", "user_id=0", "group_id=0"]

    def abort(self) -> None:
        """Go away: who waits gets an error, and so does whoever comes after."""
        while self.open:
            os.close(self.open.pop())


class Silent:
    """A plugin over such a server; looks into its mount where plugins do."""

    name = "example.com/silent"
    kinds = ("silent",)

    def __init__(self, root: SafeRoot, mounter: WatchedMounter, server: Server) -> None:
        self.root, self.mounter, self.server = root, mounter, server
        self.looks_when_mounting = True
        self.looking = threading.Event()

    def spec(self, pod: Pod, volume: Volume, /) -> VolumeSpec:
        """A volume of the pod's own."""
        return VolumeSpec(plugin=self.name, name=volume.name, pod_uid=pod.uid)

    def mount(self, spec: VolumeSpec, use: Use, device_path: str, /) -> None:
        """Mount it; one whose server is gone is taken off first, and memory serves instead."""
        del device_path
        path = self.path(spec, use)
        self.root.make_directory(path)
        if self.mounter.is_mounted(path):
            try:
                os.statvfs(path)
            except OSError:
                self.mounter.unmount(path)
                self.mounter.mount("tmpfs", path, fstype="tmpfs")
            return
        self.mounter.mount("silent", path, fstype="fuse", options=self.server.connect())
        if self.looks_when_mounting:
            self.look(path)

    def unmount(self, spec: VolumeSpec, use: Use, /) -> None:
        """See how full it is, as a plugin with figures would, and take it off."""
        path = self.path(spec, use)
        if self.mounter.is_mounted(path):
            try:
                self.look(path)
            finally:
                self.mounter.unmount(path)
        self.root.remove_directory(path)

    def path(self, spec: VolumeSpec, use: Use, /) -> str:
        """Where pods look for it."""
        return pod_path(self.root, self.name, use.pod_uid, spec.name)

    def look(self, path: str) -> None:
        """Ask the file system for figures."""
        self.looking.set()
        os.statvfs(path)


class Node:
    """A manager with the silent plugin and one that works, real threads, a short deadline."""

    def __init__(self, base: Path) -> None:
        self.root = SafeRoot(str(base))
        self.mounter = WatchedMounter(self.root, LinuxMounter(self.root), LinuxMountTable())
        self.server = Server()
        self.silent = Silent(self.root, self.mounter, self.server)
        self.pods = FakePods()
        self.manager = VolumeManager(
            [self.silent, EmptyDir(self.root, self.mounter)],
            pods=self.pods,
            executor=ThreadExecutor(),
            leftovers=PodsDirectory(self.root, self.mounter),
            mounts=self.mounter,
            deadline_s=0.3,
        )
        self.manager.reconstruct()

    def arrive(self, uid: str, kind: str = "emptyDir") -> None:
        """A pod comes."""
        self.pods.put(pod(kind, {"medium": "Memory"}, uid=uid))
        self.manager.pod_changed(uid)

    def leave(self, uid: str) -> None:
        """A pod ends."""
        self.pods.sightings.pop(uid)
        self.manager.pod_changed(uid)

    def others_live(self, uid: str) -> None:
        """Another pod's whole life, while something hangs; nor does looking at volumes hang."""
        self.arrive(uid)
        self.manager.wait_for_attach_and_mount(uid, timeout_s=ENOUGH_S)
        assert self.manager.volumes_of(uid)[0].mounted
        self.leave(uid)
        self.manager.wait_for_unmount(uid, timeout_s=ENOUGH_S)
        assert {one.pod_uid for one in PodsDirectory(self.root, self.mounter).found()} == {"hangs"}

    def wait_for(self, what: Callable[[], bool]) -> None:
        """Until it is so; the alarm ends it otherwise."""
        patience = threading.Event()
        while not what():
            patience.wait(0.02)

    def is_overdue(self) -> bool:
        """Whether the deadline of what hangs has passed."""
        failures = [one for key in self.keys() for one in self.manager._mounting.failures(key)]
        return any(isinstance(one.error, DeadlineError) for one in failures)

    def keys(self) -> list[str]:
        """Every volume that is there."""
        return list(self.manager.actual.snapshot())


def on(base: Path, test: Callable[[Node], None]) -> None:
    """Run a test on a node in a child with an alarm; skip where there is no FUSE."""
    try:
        os.close(os.open("/dev/fuse", os.O_RDWR))
    except OSError as error:
        pytest.skip(f"this machine gives no FUSE: {error}")

    def child() -> None:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(2 * ENOUGH_S)
        node = Node(base)
        try:
            test(node)
        finally:
            node.server.abort()

    in_namespace(child)


def test_a_stat_that_hangs_is_that_pods_alone_and_ends_with_its_server(tmp_path: Path) -> None:
    """Overdue and shown; other pods come and go; once the connection is gone the pod gets its volume."""

    def test(node: Node) -> None:
        with node.manager:
            node.arrive("hangs", "silent")
            assert node.silent.looking.wait(ENOUGH_S)
            node.others_live("first")
            node.wait_for(node.is_overdue)
            assert "has not returned after 0.3 s" in node.manager.volumes_of("hangs")[0].error
            node.others_live("second")
            assert [one.scope[1] for one in node.manager._mounting.running()] == ["hangs"]
            node.server.abort()
            node.manager.wait_for_attach_and_mount("hangs", timeout_s=ENOUGH_S)
            path = node.manager.volumes_of("hangs")[0].path
            assert [one.fstype for one in LinuxMountTable().entries() if one.target == path] == ["tmpfs"]
            node.leave("hangs")
            node.manager.wait_for_unmount("hangs", timeout_s=ENOUGH_S)
        assert not Path(path).exists()
        assert node.keys() == []

    on(tmp_path, test)


def test_an_unmount_that_hangs_ends_with_its_server(tmp_path: Path) -> None:
    """What is gone is taken off, although every look into it fails."""

    def test(node: Node) -> None:
        node.silent.looks_when_mounting = False
        with node.manager:
            node.arrive("hangs", "silent")
            node.manager.wait_for_attach_and_mount("hangs", timeout_s=ENOUGH_S)
            path = node.manager.volumes_of("hangs")[0].path
            node.leave("hangs")
            assert node.silent.looking.wait(ENOUGH_S)
            node.wait_for(node.is_overdue)
            node.others_live("first")
            node.server.abort()
            node.manager.wait_for_unmount("hangs", timeout_s=ENOUGH_S)
        assert not Path(path).exists()
        assert node.keys() == []

    on(tmp_path, test)


def test_stopping_and_starting_again_do_not_wait_for_what_hangs(tmp_path: Path) -> None:
    """What still runs is named; the next life finds the mount, and takes it down when nobody wants it."""

    def test(node: Node) -> None:
        loop = node.manager
        loop.start()
        node.arrive("hangs", "silent")
        assert node.silent.looking.wait(ENOUGH_S)
        assert [one.scope[1] for one in loop.stop(0.2)] == ["hangs"]
        node.server.abort()
        again = Node(tmp_path)
        assert [one.pod_uid for one in again.manager.reconstruct()] == ["hangs"]
        with again.manager:
            again.manager.pods_changed()
            again.wait_for(lambda: not again.keys())
        assert PodsDirectory(again.root, again.mounter).found() == []

    on(tmp_path, test)
