"""Bugs that somebody planted who did not know what the simulation looks at: one to five lines each."""

from __future__ import annotations

from tests.unit.node.simulated_changes import Change

__all__ = ["BY_STRANGERS"]

BY_STRANGERS = {
    "condition-time-moves": Change(
        about="since when a pod is not ready moves with the words of why",
        file="podstatus/_merge.py",
        old="if old is not None and old.status is one.status:",
        new="if old is not None and (old.status, old.message) == (one.status, one.message):",
        seeds="kills",
    ),
    "always-never-succeeds": Change(
        about="a pod of policy Always whose containers ended with 0 has failed when it is deleted",
        file="podstatus/_phase.py",
        old="if pod.restart_policy is RestartPolicy.ALWAYS and not is_over:",
        new="if pod.restart_policy is RestartPolicy.ALWAYS:",
        seeds="calm",
    ),
    "hurry-off-by-one": Change(
        about="a listing that was under way already shows what a call did",
        file="runtime/_watch.py",
        old="return 0 if record is None else record.value",
        new="return 0 if record is None else record.value - 1",
        seeds="runtimes",
    ),
    "unknown-exit-is-255": Change(
        about="an exit that nobody knows is told as 255",
        file="podstatus/_containers.py",
        old="return (_LOST, reason) if is_told else (how, UNKNOWN)",
        new="return (_LOST, reason or UNKNOWN)",
        seeds="runtimes",
    ),
    "no-grace-is-30": Change(
        about="a grace of 0 counts as none that was given",
        file="podlife/_grace.py",
        old="grace_s = own_s or 0.0",
        new="grace_s = own_s or 30.0",
        seeds="calm",
    ),
    "no-answer-is-ready": Change(
        about="who has not been asked yet counts as ready",
        file="podstatus/_health.py",
        old="ready = verdict.readiness is True or not",
        new="ready = verdict.readiness is not False or not",
        seeds="calm",
    ),
    "parts-in-line": Change(
        about="parts of all pods are made ready one after the other",
        file="podlife/_syncing.py",
        old='scope=("pod", turn.uid, "parts"),',
        new='scope=("parts",),',
        seeds="hangs",
    ),
    "tellings-in-line": Change(
        about="pods are told of one after the other",
        file="podstatus/_telling.py",
        old='scope=("status", telling.uid),',
        new='scope=("status",),',
        seeds="hangs",
    ),
    "stop-begins-anew": Change(
        about="each look at a container that is stopped gives it its grace anew",
        file="podlife/_syncing.py",
        old="        if stop.container_id not in stopping:\n            grace_s",
        new="        if True:\n            grace_s",
        seeds="calm",
    ),
    "active-deadline-not-awaited": Change(
        about="nothing wakes a pod when it has been there for as long as it may",
        file="podlife/_domain.py",
        old="        return _sooner(answer, _active_deadline_s(record))",
        new="        return answer",
        seeds="calm",
    ),
    "intents-not-stored": Change(
        about="what a plan intends is not committed before its steps start",
        file="dsw_asw/_records.py",
        old="        changes.update((key, after) for key, (_, after) in intents.items())\n",
        new="",
        seeds="kills",
    ),
    "results-shown-unstored": Change(
        about="results that the journal refused are seen by everybody",
        file="dsw_asw/_records.py",
        old="        for key in [key for key in self._waiting if key not in held]:",
        new="        for key in list(self._waiting):",
        seeds="disks",
    ),
    "wish-outlives-pod": Change(
        about="what a pod wanted of its volumes is wanted when it is gone",
        file="volumes/_wanting.py",
        old="        for key in [key for key in was if key not in now]:",
        new="        for key in []:",
        seeds="disks",
    ),
    "ended-confined-on": Change(
        about="containers that have ended are confined on",
        file="agent/_cpusets.py",
        old="            if target not in runs:\n                self._cpusets.remove(target)\n",
        new="            pass\n",
        seeds="calm",
    ),
    "newest-told-by-wall-clock": Change(
        about="of two instances that one is told that the wall clock has later",
        file="podstatus/_containers.py",
        old="        return self.attempt, self.created_unix_s, self.id\n",
        new="        return self.created_unix_s, self.attempt, self.id\n",
        seeds="clocks",
    ),
    "back-off-from-start": Change(
        about="the wait before a restart counts from the start, not from the end",
        file="podlife/_restarts.py",
        old="        if entry is not None and now_s - ended_s < waits_s:",
        new="        if entry is not None and now_s - entry.started_s < waits_s:",
        seeds="calm",
    ),
    "end-seen-anew": Change(
        about="each look at a container that ended takes its end for a new one",
        file="podlife/_syncing.py",
        old='        if record.ended.get(name, ("", 0.0))[0] != cid and record.stopped.get(name) != cid\n',
        new="        if record.stopped.get(name) != cid\n",
        seeds="calm",
    ),
    "ends-stay-stored": Change(
        about="the row of ends that nobody needs any more stays in the store",
        file="runtime/_watch.py",
        old="        if known is None:\n            return {key: None}",
        new="        if known is None:\n            return {}",
        seeds="calm",
    ),
    "memory-not-given-back": Change(
        about="bytes that a pod of one container held are not free when it has gone",
        file="memblocks/_transitions.py",
        old="        if block.size_bytes:\n            row",
        new="        if block.size_bytes and len(members) > 1:\n            row",
        seeds="calm",
    ),
    "unwell-device-given": Change(
        about="a device that is not well is given out",
        file="devices/_allocator.py",
        old="            available=devices.healthy & ~self._held.get(resource, 0),\n",
        new="            available=devices.everything & ~self._held.get(resource, 0),\n",
        seeds="plugins",
    ),
}
