"""Bugs that were planted when preemption, and the time without faults in each life, were looked at."""

from __future__ import annotations

from tests.unit.node.simulated_changes import Change

__all__ = ["EIGHTH_LOOK"]

EIGHTH_LOOK = {
    "most-important-go-first": Change(
        "of pods that could make room each for a critical one the most important one does",
        "admission/_preemption.py",
        "for one in sorted(less, key=eviction_order, reverse=True):",
        "for one in sorted(less, key=eviction_order):",
        "calm",
    ),
    "waits-twice-as-long": Change(
        "a container waits twenty seconds before it starts again, seen once the disk fails no more",
        "podlife/_restarts.py",
        "base_s: float = attrs.field(default=10.0,",
        "base_s: float = attrs.field(default=20.0,",
        "disks",
    ),
}
