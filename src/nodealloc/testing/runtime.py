"""A container runtime that lives in memory and misbehaves on demand, and what every runtime is held to.

>>> from nodealloc.podfacts import PodIdentity
>>> from nodealloc.runtime import ContainerConfig, SandboxConfig
>>> runtime = FakeContainerRuntime()
>>> box = SandboxConfig(pod=PodIdentity(uid="u", namespace="default", name="web"), hostname="web")
>>> check_containers(runtime, box, ContainerConfig(name="app", image="busybox"))
>>> runtime.lose_answer("create_container")
>>> sandbox = runtime.run_sandbox(attrs.evolve(box, attempt=7))
>>> runtime.create_container(sandbox, ContainerConfig(name="app", image="busybox"), box)  # doctest: +ELLIPSIS
Traceback (most recent call last):
nodealloc...AnswerLostError: create_container may have been done, its answer is lost: ...
>>> [one.record.name for one in runtime.inspect("u").containers]
['app']
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

import attrs

from nodealloc._typed import typed, typed_but, typed_methods
from nodealloc.dsw_asw import Cancel
from nodealloc.podfacts import Exited, ExitUnknown
from nodealloc.runtime import (
    CommandResult,
    ContainerConfig,
    ContainerRecord,
    ContainerReport,
    Exit,
    LinuxResources,
    Listing,
    NameReservedError,
    NoSuchRecordError,
    Oddity,
    PodListing,
    PodReport,
    RunState,
    RuntimeHealth,
    RuntimeRefusedError,
    RuntimeUnavailableError,
    SandboxConfig,
    SandboxRecord,
    SandboxReport,
)
from nodealloc.testing._fake_health import WELL
from nodealloc.testing._fake_images import FakeImages
from nodealloc.testing._runtime_checks import (
    ContainerRuntime,
    check_containers,
    check_looks,
    check_sandboxes,
)
from nodealloc.testing._runtime_service_checks import check_command_runner, check_event_feed, check_images

__all__ = [
    "ContainerRuntime",
    "FakeContainerRuntime",
    "check_command_runner",
    "check_containers",
    "check_event_feed",
    "check_images",
    "check_looks",
    "check_sandboxes",
]

T = TypeVar("T")


@typed_methods
class FakeContainerRuntime(FakeImages):
    """A runtime in memory: `Looks`, `Sandboxes`, `Containers`, `Images`, `CommandRunner`.

    Thread-safe. A container runs from its start until `exit` ends it or it is
    stopped; in a sandbox that was stopped none is made or started. Calls are named by
    their methods: `inspect`, `create_container`.

    Attributes:
        calls: Each call with what it was about: `inspect uid`, in order.
        commands: What `run_command` answers, from a container's id and the command.
        health_told: What `health` answers.
        image_store: What `images` answers, by id.
        oddities: Told with each listing.

    Args:
        unix_s: The time, in Unix seconds; by default each look at it is one second later.
        images: Names of images that are there.
        sleep: How a slow call waits.
    """

    @typed
    def __init__(
        self,
        *,
        unix_s: Callable[[], float] | None = None,
        images: Sequence[str] = ("busybox",),
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        ticks = itertools.count(1_000_000)
        self._unix_s: Callable[[], float] = (lambda: float(next(ticks))) if unix_s is None else unix_s
        super().__init__(sleep, images)
        self._numbers = itertools.count(1)
        self._sandboxes: dict[str, SandboxReport] = {}
        self._containers: dict[str, ContainerReport] = {}
        self._of_pods: dict[str, dict[str, None]] = {}
        self._limits: dict[str, LinuxResources] = {}
        self._feeds: dict[int, Callable[[], None]] = {}
        self._broken = threading.Event()
        self.oddities: list[Oddity] = []
        self.commands: Callable[[str, Sequence[str]], CommandResult] = lambda _id, _argv: CommandResult(
            code=0
        )
        self.health_told: RuntimeHealth = WELL

    # What a test makes it do.

    def go_away(self, reason: str = "connection refused", /) -> None:
        """Answer nothing until `restart`; feeds of events break."""
        with self._lock:
            self._away = reason
            self._broken.set()

    @typed
    def restart(self, *, died: Sequence[str] = (), forgot: Sequence[str] = ()) -> None:
        """Come back, or be killed and come back.

        Args:
            died: Containers that ended meanwhile; nobody saw how.
            forgot: Sandboxes and containers whose records are gone.
        """
        with self._lock:
            self._broken.set()
            self._broken = threading.Event()
            self._away = ""
            for one in died:
                self._end(one, ExitUnknown(), "Unknown")
        self.lose_records(*forgot)

    def lose_records(self, *ids: str) -> None:
        """Forget sandboxes or containers without a word."""
        with self._lock:
            for one in ids:
                self._sandboxes.pop(one, None)
                self._containers.pop(one, None)

    @typed
    def exit(self, container_id: str, exit: Exit, /, *, reason: str = "") -> None:  # noqa: A002 - its name
        """A container ends by itself; raises `NoSuchRecordError` for one that is not there."""
        with self._lock:
            self._there("exit", container_id)
            word = "Completed" if exit == Exited(code=0) else "Error"
            self._end(container_id, exit, reason or word)
        self._tell()

    def put(self, report: ContainerReport | SandboxReport, /) -> None:
        """Something is there that nobody asked for."""
        with self._lock:
            self._note(report.record.pod.uid, report.record.id)
            if isinstance(report, SandboxReport):
                self._sandboxes[report.record.id] = report
            else:
                self._containers[report.record.id] = report
        self._tell()

    def limits(self, container_id: str, /) -> LinuxResources:
        """What a container was made with, and changed to."""
        self._there("limits", container_id)
        return self._limits[container_id]

    # What it is asked.

    def listing(self) -> Listing:
        """See `Looks.listing`."""

        def work() -> Listing:
            return Listing.of(
                [one.record for one in self._sandboxes.values()],
                [one.record for one in self._containers.values()],
                oddities=tuple(self.oddities),
            )

        return self._call("listing", "", work)

    def inspect(self, uid: str, listed: PodListing | None = None, /) -> PodReport:
        """See `Looks.inspect`."""
        return self._call("inspect", uid, lambda: PodReport.of(uid, *self._of(uid, listed)))

    def health(self) -> RuntimeHealth:
        """See `Looks.health`."""
        return self._call("health", "", lambda: self.health_told)

    def run_sandbox(self, config: SandboxConfig, /) -> str:
        """See `Sandboxes.run_sandbox`."""

        def work() -> str:
            name = (config.pod.uid, config.attempt)
            for one in self._of(config.pod.uid)[0]:
                if (one.record.pod.uid, one.record.attempt) == name:
                    raise NameReservedError("run_sandbox", one.record.id, "the name is reserved")
            made = f"sandbox-{next(self._numbers)}"
            record = SandboxRecord(
                id=made,
                pod=config.pod,
                attempt=config.attempt,
                created_unix_s=self._unix_s(),
                handler=config.handler,
                labels=dict(config.labels),
                annotations=dict(config.annotations),
            )
            self._note(config.pod.uid, made)
            ips = None if config.host_network else (f"10.0.0.{len(self._sandboxes) % 250 + 1}",)
            self._sandboxes[made] = SandboxReport(
                record=record, uses_host_network=config.host_network, ips=ips
            )
            return made

        return self._changed("run_sandbox", config.pod.uid, work)

    def stop_sandbox(self, sandbox_id: str, /) -> None:
        """See `Sandboxes.stop_sandbox`."""

        def work() -> None:
            self._stop_all(sandbox_id)
            if (box := self._sandboxes.get(sandbox_id)) is not None:
                record = attrs.evolve(box.record, is_ready=False)
                self._sandboxes[sandbox_id] = attrs.evolve(box, record=record, ips=None)

        self._changed("stop_sandbox", sandbox_id, work)

    def remove_sandbox(self, sandbox_id: str, /) -> None:
        """See `Sandboxes.remove_sandbox`."""

        def work() -> None:
            self._sandboxes.pop(sandbox_id, None)
            for one in [one for one in self._containers.values() if one.record.sandbox_id == sandbox_id]:
                del self._containers[one.record.id]

        self._changed("remove_sandbox", sandbox_id, work)

    def create_container(self, sandbox_id: str, config: ContainerConfig, sandbox: SandboxConfig, /) -> str:
        """See `Containers.create_container`."""

        def work() -> str:
            if not self._is_ready(sandbox_id):
                raise NoSuchRecordError("create_container", sandbox_id)
            name = (sandbox_id, config.name, config.attempt)
            for one in self._of(sandbox.pod.uid)[1]:
                if (one.record.sandbox_id, one.record.name, one.record.attempt) == name:
                    raise NameReservedError("create_container", one.record.id, "the name is reserved")
            image = self._image(config.image)
            made = f"container-{next(self._numbers)}"
            self._note(sandbox.pod.uid, made)
            self._containers[made] = ContainerReport(
                record=ContainerRecord(
                    id=made,
                    pod=sandbox.pod,
                    name=config.name,
                    sandbox_id=sandbox_id,
                    attempt=config.attempt,
                    created_unix_s=self._unix_s(),
                    image=config.image,
                    image_id=image,
                    definition=config.definition,
                    labels=dict(config.labels),
                    annotations=dict(config.annotations),
                ),
                log_path=config.log_path and f"{sandbox.log_directory}/{config.log_path}",
            )
            self._limits[made] = config.resources
            return made

        return self._changed("create_container", f"{sandbox_id}/{config.name}", work)

    def start_container(self, container_id: str, /) -> None:
        """See `Containers.start_container`."""

        def work() -> None:
            one = self._there("start_container", container_id)
            if (state := one.record.state) is not RunState.CREATED:
                raise RuntimeRefusedError("start_container", "UNKNOWN", f"{container_id} is {state.value}")
            if not self._is_ready(box := one.record.sandbox_id):
                self._ended(one, Exited(code=128), "StartError")
                raise RuntimeRefusedError("start_container", "UNKNOWN", f"sandbox {box} is not ready")
            record = attrs.evolve(one.record, state=RunState.RUNNING)
            self._containers[container_id] = attrs.evolve(one, record=record, started_unix_s=self._unix_s())

        self._changed("start_container", container_id, work)

    def stop_container(self, container_id: str, grace_s: float, /) -> None:
        """See `Containers.stop_container`; it ends by TERM where it has any grace, else by KILL."""
        end = Exited(code=143, signal=15) if grace_s > 0 else Exited(code=137, signal=9)
        self._changed("stop_container", container_id, lambda: self._end(container_id, end, "Error"))

    def update_container(self, container_id: str, resources: LinuxResources, /) -> None:
        """See `Containers.update_container`."""

        def work() -> None:
            self._there("update_container", container_id)
            before = self._limits.get(container_id, LinuxResources())
            changed = {
                field.name: value
                for field in attrs.fields(LinuxResources)
                if (value := getattr(resources, field.name)) not in (None, {})
            }
            self._limits[container_id] = attrs.evolve(before, **changed)

        self._changed("update_container", container_id, work)

    def remove_container(self, container_id: str, /) -> None:
        """See `Containers.remove_container`."""

        def work() -> None:
            self._containers.pop(container_id, None)
            self._limits.pop(container_id, None)

        self._changed("remove_container", container_id, work)

    @typed_but("timeout_s")
    def run_command(self, container_id: str, command: Sequence[str], timeout_s: float, /) -> CommandResult:
        """See `CommandRunner.run_command`; `commands` answers, whatever the time."""
        del timeout_s

        def work() -> CommandResult:
            one = self._there("run_command", container_id)
            if one.record.state is not RunState.RUNNING:
                raise RuntimeRefusedError("run_command", "UNKNOWN", f"{container_id} does not run")
            return self.commands(container_id, tuple(command))

        return self._call("run_command", container_id, work)

    def follow(self, on_event: Callable[[], None], cancel: Cancel, /) -> None:
        """See `Looks.follow`."""
        self._call("follow", "", lambda: None)
        number = next(self._numbers)
        with self._lock:
            self._feeds[number] = on_event
            broken = self._broken
        try:
            on_event()
            while not cancel.wait(0.02):
                if broken.is_set():
                    raise RuntimeUnavailableError("follow", "the feed broke")
        finally:
            with self._lock:
                self._feeds.pop(number, None)

    def _note(self, uid: str, id_: str) -> None:
        self._of_pods.setdefault(uid, {})[id_] = None

    def _of(
        self, uid: str, listed: PodListing | None = None
    ) -> tuple[list[SandboxReport], list[ContainerReport]]:
        """No more than has to be told, for those who forget what they had before."""
        mine = self._of_pods.get(uid, {})
        for gone in [id_ for id_ in mine if id_ not in self._containers and id_ not in self._sandboxes]:
            del mine[gone]
        ids = [id_ for id_ in mine if listed is None or id_ in listed.marks]
        boxes = [self._sandboxes[id_] for id_ in ids if id_ in self._sandboxes]
        return boxes, [self._containers[id_] for id_ in ids if id_ in self._containers]

    def _changed(self, call: str, about: str, work: Callable[[], T]) -> T:
        try:
            return self._call(call, about, work)
        finally:
            self._tell()

    def _tell(self) -> None:
        for on_event in tuple(self._feeds.values()):
            on_event()

    def _is_ready(self, sandbox_id: str) -> bool:
        return (box := self._sandboxes.get(sandbox_id)) is not None and box.record.is_ready

    def _there(self, call: str, container_id: str) -> ContainerReport:
        if container_id not in self._containers:
            raise NoSuchRecordError(call, container_id)
        return self._containers[container_id]

    def _end(self, container_id: str, exit: Exit, reason: str) -> None:  # noqa: A002 - its name
        one = self._containers.get(container_id)
        if one is not None and one.record.state not in (RunState.EXITED, RunState.CREATED):
            self._ended(one, exit, reason)

    def _ended(self, one: ContainerReport, exit: Exit, reason: str) -> None:  # noqa: A002 - its name
        record = attrs.evolve(one.record, state=RunState.EXITED)
        self._containers[record.id] = attrs.evolve(
            one, record=record, exit=exit, reason=reason, finished_unix_s=self._unix_s()
        )

    def _stop_all(self, sandbox_id: str) -> None:
        for one in tuple(self._containers.values()):
            if one.record.sandbox_id == sandbox_id:
                self._end(one.record.id, Exited(code=137, signal=9), "Error")
