"""Pods that no manifest gave: what cannot be mounted does not keep them from ending."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodealloc.dsw_asw import ThreadExecutor, WaitTimeoutError
from nodealloc.podspec import Container, Pod, Volume, VolumeUse
from nodealloc.testing.podfacts import FakePods
from nodealloc.testing.volumes import FakeMounter
from nodealloc.volumes import SafeRoot, VolumeManager
from nodealloc.volumes.plugins import EmptyDir


@pytest.mark.parametrize(
    ("uid", "name"),
    [("u", "x" * 256), ("u" * 300, "v"), ("u", "\ud800"), ("\ud800", "v")],
    ids=["long name", "long uid", "odd name", "odd uid"],
)
def test_a_pod_with_names_that_are_no_file_names_ends(tmp_path: Path, uid: str, name: str) -> None:
    """Its volume is refused before anything is made, so that there is nothing to take down."""
    root = SafeRoot(str(tmp_path))
    pods = FakePods()
    manager = VolumeManager(
        [EmptyDir(root, FakeMounter(root.path))], pods=pods, executor=ThreadExecutor(), resync_s=None
    )
    container = Container(name="c", volumes=(VolumeUse(name=name, path="/data"),))
    pods.put(Pod(uid=uid, name="p", containers=(container,), volumes=(Volume(name=name, kind="emptyDir"),)))
    with manager:
        with pytest.raises(WaitTimeoutError, match="file name"):
            manager.wait_for_attach_and_mount(uid, 0.5)
        pods.sightings.pop(uid)
        manager.pod_changed(uid)
        manager.wait_for_unmount(uid, 30)
    assert manager.actual.snapshot() == {}
    assert list(tmp_path.iterdir()) == []
