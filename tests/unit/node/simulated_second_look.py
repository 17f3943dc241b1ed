"""Bugs that were planted by people who had not seen the checkers, and a second time: each is found."""

from __future__ import annotations

from tests.unit.node.simulated_changes import Change

__all__ = ["SECOND_LOOK"]

SECOND_LOOK = {
    "sidecar-startup-ignored": Change(
        "a sidecar whose startup probe fails runs on",
        "podlife/_init_walk.py",
        "                if started is False:",
        "                if started is None and latest.exit is not None:",
        "calm",
    ),
    "waits-when-over": Change(
        "of a pod that is over what waited is told to wait on",
        "podstatus/_taking.py",
        "        main = tuple(_lost(one, rules) for one in main)",
        "        pass",
        "outages",
    ),
    "last-end-is-its-own": Change(
        "the end before is told to be that of the same instance",
        "podstatus/_containers.py",
        "        if isinstance(state, ContainerTerminated) and state.container_id != container_id:",
        "        if isinstance(state, ContainerTerminated):",
        "runtimes",
    ),
    "never-runs-in-new-sandbox": Change(
        "a pod of policy Never runs again once its sandbox is lost",
        "podlife/_actions.py",
        "    if pod.restart_policy is _POLICY_NEVER and need.attempt and newest:",
        "    if False:",
        "outages",
    ),
    "failed-init-is-done": Change(
        "an init container that failed counts as done",
        "podlife/_syncing.py",
        "            and succeeded(observed.ends_by_id.get(one.record.id))\n",
        "",
        "outages",
    ),
    "debugger-again": Change(
        "a container that was added to look at a pod runs again",
        "podlife/_actions.py",
        "            draft.why[one.name] = Why.RAN_ONCE",
        "            draft.start(one.name, Why.RAN_ONCE)",
        "calm",
    ),
    "edits-unjudged": Change(
        "an edit comes in however much it asks for",
        "agent/_admission.py",
        "return self._judges_edits and self._node.is_edited(pod)",
        "return False",
        "calm",
    ),
    "mounts-of-first": Change(
        "volumes of the first container are given to each",
        "podlife/_configuration/_container.py",
        "_with_files(_mounts(pod, container, options, own)",
        "_with_files(_mounts(pod, pod.containers[0], options, own)",
        "calm",
    ),
    "variables-of-first": Change(
        "variables of the first container are given to each",
        "podlife/_configuration/_container.py",
        "variables_of(pod, container, node=node",
        "variables_of(pod, pod.containers[0], node=node",
        "calm",
    ),
    "arguments-lost": Change(
        "containers are made without their arguments",
        "podlife/_configuration/_container.py",
        "        args=tuple(expand(one, own) for one in container.args),\n",
        "",
        "calm",
    ),
    "probe-of-first": Change(
        "each container is asked by the probes of the first",
        "probes/_asks.py",
        "        probe = kind.of(container)\n",
        "        probe = kind.of(container) and kind.of(pod.containers[0])\n",
        "calm",
    ),
    "hook-of-first": Change(
        "hooks of the first container are run in each",
        "podlife/_performing.py",
        "detail: Hook, cancel: Cancel) -> Acted:\n        container = _container(record, detail.container)\n",
        "detail: Hook, cancel: Cancel) -> Acted:\n        container = record.pod.containers[0]\n",
        "calm",
    ),
    "success-backs-off": Change(
        "the back-off of a step goes on though the step succeeded",
        "dsw_asw/_bookkeeping.py",
        "            self.failures.forget_step(key, step)\n",
        "",
        "outages",
    ),
    "mount-under-way-unheld": Change(
        "a mount that is under way does not count as held",
        "volumes/_manager.py",
        "        return wanted or busy or any(",
        "        return wanted or any(",
        "disks",
    ),
    "refused-comes-in": Change(
        "what a part refuses to a pod comes in all the same",
        "podlife/_settling.py",
        "    if acted.refused is not None:",
        "    if acted.refused is not None and acted.ready:",
        "outages",
    ),
    "failed-hook-kills-at-once": Change(
        "a container whose post-start hook failed has no grace",
        "podlife/_settling.py",
        "    grace_s = kill_grace_s(own_s=have.pod.termination_grace_period_seconds)",
        "    grace_s = 0.0",
        "calm",
    ),
    "sidecar-ready-unasked": Change(
        "a sidecar is told to have started whatever its startup probe says",
        "podstatus/_health.py",
        "        return _main(status, container, asked)\n",
        "        return _with(status, started=runs(status), ready=runs(status))\n",
        "calm",
    ),
    "finished-forgotten": Change(
        "a pod that has finished is forgotten though its source has it",
        "podlife/_ending.py",
        "    if not (want.is_removed or want.is_orphan):\n",
        "    if not (want.is_removed or want.is_orphan or not holds_name):\n",
        "calm",
    ),
    "fetched-for-each-start": Change(
        "an image that is there is fetched for each start",
        "podlife/_images.py",
        "        found = None if policy is PullPolicy.ALWAYS else self._found(name)",
        "        found = None if policy is not PullPolicy.NEVER else self._found(name)",
        "calm",
    ),
    "failed-init-again": Change(
        "an init container that failed runs again under policy Never",
        "podlife/_init_walk.py",
        "        elif self._restarts:\n            draft.start(name, Why.FAILED)",
        "        elif True:\n            draft.start(name, Why.FAILED)",
        "calm",
    ),
    "amounts-of-first": Change(
        "containers are made with the amounts of the first",
        "podlife/_configuration/_container.py",
        "        resources=linux_resources(pod, container, node, options),",
        "        resources=linux_resources(pod, pod.containers[0], node, options),",
        "calm",
    ),
    "resized-as-first": Change(
        "each container is resized to the amounts of the first",
        "podlife/_performing.py",
        "resources(record, _container(record, detail.container))",
        "resources(record, record.pod.containers[0])",
        "sources",
    ),
}
