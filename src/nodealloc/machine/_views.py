"""The same machine with other group ids."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from nodealloc._typed import typed
from nodealloc.machine._model import LEVELS, Machine

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nodealloc.machine._model import Level
    from nodealloc.machine._parts import Cpu

__all__ = ["as_kubelet_counts", "by_first_cpu"]


@typed
def as_kubelet_counts(machine: Machine, /) -> Machine:
    """The same machine with L3 groups as the kubelet counts them.

    It calls a cache an uncore cache only where the cache is smaller than the
    NUMA node; one that covers the node is dropped here (`l3` None), and the
    socket stands in for it when CPUs are aligned by uncore cache. Use it where
    `prefer-align-cpus-by-uncorecache` must decide exactly as a kubelet on that
    machine; left alone, a machine aligns by the caches that it has.

    Source: cAdvisor ``utils/sysinfo`` as the kubelet v1.32 vendors it.
    """
    groups = machine.groups("l3")
    whole = {group for group, cpus in groups.items() if any(cpus == node.cpus for node in machine.numa_nodes)}
    if not whole:
        return machine
    cpus = tuple(attrs.evolve(cpu, l3=None) if cpu.l3 in whole else cpu for cpu in machine.cpus)
    return attrs.evolve(machine, cpus=cpus)


@typed
def by_first_cpu(machine: Machine, /) -> Machine:
    """The same machine with every group named by its smallest CPU.

    Two descriptions of one machine then compare equal, however each numbers
    its groups.

    >>> from nodealloc.machine import machine_from_text
    >>> dict(by_first_cpu(machine_from_text("2 sockets x 2 cores")).groups("socket"))
    {0: CPUSet('0-1'), 2: CPUSet('2-3')}
    """
    names: dict[Level, Mapping[int, int]] = {
        level: {group: min(cpus) for group, cpus in machine.groups(level).items()} for level in LEVELS
    }

    def name(cpu: Cpu, level: Level) -> int | None:
        group: int | None = getattr(cpu, level)
        return None if group is None else names[level][group]

    cpus = tuple(
        attrs.evolve(
            cpu,
            core=names["core"][cpu.core],
            socket=names["socket"][cpu.socket],
            l3=name(cpu, "l3"),
            die=name(cpu, "die"),
            cluster=name(cpu, "cluster"),
        )
        for cpu in machine.cpus
    )
    return attrs.evolve(machine, cpus=cpus)
