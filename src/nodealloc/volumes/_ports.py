"""Protocols that the volume manager calls: the machine, the claims, the plugins."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, runtime_checkable

from nodealloc import _attrs as attrs
from nodealloc._mountinfo import Mount
from nodealloc._typed import typed_fields
from nodealloc.podspec import Pod, Volume
from nodealloc.volumes._model import Use, VolumeId, VolumeSpec

__all__ = [
    "AttachVerifier",
    "CanAge",
    "CanAttach",
    "CanExpand",
    "CanMount",
    "CanReconstruct",
    "CanRevise",
    "CanStage",
    "ClaimResolver",
    "Found",
    "Grown",
    "Leftovers",
    "MountTable",
    "MountWatch",
    "Mounter",
    "Plugin",
    "Staged",
]


class Mounter(Protocol):
    """Mounts on this machine; calls may come from several threads at once.

    A target is an absolute path below the root that the adapter was given. A
    target that leads elsewhere, through a symbolic link or `..`, raises
    `OutsideRootError`.
    """

    def mount(self, source: str, target: str, /, *, fstype: str = "", options: Sequence[str] = ()) -> None:
        """Put one mount on a target, which exists.

        Options are those of the mount command, with `bind` and `remount`. A
        bind with `ro` is read-only when this returns, and keeps what its source
        forbids (`nosuid`, `nodev`, `noexec`), as one without does. Mounting on a target
        that is mounted already stacks a second mount: ask `is_mounted` first.
        Raises `MountError`.
        """
        ...

    def unmount(self, target: str, /, *, lazy: bool = False) -> None:
        """Take the topmost mount off; a target that is not mounted, or absent, is no error.

        Raises `MountBusyError` while somebody uses it, unless `lazy`.
        """
        ...

    def is_mounted(self, target: str, /) -> bool:
        """Whether the target itself is a mount point; False for an absent one."""
        ...


class MountTable(Protocol):
    """What is mounted on this machine, and when that changes."""

    def entries(self) -> Sequence[Mount]:
        """Every mount, in the kernel's order: of two at one point the later hides the earlier."""
        ...

    def wait(self, timeout_s: float, /) -> bool:
        """Block until something was mounted or unmounted since the last call; False on time-out."""
        ...


class ClaimResolver(Protocol):
    """From a claim's name to its volume; may be slow, called on a worker, one call a pod."""

    def resolve(self, pod: Pod, volume: Volume, /) -> VolumeSpec:
        """The volume that a pod's claim is bound to.

        Raises `ClaimError` for a claim that is absent, unbound or being
        deleted; it is asked again after a back-off.
        """
        ...


class AttachVerifier(Protocol):
    """Attaching is done by a controller elsewhere; this says whether it was."""

    def attached(self, volume: VolumeId, /) -> str | None:
        """The device path on this node, "" for none; None while it is not attached."""
        ...


@typed_fields
@attrs.frozen(kw_only=True)
class Staged:
    """What attaching or staging gave.

    Attributes:
        device_path: Of the device, or "".
        size_bytes: Its size, where it is known.
    """

    device_path: str = ""
    size_bytes: int | None = None


@typed_fields
@attrs.frozen(kw_only=True)
class Grown:
    """What growing gave.

    Attributes:
        size_bytes: Size that pods have now.
        due_bytes: Size that they get at the next mount, where growing online
            is refused; None for none.
    """

    size_bytes: int
    due_bytes: int | None = None


class Plugin(Protocol):
    """Identifies and names volumes; what else it can do, it says by having the methods.

    Every method of every ability may be called again after a crash or a
    failure at any instant, and then completes what was begun. `CanMount` is
    the least that a useful plugin has.
    """

    @property
    def name(self) -> str:
        """`kubernetes.io/empty-dir`: unique, stable, part of paths."""
        ...

    @property
    def kinds(self) -> Iterable[str]:
        """Kinds of a pod's volumes that it serves, `emptyDir`; empty when only claims lead to it."""
        ...

    def spec(self, pod: Pod, volume: Volume, /) -> VolumeSpec:
        """The volume that a pod describes; pure. Raises `InvalidVolumeError`."""
        ...


@runtime_checkable
class CanMount(Protocol):
    """Gives a volume to pods. For a raw block volume, mounting is mapping the device."""

    def mount(self, spec: VolumeSpec, use: Use, device_path: str, /) -> None:
        """Make the volume ready for a pod, or bring it up to date; right already is no work."""
        ...

    def unmount(self, spec: VolumeSpec, use: Use, /) -> None:
        """Take it from a pod and leave nothing behind; absent already is no error.

        A `spec` that was found at start may lack its `config`.
        """
        ...

    def path(self, spec: VolumeSpec, use: Use, /) -> str:
        """Where the pod's containers get it from: a directory, a file, or a device; pure."""
        ...


@runtime_checkable
class CanStage(Protocol):
    """Mounts a volume once for the node, before pods get it."""

    def stage(self, spec: VolumeSpec, device_path: str, /) -> Staged:
        """Make it ready for pods; right already is no work, also while pods use it."""
        ...

    def unstage(self, spec: VolumeSpec, device_path: str, /) -> None:
        """Undo it; no pod has it any more. Absent already is no error."""
        ...


@runtime_checkable
class CanAttach(Protocol):
    """Attaches a volume to the node."""

    def attach(self, spec: VolumeSpec, /) -> Staged:
        """Make its device appear; attached already is no work."""
        ...

    def detach(self, spec: VolumeSpec, /) -> None:
        """Undo it; nothing is mounted from it any more."""
        ...


@runtime_checkable
class CanExpand(Protocol):
    """Grows a volume while pods have it."""

    def expand(self, spec: VolumeSpec, device_path: str, /) -> Grown:
        """Grow to `spec.size_bytes` at least; never shrink."""
        ...


@runtime_checkable
class CanRevise(Protocol):
    """Has content that changes while pods have it."""

    def revision(self, spec: VolumeSpec, /) -> str:
        """Names the newest content; may be slow, called on a worker."""
        ...


@runtime_checkable
class CanAge(Protocol):
    """Has content that changes without anybody telling."""

    def fresh_s(self, spec: VolumeSpec, /) -> float | None:
        """After how many seconds to look at a volume again; None for never. As `revision`, on a worker."""
        ...


@typed_fields
@attrs.frozen(kw_only=True)
class Found:
    """Something that a pods directory or a mount table holds at start.

    Attributes:
        plugin: From the path.
        name: From the path.
        pod_uid: Whose; "" for a volume staged for the node.
        block: Whether it is a raw block volume.
    """

    plugin: str
    name: str
    pod_uid: str = ""
    block: bool = False


@runtime_checkable
class CanReconstruct(Protocol):
    """Tells from what was found at start which volume it was."""

    def reconstruct(self, found: Found, /) -> VolumeSpec | None:
        """The volume; None when it cannot tell. Its id must be the one that `spec` or the claim gives."""
        ...


class MountWatch(Protocol):
    """Tells of mounts that went, so that those which somebody else took off come back."""

    def lost(self) -> Sequence[Found]:
        """Volumes whose mount went since the last call, or since this was made; each is told once.

        Those that the manager itself took off may be among them. Asked in
        passes that find nothing else to do: quick, and next to free when
        nothing changed.
        """
        ...


class Leftovers(Protocol):
    """What an earlier life of this program left on the machine."""

    def found(self) -> Sequence[Found]:
        """Everything that looks like a volume, mounted or not; foreign files are passed over."""
        ...

    def clean(self, found: Found, /) -> None:
        """Unmount and remove something that no plugin knows; never deletes a file or below a mount.

        Raises `MountedHereError`, or `PermanentError` for what is not empty.
        """
        ...
