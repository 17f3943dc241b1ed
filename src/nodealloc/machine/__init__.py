"""What is there: CPUs, cores, caches, NUMA nodes, memory, huge pages, distances."""

from nodealloc.machine._cadvisor import as_kubelet_counts, machine_from_cadvisor
from nodealloc.machine._codec import machine_from_json, machine_to_json
from nodealloc.machine._discover import Discovery, discover
from nodealloc.machine._errors import NotAMachineError
from nodealloc.machine._model import LEVELS, Cpu, Level, Machine, NumaNode
from nodealloc.machine._synthetic import machine_from_text
from nodealloc.machine._sysfs import Note

__all__ = [
    "LEVELS",
    "Cpu",
    "Discovery",
    "Level",
    "Machine",
    "NotAMachineError",
    "Note",
    "NumaNode",
    "as_kubelet_counts",
    "discover",
    "machine_from_cadvisor",
    "machine_from_json",
    "machine_from_text",
    "machine_to_json",
]
