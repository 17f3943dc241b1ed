"""Figures of `topology`: the merge against the kubelet's, its growth, and a fleet scored."""

from __future__ import annotations

import math
import os
import pickle
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import product

from bench.figure import Figure, best_ns, kubelet_ns, ratios, rows
from examples.scheduler.fleet import fleet, guaranteed
from examples.scheduler.score import Candidate, Scores, score_all
from nodealloc.podspec import Pod
from nodealloc.testing.conformance._topology import merge_arguments
from nodealloc.testing.topology import FakeAllocator, workload
from nodealloc.topology import (
    Hints,
    NumaTopology,
    Policy,
    PolicyName,
    Refusal,
    Snapshot,
    TopologyHint,
    admit,
    explain,
    merge,
)

PACKAGE = "topology"
BEST_EFFORT = Policy(name=PolicyName.BEST_EFFORT)
RESTRICTED = Policy(name=PolicyName.RESTRICTED)


def figures() -> Iterator[Figure]:
    """All of them, in about 20 s."""
    yield from against_the_kubelet()
    yield from wide_machines()
    yield from growth()
    yield from fleets()
    yield from refusals()
    yield Figure(package=PACKAGE, name="import nodealloc.topology against import attrs", value=import_ratio(),
                 unit="×", at_most=2)  # fmt: skip


def against_the_kubelet() -> Iterator[Figure]:
    """The recorded rows, each against its recorded time."""
    kubelet = kubelet_ns("merge")
    calls = [partial(merge, *merge_arguments(row)) for row in rows("merge")[: len(kubelet)]]  # type: ignore[arg-type]
    ours = [best_ns(call, seconds=0.002) for call in calls]
    each = ratios(ours, kubelet)
    middle = statistics.median(ours) / statistics.median(kubelet)
    mean = math.exp(statistics.mean(map(math.log, each)))
    yield Figure(package=PACKAGE, name="merge, 400 rows together", value=sum(ours) / sum(kubelet),
                 unit="× kubelet", at_most=0.01)  # fmt: skip
    yield Figure(package=PACKAGE, name="merge, geometric mean of the rows' ratios", value=mean,
                 unit="× kubelet", at_most=1)  # fmt: skip
    yield Figure(package=PACKAGE, name="merge, median of the rows' ratios", value=statistics.median(each),
                 unit="× kubelet", at_most=3)  # fmt: skip
    yield Figure(package=PACKAGE, name="merge, median row against median row", value=middle,
                 unit="× kubelet", at_most=3)  # fmt: skip


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
        yield Figure(package=PACKAGE, name=name, value=milliseconds(lists, nodes), unit="ms", at_most=bound)


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
