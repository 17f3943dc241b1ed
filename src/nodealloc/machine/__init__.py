"""What is there: CPUs, cores, caches, NUMA nodes, memory, huge pages, distances.

A `Machine` is a value: logical CPUs (`Cpu`), each with its core, socket and
L3 cache, and NUMA nodes (`NumaNode`) with CPUs, memory and huge pages. It
comes from anywhere, and everything else here only looks at it::

    /sys ──────── discover ──┐                          ┌── draw_text, draw_svg: who holds which CPU
    a JSON file ─ from_json ─┤                          ├── groups("l3"), groups("core"), ...
    cAdvisor ──── from_… ────┼──▶  Machine (a value) ───┼── fingerprint: what allocations rest on
    one line ──── from_text ─┘                          └── as_kubelet_counts, by_first_cpu

    >>> machine = machine_from_text("2 sockets x 4 cores x 2 threads")
    >>> machine.groups("core")[0], machine.node[1].cpus
    (CPUSet('0,8'), CPUSet('4-7,12-15'))
"""

from nodealloc.machine._cadvisor import machine_from_cadvisor
from nodealloc.machine._codec import machine_from_json, machine_to_json
from nodealloc.machine._discover import Discovery, discover
from nodealloc.machine._draw_svg import draw_svg
from nodealloc.machine._draw_text import draw_text
from nodealloc.machine._errors import MachineUnreadableError, NotAMachineError
from nodealloc.machine._model import Level, Machine
from nodealloc.machine._named import named_machine
from nodealloc.machine._parts import Cpu, NumaNode
from nodealloc.machine._synthetic import machine_from_text
from nodealloc.machine._sysfs import Note
from nodealloc.machine._views import as_kubelet_counts, by_first_cpu

__all__ = [
    "Cpu",
    "Discovery",
    "Level",
    "Machine",
    "MachineUnreadableError",
    "NotAMachineError",
    "Note",
    "NumaNode",
    "as_kubelet_counts",
    "by_first_cpu",
    "discover",
    "draw_svg",
    "draw_text",
    "machine_from_cadvisor",
    "machine_from_json",
    "machine_from_text",
    "machine_to_json",
    "named_machine",
]
