"""Figures of `topology`: the merge against the kubelet's, its growth, and a fleet scored."""

from __future__ import annotations

import contextlib
import json
import math
import os
import pickle
import random
import statistics
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import combinations, product

from bench.figure import VECTORS, Figure, against_kubelet, best_ns, paced_ns, rows
from examples.scheduler.fleet import fleet, guaranteed
from examples.scheduler.score import Candidate, Scores, score_all
from nodealloc.cpuset import CpuAllocator
from nodealloc.devices import Device, DeviceAllocator, DeviceList, Inventory, PluginOptions
from nodealloc.machine import machine_from_text
from nodealloc.memblocks import MemoryAllocator
from nodealloc.podspec import Pod, Quantity
from nodealloc.testing.conformance._topology import merge_arguments
from nodealloc.testing.topology import FakeAllocator, workload
from nodealloc.topology import (
    Claim,
    Hints,
    NumaTopology,
    Owner,
    Placed,
    Policy,
    PolicyName,
    Refusal,
    Snapshot,
    TopologyHint,
    WorkLimitError,
    Workload,
    admit,
    explain,
    merge,
)

PACKAGE = "topology"
GPU, NIC = "example.com/gpu", "example.com/nic"
BEST_EFFORT = Policy(name=PolicyName.BEST_EFFORT)
RESTRICTED = Policy(name=PolicyName.RESTRICTED)


def figures() -> Iterator[Figure]:
    """All of them, in about 20 s."""
    yield from against_the_kubelet()
    yield from wide_machines()
    yield from full_machines()
    yield from hard_questions()
    yield from growth()
    yield from fleets()
    yield from refusals()
    # A workload may be a pod, so that all of `podspec` is read too, and each declared class takes its time.
    yield Figure(package=PACKAGE, name="import nodealloc.topology against import attrs", value=import_ratio(),
                 unit="×", at_most=4)  # fmt: skip


def against_the_kubelet() -> Iterator[Figure]:
    """The recorded rows, each against its recorded time; a merge remembers nothing, so each is asked anew."""
    theirs = json.loads((VECTORS / "kubelet_ns.json").read_text())["merge"]
    calls = [partial(merge, *merge_arguments(row)) for row in rows("merge")[: len(theirs)]]  # type: ignore[arg-type]
    each = against_kubelet(calls, "merge")
    ours = [ratio * ns for ratio, ns in zip(each, theirs, strict=True)]
    mean = math.exp(statistics.mean(map(math.log, each)))
    middle = statistics.median(ours) / statistics.median(theirs)
    for name, value, bound in (
        ("400 rows together", sum(ours) / sum(theirs), 0.005),
        ("geometric mean of the rows' ratios", mean, 0.6),
        ("median of the rows' ratios", statistics.median(each), 0.8),
        ("median row against median row", middle, None),
    ):
        yield Figure(package=PACKAGE, name=f"merge, nothing remembered, {name}", value=value,
                     unit="× kubelet", at_most=bound)  # fmt: skip


def wide_machines() -> Iterator[Figure]:
    """What a kubelet never finishes."""
    for name, lists, nodes, bound in (
        ("8 nodes × 4 providers × 255 hints", all_masks(8, 4, narrow=True), 8, 30),
        ("8 nodes × 4 providers × 255 hints, none preferred", all_masks(8, 4), 8, 30),
        ("16 nodes × 4 providers × all masks, none preferred", all_masks(16, 4), 16, 300),
        ("34 nodes, 2 hold the resource", all_masks(2, 4), 34, 10),
        ("36 nodes, 8 hold the resource", all_masks(8, 4), 36, 10),
        ("64 nodes, 8 hold the resource", all_masks(8, 4), 64, 10),
    ):
        yield Figure(
            package=PACKAGE, name=name, value=milliseconds(lists, nodes), unit="ms", at_most=bound, cpu=True
        )


def full_machines() -> Iterator[Figure]:
    """Whole admissions where every node holds everything: CPUs, memory, two huge page sizes, two devices."""
    for nodes, bound in ((32, 2), (64, 10)):
        first, later = admission_ms(nodes)
        name = f"admission on {nodes} nodes that hold all of six resources"
        yield Figure(package=PACKAGE, name=name, value=later, unit="ms", at_most=bound, cpu=True)
        yield Figure(
            package=PACKAGE, name=f"{name}, the first one", value=first, unit="ms", at_most=100, cpu=True
        )
    yield series("admission, every node holds six resources", "NUMA nodes",
                 [(n, admission_ms(n)[1]) for n in (2, 4, 8, 16, 24, 32, 48, 64)])  # fmt: skip


def hard_questions() -> Iterator[Figure]:
    """What took seconds to minutes and gigabytes: time, and memory at its peak."""
    for name, bound, call in (
        ("12 lists of 24 random masks, 24 nodes", 200, of_lists(24, random_lists(24, 12, 24))),
        ("8 lists of 24 random masks, 32 nodes", 200, of_lists(32, random_lists(32, 8, 24))),
        ("8 lists of 200 random masks, 32 nodes", 200, of_lists(32, random_lists(32, 8, 200))),
        ("3 lists of 200 random masks, 24 nodes", 200, of_lists(24, random_lists(24, 3, 200))),
        ("4 lists of 500 random masks, 32 nodes", 200, of_lists(32, random_lists(32, 4, 500))),
        ("12 lists of 200 random masks, 32 nodes", 200, of_lists(32, random_lists(32, 12, 200))),
        ("16 lists of 200 random masks, 32 nodes", 200, of_lists(32, random_lists(32, 16, 200))),
        ("12 lists of 500 random masks, 32 nodes", 200, of_lists(32, random_lists(32, 12, 500))),
        ("10 lists of 8 random masks, 64 nodes", 1_000, of_lists(64, random_lists(64, 10, 8))),
        ("30 lists of 20 random masks, 20 nodes", 1_000, of_lists(20, random_lists(20, 30, 20))),
        ("4 lists of 2,000 random masks, 32 nodes", 1_000, of_lists(32, random_lists(32, 4, 2_000))),
        ("3 lists of all but two of 62 nodes, shifted", 1_000, of_lists(64, all_but_two(64, 3))),
        ("whole-pod search, 32 members on 8 nodes", 1_000, searched(8, 32)),
        ("whole-pod search, 64 members on 16 nodes", 1_000, searched(16, 64)),
        ("best-effort, 12 members on 64 nodes", 1_000, spread_out(64, 12)),
        ("64 members for one of 60,000 devices on 12 nodes", 1_000, of_devices(60_000, resources=1)),
        ("64 members for one of 400,000 devices on 12 nodes", 1_000, of_devices(400_000, resources=1)),
        ("64 members for each of 20 resources on 12 nodes", 1_000, of_devices(840, resources=20)),
    ):
        took, pace = paced_ns(partial(decided, call))
        yield Figure(
            package=PACKAGE, name=name, value=took / 1e6, unit="ms", at_most=bound, cpu=True, pace=pace
        )
        tracemalloc.start()
        decided(call)
        peak = tracemalloc.get_traced_memory()[1] / 1e6
        tracemalloc.stop()
        yield Figure(package=PACKAGE, name=f"{name}, memory", value=peak, unit="MB", at_most=100)


def decided(call: Callable[[], object]) -> None:
    """A question, answered or given up."""
    with contextlib.suppress(WorkLimitError):
        call()


def of_lists(nodes: int, providers: Sequence[Hints]) -> Callable[[], object]:
    """A merge of lists under best-effort."""
    return partial(merge, BEST_EFFORT, providers, NumaTopology(nodes=tuple(range(nodes))))


def random_lists(nodes: int, providers: int, hints: int) -> list[Hints]:
    """Lists of masks with half of the nodes each, none preferred."""
    rng = random.Random(nodes)
    return [
        {"resource": [TopologyHint(rng.getrandbits(nodes) or 1, preferred=False) for _ in range(hints)]}
        for _ in range(providers)
    ]


def all_but_two(nodes: int, providers: int) -> list[Hints]:
    """Of a window of nodes, one further on for each provider, every set that lacks two."""
    width = nodes - providers + 1
    windows = [((1 << width) - 1 << first, range(first, first + width)) for first in range(providers)]
    return [
        {
            "resource": [
                TopologyHint(full & ~(1 << a | 1 << b), preferred=False) for a, b in combinations(held, 2)
            ]
        }
        for full, held in windows
    ]


def searched(nodes: int, members: int) -> Callable[[], object]:
    """A search over members that ask for one to five of two devices, eight of each a node."""
    policy = Policy.parse("single-numa-node", {"search-whole-pod": "true"})
    rng = random.Random(nodes)
    asked = asked_for(*[{GPU: rng.randint(1, 5), NIC: rng.randint(1, 5)} for _ in range(members)])
    return partial(admit, full_node(nodes, policy, devices=8), asked)


def spread_out(nodes: int, members: int) -> Callable[[], object]:
    """Members of a few CPUs each and more memory than one node has."""
    rng = random.Random(nodes)
    asked = asked_for(
        *[{"cpu": rng.randint(3, 6), "memory": rng.randint(17, 20) << 30} for _ in range(members)]
    )
    return partial(admit, full_node(nodes, BEST_EFFORT), asked)


def of_devices(devices: int, *, resources: int) -> Callable[[], object]:
    """Members that ask for a few of each resource, whose devices are shared out over the nodes."""
    nodes = range(12)
    allocator = DeviceAllocator(nodes=tuple(nodes))
    listed = DeviceList.of(
        [Device(f"{number:06}", numa_nodes=1 << number % 12) for number in range(devices)], nodes=nodes
    )
    names = [f"example.com/{number}" for number in range(resources)]
    for name in names:
        blank = Inventory(resource=name).registered(1, now_s=0.0)
        allocator = allocator.with_inventory(blank.listed(1, listed, PluginOptions(), now_s=0.0))
    node = Snapshot(numa=NumaTopology(nodes=tuple(nodes)), policy=RESTRICTED, allocators=(allocator,))
    return partial(admit, node, asked_for(*[dict.fromkeys(names, 1 + place % 5) for place in range(64)]))


def full_node(nodes: int, policy: Policy, devices: int = 1) -> Snapshot:
    """Nodes of 8 CPUs, 16 GiB, two sizes of huge pages and two kinds of devices each."""
    machine = machine_from_text(f"{nodes} numa x 8 cores, memory=16Gi, hugepages=2Mi:512/1Gi:2")
    allocator = DeviceAllocator(nodes=tuple(machine.nodes))
    for resource in (GPU, NIC):
        ids = [
            Device(f"{node:02}-{k}", numa_nodes=1 << node) for node in machine.nodes for k in range(devices)
        ]
        blank = Inventory(resource=resource).registered(1, now_s=0.0)
        listed = DeviceList.of(ids, nodes=machine.nodes)
        allocator = allocator.with_inventory(blank.listed(1, listed, PluginOptions(), now_s=0.0))
    return Snapshot(
        numa=NumaTopology(nodes=tuple(machine.nodes), distances=machine.distances or {}),
        policy=policy,
        allocators=(CpuAllocator.of(machine), MemoryAllocator.of(machine), allocator),
    )


def asked_for(*members: Mapping[str, int]) -> Workload:
    """A workload of main members."""
    return Workload(
        key="asked",
        claims=tuple(
            Claim(
                owner=Owner("asked", f"m{place}"),
                amounts={resource: Quantity.of(size) for resource, size in amounts.items()},
            )
            for place, amounts in enumerate(members)
        ),
    )


def admission_ms(nodes: int) -> tuple[float, float]:
    """The first admission on a new node, and a later one, of two nodes' worth of six resources."""
    node = full_node(nodes, RESTRICTED)
    width = min(2, nodes)
    each = {"cpu": 8, "memory": 12 << 30, "hugepages-2Mi": 1 << 30, "hugepages-1Gi": 2 << 30, GPU: 1, NIC: 1}
    asked = asked_for({resource: size * width for resource, size in each.items()})
    started = time.perf_counter()
    verdict = admit(node, asked)
    first = (time.perf_counter() - started) * 1e3
    assert isinstance(verdict, Placed)
    return first, best_ns(partial(admit, node, asked), seconds=0.05) / 1e6


def growth() -> Iterator[Figure]:
    """Time against nodes and providers, ours and the exhaustive merge's as far as it gets."""
    for name, counts, held in (
        ("merge against nodes, all hold, none preferred", (1, 2, 4, 6, 8, 10, 12, 14), 16),
        ("merge against nodes, at most 8 hold", (1, 2, 4, 8, 16, 24, 34, 48, 64), 8),
    ):
        yield series(name, "NUMA nodes", [(n, milliseconds(all_masks(min(n, held), 4), n)) for n in counts])
    yield series("exhaustive merge against nodes", "NUMA nodes",
                 [(n, exhaustive_ms(all_masks(n, 4), n)) for n in (1, 2, 3, 4)])  # fmt: skip
    yield series("merge against providers, 8 nodes × 255 hints", "providers",
                 [(k, milliseconds(all_masks(8, k), 8)) for k in (1, 2, 4, 8, 12, 16)])  # fmt: skip
    yield series("exhaustive merge against providers, 8 nodes", "providers",
                 [(k, exhaustive_ms(all_masks(8, k), 8)) for k in (1, 2)])  # fmt: skip


def fleets() -> Iterator[Figure]:
    """A pod of two containers scored on nodes with real CPU and memory allocators."""
    pod = guaranteed("new", (6, 8), (6, 8))
    some = list(fleet(2_000, RESTRICTED))
    points = [
        (float(count), seconds_to_score(some, pod, count, each))
        for count, each in ((1_000, 1), (10_000, 1), (100_000, 5))
    ]
    (_, (_, took), (_, longest)) = points
    name = "10,000 snapshots scored on one core"
    yield Figure(package=PACKAGE, name=name, value=10_000 / took, unit="per s")
    name = "100,000 snapshots (every 5th thousand) against ten times 10,000"
    yield Figure(package=PACKAGE, name=name, value=longest / took / 10, unit="×", at_most=1.5)
    name = "snapshots scored on one core"
    yield Figure(package=PACKAGE, name=name, value=longest, unit="s", growth=points, growth_of="snapshots")


def refusals() -> Iterator[Figure]:
    """What a refusal costs when it is printed, sent, and explained, against the admission that refused."""
    cpus, gpus = FakeAllocator.of("cpu", {0: 4, 1: 4}), FakeAllocator.of("gpu", {0: 2})
    for name, policy, amounts in (
        ("refused by the merge", RESTRICTED, {"cpu": 5, "gpu": 1}),
        ("refused by an allocator", Policy(), {"cpu": 9}),
    ):
        node = Snapshot(numa=NumaTopology(nodes=(0, 1)), policy=policy, allocators=(cpus, gpus))
        asked = workload("new", amounts)
        refused_ns = best_ns(partial(admit, node, asked), rounds=9)
        refusal = admit(node, asked)
        assert isinstance(refusal, Refusal)
        for what, call, bound in (
            ("str", str, 0.5),
            ("pickle", pickle.dumps, None),
            ("explain", explain, None),
        ):
            took_ns = best_ns(partial(call, refusal), rounds=9)
            yield Figure(package=PACKAGE, name=f"{name}: {what} / admit", value=took_ns / refused_ns,
                         unit="×", at_most=bound)  # fmt: skip


def seconds_to_score(some: Sequence[Candidate], pod: Pod, count: int, each: int) -> float:
    """To score so many nodes in parts of 1,000, and to join what came out.

    Only every `each`th part is scored, and counted `each` times: a node's score
    does not depend on the others', so that the parts of a fleet differ by no
    more than the machine's pace.
    """
    nodes = (list(some) * (count // len(some) + 1))[:count]
    started = time.perf_counter()
    parts = [score_all(nodes[first : first + 1_000], pod, 10) for first in range(0, count, 1_000 * each)]
    scored = time.perf_counter()
    found = Scores.joined(parts * each, 10)
    assert found.fitting <= count
    return (scored - started) * each + time.perf_counter() - scored


def import_ratio(rounds: int = 9) -> float:
    """Import of the package against that of attrs alone, each in fresh interpreters, best of several."""
    best = {"attrs": math.inf, "nodealloc.topology": math.inf}
    with tempfile.TemporaryDirectory() as folder:
        # Bytecode of its own, so that no import but the first compiles, whatever the caller's setting.
        settings = {**os.environ, "PYTHONPYCACHEPREFIX": folder, "PYTHONDONTWRITEBYTECODE": ""}
        for _ in range(rounds + 1):
            for module, before in best.items():
                code = (
                    f"import time; t = time.perf_counter(); import {module}; print(time.perf_counter() - t)"
                )
                told = subprocess.run(
                    [sys.executable, "-c", code], env=settings, capture_output=True, text=True, check=True
                )
                best[module] = min(before, float(told.stdout))
    return best["nodealloc.topology"] / best["attrs"]


def all_masks(nodes: int, providers: int, *, narrow: bool = False) -> list[dict[str, list[TopologyHint]]]:
    """Providers that each hint every set of nodes; single nodes preferred if `narrow`."""
    hints = [TopologyHint(mask, narrow and mask.bit_count() == 1) for mask in range(1, 1 << nodes)]
    return [{"resource": hints} for _ in range(providers)]


def milliseconds(providers: Sequence[Hints], nodes: int) -> float:
    """Of one merge."""
    numa = NumaTopology(nodes=tuple(range(nodes)))
    return best_ns(partial(merge, BEST_EFFORT, providers, numa), seconds=0.05, rounds=2) / 1e6


def exhaustive_ms(providers: Sequence[Mapping[str, Sequence[TopologyHint] | None]], nodes: int) -> float:
    """Of a merge that tries every combination, by width and mask alone."""
    lists = [options or () for provider in providers for options in provider.values()]
    full = (1 << nodes) - 1

    def walk() -> tuple[bool, int, int]:
        best = (True, nodes, full)
        for hints in product(*lists):
            mask = full
            for affinity, _ in hints:
                mask &= full if affinity is None else affinity
            if mask:
                same = len({affinity for affinity, _ in hints}) == 1 and all(good for _, good in hints)
                best = min(best, (not same, mask.bit_count(), mask))
        return best

    return best_ns(walk, seconds=0.05, rounds=1) / 1e6


def series(name: str, of: str, points: Sequence[tuple[float, float]]) -> Figure:
    """Growth; the value is the last point's."""
    return Figure(package=PACKAGE, name=name, value=points[-1][1], unit="ms", growth=points, growth_of=of)
