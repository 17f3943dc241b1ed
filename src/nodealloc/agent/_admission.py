"""A pod's admission as the first of its preparations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from nodealloc._typed import typed
from nodealloc.admission import MakingRoom
from nodealloc.cpuset import CpuAllocator, CpusetReconciler
from nodealloc.dsw_asw import Cancel
from nodealloc.node import NodeAllocator
from nodealloc.podlife import Ending, EndingKind
from nodealloc.podspec import Pod
from nodealloc.topology import Owner
from nodealloc.verdicts import Admitted, NotYet, Refused

__all__ = ["AdmissionPreparer"]

_SOON_S: Final = 0.1

_PREEMPTED: Final = Ending(
    kind=EndingKind.EVICTED,
    reason="Preempting",
    message="Preempted in order to admit critical pod",
    disruption="TerminationByKubelet",
)


class AdmissionPreparer:
    """A `Preparer`: the node's chain of admission, and what the pod holds afterwards.

    A pod that came in is ready once containers of others have left the CPUs that
    are its own now: they are confined to the rest first.

    Args:
        node: Judges, and remembers what it grants before it answers.
        cpusets: Moves containers off CPUs that become somebody's own; None where nobody
            has CPUs of its own.
        end: Ends a pod that has to make room for a critical one, such as `PodLives.end`;
            None where no pod is ended for another, which then waits.

    Source: kubelet ``kubelet.go`` (`HandlePodAdditions`) and ``cm/cpumanager``; that
    a container waits until its CPUs are free is ours.
    """

    @typed
    def __init__(
        self,
        node: NodeAllocator,
        *,
        cpusets: CpusetReconciler | None = None,
        end: Callable[[str, Ending], object] | None = None,
    ) -> None:
        self._node, self._cpusets, self._end = node, cpusets, end

    def make_ready(self, pod: Pod, _cancel: Cancel, /) -> Admitted | NotYet | Refused:
        """See `Preparer.make_ready`."""
        verdict = self._node.admit(pod)
        if isinstance(verdict, MakingRoom) and self._end is not None:
            for uid in verdict.victims:
                self._end(uid, _PREEMPTED)
        if not isinstance(verdict, Admitted):
            return verdict
        others = self._others_on_its_cpus(pod)
        if others:
            words = f"containers that still run on its CPUs: {', '.join(others)}"
            return NotYet(blocker="cpusets", message=words, after_s=_SOON_S)
        return verdict

    def take_back(self, pod: Pod, _cancel: Cancel, /) -> None:
        """See `Preparer.take_back`: what it held is free, and others may spread."""
        self._node.release(pod.uid)
        self._follow_grants()

    def _others_on_its_cpus(self, pod: Pod) -> list[str]:
        cpusets = self._follow_grants()
        if cpusets is None:
            return []
        owners = [Owner(pod.uid, one.name) for one in pod.all_containers]
        return sorted({one for owner in owners for one in cpusets.intruders_of(owner)})

    def _follow_grants(self) -> CpusetReconciler | None:
        cpusets = self._cpusets
        if cpusets is not None:
            cpusets.follow(self._node.snapshot[CpuAllocator])
            cpusets.reconcile()
        return cpusets
