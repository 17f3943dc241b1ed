"""A runtime over another one, to be changed where a layer does more."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from nodealloc._typed import typed
from nodealloc.dsw_asw import Cancel
from nodealloc.runtime._health import RuntimeHealth
from nodealloc.runtime._listing import Listing, PodListing
from nodealloc.runtime._ports import CommandResult, CommandRunner, Containers, Images, Looks, Sandboxes
from nodealloc.runtime._records import ImageRecord
from nodealloc.runtime._reports import PodReport
from nodealloc.runtime._wanted import ContainerConfig, LinuxResources, PullCredentials, SandboxConfig

__all__ = ["RuntimeLayer", "WholeRuntime"]


class WholeRuntime(Sandboxes, Containers, Images, CommandRunner, Looks, Protocol):
    """Every port of this package in one object."""


class RuntimeLayer:
    """A runtime over another one: passes every call on. Derive from it, and override what is to be more.

    Args:
        below: Who does it.

    Source: ours.
    """

    @typed
    def __init__(self, below: WholeRuntime) -> None:
        self.below = below

    def listing(self) -> Listing:
        """See `Looks.listing`."""
        return self.below.listing()

    def inspect(self, uid: str, listed: PodListing | None = None, /) -> PodReport:
        """See `Looks.inspect`."""
        return self.below.inspect(uid, listed)

    def health(self) -> RuntimeHealth:
        """See `Looks.health`."""
        return self.below.health()

    def follow(self, on_event: Callable[[], None], cancel: Cancel, /) -> None:
        """See `Looks.follow`."""
        self.below.follow(on_event, cancel)

    def run_sandbox(self, config: SandboxConfig, /) -> str:
        """See `Sandboxes.run_sandbox`."""
        return self.below.run_sandbox(config)

    def stop_sandbox(self, sandbox_id: str, /) -> None:
        """See `Sandboxes.stop_sandbox`."""
        self.below.stop_sandbox(sandbox_id)

    def remove_sandbox(self, sandbox_id: str, /) -> None:
        """See `Sandboxes.remove_sandbox`."""
        self.below.remove_sandbox(sandbox_id)

    def create_container(self, sandbox_id: str, config: ContainerConfig, sandbox: SandboxConfig, /) -> str:
        """See `Containers.create_container`."""
        return self.below.create_container(sandbox_id, config, sandbox)

    def start_container(self, container_id: str, /) -> None:
        """See `Containers.start_container`."""
        self.below.start_container(container_id)

    def stop_container(self, container_id: str, grace_s: float, /) -> None:
        """See `Containers.stop_container`."""
        self.below.stop_container(container_id, grace_s)

    def update_container(self, container_id: str, resources: LinuxResources, /) -> None:
        """See `Containers.update_container`."""
        self.below.update_container(container_id, resources)

    def remove_container(self, container_id: str, /) -> None:
        """See `Containers.remove_container`."""
        self.below.remove_container(container_id)

    def images(self) -> Sequence[ImageRecord]:
        """See `Images.images`."""
        return self.below.images()

    def pull_image(
        self, name: str, credentials: PullCredentials | None = None, sandbox: SandboxConfig | None = None, /
    ) -> str:
        """See `Images.pull_image`."""
        return self.below.pull_image(name, credentials, sandbox)

    def remove_image(self, id: str, /) -> None:  # noqa: A002 - the field's word
        """See `Images.remove_image`."""
        self.below.remove_image(id)

    def run_command(self, container_id: str, command: Sequence[str], timeout_s: float, /) -> CommandResult:
        """See `CommandRunner.run_command`."""
        return self.below.run_command(container_id, command, timeout_s)
