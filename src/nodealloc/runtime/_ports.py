"""Protocols that a container runtime is asked through; `nodealloc.testing.runtime` has one to play with.

All raise `RuntimeUnavailableError` where nothing was done, `AnswerLostError`
where it may have been, and `RuntimeRefusedError` for "no". All may be called
from any thread, and be repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from nodealloc import _attrs as attrs
from nodealloc._typed import typed_fields
from nodealloc.dsw_asw import Cancel
from nodealloc.runtime._health import RuntimeHealth
from nodealloc.runtime._listing import Listing, PodListing
from nodealloc.runtime._records import ImageRecord
from nodealloc.runtime._reports import PodReport
from nodealloc.runtime._wanted import ContainerConfig, LinuxResources, PullCredentials, SandboxConfig

__all__ = [
    "CommandResult",
    "CommandRunner",
    "Containers",
    "Images",
    "Looks",
    "Sandboxes",
]


class Looks(Protocol):
    """What is there, how the runtime is, and word that something changed."""

    def listing(self) -> Listing:
        """Everything: each sandbox and container of a pod, whatever its state.

        What makes no sense is an oddity of its pod, and no reason to raise.
        """
        ...

    def inspect(self, uid: str, listed: PodListing | None = None, /) -> PodReport:
        """One pod, closely; the newest first. An unknown pod has an empty report.

        Args:
            uid: Which.
            listed: What of it has to be told of: these sandboxes and containers, unless they are gone.
                More may be. None for all that there is.
        """
        ...

    def health(self) -> RuntimeHealth:
        """What the runtime says of itself."""
        ...

    def follow(self, on_event: Callable[[], None], cancel: Cancel, /) -> None:
        """Call `on_event` once when the events are up, then at each change, until asked to stop.

        An event is a hint to look, and never more than that: it may be lost,
        doubled and out of order. Returns when `cancel` is set, raises when the
        events break off.

        Raises:
            RuntimeRefusedError: The runtime has no events.
        """
        ...


class Sandboxes(Protocol):
    """Pods' sandboxes: made, ended, forgotten."""

    def run_sandbox(self, config: SandboxConfig, /) -> str:
        """Make a sandbox and have it ready; its id.

        Raises:
            NameReservedError: This pod has one of this attempt already.
        """
        ...

    def stop_sandbox(self, sandbox_id: str, /) -> None:
        """End everything in it and give back its network; an unknown id is no error."""
        ...

    def remove_sandbox(self, sandbox_id: str, /) -> None:
        """Forget it with all its containers, which end; an unknown id is no error."""
        ...


class Containers(Protocol):
    """Containers: made, started, changed, stopped, forgotten."""

    def create_container(self, sandbox_id: str, config: ContainerConfig, sandbox: SandboxConfig, /) -> str:
        """Make a container that does not run yet; its id.

        Args:
            sandbox_id: Where; ready.
            config: What it is made from.
            sandbox: What that sandbox was made from.

        Raises:
            NameReservedError: The sandbox has one of this name and attempt already.
            NoSuchRecordError: There is no such sandbox; containerd says that of a stopped one too.
            RuntimeRefusedError: The sandbox was stopped.
        """
        ...

    def start_container(self, container_id: str, /) -> None:
        """Have it run. One that cannot be started has exited afterwards, and this raises.

        Raises:
            NoSuchRecordError: There is no such container.
            RuntimeRefusedError: It cannot be started, as in a sandbox that was stopped.
        """
        ...

    def stop_container(self, container_id: str, grace_s: float, /) -> None:
        """Ask it to end, and end it after so many seconds; returns when it has.

        One that has ended, or that nobody knows, is no error.
        """
        ...

    def update_container(self, container_id: str, resources: LinuxResources, /) -> None:
        """Change limits; what is None stays as it is.

        Raises:
            NoSuchRecordError: There is no such container.
        """
        ...

    def remove_container(self, container_id: str, /) -> None:
        """Forget a container and how it ended; it is ended first. An unknown id is no error."""
        ...


class Images(Protocol):
    """Images that the runtime holds."""

    def images(self) -> Sequence[ImageRecord]:
        """All of them."""
        ...

    def pull_image(
        self, name: str, credentials: PullCredentials | None = None, sandbox: SandboxConfig | None = None, /
    ) -> str:
        """Get an image; the id by which the runtime knows it.

        Args:
            name: With registry and tag or digest.
            credentials: As whom; None for nobody.
            sandbox: What the sandbox is made from of the pod that it is for, by which a runtime may choose
                where it is unpacked and who accounts for it; None where it is for none.
        """
        ...

    def remove_image(self, id: str, /) -> None:  # noqa: A002 - the field's word
        """Let go of an image with all its names; an unknown one is no error."""
        ...


@typed_fields
@attrs.frozen(kw_only=True)
class CommandResult:
    """What a command left.

    Attributes:
        code: Its exit status.
        output: What it wrote; runtimes keep 16 MB at most.
        errors: What it wrote to its standard error.
    """

    code: int
    output: bytes = b""
    errors: bytes = b""


class CommandRunner(Protocol):
    """Commands in containers that run."""

    def run_command(self, container_id: str, command: Sequence[str], timeout_s: float, /) -> CommandResult:
        """Run a command to its end.

        Raises:
            NoSuchRecordError: There is no such container.
            CommandTimedOutError: It took longer; it may still run.
            RuntimeRefusedError: There is no such program, or the container does not run.
        """
        ...
