"""Mounts that somebody else took off: noticed in a pass, and mounted again."""

from __future__ import annotations

import errno
import logging
from collections.abc import Sequence
from pathlib import Path

import pytest

from nodealloc.dsw_asw import InlineExecutor
from nodealloc.testing.podfacts import FakePods
from nodealloc.testing.volume_sources import FakeMountWatch, check_mount_watch
from nodealloc.testing.volumes import FakeClaims, FakeHost, FakeMounter, check_mounter, claiming_pod
from nodealloc.volumes import (
    Found,
    Mount,
    MountBusyError,
    MountWatch,
    SafeRoot,
    VolumeManager,
    WatchedMounter,
)


class Node:
    """A manager on a host in memory, on which pod `u` has disk `d`, and a watch."""

    def __init__(self, watch: MountWatch | None = None) -> None:
        self.host, self.pods, self.claims = FakeHost(), FakePods(), FakeClaims()
        self.watch = FakeMountWatch()
        self.claims.volumes["d"] = self.host.disk("d")
        self.manager = VolumeManager(
            [self.host],
            pods=self.pods,
            executor=InlineExecutor(),
            claims=self.claims,
            mounts=watch or self.watch,
        )
        self.pods.put(claiming_pod("u", "d"))
        self.manager.pods_changed()
        self.settle()
        self.host.calls.clear()

    def settle(self) -> list[str]:
        """Passes until nothing is left to do; the calls that they made."""
        self.manager.reconcile()
        while self.manager.has_work:
            self.manager.reconcile()
        return self.host.calls


@pytest.mark.parametrize(
    ("name", "of_pod"), [("pods/u/volumes/a~b/v", True), ("plugins/a~b/mounts/v", False)]
)
def test_a_watch_over_a_table_keeps_its_promises(tmp_path: Path, name: str, of_pod: bool) -> None:
    """For a pod's mount and for a staged one."""
    mounter, place = FakeMounter(str(tmp_path)), tmp_path / name
    place.mkdir(parents=True)
    check_mounter(WatchedMounter(SafeRoot(str(tmp_path)), mounter, mounter), mounter, str(tmp_path))
    watch = WatchedMounter(SafeRoot(str(tmp_path)), mounter, mounter)
    check_mount_watch(
        watch,
        Found(plugin="a/b", name="v", pod_uid="u" if of_pod else ""),
        lambda: mounter.mount("none", str(place), fstype="tmpfs"),
        lambda: mounter.unmount(str(place)),
    )


def test_what_it_mounted_is_missed_at_once_and_what_it_took_off_never(tmp_path: Path) -> None:
    """No look need come between a mount and its loss; an unmount that is refused changes nothing."""
    raw, place = FakeMounter(str(tmp_path)), tmp_path / "pods/u/volumes/p/v"
    place.mkdir(parents=True)
    mounter, volume = (
        WatchedMounter(SafeRoot(str(tmp_path)), raw, raw),
        Found(plugin="p", name="v", pod_uid="u"),
    )
    assert mounter.lost() == []
    for _ in range(2):
        mounter.mount("none", str(place), fstype="tmpfs")
        raw.unmount(str(place))
        assert mounter.lost() == [volume]
    mounter.mount("none", str(place), fstype="tmpfs")
    raw.busy.add(str(place))
    with pytest.raises(MountBusyError):
        mounter.unmount(str(place))
    raw.busy.clear()
    raw.unmount(str(place))
    assert mounter.lost() == [volume]
    mounter.mount("none", str(place), fstype="tmpfs")
    assert mounter.is_mounted(str(place))
    mounter.unmount(str(place))
    assert mounter.lost() == []


def test_a_table_that_cannot_be_read_once_is_read_at_the_next_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel tells of a change once: a mount that had gone was missed until another one changed."""
    raw, place = FakeMounter(str(tmp_path)), tmp_path / "pods/u/volumes/p/v"
    place.mkdir(parents=True)
    mounter = WatchedMounter(SafeRoot(str(tmp_path)), raw, raw)
    mounter.mount("none", str(place), fstype="tmpfs")
    assert mounter.lost() == []
    raw.unmount(str(place))

    def unread(_table: FakeMounter) -> Sequence[Mount]:
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as patched:
        patched.setattr(FakeMounter, "entries", unread)
        with pytest.raises(OSError, match="Too many open files"):
            mounter.lost()
    assert mounter.lost() == [Found(plugin="p", name="v", pod_uid="u")]


def test_what_is_no_volumes_place_is_passed_over(tmp_path: Path) -> None:
    """Mounts of others below the root, and beside it, come and go unheard."""
    mounter = FakeMounter(str(tmp_path))
    places = [
        tmp_path / name for name in ("root", "root/pods", "root/pods/u/volumes/p/v/deeper", "rootbeside")
    ]
    for place in places:
        place.mkdir(parents=True, exist_ok=True)
        mounter.mount("none", str(place), fstype="tmpfs")
    watch = WatchedMounter(SafeRoot(str(tmp_path / "root")), mounter, mounter)
    for place in reversed(places):
        mounter.unmount(str(place))
    assert watch.lost() == []


def test_a_lost_mount_is_mounted_again_and_its_stage_left_alone() -> None:
    """One mount for one loss; a table that changes by the manager's own calls brings none."""
    node = Node()
    node.host.mounts.clear()
    node.watch.gone = [Found(plugin=node.host.name, name="d", pod_uid="u")]
    assert node.settle() == ["mount example.com/disk/d u"]
    node.watch.gone = [Found(plugin="gone", name="d", pod_uid="u"), Found(plugin=node.host.name, name="x")]
    node.host.calls.clear()
    assert node.settle() == []


def test_a_lost_stage_is_staged_again_under_its_pods() -> None:
    """Their binds are left alone."""
    node = Node()
    node.host.staged.clear()
    node.watch.gone = [Found(plugin=node.host.name, name="d")]
    assert node.settle() == ["stage example.com/disk/d"]


def test_what_the_manager_takes_off_is_no_loss() -> None:
    """Told of its own unmount before it is settled, it unmounts once and forgets."""
    node = Node()
    node.host.fault = lambda name: (
        node.watch.gone.append(Found(plugin=node.host.name, name="d", pod_uid="u"))
        if name.startswith("after unmount")
        else None
    )
    node.pods.sightings.clear()
    node.manager.pods_changed()
    assert [call.split()[0] for call in node.settle()] == ["unmount", "unstage", "detach"]
    assert not len(node.manager.actual)


def test_a_table_that_changed_brings_a_pass() -> None:
    """Who waits on the table elsewhere says so, and an idle loop looks."""
    node = Node()
    assert not node.manager.has_work
    node.manager.mounts_changed()
    assert node.manager.wait_for_work(0.0)
    assert node.manager.reconcile().is_idle
    assert not node.manager.has_work


def test_a_watch_that_raises_stops_nobody(caplog: pytest.LogCaptureFixture) -> None:
    """It is logged, and pods come and go."""

    class Broken:
        def lost(self) -> Sequence[Found]:
            raise OSError("no table")

    with caplog.at_level(logging.ERROR, "nodealloc.volumes"):
        node = Node(Broken())
    assert node.manager.volumes_of("u")[0].mounted
    assert "no table" in caplog.text
