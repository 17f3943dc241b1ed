"""The cgroup tree: what a change costs on a node with few and with many pods."""

from __future__ import annotations

import tempfile
import time
from typing import TYPE_CHECKING

from bench.figure import Figure, best_ns
from nodealloc.cgroups import CgroupName, Limits, QosTree, TreeOptions, stand_in
from nodealloc.cgroups._pods import pod_limits
from nodealloc.cgroups._qos_tree import desired_tree
from nodealloc.podspec import Container, Pod, Quantity
from nodealloc.testing.cgroups import FakeCgroups

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["figures"]

_SIZES = (10, 100, 1000)
_ROOT = CgroupName.of("kubepods")


def _pods(count: int) -> list[Pod]:
    amounts = {"cpu": Quantity.of("100m"), "memory": Quantity.of("64Mi")}
    containers = (Container(name="app", requests=amounts), Container(name="side", requests=amounts))
    return [
        Pod(uid=f"{number:08x}-0000-4000-8000-000000000000", containers=containers) for number in range(count)
    ]


def figures() -> Iterator[Figure]:
    """Calls to the driver for one change, the time of a round, and of planning one pod."""
    growth: list[tuple[float, float]] = []
    calls: list[tuple[float, float]] = []
    for size in _SIZES:
        everyone = _pods(size + 1)
        driver = FakeCgroups()
        tree = QosTree(driver, TreeOptions(root=_ROOT))
        tree.reconcile(everyone[:-1])
        driver.calls.clear()
        tree.reconcile(everyone)
        calls.append((size, len(driver.calls)))
        started = time.perf_counter_ns()
        for _ in range(3):
            tree.reconcile(everyone)
        growth.append((size, (time.perf_counter_ns() - started) / 3e6))
    yield Figure(
        package="cgroups",
        name="driver calls when one pod comes to a node of 1000",
        value=calls[-1][1],
        unit="calls",
        at_most=2,
        growth=calls,
        growth_of="pods",
    )
    yield Figure(
        package="cgroups",
        name="round in which nothing changed, 1000 pods",
        value=growth[-1][1],
        unit="ms",
        growth=growth,
        growth_of="pods",
    )
    pod = _pods(1)[0]
    yield Figure(
        package="cgroups", name="limits of one pod", value=best_ns(lambda: pod_limits(pod)) / 1e3, unit="µs"
    )
    with tempfile.TemporaryDirectory() as directory:
        stand = stand_in(directory)
        desired = desired_tree([pod], TreeOptions(root=_ROOT))
        for name, limits in desired.items():
            stand.apply(name, limits)
        last = list(desired)[-1]
        yield Figure(
            package="cgroups",
            name="one limit written, by way of the driver",
            value=best_ns(lambda: stand.apply(last, Limits(pids=100))) / 1e3,
            unit="µs",
        )
