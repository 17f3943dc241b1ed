"""Which CPUs exactly."""

from nodealloc.idset import CPUSet

__all__ = ["CPUSet"]
