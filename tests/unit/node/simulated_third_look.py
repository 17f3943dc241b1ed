"""Bugs that were planted by people who had not seen the checkers, and a third time: each is found."""

# ruff: noqa: E501 - the library's text, line by line as it stands there

from __future__ import annotations

from tests.unit.node.simulated_changes import Change

__all__ = ["THIRD_LOOK"]

THIRD_LOOK = {
    "resized-record-stays": Change(
        "what a pod asked for at first is remembered, whatever it was edited to: edited back it keeps it all",
        "node/_decisions.py",
        "        record = attrs.evolve(known, workload=workload, affinity=verdict.affinity, manifest=asked.manifest())\n        view",
        "        record = attrs.evolve(known, affinity=verdict.affinity, manifest=asked.manifest())\n        view",
        "plugins",
    ),
    "shrunk-still-counts": Change(
        "a pod that was edited to ask for less still counts with what it had",
        "node/_decisions.py",
        "        view = asked.seen_in(held.view)\n        return verdict, self.ledger.change(held.snapshot, verdict.snapshot, [record], view=view)\n",
        "        view = asked.seen_in(held.view)\n        if view.pods.requested['cpu'].nanos < held.view.pods.requested['cpu'].nanos:\n            view = held.view\n        return verdict, self.ledger.change(held.snapshot, verdict.snapshot, [record], view=view)\n",
        "plugins",
    ),
    "pod-writes-where-it-reads": Change(
        "a volume that its pod says may only be read is mounted for writing",
        "volumes/_populator.py",
        '            read_only=spec.read_only or volume.spec.get("readOnly") is True,\n',
        "            read_only=spec.read_only,\n",
        "plugins",
    ),
    "container-writes-where-it-reads": Change(
        "a container may write to a volume that it says that it only reads",
        "podlife/_configuration/_container.py",
        "                read_only=use.read_only or use.name in read_only,\n",
        "                read_only=use.name in read_only,\n",
        "calm",
    ),
    "pod-reads-unsaid": Change(
        "containers may write to a volume that their pod says may only be read",
        "podlife/_configuration/_container.py",
        "    read_only = _read_only(pod, options) | kinds\n",
        "    read_only = frozenset(kinds)\n",
        "calm",
    ),
    "command-of-image": Change(
        "a container runs its image's command, whatever its own is",
        "podlife/_configuration/_container.py",
        "        command=tuple(expand(one, own) for one in container.entrypoint),\n",
        "        command=(),\n",
        "calm",
    ),
    "directory-of-image": Change(
        "a container starts in its image's directory, whatever its own is",
        "podlife/_configuration/_container.py",
        "        working_dir=container.working_dir,\n",
        "",
        "calm",
    ),
    "user-of-image": Change(
        "a container runs as its image's user, whatever its pod says",
        "podlife/_configuration/_security.py",
        "    user = of_pod.run_as_user if own.run_as_user is None else own.run_as_user\n",
        "    user = own.run_as_user\n",
        "calm",
    ),
    "user-of-pod": Change(
        "a container runs as its pod's user, whatever it says itself",
        "podlife/_configuration/_security.py",
        "    user = of_pod.run_as_user if own.run_as_user is None else own.run_as_user\n",
        "    user = of_pod.run_as_user\n",
        "calm",
    ),
    "cpu-time-unlimited": Change(
        "a limit of CPU time is not told to the runtime",
        "podlife/_configuration/_container.py",
        "        cpu_quota_us=None if limits.cpu_quota_us == NO_LIMIT else limits.cpu_quota_us,\n",
        "        cpu_quota_us=None,\n",
        "calm",
    ),
    "port-of-node-lost": Change(
        "no port of the node leads to a pod that takes it",
        "podlife/_configuration/_sandbox_config.py",
        "            host_port=one.host_port,\n",
        "",
        "calm",
    ),
    "named-as-the-node": Change(
        "a sandbox has the node's name",
        "podlife/_configuration/_dns.py",
        "    host = pod.hostname or pod.name\n",
        "    host = pod.hostname or node.name\n",
        "calm",
    ),
    "device-files-lost": Change(
        "the files that a plugin gives with its devices are lost",
        "agent/_granted.py",
        "            for one in launch.device_nodes\n",
        "            for one in launch.device_nodes[1:]\n",
        "plugins",
    ),
    "device-mounts-lost": Change(
        "what a plugin has mounted beside its devices may be written to",
        "agent/_granted.py",
        "                read_only=one.read_only,\n",
        "",
        "plugins",
    ),
    "ended-before-runs": Change(
        "a pod that had succeeded before the agent came is run again",
        "podlife/_domain.py",
        '_FINAL: Final = frozenset({"Succeeded", "Failed"})',
        '_FINAL: Final = frozenset({"Failed"})',
        "calm",
    ),
    "ended-before-has-failed": Change(
        "a pod that had succeeded is told to have failed by an agent that has not read its source again",
        "podstatus/_living.py",
        '    if facts.pod.status.get("phase") in _FINAL:\n',
        "    if False:\n",
        "disks",
    ),
    "away-is-none": Change(
        "a pod is refused while the plugin of its devices is away for a moment",
        "devices/_stock.py",
        "        elif inventory.phase is Phase.LOST:\n",
        "        elif False:\n",
        "plugins",
    ),
}
