"""Relisting: what one costs when nothing changed, when a little did, and beside the kubelet's own."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, NamedTuple, cast

from bench.figure import Figure, best_ns
from nodealloc.dsw_asw import World
from nodealloc.podfacts import PodIdentity
from nodealloc.runtime import (
    ContainerRecord,
    Listing,
    PodListing,
    RunState,
    SandboxRecord,
)
from nodealloc.testing.conformance import read_rows
from nodealloc.testing.conformance._pleg_model import Pleg, relist
from nodealloc.testing.conformance._runtime import recorded_awaited, recorded_marks, recorded_report

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from nodealloc.runtime import PodReport
    from nodealloc.runtime._listing import Marks
    from nodealloc.testing.conformance import Row
    from nodealloc.testing.conformance._pleg_model import Awaited

__all__ = ["figures"]

VECTORS = Path(__file__).parent.parent / "tests" / "vectors"


def _listing(exited: int = 0) -> Listing:
    """500 pods of two containers each; the first `exited` of them have ended."""
    sandboxes: list[SandboxRecord] = []
    containers: list[ContainerRecord] = []
    for number in range(500):
        pod = PodIdentity(uid=f"uid-{number}", namespace="default", name=f"pod-{number}")
        sandboxes.append(SandboxRecord(id=f"box-{number}", pod=pod))
        for name in ("app", "side"):
            state = RunState.EXITED if len(containers) < exited else RunState.RUNNING
            containers.append(
                ContainerRecord(
                    id=f"{name}-{number}", pod=pod, name=name, sandbox_id=f"box-{number}", state=state
                )
            )
    return Listing.of(sandboxes, containers)


def _taking_over(changed: Listing) -> float:
    """Milliseconds until a world has taken over a listing, and is back at the one before."""
    world: World[str, PodListing] = World("seen")
    same = _listing()
    world.replace(same.pods)

    def visit() -> None:
        world.replace(changed.pods, since=world.generation)
        world.replace(same.pods, since=world.generation)

    return best_ns(visit) / 2e6


class _Step(NamedTuple):
    marks: Mapping[str, Marks] | None
    reports: Mapping[str, PodReport | None]
    at_s: float
    awaited: Mapping[str, Awaited]


def _prepared(row: Row) -> Sequence[_Step]:
    steps: list[_Step] = []
    for step in cast("Sequence[Row]", row["steps"]):
        pods = {str(pod["uid"]): pod for pod in cast("Sequence[Row]", step["pods"])}
        marks = {uid: recorded_marks(pod) for uid, pod in pods.items()}
        reports = {uid: recorded_report(pod) for uid, pod in pods.items()}
        at = cast("float", step["at"])
        steps.append(_Step(None if step.get("list_error") else marks, reports, at, recorded_awaited(step)))
    return steps


def _loop() -> int:
    """What the recorded calibration timed."""
    return sum(i * i for i in range(10000))


def _beside_the_kubelet() -> float:
    """Median ratio to the recorded times of whole traces, listings prepared beforehand."""
    recorded = json.loads((VECTORS / "kubelet_ns3.json").read_text())
    scale = best_ns(_loop) / recorded["calibration_loop_ns"]
    ratios: list[float] = []
    for row, theirs_ns in zip(read_rows(VECTORS / "pleg.jsonl.gz"), recorded["pleg"], strict=False):
        steps = _prepared(row)

        def trace(steps: Sequence[_Step] = steps) -> None:
            known = Pleg()
            for marks, reports, at_s, awaited in steps:
                inspect = reports.__getitem__
                done = relist(known, marks, inspect, now_s=at_s, awaited=awaited)
                known = done.pleg

        ratios.append(best_ns(trace) / (theirs_ns * scale))
    return median(ratios)


def figures() -> Iterator[Figure]:
    """1,000 containers in 500 pods, and the recorded traces."""
    yield Figure(
        package="runtime",
        name="taking over a listing of 1,000 containers, nothing changed",
        value=_taking_over(_listing()),
        unit="ms",
        at_most=2,
        cpu=True,
    )
    yield Figure(
        package="runtime",
        name="taking over a listing of 1,000 containers, 1 % changed",
        value=_taking_over(_listing(exited=10)),
        unit="ms",
        at_most=2,
        cpu=True,
    )
    yield Figure(
        package="runtime",
        name="recorded relistings, whole traces, median",
        value=_beside_the_kubelet(),
        unit="× kubelet",
        at_most=8,
    )
