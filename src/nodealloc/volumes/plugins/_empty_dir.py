"""`emptyDir`: scratch space that lives and dies with its pod, on disk or in memory."""

from __future__ import annotations

from typing import Final

from nodealloc._typed import typed
from nodealloc.errors import DecodeError
from nodealloc.podspec import Pod, Quantity, Volume, effective_limits
from nodealloc.volumes._errors import InvalidVolumeError
from nodealloc.volumes._model import Use, VolumeSpec
from nodealloc.volumes._paths import SafeRoot
from nodealloc.volumes._pods_directory import leave_pod, pod_path
from nodealloc.volumes._ports import Found, Mounter
from nodealloc.volumes.plugins._memory import mount_memory
from nodealloc.volumes.plugins._ownership import share

__all__ = ["EmptyDir"]

_MODE: Final = 0o777
_LARGEST: Final = 2**63 - 1


class EmptyDir:
    """Plugin for `emptyDir`; thread-safe.

    On disk it is a directory; a size limit there is a matter of eviction. With
    `medium: Memory` it is a tmpfs of at most `sizeLimit`, and of at most what its pod may use
    of memory, where each of its containers has a limit.

    Args:
        root: Directory of the node's pods.
        mounter: Mounts below `root`.
        memory_limit_bytes: Size of a tmpfs without a `sizeLimit`, and the most
            that a `sizeLimit` gives; None for what the kernel gives, half of memory.
        keeps_folders: Leave the directories above a volume that is gone to whoever removes
            its pod's, as a kubelet does; otherwise the empty ones go with it.

    Source: kubelet ``volume/emptydir``.
    """

    name: str = "kubernetes.io/empty-dir"
    kinds: tuple[str, ...] = ("emptyDir",)

    @typed
    def __init__(
        self,
        root: SafeRoot,
        mounter: Mounter,
        /,
        *,
        memory_limit_bytes: int | None = None,
        keeps_folders: bool = False,
    ) -> None:
        self._keeps_folders = keeps_folders
        self._root = root
        self._mounter = mounter
        self._memory_limit_bytes = memory_limit_bytes

    def spec(self, pod: Pod, volume: Volume, /) -> VolumeSpec:
        """Read `medium` and `sizeLimit`; raises `InvalidVolumeError`."""
        medium, limit = volume.spec.get("medium") or "", volume.spec.get("sizeLimit")
        if medium not in ("", "Memory"):
            raise InvalidVolumeError(volume.name, f'medium is {medium!r}; use "" or "Memory"')
        try:
            size_bytes = None if limit is None else Quantity.parse(str(limit).strip()).value
        except DecodeError as error:
            raise InvalidVolumeError(
                volume.name, f"sizeLimit is {limit}: {error.faults[0].reason}"
            ) from error
        except ValueError as error:  # Python's, for numbers that it does not write
            raise InvalidVolumeError(volume.name, f"sizeLimit: {error}") from error
        if size_bytes is not None and size_bytes < 0:
            raise InvalidVolumeError(volume.name, f"sizeLimit is {limit}; use 0 or more, 0 for no limit")
        if size_bytes is not None and size_bytes > _LARGEST:
            # The kernel counts in 64 bits and takes what is left over of a larger number.
            raise InvalidVolumeError(volume.name, f"sizeLimit is {limit}; use at most {_LARGEST} bytes")
        sizes = [size_bytes or None, _most_memory(pod) if medium else None]
        return VolumeSpec(
            plugin=self.name,
            name=volume.name,
            pod_uid=pod.uid,
            config={"medium": medium, "sizeLimitBytes": min(filter(None, sizes), default=None)},
        )

    def mount(self, spec: VolumeSpec, use: Use, device_path: str, /) -> None:
        """Make the directory; mount the tmpfs if there is none; give it to the pod's group."""
        del device_path
        path = self.path(spec, use)
        self._root.make_directory(path, mode=_MODE)
        if spec.config.get("medium") == "Memory" and not self._mounter.is_mounted(path):
            size = self._size(spec)
            mount_memory(self._mounter, path, *([] if size is None else [f"size={size}"]))
        if use.fs_group is not None:
            share(self._root, path, use.fs_group)

    def unmount(self, spec: VolumeSpec, use: Use, /) -> None:
        """Take every mount off, then delete what is left."""
        path = self.path(spec, use)
        while self._mounter.is_mounted(path):
            self._mounter.unmount(path)
        self._root.remove_tree(path)
        if not self._keeps_folders:
            leave_pod(self._root, path)

    def path(self, spec: VolumeSpec, use: Use, /) -> str:
        """`pods/UID/volumes/kubernetes.io~empty-dir/NAME`."""
        return pod_path(self._root, self.name, use.pod_uid, spec.name)

    def reconstruct(self, found: Found, /) -> VolumeSpec | None:
        """Path and pod tell everything that taking it down needs."""
        if not found.pod_uid or found.block:
            return None
        return VolumeSpec(plugin=self.name, name=found.name, pod_uid=found.pod_uid)

    def _size(self, spec: VolumeSpec) -> int | None:
        wanted = spec.config.get("sizeLimitBytes")
        limits = [size for size in (wanted, self._memory_limit_bytes) if isinstance(size, int)]
        return min(limits, default=None)


def _most_memory(pod: Pod) -> int | None:
    """Bytes that a pod may use; None where one of its containers has no limit."""
    is_bounded = all(one.limits.get("memory") for one in pod.all_containers)
    limit = effective_limits(pod).get("memory") if is_bounded else None
    return limit.value if limit else None
