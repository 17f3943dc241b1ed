"""A pod's cgroup, before anything of it runs, and gone after the last of it has ended."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable
from typing import Final

from nodealloc._typed import typed, typed_methods
from nodealloc.cgroups import (
    CgroupName,
    MemoryInUseError,
    QosTree,
    QuotaInUseError,
    RemovalState,
    TreeReport,
    pod_name,
)
from nodealloc.dsw_asw import Cancel, Clock, Executor, Periodic
from nodealloc.podlife._configuration import PodRunOptions
from nodealloc.podlife._ports import Provided
from nodealloc.podspec import Pod
from nodealloc.verdicts import NotYet

__all__ = ["CgroupPreparer"]

_SOON_S: Final = 0.1
_EVERY_S: Final = 60.0
"""As often as a kubelet looks after the cgroups of its classes (`periodicQOSCgroupUpdateInterval`)."""


@typed_methods
class CgroupPreparer:
    """A `Preparer` of pods' cgroups; one round of the tree serves all pods that came meanwhile. Thread-safe.

    A cgroup of which the runtime has something, and nobody has told of, stays
    as it is: nothing is done before it is known what runs.

    Args:
        tree: Keeps them.
        pods: Known from an earlier life.
        running: Uids of the pods of which the runtime has something; None while nobody knows.
        follows: Whether an edit of a pod changes its cgroup; a kubelet leaves it as it was made.

    Raises:
        ConfigurationError: Something else than these.
    """

    NAME: Final = "cgroups"
    """Of its `Preparation`; it is remembered, so it stays the same over releases."""

    @typed
    def __init__(
        self,
        tree: QosTree,
        pods: Iterable[Pod],
        running: Callable[[], Collection[str] | None],
        *,
        follows: bool = True,
    ) -> None:
        self._tree, self._running, self._follows = tree, running, follows
        self._lock = threading.Lock()
        self._rounds = threading.Lock()
        self._pods = {pod.uid: pod for pod in pods}
        self._gone: set[str] = set()
        self._asked = self._done = 0
        self._last = TreeReport(applied={}, removals=(), failed={})

    def settle(self) -> None:
        """Make a round for the pods that are known."""
        self._round()

    def rounds(self, *, executor: Executor | None = None, clock: Clock | None = None) -> Periodic:
        """Makes a round each minute, once it is driven: give it to the agent as one of its members.

        A write to the cgroup of a class that failed, a quota that had to wait, and a cgroup of an earlier
        life that could not be removed are tried again by nothing else, until another pod comes or goes.

        Args:
            executor: Makes the rounds; by default a thread.
            clock: Time.
        """
        return Periodic(
            lambda _turn: self._round(),
            every_s=_EVERY_S,
            first_s=_EVERY_S,
            executor=executor,
            clock=clock,
            name="rounds of cgroups",
        )

    def make_ready(self, pod: Pod, _cancel: Cancel, /) -> Provided | NotYet:
        """See `Preparer.make_ready`."""
        with self._lock:
            if self._follows or pod.uid not in self._pods:
                self._pods[pod.uid] = pod
            self._gone.discard(pod.uid)
        report = self._round()
        if report is None:
            return NotYet(blocker="runtime", message="what runs is not known yet", after_s=_SOON_S)
        name = pod_name(self._tree.options.root, pod)
        why = report.refused.get(pod.uid) or report.failed.get(name) or _above(name, report)
        # A quota waits for its containers', which are lowered once the edit has come in.
        if why is not None and not isinstance(why, QuotaInUseError):
            return NotYet(blocker=self.NAME, message=str(why), after_s=1.0)
        return Provided(value=PodRunOptions(cgroup_parent=name.path()))

    def take_back(self, pod: Pod, _cancel: Cancel, /) -> NotYet | None:
        """See `Preparer.take_back`: whatever is still in there is ended."""
        with self._lock:
            self._pods.pop(pod.uid, None)
            self._gone.add(pod.uid)
        report = self._round()
        name = pod_name(self._tree.options.root, pod)
        # By its last part: an edit may have changed the class that it stands in.
        removals = () if report is None else report.removals
        left = [one for one in removals if one.name.parts[-1] == name.parts[-1]]
        if report is None or any(one.state is not RemovalState.REMOVED for one in left):
            return NotYet(blocker=self.NAME, message=f"{name} is being removed", after_s=_SOON_S)
        return None

    def _round(self) -> TreeReport | None:
        with self._lock:
            self._asked += 1
            mine = self._asked
        with self._rounds:
            running = self._running()
            if running is None:
                return None
            with self._lock:
                if self._done >= mine:
                    return self._last
                asked, pods = self._asked, dict(self._pods)
                self._gone &= set(running)
                untold = set(running) - pods.keys() - self._gone
            report = self._tree.reconcile(pods.values(), leave=untold)
            with self._lock:
                # Only now: where a round fails, whoever asked meanwhile makes one himself.
                self._done, self._last = asked, report
            return report


def _above(name: CgroupName, report: TreeReport) -> Exception | None:
    """Why a cgroup that waits has nothing to stand in; one above it that only lacks a limit is there."""
    if name not in report.waiting:
        return None
    above = (CgroupName(name.parts[:depth]) for depth in range(len(name.parts)))
    found = (report.failed.get(one) for one in above)
    there = (MemoryInUseError, QuotaInUseError)
    return next((one for one in found if one is not None and not isinstance(one, there)), None)
