"""What is there: CPUs, cores, caches, NUMA nodes, memory, huge pages, distances."""

from nodealloc.machine._model import Cpu, Machine, NumaNode

__all__ = ["Cpu", "Machine", "NumaNode"]
