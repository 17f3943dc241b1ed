"""What is made ready for a pod by joining several rooms: admission with CPUs, device plugins."""

from __future__ import annotations

from collections.abc import Callable

from nodealloc.admission import MakingRoom
from nodealloc.cpuset import CpuAllocator, CpusetReconciler
from nodealloc.devices.plugins import DevicePlugins
from nodealloc.dsw_asw import Cancel
from nodealloc.node import NodeAllocator
from nodealloc.podspec import Pod
from nodealloc.topology import Owner, admit
from nodealloc.verdicts import Admitted, NotYet, Refused

__all__ = ["Admission", "Devices"]

_SOON_S = 0.1


class Admission:
    """May it come in; what it is granted is remembered, and shared containers make room for it first.

    Args:
        node: Judges, and remembers.
        cpusets: Moves shared containers off CPUs that become somebody's own.
        end: Ends a pod that has to make room.
        allocates_first: Whether what cannot be given out is told first, as a kubelet does, not that there
            is too little.
    """

    def __init__(
        self,
        node: NodeAllocator,
        cpusets: CpusetReconciler,
        end: Callable[[str], None],
        *,
        allocates_first: bool = False,
    ) -> None:
        self._node, self._cpusets, self._end = node, cpusets, end
        self._allocates_first = allocates_first

    def make_ready(self, pod: Pod, _cancel: Cancel, /) -> Admitted | NotYet | Refused:
        """See `Preparer.make_ready`: it is ready once nobody else runs on its CPUs."""
        verdict = self._node.admit(pod)
        if self._allocates_first and isinstance(verdict, MakingRoom | Refused):
            first = admit(self._node.snapshot, pod)
            verdict = first if isinstance(first, Refused) else verdict
        if isinstance(verdict, MakingRoom):
            for uid in verdict.victims:
                self._end(uid)
        if not isinstance(verdict, Admitted):
            return verdict
        self._cpusets.follow(self._node.snapshot[CpuAllocator])
        self._cpusets.reconcile()
        others = {
            one
            for container in pod.all_containers
            for one in self._cpusets.intruders_of(Owner(pod.uid, container.name))
        }
        if others:
            words = f"containers that still run on its CPUs: {', '.join(sorted(others))}"
            return NotYet(blocker="cpusets", message=words, after_s=_SOON_S)
        return verdict

    def take_back(self, pod: Pod, _cancel: Cancel, /) -> None:
        """See `Preparer.take_back`."""
        self._node.release(pod.uid)
        self._cpusets.follow(self._node.snapshot[CpuAllocator])
        self._cpusets.reconcile()


class Devices:
    """What device plugins have to do for a pod before its containers start."""

    def __init__(self, plugins: DevicePlugins) -> None:
        self._plugins = plugins

    def make_ready(self, pod: Pod, _cancel: Cancel, /) -> Admitted:
        """See `Preparer.make_ready`."""
        self._plugins.prepare(pod.uid)
        return Admitted()

    def take_back(self, _pod: Pod, _cancel: Cancel, /) -> None:
        """See `Preparer.take_back`: the grant goes with the admission."""
