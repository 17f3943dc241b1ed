"""A runtime with what a kubelet keeps beside it: logs by the container's name."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Sequence
from pathlib import Path

from typing_extensions import override

from nodealloc._typed import typed, typed_methods
from nodealloc.runtime import (
    ContainerConfig,
    ContainerReport,
    ImageRecord,
    PodListing,
    PodReport,
    RunState,
    RuntimeLayer,
    SandboxConfig,
    WholeRuntime,
)

__all__ = ["LoggedRuntime"]


@typed_methods
class LoggedRuntime(RuntimeLayer):
    """A runtime over another one: folders for logs, links to them, and no log without its container.

    A container's folder is there before the container; its log
    goes with its record.

    Args:
        runtime: Who does it.
        links: Folder in which each container's log has a link, named
            `POD_NAMESPACE_CONTAINER-ID.log`; None for no links.

    Source: kubelet ``kuberuntime_container.go`` and ``legacy.go``.
    """

    @typed
    def __init__(self, runtime: WholeRuntime, *, links: Path | None = None) -> None:
        super().__init__(runtime)
        self._links = links
        self._listing_images = threading.Lock()
        self._logs: dict[str, tuple[Path, Path | None]] = {}

    @override
    def inspect(self, uid: str, listed: PodListing | None = None, /) -> PodReport:
        """See `Looks.inspect`."""
        report = self.below.inspect(uid, listed)
        for one in report.containers:
            self._link(one)
        return report

    @override
    def run_sandbox(self, config: SandboxConfig, /) -> str:
        """See `Sandboxes.run_sandbox`: its logs have a folder from the start."""
        if config.log_directory:
            Path(config.log_directory).mkdir(parents=True, exist_ok=True)
        return self.below.run_sandbox(config)

    @override
    def create_container(self, sandbox_id: str, config: ContainerConfig, sandbox: SandboxConfig, /) -> str:
        """See `Containers.create_container`."""
        if sandbox.log_directory:
            Path(sandbox.log_directory, config.name).mkdir(parents=True, exist_ok=True)
        return self.below.create_container(sandbox_id, config, sandbox)

    @override
    def remove_container(self, container_id: str, /) -> None:
        """See `Containers.remove_container`: its log goes with it."""
        self.below.remove_container(container_id)
        log, link = self._logs.pop(container_id, (None, None))
        for path in filter(None, (log, link)):
            path.unlink(missing_ok=True)

    @override
    def images(self) -> Sequence[ImageRecord]:
        """See `Images.images`: one after the other, since a runtime is asked the same once at a time."""
        with self._listing_images:
            return self.below.images()

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
