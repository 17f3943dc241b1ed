"""One-line changes of the library that break what outlives a restart, or what is told: each is found."""

# ruff: noqa: E501 - the library's text, line by line as it stands there

from __future__ import annotations

from tests.unit.node.simulated_changes import Change

__all__ = ["RESTARTS"]

RESTARTS = {
    "memory-unlimited": Change(
        "as much memory is admitted as anybody asks for",
        "admission/_fit.py",
        "        if nanos <= free or (elsewhere",
        '        if name == "memory" or nanos <= free or (elsewhere',
        "power",
    ),
    "sidecar-unstarted": Change(
        "nobody waits until a sidecar says that it has started",
        "podlife/_init_walk.py",
        "        if one.startup_probe is not None:\n            started",
        "        if False:\n            started",
        "calm",
    ),
    "end-anew": Change(
        "a pod that ends has all of its grace again after a kill",
        "podlife/_codec.py",
        "deadline_s=None if row.deadline is None else at(row.deadline),",
        "deadline_s=None if row.grace_s is None else now.monotonic_s + row.grace_s,",
        "everything",
    ),
    "end-at-once": Change(
        "a pod that ends has no time left after a kill",
        "podlife/_codec.py",
        "deadline_s=None if row.deadline is None else at(row.deadline),",
        "deadline_s=None if row.deadline is None else now.monotonic_s,",
        "everything",
    ),
    "parts-forgotten": Change(
        "what was made ready for a pod is forgotten with the process",
        "podlife/_codec.py",
        "        **{name: getattr(row, name) for name in _SAME},\n    )",
        "        **({name: getattr(row, name) for name in _SAME} | {'made': ()}),\n    )",
        "kills",
    ),
    "lives-forgotten": Change(
        "how far a pod had come is forgotten with the process",
        "podlife/_codec.py",
        "        **{name: getattr(row, name) for name in _SAME},\n    )",
        "        **({name: getattr(row, name) for name in _SAME} | {'life': LifeState.WAITING}),\n    )",
        "kills",
    ),
    "starts-forgotten": Change(
        "what was about to start is forgotten with the process",
        "podlife/_codec.py",
        "        **{name: getattr(row, name) for name in _SAME},\n    )",
        "        **({name: getattr(row, name) for name in _SAME} | {'starting': {}}),\n    )",
        "kills",
    ),
    "never-told-again": Change(
        "what was not told before a kill is not told after it",
        "podstatus/_codec.py",
        "        told_version=row.told_version,\n        told_phase=row.told_phase,\n        is_over=row.is_over,\n        is_leaving=row.is_leaving,\n        sidecars=frozenset",
        "        told_version=row.version,\n        told_phase=row.told_phase,\n        is_over=row.is_over,\n        is_leaving=row.is_leaving,\n        sidecars=frozenset",
        "kills",
    ),
    "verdicts-fall": Change(
        "what probes had said falls until the runtime was asked after a kill",
        "probes/_asks.py",
        "    if want.pod is None or report is None:\n        return before",
        "    if want.pod is None or report is None:\n        return PodVerdicts(uid=uid)",
        "power",
    ),
    "hook-again": Change(
        "a hook is run again as long as there is time",
        "podlife/_stops.py",
        "hooks.get(cid, HookState.WAITS) is HookState.WAITS and now_s < told_s",
        "now_s < told_s",
        "calm",
    ),
    "deadline-later": Change(
        "a shorter grace puts the end of a pod off",
        "podlife/_ending.py",
        "deadline_s = min(deadline_s, record.deadline_s)",
        "deadline_s = max(deadline_s, record.deadline_s)",
        "calm",
    ),
    "grace-half": Change(
        "a container gets half of the time that is left",
        "podlife/_performing.py",
        "        left_s = left_to_end_s(detail, self._worlds.pods.get(uid), self._clock.monotonic_s())\n        if cid",
        "        left_s = left_to_end_s(detail, self._worlds.pods.get(uid), self._clock.monotonic_s()) / 2\n        if cid",
        "calm",
    ),
    "sandbox-not-awaited": Change(
        "a pod is over before anybody has seen that nothing of it is left",
        "podlife/_ending.py",
        "    if is_busy or not observed.is_shown:\n        return Next(record=record)\n    event",
        "    event",
        "runtimes",
    ),
    "id-of-old": Change(
        "the id of the instance before is told",
        "podstatus/_containers.py",
        "            container_id=self._scheme + newest.id,\n        )\n\n    def _state",
        "            container_id=(old.container_id if old and old.container_id else self._scheme + newest.id),\n        )\n\n    def _state",
        "calm",
    ),
    "start-of-another-time": Change(
        "another time is told than that of the start",
        "podstatus/_containers.py",
        "            return ContainerRunning(started_unix_s=one.started_unix_s)",
        "            return ContainerRunning(started_unix_s=(one.started_unix_s or 0.0) + 60.0)",
        "calm",
    ),
    "last-end-lost": Change(
        "the end before is not told once its record is gone",
        "podstatus/_containers.py",
        "            last = _before(old, self._scheme + newest.id)",
        "            last = None",
        "everything",
    ),
    "last-end-oldest": Change(
        "the oldest end is told as the last one",
        "podstatus/_containers.py",
        "            last = self._state(earlier[0], was_running=was_running)",
        "            last = self._state(earlier[-1], was_running=was_running)",
        "calm",
    ),
    "hooks-forgotten": Change(
        "that a hook was run before an end is forgotten with the process",
        "podlife/_codec.py",
        "        **{name: getattr(row, name) for name in _SAME},\n    )",
        "        **({name: getattr(row, name) for name in _SAME} | {'pre_stop': {}}),\n    )",
        "kills",
    ),
    "stops-forgotten": Change(
        "until when a container has to have ended is forgotten with the process",
        "podlife/_codec.py",
        "cid: attrs.evolve(one.stopping, deadline_s=at(one.deadline)) for cid, one in row.stopping.items()",
        "cid: attrs.evolve(one.stopping, deadline_s=at(one.deadline)) for cid, one in ()",
        "sinks",
    ),
    "back-off-forgotten": Change(
        "how long a container waits is forgotten with the process",
        "podlife/_codec.py",
        "                for one in row.restarts\n",
        "                for one in ()\n",
        "kills",
    ),
    "back-off-begins-anew": Change(
        "a container waits ten seconds again after a kill",
        "podlife/_codec.py",
        "RestartEntry(delay_s=one.delay_s, started",
        "RestartEntry(delay_s=10.0, started",
        "kills",
    ),
    "deadline-anew": Change(
        "how long a pod has been there is counted from the last kill",
        "podlife/_codec.py",
        "        noticed_s=at(row.noticed),",
        "        noticed_s=now.monotonic_s,",
        "kills",
    ),
    "startup-forgotten": Change(
        "what a startup probe had said is forgotten with the process",
        "probes/_codec.py",
        "            verdicts = verdicts.with_verdict(kind, verdict)",
        "            verdicts = verdicts.with_verdict(kind, NO_ANSWER if kind is ProbeKind.STARTUP else verdict)",
        "kills",
    ),
    "since-anew": Change(
        "the time of a condition is that of each status",
        "podstatus/_merge.py",
        "    if old is not None and old.status is one.status:\n        at_unix_s = old",
        "    if False:\n        at_unix_s = old",
        "calm",
    ),
    "own-grace-ignored": Change(
        "whose probe fails has no grace but a probe's",
        "podlife/_grace.py",
        "    return own_s if probe_s is None else probe_s",
        "    return _LEAST_S if probe_s is None else probe_s",
        "calm",
    ),
    "addresses-untold": Change(
        "addresses of pods are not told",
        "podstatus/_status.py",
        "    ips = report.ips if report else ()\n",
        "    ips = ()\n",
        "calm",
    ),
}
