"""Which CPUs exactly."""

from nodealloc.cpuset._errors import NotEnoughCpusError
from nodealloc.cpuset._hints import HintTable
from nodealloc.cpuset._layout import CpuLayout
from nodealloc.cpuset._pickers import SortStrategy
from nodealloc.cpuset._take import KubeletPicker, PickMode, take_cpus
from nodealloc.idset import CPUSet

__all__ = [
    "CPUSet",
    "CpuLayout",
    "HintTable",
    "KubeletPicker",
    "NotEnoughCpusError",
    "PickMode",
    "SortStrategy",
    "take_cpus",
]
