"""Kind `pod_source_updates`: what sources of pods say, and what the node is told."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from nodealloc.podsources import KUBELET, MergedUpdates, PodChange, PodUpdate, SourceOp, merge_update
from nodealloc.podspec import Container, Pod

if TYPE_CHECKING:
    from nodealloc.podspec import Json
    from nodealloc.testing.conformance._kinds import Row

__all__ = ["pod_source_updates", "recorded_update"]


def pod_source_updates(row: Row, _machines: Mapping[str, Row]) -> tuple[Json, Json]:
    """Expected and got for the messages of one trace, up to the first that differs."""
    merged = MergedUpdates()
    steps = cast("list[Row]", row["steps"])
    for index, step in enumerate(steps):
        done = merge_update(merged, recorded_update(step), seen="now", rules=KUBELET)
        merged = done.merged
        got: dict[str, object] = {
            "notifications": [_told(one) for one in done.changes],
            "events": [
                {"type": one.kind.value, "reason": one.reason, "message": one.message} for one in done.events
            ],
        }
        expected = {key: step[key] for key in got}
        if got != expected:
            return {"step": index, **expected}, cast("Json", {"step": index, **got})
    return len(steps), len(steps)


def recorded_update(step: Row) -> PodUpdate:
    """A step's message."""
    pods = cast("list[Row]", step.get("pods", []))
    return PodUpdate(source=str(step["source"]), op=SourceOp(step["op"]), pods=tuple(map(_pod, pods)))


def _pod(pod: Row) -> Pod:
    status = {key: pod[key] for key in ("phase", "message") if key in pod}
    return Pod(
        uid=str(pod["uid"]),
        name=str(pod["name"]),
        namespace=str(pod["namespace"]),
        containers=(Container(name="app", image=str(pod["image"])),),
        labels=cast("Mapping[str, str]", pod.get("labels", {})),
        annotations=cast("Mapping[str, str]", pod.get("annotations", {})),
        deletion_timestamp=str(pod.get("deleted_at", "")),
        deletion_grace_period_seconds=cast("int | None", pod.get("deletion_grace_seconds")),
        status=status,
    )


def _told(change: PodChange) -> Mapping[str, object]:
    pods = [_row(pod) for pod in change.pods]
    if change.op is SourceOp.REMOVE:
        pods.sort(key=lambda pod: str(pod["uid"]))
    return {"op": change.op.value, "source": change.source, "pods": pods}


def _row(pod: Pod) -> Mapping[str, object]:
    row: dict[str, object] = {
        "uid": pod.uid,
        "name": pod.name,
        "namespace": pod.namespace,
        "image": pod.containers[0].image,
        "labels": dict(pod.labels),
        "annotations": dict(pod.annotations),
        "deleted_at": int(pod.deletion_timestamp) if pod.deletion_timestamp else None,
        "deletion_grace_seconds": pod.deletion_grace_period_seconds,
        **pod.status,
    }
    return {key: value for key, value in row.items() if value not in (None, {})}
