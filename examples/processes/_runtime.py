"""Every port of `nodealloc.runtime` over processes of this machine."""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from examples.processes import _commands as commands
from examples.processes._fence import Fence, send
from examples.processes._kept import Box, Files, Made, boot_id, make_log_folder, variables
from examples.processes._line import KeeperLine
from examples.processes._marks import end_commands, end_strays, mark
from examples.processes._table import Run, Table
from nodealloc.cgroups import CgroupName
from nodealloc.dsw_asw import Cancel
from nodealloc.errors import DecodeError, NodeallocError
from nodealloc.idset import CPUSet
from nodealloc.runtime import (
    AnswerLostError,
    CgroupDriverKind,
    CommandResult,
    ContainerConfig,
    ImageRecord,
    LinuxResources,
    Listing,
    NameReservedError,
    NoSuchRecordError,
    PodListing,
    PodReport,
    PullCredentials,
    RunState,
    RuntimeCondition,
    RuntimeHealth,
    RuntimeRefusedError,
    SandboxConfig,
)

if TYPE_CHECKING:
    from typing import Self

__all__ = ["ProcessRuntime"]

_LEAVES_S = 10.0
"""How long a process may take to go after SIGKILL before that is an error."""


class ProcessRuntime:
    """Containers that are processes, behind every port of `nodealloc.runtime`.

    Thread-safe. Reads the disk once, when it is made, and asks nobody for a listing.

    Args:
        folder: Where everything is kept; one runtime at a time.
        cgroup: Cgroup of containers whose sandbox names no parent.
        tree: Where cgroups are mounted, or a directory that stands in for them.

    Raises:
        RuntimeUnavailableError: No keeper can be started there, or what has no record does not end.
        OSError: The folder cannot be made.
    """

    def __init__(
        self, folder: Path | str, *, cgroup: str = "nodealloc-processes", tree: str = "/sys/fs/cgroup"
    ) -> None:
        Path(folder).mkdir(parents=True, exist_ok=True)
        self._files = Files(Path(folder).resolve())
        self._files.tidy()
        self._root = CgroupName.parse(cgroup)
        self._fence = Fence.find(tree, self._root)
        self._boot = boot_id()
        self._table = table = Table(self._files)
        self._changed = table.changed
        # Listened to first and read afterwards, so that no end falls in between.
        self._line = KeeperLine(self._files.folder, tree, cgroup, table.note, table.read)
        table.read()
        try:
            self._end_left()
        except BaseException:
            self._line.close()
            raise

    def __enter__(self) -> Self:
        """The runtime, until the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """See `close`."""
        self.close()

    def _end_left(self) -> None:
        """End what nobody knows of, and commands that an agent asked for which was killed."""
        end_strays(self._table, self._fence, self._root)
        end_commands(self._files.folder)
        for run in list(self._table.runs.values()):
            if run.state is RunState.RUNNING:
                with contextlib.suppress(OSError, NodeallocError):  # they end with their container at last
                    self._fence.end_parts(run.made.cgroup)

    def close(self) -> None:
        """Let go; containers run on."""
        self._line.close()
        if not self._table.boxes:
            with contextlib.suppress(NodeallocError):  # somebody else's pods may be in there
                self._fence.remove(self._root.path())

    # Looks

    def listing(self) -> Listing:
        """See `Looks.listing`."""
        return self._table.listing()

    def inspect(self, uid: str, listed: PodListing | None = None, /) -> PodReport:
        """See `Looks.inspect`."""
        del listed  # all is told
        return self._table.inspect(uid)

    def health(self) -> RuntimeHealth:
        """See `Looks.health`; `Confined` says whether cgroups hold the processes, and why not."""
        confined = RuntimeCondition(
            holds=self._fence.confines,
            reason="" if self._fence.confines else "NoCgroups",
            message=self._fence.why,
        )
        return RuntimeHealth(
            conditions={
                "RuntimeReady": RuntimeCondition(holds=True),
                "NetworkReady": RuntimeCondition(holds=True),
                "Confined": confined,
            },
            name="processes",
            version=f"python {sys.version_info.major}.{sys.version_info.minor}",
            cgroup_driver=CgroupDriverKind.CGROUPFS,
            handlers=("",),
        )

    # Sandboxes

    def run_sandbox(self, config: SandboxConfig, /) -> str:
        """See `Sandboxes.run_sandbox`."""
        made = os.urandom(16).hex()
        box = Box(
            id=made,
            uid=config.pod.uid,
            namespace=config.pod.namespace,
            name=config.pod.name,
            attempt=config.attempt,
            created_unix_s=time.time(),
            boot=self._boot,
            parent=config.cgroup_parent or self._root.child(made).path(),
            is_owner=not config.cgroup_parent,
            host_network=config.host_network,
            handler=config.handler,
            labels=dict(config.labels),
            annotations=dict(config.annotations),
        )
        with self._changed:
            for one in self._table.boxes_of(box.uid):
                if one.attempt == box.attempt:
                    raise NameReservedError(
                        "run_sandbox", one.id, f"sandbox {one.id} has that pod and attempt"
                    )
            if config.log_directory:
                self._kept(lambda: make_log_folder(Path(config.log_directory)))
            self._kept(lambda: self._files.write(box, "sandboxes", made))
            self._table.keep_box(box)
        self._table.tell()
        return made

    def stop_sandbox(self, sandbox_id: str, /) -> None:
        """See `Sandboxes.stop_sandbox`."""
        with self._changed:
            box = self._table.boxes.get(sandbox_id)
            if box is None:
                return
            stopped = attrs.evolve(box, stopped=True)
            self._kept(lambda: self._files.write(stopped, "sandboxes", sandbox_id))
            self._table.keep_box(stopped)
        self._end(self._table.inside(sandbox_id))
        self._table.tell()

    def remove_sandbox(self, sandbox_id: str, /) -> None:
        """See `Sandboxes.remove_sandbox`."""
        self.stop_sandbox(sandbox_id)
        with self._changed:
            box = self._table.boxes.get(sandbox_id)
        if box is None:
            return
        for run in self._table.inside(sandbox_id):
            self.remove_container(run.made.id)
        if box.is_owner:
            self._kept(lambda: self._fence.remove(box.parent))
        with self._changed:
            self._kept(lambda: self._files.drop("sandboxes", sandbox_id))
            self._table.drop_box(box)
        self._table.tell()

    # Containers

    def create_container(self, sandbox_id: str, config: ContainerConfig, sandbox: SandboxConfig, /) -> str:
        """See `Containers.create_container`."""
        with self._changed:
            box = self._table.ready_box("create_container", sandbox_id)
            for one in self._table.inside(sandbox_id):
                if (one.made.name, one.made.attempt) == (config.name, config.attempt):
                    words = f"container {one.made.id} has that name and attempt"
                    raise NameReservedError("create_container", one.made.id, words)
            made = self._make(box, config, sandbox)
            self._kept(lambda: self._fence.make(made.cgroup, config.resources))
            self._kept(lambda: self._files.write(made, "containers", made.id, "made"))
            self._table.keep_run(Run(made))
        self._table.tell()
        return made.id

    def start_container(self, container_id: str, /) -> None:
        """See `Containers.start_container`."""
        run = self._table.run("start_container", container_id)
        self._table.ready_box("start_container", run.made.sandbox)
        begun = self._line.start(container_id)
        self._table.note(container_id)
        if not begun:
            ended = self._table.run("start_container", container_id).ended
            words = ended.message if ended else f"see {self._files.folder / 'keeper.log'}"
            raise RuntimeRefusedError("start_container", "FAILED", words)
        try:  # it may have been stopped meanwhile by somebody who did not see this one run
            self._table.ready_box("start_container", run.made.sandbox)
        except (NoSuchRecordError, RuntimeRefusedError):
            self._end([run])
            raise

    def stop_container(self, container_id: str, grace_s: float, /) -> None:
        """See `Containers.stop_container`."""
        with self._changed:
            run = self._table.runs.get(container_id)
            if run is None or run.started is None or run.ended is not None:
                return
        if grace_s > 0:
            send(run.started, signal.SIGTERM)
            with self._changed:
                self._changed.wait_for(lambda: run.ended is not None, grace_s)
        self._end([run])

    def update_container(self, container_id: str, resources: LinuxResources, /) -> None:
        """See `ContainerKeeper.update_container`."""
        run = self._table.run("update_container", container_id)
        if run.started is None and resources.cpus is not None and self._fence.driver is None:
            with self._changed:
                run.made = attrs.evolve(run.made, cpus=list(resources.cpus))
                self._kept(lambda: self._files.write(run.made, "containers", container_id, "made"))
        pid = run.started.pid if run.started is not None and run.ended is None else 0
        self._kept(lambda: self._fence.limit(run.made.cgroup, pid, resources))

    def remove_container(self, container_id: str, /) -> None:
        """See `ContainerKeeper.remove_container`."""
        with self._changed:
            run = self._table.runs.get(container_id)
        if run is None:
            return
        self._end([run])
        self._kept(lambda: self._fence.remove(run.made.cgroup))
        with self._changed:
            self._kept(lambda: self._files.drop("containers", container_id))
            self._table.drop_run(run)
        self._table.tell()

    # Images, which are names; commands; events

    def images(self) -> Sequence[ImageRecord]:
        """See `Images.images`."""
        user = os.geteuid()  # whom a process runs as that nobody names one for
        names = {name: self._files.image(name) for name in self._files.names("images")}
        return [
            ImageRecord(id=name, names=(called,), size_bytes=len(called), user=user)
            for name, called in names.items()
            if called is not None
        ]

    def pull_image(
        self, name: str, credentials: PullCredentials | None = None, sandbox: SandboxConfig | None = None, /
    ) -> str:
        """See `Images.pull_image`: whatever it is called, it is this machine's file system."""
        del credentials, sandbox
        made = hashlib.sha256(name.encode()).hexdigest()
        self._kept(lambda: self._files.write_image(name, made))
        return made

    def remove_image(self, id: str, /) -> None:  # noqa: A002 - the field's word
        """See `Images.remove_image`."""
        self._files.drop("images", id)

    def run_command(self, container_id: str, command: Sequence[str], timeout_s: float, /) -> CommandResult:
        """See `CommandRunner.run_command`; nothing of a command that took too long is left."""
        run = self._table.run("run_command", container_id)
        if run.state is not RunState.RUNNING:
            words = f"container {container_id} is {run.state.value}"
            raise RuntimeRefusedError("run_command", "NOT_RUNNING", words)
        return commands.run(self._fence, run.made, command, timeout_s)

    def follow(self, on_event: Callable[[], None], cancel: Cancel, /) -> None:
        """See `Looks.follow`."""
        me = object()
        with self._changed:
            self._table.feeds[me] = on_event
        try:
            on_event()
            cancel.wait()
        finally:
            with self._changed:
                del self._table.feeds[me]

    @property
    def confines(self) -> bool:
        """Whether cgroups hold the processes."""
        return self._fence.confines

    def confined(self, container_id: str, /) -> CPUSet | None:
        """CPUs that a directory which stands in for cgroups has for a container; None without such a one."""
        driver = self._fence.driver
        if driver is None or self._fence.confines:
            return None
        cgroup = self._table.run("confined", container_id).made.cgroup
        limits = driver.read(CgroupName.parse(cgroup))
        return None if limits is None else limits.cpus

    def pid_of(self, container_id: str, /) -> int:
        """First process of a container that runs; 0 for any other."""
        with self._changed:
            run = self._table.runs.get(container_id)
            running = run is not None and run.ended is None
            return run.started.pid if run is not None and running and run.started is not None else 0

    # How it is done.

    def _make(self, box: Box, config: ContainerConfig, sandbox: SandboxConfig) -> Made:
        mounts = variables({one.container_path: one.host_path for one in config.mounts})
        path = {"PATH": os.environ.get("PATH", os.defpath)}
        cpus = config.resources.cpus if self._fence.driver is None else None
        made = os.urandom(16).hex()
        return Made(
            id=made,
            sandbox=box.id,
            uid=box.uid,
            name=config.name,
            attempt=config.attempt,
            created_unix_s=time.time(),
            image=config.image_name or config.image,
            image_id=config.image,
            definition=config.definition,
            labels=dict(config.labels),
            annotations=dict(config.annotations),
            cgroup=CgroupName.parse(box.parent).child(made).path(),
            argv=[*config.command, *config.args],
            env={**path, **mounts, **config.env, **mark(self._files.folder, made)},
            folder=config.working_dir,
            user=config.security.user,
            group=config.security.group,
            groups=list(config.security.groups),
            cpus=list(cpus or ()),
            oom_score_adj=config.resources.oom_score_adj,
            log=str(Path(sandbox.log_directory, config.log_path)) if config.log_path else "",
        )

    def _end(self, runs: Sequence[Run]) -> None:
        """SIGKILL to all of them at once; returns when the end of each is known."""
        live = [one for one in runs if one.started is not None and one.ended is None]
        first = {one.made.cgroup: one.started for one in live if one.started is not None}
        self._kept(lambda: self._fence.end(first))
        with self._changed:
            gone = self._changed.wait_for(lambda: all(one.ended is not None for one in live), _LEAVES_S)
        if not gone:
            left = ", ".join(one.made.id for one in live if one.ended is None)
            raise AnswerLostError("stop", f"no end of {left} is known {_LEAVES_S:g} s after SIGKILL")

    def _kept(self, work: Callable[[], object]) -> None:
        """Do what the kernel or the disk may refuse."""
        try:
            work()
        except (OSError, NodeallocError) as error:
            if isinstance(error, NodeallocError) and not isinstance(error, DecodeError):
                raise
            raise RuntimeRefusedError("processes", "FAILED", str(error)) from error
