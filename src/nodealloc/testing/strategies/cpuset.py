"""Machines with odd CPUs, legal options, free sets and claims, for Hypothesis."""

from __future__ import annotations

from hypothesis import strategies as st

from nodealloc.cpuset import CPUSet, StaticOptions
from nodealloc.machine import Cpu, Machine, NumaNode
from nodealloc.podspec import Quantity
from nodealloc.testing.strategies.machine import machines
from nodealloc.topology import Claim, ClaimKind, Owner, Workload

__all__ = ["cpu_machines", "cpu_workloads", "static_options", "subsets"]

_OPTIONS = (
    "full_pcpus_only",
    "distribute_cpus_across_numa",
    "distribute_cpus_across_cores",
    "align_by_socket",
    "strict_cpu_reservation",
    "prefer_align_cpus_by_uncorecache",
)


@st.composite
def _even_machines(draw: st.DrawFn) -> Machine:
    """Machines whose cores are all alike; a NUMA node may hold several sockets, or a socket several nodes."""
    sockets = draw(st.integers(1, 4))
    nodes = draw(st.sampled_from([sockets, sockets, 1, 2 * sockets, 4 * sockets]))
    threads = draw(st.sampled_from([1, 2, 2, 4]))
    cores = max(sockets, nodes) * draw(st.integers(1, 4))
    cpus = tuple(
        Cpu(
            id=core + thread * cores,
            core=core,
            socket=core * sockets // cores,
            numa_nodes=(core * nodes // cores,),
            l3=core // 2,
        )
        for thread in range(threads)
        for core in range(cores)
    )
    numa_nodes = tuple(
        NumaNode(
            id=node,
            cpus=CPUSet(cpu.id for cpu in cpus if cpu.numa_nodes == (node,)),
            memory_bytes=1 << 30,
        )
        for node in range(nodes)
    )
    return Machine(name="even", cpus=cpus, numa_nodes=numa_nodes)


def cpu_machines() -> st.SearchStrategy[Machine]:
    """Machines of every kind: as vendors draw them, and lopsided ones with offline CPUs and gaps."""
    return st.one_of(_even_machines(), machines())


@st.composite
def static_options(draw: st.DrawFn) -> StaticOptions:
    """Options of the static policy that do not contradict each other."""
    on = draw(st.sets(st.sampled_from(_OPTIONS)))
    while True:
        try:
            return StaticOptions(**dict.fromkeys(on, True))
        except ValueError:
            on = set(sorted(on)[1:])


def subsets(cpus: CPUSet, /) -> st.SearchStrategy[CPUSet]:
    """Sets of some of these CPUs, often of nearly all."""
    some = st.sets(st.sampled_from(tuple(cpus))) if cpus else st.just(set[int]())
    return st.one_of(some.map(CPUSet), some.map(lambda left_out: cpus - CPUSet(left_out)))


@st.composite
def cpu_workloads(draw: st.DrawFn, key: str = "job", *, max_cpus: int = 8) -> Workload:
    """Workloads of init members, sidecars and main members, most of which want whole CPUs."""
    kinds = [
        *draw(st.lists(st.sampled_from([ClaimKind.INIT, ClaimKind.SIDECAR]), max_size=3)),
        *[ClaimKind.MAIN] * draw(st.integers(1, 3)),
    ]
    claims: list[Claim] = []
    ended: tuple[str, ...] = ()
    for place, kind in enumerate(kinds):
        name = f"{kind.value}-{place}"
        amount = draw(st.sampled_from([*map(str, range(1, max_cpus + 1)), "500m"]))
        claims.append(
            Claim(owner=Owner(key, name), amounts={"cpu": Quantity.parse(amount)}, kind=kind, reuse=ended)
        )
        if kind is ClaimKind.INIT:
            ended += (name,)
    return Workload(key=key, claims=tuple(claims))
