"""Hypothesis strategies for machines: lopsided, sparse, partly offline, with memory-only nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import strategies as st

from nodealloc.idset import CPUSet
from nodealloc.machine import Cpu, Machine, NumaNode

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["cpu_sets", "machines"]

_Core = tuple[int, int, int, int, int]
"""Socket, die, NUMA node and L3 group, and threads of a core; groups count from 0 over the machine."""


@st.composite
def _cores(draw: st.DrawFn, most: int) -> list[_Core]:
    """Cores of a machine in which every box has its own number of smaller ones."""
    cores: list[_Core] = []
    dies = nodes = caches = 0
    left = most
    smt = draw(st.sampled_from([1, 2, 2, 4, 8]))
    for socket in range(draw(st.integers(1, 3))):
        for _ in range(draw(st.integers(1, 2))):
            for _ in range(draw(st.integers(1, 2))):
                for _ in range(draw(st.integers(1, 2))):
                    for _ in range(draw(st.integers(1, 4))):
                        threads = draw(st.sampled_from([smt, smt, smt, 1]))
                        if threads <= left:
                            cores.append((socket, dies, nodes, caches, threads))
                            left -= threads
                    caches += 1
                nodes += 1
            dies += 1
    return cores or [(0, 0, 0, 0, 1)]


def _numbered(cores: Sequence[_Core], order: str, step: int) -> list[list[int]]:
    """CPU ids of each core's threads."""
    if order == "adjacent":
        places = [(core, thread) for core, (*_, threads) in enumerate(cores) for thread in range(threads)]
    else:
        most = max(threads for *_, threads in cores)
        by_rank = list(range(len(cores)))
        if order == "interleaved":
            seen: dict[int, int] = {}
            ranks: list[int] = []
            for socket, *_ in cores:
                ranks.append(seen.get(socket, 0))
                seen[socket] = ranks[-1] + 1
            by_rank.sort(key=ranks.__getitem__)
        places = [(core, thread) for thread in range(most) for core in by_rank if thread < cores[core][4]]
    ids: list[list[int]] = [[] for _ in cores]
    for cpu, (core, _) in enumerate(places):
        ids[core].append(cpu * step)
    return ids


@st.composite
def machines(
    draw: st.DrawFn, *, max_cpus: int = 48, offline: bool = True, cpuless_nodes: bool = True
) -> Machine:
    """Machines as real ones are, not as tables show them.

    One to three sockets with dies, NUMA nodes, L3 groups and cores in numbers
    that differ from branch to branch; cores of 1 to 8 threads, mixed, on some
    machines of two kinds;
    CPU ids in the kernel's order, threads in a row, or interleaved, sometimes
    with gaps; sparse node ids; nodes without CPUs, or without memory; CPUs
    offline; distances or none. Every CPU lies in one NUMA node.

    Args:
        draw: Given by Hypothesis.
        max_cpus: No more logical CPUs than this, offline ones included.
        offline: Whether some CPUs may be offline.
        cpuless_nodes: Whether there may be nodes with memory alone.
    """
    cores = draw(_cores(max_cpus))
    order = draw(st.sampled_from(["kernel", "adjacent", "interleaved"]))
    ids = _numbered(cores, order, draw(st.sampled_from([1, 1, 3])))
    every = sorted(cpu for own in ids for cpu in own)
    down = draw(st.sets(st.sampled_from(every), max_size=min(3, len(every) - 1))) if offline else set[int]()
    node_step = draw(st.sampled_from([1, 1, 4]))
    has_dies, has_l3, hybrid = draw(st.booleans()), draw(st.booleans()), draw(st.booleans())
    cpus = tuple(
        sorted(
            (
                Cpu(
                    id=cpu,
                    core=min(set(own) - down),
                    socket=socket,
                    numa_nodes=(node * node_step,),
                    l3=cache if has_l3 else None,
                    die=die if has_dies else None,
                    kind=("atom" if threads == 1 else "core") if hybrid else "",
                )
                for (socket, die, node, cache, threads), own in zip(cores, ids, strict=True)
                for cpu in own
                if cpu not in down
            ),
            key=lambda cpu: cpu.id,
        )
    )
    numbers = sorted({node * node_step for _, _, node, _, _ in cores})
    if cpuless_nodes and draw(st.booleans()):
        numbers.append(numbers[-1] + node_step)
    nodes = tuple(draw(_node(number, cpus)) for number in numbers)
    return Machine(
        cpus=cpus,
        numa_nodes=nodes,
        distances=draw(st.none() | _distances(numbers)),
        offline=CPUSet(down),
        isolated=CPUSet(draw(st.sets(st.sampled_from([cpu.id for cpu in cpus]), max_size=2))),
    )


@st.composite
def _node(draw: st.DrawFn, number: int, cpus: Sequence[Cpu]) -> NumaNode:
    memory = draw(st.sampled_from([0, 8 << 30, 16 << 30, (16 << 30) - (5 << 12)]))
    pools = draw(st.sampled_from([{}, {2 << 20: 64}, {2 << 20: 0, 1 << 30: 2}])) if memory else {}
    return NumaNode(
        id=number,
        cpus=CPUSet(cpu.id for cpu in cpus if number in cpu.numa_nodes),
        memory_bytes=memory,
        hugepages=dict(pools),
    )


@st.composite
def _distances(draw: st.DrawFn, numbers: Sequence[int]) -> dict[int, dict[int, int]]:
    far = st.sampled_from([12, 20, 21, 32])
    return {a: {b: 10 if a == b else draw(far) for b in numbers} for a in numbers}


def cpu_sets(machine: Machine, /) -> st.SearchStrategy[CPUSet]:
    """Any set of a machine's online CPUs, the empty one included."""
    return st.sets(st.sampled_from(sorted(machine.online))).map(CPUSet)
