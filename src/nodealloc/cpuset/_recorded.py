"""Values only: what was decided before a restart, not yet compared with any machine."""

from __future__ import annotations

from nodealloc import _attrs as attrs
from nodealloc.cpuset._state import CpuState
from nodealloc.idset import CPUSet

__all__ = ["RecordedCpus"]


@attrs.frozen(kw_only=True)
class RecordedCpus:
    """What was remembered, before anybody checked it against the machine.

    Attributes:
        policy_name: Policy that wrote it: `none` or `static`.
        shared: The shared pool at that time.
        state: The assignments; they may name absent CPUs, and overlap.
    """

    policy_name: str
    shared: CPUSet = CPUSet()
    state: CpuState = attrs.field(factory=CpuState)
