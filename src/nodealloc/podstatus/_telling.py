"""The rules of telling: what is true of each pod, and what of it is still to be told; plans are pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Generic, NamedTuple, TypeVar, cast

from nodealloc import _attrs as attrs
from nodealloc._arguments import check, done
from nodealloc._typed import typed_fields
from nodealloc.dsw_asw import KEEP, Cancel, Done, Near, Outcome, Plan, Step, View, World
from nodealloc.errors import ConfigurationError
from nodealloc.podfacts import ContainerWaiting, PodPhase, PodStatus
from nodealloc.podstatus._next_tries import NextTries
from nodealloc.podstatus._observed import Observed
from nodealloc.podstatus._ports import Sink
from nodealloc.podstatus._rules import Rules
from nodealloc.podstatus._status import status_of
from nodealloc.podstatus._taking import Told, end_status, leave, take_status
from nodealloc.runtime import RunState

__all__ = ["Delivery", "Part", "Telling", "Tellings"]

W = TypeVar("W")
V = TypeVar("V")

_FIRST: Final = 0
_LATER: Final = 1
_FORGOTTEN_S: Final = 60.0
"""Of a change that waits for others: long after it was to be looked at, nobody will."""
_STARTS: Final = frozenset({"", "ContainerCreating", "PodInitializing"})
"""Reasons to wait of a container that nothing went wrong with."""


@typed_fields
@attrs.frozen(eq=False)
class Part:
    """Records of a world by uid, and how they add to what is known of a pod.

    Make it with `Part.of`. When a record changes, the status of its pod is decided anew.

    Attributes:
        near: Where the records are.
        into: From what is known and a record to what is known then; pure and quick.
    """

    near: Near[str, str, object]
    into: Callable[[Observed, object], Observed]

    @classmethod
    def of(cls, world: World[str, V], into: Callable[[Observed, V], Observed], /) -> Part:
        """Of a world, such as `RuntimeWatch.pods` with `with_runtime`."""
        near: Near[str, str, V] = Near(world, lambda uid: [uid])
        return cls(cast("Near[str, str, object]", near), cast("Callable[[Observed, object], Observed]", into))


@attrs.frozen(kw_only=True)
class Telling:
    """What a step tells: of a pod that is there the newest status, of one that is gone that it is.

    Attributes:
        uid: Of which pod.
        is_gone: That it is no more.
        is_urgent: The pod runs for the first time, or has ended.
    """

    uid: str
    is_gone: bool = False
    is_urgent: bool = False


class _Decided(NamedTuple):
    """A status, and what it was decided from: records, and what was known by them."""

    records: tuple[object, ...]
    observed: Observed
    status: PodStatus


class _Until(NamedTuple):
    """When it is decided what is true of a pod that changed."""

    at_s: float


@attrs.frozen(kw_only=True)
class Delivery:
    """What was told in a step; no version where the pod is gone."""

    version: int = 0
    phase: PodPhase | None = None


class Tellings(Generic[W]):
    """A `Domain`: pods that are known, and what was told of each.

    Args:
        sink: Who is told.
        told: The actual world; read when it is told, so that what is told is the newest.
        observed: From a record of the desired world to what is known; None for a pod
            that nobody is told of.
        parts: What adds to that.
        unheard: Remembered pods of which no source has said whether they are there still.
        decide: What is true, from what is known and what was told.
        unix_s: The moment of a plan in Unix seconds, from the engine's clock.
        deadline_s: How long a call of the sink may take.
        says_next_try: Whether it is told when a container that waits is tried next.
        gather_s: How long what is new of a pod that is starting may wait to be told.
        settle_s: How long a change of a pod that has not to end waits for others, until it is decided
            what is true.
    """

    def __init__(
        self,
        sink: Sink,
        told: World[str, Told],
        observed: Callable[[W], Observed | None],
        *,
        parts: Sequence[Part],
        unheard: Near[str, str, int],
        decide: Decide,
        unix_s: Callable[[float], float],
        deadline_s: float | None,
        says_next_try: bool = False,
        gather_s: float = 0.0,
        settle_s: float = 0.0,
    ) -> None:
        self._sink = sink
        self._told = told
        self._observed = observed
        self._parts = parts
        self._unheard = unheard
        self._decide = decide
        self._unix_s = unix_s
        self._deadline_s = deadline_s
        self._tries = NextTries() if says_next_try else None
        self._gather_s = gather_s
        # Of each pod of which something new waits, since when.
        self._gathering: dict[str, float] = {}
        self._settle_s = settle_s
        # Of each pod of which something changed that nothing was decided about yet, until when that waits.
        self._settling: dict[str, _Until] = {}
        # What each pod's status was decided from: the same records need no second look.
        self._decided: dict[str, _Decided] = {}

    def plan(self, view: View[str, W, Told, Telling], /) -> Plan[Told, Telling]:
        """Decide what is true; tell it where that is new; tell of the end once all was told."""
        have, now_unix_s = view.have, self._unix_s(view.now_s)
        if view.want is not None:
            true = self._true(view, view.want, now_unix_s)
            if isinstance(true, _Until):
                told = None if have is None or have.is_told else self._step(view.key, have)
                return Plan(steps=() if told is None else (told,), again_at_s=true.at_s)
        elif have is None or self._may_come(view):
            return Plan()
        else:
            true = leave(have, now_unix_s=now_unix_s)
        if true is None:
            return Plan()
        waits_until_s = self._waits_until_s(view, true)
        if have is not None and waits_until_s is not None:
            true = have
        step = self._step(view.key, true)
        # A step that still waits for a worker, with an older status, is withdrawn for a newer one.
        late = [
            one.scope
            for one in view.running
            if step is not None and one.began_s is None and one.detail != step.detail
        ]
        return Plan(
            have=KEEP if true == have else true,
            steps=[] if step is None else [step],
            again_at_s=waits_until_s,
            cancel=tuple(late),
        )

    def _waits_until_s(self, view: View[str, W, Told, Telling], true: Told) -> float | None:
        """Until when what is new waits for what comes next; None where it is told now, or nothing is new.

        It never waits for more than one period: what comes meanwhile does not begin another.
        """
        have, key = view.have, view.key
        if self._gather_s and have is not None and true is not have and _starts(have) and _starts(true):
            until_s = self._gathers_until_s(key, view.now_s)
            if view.now_s < until_s:
                return until_s
        self._gathering.pop(key, None)
        return None

    def _gathers_until_s(self, key: str, now_s: float) -> float:
        return self._gathering.setdefault(key, now_s) + self._gather_s

    def _may_come(self, view: View[str, W, Told, Telling]) -> bool:
        """Whether nobody has said of a remembered pod that it is gone, and it has not been there yet."""
        return view.key in view.of(self._unheard)

    def perform(self, step: Step[Telling], _cancel: Cancel, /) -> Delivery:
        """Tell the newest that is known."""
        uid = step.detail.uid
        if step.detail.is_gone:
            done("sink: gone", self._sink.gone, uid)
            return Delivery()
        told = self._told.get(uid)
        if told is None:
            return Delivery()
        done("sink: told", self._sink.told, uid, told.status)
        return Delivery(version=told.version, phase=told.status.phase)

    def settled(self, have: Told | None, step: Step[Telling], outcome: Outcome[Delivery], /) -> Told | None:
        """What was taken is not told again; of a pod that is gone nothing is left."""
        if have is None or not isinstance(outcome, Done):
            return have
        if step.detail.is_gone:
            self._decided.pop(step.detail.uid, None)
            if self._tries is not None:
                self._tries.forget(step.detail.uid)
            # It may have come back meanwhile: then nothing of it is known out there.
            return None if have.is_leaving else attrs.evolve(have, told_version=0, told_phase=None)
        tale = outcome.result
        return attrs.evolve(have, told_version=tale.version, told_phase=tale.phase)

    def _true(self, view: View[str, W, Told, Telling], want: W, now_unix_s: float) -> Told | _Until | None:
        have, key = view.have, view.key
        parts = [view.of(part.near).get(key) for part in self._parts]
        before, records = self._last(key, have), (want, *parts)
        if before is not None and all(old is new for old, new in zip(before.records, records, strict=True)):
            return have
        observed = self._observed(want)
        if observed is None:
            return None
        is_starting = bool(self._gather_s) and have is not None and _starts(have)
        if not is_starting and (until := self._settles(key, observed, view.now_s)) is not None:
            return until
        for part, record in zip(self._parts, parts, strict=True):
            if record is not None:
                observed = part.into(observed, record)
        _require_of(key, observed)
        if is_starting and (until := self._starts_until(key, observed, view.now_s)) is not None:
            return until
        if self._tries is not None:
            observed = self._tries.said(key, observed, now_s=view.now_s, now_unix_s=now_unix_s)
        is_same = before is not None and before.observed == observed
        # What an earlier process told is nothing that a kubelet knows of.
        is_forgotten = key not in self._decided and not self._decide.rules.keeps_past
        true = have if is_same else self._decide(None if is_forgotten else have, observed, now_unix_s)
        if true is not None:
            self._decided[key] = _Decided(records, observed, true.status)
        return true

    def _starts_until(self, key: str, observed: Observed, now_s: float) -> _Until | None:
        """Until when what changed of a pod on its way to run waits for what is told with it."""
        if _has_not_begun(observed) and now_s < (until_s := self._gathers_until_s(key, now_s)):
            return _Until(until_s)
        return self._settles(key, observed, now_s)

    def _settles(self, key: str, observed: Observed, now_s: float) -> _Until | None:
        """Until when what changed waits for what changes with it; that a pod has to end does not wait."""
        until = None if observed.is_ending else self._settling.get(key, _Until(now_s + self._settle_s))
        if until is None or until.at_s <= now_s:
            self._settling.pop(key, None)
            return None
        self._settling[key] = until
        first, oldest = next(iter(self._settling.items()))
        if oldest.at_s + _FORGOTTEN_S < now_s:
            del self._settling[first]  # the pod was dropped meanwhile: it is never looked at again
        return until

    def _last(self, key: str, have: Told | None) -> _Decided | None:
        """What the status that is kept was decided from; None where it is to be decided anew."""
        last = self._decided.get(key)
        if have is None or last is None or have.is_leaving or last.status is not have.status:
            return None
        return last if have.knows_end is last.observed.is_ending else None

    def _step(self, uid: str, true: Told) -> Step[Telling] | None:
        if true.is_told:
            if not true.is_leaving:
                return None
            return self._made(Telling(uid=uid, is_gone=True))
        return self._made(Telling(uid=uid, is_urgent=_is_urgent(true)))

    def _made(self, telling: Telling) -> Step[Telling]:
        return Step(
            scope=("status", telling.uid),
            verb="tell gone" if telling.is_gone else "tell",
            detail=telling,
            phase=_FIRST if telling.is_urgent else _LATER,
            deadline_s=self._deadline_s,
            # What is urgent does not wait for the back-off of what was not.
            subject=telling.is_urgent,
        )


@attrs.frozen(kw_only=True)
class Decide:
    """What is true of a pod, from what is known of it and what was told of it.

    Attributes:
        node_ips: Addresses of the node.
        runtime: Scheme of container ids.
        rules: Whose.
    """

    node_ips: tuple[str, ...] = ()
    runtime: str = "containerd"
    rules: Rules

    def __call__(self, have: Told | None, observed: Observed, now_unix_s: float, /) -> Told | None:
        """The same where nothing is new."""
        known = attrs.evolve(have, is_leaving=False) if have is not None and have.is_leaving else have
        status = status_of(
            observed,
            known.status if known else None,
            node_ips=self.node_ips,
            runtime=self.runtime,
            rules=self.rules,
        )
        # By a kubelet's rules what never began is Pending until all is done, and has failed then.
        may_fail = not (observed.static or self.rules.ends_once_over)
        is_over = observed.is_over and (may_fail or status.is_terminal)
        if is_over and not observed.refused:
            status = end_status(
                observed.pod,
                status,
                source_status=observed.source_status,
                static=observed.static,
                rules=self.rules,
            )
        true = take_status(
            known,
            observed.pod,
            status,
            source_status=observed.source_status,
            is_over=is_over,
            static=observed.static,
            now_unix_s=now_unix_s,
            rules=self.rules,
        )
        if true is None or true.knows_end is observed.is_ending:
            return true
        return attrs.evolve(true, knows_end=observed.is_ending)


def _starts(one: Told) -> bool:
    """Whether a pod is on its way to run: nothing of it has run or failed, and it has not to end."""
    status = one.status
    return (
        status.phase is PodPhase.PENDING
        and not (one.is_leaving or one.is_over or one.knows_end)
        and all(
            isinstance(each.state, ContainerWaiting) and each.state.reason in _STARTS
            for each in (*status.init_containers, *status.containers)
        )
    )


def _has_not_begun(observed: Observed) -> bool:
    """Whether a pod is on its way to run by what is known of it: then what is true of it `_starts`, too."""
    report, theirs = observed.report, observed.source_status
    return (
        not (observed.is_ending or observed.refused or observed.start_failures or observed.ends)
        and not any(observed.counts.values())
        and (report is None or all(one.record.state is RunState.CREATED for one in report.containers))
        and (theirs is None or not theirs.is_terminal)
    )


def _is_urgent(true: Told) -> bool:
    """Whether others wait for this: it runs for the first time, or has ended."""
    before = true.told_phase
    if true.status.is_terminal:
        return before is None or not before.is_terminal
    return true.status.phase is PodPhase.RUNNING and before is not PodPhase.RUNNING


def _require_of(uid: str, observed: Observed) -> None:
    """Whoever makes records, or adds to them, is somebody else."""
    check(f"what is known of pod {uid}", observed, Observed, "an Observed, of `observed` and of each part")
    if observed.pod.uid != uid:
        raise ConfigurationError(
            f"what is known of pod {uid} is of pod {observed.pod.uid}; put each pod under its own uid"
        )
