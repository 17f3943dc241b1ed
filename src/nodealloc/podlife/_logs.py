"""A runtime with what a kubelet keeps beside it: logs by the container's name."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from nodealloc._typed import typed
from nodealloc.dsw_asw import Cancel
from nodealloc.podlife._ports import PodRuntime
from nodealloc.runtime import (
    CommandResult,
    ContainerConfig,
    ContainerReport,
    ImageRecord,
    LinuxResources,
    Listing,
    Looks,
    PodReport,
    PullCredentials,
    RunState,
    RuntimeHealth,
    SandboxConfig,
)

__all__ = ["LoggedRuntime", "WholeRuntime"]


class WholeRuntime(PodRuntime, Looks, Protocol):
    """Every port of `nodealloc.runtime` in one object."""


class LoggedRuntime:
    """A runtime over another one: folders for logs, links to them, and no log without its container.

    Passes every call on. A container's folder is there before the container; its log
    goes with its record.

    Args:
        runtime: Who does it.
        links: Folder in which each container's log has a link, named
            `POD_NAMESPACE_CONTAINER-ID.log`; None for no links.

    Source: kubelet ``kuberuntime_container.go`` and ``legacy.go``.
    """

    @typed
    def __init__(self, runtime: WholeRuntime, *, links: Path | None = None) -> None:
        self._runtime, self._links = runtime, links
        self._listing_images = threading.Lock()
        self._logs: dict[str, tuple[Path, Path | None]] = {}

    def listing(self) -> Listing:
        """See `Looks.listing`."""
        return self._runtime.listing()

    def inspect(self, uid: str, /) -> PodReport:
        """See `Looks.inspect`."""
        report = self._runtime.inspect(uid)
        for one in report.containers:
            self._link(one)
        return report

    def health(self) -> RuntimeHealth:
        """See `Looks.health`."""
        return self._runtime.health()

    def follow(self, on_event: Callable[[], None], cancel: Cancel, /) -> None:
        """See `Looks.follow`."""
        self._runtime.follow(on_event, cancel)

    def run_sandbox(self, config: SandboxConfig, /) -> str:
        """See `Sandboxes.run_sandbox`: its logs have a folder from the start."""
        if config.log_directory:
            Path(config.log_directory).mkdir(parents=True, exist_ok=True)
        return self._runtime.run_sandbox(config)

    def stop_sandbox(self, sandbox_id: str, /) -> None:
        """See `Sandboxes.stop_sandbox`."""
        self._runtime.stop_sandbox(sandbox_id)

    def remove_sandbox(self, sandbox_id: str, /) -> None:
        """See `Sandboxes.remove_sandbox`."""
        self._runtime.remove_sandbox(sandbox_id)

    def create_container(self, sandbox_id: str, config: ContainerConfig, sandbox: SandboxConfig, /) -> str:
        """See `Containers.create_container`."""
        if sandbox.log_directory:
            Path(sandbox.log_directory, config.name).mkdir(parents=True, exist_ok=True)
        return self._runtime.create_container(sandbox_id, config, sandbox)

    def start_container(self, container_id: str, /) -> None:
        """See `Containers.start_container`."""
        self._runtime.start_container(container_id)

    def stop_container(self, container_id: str, grace_s: float, /) -> None:
        """See `Containers.stop_container`."""
        self._runtime.stop_container(container_id, grace_s)

    def update_container(self, container_id: str, resources: LinuxResources, /) -> None:
        """See `Containers.update_container`."""
        self._runtime.update_container(container_id, resources)

    def remove_container(self, container_id: str, /) -> None:
        """See `Containers.remove_container`: its log goes with it."""
        self._runtime.remove_container(container_id)
        log, link = self._logs.pop(container_id, (None, None))
        for path in filter(None, (log, link)):
            path.unlink(missing_ok=True)

    def images(self) -> Sequence[ImageRecord]:
        """See `Images.images`: one after the other, since a runtime is asked the same once at a time."""
        with self._listing_images:
            return self._runtime.images()

    def pull_image(self, name: str, credentials: PullCredentials | None = None, /) -> str:
        """See `Images.pull_image`."""
        return self._runtime.pull_image(name, credentials)

    def remove_image(self, id: str, /) -> None:  # noqa: A002 - the field's word
        """See `Images.remove_image`."""
        self._runtime.remove_image(id)

    def run_command(self, container_id: str, command: Sequence[str], timeout_s: float, /) -> CommandResult:
        """See `CommandRunner.run_command`."""
        return self._runtime.run_command(container_id, command, timeout_s)

    def _link(self, report: ContainerReport) -> None:
        record = report.record
        link = self._logs.get(record.id, (None, None))[1]
        if not report.log_path or link is not None:
            return
        has_begun = record.state is not RunState.CREATED and report.reason != "StartError"
        if self._links is not None and has_begun:
            pod = record.pod
            link = self._links / f"{pod.name}_{pod.namespace}_{record.name}-{record.id}.log"
            with contextlib.suppress(FileExistsError):
                link.symlink_to(report.log_path)
        self._logs[record.id] = Path(report.log_path), link
