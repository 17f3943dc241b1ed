"""Telling of pods: from a change to its being told, at rest, and beside the kubelet's own decisions."""

from __future__ import annotations

from functools import partial
from itertools import count
from statistics import median
from typing import TYPE_CHECKING, cast

from bench.figure import Figure, best_ns, kubelet_ns, ratios, rows
from nodealloc.checkpoint import JsonCheckpoint
from nodealloc.dsw_asw import InlineExecutor, Summary, World
from nodealloc.podfacts import PodIdentity
from nodealloc.podspec import Container, Pod
from nodealloc.podstatus import KUBELET, CallSink, Observed, StatusManager, status_of
from nodealloc.podstatus._conditions import conditions_of
from nodealloc.podstatus._phase import phase_of
from nodealloc.runtime import ContainerRecord, ContainerReport, PodReport, RunState
from nodealloc.testing.conformance._podstatus import recorded_observed, recorded_pod
from nodealloc.testing.conformance._recorded_status import recorded_container, recorded_status
from nodealloc.testing.dsw_asw import MemoryJournal, RecordingObserver

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from nodealloc.testing.conformance import Row

__all__ = ["figures"]

_SIZES = (10, 100, 1000)


def _observed(number: int, attempt: int = 0) -> Observed:
    """A pod of two containers that run; the first of them for the `attempt`th time."""
    who = PodIdentity(uid=f"uid-{number}", namespace="default", name=f"pod-{number}")
    containers = tuple(Container(name=name, image=f"{name}:1") for name in ("app", "side"))
    reports = [
        ContainerReport(
            record=ContainerRecord(
                id=f"{name}-{number}-{attempt}",
                pod=who,
                name=name,
                sandbox_id="s",
                attempt=attempt,
                state=RunState.RUNNING,
            ),
            started_unix_s=1000.0,
        )
        for name in ("app", "side")
    ]
    pod = Pod(uid=who.uid, name=who.name, containers=containers)
    return Observed(pod=pod, report=PodReport.of(who.uid, (), reports))


def _node(
    size: int, observer: RecordingObserver | None = None
) -> tuple[World[str, Observed], StatusManager[Observed]]:
    pods: World[str, Observed] = World("pods")
    journal: MemoryJournal[JsonCheckpoint] = MemoryJournal()
    sink = CallSink(lambda _uid, _status: None)
    manager = StatusManager(sink, pods, journal=journal, executor=InlineExecutor(), observer=observer)
    for number in range(size):
        pods.put(f"uid-{number}", _observed(number))
    _rest(manager)
    journal.commits.clear()
    return pods, manager


def _rest(manager: StatusManager[Observed]) -> Summary:
    return manager.run_until_quiet()


def _change_ms(size: int) -> float:
    """Milliseconds from a change of one pod to the sink's having taken it."""
    pods, manager = _node(size)
    attempts = count(1)
    changed = (_observed(0, attempt) for attempt in attempts)

    def change() -> None:
        pods.put("uid-0", next(changed))
        _rest(manager)

    return best_ns(change) / 1e6


def _planned_at_rest() -> float:
    """Pods that a manager of a thousand looks at while nothing changes."""
    observer = RecordingObserver()
    _, manager = _node(1000, observer)
    observer.summaries.clear()
    for _ in range(100):
        manager.reconcile()
    return sum(one.planned for one in observer.summaries)


def _call(row: Row) -> Callable[[], object]:
    """What answers a recorded row, with all that it needs at hand."""
    if row["kind"] == "status":
        previous = cast("Row | None", row["previous_status"])
        before = None if previous is None else recorded_status(previous)
        return partial(status_of, recorded_observed(row), before, rules=KUBELET)
    pod = recorded_pod(cast("Row", row["pod"]))
    statuses = [
        recorded_container(one)
        for name in ("init_container_statuses", "container_statuses")
        for one in cast("list[Row]", row[name] or [])
    ]
    if row["kind"] == "phase":
        return partial(phase_of, pod, statuses, rules=KUBELET)
    status = recorded_status({"phase": row["phase"]})
    assert status.phase is not None
    return partial(conditions_of, pod, statuses, status.phase, report=None)


def figures() -> Iterator[Figure]:
    """A thousand pods of two containers, and the recorded ones."""
    growth = [(float(size), _change_ms(size)) for size in _SIZES]
    yield Figure(
        package="podstatus",
        name="one of 1,000 pods changes and is told of, remembered in memory",
        value=growth[-1][1],
        unit="ms",
        at_most=10,
        cpu=True,
        growth=growth,
        growth_of="pods",
    )
    yield Figure(
        package="podstatus",
        name="pods looked at in 100 passes over 1,000 at rest",
        value=_planned_at_rest(),
        unit="pods",
        at_most=0,
    )
    theirs = kubelet_ns("pod_phase_status", "kubelet_ns3")
    recorded = cast("list[Row]", rows("pod_phase_status")[: len(theirs)])
    whole = [at for at, row in enumerate(recorded) if row["kind"] == "status"]
    found = [best_ns(_call(row), seconds=0.003) for row in recorded]
    yield Figure(
        package="podstatus",
        name="a status, median recorded pod",
        value=median(found[at] for at in whole) / 1e3,
        unit="µs",
    )
    yield Figure(
        package="podstatus",
        name="phases, conditions and statuses, recorded rows, median ratio",
        value=median(ratios(found, theirs)),
        unit="× kubelet",
    )
