"""Whole nodes under simulation: operations a second of a core, with every checker on."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from bench.figure import Figure
from nodealloc.testing.simulation.node import CLASSES, NodeSimulation, agent

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["figures"]


def figures() -> Iterator[Figure]:
    """One seed of each class of faults."""
    operations, hours, took_s = 0, 0.0, 0.0
    for seed in range(len(CLASSES)):
        began_s = time.process_time()
        with NodeSimulation(seed, agent) as node:
            report = node.run()
        took_s += time.process_time() - began_s
        operations += report.operations
        hours += report.passed_s / 3600.0
    yield Figure(
        package="simulation",
        name="operations of simulated nodes a second of a core",
        value=operations / took_s,
        unit="per s",
        at_least=6000.0,
        cpu=True,
    )
    yield Figure(
        package="simulation",
        name="the same, in seconds of a core for an hour of a node",
        value=took_s / hours,
        unit="s",
    )
