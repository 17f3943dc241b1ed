"""Machines for tests: recorded ones, and a sysfs tree written from any machine.

>>> import tempfile
>>> from pathlib import Path
>>> from nodealloc.machine import by_first_cpu, discover, machine_from_text
>>> machine = machine_from_text("2 sockets x 4 cores x 2 threads, offline=3")
>>> with tempfile.TemporaryDirectory() as folder:
...     write_sysfs(machine, Path(folder))
...     by_first_cpu(discover(folder).machine) == by_first_cpu(machine)
True
"""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, cast

from nodealloc.idset import CPUSet, format_list
from nodealloc.testing.conformance._recorded_machine import recorded_machine

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from nodealloc.machine import Cpu, Level, Machine, NumaNode
    from nodealloc.testing.conformance._kinds import Row

__all__ = ["format_mask", "recorded_machine", "recorded_machines", "sysfs_files", "write_sysfs"]


def recorded_machines(path: Path, /) -> Mapping[str, Machine]:
    """Machines by name from a file of recorded rows, `machines.jsonl` or `machines.jsonl.gz`.

    Group ids are kept as recorded: their order decides which group is filled first.
    """
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    rows = [cast("Row", json.loads(line)) for line in data.decode().splitlines() if line.strip()]
    return {str(row["name"]): recorded_machine(row) for row in rows}


def format_mask(mask: int, /) -> str:
    """The kernel's mask format: groups of 32 bits in hexadecimal, highest first.

    >>> format_mask(1 << 32 | 0xF)
    '00000001,0000000f'
    """
    groups: list[str] = []
    while mask or not groups:
        groups.append(f"{mask & 0xFFFFFFFF:08x}")
        mask >>= 32
    return ",".join(reversed(groups))


def write_sysfs(machine: Machine, root: Path, /) -> None:
    """Write the sysfs tree that a kernel would show for a machine below `root`, which must exist."""
    files = sysfs_files(machine)
    for folder in dict.fromkeys((root / name).parent for name in files):
        folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (root / name).write_text(content)


def sysfs_files(machine: Machine, /) -> dict[str, str]:
    """Path below the root to content, as a kernel of 6.x prints them; poke holes into it as you like.

    Core and package ids are counted within their package and on the machine as
    kernels do; nothing is written for what the machine has not (dies, caches).
    """
    return dict(_files(machine))


def _files(machine: Machine) -> Iterator[tuple[str, str]]:
    here = "devices/system/cpu"
    there = machine.online | machine.offline
    for name, cpus in (
        ("online", machine.online),
        ("offline", machine.offline),
        ("isolated", machine.isolated),
    ):
        yield f"{here}/{name}", f"{cpus}\n"
    for name in ("present", "possible"):
        yield f"{here}/{name}", f"{there}\n"
    for number in there:
        yield f"{here}/cpu{number}/online", f"{int(number in machine.online)}\n"
    for cpu in machine.cpus:
        yield from _cpu_files(machine, cpu, f"{here}/cpu{cpu.id}")
    for kind in sorted({cpu.kind for cpu in machine.cpus if cpu.kind}):
        cpus = CPUSet(cpu.id for cpu in machine.cpus if cpu.kind == kind)
        yield f"devices/cpu_{kind}/cpus", f"{cpus}\n"
    if machine.numa_nodes:
        yield "devices/system/node/online", f"{machine.nodes}\n"
    for node in machine.numa_nodes:
        yield from _node_files(machine, node, f"devices/system/node/node{node.id}")


def _cpu_files(machine: Machine, cpu: Cpu, here: str) -> Iterator[tuple[str, str]]:
    names: tuple[tuple[str, Level], ...] = (
        ("core_cpus", "core"),
        ("thread_siblings", "core"),
        ("package_cpus", "socket"),
        ("core_siblings", "socket"),
        ("die_cpus", "die"),
        ("cluster_cpus", "cluster"),
    )
    for name, level in names:
        group: int | None = getattr(cpu, level)
        if group is not None:
            yield from _mask(f"{here}/topology/{name}", machine.groups(level)[group])
    in_package = [
        core for core in machine.groups("core") if machine.cpu[_first(machine, core)].socket == cpu.socket
    ]
    yield f"{here}/topology/core_id", f"{in_package.index(cpu.core)}\n"
    yield f"{here}/topology/physical_package_id", f"{cpu.socket}\n"
    if cpu.l3 is not None:
        cache = f"{here}/cache/index3"
        yield f"{cache}/level", "3\n"
        yield f"{cache}/type", "Unified\n"
        yield f"{cache}/id", f"{cpu.l3}\n"
        for name, text in _mask(f"{cache}/shared_cpu_map", machine.groups("l3")[cpu.l3]):
            yield name.replace("map_list", "list"), text


def _first(machine: Machine, core: int) -> int:
    return min(machine.groups("core")[core])


def _mask(path: str, cpus: CPUSet) -> Iterator[tuple[str, str]]:
    yield path, f"{format_mask(cpus.mask)}\n"
    yield f"{path}_list", f"{format_list(cpus.mask)}\n"


def _node_files(machine: Machine, node: NumaNode, here: str) -> Iterator[tuple[str, str]]:
    yield f"{here}/cpumap", f"{format_mask(node.cpus.mask)}\n"
    yield f"{here}/cpulist", f"{node.cpus}\n"
    yield f"{here}/meminfo", f"Node {node.id} MemTotal:       {node.memory_bytes // 1024} kB\n"
    for size, count in node.hugepages.items():
        yield f"{here}/hugepages/hugepages-{size // 1024}kB/nr_hugepages", f"{count}\n"
    if machine.distances is not None:
        row = (machine.distances[node.id][other] for other in machine.nodes)
        yield f"{here}/distance", " ".join(map(str, row)) + "\n"
