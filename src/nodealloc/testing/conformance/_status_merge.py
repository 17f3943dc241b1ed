"""Kind `status_merge`: how statuses are merged, compared, guarded and sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast

from nodealloc import _attrs as attrs
from nodealloc.podfacts import PodStatus
from nodealloc.podspec import Pod
from nodealloc.podstatus import KUBELET, Told, merge_status, same_status, take_status
from nodealloc.podstatus._conditions import DISRUPTION_TARGET, replaced
from nodealloc.podstatus._merge import oddities_of
from nodealloc.podstatus._taking import end_status, with_verdict
from nodealloc.testing.conformance._podstatus import recorded_pod
from nodealloc.testing.conformance._recorded_status import recorded_status, status_row

if TYPE_CHECKING:
    from nodealloc.podspec import Json
    from nodealloc.testing.conformance._kinds import Row

__all__ = ["status_merge"]

_NOW_S = -1_000_000.0
"""A moment that no row names."""


def status_merge(row: Row, _machines: Mapping[str, Row]) -> tuple[Json, Json]:
    """Expected and got for one comparison, or for the first step of a manager that differs."""
    match row["kind"]:
        case "merge":
            got = merge_status(
                _status(row["old"]),
                _status(row["new"]),
                could_run=bool(row.get("could_have_running_containers")),
                now_unix_s=_NOW_S,
            )
            return _shown(_status(row["want"])), _shown(got)
        case "equal":
            return cast("Row", row["want"])["equal"], same_status(
                _status(row["old"]), _status(row["new"]), rules=KUBELET
            )
        case "transition":
            pod = recorded_pod(cast("Row", row["pod"]))
            odd = oddities_of(pod, _status(row["old"]), _status(row["new"]), rules=KUBELET)
            return row["want"], {"error": bool(odd), "message": odd[0].message if odd else None}
        case _:
            return _manager(row)


def _manager(row: Row) -> tuple[Json, Json]:
    manager = _Manager()
    for one in cast("Sequence[Row]", row["pods"]):
        manager.add(one)
    steps = cast("Sequence[Row]", row["steps"])
    for index, step in enumerate(steps):
        before = manager.cached()
        got = {"signalled": False, **manager.step(step)}
        after = manager.cached()
        changed = {uid: after.get(uid) for uid in {*before, *after} if before.get(uid) != after.get(uid)}
        got["cached"] = cast("Json", changed)
        expected = {
            key: _stated(step[key]) for key in ("signalled", "cached", "synced", "api") if key in step
        }
        if got != expected:
            return {"step": index, **expected}, {"step": index, **got}
    return len(steps), len(steps)


@attrs.define
class _Held:
    """A pod as an API server holds it, and as the node last saw it there."""

    static: bool
    api: PodStatus
    seen: PodStatus
    is_deleted: bool = False
    is_gone: bool = False


class _Manager:
    """A node and its API server, around the functions under test."""

    def __init__(self) -> None:
        self.pods: dict[str, Pod] = {}
        self.static: set[str] = set()
        self.held: dict[str, _Held] = {}
        self.held_by: dict[str, str] = {}
        self.told: dict[str, Told] = {}
        self.sent: dict[str, int] = {}
        self.could_run: set[str] = set()

    def add(self, row: Row) -> None:
        pod = recorded_pod(cast("Row", row["pod"]))
        static = bool(cast("Row", row["pod"]).get("static"))
        self.pods[pod.uid] = pod
        if static:
            self.static.add(pod.uid)
        api_status = row.get("api_status")
        if api_status is not None:
            uid, status = str(row.get("mirror_uid") or pod.uid), _status(api_status)
            self.held_by[pod.uid] = uid
            self.held[uid] = _Held(static, status, status)

    def cached(self) -> dict[str, Json]:
        return {
            uid: {
                "version": one.version,
                "finished": one.is_over,
                "needs_reconcile": self._differs(uid, one),
                "status": _shown(one.status),
            }
            for uid, one in self.told.items()
        }

    def step(self, step: Row) -> dict[str, Json]:
        uid = str(step.get("uid") or "")
        match step["op"]:
            case "set":
                is_deleted = uid in self.held and self.held[uid].is_deleted
                return self._take(uid, _status(step["status"]), always=is_deleted)
            case "terminate":
                pod, known = self.pods[uid], self.told.get(uid)
                base = known.status if known else self._pod_status(uid)
                ended = end_status(
                    pod,
                    base,
                    source_status=self._pod_status(uid),
                    static=uid in self.static,
                    rules=KUBELET,
                )
                return self._take(uid, ended, always=True, is_over=True)
            case "readiness" | "startup":
                return self._verdict(uid, step)
            case "delete_requested":
                self.held[uid].is_deleted = True
                self.held[uid].seen = self.held[uid].api = _status(step["status"])
            case "drift":
                self.held[uid].seen = self.held[uid].api = _status(step["status"])
            case "watched":
                self.held[uid].seen = _status(step["status"])
            case "could_have_running_containers":
                change = self.could_run.add if step.get("value") else self.could_run.discard
                change(uid)
            case "remove_orphans":
                keep = cast("Sequence[str]", step.get("keep") or ())
                self.told = {one: told for one, told in self.told.items() if one in keep}
            case _:
                return self._sync(is_full=bool(step.get("all")))
        return {}

    def _pod_status(self, uid: str) -> PodStatus:
        """Of the pod itself: that of a static one is only its mirror's."""
        return PodStatus() if uid in self.static else self.held[uid].seen

    def _take(
        self, uid: str, status: PodStatus, *, always: bool = False, is_over: bool = False
    ) -> dict[str, Json]:
        known = self.told.get(uid)
        taken = take_status(
            known,
            self.pods[uid],
            status,
            source_status=self.held[self.held_by[uid]].seen if uid in self.held_by else None,
            always=always,
            is_over=is_over,
            static=uid in self.static,
            now_unix_s=_NOW_S,
            rules=KUBELET,
        )
        if taken is None or taken is known:
            return {}
        self.told[uid] = taken
        return {"signalled": True}

    def _verdict(self, uid: str, step: Row) -> dict[str, Json]:
        known = self.told.get(uid)
        if known is None:
            return {}
        status = with_verdict(
            self.pods[uid],
            known.status,
            str(step["container_id"]),
            ready=cast("bool | None", step.get("ready")),
            started=cast("bool | None", step.get("started")),
        )
        return {} if status == known.status else self._take(uid, status)

    def _differs(self, uid: str, told: Told) -> bool:
        return uid in self.held_by and not same_status(
            self.held[self.held_by[uid]].seen, told.status, rules=KUBELET
        )

    def _may_go(self, uid: str, told: Told) -> bool:
        held = self.held[self.held_by[uid]]
        return held.is_deleted and not held.static and held.seen.is_terminal and told.is_over

    def _sync(self, *, is_full: bool) -> dict[str, Json]:
        if is_full:
            mirrors = {self.held_by[uid] for uid in self.static if uid in self.held_by}
            self.sent = {
                uid: version for uid, version in self.sent.items() if uid in self.told or uid in mirrors
            }
        due: list[str] = []
        for uid, told in self.told.items():
            if uid not in self.held_by:
                continue  # a static pod that nobody can see in the API yet
            sent = self.sent.get(self.held_by[uid], -1)
            if sent < told.version or (is_full and self._may_go(uid, told)):
                due.append(uid)
            elif is_full and self._differs(uid, told):
                self.sent.pop(self.held_by[uid], None)
                due.append(uid)
        calls = [call for uid in due for call in self._send(uid)]
        calls.sort(key=lambda call: str(call["name"]))
        return {"synced": len(due), "api": cast("Json", calls)}

    def _send(self, uid: str) -> list[dict[str, Json]]:
        told, held = self.told[uid], self.held[self.held_by[uid]]
        if held.is_gone:
            return []
        could_run = self.held_by[uid] in self.could_run
        merged = merge_status(held.api, told.status, could_run=could_run, now_unix_s=_NOW_S)
        if merged.is_terminal and not held.api.is_terminal and not could_run:
            told = self.told[uid] = _timed_anew(told, merged)
        calls: list[dict[str, Json]] = []
        name = self.pods[uid].name
        if merged != held.api:
            held.api = merged
            calls.append({"do": "patch", "name": name, "uid": self.held_by[uid], "status": _shown(merged)})
        self.sent[self.held_by[uid]] = told.version
        if held.is_deleted and not held.static and told.is_over and merged.is_terminal:
            held.is_gone = True
            calls.append({"do": "delete", "name": name})
            del self.told[uid]
        return calls


def _timed_anew(told: Told, sent: PodStatus) -> Told:
    """As kept after it was sent: a kubelet writes the time of that condition into what it keeps, too."""
    one = sent.condition(DISRUPTION_TARGET)
    if one is None or told.status.condition(DISRUPTION_TARGET) is None:
        return told
    conditions = replaced(told.status.conditions, one)
    return attrs.evolve(told, status=attrs.evolve(told.status, conditions=conditions))


def _status(row: Json) -> PodStatus:
    return recorded_status(cast("Row", _timed(row)))


def _timed(value: Json) -> Json:
    """With the present for what happened in it."""
    if isinstance(value, Mapping):
        return {key: _timed(one) for key, one in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_timed(one) for one in value]
    return _NOW_S if value == "now" else value


def _shown(status: PodStatus) -> Json:
    return cast("Json", status_row(status))


def _stated(value: Json) -> Json:
    """What a row expects, each status as the functions under test would be shown."""
    if isinstance(value, Mapping):
        return {key: _shown(_status(one)) if key == "status" else _stated(one) for key, one in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_stated(one) for one in value]
    return value
