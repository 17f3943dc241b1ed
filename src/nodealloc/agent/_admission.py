"""A pod's admission as the first of its preparations."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from nodealloc._typed import typed
from nodealloc.admission import MakingRoom
from nodealloc.agent._confined import ConfinedRuntime
from nodealloc.dsw_asw import Cancel, World
from nodealloc.node import NodeAllocator
from nodealloc.podlife import Ending, EndingKind
from nodealloc.podspec import Pod
from nodealloc.verdicts import Admitted, NotYet, Refused

__all__ = ["AdmissionPreparer"]

_PREEMPTED: Final = Ending(
    kind=EndingKind.EVICTED,
    reason="Preempting",
    message="Preempted in order to admit critical pod",
    disruption="TerminationByKubelet",
)

_EDIT_S: Final = 5.0
"""From one question to the next whether an edit that was refused may come in."""
_LEAVES_S: Final = 1.0
"""From one question to the next whether a pod comes in that may have to wait for one that goes."""


class AdmissionPreparer:
    """A `Preparer`: the node's chain of admission, and what the pod holds afterwards.

    A pod that came in is ready once containers of others have left the CPUs that
    are its own now: they are confined to the rest first.

    Args:
        node: Judges, and remembers what it grants before it answers.
        confined: Starts containers, and moves them off CPUs that become somebody's own; None
            where nobody has CPUs of its own.
        end: Ends a pod that has to make room for a critical one, such as `PodLives.end`; answers False
            where there is no such pod. None where no pod is ended for another, which then waits.
        judges_edits: Whether an edit of what a pod asks for is judged as if the pod came anew. One that
            may not be waits, and what runs of the pod keeps what it has. False is a kubelet's way.
        may_leave: From the uid of a pod that is in to whether it is no more or may be about to go, such as
            `PodSources.may_leave`: as long as there is one, who does not come in waits. None where all stay.

    Attributes:
        room: A record by pod uid changes when a pod that had to wait may ask again: hand it to
            `Preparation.wakes`, so that it comes in as soon as another has left.

    Source: kubelet ``kubelet.go`` (`HandlePodAdditions`) and ``cm/cpumanager``; that
    a container waits until its CPUs are free is ours.
    """

    NAME: Final = "admission"
    """Of its `Preparation`; it is remembered, so it stays the same over releases."""

    @typed
    def __init__(
        self,
        node: NodeAllocator,
        *,
        confined: ConfinedRuntime | None = None,
        end: Callable[[str, Ending], object] | None = None,
        judges_edits: bool = True,
        may_leave: Callable[[str], bool] | None = None,
    ) -> None:
        self._node, self._confined, self._end = node, confined, end
        self._judges_edits, self._may_leave = judges_edits, may_leave
        self.room: World[str, object] = World("room for pods")
        self._lock = threading.Lock()
        self._waiting: dict[str, int] = {}

    def make_ready(self, pod: Pod, _cancel: Cancel, /) -> Admitted | NotYet | Refused:
        """See `Preparer.make_ready`."""
        with self._lock:
            self._waiting[pod.uid] = self._waiting.get(pod.uid, 0) + 1
        verdict = self._edited(pod) if self._is_edited(pod) else self._admitted(pod)
        if not isinstance(verdict, NotYet):
            self._forget(pod.uid)
        if isinstance(verdict, MakingRoom) and self._end is not None:
            for uid in verdict.victims:
                if self._end(uid, _PREEMPTED) is not False:
                    # Else the next critical pod would ask for another victim before this one begins to end.
                    self._node.mark_ending(uid)
        if not isinstance(verdict, Admitted) or self._confined is None:
            return verdict
        return self._confined.not_free(pod) or verdict

    def take_back(self, pod: Pod, _cancel: Cancel, /) -> None:
        """See `Preparer.take_back`: what it held is free, and others may spread."""
        self._node.release(pod.uid)
        self._forget(pod.uid)
        if self._confined is not None:
            self._confined.follow_grants()
        with self._lock:
            for uid, times in self._waiting.items():
                self.room.put(uid, times, by="room")

    def _is_edited(self, pod: Pod) -> bool:
        return self._judges_edits and self._node.is_edited(pod)

    def _admitted(self, pod: Pod) -> Admitted | NotYet | Refused:
        before = self._node.view.pods
        verdict = self._node.admit(pod)
        if not isinstance(verdict, Refused) or self._may_leave is None:
            return verdict
        for uid, one in before.items():
            # Of one that was known to end the verdict has said already whether it makes room.
            if uid != pod.uid and not one.state.is_ending and self._may_leave(uid):
                who = one.pod.full_name
                message = f"{verdict.message}; {who} may be about to go"
                return NotYet(blocker=who, message=message, after_s=_LEAVES_S)
        return verdict

    def _edited(self, pod: Pod) -> Admitted | NotYet:
        verdict = self._node.resize(pod, is_edit=True)
        if isinstance(verdict, Refused):
            message = f"as it was edited it does not come in: {verdict.message}; what runs keeps what it has"
            return NotYet(blocker=verdict.reason, message=message, after_s=_EDIT_S)
        if isinstance(verdict, Admitted) and self._confined is not None:
            self._confined.follow_grants()
        return verdict

    def _forget(self, uid: str) -> None:
        with self._lock:
            if self._waiting.pop(uid, 0) and uid in self.room:
                self.room.drop(uid, by="room")
