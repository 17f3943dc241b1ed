"""What `check_plugin` refuses: a plugin that makes nothing, leaves everything, or takes what others have."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from nodealloc.podspec import Pod, Volume
from nodealloc.testing.volume_plugins import check_plugin
from nodealloc.volumes import Use, VolumeSpec


class Folder:
    """A volume is a folder with one file."""

    name = "example.com/folder"
    kinds = ("folder",)

    def __init__(self, root: Path) -> None:
        self.root = root

    def spec(self, pod: Pod, volume: Volume, /) -> VolumeSpec:
        """Each pod has its own."""
        return VolumeSpec(plugin=self.name, name=volume.name, pod_uid=pod.uid)

    def mount(self, spec: VolumeSpec, use: Use, _device: str, /) -> None:
        """Make it."""
        path = Path(self.path(spec, use))
        path.mkdir(parents=True, exist_ok=True)
        (path / "hello").write_text("hello")

    def unmount(self, spec: VolumeSpec, use: Use, /) -> None:
        """Take it away."""
        shutil.rmtree(self.path(spec, use), ignore_errors=True)

    def path(self, spec: VolumeSpec, use: Use, /) -> str:
        """By pod and name."""
        return str(self.root / use.pod_uid / spec.name)


RIGHT_MOUNT = Folder.mount


def nothing(*_: object) -> None:
    """Does nothing."""


async def later(*_: object) -> None:
    """Has to be awaited."""


def takes_all(self: Folder, *_: object) -> None:
    """Takes every pod's volume away."""
    for pod in self.root.iterdir():
        shutil.rmtree(pod)


def for_one(self: Folder, spec: VolumeSpec, use: Use, device: str, /) -> None:
    """Makes it for the first pod alone."""
    if "beside" not in use.pod_uid:
        RIGHT_MOUNT(self, spec, use, device)


def never_again(self: Folder, spec: VolumeSpec, use: Use, device: str, /) -> None:
    """What was there once is not made again."""
    marker = self.root / f"{use.pod_uid}.made"
    if not marker.exists() or Path(self.path(spec, use)).exists():
        marker.touch()
        RIGHT_MOUNT(self, spec, use, device)


BROKEN: Mapping[str, tuple[str, Callable[..., object], str]] = {
    "makes nothing": ("mount", nothing, "mount returned, and nothing is there at"),
    "leaves everything": ("unmount", nothing, "unmount returned, and .*/u/v is still there"),
    "takes what others have": (
        "unmount",
        takes_all,
        "u/v was unmounted, and what another pod has at .*beside",
    ),
    "makes it for one": ("mount", for_one, "mount returned for a second pod, and nothing is there at"),
    "makes it once": ("mount", never_again, "mounted once more after it went, nothing is there"),
    "one place for all": (
        "path",
        lambda self, *_: str(self.root / "one"),
        "pods u and u-beside have it at one",
    ),
    "mounts later": ("mount", later, "mount has to be awaited"),
    "unmounts later": ("unmount", later, "unmount has to be awaited"),
}


def checked(root: Path, **more: Any) -> None:
    """Hold the plugin to its promises."""
    plugin = Folder(root)
    spec = plugin.spec(Pod(uid="u"), Volume(name="v", kind="folder"))
    check_plugin(plugin, spec, Use(pod_uid="u"), **more)


def is_there(path: str) -> bool:
    """As whoever looks behind the plugin finds."""
    return Path(path, "hello").is_file()


def test_a_sound_plugin_passes_and_leaves_nothing(tmp_path: Path) -> None:
    """With somebody who looks behind it, and without."""
    checked(tmp_path, is_there=is_there)
    checked(tmp_path)
    assert not [*tmp_path.rglob("hello")]


@pytest.mark.parametrize("name", BROKEN)
def test_a_plugin_that_is_not_is_refused(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each passed while nobody looked."""
    method, broken, says = BROKEN[name]
    monkeypatch.setattr(Folder, method, broken)
    with pytest.raises(AssertionError, match=says):
        checked(tmp_path, is_there=is_there)
