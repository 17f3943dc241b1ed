"""Values only: which policy decides, and where it may do better than the kubelet."""

from __future__ import annotations

import enum

from nodealloc import _attrs as attrs
from nodealloc._typed import typed_fields

__all__ = ["MemoryOptions", "MemoryPolicy"]


class MemoryPolicy(enum.Enum):
    """The policies by their kubelet names (``memoryManagerPolicy``)."""

    NONE = "None"
    """Pins nothing and has no preference."""
    STATIC = "Static"
    """Pins the memory of exclusive claims to groups of NUMA nodes."""
    BEST_EFFORT = "BestEffort"
    """Decides as `STATIC`; the name that the kubelet uses where the system cannot confine memory."""


@typed_fields
@attrs.frozen(kw_only=True)
class MemoryOptions:
    """Departures from what the kubelet decides; all off by default.

    Attributes:
        strict: A node serves its own allocations or those of one group, without
            exception: a merged affinity of one node inside a group is widened
            to the group. Free bytes then depend on what is held alone, so that
            a state equals the replay of its grants in any order, and a
            workload's hints count what only its init members ask for.
        fall_back: An affinity that nobody prefers (as the best-effort topology
            policy merges them) and that cannot serve gives way to the best
            group that can, instead of a refusal.
    """

    strict: bool = False
    fall_back: bool = False
