"""Values only: what a container gets with its devices, and the merge of several plugins' answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from nodealloc import _attrs as attrs
from nodealloc._frozen import freeze
from nodealloc._typed import typed_fields

__all__ = ["Conflict", "DeviceMount", "DeviceNode", "Launch", "Response", "merge"]


class DeviceMount(NamedTuple):
    """A bind mount that a plugin wants.

    Attributes:
        container_path: Where it appears.
        host_path: What appears.
        read_only: Whether the container may only read.
    """

    container_path: str
    host_path: str
    read_only: bool = False


class DeviceNode(NamedTuple):
    """A device file that a plugin wants.

    Attributes:
        container_path: Where it appears.
        host_path: Which device of the host.
        permissions: Any of `r`, `w`, `m`, for the device cgroup.
    """

    container_path: str
    host_path: str
    permissions: str = "rw"


@typed_fields
@attrs.frozen(kw_only=True)
class Response:
    """What one plugin answered to `Allocate`.

    Attributes:
        env: Variables of the container.
        mounts: Bind mounts.
        device_nodes: Device files.
        annotations: For the container runtime.
        cdi_devices: Names of the Container Device Interface, `vendor/class=name`.
    """

    env: Mapping[str, str] = attrs.field(factory=dict[str, str], validator=freeze)
    mounts: tuple[DeviceMount, ...] = ()
    device_nodes: tuple[DeviceNode, ...] = ()
    annotations: Mapping[str, str] = attrs.field(factory=dict[str, str], validator=freeze)
    cdi_devices: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class Conflict:
    """Two plugins want different things in one place; the first by resource name won.

    Attributes:
        kind: `env`, `mount`, `device node` or `annotation`.
        place: Variable, container path or annotation.
        kept: Resource whose wish stands, and what it is.
        dropped: Resource whose wish fell, and what it was.
    """

    kind: str
    place: str
    kept: tuple[str, str]
    dropped: tuple[str, str]

    def __str__(self) -> str:
        """For people: who wanted what, and what stands."""
        return (
            f"{self.kind} {self.place}: {self.kept[0]} says {self.kept[1]!r} and stands, "
            f"{self.dropped[0]} says {self.dropped[1]!r}; change one of the two plugins"
        )


@attrs.frozen(kw_only=True)
class Launch(Response):
    """All that a container gets with its devices: the fields of `Response`, of all plugins together.

    Attributes:
        conflicts: Where plugins disagreed.
    """

    conflicts: tuple[Conflict, ...] = ()


@attrs.define
class _Places:
    """What stands at each place of one kind, and from whom."""

    kind: str
    owner: dict[str, str] = attrs.field(factory=dict[str, str])
    said: dict[str, str] = attrs.field(factory=dict[str, str])
    conflicts: list[Conflict] = attrs.field(factory=list[Conflict])

    def claim(self, resource: str, place: str, wish: str) -> bool:
        """Whether the wish is the first for its place; a different second one is a conflict."""
        if place not in self.said:
            self.owner[place], self.said[place] = resource, wish
            return True
        if self.said[place] != wish:
            kept = (self.owner[place], self.said[place])
            self.conflicts.append(Conflict(kind=self.kind, place=place, kept=kept, dropped=(resource, wish)))
        return False


def merge(responses: Mapping[str, Response], /) -> Launch:
    """What a container gets from several plugins, by resource name.

    The same wish twice is one wish. Of two different ones for one place the
    first by resource name stands, and the conflict is named.

    Source: kubelet ``cm/devicemanager/pod_devices.go``, where the order is a
    map's and a conflict is a line in a log.
    """
    envs, mounts = _Places("env"), _Places("mount")
    nodes, annotations = _Places("device node"), _Places("annotation")
    kept_mounts: list[DeviceMount] = []
    kept_nodes: list[DeviceNode] = []
    cdi: dict[str, None] = {}
    for resource in sorted(responses):
        response = responses[resource]
        for key in sorted(response.env):
            envs.claim(resource, key, response.env[key])
        kept_mounts += [
            mount
            for mount in response.mounts
            if mounts.claim(resource, mount.container_path, f"{mount.host_path}{' (ro)' * mount.read_only}")
        ]
        kept_nodes += [
            node
            for node in response.device_nodes
            if nodes.claim(resource, node.container_path, f"{node.host_path} ({node.permissions})")
        ]
        for key in sorted(response.annotations):
            annotations.claim(resource, key, response.annotations[key])
        cdi.update(dict.fromkeys(response.cdi_devices))
    return Launch(
        env=envs.said,
        mounts=tuple(kept_mounts),
        device_nodes=tuple(kept_nodes),
        annotations=annotations.said,
        cdi_devices=tuple(cdi),
        conflicts=tuple(c for places in (envs, mounts, nodes, annotations) for c in places.conflicts),
    )
