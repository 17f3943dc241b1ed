"""Local block storage: an image file or a block device of this node, for one or many pods.

attach      write the record, grow the image if it has to, find a loop device
stage       make a file system if the device is empty, grow it, mount it
mount       bind it into a pod; or, in block mode, link the device
"""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

import attrs

from nodealloc._typed import typed
from nodealloc.errors import PermanentError, RetryableError
from nodealloc.podspec import Json, Pod, Volume
from nodealloc.volumes._errors import InvalidVolumeError
from nodealloc.volumes._model import Use, VolumeMode, VolumeSpec
from nodealloc.volumes._paths import SafeRoot
from nodealloc.volumes._pods_directory import leave_pod, pod_path, stage_path
from nodealloc.volumes._ports import Found, Grown, Mounter, Staged
from nodealloc.volumes.plugins._block_record import BlockRecord, BlockRecords
from nodealloc.volumes.plugins._block_tools import BlockTools, Filesystems, LinuxBlockTools, LinuxFilesystems

__all__ = ["LocalBlock"]


class LocalBlock:
    """Plugin for claims that are bound to local storage; thread-safe.

    A `ClaimResolver` answers with `volume`. What was attached is remembered in
    a record beside the staging directory, so that a crash at any instant leaves
    nothing that cannot be found.

    Args:
        root: Directory of the node's pods.
        mounter: Mounts below `root`.
        blocks: Loop devices.
        filesystems: Makes and grows file systems.
    """

    name: str = "nodealloc.io/local-block"
    kinds: tuple[str, ...] = ()

    @typed
    def __init__(
        self,
        root: SafeRoot,
        mounter: Mounter,
        /,
        *,
        blocks: BlockTools | None = None,
        filesystems: Filesystems | None = None,
    ) -> None:
        self._root = root
        self._mounter = mounter
        self._blocks: BlockTools = LinuxBlockTools() if blocks is None else blocks
        self._filesystems: Filesystems = LinuxFilesystems() if filesystems is None else filesystems
        self._records = BlockRecords(root, self.name)

    def volume(
        self,
        name: str,
        path: str,
        *,
        size_bytes: int | None = None,
        fstype: str = "ext4",
        mode: VolumeMode = VolumeMode.FILESYSTEM,
        read_only: bool = False,
    ) -> VolumeSpec:
        """A volume on an image file or a block device.

        Args:
            name: Unique among this plugin's volumes; one path component.
            path: Of the image, which is made when it is absent and a size is given, or of the device.
            size_bytes: An image is grown to it; a device, and an image that is only read, has to have it.
            fstype: Made on an empty device: `ext4`, `xfs`.
            mode: File system or raw device.
            read_only: Whether everybody may only read.
        """
        self._root.join(name)
        config: dict[str, Json] = {"path": path, "fsType": fstype}
        return VolumeSpec(
            plugin=self.name,
            name=name,
            config=config,
            mode=mode,
            read_only=read_only,
            size_bytes=size_bytes,
            needs_attach=True,
            needs_stage=mode is VolumeMode.FILESYSTEM,
            can_expand=not read_only,
        )

    def spec(self, pod: Pod, volume: Volume, /) -> VolumeSpec:
        """No kind of pod volume is served, only claims are: always raises `InvalidVolumeError`."""
        raise InvalidVolumeError(volume.name, f"pod {pod.full_name} has to ask for local storage by a claim")

    def attach(self, spec: VolumeSpec, /) -> Staged:
        """Remember it, grow the image, find a device; raises `PermanentError` where that is too small."""
        path = _path(spec)
        # The directory is what a restart finds, so it comes first; the record says what it was.
        self._root.make_directory(self._stage_path(spec))
        before = self._records.read(spec.name)
        # What was begun on another device says nothing of this one, which may hold somebody's files.
        formatting = before.formatting if before is not None and before.path == path else ""
        self._records.write(spec.name, BlockRecord.of(spec, formatting=formatting))
        if _is_device(path):
            device = path
        else:
            _grow_image(path, None if spec.read_only else spec.size_bytes)
            device = self._blocks.attach(path)
        size = self._blocks.refresh(device)
        if spec.size_bytes is not None and size < spec.size_bytes:
            raise PermanentError(
                f"volume {spec.id}: {path} has {size} bytes, {spec.size_bytes} are wanted; "
                "give it a larger device"
            )
        return Staged(device_path=device, size_bytes=size)

    def detach(self, spec: VolumeSpec, /) -> None:
        """Give the loop device back, then forget."""
        known = self._known(spec)
        path = str(known.config.get("path", ""))
        if path and not _is_device(path):
            self._blocks.detach(path)
        # The directory goes last, because it is what leads a restart to the rest.
        self._records.drop(spec.name)
        self._root.remove_directory(self._stage_path(spec))

    def stage(self, spec: VolumeSpec, device_path: str, /) -> Staged:
        """Mount it for the node, with a file system made or grown where it has to be."""
        target = self._stage_path(spec)
        self._root.make_directory(target)
        size = self._blocks.refresh(device_path)
        if self._mounter.is_mounted(target):
            return Staged(device_path=device_path, size_bytes=_filesystem_size(target))
        fstype = self._prepare(spec, device_path)
        if not spec.read_only and fstype != "xfs" and spec.size_bytes is not None:
            self._filesystems.grow(device_path, "")
        options = ["ro"] if spec.read_only else []
        self._mounter.mount(device_path, target, fstype=fstype, options=options)
        if fstype == "xfs" and not spec.read_only:
            self._filesystems.grow(device_path, target)
        return Staged(device_path=device_path, size_bytes=size)

    def unstage(self, spec: VolumeSpec, device_path: str, /) -> None:
        """Unmount it; the directory stays until it is detached."""
        del device_path
        target = self._stage_path(spec)
        while self._mounter.is_mounted(target):
            self._mounter.unmount(target)

    def mount(self, spec: VolumeSpec, use: Use, device_path: str, /) -> None:
        """Bind it into the pod, or link the device; raises `RetryableError` while it is not staged."""
        path = self.path(spec, use)
        if spec.mode is VolumeMode.BLOCK:
            self._link(path, device_path)
            return
        self._root.make_directory(path)
        options = ["bind", "ro"] if use.read_only else ["bind"]
        if not self._mounter.is_mounted(path):
            stage = self._stage_path(spec)
            if not self._mounter.is_mounted(stage):
                raise RetryableError(
                    f"volume {spec.id}: somebody took the mount off {stage}; "
                    f"VolumeManager.observe({use.pod_uid!r}) has it staged again"
                )
            self._mounter.mount(stage, path, options=options)
        elif _is_read_only(path) is not (use.read_only or spec.read_only):
            # Another wish, or a life that ended between the bind and its restriction.
            self._mounter.mount("none", path, options=["remount", *options])

    def unmount(self, spec: VolumeSpec, use: Use, /) -> None:
        """Take it from the pod."""
        path = self.path(self._known(spec), use)
        if self._known(spec).mode is VolumeMode.BLOCK:
            with self._root.open_parent(path) as (parent, name), contextlib.suppress(FileNotFoundError):
                if parent >= 0:
                    os.unlink(name, dir_fd=parent)
            leave_pod(self._root, path)
            return
        while self._mounter.is_mounted(path):
            self._mounter.unmount(path)
        # Never a tree: what is in the directory once nothing is mounted there was not ours to delete.
        self._root.remove_directory(path)
        leave_pod(self._root, path)

    def path(self, spec: VolumeSpec, use: Use, /) -> str:
        """`pods/UID/volumes/PLUGIN/NAME`, or `volumeDevices` for a raw device."""
        return pod_path(self._root, self.name, use.pod_uid, spec.name, block=spec.mode is VolumeMode.BLOCK)

    def expand(self, spec: VolumeSpec, device_path: str, /) -> Grown:
        """Grow the image, the loop device and the file system; what is refused online waits."""
        path, wanted = _path(spec), spec.size_bytes or 0
        if not _is_device(path):
            _grow_image(path, wanted)
        size = self._blocks.refresh(device_path)
        if size < wanted:
            raise PermanentError(
                f"volume {spec.id}: {path} has {size} bytes, {wanted} are wanted; grow it first"
            )
        self._records.write(spec.name, BlockRecord.of(spec))
        if spec.mode is VolumeMode.BLOCK:
            return Grown(size_bytes=size)
        target = self._stage_path(spec)
        if self._filesystems.grow(device_path, target):
            return Grown(size_bytes=size)
        return Grown(size_bytes=min(_filesystem_size(target), wanted - 1), due_bytes=wanted)

    def reconstruct(self, found: Found, /) -> VolumeSpec | None:
        """What its record says; without a record it was never attached, unless it is mounted."""
        record = self._records.read(found.name)
        if record is not None:
            return self._spec(record)
        if found.pod_uid:
            return None
        # The record is written before the device is asked for: only a stranger takes it from a mount.
        unknown = self.volume(found.name, "")
        return attrs.evolve(unknown, needs_stage=self._mounter.is_mounted(self._stage_path(unknown)))

    def _spec(self, record: BlockRecord) -> VolumeSpec:
        """The volume of a record."""
        return self.volume(
            record.name,
            record.path,
            size_bytes=record.size_bytes,
            fstype=record.fstype,
            mode=record.mode,
            read_only=record.read_only,
        )

    def _known(self, spec: VolumeSpec) -> VolumeSpec:
        """The spec, with what its record knows where it was found without."""
        if spec.config:
            return spec
        record = self._records.read(spec.name)
        return spec if record is None else self._spec(record)

    def _prepare(self, spec: VolumeSpec, device: str) -> str:
        """The device's file system, made if and only if the device is empty."""
        wanted = str(spec.config.get("fsType") or "ext4")
        found = self._filesystems.probe(device)
        record = self._records.read(spec.name)
        # Half made by a life that ended inside mkfs: nothing was mounted from it yet.
        is_half_made = record is not None and record.formatting == wanted and found in ("", None, wanted)
        if found and not is_half_made:
            return found
        if found == "" and not is_half_made:
            raise PermanentError(
                f"volume {spec.id}: {device} is not empty and holds no file system that can be mounted; "
                "use it in block mode, or empty it yourself"
            )
        if spec.read_only:
            raise PermanentError(f"volume {spec.id}: {device} is empty and read-only; fill it first")
        # Remembered first: after a crash inside mkfs the device is neither empty nor a file system.
        self._records.write(spec.name, BlockRecord.of(spec, formatting=wanted))
        self._filesystems.make(device, wanted)
        self._records.write(spec.name, BlockRecord.of(spec))
        return wanted

    def _link(self, path: str, device: str) -> None:
        """A link to the device in the pod's directory, swapped in by rename."""
        self._root.make_directory(os.path.dirname(path))  # noqa: PTH120 - a str by Protocol
        with self._root.open_parent(path) as (parent, name):
            new = f"{name}~new"
            with contextlib.suppress(FileNotFoundError):
                os.unlink(new, dir_fd=parent)
            os.symlink(device, new, dir_fd=parent)
            os.rename(new, name, src_dir_fd=parent, dst_dir_fd=parent)

    def _stage_path(self, spec: VolumeSpec) -> str:
        return stage_path(self._root, self.name, spec.name)


def _path(spec: VolumeSpec) -> str:
    path = spec.config.get("path")
    if not isinstance(path, str) or not path.startswith("/") or "\0" in path:
        raise InvalidVolumeError(
            spec.name, f"path is {path!r}; write an absolute path of an image or a device"
        )
    return path


def _is_device(path: str) -> bool:
    try:
        return stat.S_ISBLK(Path(path).stat().st_mode)
    except FileNotFoundError:
        return False


def _grow_image(path: str, size_bytes: int | None) -> None:
    """Make an image of this size, or grow it; an image never shrinks."""
    image = Path(path)
    if size_bytes is None:
        if not image.exists():
            raise PermanentError(f"image {path} does not exist; make it, or say how large a writable one is")
        return
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if os.fstat(fd).st_size < size_bytes:
            os.ftruncate(fd, size_bytes)
            os.fsync(fd)
    finally:
        os.close(fd)


def _is_read_only(path: str) -> bool:
    return bool(os.statvfs(path).f_flag & os.ST_RDONLY)


def _filesystem_size(path: str) -> int:
    """Bytes that the file system counts as its own; less than its device's."""
    found = os.statvfs(path)
    return found.f_blocks * found.f_frsize
