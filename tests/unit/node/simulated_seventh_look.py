"""Bugs that were planted when room for critical pods, ends that nobody hastens and periods were looked at."""

from __future__ import annotations

from tests.unit.node.simulated_changes import Change

__all__ = ["SEVENTH_LOOK"]

SEVENTH_LOOK = {
    "killed-a-grace-later": Change(
        "a container whose call to end it hangs is killed a whole grace after its deadline",
        "podlife/_stops.py",
        "late_s = one.deadline_s + more_s + policy.late_s",
        "late_s = one.deadline_s + one.grace_s + more_s + policy.late_s",
        "hangs",
    ),
    "nobody-makes-room": Change(
        "a pod that the node itself asks to end goes on",
        "podlife/_ending.py",
        "found = list(want.endings)",
        "found = list(want.endings[:0])",
        "calm",
    ),
    "everybody-makes-room": Change(
        "all pods that are less important make room for a critical one",
        "admission/_preemption.py",
        "for one in sorted(less, key=eviction_order, reverse=True):",
        "for one in ():",
        "calm",
    ),
    "equals-make-room": Change(
        "a critical pod makes room for another one",
        "admission/_preemption.py",
        "rank(one.pod) < rank(pod)]",
        "rank(one.pod) <= rank(pod) and one.pod.uid != pod.uid]",
        "calm",
    ),
    "nobody-hears-of-the-end": Change(
        "whoever keeps something for a pod is not told that it is no more",
        "agent/_agent.py",
        "        if facts is None:\n            self._forget(uid)\n            return\n",
        "        if facts is None:\n            return\n",
        "calm",
    ),
    "periods-from-answers": Change(
        "the period of a probe begins with its answer",
        "probes/_asker.py",
        "due_s = line.asked_s + asking.schedule.period_s\n",
        "due_s = now_s + asking.schedule.period_s\n",
        "calm",
    ),
    "devices-of-inits-kept": Change(
        "devices of init containers that have ended are not there for the next container",
        "devices/_stock.py",
        "        if not claim.reuse:\n            return 0\n",
        "        return 0\n",
        "calm",
    ),
}
