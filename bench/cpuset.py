"""How long a pick, a list of hints and a pass of the reconciler take."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence

from bench.figure import VECTORS, Figure, best_ns, kubelet_ns, ratios, rows
from nodealloc.cpuset import (
    CpuAllocator,
    CpuLayout,
    CPUSet,
    CpusetReconciler,
    KubeletPicker,
    PickMode,
)
from nodealloc.cpuset._hints import HintTable
from nodealloc.cpuset._pickers import SortStrategy
from nodealloc.dsw_asw import InlineExecutor
from nodealloc.idset import NodeSet
from nodealloc.machine import machine_from_text
from nodealloc.podspec import Quantity
from nodealloc.testing.conformance import read_machines
from nodealloc.testing.conformance._recorded_machine import recorded_machine
from nodealloc.testing.cpuset import FakeCpusetWriter
from nodealloc.topology import Claim, Owner, TopologyHint

__all__ = ["figures"]

_BIG = (
    ("8 of 256 CPUs", "2 sockets x 8 l3 x 8 cores x 2 threads", 8),
    ("1 of 512 CPUs", "2 sockets x 16 l3 x 8 cores x 2 threads", 1),
)


def figures() -> Iterator[Figure]:
    """Pickers and hints against the kubelet, then the reconciler."""
    layouts = {
        name: CpuLayout.of(recorded_machine(row))
        for name, row in read_machines(VECTORS / "machines.jsonl.gz").items()
    }
    yield from _against_kubelet(
        "take_cpus", [_pick(row, layouts) for row in rows("take_cpus")[:400]], 0.5, 0.5
    )
    yield from _against_kubelet(
        "cpu_hints", [_hint(row, layouts) for row in rows("cpu_hints")[:300]], 0.25, 0.05
    )
    for name, text, count in _BIG:
        layout = CpuLayout.of(machine_from_text(text))
        call = _picking(KubeletPicker(), layout, layout.cpus & ~3, count)
        yield Figure(
            package="cpuset", name=f"pick {name}", value=best_ns(call) / 1e6, unit="ms", at_most=0.2, cpu=True
        )
    yield from _reconciler()


def _against_kubelet(
    kind: str, calls: Sequence[Callable[[], object]], median: float, total: float
) -> Iterator[Figure]:
    ours = [min(_once_ns(call) for _ in range(7)) for call in calls]
    theirs = kubelet_ns(kind)
    each = ratios(ours, theirs)
    spoken = (
        ("median of rows", statistics.median(each), median),
        ("all rows", sum(ours) / sum(theirs), total),
        ("slowest row", max(each), None),
    )
    for name, value, bound in spoken:
        yield Figure(package="cpuset", name=f"{kind}, {name}", value=value, unit="× kubelet", at_most=bound)


def _once_ns(call: Callable[[], object]) -> float:
    started = time.perf_counter_ns()
    call()
    return float(time.perf_counter_ns() - started)


def _pick(row: dict[str, object], layouts: dict[str, CpuLayout]) -> Callable[[], object]:
    picker = KubeletPicker(
        mode=PickMode(row["mode"]),
        strategy=SortStrategy(row["strategy"]),
        group_size=int(str(row["cpu_group_size"])),
        align_caches=bool(row["prefer_align_by_uncore_cache"]),
    )
    available = CPUSet.parse(str(row["available"])).mask
    return _picking(picker, layouts[str(row["machine"])], available, int(str(row["num_cpus"])))


def _picking(picker: KubeletPicker, layout: CpuLayout, available: int, count: int) -> Callable[[], object]:
    return lambda: picker.pick(layout, available, count)


def _hint(row: dict[str, object], layouts: dict[str, CpuLayout]) -> Callable[[], object]:
    table = HintTable(layouts[str(row["machine"])], align_by_socket=bool(row["align_by_socket"]))
    available, reusable = (CPUSet.parse(str(row[name])).mask for name in ("available", "reusable"))
    request = int(str(row["request"]))
    return lambda: table.hints(available, request, reusable=reusable)


def _reconciler() -> Iterator[Figure]:
    idle = _keeper(1000)
    yield Figure(
        package="cpuset",
        name="pass over 1,000 unchanged containers",
        value=best_ns(idle.reconcile) / 1e6,
        unit="ms",
        at_most=1.0,
    )
    growth = [(float(count), _one_change_us(count)) for count in (10, 100, 1000, 10000)]
    yield Figure(
        package="cpuset",
        name="one changed container, among 10,000 against 10",
        value=growth[-1][1] / growth[0][1],
        unit="×",
        at_most=2.0,
        growth=growth,
        growth_of="containers",
        growth_unit="µs",
    )


def _keeper(count: int) -> CpusetReconciler:
    machine = machine_from_text("2 sockets x 64 cores x 2 threads")
    node = CpuAllocator.of(machine, reserved=1)
    job = Claim(owner=Owner("job", "main"), amounts={"cpu": Quantity.of(4)})
    granted = node.allocate(job, TopologyHint(None, preferred=True))
    assert isinstance(granted, CpuAllocator)
    names = [f"container-{number}" for number in range(count)]
    writer = FakeCpusetWriter(dict.fromkeys(names, granted.shared))
    keeper = CpusetReconciler(writer, executor=InlineExecutor(), allocator=granted)
    for name in names:
        keeper.add(name, Owner(name, "main"))
    keeper.reconcile()
    return keeper


def _one_change_us(count: int) -> float:
    """Microseconds from a changed wish of one container to its write and its record."""
    keeper = _keeper(count)
    turn = [0]

    def change() -> None:
        turn[0] ^= 1
        keeper.add("container-0", Owner("container-0", "main"), mems=NodeSet.of(turn[0]))
        keeper.reconcile()

    return best_ns(change) / 1e3
