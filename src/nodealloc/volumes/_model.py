"""Values only: volumes, who wants them, and what is there of them."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import TypeAlias

from nodealloc import _attrs as attrs
from nodealloc._frozen import freeze, freeze_deeply
from nodealloc._typed import typed_fields
from nodealloc.podspec import Json
from nodealloc.volumes._states import MountState, VolumeState

__all__ = [
    "ActualVolume",
    "DesiredVolume",
    "PodMount",
    "Use",
    "VolumeId",
    "VolumeMode",
    "VolumeSpec",
]

VolumeId: TypeAlias = str
"""Unique on the node: `PLUGIN/NAME` of a volume that pods share, `PLUGIN/POD-UID/NAME` of a pod's own."""


class VolumeMode(enum.Enum):
    """How containers see a volume, by the Kubernetes names."""

    FILESYSTEM = "Filesystem"
    BLOCK = "Block"


@typed_fields
@attrs.frozen(kw_only=True)
class VolumeSpec:
    """A volume whose plugin is known: what a pod's volume or a claim came to.

    Attributes:
        plugin: Plugin that serves it, `kubernetes.io/empty-dir`.
        name: Directory name, one path component.
        pod_uid: Of the pod that it belongs to; "" when pods may share it.
        config: What the plugin needs, as the manifest or the claim had it.
        mode: File system or raw block device.
        read_only: Whether everybody may only read.
        size_bytes: Size that is wanted; None for whatever it has.
        needs_attach: Whether it has to be attached to the node first.
        needs_stage: Whether it is mounted once for the node before pods get it.
        can_expand: Whether its plugin can grow it.
        gid: Group that its pods have to be in, or None.
    """

    plugin: str
    name: str
    pod_uid: str = ""
    config: Mapping[str, Json] = attrs.field(factory=dict[str, Json], validator=freeze_deeply)
    mode: VolumeMode = VolumeMode.FILESYSTEM
    read_only: bool = False
    size_bytes: int | None = None
    needs_attach: bool = False
    needs_stage: bool = False
    can_expand: bool = False
    gid: int | None = None

    @property
    def id(self) -> VolumeId:
        """Its key in both worlds."""
        own = f"{self.pod_uid}/" if self.pod_uid else ""
        return f"{self.plugin}/{own}{self.name}"


@typed_fields
@attrs.frozen(kw_only=True)
class Use:
    """A pod that wants a volume.

    Attributes:
        pod_uid: Which pod.
        generation: Of the pod as the manager saw it arrive; a pod removed and
            added again under its uid has another.
        volume: The pod's own name for the volume.
        read_only: Whether this pod may only read.
        revision: Of the content; another one makes the plugin bring it up to date.
        fs_group: Group that owns what the plugin makes for the pod; None for the agent's.
    """

    pod_uid: str
    generation: int = 0
    volume: str = ""
    read_only: bool = False
    revision: str = ""
    fs_group: int | None = None


@attrs.frozen(kw_only=True)
class DesiredVolume:
    """A volume that somebody wants.

    Attributes:
        spec: The volume, with the size that is wanted now.
        uses: By pod uid; never empty.
    """

    spec: VolumeSpec
    uses: Mapping[str, Use] = attrs.field(validator=attrs.validators.min_len(1))


@attrs.frozen(kw_only=True)
class PodMount:
    """What is there of a volume for one pod.

    Attributes:
        state: Its place in `MOUNT_LIFE`.
        generation: Of the pod for which it was mounted; 0 when it was found at start.
        read_only: As it was mounted.
        revision: Of the content that it was given.
        held: Found at start, and nobody knows yet whether its pod wants it:
            neither unmounted nor remounted.
    """

    state: MountState
    generation: int = 0
    read_only: bool = False
    revision: str = ""
    held: bool = False

    @property
    def is_mounted(self) -> bool:
        """Whether it is there for certain."""
        return self.state is MountState.MOUNTED


@attrs.frozen(kw_only=True)
class ActualVolume:
    """What is there of a volume.

    Attributes:
        spec: As it was attached or found.
        state: Its place in `VOLUME_LIFE`.
        device_path: Of the attached device, or "".
        size_bytes: Size that it has; None when nobody measured.
        growth_due: Size that it grows to at its next mount; None for none.
        mounts: By pod uid.
        held: Found at start, and some pod's wishes are still unknown.
    """

    spec: VolumeSpec
    state: VolumeState = VolumeState.DETACHED
    device_path: str = ""
    size_bytes: int | None = None
    growth_due: int | None = None
    mounts: Mapping[str, PodMount] = attrs.field(factory=dict[str, PodMount], validator=freeze)
    held: bool = False
