"""A container runtime over CRI: every port of `nodealloc.runtime`."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from nodealloc import _attrs as attrs
from nodealloc._arguments import within, wrong
from nodealloc._typed import typed, typed_but, typed_fields, typed_methods
from nodealloc.cri import _codec as codec
from nodealloc.cri import _requests as requests
from nodealloc.cri._grpc import Line
from nodealloc.cri._listed import Listed
from nodealloc.cri._shared import SharedAnswer
from nodealloc.cri._survivors import Survivors, ticks_now
from nodealloc.dsw_asw import Cancel
from nodealloc.errors import DecodeError, NodeallocError
from nodealloc.podfacts import Exited, ExitUnknown
from nodealloc.runtime import (
    OOM_KILLED,
    AnswerLostError,
    CgroupDriverKind,
    CommandResult,
    CommandTimedOutError,
    ContainerConfig,
    ContainerReport,
    ImageRecord,
    LinuxResources,
    Listing,
    NoSuchRecordError,
    PodListing,
    PodReport,
    PullCredentials,
    RuntimeHealth,
    RuntimeRefusedError,
    SandboxConfig,
    SandboxReport,
)

__all__ = ["CriDeadlines", "CriRuntime"]

_KILLED = 137


@typed_fields
@attrs.frozen(kw_only=True)
class CriDeadlines:
    """How long a runtime may take, in seconds.

    Attributes:
        look_s: To list, inspect, and say how it is.
        change_s: To make, start or remove something; stopping has the grace on top.
        pull_s: To get an image, however large; one that was cut short begins anew.

    Source: kubelet ``runtime-request-timeout`` (2 min; 4 min for a sandbox).
    """

    look_s: float = attrs.field(default=120.0, validator=within(0, above=True))
    change_s: float = attrs.field(default=240.0, validator=within(0, above=True))
    pull_s: float = attrs.field(default=14_400.0, validator=within(0, above=True))


_SAME_COMMANDS: Final = 4
"""So often the same command may run in a container at once: its probes, and a hook, ask what they like."""
_SAME_INSPECTIONS: Final = 4
"""So often the same may be listed or inspected at once: a pod is watched while its containers are made."""
_SAME_STOPS: Final = 4
"""So often a container may be asked to end at once: whoever gives it less time does not wait for more."""
_WHO_AGAIN_S: Final = 60.0
_LEFT_S: Final = 1.0
"""How long the runtime may take to say where the processes of a command that timed out are."""


@attrs.frozen
class _Who:
    """What does not change while a runtime runs; when it was asked, and after which outages."""

    version: bytes
    cgroup_driver: CgroupDriverKind | None
    outages: tuple[tuple[float, float], ...]
    asked_s: float


def _socket_of(path: str | Path) -> str | Path:
    scheme, colon, rest = str(path).partition(":")
    if not colon or "/" in scheme:
        return path
    at = rest.removeprefix("//")
    if scheme != "unix" or not at.startswith("/"):
        raise wrong(
            "CriRuntime: path", path, "the path of a Unix socket, such as /run/x.sock or unix:///run/x.sock"
        )
    return at


@typed_methods
class CriRuntime:
    """A runtime that speaks CRI v1 on a Unix socket: containerd, CRI-O. Thread-safe.

    `Looks`, `Sandboxes`, `Containers`, `Images` and `CommandRunner`.
    Nothing is dialled before the first call, and a runtime that was restarted is
    dialled anew. Of calls of one kind about one target a single one is under
    way, of commands, stops and looks at what there is a few: another one is refused at once, so
    that nothing piles up behind a container that hangs. Images are everybody's: who asks for them while an
    answer is under way shares the next one.

    Args:
        path: The runtime's socket; `unix://` before it may stand there, as in a KubeletConfiguration.
        deadlines: How long it may take.
        unix_s: The time, in Unix seconds: a record from the future is told, and gets no time.
        tells_starts: Whether `follow` tells of what was made or started as well. Who makes and starts
            all that there is knows it from its own calls, and is told of ends alone.

    Raises:
        ConfigurationError: An address that is no Unix socket's, such as `tcp://host`.
    """

    @typed
    def __init__(
        self,
        path: str | Path,
        /,
        *,
        deadlines: CriDeadlines = CriDeadlines(),
        unix_s: Callable[[], float] = time.time,
        tells_starts: bool = True,
    ) -> None:
        self._counts = None if tells_starts else codec.is_end
        self._deadlines = deadlines
        self._unix_s = unix_s
        self._line = Line(_socket_of(path), unix_s=unix_s)
        self._survivors = Survivors()
        self._listed = Listed()
        self._who: _Who | None = None
        self._images: SharedAnswer[Sequence[ImageRecord]] = SharedAnswer(self._listed_images)

    def close(self) -> None:
        """End all calls but followed events, which their `Cancel` ends. May be repeated."""
        self._line.close()

    def listing(self) -> Listing:
        """See `Looks.listing`."""
        boxes, runs = self._inspected("ListPodSandbox", b""), self._inspected("ListContainers", b"")
        self._listed, listing = self._listed.read(boxes, runs, now_unix_s=self._unix_s())
        return listing

    def inspect(self, uid: str, listed: PodListing | None = None, /) -> PodReport:
        """See `Looks.inspect`; what vanishes meanwhile is left out."""
        found = self._all_of(uid) if listed is None else listed
        reports = (self._sandbox(one.id) for one in found.sandboxes)
        ended = (self._container(one.id, one.sandbox_id) for one in found.containers)
        return PodReport.of(
            uid, [one for one in reports if one is not None], [one for one in ended if one is not None]
        )

    def _all_of(self, uid: str) -> PodListing:
        """What there is of one pod."""
        of_boxes, of_runs = requests.encode_of_pod(uid)
        boxes, odd = codec.decode_sandboxes(self._inspected("ListPodSandbox", of_boxes, uid))
        runs, odd_runs = codec.decode_containers(self._inspected("ListContainers", of_runs, uid))
        for oddity in (*odd, *odd_runs):
            raise RuntimeRefusedError("inspect", "BAD ANSWER", oddity.what)
        return PodListing(uid=uid, sandboxes=tuple(boxes), containers=tuple(runs))

    def health(self) -> RuntimeHealth:
        """See `Looks.health`; an old runtime does not say who makes its cgroups.

        Who it is, and that, stay as they are while it runs: both are asked again once a
        minute, and after it was away.
        """
        status = self._look("Status", b"")
        now_s, since, who = time.monotonic(), self._line.outages, self._who
        if who is None or who.outages != since or now_s - who.asked_s > _WHO_AGAIN_S:
            version = self._look("Version", b"")
            self._who = who = _Who(version, self._cgroup_driver(), since, now_s)
        return attrs.evolve(codec.decode_health(status, who.version), cgroup_driver=who.cgroup_driver)

    def _cgroup_driver(self) -> CgroupDriverKind | None:
        try:
            return codec.decode_cgroup_driver(self._look("RuntimeConfig", b""))
        except RuntimeRefusedError:
            return None

    def run_sandbox(self, config: SandboxConfig, /) -> str:
        """See `Sandboxes.run_sandbox`."""
        data = self._change(
            "RunPodSandbox",
            requests.encode_run(config),
            (config.pod.uid, config.attempt),
            config.pod.full_name,
        )
        return codec.decode_id(data)

    def stop_sandbox(self, sandbox_id: str, /) -> None:
        """See `Sandboxes.stop_sandbox`."""
        self._end("StopPodSandbox", sandbox_id)

    def remove_sandbox(self, sandbox_id: str, /) -> None:
        """See `Sandboxes.remove_sandbox`."""
        self._end("RemovePodSandbox", sandbox_id)

    def create_container(self, sandbox_id: str, config: ContainerConfig, sandbox: SandboxConfig, /) -> str:
        """See `Containers.create_container`."""
        request = requests.encode_create(sandbox_id, config, sandbox)
        about = (sandbox_id, config.name, config.attempt)
        shown = f"{sandbox.pod.full_name}/{config.name}"
        return codec.decode_id(self._change("CreateContainer", request, about, shown))

    def start_container(self, container_id: str, /) -> None:
        """See `Containers.start_container`."""
        self._change("StartContainer", requests.encode_about("StartContainer", container_id), container_id)

    @typed
    def stop_container(self, container_id: str, grace_s: float, /) -> None:
        """See `Containers.stop_container`."""
        request = requests.encode_stop(container_id, grace_s)
        limit_s = self._deadlines.change_s + grace_s
        try:
            self._line.call(
                "StopContainer", request, limit_s, about=container_id, changes=True, at_once=_SAME_STOPS
            )
        except NoSuchRecordError:
            return

    def update_container(self, container_id: str, resources: LinuxResources, /) -> None:
        """See `Containers.update_container`."""
        request = requests.encode_update(container_id, resources)
        self._change("UpdateContainerResources", request, container_id)

    def remove_container(self, container_id: str, /) -> None:
        """See `Containers.remove_container`."""
        self._end("RemoveContainer", container_id)

    def images(self) -> Sequence[ImageRecord]:
        """See `Images.images`; who asks at the same time as others shares their answer."""
        return self._images.get()

    def _listed_images(self) -> Sequence[ImageRecord]:
        data = self._line.call("ListImages", b"", self._deadlines.look_s, service="ImageService")
        return codec.decode_images(data)

    def pull_image(
        self, name: str, credentials: PullCredentials | None = None, sandbox: SandboxConfig | None = None, /
    ) -> str:
        """See `Images.pull_image`."""
        request, limit_s = requests.encode_pull(name, credentials, sandbox), self._deadlines.pull_s
        return codec.decode_id(
            self._line.call("PullImage", request, limit_s, about=name, changes=True, service="ImageService")
        )

    def remove_image(self, id: str, /) -> None:  # noqa: A002 - the port's name
        """See `Images.remove_image`."""
        request, limit_s = requests.encode_image(id), self._deadlines.change_s
        try:
            self._line.call("RemoveImage", request, limit_s, about=id, changes=True, service="ImageService")
        except NoSuchRecordError:
            return

    @typed_but("timeout_s")
    def run_command(self, container_id: str, command: Sequence[str], timeout_s: float, /) -> CommandResult:
        """See `CommandRunner.run_command`; seconds are rounded up to whole ones."""
        request = requests.encode_command(container_id, command, timeout_s)
        about, began_ticks = (container_id, tuple(command)), ticks_now()
        try:
            # The runtime ends it after its time; the call itself has a little longer to say so.
            data = self._line.call(
                "ExecSync",
                request,
                timeout_s + 5.0,
                about=about,
                shown=container_id,
                changes=True,
                at_once=_SAME_COMMANDS,
            )
        except AnswerLostError as error:
            if "deadline" not in error.reason.lower() and "timeout" not in error.reason.lower():
                raise
            left = self._left(container_id, began_ticks)
            raise CommandTimedOutError(container_id, timeout_s, survivors=left) from error
        return codec.decode_command(data)

    def survivors(self) -> Mapping[str, int]:
        """Container id to how many processes live on in it of commands that ran out of their time.

        The runtime ends the command itself, not what forked away from it; that ends with
        the container. Only what is seen from here is counted: the runtime's processes have
        to be in this `/proc`.
        """
        return self._survivors.counts()

    def follow(self, on_event: Callable[[], None], cancel: Cancel, /) -> None:
        """See `Looks.follow`."""
        self._line.follow("GetContainerEvents", on_event, cancel, counts=self._counts)

    def confined(self, container_id: str, /) -> codec.Confined:
        """What a container is confined to, as the runtime wrote it down."""
        data = self._line.call(
            "ContainerStatus",
            requests.encode_confined(container_id),
            self._deadlines.look_s,
            about=(container_id, "notes"),
            shown=container_id,
        )
        return codec.decode_confined(data)

    def _left(self, container_id: str, began_ticks: int) -> int | None:
        request = requests.encode_confined(container_id)
        about = (container_id, "left")
        try:
            data = self._line.call("ContainerStatus", request, _LEFT_S, about=about, shown=container_id)
            pid = codec.decode_confined(data).pid
        except (NodeallocError, ValueError):
            return None  # the count is worth no second error
        return self._survivors.note(container_id, pid, began_ticks) if pid else None

    def _look(self, name: str, request: bytes) -> bytes:
        return self._line.call(name, request, self._deadlines.look_s)

    def _inspected(self, name: str, request: bytes, about: str = "") -> bytes:
        limit_s = self._deadlines.look_s
        return self._line.call(name, request, limit_s, about=about, at_once=_SAME_INSPECTIONS)

    def _change(self, name: str, request: bytes, about: object, shown: str = "") -> bytes:
        limit_s = self._deadlines.change_s
        return self._line.call(name, request, limit_s, about=about, shown=shown, changes=True)

    def _end(self, name: str, about: str) -> None:
        try:
            self._change(name, requests.encode_about(name, about), about)
        except NoSuchRecordError:  # older runtimes say so, newer ones say nothing
            return

    def _sandbox(self, sandbox_id: str) -> SandboxReport | None:
        request = requests.encode_about("PodSandboxStatus", sandbox_id)
        try:
            return codec.decode_sandbox(self._inspected("PodSandboxStatus", request, sandbox_id))
        except NoSuchRecordError:
            return None
        except ValueError as error:
            raise _nonsense("PodSandboxStatus", sandbox_id, error) from error

    def _container(self, container_id: str, sandbox_id: str) -> ContainerReport | None:
        request = requests.encode_about("ContainerStatus", container_id)
        try:
            report = codec.decode_container(self._inspected("ContainerStatus", request, container_id))
        except NoSuchRecordError:
            return None
        except ValueError as error:
            raise _nonsense("ContainerStatus", container_id, error) from error
        if report is None:
            return None
        record = attrs.evolve(report.record, sandbox_id=sandbox_id)
        return self._doubted(attrs.evolve(report, record=record))

    def _doubted(self, report: ContainerReport) -> ContainerReport:
        """A kill that nobody can have seen: the runtime was away when it is said to have happened."""
        ended_s = report.finished_unix_s
        if not isinstance(report.exit, Exited) or report.exit.code != _KILLED or ended_s is None:
            return report
        if report.reason == OOM_KILLED:
            return report
        if any(away_s <= ended_s <= back_s for away_s, back_s in self._line.outages):
            return attrs.evolve(report, exit=ExitUnknown())
        return report


def _nonsense(name: str, about: str, error: ValueError) -> RuntimeRefusedError | DecodeError:
    if isinstance(error, DecodeError):
        return error
    return RuntimeRefusedError(name, "BAD ANSWER", f"{about}: {error}")
