"""`python -m nodealloc topology`: what this library sees of a machine."""

from __future__ import annotations

import json
import os
import shutil
import sys
from typing import TYPE_CHECKING

from nodealloc.idset import CPUSet
from nodealloc.machine import Discovery, by_first_cpu, discover, draw_text, machine_to_json, named_machine

if TYPE_CHECKING:
    import argparse

    from nodealloc.machine import Machine

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser, /) -> None:
    """Declare which machine, who holds what, and `--format`."""
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--sysfs", default="/sys", metavar="DIR", help="mounted or captured sysfs to read (default: /sys)"
    )
    which.add_argument(
        "--machine",
        metavar="TEXT|FILE|DIR",
        help="a line such as '2 sockets x 8 cores x 2 threads', a JSON file, or such a sysfs",
    )
    parser.add_argument("--store", metavar="PATH", help="a store, or a kubelet's root: draw who holds what")
    parser.add_argument(
        "--format", choices=("text", "json"), default="text", help="a picture, or JSON (default: text)"
    )


def run(arguments: argparse.Namespace, /) -> int:
    """Print the machine; what could not be known goes to standard error."""
    found, notes = _found(arguments)
    holders: dict[str, CPUSet | str] = {**_labels(found.machine)}
    if arguments.store is not None:
        held, more = _held(found.machine, str(arguments.store))
        holders, notes = {**held, **holders}, [*notes, *more]
    if arguments.format == "json":
        print(json.dumps(_topology_json(found), indent=1))
    else:
        width = max(80, shutil.get_terminal_size((100, 24)).columns)
        picture = draw_text(
            found.machine, holders or None, shared=CPUSet(), width=width, colour=_wants_colour()
        )
        print(f"{picture}\n\n{_distances_text(found)}")
    for note in notes:
        print(f"note: {note}", file=sys.stderr)
    return 0


def _found(arguments: argparse.Namespace) -> tuple[Discovery, list[str]]:
    """The machine, with what is not known of it; of one that was written everything is."""
    words = arguments.machine
    found = discover(str(arguments.sysfs)) if words is None else named_machine(str(words))
    return found, [str(note) for note in found.notes]


def _held(machine: Machine, store: str) -> tuple[dict[str, CPUSet | str], list[str]]:
    """Who holds which CPUs by what a store says, and what was wrong there."""
    # Imported late: stores and nodes load much that a look at a machine spares.
    from nodealloc._cli._machines import cpus_held  # noqa: PLC0415

    return cpus_held(machine, store)


def _wants_colour() -> bool:
    """Whether colours are shown and wanted; `NO_COLOR` (no-color.org) set to anything says no."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _topology_json(found: Discovery) -> dict[str, object]:
    """The machine as JSON: each group is its smallest online CPU, or null where nothing tells it."""
    machine = by_first_cpu(found.machine)
    whole = machine_to_json(machine)
    cpus = {
        str(cpu.id): {
            "socket": None if cpu.id in found.no_socket else cpu.socket,
            "core": None if cpu.id in found.no_core else cpu.core,
            "l3": cpu.l3,
            "die": cpu.die,
            "cluster": cpu.cluster,
            "numa_nodes": [*cpu.numa_nodes],
        }
        for cpu in machine.cpus
    }
    names = ("numa_nodes", "distances", "offline_cpus", "isolated_cpus")
    return {"cpus": cpus, **{name: whole[name] for name in names}}


def _labels(machine: Machine) -> dict[str, CPUSet]:
    """What is worth a mark of its own on a machine that nobody uses yet: kinds of cores, isolated CPUs."""
    kinds = sorted({cpu.kind for cpu in machine.cpus if cpu.kind})
    marked = {f"{kind} cores": CPUSet(cpu.id for cpu in machine.cpus if cpu.kind == kind) for kind in kinds}
    return marked | ({"isolated": machine.isolated} if machine.isolated else {})


def _distances_text(found: Discovery) -> str:
    """The distances as a table, nodes in both directions."""
    machine = found.machine
    if machine.distances is None:
        return "distances: none told"
    nodes = [*machine.nodes]
    cells = [["", *map(str, nodes)]]
    cells += [[str(a), *(str(machine.distances[a][b]) for b in nodes)] for a in nodes]
    wide = max(len(cell) for row in cells for cell in row)
    lines = ("  ".join(f"{cell:>{wide}}" for cell in row) for row in cells)
    return "distances between NUMA nodes\n" + "\n".join(f"  {line}" for line in lines)
