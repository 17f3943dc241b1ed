"""May a pod come in: against the kubelet's recorded time, and on a fleet."""

from __future__ import annotations

import functools
import statistics
import time
from typing import TYPE_CHECKING, cast

from bench.figure import Figure, against_kubelet, paced_sum_ns, rows
from examples.scheduler.fleet import fleet, guaranteed
from nodealloc.admission import chain_of
from nodealloc.podspec import Pod
from nodealloc.podspec._pod import pod_as_it_stands
from nodealloc.testing.conformance._chain import recorded_chain, recorded_view
from nodealloc.topology import Policy
from nodealloc.verdicts import Admitted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from nodealloc.admission import Chain
    from nodealloc.podfacts import NodeView
    from nodealloc.testing.conformance import Row

__all__ = ["figures"]

_NODES = 10_000


def figures() -> Iterator[Figure]:
    """The recorded rows, then a fleet."""
    yield Figure(
        package="admission",
        name="admit_predicates, median; view and pod read beforehand, each pod asked about once",
        value=statistics.median(_against_the_kubelet()),
        unit="× kubelet",
        at_most=0.5,
    )
    took, pace = _fleet_ns()
    name = "10,000 nodes, the whole chain, one core, each asked once"
    yield Figure(package="admission", name=name, value=took / 1e9, unit="s", at_most=1.5, cpu=True, pace=pace)


def _against_the_kubelet() -> list[float]:
    asked = [
        None if row.get("node_unknown") else _asking(row)
        for row in cast("list[Row]", rows("admit_predicates"))
    ]
    makers = [make or _nothing for make in asked]
    every = against_kubelet(makers, "admit_predicates", "kubelet_ns2", timed_ns=_each_once_ns)
    return [ratio for make, ratio in zip(asked, every, strict=False) if make]


def _asking(row: Row) -> Callable[[], object]:
    """Reads a pod and returns the call that asks about it."""
    chain, view = recorded_chain(row), recorded_view(row)
    return lambda: functools.partial(chain, pod_as_it_stands(row["pod"]), view)


def _each_once_ns(make: Callable[[], object]) -> float:
    """Shortest mean time of calls, each about a pod that was read beforehand and never asked about."""
    best = float("inf")
    for _ in range(5):
        calls = cast("list[Callable[[], object]]", [make() for _ in range(12)])
        started = time.perf_counter_ns()
        for call in calls:
            call()
        best = min(best, (time.perf_counter_ns() - started) / len(calls))
    return best


def _nothing() -> Callable[[], None]:
    """Stands for a row that is not asked."""
    return lambda: None


def _fleet_ns() -> tuple[float, float]:
    """Of each node asked once, and the pace of the machine."""
    pod: Pod = guaranteed("new", (6, 8), (6, 8))
    chains = [
        (chain_of(snapshot=one.snapshot), one.view)
        for one in fleet(_NODES, Policy.parse("restricted"), seed=1)
    ]
    fitting = 0

    def ask(some: Sequence[tuple[Chain, NodeView]]) -> None:
        nonlocal fitting
        fitting += sum(isinstance(chain(pod, view), Admitted) for chain, view in some)

    found = paced_sum_ns(functools.partial(ask, chains[one : one + 100]) for one in range(0, _NODES, 100))
    assert fitting
    return found
