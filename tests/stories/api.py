"""The part of an API server in a story: pods that are made, changed and deleted there, and what it shows."""

from __future__ import annotations

import copy
import json
import time
import uuid
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, cast

import attrs

from nodealloc.podfacts import ContainerRunning, status_from_manifest, status_to_manifest
from nodealloc.podstatus import merge_status
from tests.stories.seen import Told

__all__ = ["ApiServer"]

Json = object
Object = dict[str, Json]

_KEYS: Final = ("name", "type", "uid", "ip", "containerPort", "mountPath")
"""By one of these the entries of a list are told apart."""
_TRIES_S: Final = 10.0
_FINAL: Final = frozenset({"Failed", "Succeeded"})


@attrs.define
class ApiServer:
    """Pods by uid, in a file that an agent reads, and other objects in one beside it (`objects.json`).

    `told` is what a client of the server would have seen.

    Attributes:
        file: Where they lie for the agent.
        at: From the clock of this machine to seconds since the first step.
        told: What was seen of pods, in order.
        is_away: Whether nobody can reach it.
    """

    file: Path
    at: Callable[[float], float]
    told: list[Told] = attrs.field(factory=list[Told], init=False)
    is_away: bool = attrs.field(default=False, init=False)
    _pods: dict[str, Object] = attrs.field(factory=dict[str, Object], init=False)
    _objects: list[Object] = attrs.field(factory=list[Object], init=False)
    _known: set[str] = attrs.field(factory=set[str], init=False)
    _finished: set[str] = attrs.field(factory=set[str], init=False)
    _late: list[Told] = attrs.field(factory=list[Told], init=False)
    _tries_at: float = attrs.field(default=0.0, init=False)

    def __attrs_post_init__(self) -> None:
        self._write()

    def create(self, manifest: Mapping[str, Json], /) -> None:
        """A pod comes, as a server takes it up."""
        pod = copy.deepcopy(dict(manifest))
        meta = _part(pod, "metadata")
        uid = str(uuid.uuid4())
        meta.update(uid=uid, namespace=meta.get("namespace", "default"), creationTimestamp=_stamp(0))
        spec = _part(pod, "spec")
        spec.setdefault("terminationGracePeriodSeconds", 30)
        pod["status"] = {"phase": "Pending"}
        self._pods[uid] = pod
        self._known.add(uid)
        self._write()

    def put(self, manifest: Mapping[str, Json], /) -> None:
        """A config map or a secret comes, or takes the place of another one."""
        made = copy.deepcopy(dict(manifest))
        _part(made, "metadata").setdefault("namespace", "default")
        same = (made.get("kind"), _part(made, "metadata")["namespace"], _part(made, "metadata")["name"])
        self._objects = [
            one
            for one in self._objects
            if (one.get("kind"), _part(one, "metadata")["namespace"], _part(one, "metadata")["name"]) != same
        ]
        self._objects.append(made)
        self._write()

    def delete(self, name: str, grace_s: int | None, /) -> None:
        """Somebody wants a pod to end: what has ended, or has no grace, goes at once."""
        pod = self._named(name)
        meta = _part(pod, "metadata")
        own = int(str(_part(pod, "spec")["terminationGracePeriodSeconds"]))
        given = own if grace_s is None else grace_s
        if _part(pod, "status").get("phase") in _FINAL or given == 0:
            self._remove(str(meta["uid"]))
            return
        before = meta.get("deletionGracePeriodSeconds")
        if before is None or given < int(str(before)):
            meta.update(deletionTimestamp=_stamp(given), deletionGracePeriodSeconds=given)
        self._write()

    def patch(self, name: str, patch: Mapping[str, Json], /) -> None:
        """A strategic merge."""
        pod = self._named(name)
        _merge(pod, patch)
        self._write()
        if "status" in patch:
            self._tell(pod)

    def take(self, told: Told, /) -> bool:
        """What the agent tells of a pod; False for one that is none of these."""
        if told.uid not in self._known:
            return False
        if self.is_away:
            self._late.append(told)
            return True
        self.hear(told.uid)
        pod = self._pods.get(told.uid)
        if pod is None or told.status is None:
            return True  # it is gone from here, or what its agent does not tell of it is no news
        pod["status"] = _merged(_part(pod, "status"), told.status)
        self._write()
        self._tell(pod, told.at)
        self._may_go(told.uid)
        return True

    def finished(self, uid: str, /) -> None:
        """Nothing of a pod that is to be deleted is left on its node."""
        self._finished.add(uid)
        if not self.is_away:
            self._may_go(uid)

    def go_away(self) -> None:
        """Nobody reaches it any more."""
        self.is_away = True
        self.file.unlink()
        self.file.with_name("objects.json").unlink()

    def come_back(self) -> None:
        """Whoever told it something meanwhile tries again with the next change, or after ten seconds."""
        self.is_away = False
        self._tries_at = self.at(time.monotonic()) + _TRIES_S
        self._write()
        for uid in tuple(self._finished):
            self._may_go(uid)

    def hear(self, uid: str = "") -> None:
        """The newest of what was told while it was away: of one pod, or of all whose time has come."""
        now_s = self.at(time.monotonic())
        if self.is_away or not (uid or now_s >= self._tries_at):
            return
        late = {one.uid: one for one in self._late if uid in {"", one.uid}}
        self._late = [one for one in self._late if one.uid not in late]
        for one in late.values():
            if one.uid != uid:
                self.take(attrs.evolve(one, at=now_s))

    def _may_go(self, uid: str) -> None:
        pod = self._pods.get(uid)
        if pod is not None and uid in self._finished and _part(pod, "status").get("phase") in _FINAL:
            self._remove(uid)

    def _remove(self, uid: str) -> None:
        pod = self._pods.pop(uid)
        self._write()
        self.told.append(self._line(pod, None, self.at(time.monotonic())))

    def _tell(self, pod: Object, at: float | None = None) -> None:
        status = copy.deepcopy(_part(pod, "status"))
        self.told.append(self._line(pod, status, self.at(time.monotonic()) if at is None else at))

    def _line(self, pod: Object, status: Mapping[str, Json] | None, at: float) -> Told:
        meta = _part(pod, "metadata")
        return Told(at=at, uid=str(meta["uid"]), name=f"{meta['namespace']}/{meta['name']}", status=status)

    def _named(self, name: str) -> Object:
        return next(one for one in self._pods.values() if _part(one, "metadata")["name"] == name)

    def _write(self) -> None:
        if self.is_away:
            return
        for file, what in (
            (self.file.with_name("objects.json"), self._objects),
            (self.file, list(self._pods.values())),
        ):
            aside = file.with_suffix(".new")
            aside.write_text(json.dumps(what))
            aside.rename(file)


def _part(pod: Object, name: str) -> Object:
    return cast("Object", pod.setdefault(name, {}))


def _merged(before: Object, told: Mapping[str, Json]) -> Object:
    """What an agent sends: conditions of others stay, and no pod has ended while its containers run."""
    theirs, ours = (status_from_manifest(dict(one)) for one in (before, told))
    could_run = any(isinstance(one.state, ContainerRunning) for one in ours.all_containers)
    merged = merge_status(theirs, ours, could_run=could_run, now_unix_s=time.time())
    return cast("Object", status_to_manifest(merged))


def _stamp(later_s: float) -> str:
    moment = datetime.now(UTC) + timedelta(seconds=later_s)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _merge(into: Object, patch: Mapping[str, Json]) -> None:
    for key, value in patch.items():
        before = into.get(key)
        if value is None:
            into.pop(key, None)
        elif isinstance(value, dict) and isinstance(before, dict):
            _merge(before, value)
        elif isinstance(value, list) and isinstance(before, list) and value and isinstance(value[0], dict):
            _merge_lists(before, value)
        else:
            into[key] = copy.deepcopy(value)


def _merge_lists(into: list[Object], patch: list[Object]) -> None:
    key = next((one for one in _KEYS if one in patch[0]), None)
    for entry in patch:
        same = None if key is None else next((one for one in into if one.get(key) == entry[key]), None)
        if same is None:
            into.append(copy.deepcopy(entry))
        else:
            _merge(same, entry)
