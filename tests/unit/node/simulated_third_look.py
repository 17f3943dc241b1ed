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
}
