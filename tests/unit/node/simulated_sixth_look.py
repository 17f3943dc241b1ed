"""Bugs that were planted when edits that nobody can make, classes of cgroups and hooks were looked at."""

from __future__ import annotations

from tests.unit.node.simulated_changes import Change

__all__ = ["SIXTH_LOOK"]

SIXTH_LOOK = {
    "left-pod-counts-on": Change(
        "a pod that was to go before the agent came counts on when it has gone",
        "agent/_agent.py",
        "if node is not None and uid in node.view.pods and uid not in node.snapshot.admitted:",
        "if False and node is not None:",
        "calm",
    ),
}
