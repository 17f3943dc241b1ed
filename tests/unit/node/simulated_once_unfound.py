"""Bugs that found no checker, or no life that came to them, when they were planted first: each is found now."""

# ruff: noqa: E501 - the library's text, line by line as it stands there

from __future__ import annotations

from tests.unit.node.simulated_changes import Change

__all__ = ["ONCE_UNFOUND"]

ONCE_UNFOUND = {
    "stale-reading": Change(
        about="a source that says again what it had said before somebody's pod came counts as unchanged",
        file="podsources/_sources.py",
        old="                self._unchanged.clear()\n",
        new="",
        seeds="calm",
    ),
    "ports-of-who-ends": Change(
        about="ports of the node are free as soon as the pod that has them is to end",
        file="admission/_host_ports.py",
        old="        if found is None:\n            continue",
        new="        if found is None or one.state.is_ending:\n            continue",
        seeds="calm",
    ),
    "newer-counts-as-told": Change(
        about="what became of a pod while it was told of counts as told",
        file="podstatus/_telling.py",
        old="return attrs.evolve(have, told_version=tale.version, told_phase=tale.phase)",
        new="return attrs.evolve(have, told_version=have.version, told_phase=tale.phase)",
        seeds="sinks",
    ),
    "told-wait-slides": Change(
        about="how long is waited until others know that a pod ends counts anew with each look",
        file="podlife/_domain.py",
        old="if record.told_by_s is None and record.life is LifeState.TERMINATING:",
        new="if record.life is LifeState.TERMINATING:",
        seeds="sinks",
    ),
    "post-start-not-awaited": Change(
        about="containers start while the post-start hook of another one of their pod runs",
        file="podlife/_starting.py",
        old="    is_free = not hooks\n",
        new="    is_free = True\n",
        seeds="calm",
    ),
    "one-answer-more": Change(
        about="a probe has to fail, or do well, once more often than it says",
        file="probes/_tally.py",
        old="    counts = run >= (",
        new="    counts = run > (",
        seeds="calm",
    ),
    "sidecar-liveness-ignored": Change(
        about="a sidecar whose liveness probe fails runs on",
        file="podlife/_init_walk.py",
        old="        elif one.liveness_probe is not None and draft.seen.alive.get(latest.id) is False:",
        new="        elif False:",
        seeds="calm",
    ),
    "edited-parts-not-ready": Change(
        about="what runs is ended for an edit that may not come in",
        file="podlife/_forms.py",
        old="        if not waits or coming.ready.issuperset(parts):\n            record = in_form(record, coming)",
        new="        if True:\n            record = in_form(record, attrs.evolve(coming, ready=frozenset(parts)))",
        seeds="calm",
    ),
    "edit-holds-up-starts": Change(
        about="what ends while an edit of its pod waits stays down until that comes in",
        file="podlife/_forms.py",
        old="        if not waits or coming.ready.issuperset(parts):",
        new="        if True:",
        seeds="calm",
    ),
    "edit-never-comes-in": Change(
        about="a pod that runs stays as it is, though an edit of it is ready",
        file="podlife/_forms.py",
        old="        if not waits or coming.ready.issuperset(parts):",
        new="        if not waits:",
        seeds="calm",
    ),
    "edited-volume-taken": Change(
        about="a volume that an edit takes out of a pod is taken from who still runs on it",
        file="volumes/_populator.py",
        old="                    resolved = {**have.resolved, **resolved}",
        new="                    resolved = {**{name: one for name, one in have.resolved.items() if name in found.errors}, **resolved}",
        seeds="calm",
    ),
    "other-memory-refused": Change(
        about="who has CPUs of its own is refused other memory on a node that does not resize CPUs",
        file="cpuset/_resize.py",
        old="    if held is not None and not demand.fault and _is_as_asked(held, demand):",
        new="    if False:",
        seeds="calm",
    ),
    "edited-deletion-lost": Change(
        about="of a pod that is edited and deleted at once the deletion is lost until the source is read again",
        file="podsources/_merge.py",
        old="        local = {key: was.annotations[key]",
        new='        if said.containers != was.containers:\n            said = attrs.evolve(said, deletion_timestamp="")\n        local = {key: was.annotations[key]',
        seeds="calm",
    ),
    "moved-unseen": Change(
        about="that a record became another one during a call is heard too late to count",
        file="dsw_asw/_begun.py",
        old="            moved = self._records.has_moved(key, operation.generation)",
        new="            moved = False",
        seeds="calm",
    ),
    "resize-not-given": Change(
        about="a container that runs keeps the amounts that it was made with",
        file="podlife/_starting.py",
        old="        newest = turn.observed.report.newest(one.name) if one.resize else None",
        new="        newest = None",
        seeds="calm",
    ),
    "crash-loop-untold": Change(
        about="that a container waits for its back-off is not told",
        file="podstatus/_containers.py",
        old="(waits and self._starts_again(container, instances, is_init=is_init))",
        new="(failure is not None and not instances)",
        seeds="calm",
    ),
    "edited-waits-on": Change(
        about="a container that is edited waits for the back-off of what it was",
        file="podlife/_restarts.py",
        old="        entry = self.entries.get(key)\n",
        new="        entry = self.entries.get(key) or next((one for old, one in self.entries.items() if old[0] == name), None)\n",
        seeds="calm",
    ),
    "initialized-before-sidecar": Change(
        about="a pod is told to be initialized whose sidecars have not started",
        file="podstatus/_conditions.py",
        old="    return status.started is True if container.restartable else status.ready",
        new="    return True if container.restartable else status.ready",
        seeds="calm",
    ),
    "ready-without-sidecars": Change(
        about="a pod is told to be ready whose sidecars are not",
        file="podstatus/_conditions.py",
        old="    counted = [one for one in pod.init_containers if one.restartable] + [*pod.containers]",
        new="    counted = [*pod.containers]",
        seeds="calm",
    ),
    "addresses-lost-at-end": Change(
        about="where a pod was is not told any more once it ends",
        file="podstatus/_status.py",
        old="(report is None or observed.is_ending)",
        new="report is None",
        seeds="calm",
    ),
    "image-id-untold": Change(
        about="it is not told from which image a container runs, whatever its name",
        file="podstatus/_containers.py",
        old="            image_id=newest.image_id or (told.image_id if told else None),",
        new="            image_id=None,",
        seeds="calm",
    ),
    "never-prunes": Change(
        about="records of instances that ended pile up while their pod goes on",
        file="podlife/_pruning.py",
        old="        if goes and record.id not in ours:",
        new="        if False:",
        seeds="calm",
    ),
    "able-to-start-in-nothing": Change(
        about="containers are told to be able to start in a sandbox that has ended",
        file="podstatus/_conditions.py",
        old="report is not None and not report.why_no_sandbox(host_network=pod.host_network)",
        new="report is not None and report.sandbox is not None",
        seeds="outages",
    ),
    "memory-not-given": Change(
        about="containers start on the memory of all NUMA nodes, whatever they were granted",
        file="agent/_granted.py",
        old="mems=held.mems)",
        new="mems=None)",
        seeds="calm",
    ),
}
