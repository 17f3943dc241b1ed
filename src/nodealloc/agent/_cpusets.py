"""Which containers are there to be confined, from what is known of pods."""

from __future__ import annotations

from nodealloc.cpuset import CpusetReconciler
from nodealloc.node import NodeAllocator, confinement_of
from nodealloc.podlife import PodFacts
from nodealloc.topology import Owner

__all__ = ["ContainerCpusets"]


class ContainerCpusets:
    """Tells a reconciler of cpusets which containers run; called by one thread at a time."""

    def __init__(self, cpusets: CpusetReconciler, node: NodeAllocator) -> None:
        self._cpusets, self._node = cpusets, node
        self._targets: dict[str, tuple[str, ...]] = {}

    def follow(self, uid: str, facts: PodFacts | None) -> None:
        """Take over what runs of a pod; None for one that is no more."""
        known = None if facts is None else facts.known
        if facts is not None and (known is None or known.report is None):
            return  # nobody could ask the runtime, from which nothing follows
        containers = () if known is None or known.report is None else known.report.containers
        records = [one.record for one in containers]
        runs = {one.id: one.name for one in records if one.state.may_run}
        for target in self._targets.pop(uid, ()):
            if target not in runs:
                self._cpusets.remove(target)
        for target, name in runs.items():
            owner = Owner(uid, name)
            self._cpusets.add(target, owner, mems=confinement_of(self._node.snapshot, owner).mems)
        if runs:
            self._targets[uid] = tuple(runs)
