"""Kinds `pod_actions`, `sandbox_changed`, `restart_backoff`.

What is to be done for a pod next, in which sandbox, and when a container that
ended may start again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast

from nodealloc.podfacts import Exited, PodIdentity
from nodealloc.podlife import (
    KUBELET,
    PodPlan,
    PodSeen,
    RestartBackOff,
    Restarts,
    plan_pod,
)
from nodealloc.podlife._restarts import RestartAnswer, back_off_event, back_off_held
from nodealloc.podlife._sandbox import sandbox_need
from nodealloc.podspec import Container, ExecAction, Pod, Probe, RestartPolicy, kubelet_hash
from nodealloc.runtime import (
    ContainerRecord,
    ContainerReport,
    PodReport,
    RunState,
    SandboxRecord,
    SandboxReport,
)

if TYPE_CHECKING:
    from nodealloc.podspec import Json
    from nodealloc.testing.conformance._kinds import Row

__all__ = ["pod_actions", "recorded_pod", "recorded_seen", "restart_backoff", "sandbox_changed"]


def pod_actions(row: Row, _machines: Mapping[str, Row]) -> tuple[Json, Json]:
    """What is decided for one pod."""
    pod = recorded_pod(cast("Row", row["pod"]))
    plan = plan_pod(pod, recorded_seen(row, pod), rules=KUBELET)
    return row["want"], _plan_row(pod, plan)


def sandbox_changed(row: Row, _machines: Mapping[str, Row]) -> tuple[Json, Json]:
    """Whether a pod needs a new sandbox."""
    report = PodReport(uid="u", sandboxes=tuple(map(_sandbox, _rows(row, "sandboxes"))))
    need = sandbox_need(report, host_network=bool(row.get("host_network")), rules=KUBELET)
    return row["want"], {"changed": need.changed, "attempt": need.attempt, "sandbox_id": need.sandbox_id}


def recorded_pod(row: Row, /) -> Pod:
    """A pod as recorded decisions about its life write it."""
    deleted = row.get("deleted_at")
    return Pod(
        uid=str(row["uid"]),
        name=str(row["name"]),
        namespace=str(row["namespace"]),
        init_containers=tuple(map(_container, _rows(row, "init_containers"))),
        containers=tuple(map(_container, _rows(row, "containers"))),
        ephemeral_containers=tuple(map(_container, _rows(row, "ephemeral_containers"))),
        restart_policy=RestartPolicy(row.get("restart_policy", "Always")),
        host_network=bool(row.get("host_network")),
        # The moment does not matter to any decision about a pod, only that there is one.
        deletion_timestamp="" if deleted is None else "1970-01-01T00:00:00Z",
        deletion_grace_period_seconds=cast("int | None", row.get("deletion_grace_seconds")),
    )


def recorded_seen(row: Row, pod: Pod, /) -> PodSeen:
    """What a recorded runtime and probes say of a pod."""
    status = cast("Row", row["runtime_status"])
    boxes = tuple(map(_sandbox, _rows(status, "sandboxes")))
    box = boxes[0].record.id if boxes else "none"
    wanted = {one.name: one for one in (*pod.all_containers, *pod.ephemeral_containers)}
    results = cast("Mapping[str, Row]", row.get("probe_results", {}))
    said = {"success": True, "failure": False}
    return PodSeen(
        report=PodReport(
            uid=pod.uid,
            sandboxes=boxes,
            containers=tuple(_report(one, box, wanted) for one in _rows(status, "containers")),
        ),
        alive={
            id_: said[str(one["liveness"])] for id_, one in results.items() if one.get("liveness") in said
        },
        started={
            id_: said[str(one["startup"])] for id_, one in results.items() if one.get("startup") in said
        },
    )


def _plan_row(pod: Pod, plan: PodPlan) -> Json:
    def starts(containers: Sequence[Container]) -> list[Json]:
        return [index for index, one in enumerate(containers) if one.name in plan.starts]

    inits = starts(pod.init_containers)
    has_sidecars = any(one.restartable for one in pod.init_containers)
    return {
        "kill_pod": plan.ends,
        "create_sandbox": plan.makes_sandbox,
        "attempt": plan.attempt,
        "sandbox_id": plan.sandbox_id,
        "containers_to_start": starts(pod.containers),
        "ephemeral_to_start": starts(pod.ephemeral_containers),
        "init_containers_to_start": inits if has_sidecars else [],
        "next_init_container": inits[0] if inits and not has_sidecars else None,
        "containers_to_kill": [
            {"id": one.container_id, "name": one.name, "message": one.message, "reason": one.reason.value}
            for one in plan.stops
        ],
    }


def _container(row: Row) -> Container:
    return Container(
        name=str(row["name"]),
        image=str(row["image"]),
        restartable=bool(row.get("restartable")),
        startup_probe=_probe(row, "startup_probe"),
        liveness_probe=_probe(row, "liveness_probe"),
        readiness_probe=_probe(row, "readiness_probe"),
    )


def _probe(row: Row, kind: str) -> Probe | None:
    found = cast("Row | None", row.get(kind))
    if found is None:
        return None
    return Probe(
        exec=ExecAction(command=("true",)),
        period_seconds=cast("int", found["period"]),
        failure_threshold=cast("int", found.get("failure_threshold", 3)),
        termination_grace_period_seconds=cast("int | None", found.get("termination_grace_seconds")),
    )


def _report(row: Row, box: str, wanted: Mapping[str, Container]) -> ContainerReport:
    state = RunState(row["state"])
    name = str(row["name"])
    definition = kubelet_hash(wanted[name]) if name in wanted else "0"
    record = ContainerRecord(
        id=str(row["id"]),
        pod=_POD,
        name=name,
        sandbox_id=box,
        attempt=cast("int", row.get("restart_count", 0)),
        state=state,
        created_unix_s=cast("float", row.get("created_at", 0)),
        definition="another" if row.get("definition_changed") else definition,
    )
    code = cast("int", row.get("exit_code", 0))
    return ContainerReport(
        record=record,
        exit=Exited(code=code) if state is RunState.EXITED else None,
        reason=str(row.get("reason", "")),
    )


def _sandbox(row: Row) -> SandboxReport:
    ip = cast("str | None", row.get("ip"))
    attempt = cast("int", row.get("attempt", 0))
    return SandboxReport(
        record=SandboxRecord(id=str(row["id"]), pod=_POD, attempt=attempt, is_ready=row["state"] == "ready"),
        uses_host_network=row["network"] == "node",
        ips=None if ip is None else tuple(filter(None, [ip])),
    )


_POD = PodIdentity(uid="u", namespace="default", name="p")


def _rows(row: Row, name: str) -> Sequence[Row]:
    return cast("Sequence[Row]", row.get(name) or ())


def restart_backoff(row: Row, _machines: Mapping[str, Row]) -> tuple[Json, Json]:
    """Whether each start of one trace is held back, and the delays, up to the first that differs."""
    found = cast("Row", row["pod"])
    pod = PodIdentity(uid=str(found["uid"]), namespace=str(found["namespace"]), name=str(found["name"]))
    policy = RestartBackOff(
        base_s=_number(row, "initial_delay"),
        cap_s=_number(row, "max_delay"),
        reset_after_s=_number(row, "forget_after"),
    )
    restarts = Restarts()
    steps = _rows(row, "steps")
    for index, step in enumerate(steps):
        now_s = _number(step, "at")
        if step["op"] == "gc":
            restarts = restarts.forgotten(now_s, policy)
            continue
        name = str(step["container"])
        ended_s = cast("float | None", step.get("finished_at"))
        asked = restarts.asked(name, str(step["image"]), policy, ended_s=ended_s, now_s=now_s)
        restarts = asked.restarts
        got = _held_row(pod, name, asked)
        if got != step["want"]:
            return {"step": index, **cast("Row", step["want"])}, {"step": index, **got}
    return len(steps), len(steps)


def _held_row(pod: PodIdentity, name: str, asked: RestartAnswer) -> dict[str, Json]:
    if asked.held_until_s is None:
        told: dict[str, Json] = {"reason": None, "message": None, "event": None}
    else:
        held = back_off_held(pod, name, asked.delay_s, asked.held_until_s)
        event = back_off_event(pod, name)
        told = {
            "reason": held.reason,
            "message": held.message,
            "event": {"type": event.kind.value, "reason": event.reason, "message": event.message},
        }
    return {"held_back": asked.held_until_s is not None, "delay": asked.delay_s, **told}


def _number(row: Row, name: str) -> float:
    return cast("float", row[name])
