"""Bugs that were planted when preemption, and what is called off at a pod's end, were looked at."""

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
}
