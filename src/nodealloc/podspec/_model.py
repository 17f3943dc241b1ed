"""Values only: a pod as far as running it on one node needs to know it."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from nodealloc._arguments import checked, several
from nodealloc._frozen import Frozen, freeze
from nodealloc._reading import MAX_DOCUMENT_BYTES, Json
from nodealloc.podspec._amounts import Amounts, Resources, resources

__all__ = ["Container", "Json", "Pod", "Resources", "Volume", "VolumeUse"]


@attrs.frozen(kw_only=True)
class VolumeUse:
    """One volume in one container: a mount, or a block device.

    Attributes:
        name: The pod's volume.
        path: Mount path, or device path, inside the container.
        read_only: Whether the container may only read.
        block: Whether the raw device is wanted (`volumeDevices`).
    """

    name: str
    path: str
    read_only: bool = False
    block: bool = False


@attrs.frozen(kw_only=True)
class Volume:
    """A volume that a pod defines.

    Attributes:
        name: Unique inside the pod.
        kind: The manifest's key: `emptyDir`, `hostPath`, `configMap`, `persistentVolumeClaim`.
        spec: What stands below that key, as it came.
    """

    name: str
    kind: str
    spec: Mapping[str, Json] = attrs.field(factory=dict[str, Json])


@attrs.frozen(kw_only=True)
class Container:
    """One container of a pod.

    Attributes:
        name: Unique inside the pod, init containers included.
        requests: What it is guaranteed; a missing request follows the limit.
        limits: What it may use at most.
        restartable: For an init container: it keeps running (a sidecar).
        image: As the manifest names it, or "".
        command: Entry point with its arguments, or empty for the image's own.
        env: Variables with literal values.
        volumes: Mounts and block devices.
    """

    name: str
    requests: Resources = attrs.field(factory=Amounts, converter=resources)
    limits: Resources = attrs.field(factory=Amounts, converter=resources)
    restartable: bool = False
    image: str = ""
    command: tuple[str, ...] = ()
    env: Mapping[str, str] = attrs.field(factory=Frozen[str, str], validator=freeze)
    volumes: tuple[VolumeUse, ...] = ()


@attrs.frozen(kw_only=True)
class Pod:
    """A pod.

    Attributes:
        uid: Unique for all time; a pod made anew under its old name has another.
        name: For people.
        namespace: For people.
        init_containers: Run before the containers, in this order.
        containers: Run together; at least one.
        volumes: What the pod's containers can mount.
        labels: As the manifest has them.
        annotations: As the manifest has them.
    """

    uid: str = attrs.field(validator=checked(str, "a text, unique for all time"))
    name: str = ""
    namespace: str = "default"
    init_containers: tuple[Container, ...] = attrs.field(
        default=(), validator=several(Container, "a Container")
    )
    containers: tuple[Container, ...] = attrs.field(default=(), validator=several(Container, "a Container"))
    volumes: tuple[Volume, ...] = ()
    labels: Mapping[str, str] = attrs.field(factory=Frozen[str, str], validator=freeze)
    annotations: Mapping[str, str] = attrs.field(factory=Frozen[str, str], validator=freeze)

    @classmethod
    def from_manifest(
        cls, manifest: object, /, *, source: str = "", max_bytes: int = MAX_DOCUMENT_BYTES
    ) -> Pod:
        """Read a Pod manifest, a mapping as YAML or JSON gives it.

        Raises `DecodeError` that lists every wrong field with its path, or says
        that it is larger than `max_bytes`; see `nodealloc.podspec.pod_from_manifest`.
        """
        # Imported late: the manifest's reader needs this class.
        from nodealloc.podspec._manifest import pod_from_manifest  # noqa: PLC0415

        return pod_from_manifest(manifest, source=source, max_bytes=max_bytes)

    @property
    def all_containers(self) -> tuple[Container, ...]:
        """Init containers, then containers: the order in which they are admitted."""
        return self.init_containers + self.containers

    @property
    def full_name(self) -> str:
        """`namespace/name`, for messages."""
        return f"{self.namespace}/{self.name or self.uid}"
