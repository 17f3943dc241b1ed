"""Discovery against a lean read of the same files, and set algebra against the kubelet's."""

from __future__ import annotations

import os
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median

from bench.figure import Figure, best_ns, kubelet_ns, ratios, rows
from nodealloc.idset import CPUSet
from nodealloc.machine import discover, draw_svg, draw_text, machine_from_text
from nodealloc.testing.machine import write_sysfs

CAPTURES = Path(__file__).parent.parent.parent / "shared" / "sysfs"
LARGEST = "256ppc-8n8s4t"
GENERATED = "8 sockets x 8 cores x 4 threads, numbering=adjacent"


def lean_read(root: Path) -> int:
    """Open, read and close every file of the tree's CPUs and nodes: bytes read."""
    total = 0
    for folder, _, names in os.walk(root / "devices" / "system"):
        for name in names:
            descriptor = os.open(f"{folder}/{name}", os.O_RDONLY)
            total += len(os.read(descriptor, 1 << 16))
            os.close(descriptor)
    return total


@contextmanager
def largest_tree() -> Iterator[tuple[str, Path]]:
    """The largest captured tree, or a generated one of as many CPUs where no captures are."""
    archive = CAPTURES / f"{LARGEST}.tar.xz"
    with tempfile.TemporaryDirectory() as folder:
        if archive.is_file():
            with tarfile.open(archive) as packed:
                packed.extractall(folder, filter="data")
            yield LARGEST, Path(folder) / LARGEST / "sys"
        else:
            write_sysfs(machine_from_text(GENERATED), Path(folder))
            yield "generated, no captures here", Path(folder)


def discovery() -> Iterator[Figure]:
    """Time of a discovery with a warm cache, and its part of a lean read in the same run."""
    with largest_tree() as (name, root):
        ours = lean = float("inf")
        # In turn, so that a noisy neighbour slows both alike.
        for _ in range(5):
            lean = min(lean, best_ns(lambda: lean_read(root), seconds=0.1, rounds=1))
            ours = min(ours, best_ns(lambda: discover(root), seconds=0.1, rounds=1))
    yield Figure(
        package="machine",
        name=f"discovery of 256 CPUs ({name}) against a lean read of its files",
        value=ours / lean,
        unit="× lean read",
        at_most=60 / 45,
    )
    yield Figure(
        package="machine",
        name=f"discovery of 256 CPUs ({name})",
        value=ours / 1e6,
        unit="ms",
        at_most=60,
        cpu=True,
    )


def algebra() -> Iterator[Figure]:
    """Six operations a row, as the kubelet's figures were taken."""
    pairs = [
        (CPUSet.parse(str(row["a"])), CPUSet.parse(str(row["b"])))
        for row in rows("cpuset")
        if row["op"] == "algebra"
    ]

    def six(a: CPUSet, b: CPUSet) -> object:
        return a | b, a & b, a - b, a == b, a <= b, len(a)

    theirs = kubelet_ns("cpuset")
    ours = [best_ns(partial(six, a, b), seconds=0.002) for a, b in pairs[: len(theirs)]]
    found = ratios(ours, theirs)
    yield Figure(
        package="machine", name="CPU set algebra, six operations, median row", value=median(found),
        unit="× kubelet", at_most=0.25,
    )  # fmt: skip
    yield Figure(package="machine", name="CPU set algebra, slowest row", value=max(found), unit="× kubelet")


def pictures() -> Iterator[Figure]:
    """Drawing 256 CPUs."""
    machine = machine_from_text("2 sockets x 8 l3 x 8 cores x 2 threads")
    holders = {f"job-{n}": CPUSet(range(n * 8, n * 8 + 8)) for n in range(16)}
    for name, draw in (("text", draw_text), ("SVG", draw_svg)):
        took = best_ns(partial(draw, machine, holders), seconds=0.05)
        yield Figure(package="machine", name=f"picture of 256 CPUs as {name}", value=took / 1e6, unit="ms")


def figures() -> Iterator[Figure]:
    """All figures of machines and id sets."""
    yield from discovery()
    yield from algebra()
    yield from pictures()
