"""The shell: reads every source by itself, and keeps what all of them say."""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable, Collection, Mapping
from typing import Final

from typing_extensions import override

from nodealloc import _attrs as attrs
from nodealloc._arguments import check, done, within, wrong
from nodealloc._error_words import error_words
from nodealloc._logged import logged
from nodealloc._sound import require_sound
from nodealloc._typed import typed, typed_fields, typed_methods
from nodealloc.dirwatch import Watcher
from nodealloc.dsw_asw import (
    Cancel,
    Clock,
    Done,
    Executor,
    Failed,
    Group,
    Observer,
    Outcome,
    Plan,
    Reconciler,
    Running,
    Step,
    ThreadExecutor,
    Uncertain,
    View,
    World,
)
from nodealloc.errors import ConfigurationError
from nodealloc.podfacts import PodEvent
from nodealloc.podsources._answers import FaultLines, SourceAnswer
from nodealloc.podsources._changes import MergedUpdates, PodUpdate
from nodealloc.podsources._editions import Editions, PodForms
from nodealloc.podsources._merge import merge_update
from nodealloc.podsources._ports import Reading, Source, SourceFault
from nodealloc.podsources._rules import RIGHT, Rules
from nodealloc.podspec import Pod
from nodealloc.podspec._origin import API

__all__ = ["PodSources", "Polling"]

_log = logging.getLogger("nodealloc.podsources")
_REST_S: Final = 60.0
_PAUSE_S: Final = 0.01
"""Between two waits of a waker: one that returns at once, whatever it says, keeps no core busy."""


def _each_above_0(_instance: object, _attribute: object, value: Mapping[str, float]) -> None:
    for source, period_s in value.items():
        if not 0 < period_s < math.inf:
            raise wrong(f"Polling.periods[{source!r}]", period_s, "a finite number of seconds above 0")


@typed_methods
@typed_fields
@attrs.frozen(kw_only=True)
class Polling:
    """How often sources are read, and how long that may take, in seconds.

    Attributes:
        period_s: From one reading to the next when nothing hurries.
        gap_s: The same at least, however many hurries there are.
        again_s: From a reading that failed to the next.
        deadline_s: Past this a reading counts as lost; the next begins when it has ended.
        periods: By source, a period of its own.
    """

    period_s: float = attrs.field(default=20.0, validator=within(0, above=True, finite=True))
    gap_s: float = attrs.field(default=0.05, validator=within(0, finite=True))
    again_s: float = attrs.field(default=2.0, validator=within(0, finite=True))
    deadline_s: float = attrs.field(default=30.0, validator=within(0, above=True))
    periods: Mapping[str, float] = attrs.field(factory=dict[str, float], validator=_each_above_0)

    def period_of(self, source: str, /) -> float:
        """From one reading of a source to the next, in seconds."""
        return self.periods.get(source, self.period_s)


@attrs.frozen
class _Taken:
    faults: tuple[SourceFault, ...]
    gone: tuple[str, ...]
    events: tuple[PodEvent, ...]
    again_after_s: float | None


class _Readings:
    """A `Domain`: each source is read by itself; a desired record is the number of the newest hurry."""

    def __init__(
        self,
        sources: Mapping[str, Source],
        take: Callable[[str, Reading], tuple[PodEvent, ...]],
        polling: Polling,
    ) -> None:
        self._sources, self._take, self._polling = dict(sources), take, polling

    def plan(self, view: View[str, int, SourceAnswer, int], /) -> Plan[SourceAnswer, int]:
        if view.want is None or view.running:
            return Plan()
        have, polling = view.have, self._polling
        if have is not None:
            hurried = view.want > have.number
            due_s = min(have.due_s, have.tried_s + polling.gap_s) if hurried else have.due_s
            if view.now_s < due_s:
                return Plan(again_at_s=due_s)
        step = Step(
            scope=(view.key,),
            verb="read",
            detail=view.want,
            deadline_s=polling.deadline_s,
            subject=view.want,
        )
        return Plan(steps=[step])

    def perform(self, step: Step[int], cancel: Cancel, /) -> _Taken | Failed[_Taken]:
        name = str(step.scope[0])
        try:
            reading = check("read", self._sources[name].read(cancel), Reading, "a Reading")
            events = self._take(name, reading)
        except Exception as error:  # noqa: BLE001 - read again, whatever went wrong
            return Failed(error, again_after_s=self._polling.again_s)
        return _Taken(reading.faults, reading.gone, events, reading.again_after_s)

    def settled(
        self, have: SourceAnswer | None, step: Step[int], outcome: Outcome[_Taken], /
    ) -> SourceAnswer | None:
        before = SourceAnswer() if have is None else have
        polling = self._polling
        match outcome:
            case Done(result=taken):
                period_s = polling.period_of(str(step.scope[0]))
                soon = period_s if taken.again_after_s is None else taken.again_after_s
                return SourceAnswer(
                    number=max(before.number, step.detail),
                    count=before.count + 1,
                    tried_s=outcome.ended_s,
                    due_s=outcome.ended_s + max(polling.gap_s, min(soon, period_s)),
                    faults=taken.faults,
                    gone=taken.gone,
                    events=taken.events,
                )
            case Failed(error=error) | Uncertain(error=error):
                ended_s = outcome.ended_s
                words = error_words(error)
                return attrs.evolve(before, tried_s=ended_s, due_s=ended_s + polling.again_s, error=words)
            case _:
                return before


@typed_methods
class PodSources(Group):
    """Reads sources, each by itself, and keeps which pods should be here. Thread-safe.

    A `Group` of `nodealloc.dsw_asw`: start it, or put it into a group of your
    own. A source that hangs or fails delays itself alone, and what it said last
    stays. Make `pods` or `answers` a `Near` to be woken by changes.

    Args:
        sources: Name to source. The pods of the one called `api` are taken as
            they are, those of all others are static pods.
        wakers: Name of a source to who says when to read it; one thread each. They
            are followed once `start` is called, and closed by `stop`: a member of
            another group follows none.
        editions: What `editions` held when the agent ran before.
        remember: Called with a source's editions before anybody hears of the pods
            they belong to; what it raises keeps the reading back.
        known: Pods of an earlier run of the agent by uid, as they were told (`agent.Remembered.pods`). One
            whose manifest cannot be read now stays as it was; without `editions` none does.
        polling: How often, and how long.
        seen: Gives the time that new pods carry as an annotation.
        rules: Where the kubelet is wrong.
        executor: Runs readings; by default a thread for each.
        clock: Time for periods and deadlines.
        observer: Is told of progress.

    Attributes:
        pods: Every pod that should be here, by uid.
        answers: What came of reading each source.
        editions: Which edition of a static pod's name is which pod, by source.

    Raises:
        ConfigurationError: No source at all, one without a name, or a waker or a period of none.
    """

    @typed
    def __init__(
        self,
        sources: Mapping[str, Source],
        /,
        *,
        wakers: Mapping[str, Watcher] | None = None,
        editions: Mapping[str, Editions] | None = None,
        remember: Callable[[str, Editions], object] | None = None,
        known: Mapping[str, Pod] | None = None,
        polling: Polling = Polling(),
        seen: Callable[[], str] = str,
        rules: Rules = RIGHT,
        executor: Executor | None = None,
        clock: Clock | None = None,
        observer: Observer | None = None,
    ) -> None:
        _check_names(sources, wakers or {}, polling)
        self.pods: World[str, Pod] = World("pods of sources")
        self.answers: World[str, SourceAnswer] = World("answers of sources")
        self.editions: World[str, Editions] = World("editions of static pods")
        self._asked: World[str, int] = World("questions to sources")
        self._merged = MergedUpdates()
        self._forms = {name: PodForms() for name in sources}
        # What a reading brought that changed nothing: the very same pods change nothing again.
        self._unchanged: dict[str, tuple[Reading, tuple[PodEvent, ...]]] = {}
        self._known = dict(known or {})
        self._leaving: dict[str, frozenset[str]] = {}
        self._taking = threading.Lock()
        self._names = tuple(sources)
        self._wakers = dict(wakers or {})
        self._threads: list[threading.Thread] = []
        self._ending = threading.Event()
        self._fault_lines: list[FaultLines] = []
        self._is_ending: Callable[[str], bool] | None = None
        self._remember, self._seen, self._rules = remember, seen, rules
        for name, remembered in (editions or {}).items():
            self.editions.put(name, remembered, by="remembered")
        for name in sources:
            self._asked.put(name, 0, by="start")
        super().__init__(
            Reconciler(
                _Readings(sources, self._take, polling),
                desired=self._asked,
                actual=self.answers,
                executor=ThreadExecutor("pod sources") if executor is None else executor,
                clock=clock,
                observer=observer,
                name="pod sources",
            ),
            name="pod sources",
        )

    @override
    def start(self) -> None:
        """Read all sources, and again; the wakers' threads begin."""
        super().start()
        try:
            for name, waker in self._wakers.items():
                thread = threading.Thread(
                    target=self._follow, args=(name, waker), name=f"{name} waker", daemon=True
                )
                thread.start()
                self._threads.append(thread)
        except RuntimeError:  # the system gives no more threads
            self.stop(0.0)
            raise

    @override
    def stop(self, timeout_s: float | None = None, /) -> tuple[Running[object], ...]:
        """End, wakers too; pods stay in `pods` as they are. See `Group`."""
        self._ending.set()
        for name, waker in self._wakers.items():
            logged(_log, waker.close, "%s: its waker could not be closed", name)
        for thread in self._threads:
            thread.join(5.0)
        return super().stop(timeout_s)

    def hurry(self, source: str, /) -> None:
        """Read a source soon; from any thread, as often as anybody likes."""
        self._check(source)
        self._asked.alter(source, lambda number: (number or 0) + 1, by="hurry")

    def is_ready(self) -> bool:
        """Whether every source was heard once; until then nothing may be destroyed."""
        return self._merged.has_heard(self._names)

    def merged(self) -> MergedUpdates:
        """All that the sources have said so far."""
        return self._merged

    def learn_ends(self, is_ending: Callable[[str], bool], /) -> None:
        """Ask this, with a uid, whether a pod has to end or has ended: edited, it is a new pod then.

        `PodLives` says it of its own pods. It is called on the threads that read, from the next reading on.
        """
        self._is_ending = is_ending

    @typed
    def tell_faults(self, tell: Callable[[str], object], /) -> None:
        """Call this with a line for each fault of a source when it appears or changes, and when it is gone.

        A fault is a file that cannot be read, a folder that is not there, a source without an answer, a pod
        that was refused for its name or uid. It is called on the threads that read, and is to return at once.
        """
        self._fault_lines.append(FaultLines(self.answers, tell))

    def _check(self, source: str) -> None:
        if source not in self._names:
            raise ConfigurationError(f"{source!r} is none of the sources {', '.join(self._names)}")

    def _keep(self, source: str, editions: Editions) -> None:
        if editions != self.editions.get(source):
            if self._remember is not None:
                done("PodSources: remember", self._remember, source, editions)
            self.editions.put(source, editions, by="reading")

    @typed
    def may_leave(self, uid: str, /) -> bool:
        """Whether a pod is no more, or may be about to go, since what it was read from is away.

        What it holds may be had soon: who needs it is to wait, not to be refused.
        """
        pod = self.pods.get(uid)
        return pod is None or any(pod.full_name in names for names in self._leaving.copy().values())

    def _take(self, source: str, reading: Reading) -> tuple[PodEvent, ...]:
        if not reading.is_synced:
            return ()
        # Who has left is one of those that may until nobody finds it among the pods.
        self._leaving[source] = self._leaving.get(source, frozenset()) | reading.leaving
        events = self._taken(source, reading)
        self._leaving[source] = reading.leaving
        return events

    def _taken(self, source: str, reading: Reading) -> tuple[PodEvent, ...]:
        # Held while the pods are told, so that an older state never follows a newer one.
        with self._taking:
            pods = reading.pods
            again = self._unchanged.get(source)
            if again is not None and _are_same(again[0], reading):
                return again[1]
            for one in pods:
                require_sound(one)
            if source != API:
                editions, pods = self._edited(source, reading)
                self._keep(source, editions)
            merging = merge_update(
                self._merged, PodUpdate(source=source, pods=pods), seen=self._seen(), rules=self._rules
            )
            if any(one.pods for one in merging.changes):
                self._unchanged.clear()
                self.pods.replace(merging.merged.by_uid(), by=source)
            else:
                self._unchanged[source] = (reading, merging.events)
            # Heard once everybody was told: whoever asks `is_ready` destroys what nobody has said.
            self._merged = merging.merged
        return merging.events

    def _edited(self, source: str, reading: Reading) -> tuple[Editions, tuple[Pod, ...]]:
        """A reading's pods as others are told of them, and those that stay since nobody could read them."""
        editions, pods = (self.editions.get(source) or Editions()).read(
            reading.pods,
            rules=self._rules,
            forms=self._forms[source],
            is_ending=self._is_ending,
            places=reading.places,
            unread=reading.unread,
        )
        read = {pod.full_name for pod in pods}
        unread = [editions.uids[name] for name in editions.unread(reading.unread) if name not in read]
        return editions, (*pods, *(self._known[uid] for uid in unread if uid in self._known))

    def _follow(self, name: str, waker: Watcher) -> None:
        while not self._ending.is_set():
            try:
                if waker.wait(_REST_S):
                    self.hurry(name)
                self._ending.wait(_PAUSE_S)
            except Exception:  # noqa: BLE001 - the rescan goes on without it
                _log.exception("%s: waiting for changes failed; again in a second", name)
                self._ending.wait(1.0)


def _check_names(sources: Collection[str], wakers: Collection[str], polling: Polling) -> None:
    if not sources:
        raise ConfigurationError("PodSources: no source at all; give at least one")
    if "" in sources:
        raise ConfigurationError("PodSources: a source without a name; give it one, such as 'file'")
    if alike := [name for name in sources if name.lower() == API != name]:
        raise ConfigurationError(
            f"PodSources: pods of a source {alike[0]!r} would be static pods with other uids; call it {API!r}"
        )
    if stray := sorted(set(wakers) - set(sources)):
        raise ConfigurationError(f"sources {sorted(sources)}, wakers of none: {stray}; give each its source")
    if stray := sorted(set(polling.periods) - set(sources)):
        raise ConfigurationError(
            f"Polling.periods: {', '.join(map(repr, stray))} is none of the sources "
            f"{', '.join(map(repr, sources))}; name a source, or leave it out"
        )


def _are_same(before: Reading, now: Reading) -> bool:
    if (before.places, before.unread) != (now.places, now.unread) or len(before.pods) != len(now.pods):
        return False
    return all(old is new for old, new in zip(before.pods, now.pods, strict=True))
