"""A runtime with what a kubelet keeps beside it: logs by the container's name."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Final

from typing_extensions import override

from nodealloc._typed import typed, typed_methods
from nodealloc.errors import NodeallocError
from nodealloc.runtime import (
    ContainerConfig,
    ContainerRecord,
    ContainerReport,
    ImageRecord,
    NoSuchRecordError,
    PodListing,
    PodReport,
    RunState,
    RuntimeLayer,
    SandboxConfig,
    WholeRuntime,
    plan_log_gc,
)
from nodealloc.volumes import SafeRoot

__all__ = ["LoggedRuntime"]

_SUFFIX: Final = ".log"
_LONGEST_NAME: Final = 255
"""Characters of a file's name."""


@typed_methods
class LoggedRuntime(RuntimeLayer):
    """A runtime over another one: folders for logs, links to them, and no log without its container.

    A container's folder is there before the container; its log, with what was put aside of
    it, goes with its record, and all of a pod's logs with the last of its sandboxes. A log is
    one at `..._UID/CONTAINER/NAME`: no other file is removed, whatever the runtime says.

    Args:
        runtime: Who does it.
        links: Folder in which each container's log has a link, named
            `POD_NAMESPACE_CONTAINER-ID.log`, the id cut where that is longer than a name may be;
            None for no links.
        logs: Folder of all pods' logs, in which `forget` looks for those of a pod; None where nobody does.

    Source: kubelet ``kuberuntime_container.go`` and ``legacy.go``.
    """

    @typed
    def __init__(self, runtime: WholeRuntime, *, links: Path | None = None, logs: Path | None = None) -> None:
        super().__init__(runtime)
        self._links = links
        self._all_logs = logs
        self._listing_images = threading.Lock()
        self._logs: dict[str, tuple[Path, Path | None]] = {}
        self._folders = _PodFolders()

    def settle(self) -> None:
        """Remove links to logs of containers that went while nobody was here.

        Raises:
            RetryableError: The runtime does not list its containers now.
            OSError: A link cannot be removed.
        """
        if self._links is None:
            return
        dead = [one for one in self._links.glob(f"*{_SUFFIX}") if one.is_symlink() and not one.exists()]
        # Asked once the links were listed, so that no container comes in between.
        listed = self.below.listing().pods.values() if dead else ()
        kept = {_link_name(one) for pod in listed for one in pod.containers}
        for one in dead:
            if one.name not in kept:
                one.unlink(missing_ok=True)

    def forget(self, uid: str, /) -> None:
        """Nothing of a pod is left: its logs go, also where somebody else removed its sandboxes.

        What cannot be removed stays.
        """
        for container_id, (log, _) in tuple(self._logs.items()):
            if plan_log_gc([log.parent.parent.name], ended=[uid]):
                with contextlib.suppress(OSError):
                    self._without(container_id)
        names: list[str] = []
        if self._all_logs is not None:
            with contextlib.suppress(OSError):
                names = [one.name for one in self._all_logs.iterdir()]
            for name in plan_log_gc(names, ended=[uid]):
                self._folders.forget(self._all_logs / name)

    @override
    def inspect(self, uid: str, listed: PodListing | None = None, /) -> PodReport:
        """See `Looks.inspect`."""
        report = self.below.inspect(uid, listed)
        for one in report.containers:
            self._link(one)
            if (log := _log_of(one)) is not None:
                self._folders.has(one.record.sandbox_id, log.parent.parent, uid)
        return report

    @override
    def run_sandbox(self, config: SandboxConfig, /) -> str:
        """See `Sandboxes.run_sandbox`: its logs have a folder from the start."""
        if not config.log_directory:
            return self.below.run_sandbox(config)
        folder = Path(config.log_directory)
        with self._folders.making(folder):
            folder.mkdir(parents=True, exist_ok=True)
            made = self.below.run_sandbox(config)
            self._folders.has(made, folder, config.pod.uid)
        return made

    @override
    def remove_sandbox(self, sandbox_id: str, /) -> None:
        """See `Sandboxes.remove_sandbox`: the last one of a pod takes the folder of its logs along."""
        try:
            self.below.remove_sandbox(sandbox_id)
        except NoSuchRecordError:
            self._folders.lost(sandbox_id)
            raise
        self._folders.lost(sandbox_id)

    @override
    def create_container(self, sandbox_id: str, config: ContainerConfig, sandbox: SandboxConfig, /) -> str:
        """See `Containers.create_container`."""
        if sandbox.log_directory:
            Path(sandbox.log_directory, config.name).mkdir(parents=True, exist_ok=True)
        return self.below.create_container(sandbox_id, config, sandbox)

    @override
    def remove_container(self, container_id: str, /) -> None:
        """See `Containers.remove_container`: its log goes with it."""
        try:
            self.below.remove_container(container_id)
        except NoSuchRecordError:
            self._without(container_id)
            raise
        self._without(container_id)

    @override
    def images(self) -> Sequence[ImageRecord]:
        """See `Images.images`: one after the other, since a runtime is asked the same once at a time."""
        with self._listing_images:
            return self.below.images()

    def _without(self, container_id: str) -> None:
        """Nothing that was written by it, or leads there."""
        log, link = self._logs.get(container_id, (None, None))
        for path in (*(() if log is None else _parts(log)), *(() if link is None else (link,))):
            with contextlib.suppress(IsADirectoryError):  # somebody's; it goes with the pod's folder
                path.unlink(missing_ok=True)
        self._logs.pop(container_id, None)  # at last, so that whoever is asked again tries again

    def _link(self, report: ContainerReport) -> None:
        record = report.record
        link = self._logs.get(record.id, (None, None))[1]
        log = _log_of(report)
        if log is None or link is not None:
            return
        has_begun = record.state is not RunState.CREATED and report.reason != "StartError"
        if self._links is not None and has_begun:
            link = _linked(self._links / _link_name(record), log)
        self._logs[record.id] = log, link


def _link_name(record: ContainerRecord) -> str:
    name = f"{record.pod.name}_{record.pod.namespace}_{record.name}-{record.id}"
    return f"{name[: _LONGEST_NAME - len(_SUFFIX)]}{_SUFFIX}"


def _log_of(report: ContainerReport) -> Path | None:
    """The log of a container; None for none, and for a path at which another file might be."""
    record, log = report.record, Path(report.log_path)
    is_own = log.parent.name == record.name and log.parent.parent.name.endswith(f"_{record.pod.uid}")
    return log if is_own and log.name and not {"..", ""} & {*log.parts} else None


def _linked(link: Path, log: Path) -> Path | None:
    """A link to a log that is there; None where it cannot be made yet, which is tried at the next look."""
    try:
        if not log.exists():
            return None
        link.symlink_to(log)
    except FileExistsError:
        return link
    except OSError:
        return None
    return link


class _PodFolders:
    """Which sandboxes have their logs in which folder; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._of: dict[str, Path] = {}
        self._making: list[Path] = []

    @contextlib.contextmanager
    def making(self, folder: Path) -> Generator[None]:
        """Meanwhile it is needed."""
        with self._lock:
            self._making.append(folder)
        try:
            yield
        finally:
            with self._lock:
                self._making.remove(folder)

    def has(self, sandbox_id: str, folder: Path, uid: str) -> None:
        """Only a folder that says whose it is is anybody's."""
        if sandbox_id and folder.name.endswith(f"_{uid}"):
            with self._lock:
                self._of[sandbox_id] = folder

    def lost(self, sandbox_id: str) -> None:
        """Remove the folder with the pod's last sandbox; one that cannot be removed stays."""
        with self._lock:
            folder = self._of.pop(sandbox_id, None)
            if folder is not None and folder not in self._of.values():
                self._remove(folder)

    def forget(self, folder: Path) -> None:
        """Remove a folder, whatever sandboxes had it; one that cannot be removed stays."""
        with self._lock:
            self._of = {sandbox_id: one for sandbox_id, one in self._of.items() if one != folder}
            self._remove(folder)

    def _remove(self, folder: Path) -> None:
        if folder in self._making:
            return
        with contextlib.suppress(OSError, NodeallocError):
            parent = os.path.realpath(folder.parent)
            SafeRoot(parent).remove_tree(f"{parent}/{folder.name}")


def _parts(log: Path) -> Sequence[Path]:
    """A log and what was put aside of it, which is named after it."""
    try:
        return [one for one in log.parent.iterdir() if one.name.startswith(log.name)]
    except FileNotFoundError:
        return ()
