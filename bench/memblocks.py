"""How long admission takes beside the kubelet's, and how memory grows with nodes and page sizes."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, cast

import attrs

from bench.figure import VECTORS, Figure, best_ns, paced_sum_ns, ratios, rows
from nodealloc.cpuset import CpuAllocator
from nodealloc.machine import Machine, NumaNode, machine_from_text
from nodealloc.memblocks import (
    MemoryAllocator,
    hugepages,
)
from nodealloc.memblocks._recorded import RecordedMemory
from nodealloc.podspec import Container, Pod, Quantity
from nodealloc.testing.conformance._admission import recorded_pod, snapshot_of
from nodealloc.topology import (
    Admitted,
    Claim,
    NumaTopology,
    Owner,
    Placed,
    Policy,
    PolicyName,
    Snapshot,
    TopologyHint,
    admit,
    release,
)

if TYPE_CHECKING:
    from nodealloc.testing.conformance import Row

PACKAGE = "memblocks"
GIB = 1 << 30
NODES = (1, 2, 4, 8, 16, 32, 64)
PAGES = (2 << 20, 1 << 30, 64 << 10, 512 << 20)

Trace = tuple[Snapshot, Sequence[Pod | str]]


def trace_of(row: Row, machines: Mapping[str, Row]) -> Trace:
    """A recorded trace: the empty node, and per step the pod that comes or the uid that goes."""
    steps = cast("Sequence[Row]", row["steps"])
    return snapshot_of(row, machines), [
        recorded_pod(cast("Row", step["pod"])) if step["op"] == "admit" else str(step["uid"])
        for step in steps
    ]


def play(trace: Trace) -> Snapshot:
    """The node at the end of a trace."""
    node, steps = trace
    for step in steps:
        if isinstance(step, str):
            node = release(node, step)
        else:
            verdict = admit(node, step)
            if isinstance(verdict, Admitted):
                node = verdict.snapshot
    return node


def large(nodes: int, pages: int) -> MemoryAllocator:
    """A machine of so many NUMA nodes and page sizes, nothing held."""
    pools = {page: 4 * GIB // page for page in PAGES[:pages]}
    machine = Machine(
        cpus=(),
        numa_nodes=tuple(
            NumaNode(id=node, memory_bytes=(16 + 4 * pages) * GIB, hugepages=pools) for node in range(nodes)
        ),
    )
    return MemoryAllocator.of(machine, reserved={0: {"memory": GIB}})


def claim(key: str, gib: int, pages: int) -> Claim:
    """A claim of memory, and of one huge page of each size."""
    amounts = {"memory": Quantity.of(gib * GIB)}
    amounts |= {hugepages(page): Quantity.of(page) for page in PAGES[:pages]}
    return Claim(owner=Owner(key, "app"), amounts=amounts)


def one_pod(allocator: MemoryAllocator, asked: Claim) -> object:
    """Hints, allocation anywhere, and release."""
    allocator.hints([asked])
    granted = allocator.allocate(asked, TopologyHint(None, preferred=False))
    return cast("MemoryAllocator", granted).release("pod")


def half_full(nodes: int, pages: int) -> MemoryAllocator:
    """Every second node serves an allocation of its own."""
    allocator = large(nodes, pages)
    for node in range(0, nodes, 2):
        hint = TopologyHint(1 << node, preferred=True)
        allocator = cast("MemoryAllocator", allocator.allocate(claim(f"pod-{node}", 1, pages), hint))
    return allocator


def growth(name: str, xs: Sequence[int], call: Callable[[int], Callable[[], object]], of: str) -> Figure:
    """A figure whose value is that of the largest x."""
    points = [(float(x), best_ns(call(x), seconds=0.01) / 1e6) for x in xs]
    return Figure(
        package=PACKAGE,
        name=name,
        value=points[-1][1],
        unit="ms",
        growth=points,
        growth_of=of,
        at_most=10,
        cpu=True,
    )


def held(count: int) -> tuple[MemoryAllocator, RecordedMemory]:
    """An empty allocator, and what it held with so many workloads."""
    empty = large(8, 1)
    allocator = empty
    small: Mapping[str, Quantity] = {"memory": Quantity.of(1 << 20)}
    for index in range(count):
        asked = Claim(owner=Owner(f"pod-{index}", "app"), amounts=small)
        hint = TopologyHint(1 << index % 8, preferred=True)
        allocator = cast("MemoryAllocator", allocator.allocate(asked, hint))
    return empty, allocator.recorded()


def admission() -> tuple[float, float]:
    """Median trace and all traces together, as parts of the kubelet's time.

    Each pod and each node is made anew for each time that is taken, and each trace is calibrated by
    itself: a machine that others use changes its pace from second to second.
    """
    theirs = cast("list[float]", json.loads((VECTORS / "kubelet_ns.json").read_text())["admission"])
    machines = {str(row["name"]): cast("Row", row) for row in rows("machines")}
    ours = [
        statistics.median([_played_ns(cast("Row", row), machines) for _ in range(5)])
        for row in rows("admission")[: len(theirs)]
    ]
    return statistics.median(ratios(ours, theirs)), sum(ours) / sum(theirs)


def _played_ns(row: Row, machines: Mapping[str, Row]) -> float:
    """CPU time of one trace at the recorded machine's pace."""
    took, pace = paced_sum_ns([partial(play, trace_of(row, machines))])
    return took / pace


def figures() -> Iterator[Figure]:
    """Ratios to the kubelet over whole traces, then growth."""
    median, together = admission()
    for name, value, bound in (
        ("admission, median trace (CPU, memory, topology)", median, 1.0),
        ("admission, all traces together", together, 0.05),
    ):
        yield Figure(package=PACKAGE, name=name, value=value, unit="× kubelet", at_most=bound)
    for pages in (1, 4):
        free = {nodes: large(nodes, pages) for nodes in NODES}
        busy = {nodes: half_full(nodes, pages) for nodes in NODES}
        for name, machines, gib in (
            (f"one pod on an empty machine, {pages} page sizes", free, 1),
            (f"one pod over two nodes, {pages} page sizes", free, 20),
            (f"one pod, every second node busy, {pages} page sizes", busy, 1),
        ):
            xs = [nodes for nodes in NODES if nodes > 1 or gib == 1]
            yield growth(
                name,
                xs,
                lambda nodes, machines=machines, gib=gib, pages=pages: partial(  # type: ignore[misc]
                    one_pod, machines[nodes], claim("pod", gib, pages)
                ),
                "NUMA nodes",
            )
    yield growth("one pod, 8 nodes", (0, 1, 2, 3, 4), _by_pages, "page sizes")
    yield from crowds()
    yield growth("a restart", (1, 10, 100, 1000), _restart, "workloads")


def beside(count: int) -> tuple[Snapshot, Pod]:
    """A node with so many pods that hold memory, and one more pod, which wants CPUs of its own as well."""
    drawn = machine_from_text("2 sockets × 16 cores × 2 threads")
    machine = attrs.evolve(
        drawn, numa_nodes=tuple(attrs.evolve(node, memory_bytes=64 * GIB) for node in drawn.numa_nodes)
    )
    node = Snapshot(
        numa=NumaTopology(nodes=tuple(machine.nodes)),
        policy=Policy(name=PolicyName.BEST_EFFORT),
        allocators=(CpuAllocator.of(machine, reserved=1), MemoryAllocator.of(machine)),
    )
    for index in range(count):
        verdict = admit(node, guaranteed(f"pod-{index}", "500m"))
        node = cast("Placed", verdict).snapshot
    return node, guaranteed("one more", "2")


def guaranteed(uid: str, cpu: str) -> Pod:
    """A pod of one container and 1 MiB."""
    amounts = {"cpu": Quantity.of(cpu), "memory": Quantity.of(1 << 20)}
    return Pod(uid=uid, containers=(Container(name="app", requests=amounts, limits=amounts),))


def come_and_go(node: Snapshot, pod: Pod) -> Snapshot:
    """One admission and one release."""
    return release(cast("Placed", admit(node, pod)).snapshot, pod.uid)


def crowds() -> Iterator[Figure]:
    """One pod against the number of those that are there."""
    points = [
        (float(count), best_ns(partial(come_and_go, *beside(count)), seconds=0.05) / 1e6)
        for count in (10, 100, 1_000, 10_000)
    ]
    name = "one pod in and out"
    yield Figure(package=PACKAGE, name=name, value=points[-1][1], unit="ms", growth=points,
                 growth_of="pods held")  # fmt: skip
    name = "one pod beside 10,000 against one beside 10"
    yield Figure(package=PACKAGE, name=name, value=points[-1][1] / points[0][1], unit="×", at_most=2)


def _by_pages(pages: int) -> Callable[[], object]:
    return partial(one_pod, large(8, pages), claim("pod", 1, pages))


def _restart(count: int) -> Callable[[], object]:
    empty, stored = held(count)
    return partial(empty.plan_restore, stored)
