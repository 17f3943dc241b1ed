"""Bugs that were planted when the simulation was looked through a fourth time: each is found."""

# ruff: noqa: E501 - the library's text, line by line as it stands there

from __future__ import annotations

from tests.unit.node.simulated_changes import Change

__all__ = ["FOURTH_LOOK"]

FOURTH_LOOK = {
    "put-back-is-over": Change(
        "a manifest that was taken away and is put back is the pod that has ended",
        "podsources/_editions.py",
        "(not self.is_there or (self.has_ended and is_edited))",
        "(self.has_ended and is_edited)",
        "calm",
    ),
    "editions-not-kept": Change(
        "which of the pods of its name a static pod is, is forgotten with the agent",
        "podsources/_sources.py",
        "            if self._remember is not None:\n",
        "            if False:\n",
        "kills",
    ),
    "names-gone-forgotten": Change(
        "names of static pods are forgotten as soon as their manifests are gone",
        "podsources/_editions.py",
        "        by_name = {**gone, **names}\n",
        "        by_name = names\n",
        "calm",
    ),
    "cgroup-stays": Change(
        "a pod's cgroup stays when its pod is gone",
        "podlife/preparers/_cgroups.py",
        "            self._pods.pop(pod.uid, None)\n            self._gone.add(pod.uid)\n",
        "            self._gone.add(pod.uid)\n",
        "calm",
    ),
    "cgroup-as-made": Change(
        "an edit of a pod leaves its cgroup as it was",
        "podlife/preparers/_cgroups.py",
        "            if self._follows or pod.uid not in self._pods:\n",
        "            if pod.uid not in self._pods:\n",
        "calm",
    ),
    "pod-memory-unlimited": Change(
        "a pod as a whole may use all the memory there is",
        "cgroups/_pods.py",
        "        memory_bytes=_pages(memory or 0),\n",
        "        memory_bytes=None,\n",
        "calm",
    ),
    "untold-cgroups-go": Change(
        "cgroups of pods of which nobody has told yet are removed, with all that runs there",
        "podlife/preparers/_cgroups.py",
        "leave=untold)",
        "leave=())",
        "calm",
    ),
    "burstable-weighs-little": Change(
        "pods of the burstable class weigh nothing against guaranteed ones",
        "cgroups/_qos_tree.py",
        "            cpu_shares=milli_cpu_to_shares(burstable_cpu),\n",
        "            cpu_shares=MIN_SHARES,\n",
        "calm",
    ),
    "found-limits-right": Change(
        "whatever limits are found at the start count as those that are wanted",
        "cgroups/_reconciler.py",
        "stands = limits.only(found.asked.keys() if is_left else same_in(limits, found))",
        "stands = limits",
        "kills",
    ),
    "class-of-another": Change(
        "each pod's cgroup stands in the class of best effort",
        "cgroups/_pods.py",
        "return root if qos is QosClass.GUARANTEED else root.child(qos.value.lower())",
        "return root if qos is QosClass.GUARANTEED else root.child('besteffort')",
        "calm",
    ),
    "cgroup-not-awaited": Change(
        "containers start before their pod's cgroup is there",
        "podlife/preparers/_cgroups.py",
        "        report = self._round()\n        if report is None:\n            return NotYet",
        "        return Provided(value=PodRunOptions(cgroup_parent=pod_name(self._tree.options.root, pod).path()))\n        report = self._round()\n        if report is None:\n            return NotYet",
        "calm",
    ),
    "not-free-ignored": Change(
        "a container with CPUs of its own starts while others still run there",
        "agent/_admission.py",
        "        return self._confined.not_free(pod) or verdict\n",
        "        return verdict\n",
        "calm",
    ),
    "sandbox-beside-running": Change(
        "another sandbox is made beside one that still stands",
        "podlife/_starting.py",
        "    if old:\n        return record, tuple(stop_sandbox",
        "    if False:\n        return record, tuple(stop_sandbox",
        "outages",
    ),
    "sidecars-end-first": Change(
        "sidecars end beside the main containers that need them",
        "podlife/_grace.py",
        "            after[one.name] = mains | later\n",
        "            after[one.name] = later\n",
        "calm",
    ),
    "sidecar-startup-ignored": Change(
        "what comes after a sidecar starts before that has started",
        "podlife/_init_walk.py",
        "        if one.startup_probe is not None:\n            started =",
        "        if False:\n            started =",
        "calm",
    ),
    "start-time-moves": Change(
        "when a pod was taken up is told as another moment each time",
        "podstatus/_taking.py",
        "        started = before.started_unix_s\n",
        "        started = now_unix_s\n",
        "calm",
    ),
    "pending-init-runs": Change(
        "a pod is told to run while its init containers do",
        "podstatus/_phase.py",
        "    if waits or (any(starts) and not has_begun(pod, told)) or count.waiting:\n        return PodPhase.PENDING",
        "    if waits or (any(starts) and not has_begun(pod, told)) or count.waiting:\n        return PodPhase.RUNNING",
        "calm",
    ),
    "probe-delay-ignored": Change(
        "a probe asks at once, whatever delay it says",
        "probes/_schedule.py",
        "            initial_delay_s=float(probe.initial_delay_seconds),\n",
        "            initial_delay_s=0.0,\n",
        "calm",
    ),
    "kill-left-out": Change(
        "a container that no call to end it reached is never killed",
        "podlife/_stops.py",
        "        elif rules.keeps_deadline:\n            steps.append(_stop(uid, one, policy, kills=True))\n",
        "",
        "hangs",
    ),
    "ready-unasked": Change(
        "a container is told to be ready before anybody asked its readiness probe",
        "podstatus/_health.py",
        "    ready = verdict.readiness is True or not",
        "    ready = verdict.readiness is not False or not",
        "calm",
    ),
    "recover-skipped": Change(
        "what a commit that was cut short left is taken as it stands",
        "checkpoint/_file_store.py",
        "        self._directory.recover()\n",
        "",
        "kills",
    ),
    "no-heirs": Change(
        "a plugin that registered by two sockets is let go with one of them, though it serves at the other",
        "pluginreg/_domain.py",
        "        if not heirs:\n            handler.dereg",
        "        if True:\n            handler.dereg",
        "plugins",
    ),
}
