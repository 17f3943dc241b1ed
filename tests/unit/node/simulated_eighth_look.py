"""Bugs that were planted when the time without faults in each life was looked at."""

from __future__ import annotations

from tests.unit.node.simulated_changes import Change

__all__ = ["EIGHTH_LOOK"]

EIGHTH_LOOK = {
    "hurry-not-heard-after-faults": Change(
        "a change is read with the next period, in a life whose disk had failed before",
        "podsources/_sources.py",
        "            hurried = view.want > have.number\n",
        "            hurried = False\n",
        "disks",
    ),
}
