"""Kind `pod_phase_status`: what is told of pods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast

from nodealloc.podfacts import ContainerStatus, Exited, LifeState, PodIdentity, PodPhase, PodStatus
from nodealloc.podspec import Container, Pod, Probe, ReadinessGate, RestartPolicy
from nodealloc.podstatus import KUBELET, Health, Observed, StartFailure, ToldEnding, status_of
from nodealloc.podstatus._conditions import conditions_of
from nodealloc.podstatus._phase import phase_of
from nodealloc.runtime import (
    ContainerRecord,
    ContainerReport,
    PodReport,
    RunState,
    SandboxRecord,
    SandboxReport,
)
from nodealloc.testing.conformance._recorded_status import (
    recorded_container,
    recorded_status,
    status_row,
)

if TYPE_CHECKING:
    from nodealloc.podspec import Json
    from nodealloc.testing.conformance._kinds import Row

__all__ = ["pod_phase_status", "recorded_observed", "recorded_pod"]

_PASSED = "success"


def pod_phase_status(row: Row, _machines: Mapping[str, Row]) -> tuple[Json, Json]:
    """Expected and got for a phase, for conditions, or for a whole status."""
    want = cast("Row", row["want"])
    match row["kind"]:
        case "phase":
            return _phase(row, want)
        case "conditions":
            return _conditions(row, want)
        case _:
            return _whole(row, want)


def _phase(row: Row, want: Row) -> tuple[Json, Json]:
    pod = cast("Row", row["pod"])
    got = phase_of(
        recorded_pod(pod),
        [*_statuses(row, "init_container_statuses"), *_statuses(row, "container_statuses")],
        is_over=bool(row.get("pod_is_terminal")),
        static=bool(pod.get("static")),
        rules=KUBELET,
    )
    return want["phase"], got.value


def _conditions(row: Row, want: Row) -> tuple[Json, Json]:
    statuses = None
    if row.get("container_statuses") is not None:
        statuses = (*_statuses(row, "init_container_statuses"), *_statuses(row, "container_statuses"))
    got = conditions_of(
        recorded_pod(cast("Row", row["pod"])),
        statuses,
        PodPhase(row["phase"]),
        report=_report(row, "p"),
        others=recorded_status({"conditions": row.get("other_conditions")}).conditions,
    )
    return status_row(recorded_status(want)), status_row(PodStatus(conditions=got))


def _whole(row: Row, want: Row) -> tuple[Json, Json]:
    previous = cast("Row | None", row.get("previous_status"))
    got = status_of(
        recorded_observed(row),
        None if previous is None else recorded_status(previous),
        node_ips=cast("Sequence[str]", row.get("node_ips") or ()),
        are_probed=bool(row.get("probes_registered")),
        rules=KUBELET,
    )
    return status_row(recorded_status(want)), status_row(got)


def recorded_observed(row: Row, /) -> Observed:
    """All that a recorded row of kind `status` knows of its pod."""
    pod = cast("Row", row["pod"])
    evict = cast("Row | None", row.get("evict"))
    results = cast("Mapping[str, Row]", row.get("probe_results") or {})
    return Observed(
        pod=recorded_pod(pod),
        life=LifeState.TERMINATED if row.get("pod_is_terminal") else LifeState.SYNCING,
        report=_report(cast("Row", row["runtime_status"]), str(pod["uid"])),
        health={
            id_: Health(startup=_passed(one.get("startup")), readiness=_passed(one.get("readiness")))
            for id_, one in results.items()
        },
        start_failures={
            str(one["name"]): StartFailure(reason=str(one["reason"]), message=str(one.get("message") or ""))
            for one in _rows(row, "start_failures")
        },
        ending=None
        if evict is None
        else ToldEnding(reason=str(evict["reason"]), message=str(evict["message"])),
        source_status=recorded_status(cast("Row", row.get("api_status") or {})),
        static=bool(pod.get("static")),
    )


def recorded_pod(row: Row, /) -> Pod:
    """A recorded pod, as far as its status depends on it."""
    grace = cast("int | None", row.get("deletion_grace_seconds"))
    deleted = row.get("deleted_at")
    return Pod(
        uid=str(row["uid"]),
        name=str(row["name"]),
        namespace=str(row["namespace"]),
        restart_policy=RestartPolicy(row["restart_policy"]),
        host_network=bool(row.get("host_network")),
        init_containers=_containers(row, "init_containers"),
        containers=_containers(row, "containers"),
        ephemeral_containers=_containers(row, "ephemeral_containers"),
        readiness_gates=tuple(
            ReadinessGate(condition_type=one)
            for one in cast("Sequence[str]", row.get("readiness_gates") or ())
        ),
        deletion_timestamp="" if deleted is None else str(deleted),
        deletion_grace_period_seconds=grace,
    )


def _containers(row: Row, name: str) -> tuple[Container, ...]:
    return tuple(
        Container(
            name=str(one["name"]),
            image=str(one.get("image") or ""),
            restartable=bool(one.get("restartable")),
            startup_probe=Probe() if one.get("startup_probe") else None,
            readiness_probe=Probe() if one.get("readiness_probe") else None,
        )
        for one in _rows(row, name)
    )


def _report(row: Row, uid: str) -> PodReport:
    pod = PodIdentity(uid=uid, namespace="n", name="p")
    return PodReport(
        uid=uid,
        sandboxes=tuple(_sandbox(one, pod) for one in _rows(row, "sandboxes")),
        containers=tuple(_container(one, pod) for one in _rows(row, "containers")),
        ips=tuple(cast("Sequence[str]", row.get("ips") or ())),
    )


def _sandbox(row: Row, pod: PodIdentity) -> SandboxReport:
    ip = cast("str | None", row.get("ip"))
    return SandboxReport(
        record=SandboxRecord(
            id=str(row["id"]),
            pod=pod,
            attempt=cast("int", row.get("attempt") or 0),
            is_ready=row["state"] == "ready",
        ),
        uses_host_network=row.get("network") == "node",
        ips=None if ip is None else (ip,) if ip else (),
    )


def _container(row: Row, pod: PodIdentity) -> ContainerReport:
    state = RunState(row["state"])
    return ContainerReport(
        record=ContainerRecord(
            id=str(row["id"]),
            pod=pod,
            name=str(row["name"]),
            sandbox_id="s",
            attempt=cast("int", row.get("restart_count") or 0),
            state=state,
            created_unix_s=cast("float | None", row.get("created_at")),
            image=str(row.get("image") or ""),
            image_id=str(row.get("image_ref") or ""),
        ),
        exit=Exited(code=cast("int", row.get("exit_code") or 0)) if state is RunState.EXITED else None,
        reason=str(row.get("reason") or ""),
        message=str(row.get("message") or ""),
        started_unix_s=cast("float | None", row.get("started_at")),
        finished_unix_s=cast("float | None", row.get("finished_at")),
    )


def _passed(result: Json) -> bool | None:
    """What a recorded result says; a probe that knows nothing has not passed."""
    return None if result is None else str(result) == _PASSED


def _statuses(row: Row, name: str) -> list[ContainerStatus]:
    return [recorded_container(one) for one in _rows(row, name)]


def _rows(row: Row, name: str) -> Sequence[Row]:
    return cast("Sequence[Mapping[str, Json]]", row.get(name) or ())
