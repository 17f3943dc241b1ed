"""What is seen from outside while a story plays: containers, cgroups, what the agent tells, what is left."""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from nodealloc.cgroups import CgroupName, detect
from nodealloc.cri import CriDeadlines, CriRuntime
from nodealloc.errors import NodeallocError
from nodealloc.podfacts import Exited
from nodealloc.runtime import ContainerReport, RunState, SandboxReport
from tests.stories.api import ApiServer
from tests.stories.machine import AGENT_ROOT, LOGS
from tests.stories.seen import Contained, Names, Told

__all__ = ["Watch"]

_PERIOD_S: Final = 0.1
_CGROUPS_EVERY: Final = 5
_FILES: Final[Mapping[str, tuple[str, str]]] = {
    "cpu_shares": ("cpu", "cpu.shares"),
    "cfs_quota_us": ("cpu", "cpu.cfs_quota_us"),
    "cfs_period_us": ("cpu", "cpu.cfs_period_us"),
    "memory_limit": ("memory", "memory.limit_in_bytes"),
    "cpuset": ("cpuset", "cpuset.cpus"),
    "pids_max": ("pids", "pids.max"),
}
_NO_LIMIT: Final = 1 << 62


class Watch:
    """Looks ten times a second, in a thread.

    Attributes:
        contained: What the runtime had, by id.
        told: What the agent told, in order.
        facts: Of cgroups, by the name that stories give them, with pods' uids in place of names.
        names: Pods by the names that stories give them.
        faults: What went wrong in looking.
    """

    def __init__(
        self, socket: Path, status: Path, cgroup: CgroupName, began_s: float, api: ApiServer | None = None
    ) -> None:
        self._api = api
        self.contained: dict[str, Contained] = {}
        self.told: list[Told] = []
        self.facts: dict[str, list[dict[str, object]]] = {}
        self.names = Names(places={f"/{cgroup.parts[0]}/": "/CGROUPROOT/"})
        self.faults: list[str] = []
        self._runtime = CriRuntime(socket, deadlines=CriDeadlines(look_s=5.0))
        self._status, self._read = status, 0
        self._cgroup, self._mounts = cgroup, detect().layout
        self._began_s, self._ahead_s = began_s, time.time() - time.monotonic()
        self._overlooked: set[str] = set()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._look_at_cgroups()
        self._thread.start()

    def stop(self) -> None:
        """Look a last time."""
        self._over.set()
        self._thread.join(30)
        self._look()
        self._listen()
        for name in self._overlooked & self.contained.keys():
            self.contained[name].ended = None

    def overlook(self, *names: str) -> None:
        """Somebody removes these as they run: what they look like on the way is nobody's."""
        self._overlooked.update(names)

    def cgroups(self) -> dict[str, list[dict[str, object]]]:
        """Facts of cgroups by the names of pods, which may have been seen later than the cgroups."""
        found: dict[str, list[dict[str, object]]] = {}
        for name, facts in self.facts.items():
            above, mark, uid = name.partition("/pod:")
            pod, _, run = name.partition("/")
            named = f"{above}/pod:{self.names.of(uid)}" if mark else f"{self.names.of(pod)}/{run}"
            found[named if mark or (run and pod in self.names.by_uid) else name] = facts
        return found

    def at(self, monotonic_s: float) -> float:
        """Seconds since the first step."""
        return round(monotonic_s - self._began_s, 2)

    def left(self) -> dict[str, object]:
        """What is there at the end."""
        there = [one for one in self.contained.values() if not one.removed]
        runs = sorted([self.names.of(one.pod), one.name, one.attempt, one.state] for one in there if one.name)
        boxes = sorted([self.names.of(one.pod), one.attempt, one.state] for one in there if not one.name)
        found: dict[str, object] = {"containers": runs, "sandboxes": boxes}
        with contextlib.suppress(NodeallocError):
            found["images"] = sorted(
                name for one in self._runtime.images() for name in one.names if "@sha256" not in name
            )
        found["log_files"] = sorted(map(self.names.plain, _tree(LOGS)))
        links = Path("/var/log/containers")
        found["log_links"] = sorted(
            [self.names.plain(one.name), self.names.plain(str(one.readlink()))]
            for one in links.iterdir()
            if one.is_symlink()
        )
        found["pod_dirs"] = sorted(map(self.names.plain, _tree(AGENT_ROOT / "pods")))
        found["pod_cgroups"] = self._pod_cgroups()
        return found

    def _run(self) -> None:
        turn = 0
        while not self._over.wait(_PERIOD_S):
            turn += 1
            self._listen()
            with contextlib.suppress(NodeallocError):  # the runtime is away
                self._look()
            if turn % _CGROUPS_EVERY == 0:
                self._look_at_cgroups()

    def _listen(self) -> None:
        """What the agent has told since the last time: whole lines of its status file."""
        try:
            data = self._status.read_bytes()
        except FileNotFoundError:
            return
        whole = data[self._read :].rpartition(b"\n")[0]
        for line in filter(None, whole.splitlines()):
            try:
                said = json.loads(line)
                at = self.at(float(said["unix_s"]) - self._ahead_s)
                full = f"{said['namespace']}/{said['name']}"
                status = said.get("status")
            except (ValueError, KeyError) as error:
                self.faults.append(f"a line of the status file: {error!r}")
                continue
            self.names.see(said["uid"], full)
            told = Told(at=at, uid=said["uid"], name=full, status=status)
            if self._api is not None and said.get("finished"):
                self._api.finished(told.uid)
            elif not said.get("finished") and not (self._api is not None and self._api.take(told)):
                self.told.append(told)
        self._read += len(whole) + 1 if whole else 0
        if self._api is not None:
            self._api.hear()

    def _look(self) -> None:
        listing = self._runtime.listing()
        there: set[str] = set()
        for uid, pod in listing.pods.items():
            there.update(pod.marks)
            if any(not self._is_known(one, state) for one, state in pod.marks.items()):
                report = self._runtime.inspect(uid)
                # What came since the listing is there, too.
                there.update(one.record.id for one in report.sandboxes)
                there.update(one.record.id for one in report.containers)
                for box in report.sandboxes:
                    self._see_box(uid, box)
                for run in report.containers:
                    self._see_run(uid, run)
        for name, one in self.contained.items():
            if name not in there and not one.removed:
                one.removed = True  # whoever is removed as it runs is not seen to end

    def _is_known(self, name: str, state: RunState) -> bool:
        known = self.contained.get(name)
        word = {"not_ready": "exited", "ready": "running"}.get(known.state, known.state) if known else ""
        return word == state.value

    def _see_box(self, uid: str, report: SandboxReport) -> None:
        record = report.record
        known = self.contained.get(record.id)
        if known is None:
            self.names.see(uid, f"{record.pod.namespace}/{record.pod.name}")
            known = self.contained[record.id] = Contained(pod=uid, name="", attempt=record.attempt)
            known.started = self._unix(record.created_unix_s)
        known.state = "ready" if record.is_ready else "not_ready"
        if not record.is_ready and known.ended is None:
            known.ended = self.at(time.monotonic())

    def _see_run(self, uid: str, report: ContainerReport) -> None:
        record = report.record
        known = self.contained.setdefault(
            record.id, Contained(pod=uid, name=record.name, attempt=record.attempt)
        )
        known.state = record.state.value
        if report.started_unix_s:
            known.started = self._unix(report.started_unix_s)
        if report.exit is not None and known.ended is None:
            known.ended = self._unix(report.finished_unix_s)
            code = report.exit.code if isinstance(report.exit, Exited) else 255
            known.how = f"{code} {report.reason}"
            if report.reason == "StartError":
                known.started = None

    def _unix(self, unix_s: float | None) -> float | None:
        return None if unix_s is None else self.at(unix_s - self._ahead_s)

    def _look_at_cgroups(self) -> None:
        top = self._cgroup.child("kubepods")
        for name in (top, top.child("burstable"), top.child("besteffort")):
            self._note("/".join(name.parts[1:]), self._values(name))
        for above in (top, top.child("burstable"), top.child("besteffort")):
            for pod in self._below(above):
                uid = pod.parts[-1].removeprefix("pod")
                if not pod.parts[-1].startswith("pod"):
                    continue
                where = "/".join(above.parts[1:])
                self._note(f"{where}/pod:{uid}", self._values(pod))
                for run in self._below(pod):
                    known = self.contained.get(run.parts[-1])
                    if known is not None and known.name and known.state == "running":
                        facts = self._values(run)
                        facts["oom_score_adj"] = self._score(run)
                        facts["parent"] = self.names.plain("/CGROUPROOT/" + "/".join(pod.parts[1:]))
                        self._note(f"{known.pod}/{known.name}@{known.attempt}", facts)

    def _note(self, name: str, facts: dict[str, object]) -> None:
        if any(value is None for value in facts.values()):
            return  # it goes just now
        known = self.facts.setdefault(name, [])
        if not known or {**known[-1], "at": 0} != {**facts, "at": 0}:
            known.append({"at": self.at(time.monotonic()), **facts})

    def _values(self, name: CgroupName) -> dict[str, object]:
        found: dict[str, object] = {}
        for key, (controller, file) in _FILES.items():
            text = self._text(name, controller, file)
            if text is None or key in ("cpuset", "pids_max"):
                found[key] = text
            else:
                found[key] = -1 if int(text) >= _NO_LIMIT // 1 or int(text) < 0 else int(text)
        return found

    def _score(self, name: CgroupName) -> int | None:
        pids = (self._text(name, "cpu", "cgroup.procs") or "").split()
        try:
            return int(Path(f"/proc/{pids[0]}/oom_score_adj").read_text()) if pids else None
        except OSError:
            return None

    def _text(self, name: CgroupName, controller: str, file: str) -> str | None:
        mount = self._mounts.mount_of(controller)
        if mount is None:
            return None
        try:
            return Path(self._mounts.directory(mount, name), file).read_text().strip()
        except OSError:
            return None

    def _below(self, name: CgroupName) -> list[CgroupName]:
        mount = self._mounts.mount_of("cpu")
        try:
            return (
                []
                if mount is None
                else [
                    name.child(one.name)
                    for one in os.scandir(self._mounts.directory(mount, name))
                    if one.is_dir()
                ]
            )
        except OSError:
            return []

    def _pod_cgroups(self) -> list[str]:
        top = self._cgroup.child("kubepods")
        mount = self._mounts.mount_of("cpu")
        if mount is None or not Path(self._mounts.directory(mount, top)).exists():
            return []
        found = ["kubepods"]
        for above in (top, top.child("burstable"), top.child("besteffort")):
            pods = [one for one in self._below(above) if one.parts[-1].startswith("pod")]
            found += ["/".join([*above.parts[1:], self.names.plain(one.parts[-1])]) for one in pods]
        return sorted(found)


def _tree(top: Path) -> list[str]:
    """Files, links to folders (`@`) and empty folders (`/`) below one, as stories tell them."""
    found: list[str] = []
    for at, folders, files in os.walk(top):
        here = Path(at)
        for name in (*files, *(one for one in folders if (here / one).is_symlink())):
            path = here / name
            found.append(str(path.relative_to(top)) + ("@" if name in folders else ""))
        if here != top and not folders and not files:
            found.append(f"{here.relative_to(top)}/")
    return found
