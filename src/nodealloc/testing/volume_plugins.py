"""Fakes and checks for who writes a volume plugin, or the tools below one.

`check_plugin` takes any plugin through its life, each call twice, as a crash
would make the manager do it. The fakes of block devices need no rights, so
`LocalBlock` runs on a laptop.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

from nodealloc import _attrs as attrs
from nodealloc.testing._wording import at_once, in_words
from nodealloc.volumes import (
    CanAge,
    CanAttach,
    CanExpand,
    CanMount,
    CanReconstruct,
    CanRevise,
    CanStage,
    Found,
    Plugin,
    Use,
    VolumeMode,
    VolumeSpec,
)
from nodealloc.volumes.plugins import BlockTools, Filesystems

__all__ = ["FakeBlockTools", "FakeFilesystems", "check_block_tools", "check_filesystems", "check_plugin"]


class FakeBlockTools:
    """`BlockTools` of the mind: an image file is its own device. Thread-safe."""

    def __init__(self) -> None:
        self.attached: set[str] = set()
        self._lock = threading.Lock()

    def attach(self, image: str, /) -> str:
        """The image itself."""
        if not Path(image).is_file():
            raise FileNotFoundError(image)
        with self._lock:
            self.attached.add(image)
        return image

    def detach(self, image: str, /) -> None:
        """Forget it."""
        with self._lock:
            self.attached.discard(image)

    def refresh(self, device: str, /) -> int:
        """Size of the file."""
        return Path(device).stat().st_size


@attrs.define
class FakeFilesystems:
    """`Filesystems` of the mind, by device; a device that is not zero holds data.

    Attributes:
        types: Device to type.
        sizes: Device to the size of its file system.
        grows_online: Whether this machine allows that.
    """

    types: dict[str, str] = attrs.field(factory=dict[str, str])
    sizes: dict[str, int] = attrs.field(factory=dict[str, int])
    grows_online: bool = True

    def probe(self, device: str, /) -> str | None:
        """What was made there, or whether there is any byte."""
        if device in self.types:
            return self.types[device]
        return "" if any(Path(device).read_bytes()) else None

    def make(self, device: str, fstype: str, /) -> None:
        """Remember it."""
        assert device not in self.types, f"{device} holds {self.types[device]} already"
        self.types[device] = fstype
        self.sizes[device] = Path(device).stat().st_size

    def grow(self, device: str, mounted_at: str, /) -> bool:
        """Remember the new size, where that is allowed."""
        if mounted_at and not self.grows_online:
            return False
        self.sizes[device] = Path(device).stat().st_size
        return True


@in_words
def check_block_tools(tools: BlockTools, image: str, /) -> None:
    """Hold loop devices to their promises.

    Args:
        tools: Adapter to check.
        image: A path where a file of two mebibytes can be made; removed again.
    """
    file = Path(image)
    file.touch()
    os.truncate(image, 1 << 20)
    device = tools.attach(image)
    assert tools.attach(image) == device, "attached twice"
    assert tools.refresh(device) == 1 << 20, "a device has not the size of its image"
    os.truncate(image, 2 << 20)
    assert tools.refresh(device) == 2 << 20, "growth was not noticed"
    tools.detach(image)
    tools.detach(image)
    file.unlink()


_JUNK = b"somebody's data, of a kind that nobody knows\n" * 1000


@in_words
def check_filesystems(
    filesystems: Filesystems, tools: BlockTools, image: str, fstype: str = "ext4", /
) -> None:
    """Hold file systems to their promises: empty, made, grown, and never taken for empty again.

    Args:
        filesystems: Adapter to check.
        tools: Gives the device.
        image: A path where a file of sixteen mebibytes can be made; removed again.
        fstype: Type to make.
    """
    file = Path(image)
    file.write_bytes(_JUNK)
    os.truncate(image, 8 << 20)
    try:
        found = filesystems.probe(tools.attach(image))
    finally:
        tools.detach(image)
        file.unlink()
    assert found is not None, "a device with data of a kind that nobody knows counts as empty"
    file.touch()
    os.truncate(image, 8 << 20)
    device = tools.attach(image)
    try:
        assert filesystems.probe(device) is None, "a device of zeros is empty"
        filesystems.make(device, fstype)
        assert filesystems.probe(device) == fstype, f"{fstype} was made and is not found"
        os.truncate(image, 16 << 20)
        tools.refresh(device)
        assert filesystems.grow(device, ""), "growing offline is never put off"
        assert filesystems.grow(device, ""), "growing may be repeated"
        assert filesystems.probe(device) == fstype, f"{fstype} is gone after growing"
    finally:
        tools.detach(image)
        file.unlink()


@in_words
def check_plugin(
    plugin: Plugin, spec: VolumeSpec, use: Use, /, *, is_there: Callable[[str], bool] | None = None
) -> None:
    """Take a plugin through its life, every call twice, and once in vain before and after.

    Args:
        plugin: What to check; nothing of `spec` exists yet.
        spec: A volume as the plugin's `spec`, or a claim, gives it.
        use: A pod's use of it.
        is_there: From a path to whether the volume is there, as whoever looks behind the plugin
            finds, such as ``lambda path: Path(path, "hello").is_file()``; None where it is there with or
            without the plugin, or nobody can look. With it the volume comes and goes beside one of
            another pod, `use.pod_uid` with `-beside` after it. Without it a plugin that makes nothing passes.

    Raises:
        AssertionError: A promise is broken; the text says which.
    """
    assert plugin.name == spec.plugin, f"{plugin.name} gave a volume of {spec.plugin}"
    untyped: object = plugin
    assert isinstance(untyped, CanMount), f"{plugin.name} cannot mount"
    assert not spec.needs_attach or isinstance(untyped, CanAttach), "needs_attach without CanAttach"
    assert not spec.needs_stage or isinstance(untyped, CanStage), "needs_stage without CanStage"
    assert not spec.can_expand or isinstance(untyped, CanExpand), "can_expand without CanExpand"
    mount: Callable[[VolumeSpec, Use, str], object] = untyped.mount
    unmount: Callable[[VolumeSpec, Use], object] = untyped.unmount
    at_once(unmount(spec, use), "unmount")
    device = ""
    for _ in range(2):
        if spec.needs_attach and isinstance(untyped, CanAttach):
            device = untyped.attach(spec).device_path
        if spec.needs_stage and isinstance(untyped, CanStage):
            device = untyped.stage(spec, device).device_path or device
        at_once(mount(spec, use, device), "mount")
    _check_names(plugin, spec, use)
    if is_there is not None:
        _check_beside(untyped, spec, use, device, is_there)
    if spec.can_expand and spec.size_bytes is not None and isinstance(untyped, CanExpand):
        for _ in range(2):
            grown = untyped.expand(spec, device)
            size = max(grown.size_bytes, grown.due_bytes or 0)
            assert size >= spec.size_bytes, f"grown to {size} bytes of {spec.size_bytes}"
    if isinstance(untyped, CanAge):
        fresh_s = untyped.fresh_s(spec)
        assert fresh_s is None or fresh_s >= 0, "what is due is due now at the earliest"
    if isinstance(untyped, CanRevise):
        assert untyped.revision(spec) == untyped.revision(spec), "one content has one revision"
    for _ in range(2):
        at_once(unmount(spec, use), "unmount")
        if spec.needs_stage and isinstance(untyped, CanStage):
            untyped.unstage(spec, device)
        if spec.needs_attach and isinstance(untyped, CanAttach):
            untyped.detach(spec)


def _check_beside(
    plugin: CanMount, spec: VolumeSpec, use: Use, device: str, is_there: Callable[[str], bool]
) -> None:
    """What was mounted is there until it is unmounted, whatever another pod's volume does."""
    path = plugin.path(spec, use)
    assert is_there(path), f"mount returned, and nothing is there at {path}"
    beside = attrs.evolve(use, pod_uid=f"{use.pod_uid}-beside")
    other = attrs.evolve(spec, pod_uid=beside.pod_uid) if spec.pod_uid else spec
    plugin.mount(other, beside, device)
    place = plugin.path(other, beside)
    assert place != path, f"pods {use.pod_uid} and {beside.pod_uid} have it at one path, {path}"
    assert is_there(place), f"mount returned for a second pod, and nothing is there at {place}"
    plugin.unmount(spec, use)
    assert not is_there(path), f"unmount returned, and {path} is still there"
    assert is_there(place), f"{path} was unmounted, and what another pod has at {place} as well"
    plugin.mount(spec, use, device)
    assert is_there(path), f"mounted once more after it went, nothing is there at {path}"
    plugin.unmount(other, beside)
    assert is_there(path), f"{place} was unmounted, and what another pod has at {path} as well"
    plugin.unmount(spec, use)
    assert not is_there(path), f"unmount returned, and {path} is still there"


def _check_names(plugin: Plugin, spec: VolumeSpec, use: Use) -> None:
    """Its path is steady, and what is found at start has the id that it had."""
    untyped: object = plugin
    assert isinstance(untyped, CanMount), f"{plugin.name} cannot mount"
    path = untyped.path(spec, use)
    assert path.startswith("/"), f"containers get it from {path!r}, which is no absolute path"
    assert untyped.path(spec, use) == path, "its path changes"
    if isinstance(untyped, CanReconstruct):
        block = spec.mode is VolumeMode.BLOCK
        found = Found(plugin=spec.plugin, name=spec.name, pod_uid=use.pod_uid, block=block)
        rebuilt = untyped.reconstruct(found)
        assert rebuilt is not None, f"{plugin.name} does not know its own volume"
        assert rebuilt.id == spec.id, f"{rebuilt.id} was {spec.id} before the restart"
