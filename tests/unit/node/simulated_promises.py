"""One-line changes of the library that break what an agent owes in time, or what it tells: each is found."""

# ruff: noqa: E501 - the library's text, line by line as it stands there

from __future__ import annotations

from tests.unit.node.simulated_changes import Change

__all__ = ["PROMISES"]

PROMISES = {
    "deadline-anew": Change(
        "how long a pod may be active counts anew after a kill",
        "podlife/_codec.py",
        "        noticed_s=at(row.noticed),\n",
        "        noticed_s=now.monotonic_s,\n",
        "kills",
    ),
    "count-reset": Change(
        "of restarts only what the newest instance says is told",
        "podstatus/_containers.py",
        "            count = max(*counts, self._observed.counts.get(container.name, 0))\n",
        "            count = status.restart_count\n",
        "runtimes",
    ),
    "liveness-once": Change(
        "who was alive once is not asked again",
        "probes/_tally.py",
        "(asking.kind is ProbeKind.STARTUP or not succeeded)",
        "True",
        "calm",
    ),
    "shorter-grace-not-heard": Change(
        "a shorter grace is not taken over",
        "podlife/_ending.py",
        "    if record.grace_s is not None and grace_s >= record.grace_s:\n        return record\n",
        "    if record.grace_s is not None:\n        return record\n",
        "calm",
    ),
    "unlimited-cpu": Change(
        "as much CPU is admitted as anybody asks for",
        "admission/_fit.py",
        "        if nanos <= free or (elsewhere",
        '        if name == "cpu" or nanos <= free or (elsewhere',
        "kills",
    ),
    "probe-grace-ignored": Change(
        "who is ended for its probe has its pod's grace",
        "podlife/_syncing.py",
        "        probe_s=None if probe is None else probe.termination_grace_period_seconds,",
        "        probe_s=None,",
        "calm",
    ),
    "gone-without-end": Change(
        "that a pod is gone is told in place of its end",
        "podstatus/_telling.py",
        "        if true.is_told:\n            if not",
        "        if true.is_told or true.is_leaving:\n            if not",
        "sinks",
    ),
    "hurry-not-heard": Change(
        "a change is read with the next period",
        "podsources/_sources.py",
        "            hurried = view.want > have.number\n",
        "            hurried = False\n",
        "calm",
    ),
    "hurry-forgotten": Change(
        "a change that comes during a reading is not read",
        "podsources/_sources.py",
        "                    number=max(before.number, step.detail),\n                    count=before.count + 1,\n                    tried_s=outcome.ended_s,\n                    due_s=outcome.ended_s + max",
        "                    number=max(before.number, step.detail) + 1,\n                    count=before.count + 1,\n                    tried_s=outcome.ended_s,\n                    due_s=outcome.ended_s + max",
        "calm",
    ),
    "done-twice-always": Change(
        "what was performed is performed again",
        "dsw_asw/_operations.py",
        "            answer = self._perform(operation.step, operation.cancel)\n",
        "            self._perform(operation.step, operation.cancel)\n            answer = self._perform(operation.step, operation.cancel)\n",
        "calm",
    ),
    "strangers-stay": Change(
        "what is not named in a pod runs on",
        "podlife/_draft.py",
        "        older = self._older() if self.older else ()\n",
        "        older = ()\n",
        "calm",
    ),
    "vanished-is-zero": Change(
        "who vanished has ended well",
        "podlife/_observed.py",
        '            exit=ExitUnknown(),\n            reason="ContainerStatusUnknown",\n            message="it was started',
        '            exit=Exited(code=0),\n            reason="ContainerStatusUnknown",\n            message="it was started',
        "runtimes",
    ),
    "ending-counts-not": Change(
        "who is ending is not known to",
        "agent/_agent.py",
        "        self._node.mark_ending(pod if counts else pod.uid)\n",
        "        pass\n",
        "kills",
    ),
    "intruder-inspected-unseen": Change(
        "containers that run are not confined",
        "agent/_cpusets.py",
        "            self._cpusets.add(target, owner, mems=",
        "            len(runs) > 1 and self._cpusets.add(target, owner, mems=",
        "calm",
    ),
    "post-start-forgotten": Change(
        "a post-start hook that the agent was killed in is not run again",
        "podlife/_codec.py",
        "        **{name: getattr(row, name) for name in _SAME},\n    )",
        "        **({name: getattr(row, name) for name in _SAME} | {'post_start': {}}),\n    )",
        "kills",
    ),
    "post-start-again": Change(
        "post-start hooks are run again after a kill",
        "podlife/_codec.py",
        "        **{name: getattr(row, name) for name in _SAME},\n    )",
        "        **({name: getattr(row, name) for name in _SAME} | {'post_start': dict.fromkeys(row.post_start, HookState.WAITS)}),\n    )",
        "kills",
    ),
    "pre-stop-again": Change(
        "a pre-stop hook that failed is run again",
        "podlife/_settling.py",
        "    if detail.kind is HookKind.PRE_STOP:\n        return have",
        "    if detail.kind is HookKind.PRE_STOP and state is HookState.FAILED:\n        return have\n    if detail.kind is HookKind.PRE_STOP:\n        return have",
        "calm",
    ),
    "nobody-makes-room": Change(
        "nobody ends for a critical pod",
        "agent/_admission.py",
        "                if self._end(uid, _PREEMPTED) is not False:",
        "                if False:",
        "calm",
    ),
    "everybody-makes-room": Change(
        "everybody less important ends for a critical pod",
        "admission/_preemption.py",
        "            del chosen[one.pod.uid]",
        "            pass",
        "calm",
    ),
    "failed-gone-is-done": Change(
        "what failed, and whose record is gone, counts as done",
        "podlife/_newest.py",
        "newest[name] = Latest(_EXITED, end.exit, end.reason, None,",
        "newest[name] = Latest(_EXITED, Exited(code=0), end.reason, None,",
        "runtimes",
    ),
    "waits-without-end": Change(
        "how long a container waits in a crash loop has no end",
        "podlife/_restarts.py",
        "return min(max(entry.delay_s * self.factor, base_s), cap_s)",
        "return max(entry.delay_s * self.factor, base_s)",
        "calm",
    ),
    "initial-delay-ignored": Change(
        "a probe is asked as soon as its container has started",
        "probes/_schedule.py",
        "            initial_delay_s=float(probe.initial_delay_seconds),",
        "            initial_delay_s=0.0,",
        "calm",
    ),
}
