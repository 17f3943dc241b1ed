"""Kinds `pleg`, `container_gc`, `pod_container_deletor`, `image_gc`.

What a listing changed, and what of a runtime may be cleared away.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, cast

from nodealloc.podfacts import ExitUnknown, PodIdentity
from nodealloc.runtime import (
    KUBELET,
    ContainerGcPolicy,
    ContainerRecord,
    ContainerReport,
    Disk,
    ImageGcPolicy,
    ImageRecord,
    ImageUse,
    PodReport,
    RunState,
    RuntimeUnavailableError,
    SandboxRecord,
    SandboxReport,
    containers_to_drop,
    plan_container_gc,
    plan_image_gc,
    plan_log_gc,
    plan_sandbox_gc,
    plan_unused_images,
    sweep,
)
from nodealloc.runtime._image_gc import ImageGcPlan, seen_images
from nodealloc.testing.conformance._pleg_model import Awaited, Pleg, pleg_health, relist

if TYPE_CHECKING:
    from nodealloc.podspec import Json
    from nodealloc.testing.conformance._kinds import Row

__all__ = [
    "container_gc",
    "image_gc",
    "pleg",
    "pod_container_deletor",
    "recorded_awaited",
    "recorded_marks",
    "recorded_report",
]

_NOW_S = 10_000_000.0
"""A present from which every recorded age still leads to a positive time."""


def pleg(row: Row, _machines: Mapping[str, Row]) -> tuple[Json, Json]:
    """Expected and got for the listings of one trace, up to the first that differs."""
    known = Pleg()
    steps = cast("Sequence[Row]", row["steps"])
    for index, step in enumerate(steps):
        pods = {str(pod["uid"]): pod for pod in _rows(step, "pods")}
        reports = {uid: recorded_report(pod) for uid, pod in pods.items()}
        now_s = cast("float", step.get("at", 0))
        done = relist(
            known,
            None if step.get("list_error") else {uid: recorded_marks(pod) for uid, pod in pods.items()},
            reports.__getitem__,
            now_s=now_s,
            awaited=recorded_awaited(step),
        )
        known = done.pleg
        told = {
            uid: [[one.kind.value, one.id] if one.id else [one.kind.value] for one in changes]
            for uid, changes in done.changes.items()
        }
        message = pleg_health(known, now_s, threshold_s=_number(row, "relist_threshold"))
        got: dict[str, object] = {
            "events": told,
            "inspected": sorted(done.inspected),
            "cache": {uid: _shown(one) for uid, one in known.reports.items()},
            "healthy": not message,
            **({"health_message": message} if message else {}),
        }
        expected = {key: value for key, value in step.items() if key in got or key == "health_message"}
        if got != expected:
            return {"step": index, **expected}, cast("Json", {"step": index, **got})
    return len(steps), len(steps)


def container_gc(row: Row, _machines: Mapping[str, Row]) -> tuple[Json, Json]:
    """What is stopped and what is removed, with the recorded faults on the way."""
    containers = {str(one["id"]): _container(one) for one in _rows(row, "containers")}
    faults = {str(one["id"]): one for name in ("containers", "sandboxes") for one in _rows(row, name)}
    content = frozenset(_words(row, "content_may_be_removed"))
    terminated = _words(row, "runtime_may_be_removed") if row["evict_non_deleted_pods"] else ()
    ended = content.union(terminated)
    is_complete = bool(row["all_sources_ready"])
    policy = ContainerGcPolicy(
        min_age_s=_number(row, "min_age"),
        most_per_container=_limit(row, "max_per_pod_container"),
        most=_limit(row, "max_containers"),
    )
    plan = plan_container_gc(
        containers.values(), policy, now_s=_NOW_S, ended=ended if is_complete else (), rules=KUBELET
    )
    fails = {one for one in plan.stop_first if faults[one].get("stop_fails")}
    removed = [one for one in plan.remove if one not in fails and not faults[one].get("remove_fails")]
    left = [record for one, record in containers.items() if one not in removed]
    boxes = [_sandbox(one) for one in _rows(row, "sandboxes")]
    stopped = plan_sandbox_gc(boxes, left, ended=ended)
    gone = [one for one in stopped if not faults[one].keys() & {"stop_fails", "remove_fails"}]
    logs = plan_log_gc(_words(row, "log_directories"), ended=content if is_complete else ())
    got: dict[str, Sequence[str]] = {
        "containers_stopped": sorted(plan.stop_first),
        "containers_removed": sorted(removed),
        "sandboxes_stopped": sorted(stopped),
        "sandboxes_removed": sorted(gone),
        "log_directories_removed": sorted(logs),
    }
    return {key: row[key] for key in got}, cast("Json", got)


def pod_container_deletor(row: Row, _machines: Mapping[str, Row]) -> tuple[Json, Json]:
    """Which dead containers of one pod go, in order."""
    got = containers_to_drop(
        [_container(one) for one in _rows(row, "containers")],
        keep=int(_number(row, "keep")),
        because_of=str(row["because_of"]),
        remove_all=bool(row["remove_all"]),
        rules=KUBELET,
    )
    return row["delete"], [*got]


def image_gc(row: Row, _machines: Mapping[str, Row]) -> tuple[Json, Json]:
    """Which images go, in order, what is told of it, and whether it failed."""
    expected = {key: row[key] for key in ("removed", "events", "error", "stage") if key in row}
    try:
        policy = ImageGcPolicy(
            high_percent=int(_number(row, "high_threshold_percent")),
            low_percent=int(_number(row, "low_threshold_percent")),
            min_age_s=_number(row, "min_age"),
            max_age_s=_number(row, "max_age") or None,
        )
    except ValueError:
        return expected, {"error": True, "stage": "configure"}
    if row.get("list_fails"):  # without a list nobody plans
        return expected, {"removed": [], "events": [], "error": True, "stage": "run"}
    failing = {str(one["id"]) for one in _rows(row, "images") if one.get("remove_fails")}

    def remove(image: str) -> None:
        if image in failing:
            raise RuntimeUnavailableError("remove_image", "as recorded")

    plan = _image_plan(row, policy)
    done = sweep(plan, remove)
    told = () if row.get("stats_fail") or done.warning is None else (done.warning,)
    got: dict[str, Json] = {
        "removed": [*done.removed],
        "events": [
            {"object": "node", "type": "Warning", "reason": one.reason, "message": one.message}
            for one in told
        ],
    }
    if done.failed or done.lacking_bytes or plan.disk_fault:
        got.update(error=True, stage="run")
    return expected, got


def recorded_marks(pod: Row, /) -> Mapping[str, RunState]:
    """Ids and states that a recorded listing has of one pod."""
    both = (*_rows(pod, "containers"), *_rows(pod, "sandboxes"))
    return {str(one["id"]): RunState(one["state"]) for one in both}


def recorded_report(pod: Row, /) -> PodReport | None:
    """What an inspection of a recorded pod brings; None where it fails."""
    if pod.get("inspect") == "error":
        return None
    return PodReport(
        uid=str(pod["uid"]),
        sandboxes=tuple(SandboxReport(record=_sandbox(one)) for one in _rows(pod, "sandboxes")),
        containers=tuple(
            ContainerReport(record=record, exit=ExitUnknown() if record.state is RunState.EXITED else None)
            for record in map(_container, _rows(pod, "containers"))
        ),
        ips=tuple(_words(pod, "ips")),
    )


def recorded_awaited(step: Row, /) -> Mapping[str, Awaited]:
    """What is waited for from a recorded step on: that no container of a name runs."""
    found: dict[str, dict[str, Callable[[PodReport], bool]]] = {}
    for one in _rows(step, "watch_conditions"):
        found.setdefault(str(one["uid"]), {})[str(one["key"])] = _ended(str(one["met_when_not_running"]))
    return found


def _ended(name: str) -> Callable[[PodReport], bool]:
    """Of several instances the first that is reported counts, as for whoever waited there."""

    def met(report: PodReport) -> bool:
        mine = (one.record.state for one in report.containers if one.record.name == name)
        return next(mine, None) is not RunState.RUNNING

    return met


def _image_plan(row: Row, policy: ImageGcPolicy) -> ImageGcPlan:
    rows = _rows(row, "images")
    used = [str(one["id"]) for one in rows if one["in_use"]]
    before = {
        str(one["id"]): ImageUse(
            image=_image(one),
            first_seen_s=_NOW_S - _number(one, "detected_ago"),
            last_used_s=None if one["last_used_ago"] is None else _NOW_S - _number(one, "last_used_ago"),
        )
        for one in rows
        if one["detected_ago"] is not None
    }
    images = seen_images(before, map(_image, rows), used=used, now_s=_NOW_S).values()
    if row["op"] == "delete_unused":
        return plan_unused_images(images, policy, now_s=_NOW_S, used=used, rules=KUBELET)
    disk = Disk(capacity_bytes=int(_number(row, "capacity")), available_bytes=int(_number(row, "available")))
    return plan_image_gc(
        images,
        None if row.get("stats_fail") else disk,
        policy,
        now_s=_NOW_S,
        since_s=_NOW_S - _number(row, "started_ago"),
        used=used,
        rules=KUBELET,
    )


def _shown(report: PodReport | None) -> Mapping[str, object]:
    if report is None:
        return {"error": True}
    states = {one.record.id: one.record.state.value for one in report.containers}
    return {"containers": states, "ips": [*report.ips]}


def _container(one: Row) -> ContainerRecord:
    return ContainerRecord(
        id=str(one["id"]),
        pod=_pod(one),
        name=str(one["name"]),
        sandbox_id=str(one.get("sandbox", "s")),
        state=RunState(one["state"]),
        created_unix_s=_created(one),
    )


def _sandbox(one: Row) -> SandboxRecord:
    ready = one["state"] in ("ready", "running")
    return SandboxRecord(id=str(one["id"]), pod=_pod(one), is_ready=ready, created_unix_s=_created(one))


def _image(one: Row) -> ImageRecord:
    return ImageRecord(id=str(one["id"]), size_bytes=int(_number(one, "size")), is_pinned=bool(one["pinned"]))


def _pod(one: Row) -> PodIdentity:
    uid = str(one.get("pod", "u"))
    return PodIdentity(uid=uid, namespace="default", name=uid)


def _created(one: Row) -> float | None:
    if "created_ago" in one:
        return _NOW_S - _number(one, "created_ago")
    return _number(one, "created_at") if "created_at" in one else None


def _limit(row: Row, name: str) -> int | None:
    value = int(_number(row, name))
    return None if value < 0 else value


def _number(row: Row, name: str) -> float:
    return cast("float", row[name])


def _words(row: Row, name: str) -> Sequence[str]:
    return cast("Sequence[str]", row.get(name, ()))


def _rows(row: Row, name: str) -> Sequence[Row]:
    return cast("Sequence[Row]", row.get(name, ()))
