"""Further one-line changes of the library's own text, each found by the simulation of whole nodes."""

# ruff: noqa: E501 - the library's text, line by line as it stands there

from __future__ import annotations

from typing import NamedTuple

__all__ = ["CHANGES", "Change"]


class Change(NamedTuple):
    """What is wrong then; the file; what stands there, once; what stands there instead; who finds it soon."""

    about: str
    file: str
    old: str
    new: str
    seeds: str


CHANGES = {
    "grace-extended": Change(
        "a shorter grace counts anew from when it was read",
        "podlife/_ending.py",
        "    if record.grace_s is not None and grace_s >= record.grace_s:\n        return record\n    deadline_s = now_s + grace_s\n    if record.deadline_s is not None:\n        deadline_s = min(deadline_s, record.deadline_s)\n",
        "    if record.grace_s is not None and grace_s >= record.grace_s:\n        return record\n    deadline_s = now_s + grace_s\n",
        "calm",
    ),
    "journal-ignored": Change(
        "what the journal refused counts as written",
        "dsw_asw/_remembering.py",
        "            failed[name] = error\n",
        "            pass\n",
        "disks",
    ),
    "granted-uncommitted": Change(
        "what could not be remembered is granted",
        "node/_holdings.py",
        "            self._store.commit({**change.rows, **self._set_aside})\n",
        "            try:\n                self._store.commit({**change.rows, **self._set_aside})\n            except Exception:\n                pass\n",
        "disks",
    ),
    "verdicts-not-stored": Change(
        "what probes said is forgotten with the process",
        "probes/_probing.py",
        "    return {row_key(PROBE_ROWS, uid): verdicts_to_checkpoint(verdicts) if kept and verdicts else None}",
        "    return {}",
        "kills",
    ),
    "blocked-wakeup-lost": Change(
        "who waits for a scope is not woken when it is free",
        "dsw_asw/_begun.py",
        "            self._bookkeeping.due_keys.add(self._blocked.opened(operation.step.scope))\n",
        "            self._blocked.opened(operation.step.scope)\n",
        "hangs",
    ),
    "orphans-unheard": Change(
        "what runs and is not known is ended before sources were heard",
        "podlife/_arrivals.py",
        "if view.of(self._wanted) or not view.of(self._heard):",
        "if view.of(self._wanted):",
        "sinks",
    ),
    "no-hurry": Change(
        "nobody looks at what a call did",
        "podlife/_performing.py",
        "            acted = attrs.evolve(acted, listing=self._listings.hurry(uid, within_s))",
        "            acted = attrs.evolve(acted, listing=0)",
        "calm",
    ),
    "doubt-dropped": Change(
        "a call whose end nobody knows leaves no doubt",
        "podlife/_settling.py",
        "    return have.but(doubt=None if known is None else known.listing)",
        "    return have",
        "runtimes",
    ),
    "uncertain-is-failed": Change(
        "a start whose answer was lost counts as one that was not made",
        "podlife/_performing.py",
        "            return not_done(error.error, known, again_after_s)",
        "            return Failed(error.error, known=known, again_after_s=again_after_s)",
        "runtimes",
    ),
    "prune-newest": Change(
        "the newest record of an end is removed",
        "podlife/_pruning.py",
        "dead[record.name] > turn.policy.dead_kept",
        "dead[record.name] >= turn.policy.dead_kept",
        "calm",
    ),
    "active-sandbox-kept": Change(
        "volumes go before their pod's sandbox",
        "podlife/_ending.py",
        "    if boxes:\n        return Next(record=record, steps=tuple(stop_sandbox(uid, one, policy) for one in boxes))\n",
        "",
        "calm",
    ),
    "startup-ignored": Change(
        "probes ask before a container has started",
        "probes/_tally.py",
        "    return (seen.has_started is not True) if asking.kind is ProbeKind.STARTUP else bool(seen.has_started)",
        "    return (seen.has_started is not True) if asking.kind is ProbeKind.STARTUP else True",
        "calm",
    ),
    "killed-by-readiness": Change(
        "who is not ready is killed",
        "probes/_verdicts.py",
        "        return dict(self._known(lambda one: one.liveness))",
        "        return dict(self._known(lambda one: one.readiness))",
        "calm",
    ),
    "urgent-lost": Change(
        "nobody is told that a pod is gone",
        "podstatus/_telling.py",
        "            if not true.is_leaving:\n                return None\n",
        "            return None\n",
        "calm",
    ),
    "look-again-lost": Change(
        "who wants to look again looks an hour later",
        "dsw_asw/_bookkeeping.py",
        "                self._looks[key] = self.timers.add(due_s, partial(self._look, key))",
        "                self._looks[key] = self.timers.add(due_s + 3600, partial(self._look, key))",
        "calm",
    ),
    "retry-forever-held": Change(
        "what failed is never tried again",
        "dsw_asw/_bookkeeping.py",
        "                self.timers.add(failure.due_s, partial(self.due_keys.add, (key,))),",
        "                self.timers.add(failure.due_s, lambda: None),",
        "disks",
    ),
    "scope-not-released": Change(
        "a call that failed keeps its scope",
        "dsw_asw/_operations.py",
        "        self._scopes.release(operation.step.scope)\n",
        "        operation.outcome.__class__.__name__ == 'Failed' or self._scopes.release(operation.step.scope)\n",
        "runtimes",
    ),
    "intent-not-written-first": Change(
        "what the journal refused is published",
        "dsw_asw/_writing.py",
        "            turn.held |= self._records.publish(intents, turn.held)",
        "            turn.held |= self._records.publish(turn.intents, set())",
        "disks",
    ),
    "release-keeps-admitted": Change(
        "a pod that went stays among those that are in",
        "topology/_admission.py",
        "        if not left or left != held:\n            admitted = without_entry(admitted, workload)\n",
        "",
        "calm",
    ),
    "no-fsync": Change(
        "files are not flushed before they count",
        "checkpoint/_directory.py",
        '                call("fsync", self._at(name), self._files.fsync, descriptor)\n',
        "                pass\n",
        "power",
    ),
    "no-fsync-dir": Change(
        "a directory is not flushed after a rename",
        "checkpoint/_directory.py",
        '        call("fsync", self.path, self._files.fsync, self.descriptor)\n',
        "        pass\n",
        "power",
    ),
    "held-unmounted": Change(
        "what is found mounted at a start is taken away",
        "volumes/_settle.py",
        "    mount = PodMount(state=MOUNT_LIFE.after(MountState.ABSENT, MountEvent.FOUND), held=True)",
        "    mount = PodMount(state=MOUNT_LIFE.after(MountState.ABSENT, MountEvent.FOUND), held=False)",
        "kills",
    ),
    "failed-mount-is-mounted": Change(
        "a mount that failed counts as made",
        "volumes/_settle.py",
        "    state = MOUNT_LIFE.after(mount.state, done if is_done else unknown)",
        "    state = MOUNT_LIFE.after(mount.state, done)",
        "disks",
    ),
    "volume-let-go-early": Change(
        "volumes are let go before every pod is known",
        "volumes/_adoption.py",
        "        if self._awaited or self._by_pod:\n            return\n",
        "",
        "kills",
    ),
    "unmount-first-of-two": Change(
        "one mount of a volume is never taken away",
        "volumes/_plan.py",
        "    for uid, mount in actual.mounts.items():\n",
        "    for uid, mount in tuple(actual.mounts.items())[1:]:\n",
        "calm",
    ),
    "device-granted-twice": Change(
        "a device that somebody has is granted again",
        "devices/_allocator.py",
        "            available=devices.healthy & ~self._held.get(resource, 0),",
        "            available=devices.healthy,",
        "plugins",
    ),
    "devices-any-node": Change(
        "devices are taken from any NUMA node",
        "devices/_pick.py",
        "    for node in bits(affinity or 0):",
        "    for node in bits(0):",
        "plugins",
    ),
    "prestart-skipped": Change(
        "plugins do not prepare a start",
        "devices/plugins/_reconciler.py",
        "            if member == owner.member and wanted:\n",
        "            if False:\n",
        "plugins",
    ),
    "answers-not-kept": Change(
        "what a plugin answered is not kept",
        "devices/plugins/_preparing.py",
        "        return allocator.with_response(owner, resource, response) if grant == asked else allocator",
        "        return allocator",
        "plugins",
    ),
    "onfailure-stays-ended": Change(
        "what failed stays ended under policy OnFailure",
        "podlife/_actions.py",
        "    if policy is _POLICY_ON_FAILURE and latest.succeeded:\n        return",
        "    if policy is _POLICY_ON_FAILURE:\n        return",
        "calm",
    ),
    "own-deadline-ignored": Change(
        "a container that is told to end with its pod gets the pod's time, however little its own stop left it",
        "podlife/_ending.py",
        "is_sooner = own is not None and own.deadline_s < deadline_s",
        "is_sooner = False",
        "calm",
    ),
    "sandbox-not-stopped": Change(
        "volumes are taken from a pod whose sandbox stands",
        "podlife/_ending.py",
        "    if boxes:\n        return Next(record=record, steps",
        "    if False:\n        return Next(record=record, steps",
        "calm",
    ),
    "backoff-over-at-once": Change(
        "a start counts for nothing as soon as it has ended",
        "podlife/_restarts.py",
        "return ended_s - entry.started_s > self.reset_after_s",
        "return ended_s - entry.started_s > 0",
        "calm",
    ),
}
