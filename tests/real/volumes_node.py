"""A node on this machine, for tests with real mounts: a manager with every plugin that ships."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from nodealloc.dsw_asw import InlineExecutor, ThreadExecutor
from nodealloc.podspec import Container, Json, Pod, Volume, VolumeUse
from nodealloc.testing.dsw_asw import VirtualClock
from nodealloc.testing.podfacts import FakePods
from nodealloc.testing.volumes import FakeClaims
from nodealloc.volumes import (
    LinuxMounter,
    LinuxMountTable,
    PodsDirectory,
    SafeRoot,
    SubPaths,
    VolumeManager,
    WatchedMounter,
)
from nodealloc.volumes.plugins import (
    ConfigMap,
    ConfigObject,
    ConfigStore,
    EmptyDir,
    HostPath,
    LocalBlock,
    Secret,
)
from tests.real.volumes_namespace import in_namespace


class Objects:
    """Config maps and secrets in a dict."""

    def __init__(self) -> None:
        self.held: dict[str, ConfigObject] = {}

    def put(self, name: str, version: str, **data: str) -> None:
        """A new content."""
        self.held[name] = ConfigObject(
            data={key.replace("_", "."): text.encode() for key, text in data.items()}, version=version
        )

    def read(self, namespace: str, name: str, /) -> ConfigObject | None:
        """The object."""
        return self.held.get(name)


class Node:
    """A manager with every plugin, on this machine, below a directory."""

    def __init__(self, base: Path, *, threads: bool = False) -> None:
        (base / "root").mkdir(exist_ok=True)
        self.base = base
        self.root = SafeRoot(str(base / "root"))
        self.mounter = WatchedMounter(self.root, LinuxMounter(self.root), LinuxMountTable())
        self.pods = FakePods()
        self.claims = FakeClaims()
        self.objects = Objects()
        self.clock = VirtualClock()
        self.local = LocalBlock(self.root, self.mounter)
        self.manager = VolumeManager(
            [
                EmptyDir(self.root, self.mounter),
                HostPath(),
                ConfigMap(self.root, self.mounter, ConfigStore(self.objects)),
                Secret(self.root, self.mounter, ConfigStore(self.objects)),
                self.local,
            ],
            pods=self.pods,
            executor=ThreadExecutor() if threads else InlineExecutor(),
            claims=self.claims,
            leftovers=PodsDirectory(self.root, self.mounter),
            mounts=self.mounter,
            clock=None if threads else self.clock,
            sub_paths=SubPaths(self.root, self.mounter),
        )

    def run(self, pod: Pod) -> str:
        """The pod arrives; the path of its first volume."""
        self.pods.put(pod)
        self.manager.pod_changed(pod.uid)
        self.settle()
        volumes = self.manager.volumes_of(pod.uid)
        assert all(one.mounted for one in volumes), volumes
        return volumes[0].path

    def settle(self) -> None:
        """Make passes until only time could bring more."""
        for _ in range(100):
            if self.manager.reconcile().is_idle and not self.manager.has_work:
                return
        raise AssertionError("no rest after 100 passes")

    def end(self, uid: str) -> None:
        """The pod is gone."""
        self.pods.sightings.pop(uid)
        self.manager.pod_changed(uid)
        self.settle()

    def assert_clean(self) -> None:
        """No mount and no file of a pod is left."""
        mounts = [one.target for one in LinuxMountTable().entries() if one.target.startswith(self.root.path)]
        assert mounts == []
        left = [str(one) for one in (self.base / "root").rglob("*") if one.is_file() or one.is_symlink()]
        assert left == []
        assert not len(self.manager.actual)


def pod(kind: str, spec: Mapping[str, Json], uid: str = "pod", name: str = "v") -> Pod:
    """A pod with one volume."""
    return Pod(
        uid=uid,
        name=uid,
        volumes=(Volume(name=name, kind=kind, spec=spec),),
        containers=(Container(name="c", volumes=(VolumeUse(name=name, path="/v"),)),),
    )


def on(base: Path, test: Callable[[Node], None]) -> None:
    """Run a test on a node, in a namespace."""

    def child() -> None:
        node = Node(base)
        test(node)
        node.assert_clean()

    try:
        in_namespace(child)
    finally:
        # Mounts vanish with the namespace; loop devices are the machine's.
        for device, image in _backing_files():
            if image.startswith(f"{base}/"):
                subprocess.run(["losetup", "--detach", f"/dev/{device}"], check=False)


def _backing_files() -> list[tuple[str, str]]:
    """Loop devices in use, and their images."""
    files = Path("/sys/block").glob("loop*/loop/backing_file")
    return [(file.parent.parent.name, file.read_text().strip()) for file in files]


def loop_devices() -> None:
    """Skip where there are none, or no tools."""
    for tool in ("losetup", "mkfs.ext4", "blkid", "resize2fs", "e2fsck", "dumpe2fs"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not on this machine")
    if not Path("/dev/loop-control").exists():
        pytest.skip("this machine has no loop devices")


def attached_loops(image: Path) -> list[str]:
    """Loop devices of an image."""
    return [device for device, backing in _backing_files() if backing == str(image)]
