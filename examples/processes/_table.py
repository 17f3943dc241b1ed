"""What there is: all sandboxes and containers, as they stand on disk, and who wants to hear of changes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

import attrs

from examples.processes._kept import Box, Ended, Files, Made, Started, boot_id
from nodealloc.errors import DecodeError
from nodealloc.podfacts import PodIdentity
from nodealloc.runtime import (
    ContainerRecord,
    ContainerReport,
    Listing,
    NoSuchRecordError,
    Oddity,
    PodListing,
    PodReport,
    RunState,
    RuntimeRefusedError,
    SandboxRecord,
    SandboxReport,
)

__all__ = ["Run", "Table"]

T = TypeVar("T")


@attrs.define
class Run:
    """A container, as it is now.

    Attributes:
        made: As it was made.
        started: Its process; None before there is one.
        ended: How that ended; None before it did.
        odd: Why nobody knows how far it is; "" where that is known.
    """

    made: Made
    started: Started | None = None
    ended: Ended | None = None
    odd: str = ""

    @property
    def state(self) -> RunState:
        """How far it has come."""
        if self.ended is not None:
            return RunState.EXITED
        return RunState.CREATED if self.started is None else RunState.RUNNING


class Table:
    """Sandboxes and containers by id; is changed by holding `changed`, which is notified of ends.

    Attributes:
        files: Where everything stands.
        changed: Held for every look and change.
        boxes: Sandboxes; `keep_box` and `drop_box` change them.
        runs: Containers; `keep_run` and `drop_run` change them.
        feeds: Who is told of changes.
    """

    def __init__(self, files: Files) -> None:
        self.files = files
        self.changed = threading.Condition()
        self.boxes: dict[str, Box] = {}
        self.runs: dict[str, Run] = {}
        self.feeds: dict[object, Callable[[], None]] = {}
        self._boxes_of: dict[str, dict[str, None]] = {}
        self._runs_in: dict[str, dict[str, None]] = {}
        self._listed: dict[str, PodListing] = {}
        self._due: dict[str, None] = {}
        self._odd: tuple[Oddity, ...] = ()
        self._lost: dict[str, tuple[str, str]] = {}
        self._boot = boot_id()

    def read(self) -> None:
        """Take over all that is on disk."""
        with self.changed:
            self._due.update(dict.fromkeys(uid for uid, _ in self._lost.values()))
            self._lost.clear()
            boxes, made = self._torn("sandboxes"), self._torn("containers")
            for name in self.files.names("containers"):
                if name not in self.runs:
                    self._lose(name, made.get(name) or self._gone("containers", name, "made"))
            for run in self.runs.values():
                if (name := run.made.sandbox) not in self.boxes:
                    self._lose(run.made.id, boxes.get(name) or self._gone("sandboxes", name), run.made.uid)
            mine = {what for _, what in self._lost.values()}
            self._odd = tuple(
                Oddity.of("", one) for one in (*boxes.values(), *made.values()) if one not in mine
            )
            names = [name for name, one in self.runs.items() if one.ended is None]
        for name in names:
            self.note(name)

    def _torn(self, kind: str) -> dict[str, str]:
        """Read sandboxes or containers; why some cannot be, by id."""
        odd: dict[str, str] = {}
        for name in list(self.files.names(kind)):
            try:
                if kind == "sandboxes":
                    if (box := self.files.read(Box, kind, name)) is not None:
                        self.keep_box(box)
                elif (
                    name not in self.runs and (made := self.files.read(Made, kind, name, "made")) is not None
                ):
                    self.keep_run(Run(made))
            except DecodeError as error:
                odd[name] = str(error)
        return odd

    def _gone(self, *path: str) -> str:
        return f"{self.files.folder.joinpath(*path)} is gone; put it back, or end the container's process"

    def _lose(self, name: str, error: str, uid: str = "") -> None:
        """Nobody can see a container that may run: its pod is not to be acted upon."""
        started, _ = self._torn_or(Started, name, "started")
        ended, _ = self._torn_or(Ended, name, "ended")
        if started is not None and started.is_alive and ended is None and (whose := uid or started.uid):
            self._lost[name] = whose, error
            self._due[whose] = None

    def _find(self, name: str) -> None:
        """A container that could not be seen has ended, and nobody need see it any more."""
        if name in self._lost and self._torn_or(Ended, name, "ended")[0] is not None:
            self._due[self._lost.pop(name)[0]] = None

    def note(self, name: str) -> None:
        """Read again how far a container is."""
        with self.changed:
            self._find(name)
            run = self.runs.get(name)
            if run is None:
                return
            self._read_how_far(run)
            self._look_again(run)
            self.changed.notify_all()
        self.tell()

    def _read_how_far(self, run: Run) -> None:
        """Its process and its end, as they stand on disk; a torn file says nothing by itself."""
        started, torn_start = self._torn_or(Started, run.made.id, "started")
        ended, torn_end = self._torn_or(Ended, run.made.id, "ended")
        box = self.boxes.get(run.made.sandbox)
        # Its process may run, and another one must not be started beside it.
        is_odd = torn_start and ended is None and box is not None and box.boot == self._boot
        is_over = ended is None and (torn_start or torn_end) and not (started and started.is_alive)
        run.odd = torn_start if is_odd else ""
        if is_over and not is_odd:
            ended = Ended(code=None, reason="Unknown", message=torn_start or torn_end)
        run.started, run.ended = started, ended

    def _torn_or(self, kind: type[T], container_id: str, name: str) -> tuple[T | None, str]:
        try:
            return self.files.read(kind, "containers", container_id, name), ""
        except DecodeError as error:
            return None, str(error)

    def keep_box(self, box: Box) -> None:
        """There is a sandbox, or it is another than before; `changed` is held."""
        self.boxes[box.id] = box
        self._boxes_of.setdefault(box.uid, {})[box.id] = None
        self._due[box.uid] = None

    def drop_box(self, box: Box) -> None:
        """A sandbox is gone; `changed` is held."""
        self.boxes.pop(box.id, None)
        mine = self._boxes_of.get(box.uid, {})
        mine.pop(box.id, None)
        if not mine:
            self._boxes_of.pop(box.uid, None)
        self._due[box.uid] = None

    def keep_run(self, run: Run) -> None:
        """There is a container; `changed` is held."""
        self.runs[run.made.id] = run
        self._runs_in.setdefault(run.made.sandbox, {})[run.made.id] = None
        self._look_again(run)

    def drop_run(self, run: Run) -> None:
        """A container is gone; `changed` is held."""
        self.runs.pop(run.made.id, None)
        within = self._runs_in.get(run.made.sandbox, {})
        within.pop(run.made.id, None)
        if not within:
            self._runs_in.pop(run.made.sandbox, None)
        self._look_again(run)

    def boxes_of(self, uid: str) -> list[Box]:
        """Sandboxes of a pod."""
        with self.changed:
            return [self.boxes[one] for one in self._boxes_of.get(uid, ())]

    def _look_again(self, run: Run) -> None:
        box = self.boxes.get(run.made.sandbox)
        if box is not None:
            self._due[box.uid] = None

    def tell(self) -> None:
        """Something changed."""
        with self.changed:
            feeds = list(self.feeds.values())
        for feed in feeds:
            feed()

    def run(self, call: str, name: str) -> Run:
        """A container.

        Raises:
            NoSuchRecordError: There is none of that id.
        """
        with self.changed:
            if (found := self.runs.get(name)) is None:
                raise NoSuchRecordError(call, name)
            return found

    def inside(self, sandbox_id: str) -> list[Run]:
        """Containers of a sandbox."""
        with self.changed:
            return [self.runs[one] for one in self._runs_in.get(sandbox_id, ())]

    def ready_box(self, call: str, sandbox_id: str) -> Box:
        """A sandbox that takes containers.

        Raises:
            NoSuchRecordError: There is none of that id.
            RuntimeRefusedError: It was stopped.
        """
        with self.changed:
            if (box := self.boxes.get(sandbox_id)) is None:
                raise NoSuchRecordError(call, sandbox_id)
            if not self.is_ready(box):
                raise RuntimeRefusedError(call, "STOPPED", f"sandbox {sandbox_id} is not ready")
            return box

    def is_ready(self, box: Box) -> bool:
        """Whether a sandbox takes containers."""
        return not box.stopped and box.boot == self._boot

    def listing(self) -> Listing:
        """See `Looks.listing`; what is listed of a pod is made anew when something of it changed."""
        with self.changed:
            for uid in self._due:
                boxes = self.boxes_of(uid)
                runs = [self._record(run) for box in boxes for run in self.inside(box.id)]
                odd = [one.odd for box in boxes for one in self.inside(box.id) if one.odd]
                odd += [what for whose, what in self._lost.values() if whose == uid]
                made = Listing.of(
                    [self._box_record(one) for one in boxes],
                    runs,
                    oddities=[Oddity.of(uid, one) for one in odd],
                )
                self._listed.pop(uid, None)
                self._listed.update(made.pods)
            self._due.clear()
            return Listing(pods=dict(self._listed), oddities=self._odd)

    def inspect(self, uid: str, /) -> PodReport:
        """See `Looks.inspect`."""
        with self.changed:
            boxes = self.boxes_of(uid)
            runs = [self._report(run) for box in boxes for run in self.inside(box.id)]
        reports = [
            SandboxReport(
                record=self._box_record(one),
                uses_host_network=one.host_network,
                # It hears on every address of the machine; this one is there on each.
                ips=None if one.host_network else ("127.0.0.1",),
            )
            for one in boxes
        ]
        return PodReport.of(uid, reports, runs)

    def _box_record(self, box: Box) -> SandboxRecord:
        return SandboxRecord(
            id=box.id,
            pod=PodIdentity(uid=box.uid, namespace=box.namespace, name=box.name),
            attempt=box.attempt,
            is_ready=self.is_ready(box),
            created_unix_s=box.created_unix_s,
            handler=box.handler,
            labels=box.labels,
            annotations=box.annotations,
        )

    def _record(self, run: Run) -> ContainerRecord:
        made, box = run.made, self.boxes[run.made.sandbox]
        return ContainerRecord(
            id=made.id,
            pod=PodIdentity(uid=box.uid, namespace=box.namespace, name=box.name),
            name=made.name,
            sandbox_id=made.sandbox,
            attempt=made.attempt,
            state=run.state,
            created_unix_s=made.created_unix_s,
            image=made.image,
            image_id=made.image_id,
            definition=made.definition,
            labels=made.labels,
            annotations=made.annotations,
        )

    def _report(self, run: Run) -> ContainerReport:
        ended = run.ended
        return ContainerReport(
            record=self._record(run),
            exit=ended.exit if ended else None,
            reason=ended.reason if ended else "",
            message=ended.message if ended else "",
            started_unix_s=run.started.unix_s if run.started else None,
            finished_unix_s=ended.unix_s if ended else None,
            log_path=run.made.log,
        )
