"""Kind `probe_worker`: one probe of one container, tick by tick."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast

from nodealloc.podfacts import LifeState, PodEvent, PodIdentity
from nodealloc.podspec import RestartPolicy
from nodealloc.probes import (
    KUBELET,
    Asking,
    ContainerKind,
    Instance,
    NoAnswer,
    Passed,
    ProbeKind,
    ProbeVerdict,
    Reply,
    ReplyKind,
    Schedule,
    Tally,
    hear,
    look,
)
from nodealloc.probes._tally import TRIES, Next, event_of

if TYPE_CHECKING:
    from nodealloc.podspec import Json
    from nodealloc.testing.conformance._kinds import Row

__all__ = ["probe_worker"]

_WORDS = {
    "error": "connection reset",
    "failure": "HTTP probe failed with statuscode: 500",
    "success": "ok",
    "unknown": "what?",
    "warning": "redirected",
}


def probe_worker(row: Row, _machines: Mapping[str, Row]) -> tuple[Json, Json]:
    """Expected and got for the ticks of one trace, up to the first that differs."""
    pod = cast("Row", row["pod"])
    asking = _asking(row, pod)
    identity = PodIdentity(uid=str(pod["uid"]), namespace=str(pod["namespace"]), name=str(pod["name"]))
    tally = Tally()
    ticks = cast("Sequence[Row]", row["ticks"])
    for index, tick in enumerate(ticks):
        looked = look(
            tally,
            asking,
            _instance(tick),
            life=_life(pod, tick),
            now_s=cast("float", tick.get("at", 0)),
            rules=KUBELET,
        )
        tally, told, events = looked.tally, list(looked.told), list[PodEvent]()
        attempts = 0
        if looked.next is Next.ASK:
            replies = _replies(tick)
            attempts = len(replies)
            heard = hear(tally, asking, replies[-1], rules=KUBELET)
            tally = heard.tally
            told += [] if heard.told is None else [heard.told]
            event = event_of(replies[-1], asking.kind, identity, str(row["container"]), rules=KUBELET)
            events += [] if event is None else [event]
        got: dict[str, object] = {
            "attempts": attempts,
            "events": [
                {"message": one.message, "reason": one.reason, "type": one.kind.value} for one in events
            ],
            "goes_on": looked.next is not Next.END,
            "on_hold": tally.is_settled,
            "results": {tally.container_id: _word(tally.verdict)} if tally.container_id else {},
            "run_length": tally.run,
            "updates": [{"container": tally.container_id, "result": _word(one)} for one in told],
        }
        if got != tick["want"]:
            return {"tick": index, **cast("Row", tick["want"])}, cast("Json", {"tick": index, **got})
    return len(ticks), len(ticks)


def _asking(row: Row, pod: Row) -> Asking:
    for field, part in (("containers", ContainerKind.MAIN), ("init_containers", ContainerKind.SIDECAR)):
        for container in cast("Sequence[Row]", pod.get(field) or ()):
            if container["name"] == row["container"]:
                kind = ProbeKind(row["probe"])
                probe = cast("Row", container[f"{kind.value}_probe"])
                grace_s = probe.get("termination_grace_seconds")
                schedule = Schedule(
                    period_s=cast("float", probe["period"]),
                    initial_delay_s=cast("float", probe.get("initial_delay") or 0),
                    success_threshold=cast("int", probe["success_threshold"]),
                    failure_threshold=cast("int", probe["failure_threshold"]),
                )
                return Asking(
                    kind=kind,
                    schedule=schedule,
                    container=part,
                    restart_policy=RestartPolicy(pod["restart_policy"]),
                    grace_s=cast("float | None", grace_s),
                )
    raise LookupError(f"row {row['id']}: the pod has no container {row['container']}")


def _instance(tick: Row) -> Instance | None:
    container = cast("Row | None", tick.get("container"))
    if container is None or not container.get("id") or not tick.get("pod_status_known"):
        return None
    return Instance(
        id=str(container["id"]),
        is_running=container["state"] == "running",
        has_ended=container["state"] == "terminated",
        started_s=cast("float | None", container.get("started_at")),
        has_started=cast("bool | None", container.get("started")),
    )


def _life(pod: Row, tick: Row) -> LifeState:
    if tick.get("pod_status_known") and tick.get("phase") in {"Failed", "Succeeded"}:
        return LifeState.TERMINATED
    return LifeState.SYNCING if pod.get("deleted_at") is None else LifeState.TERMINATING


def _replies(tick: Row) -> Sequence[Reply]:
    """What the attempts of a tick bring: the last outcome repeats, and errors are tried again."""
    outcomes = [str(one) for one in cast("Sequence[str]", tick["outcomes"])]
    tried: list[Reply] = []
    for attempt in range(TRIES):
        word = outcomes[min(attempt, len(outcomes) - 1)]
        tried.append(Reply(ReplyKind(word), _WORDS[word]))
        if tried[-1].kind is not ReplyKind.ERROR:
            break
    return tried


def _word(verdict: ProbeVerdict) -> str:
    if isinstance(verdict, NoAnswer):
        return "unknown"
    return "success" if isinstance(verdict, Passed) else "failure"
