"""Bugs that were planted when names, late containers and calls on cgroups were looked at: each is found."""

# ruff: noqa: E501 - the library's text, line by line as it stands there

from __future__ import annotations

from tests.unit.node.simulated_changes import Change

__all__ = ["FIFTH_LOOK"]

FIFTH_LOOK = {
    "late-not-ended": Change(
        "what starts of a pod that is over runs on",
        "podlife/_domain.py",
        "case LifeState.FINISHED if self._rules.clears_away and (late := end_late(uid, observed, policy)):",
        "case LifeState.FINISHED if () and (late := end_late(uid, observed, policy)):",
        "calm",
    ),
    "twins-both-come": Change(
        "two static pods of one name both come in where nobody is known to have it",
        "podsources/_merge.py",
        "            came[pod.full_name] = pod.uid\n",
        "            pass\n",
        "kills",
    ),
    "twin-not-taken-up": Change(
        "a static pod whose name is free by now waits for another reading",
        "podsources/_merge.py",
        "            return {one: uid for one, uid in named.items() if (one, uid) in going}, {",
        "            return named, {",
        "calm",
    ),
    "cgroup-failure-unheard": Change(
        "a pod comes in whose cgroup could not be made, or limited",
        "podlife/preparers/_cgroups.py",
        "why = report.refused.get(pod.uid) or report.failed.get(name) or _above(name, report)",
        "why = report.refused.get(pod.uid) or _above(name, report)",
        "disks",
    ),
    "cgroup-failure-counts": Change(
        "limits that the kernel refused count as written",
        "cgroups/_domain.py",
        "            case _:\n                return have\n",
        "            case _:\n                return known.after(_E.WRITTEN, task.whole.over(known.asked)) if task.whole else have\n",
        "disks",
    ),
    "cgroup-in-use-counts-as-gone": Change(
        "a cgroup that is in use counts as removed",
        "cgroups/_domain.py",
        "        except CgroupBusyError as error:\n            return Failed(error, known=Result(stuck=error.processes or stuck))\n",
        "        except CgroupBusyError:\n            return Result()\n",
        "disks",
    ),
}
