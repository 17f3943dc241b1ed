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
    "class-cgroup-not-awaited": Change(
        "a pod comes in though there is nothing that its cgroup could stand in",
        "podlife/preparers/_cgroups.py",
        "why = report.refused.get(pod.uid) or report.failed.get(name) or _above(name, report)",
        "why = report.refused.get(pod.uid) or report.failed.get(name)",
        "disks",
    ),
    "cgroups-not-tried-again": Change(
        "a write to the cgroup of a class that failed is tried again with the next pod alone",
        "podlife/preparers/_cgroups.py",
        "            lambda _turn: self._round(),",
        "            lambda _turn: None,",
        "disks",
    ),
    "ends-for-no-sandbox": Change(
        "what runs is ended for an edit for which no sandbox can be made",
        "podlife/_performing.py",
        '            return NotYet(blocker="sandbox", message=words, after_s=self._policy.again_s)',
        "            return None",
        "calm",
    ),
    "hooks-not-called-off": Change(
        "a hook goes on, and is waited for, when its container has ended or its pod is to go",
        "podlife/_under_way.py",
        '(one.verb in _HOOKS and (is_current or (ends and one.verb == "post-start")))\n            or ',
        "",
        "calm",
    ),
    "probes-half-as-often": Change(
        "a container is probed half as often as its probe says",
        "probes/_asker.py",
        "due_s = line.asked_s + asking.schedule.period_s\n",
        "due_s = line.asked_s + 2 * asking.schedule.period_s\n",
        "calm",
    ),
    "devices-of-sidecars-lent": Change(
        "a main container is given the devices of a sidecar, which goes on with them",
        "devices/_stock.py",
        "free = set[str]().union(*ended) - set[str]().union(*kept)",
        "free = set[str]().union(*ended)",
        "plugins",
    ),
}
