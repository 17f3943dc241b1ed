"""All packages of a pod's life, driven, started and stopped as one."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Final

from typing_extensions import override

from nodealloc import _attrs as attrs
from nodealloc._arguments import done
from nodealloc._typed import typed
from nodealloc.agent._cpusets import ContainerCpusets
from nodealloc.agent._ports import Beside
from nodealloc.cpuset import CpusetReconciler
from nodealloc.dsw_asw import (
    Cancel,
    Clock,
    Done,
    Driven,
    Executor,
    Group,
    Outcome,
    Plan,
    Reconciler,
    Running,
    Step,
    Summary,
    ThreadExecutor,
    View,
    World,
)
from nodealloc.errors import ConfigurationError
from nodealloc.node import NodeAllocator
from nodealloc.podfacts import LifeState
from nodealloc.podlife import Ending, EndingKind, PodFacts, PodLives
from nodealloc.podspec import Pod
from nodealloc.podstatus import StatusManager
from nodealloc.probes import Probing
from nodealloc.runtime import PodKnown
from nodealloc.volumes import VolumeManager

__all__ = ["Agent"]

_log = logging.getLogger("nodealloc.agent")
_STOP_S: Final = 5.0
_GATHER_S: Final = 0.02
"""Where many pods start, each of their steps ends by itself; that one goes on a moment later delays none."""


class Agent(Group):
    """Reconcilers of one node as a group, and what each has to hear of the others.

    - A pod is probed as long as it lives, by what its life says.
    - The node knows which pods are ending, so that a pod that wants what they hold waits for it.
    - Containers that run are confined to what they were granted.
    - Once it is known which pods there should be and what runs, what is left of others
      is forgotten or taken away: verdicts, statuses, volumes, and whatever `once_known` has.

    Args:
        members: What is driven before the pods' lives, in the order in which it plans.
        lives: The pods.
        probing: Is told which pods to probe; put it among the members, or `beside` them
            where it is to have a thread of its own.
        status: Tells of pods; it is driven behind the lives.
        node: Knows what is held; None where nothing is.
        cpusets: Confines containers by what `node` granted, and is driven behind the members;
            None to confine nobody.
        volumes: Is driven before the lives; no member.
        beside: Started before the group by `start`, in this order, and stopped after it. Whoever makes the
            passes, in virtual time for example, gives what would stand here as members.
        once_known: Called once, by name, after it is known what should run and what
            does, by the executor; one that raises is called again after a back-off.
        gone: Called with the uid of each pod that is no more; what it raises is logged, no more.
        waits_for_deleted: Whether who needs what a pod holds that is being deleted waits for it, as for
            any other that ends. False is a kubelet's way: as long as its source has that pod, it counts
            as one that stays, and others are refused.
        executor: Runs `once_known`; by default a thread for each.
        clock: Time for its back-off.

    Attributes:
        lives: The pods.
    """

    @typed
    def __init__(
        self,
        *members: Driven,
        lives: PodLives,
        probing: Probing[PodFacts] | Probing[PodKnown] | None = None,
        status: StatusManager[PodFacts] | None = None,
        node: NodeAllocator | None = None,
        cpusets: CpusetReconciler | None = None,
        volumes: VolumeManager | None = None,
        beside: Sequence[Beside] = (),
        once_known: dict[str, Callable[[], object]] | None = None,
        gone: Callable[[str], object] | None = None,
        waits_for_deleted: bool = True,
        executor: Executor | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.lives = lives
        self._probing, self._node = probing, node
        confines = None if cpusets is None or node is None else ContainerCpusets(cpusets, node)
        self._confines, self._gone, self._waits_for_deleted = confines, gone, waits_for_deleted
        self._beside = tuple(beside)
        self._tasks: World[str, bool] = World("tasks")
        finished: World[str, bool] = World("tasks that were done")
        tasks = Reconciler(
            _Once(once_known or {}),
            desired=self._tasks,
            actual=finished,
            executor=ThreadExecutor("agent") if executor is None else executor,
            clock=clock,
            resync_s=None,
            name="agent's tasks",
        )
        self._at_known = [*self._letting_go(volumes, status, once_known or {})]
        self._facts = lives.facts.watch(self._follow)
        self._follow()
        for remembered in lives.pods.snapshot().values():
            # Before anybody asks for what those hold that were ending when an earlier agent was killed.
            record = remembered.value
            self._say_ending(record.pod, record.life, record.ending)
        engine = () if cpusets is None else (cpusets.engine,)
        last = [one for one in (volumes, lives, status, tasks) if one is not None]
        super().__init__(*members, *engine, *last, name="agent", gather_s=_GATHER_S)

    @override
    def start(self) -> None:
        """Go, in threads; where one of `beside` cannot, those before it are stopped again.

        Raises:
            ConfigurationError: Something that the lives need, or `probing`, is driven by nobody.
        """
        self._require_drivers()
        with contextlib.ExitStack() as begun:
            for one in () if self._thread is not None else self._beside:
                one.start()
                begun.callback(one.stop)
            super().start()
            begun.pop_all()

    def _require_drivers(self) -> None:
        """Refuse a part that nobody drives: it would do nothing, and nothing else would say so."""
        if not all(isinstance(one, Driven) for one in self._beside):
            return  # whom the others start nobody here can tell
        needed = (*self.lives.needs, *(() if self._probing is None else (self._probing,)))
        forgotten = [one.name for one in needed if not one.is_driven and one not in self._beside]
        if forgotten:
            raise ConfigurationError(
                f"Agent: nobody drives {', '.join(forgotten)}; put each among the members, or `beside` them"
            )

    @override
    def stop(self, timeout_s: float | None = None, /) -> tuple[Running[object], ...]:
        """Start nothing more; containers run on. See `Driven.stop`.

        What one of `beside` raises is raised once all of them were asked.
        """
        with contextlib.ExitStack() as each:
            for one in self._beside:
                each.callback(one.stop)
            return super().stop(_STOP_S if timeout_s is None else timeout_s)

    @override
    def reconcile(self) -> Summary:
        """Make a pass; the first one after everything is known also lets go of what belongs to no pod."""
        with self._passing:
            while self._at_known and self.lives.is_ready():
                self._at_known.pop(0)()  # what it raises ends this pass, and the next one goes on behind it
            return super().reconcile()

    @property
    @override
    def has_work(self) -> bool:
        """Whether a pass now would find something to do."""
        return super().has_work or (bool(self._at_known) and self.lives.is_ready())

    def _letting_go(
        self, volumes: VolumeManager | None, status: StatusManager[PodFacts] | None, tasks: Iterable[str]
    ) -> Iterator[Callable[[], object]]:
        """What is called, in this order, once it is known which pods there should be and what runs."""
        probing, wanted = self._probing, self.lives.wanted
        if volumes is not None:
            yield volumes.pods_changed
        if probing is not None:
            yield lambda: probing.keep_only(wanted.snapshot().keys())
        if status is not None:
            yield lambda: status.heard(wanted.snapshot().keys())
        for name in tasks:
            yield partial(self._tasks.put, name, True, by="known")  # noqa: FBT003 - a world takes any value

    def _follow(self) -> None:
        for uid in self._facts.take():
            try:
                self._follow_pod(uid, self.lives.facts.get(uid))
            except Exception:  # noqa: BLE001 - nobody else tells of the other pods
                _log.exception(
                    "agent: following pod %s raised; it goes on at the next change of the pod", uid
                )

    def _follow_pod(self, uid: str, facts: PodFacts | None) -> None:
        if self._confines is not None:
            self._confines.follow(uid, facts)
        if facts is None:
            self._forget(uid)
            return
        if self._probing is not None:
            self._probing.put(facts.asked or facts.pod, facts.life)
        self._say_ending(facts.pod, facts.life, facts.ending)

    def _say_ending(self, pod: Pod, life: LifeState, ending: Ending | None) -> None:
        if self._node is None or not life.is_ending:
            return
        is_deleted = ending is not None and ending.kind is EndingKind.DELETED
        stays = is_deleted and life is LifeState.TERMINATING and not self._waits_for_deleted
        if stays and pod.uid in self._node.snapshot.admitted:
            return
        # It counts also where this agent never admitted it: an earlier one may have started it. What an
        # orphan requests nobody knows.
        # Nor is whoever was in before and does not come in any more waited for, by a kubelet's rules.
        is_out = ending is not None and ending.kind in (EndingKind.ORPHANED, EndingKind.REFUSED)
        counts = life is LifeState.TERMINATING and not is_out and self.lives.may_run(pod.uid)
        self._node.mark_ending(pod if counts else pod.uid)
        if not counts:
            self._leave_out(pod.uid)

    def _leave_out(self, uid: str) -> None:
        """Count no ending pod any more that was never admitted here; other grants go with their parts."""
        node = self._node
        if node is not None and uid in node.view.pods and uid not in node.snapshot.admitted:
            node.release(uid)

    def _forget(self, uid: str) -> None:
        self._leave_out(uid)
        if self._probing is not None:
            self._probing.remove(uid)
        if self._gone is not None:
            done("Agent: gone", self._gone, uid)


@attrs.frozen
class _Once:
    """Calls that are made once each."""

    calls: dict[str, Callable[[], object]]

    def plan(self, view: View[str, bool, bool, str], /) -> Plan[bool, str]:
        if view.want is None or view.have is not None or view.running:
            return Plan()
        return Plan(steps=[Step(scope=(view.key,), verb="do", detail=view.key)])

    def perform(self, step: Step[str], _cancel: Cancel, /) -> bool:
        done(f"Agent: once_known[{step.detail!r}]", self.calls[step.detail])
        return True

    def settled(self, have: bool | None, _step: Step[str], outcome: Outcome[bool], /) -> bool | None:
        return True if isinstance(outcome, Done) else have
