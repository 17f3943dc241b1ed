"""Values only: what of its node a container sees."""

from __future__ import annotations

import enum

from nodealloc import _attrs as attrs
from nodealloc._arguments import absolute, wrong
from nodealloc._typed import typed_fields

__all__ = ["HostDevice", "HostMount", "Propagation"]


class Propagation(enum.Enum):
    """Who sees mounts that are made below a mount later."""

    PRIVATE = "private"
    HOST_TO_CONTAINER = "host-to-container"
    BIDIRECTIONAL = "bidirectional"


@typed_fields
@attrs.frozen(kw_only=True)
class HostMount:
    """A directory or file of the host in a container.

    Attributes:
        host_path: Where it is; has to be there.
        container_path: Where the container sees it.
        read_only: Whether the container may only read.
        propagation: Who sees mounts that are made below it later.

    Raises:
        ConfigurationError: A path that does not begin at the root.
    """

    host_path: str
    container_path: str
    read_only: bool = False
    propagation: Propagation = Propagation.PRIVATE

    def __attrs_post_init__(self) -> None:
        absolute("HostMount.host_path", self.host_path)
        absolute("HostMount.container_path", self.container_path)


@typed_fields
@attrs.frozen(kw_only=True)
class HostDevice:
    """A device of the host in a container.

    Attributes:
        host_path: Where it is.
        container_path: Where the container sees it.
        permissions: Of `r`, `w` and `m`.

    Raises:
        ConfigurationError: A path that does not begin at the root, or other permissions.
    """

    host_path: str
    container_path: str
    permissions: str = "rwm"

    def __attrs_post_init__(self) -> None:
        absolute("HostDevice.host_path", self.host_path)
        absolute("HostDevice.container_path", self.container_path)
        if not {*self.permissions} <= {*"rwm"}:
            raise wrong("HostDevice.permissions", self.permissions, "letters of rwm")
