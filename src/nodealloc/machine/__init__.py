"""What is there: CPUs, cores, caches, NUMA nodes, memory, huge pages, distances."""

from nodealloc.machine._discover import Discovery, discover
from nodealloc.machine._errors import NotAMachineError
from nodealloc.machine._model import LEVELS, Cpu, Level, Machine, NumaNode
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
    "discover",
]
