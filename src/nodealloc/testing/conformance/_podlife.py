"""Kinds `pod_workers`, `container_kill_grace`, `termination_order`: how pods live, and how they end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast

from nodealloc.podfacts import LifeState
from nodealloc.podlife import (
    KUBELET,
    stop_timeout_s,
)
from nodealloc.podlife._grace import (
    kill_grace_s,
    stops_after,
)
from nodealloc.podspec import Container, Pod
from nodealloc.testing.conformance._pod_worker_values import (
    UpdateKind,
    Work,
    WorkEnd,
    WorkerPod,
    WorkerUpdate,
    WorkKind,
)
from nodealloc.testing.conformance._pod_workers_model import (
    Known,
    Workers,
)

if TYPE_CHECKING:
    from nodealloc.podspec import Json
    from nodealloc.testing.conformance._kinds import Row

__all__ = ["container_kill_grace", "pod_workers", "termination_order"]

_FINAL = frozenset({"Succeeded", "Failed"})
_RUNNING = frozenset({"running", "sandbox_only", "error"})


def pod_workers(row: Row, _machines: Mapping[str, Row]) -> tuple[Json, Json]:
    """Expected and got for one trace, up to the first step that differs."""
    replay = _Replay(cast("Sequence[str]", row["uids"]))
    steps = cast("list[Row]", row["steps"])
    for index, step in enumerate(steps):
        got = replay.step(step)
        expected = {key: step[key] for key in ("calls", "requeued", "woken", "pods")}
        expected["notified"] = step.get("notified", [])
        expected["known_pods"] = step.get("known_pods", {})
        expected["mirror_terminating"] = step.get("mirror_terminating", {})
        if got != expected:
            return cast("Json", {"step": index, **expected}), cast("Json", {"step": index, **got})
    return len(steps), len(steps)


class _Replay:
    """The workers of one trace, stepped."""

    def __init__(self, uids: Sequence[str]) -> None:
        self.uids = uids
        self.workers = Workers()
        self.cache: Mapping[str, str] = {}
        self.answers: dict[str, Mapping[str, bool]] = {}
        self.names: dict[str, None] = {}
        self.notified: list[str] = []

    def step(self, step: Row) -> dict[str, object]:
        """What it brought, as the rows say it."""
        self.notified = []
        calls: list[Json] = []
        requeued: list[Json] = []
        known: dict[str, object] = {}
        match step["op"]:
            case "cache":
                self.cache = {**self.cache, **cast("Mapping[str, str]", step["runtime_cache"])}
            case "update":
                self._receive(cast("Row", step["update"]))
            case "sync_known":
                self.workers, found = self.workers.synced(cast("Sequence[str]", step.get("desired_pods", ())))
                known = {uid: _known(one) for uid, one in found.items()}
            case _:
                self._run(str(step["uid"]), cast("Row", step["script"]), calls, requeued)
        changed = {uid: one for uid in self.uids if (one := self._pod(uid)) != self.answers.get(uid)}
        self.answers.update(changed)
        return {
            "calls": calls,
            "requeued": requeued,
            "woken": sorted(uid for uid, one in self.workers.workers.items() if one.has_signal),
            "pods": changed,
            "notified": self.notified,
            "known_pods": known,
            "mirror_terminating": {name: True for name in self.names if self.workers.terminating_name(name)},
        }

    def _receive(self, update: Row) -> None:
        orphan = "pod" not in update
        pod = cast("Row", update["running_pod" if orphan else "pod"])
        kill = cast("Row", update.get("kill", {}))
        told = WorkerUpdate(
            kind=UpdateKind(update["type"]),
            pod=_worker_pod(pod),
            is_orphan=orphan,
            evicts=bool(kill.get("evict")),
            grace_s=cast("float | None", kill.get("grace_override")),
            status=str(kill.get("status_change", "")),
            notice=str(kill.get("notify", "")),
        )
        if told.pod.is_static:
            self.names[told.pod.full_name] = None
        runs = self.cache.get(told.pod.uid) in _RUNNING
        self.workers, notices = self.workers.received(told, nothing_runs=not runs)
        self.notified += notices

    def _run(self, uid: str, script: Row, calls: list[Json], requeued: list[Json]) -> None:
        can_look = self.cache.get(uid) != "error"
        self.workers, work = self.workers.begun(uid, can_look=can_look)
        if not isinstance(work, Work):
            if work is not None:
                requeued.append({"uid": uid, "when": work.value})
            return
        is_blind = not can_look and work.kind is not WorkKind.TERMINATE_ORPHAN
        end = WorkEnd.FAILED if is_blind else WorkEnd(script["result"])
        if not is_blind:
            if "during" in script:
                self._receive(cast("Row", script["during"]))
            worker = self.workers.workers[uid]
            if end is WorkEnd.CANCELLED and not worker.is_cancelled:
                end = WorkEnd.DONE
            calls.append(_call(uid, work, is_cancelled=worker.is_cancelled))
        self.workers, resync, notices = self.workers.ended(uid, end)
        self.notified += notices
        if resync is not None:
            requeued.append({"uid": uid, "when": resync.value})

    def _pod(self, uid: str) -> Mapping[str, bool]:
        """What is answered about one pod."""
        worker, synced = self.workers.workers.get(uid), self.workers.is_synced
        if worker is None:
            answers = dict.fromkeys(_ASKED, synced)
            nothing = dict.fromkeys(("known", "known_terminated", "termination_requested", "working"), False)
            return {**answers, **nothing, "could_have_running_containers": not synced}
        gone = worker.has_terminated
        return {
            "containers_should_be_terminating": worker.began_to_end,
            "content_should_be_removed": worker.is_evicted or (worker.is_deleted and gone),
            "could_have_running_containers": not gone,
            "known": True,
            "known_terminated": gone,
            "runtime_should_be_removed": gone,
            "should_be_finished": worker.life is LifeState.FINISHED,
            "termination_requested": worker.life.is_ending,
            "working": worker.is_working,
        }


_ASKED = (
    "containers_should_be_terminating",
    "content_should_be_removed",
    "runtime_should_be_removed",
    "should_be_finished",
)


def _call(uid: str, work: Work, *, is_cancelled: bool) -> Json:
    call: dict[str, Json] = {"call": work.kind.value, "uid": uid, "cancelled": is_cancelled}
    asked = work.asked
    if work.kind is WorkKind.TERMINATE_ORPHAN:
        return call
    call["revision"] = "" if asked.pod is None else asked.pod.revision
    if work.kind is WorkKind.SYNC:
        call["type"] = asked.kind.value
    if work.kind is WorkKind.TERMINATE:
        call["grace"] = asked.grace_s
        call["status_change"] = work.status or None
    return call


def _known(known: Known) -> Json:
    state = "sync" if known.kind is WorkKind.SYNC else known.kind.value
    return {
        "has_config": known.has_config,
        "orphan": known.is_orphan,
        "state": state,
        "static": known.is_static,
    }


def _worker_pod(pod: Row) -> WorkerPod:
    return WorkerPod(
        uid=str(pod["uid"]),
        full_name=f"{pod['name']}_{pod['namespace']}",
        is_static=bool(pod.get("static")),
        is_deleted="deleted_at" in pod,
        has_ended=pod.get("phase") in _FINAL,
        own_s=cast("float | None", pod.get("termination_grace_seconds")),
        deletion_s=cast("float | None", pod.get("deletion_grace_seconds")),
        revision=str(pod.get("revision", "")),
    )


def container_kill_grace(row: Row, _machines: Mapping[str, Row]) -> tuple[Json, Json]:
    """Expected and got for one container that is stopped."""
    pod = cast("Row", row["pod"])
    name, hook_s = str(row["container"]), 0.0
    probe_s: float | None = None
    for one in _containers(pod):
        if one["name"] == name:
            hook_s = cast("float", one.get("pre_stop_seconds", 0))
            probe = cast("Row", one.get(_PROBES.get(str(row.get("reason")), ""), {}))
            probe_s = cast("float | None", probe.get("termination_grace_seconds"))
    grace_s = kill_grace_s(
        own_s=cast("float | None", pod.get("termination_grace_seconds")),
        deletion_s=cast("float | None", pod.get("deletion_grace_seconds")),
        probe_s=probe_s,
    )
    override = cast("float | None", row.get("grace_override"))
    given_s = grace_s if override is None else override
    hooked_s = min(max(hook_s, 0.0), max(given_s, 0.0))
    want = cast("Row", row["want"])
    got: dict[str, object] = {
        "grace": grace_s,
        "stop_timeout": stop_timeout_s(given_s, hooked_s, rules=KUBELET),
        "stop_called_at": hooked_s,
    }
    return {key: want[key] for key in got}, cast("Json", got)


def _containers(pod: Row) -> list[Row]:
    parts = ("containers", "init_containers", "ephemeral_containers")
    return [one for part in parts for one in cast("list[Row]", pod.get(part, []))]


_PROBES = {"StartupProbe": "startup_probe", "LivenessProbe": "liveness_probe"}


def termination_order(row: Row, _machines: Mapping[str, Row]) -> tuple[Json, Json]:
    """Expected and got for the ends of a pod's containers."""
    pod, running = cast("Row", row["pod"]), cast("list[str]", row.get("running", []))
    hooks = {str(one["name"]): cast("float", one.get("pre_stop_seconds", 0.0)) for one in _containers(pod)}
    own = kill_grace_s(
        own_s=cast("float | None", pod.get("termination_grace_seconds")),
        deletion_s=cast("float | None", pod.get("deletion_grace_seconds")),
    )
    override = cast("float | None", row.get("grace_override"))
    grace_s = own if override is None else override
    exits = cast("Mapping[str, float]", row.get("exit_seconds", {}))
    told = _pod(pod)
    after = stops_after(told, running, rules=KUBELET)
    gone: dict[str, float] = {}
    stops: list[dict[str, Json]] = []
    inits = [one.name for one in told.init_containers]
    for name in sorted(running, key=lambda one: -inits.index(one) if one in inits else -len(inits)):
        hooked_s = min(max(hooks[name], 0.0), max(grace_s, 0.0))
        left_s = grace_s - int(hooked_s)
        others_s = max((gone[one] for one in after[name]), default=0.0)
        told_s = min(max(hooked_s, others_s), hooked_s + left_s) if left_s > 0 else hooked_s
        # Rows are in tenths of a second; in binary a whole second may come out as a little less.
        waited_s = round(told_s - hooked_s, 3)
        timeout_s = stop_timeout_s(grace_s, hooked_s, waited_s, rules=KUBELET)
        gone[name] = told_s + min(exits.get(name, 0.0), timeout_s)
        stops.append(
            {
                "name": name,
                "at": round(told_s, 1),
                "timeout": timeout_s,
                "stopped_at": round(gone[name], 1),
                "killed": exits.get(name, 0.0) > timeout_s,
            }
        )
    stops.sort(key=lambda one: (one["at"], one["name"]))
    got: object = {"stops": stops, "sandbox_stopped_at": round(max(gone.values(), default=0.0), 1)}
    return row["want"], cast("Json", got)


def _pod(pod: Row) -> Pod:
    def containers(part: str) -> tuple[Container, ...]:
        return tuple(
            Container(name=str(one["name"]), restartable=bool(one.get("restartable")))
            for one in cast("list[Row]", pod.get(part, []))
        )

    return Pod(
        uid=str(pod["uid"]),
        name=str(pod["name"]),
        containers=containers("containers"),
        init_containers=containers("init_containers"),
    )
