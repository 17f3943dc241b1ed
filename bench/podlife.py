"""Plans of recorded pods: beside what was asked of them, and beside the kubelet's own."""

from __future__ import annotations

from functools import partial
from statistics import median
from typing import TYPE_CHECKING, cast

from bench.figure import Figure, best_ns, kubelet_ns, ratios, rows
from nodealloc.podlife import KUBELET, Definitions, Rules, plan_pod
from nodealloc.testing.conformance._podplan import recorded_pod, recorded_seen

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nodealloc.testing.conformance import Row

__all__ = ["figures"]


def _plans_ns(count: int, rules: Rules) -> list[float]:
    """Nanoseconds of each plan; pods, reports and definitions are there beforehand."""
    found: list[float] = []
    for row in cast("list[Row]", rows("pod_actions")[:count]):
        pod = recorded_pod(cast("Row", row["pod"]))
        seen = recorded_seen(row, pod)
        call = partial(plan_pod, pod, seen, definitions=Definitions.of(pod), rules=rules)
        found.append(best_ns(call, seconds=0.005))
    return found


def figures() -> Iterator[Figure]:
    """A plan of the median recorded pod, by both rules."""
    theirs = kubelet_ns("pod_actions", "kubelet_ns3")
    recorded = _plans_ns(len(theirs), KUBELET)
    yield Figure(
        package="podlife",
        name="a plan, median recorded pod, as recorded",
        value=median(recorded) / 1e3,
        unit="µs",
        at_most=25,
    )
    yield Figure(
        package="podlife",
        name="a plan, median recorded pod, by the right rules",
        value=median(_plans_ns(len(theirs), Rules())) / 1e3,
        unit="µs",
        at_most=25,
    )
    yield Figure(
        package="podlife",
        name="a plan, recorded pods, median ratio",
        value=median(ratios(recorded, theirs)),
        unit="× kubelet",
    )
