"""The shell: pods are probed, verdicts are remembered and told."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping
from typing import Final, Generic, TypeVar, cast

from nodealloc._typed import typed, typed_methods
from nodealloc.checkpoint import JsonCheckpoint, require_formats, row_key
from nodealloc.dsw_asw import (
    Clock,
    Executor,
    Group,
    Journal,
    Near,
    Observer,
    Reconciler,
    Remember,
    SystemClock,
    ThreadExecutor,
    World,
)
from nodealloc.errors import ConfigurationError
from nodealloc.podfacts import LifeState, PodEvent, PodIdentity
from nodealloc.podspec import Pod
from nodealloc.probes._asker import Asker
from nodealloc.probes._asks import Heards, ProbedPod
from nodealloc.probes._codec import PROBE_ROWS, verdicts_to_checkpoint
from nodealloc.probes._domain import Verdicts
from nodealloc.probes._kinds import ProbeKind
from nodealloc.probes._options import ProbeOptions, Probers
from nodealloc.probes._ports import ReportedPod
from nodealloc.probes._rules import RIGHT, Rules
from nodealloc.probes._schedule import Schedule
from nodealloc.probes._verdicts import PodVerdicts
from nodealloc.probes._worlds import Worlds

__all__ = ["Probing"]

Seen = TypeVar("Seen", bound=ReportedPod)
_log = logging.getLogger("nodealloc.probes")
_AFTER_A_FAULT_S: Final = 1.0
_ANY: Final[Mapping[tuple[str, ProbeKind], Schedule]] = {}


@typed_methods
class Probing(Group, Generic[Seen]):
    """Asks the containers of pods, and remembers what they are.

    A `Group` of `nodealloc.dsw_asw`. Start it by itself: its thread then waits
    for the sockets of all questions at once. As a member of another group, or
    driven by hand, each question takes a worker.

    Args:
        probers: Who asks, for each way of asking.
        reports: What is known of pods' containers, by uid: `pods` of a `RuntimeWatch`. Starts
            and ends are read from it.
        journal: Where verdicts are remembered before anybody hears of them; None to
            forget them with the process. A store of `nodealloc.checkpoint` is one.
        remembered: What was remembered (`verdicts_from_checkpoint`), by uid: it stands, and nobody of
            it is asked, until `put` or `remove`.
        options: The bounds.
        rules: The kubelet's, or the right ones.
        on_event: Is told what is worth an event, on the thread that makes passes.
        executor: Gives workers; by default a thread for each question.
        clock: Time for periods and time-outs.
        unix_s: The time, in Unix seconds; only for containers that ran before this began.
        observer: Is told of progress.

    Attributes:
        verdicts: What stands, by uid of a pod that has probes; the engine writes it. Make it a `Near`,
            or watch it.
    """

    @typed
    def __init__(
        self,
        probers: Probers,
        *,
        reports: World[str, Seen],
        journal: Journal[JsonCheckpoint] | None = None,
        remembered: Mapping[str, PodVerdicts] | None = None,
        options: ProbeOptions = ProbeOptions(),  # noqa: B008 - immutable
        rules: Rules = RIGHT,
        on_event: Callable[[PodEvent], None] | None = None,
        executor: Executor | None = None,
        clock: Clock | None = None,
        unix_s: Callable[[], float] = time.time,
        observer: Observer | None = None,
    ) -> None:
        require_formats(journal, (f"{PROBE_ROWS}.*",), "Probing, journal")
        self.verdicts: World[str, PodVerdicts] = World("probe verdicts")
        self._wanted: World[str, ProbedPod] = World("probed pods")
        heard: World[str, Heards] = World("probe answers")
        for uid, verdicts in (remembered or {}).items():
            stood = verdicts if rules.tells_answers_alone else verdicts.without_startup()
            self.verdicts.put(uid, stood, by="remembered")
            self._wanted.put(uid, ProbedPod(), by="remembered")
        time_: Clock = SystemClock() if clock is None else clock
        running = ThreadExecutor("probe") if executor is None else executor
        self._asker = Asker(
            Worlds(wanted=self._wanted, reports=reports, verdicts=self.verdicts, heard=heard),
            probers=probers,
            options=options,
            rules=rules,
            on_event=on_event,
            executor=running,
            clock=time_,
            unix_s=unix_s,
        )
        self._remembering = _remembering(
            reports,
            heard,
            desired=self._wanted,
            actual=self.verdicts,
            executor=running,
            remember=None if journal is None else Remember(journal=journal, rows=_rows),
            clock=time_,
            observer=observer,
        )
        super().__init__(self._asker, self._remembering, name="probes")

    @property
    def withheld(self) -> int:
        """Verdicts that would have killed and were held back by `ProbeOptions.kills`, since the start."""
        return self._asker.withheld

    @typed
    def put(
        self,
        pod: Pod,
        life: LifeState = LifeState.SYNCING,
        /,
        *,
        schedules: Mapping[tuple[str, ProbeKind], Schedule] = _ANY,
    ) -> None:
        """Probe a pod, or go on with one of which something changed; from any thread.

        Args:
            pod: The pod.
            life: How far it has come; when it has to end, nothing of it is killed any more.
            schedules: In place of what the pod says, by container and kind: periods
                and time-outs that are no whole seconds.

        Raises:
            ConfigurationError: The pod has no uid, name or namespace, or no probe that a schedule is for.
        """
        PodIdentity.of(pod)
        _require_probes(pod, schedules)
        self._wanted.put(pod.uid, ProbedPod(pod=pod, life=life, schedules=schedules), by="put")

    @typed
    def remove(self, uid: str, /) -> None:
        """Nothing of a pod is left: its verdicts are forgotten."""
        self._wanted.drop(uid, by="remove")

    @typed
    def keep_only(self, uids: Collection[str], /) -> None:
        """Forget all other pods: those that went while nobody looked."""
        for uid in [uid for uid in self._wanted.snapshot() if uid not in uids]:
            self.remove(uid)

    def start(self) -> None:
        """Make passes in a daemon thread from now on, which waits for sockets as well; once in a life."""
        if self._thread is None:
            self._asker.select()
        super().start()

    def wait_for_work(self, timeout_s: float | None = None, /) -> bool:
        """See `Driven`; in the thread of its own, asking is what the waiting consists of."""
        if threading.current_thread() is not self._thread:
            return super().wait_for_work(timeout_s)
        while not self._stopping.is_set() and not self._remembering.has_work:
            try:
                self._asker.turn(self._remembering.seconds_to_next())
            except Exception:  # noqa: BLE001 - a thread that ended would leave all containers unasked
                _log.exception("%s: asking raised; it goes on in a second", self.name)
                self._asker.abandon_pass()
                self._stopping.wait(_AFTER_A_FAULT_S)
        return self.has_work

    def _wake(self) -> None:
        super()._wake()
        if self._thread is not None:
            self._asker.interrupt()

    def _drive(self) -> None:
        try:
            super()._drive()
        finally:
            self._asker.leave()


def _remembering(
    reports: World[str, Seen],
    heard: World[str, Heards],
    *,
    desired: World[str, ProbedPod],
    actual: World[str, PodVerdicts],
    executor: Executor,
    remember: Remember[str, PodVerdicts, JsonCheckpoint] | None,
    clock: Clock,
    observer: Observer | None,
) -> Reconciler[str, ProbedPod, PodVerdicts]:
    """What was heard becomes what is remembered, and what others are shown."""

    def probed(uid: str) -> tuple[str, ...]:
        want = desired.get(uid)
        return () if want is None or not want.has_probes else (uid,)

    near_reports: Near[str, str, Seen] = Near(reports, probed)
    near_heard: Near[str, str, Heards] = Near(heard, lambda uid: [uid])
    return Reconciler(
        Verdicts(near_reports, near_heard),
        desired=desired,
        actual=actual,
        executor=executor,
        near=cast("tuple[Near[str, str, object], ...]", (near_reports, near_heard)),
        remember=remember,
        clock=clock,
        observer=observer,
        name="probe verdicts",
    )


def _rows(uid: str, verdicts: PodVerdicts | None) -> Mapping[str, JsonCheckpoint | None]:
    kept = verdicts is not None and verdicts.by_container
    return {row_key(PROBE_ROWS, uid): verdicts_to_checkpoint(verdicts) if kept and verdicts else None}


def _require_probes(pod: Pod, schedules: Mapping[tuple[str, ProbeKind], Schedule]) -> None:
    """A schedule under a name that was misspelt would be nobody's."""
    if not schedules:
        return
    known = {(one.name, kind) for one in pod.all_containers for kind in ProbeKind if kind.of(one) is not None}
    for name, kind in schedules:
        if (name, kind) not in known:
            there = ", ".join(f"{one}: {other.value}" for one, other in sorted(known, key=str)) or "none"
            raise ConfigurationError(
                f"Probing.put, schedules: pod {pod.full_name} has no {kind.value} probe in a container "
                f"{name}; it has {there}"
            )
