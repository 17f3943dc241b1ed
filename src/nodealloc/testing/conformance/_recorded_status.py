"""A pod's status as recorded decisions write it, to `nodealloc.podfacts` and back.

A field that is absent in a row is empty, false, zero or not set; back comes
what is neither.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast

from nodealloc.podfacts import (
    ConditionStatus,
    ContainerRunning,
    ContainerState,
    ContainerStatus,
    ContainerTerminated,
    ContainerWaiting,
    Exited,
    ExitUnknown,
    PodCondition,
    PodPhase,
    PodStatus,
)
from nodealloc.podspec import QosClass

if TYPE_CHECKING:
    from nodealloc.podspec import Json
    from nodealloc.testing.conformance._kinds import Row

__all__ = ["container_row", "recorded_container", "recorded_status", "status_row"]

_UNKNOWN = (137, "ContainerStatusUnknown")
"""How a kubelet writes that nobody knows how a container ended."""


def recorded_status(row: Row, /) -> PodStatus:
    """The status of one recorded document."""
    phase, qos = row.get("phase"), row.get("qos_class")
    ips = cast("Sequence[str]", row.get("pod_ips") or ())
    return PodStatus(
        phase=PodPhase(phase) if phase else None,
        reason=str(row.get("reason") or ""),
        message=str(row.get("message") or ""),
        conditions=tuple(map(_condition, _rows(row, "conditions"))),
        init_containers=tuple(map(recorded_container, _rows(row, "init_container_statuses"))),
        containers=tuple(map(recorded_container, _rows(row, "container_statuses"))),
        ephemeral_containers=tuple(map(recorded_container, _rows(row, "ephemeral_container_statuses"))),
        qos=QosClass(qos) if qos else None,
        pod_ips=tuple(ips),
        started_unix_s=_moment(row, "start_time"),
    )


def status_row(status: PodStatus, /) -> dict[str, Json]:
    """A status as a recorded document."""
    return _said(
        phase=status.phase.value if status.phase else None,
        reason=status.reason,
        message=status.message,
        conditions=[
            _said(
                type=one.type,
                status=one.status.value,
                reason=one.reason,
                message=one.message,
                last_transition=one.last_transition_unix_s,
            )
            for one in status.conditions
        ],
        init_container_statuses=[container_row(one) for one in status.init_containers],
        container_statuses=[container_row(one) for one in status.containers],
        ephemeral_container_statuses=[container_row(one) for one in status.ephemeral_containers],
        qos_class=status.qos.value if status.qos else None,
        pod_ip=status.pod_ips[0] if status.pod_ips else None,
        pod_ips=[*status.pod_ips],
        start_time=status.started_unix_s,
    )


def recorded_container(row: Row, /) -> ContainerStatus:
    """The status of one container of a recorded document."""
    started = row.get("started")
    return ContainerStatus(
        name=str(row["name"]),
        state=_state(cast("Row", row.get("state") or {})),
        last_state=_state(cast("Row", row.get("last_state") or {})),
        ready=bool(row.get("ready")),
        started=None if started is None else bool(started),
        restart_count=cast("int", row.get("restart_count") or 0),
        image=str(row.get("image") or ""),
        image_id=_id(row, "image_id"),
        container_id=_id(row, "container_id"),
    )


def container_row(status: ContainerStatus, /) -> dict[str, Json]:
    """The status of one container as a recorded document."""
    return _said(
        name=status.name,
        state=_state_row(status.state),
        last_state=_state_row(status.last_state),
        ready=status.ready,
        started=status.started,
        restart_count=status.restart_count,
        image=status.image,
        image_id=status.image_id,
        container_id=status.container_id,
    )


def _condition(row: Row) -> PodCondition:
    return PodCondition(
        type=str(row["type"]),
        status=ConditionStatus(row["status"]),
        reason=str(row.get("reason") or ""),
        message=str(row.get("message") or ""),
        last_transition_unix_s=_moment(row, "last_transition"),
    )


def _state(row: Row) -> ContainerState | None:
    waiting, running, ended = (
        cast("Row | None", row.get(name)) for name in ("waiting", "running", "terminated")
    )
    if waiting is not None:
        return ContainerWaiting(
            reason=str(waiting.get("reason") or ""), message=str(waiting.get("message") or "")
        )
    if running is not None:
        return ContainerRunning(started_unix_s=_moment(running, "started_at"))
    if ended is None:
        return None
    return ContainerTerminated(
        exit=_exit(ended),
        reason=str(ended.get("reason") or ""),
        message=str(ended.get("message") or ""),
        started_unix_s=_moment(ended, "started_at"),
        finished_unix_s=_moment(ended, "finished_at"),
        container_id=_id(ended, "container_id"),
    )


def _exit(row: Row) -> Exited | ExitUnknown:
    code = cast("int", row.get("exit_code") or 0)
    return ExitUnknown() if (code, row.get("reason")) == _UNKNOWN else Exited(code=code)


def _state_row(state: ContainerState | None) -> dict[str, Json]:
    if state is None:
        return {}
    if isinstance(state, ContainerWaiting):
        return {"waiting": _said(reason=state.reason, message=state.message)}
    if isinstance(state, ContainerRunning):
        return {"running": _said(started_at=state.started_unix_s)}
    return {
        "terminated": _said(
            exit_code=state.exit.code if isinstance(state.exit, Exited) else _UNKNOWN[0],
            reason=state.reason,
            message=state.message,
            started_at=state.started_unix_s,
            finished_at=state.finished_unix_s,
            container_id=state.container_id,
        )
    }


def _said(**fields: Json) -> dict[str, Json]:
    """Fields that say something; whole seconds as the rows write them."""
    kept = {name: value for name, value in fields.items() if value or isinstance(value, (bool, int, float))}
    return {name: int(v) if isinstance(v, float) and v.is_integer() else v for name, v in kept.items()}


def _rows(row: Row, name: str) -> Sequence[Row]:
    return cast("Sequence[Mapping[str, Json]]", row.get(name) or ())


def _moment(row: Row, name: str) -> float | None:
    return cast("float | None", row.get(name))


def _id(row: Row, name: str) -> str | None:
    found = row.get(name)
    return str(found) if found else None
