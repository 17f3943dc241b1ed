"""The rules of looking: when to list, whom to inspect, what is kept; plans are pure."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, TypeAlias, Union

from nodealloc import _attrs as attrs
from nodealloc._arguments import check, within
from nodealloc._error_words import error_words
from nodealloc._typed import typed_fields
from nodealloc.dsw_asw import Cancel, Done, Failed, Near, Outcome, Plan, Step, Uncertain, View, World
from nodealloc.runtime._errors import RuntimeRefusedError
from nodealloc.runtime._health import RuntimeHealth
from nodealloc.runtime._known import PodKnown
from nodealloc.runtime._listing import Listing, Marks, PodListing
from nodealloc.runtime._ports import Looks
from nodealloc.runtime._reports import PodReport, inspected
from nodealloc.runtime._unasked import Unasked, unasked

__all__ = [
    "EVENTS",
    "HEALTH",
    "LISTING",
    "Answered",
    "Asked",
    "Inspection",
    "Inspections",
    "Pace",
    "Questions",
]

LISTING, HEALTH, EVENTS = "listing", "health", "events"
_NO_EVENTS_AGAIN_S: Final = 300.0
_UNHEARD_S: Final = 1.0
"""From one listing to the next at most while events are not heard that were to be."""

Brought: TypeAlias = Union[RuntimeHealth, tuple[str, ...], None]
"""What a question brings: the runtime's own words, or a listing's oddities."""


@typed_fields
@attrs.frozen(kw_only=True)
class Pace:
    """How often the runtime is asked, and how long it may take, in seconds.

    Attributes:
        period_s: From one listing to the next when nothing hurries; 1 s at most while events were to be
            followed, and the runtime has none or is away.
        is_steady: Whether periods count from the first listing, as with a kubelet, however many others
            were hurried between them; otherwise from the last one.
        gap_s: The same at least, however many events there are.
        rest_times: So many times as long as a listing took, at least, before the next: a node of many
            pods is listed less often than one of few while much happens. 0 for `gap_s` alone.
        health_s: From one question for its health to the next.
        list_s: Past this a listing, or the answer about health, counts as lost.
        inspect_s: The same for the inspection of a pod.
        again_s: From an inspection that failed to the next try.

    Source: kubelet ``pleg/generic.go`` (1 s), ``kubelet.go`` (5 s), ``cri-client`` (2 min).
    """

    period_s: float = attrs.field(default=1.0, validator=within(0, above=True, finite=True))
    is_steady: bool = False
    gap_s: float = attrs.field(default=0.1, validator=within(0, finite=True))
    rest_times: float = attrs.field(default=0.0, validator=within(0, finite=True))
    health_s: float = attrs.field(default=5.0, validator=within(0, above=True, finite=True))
    list_s: float = attrs.field(default=120.0, validator=within(0, above=True))
    inspect_s: float = attrs.field(default=120.0, validator=within(0, above=True))
    again_s: float = attrs.field(default=1.0, validator=within(0, finite=True))


@attrs.frozen(kw_only=True)
class Asked:
    """What is wanted of one question.

    Attributes:
        number: Of the newest hurry.
        urgent: Of the newest that does not wait.
        due_s: When those that may wait are answered at the latest, on the engine's clock.
    """

    number: int = 0
    urgent: int = 0
    due_s: float = 0.0

    def hurried(self) -> Asked:
        """Once more, at once."""
        return attrs.evolve(self, number=self.number + 1, urgent=self.number + 1)

    def hurried_by(self, due_s: float, tried: int, /) -> Asked:
        """Once more, by some moment.

        Args:
            due_s: When.
            tried: Number of the hurry that was tried last: those after it wait already.
        """
        waits = self.number > tried and self.number > self.urgent
        return attrs.evolve(self, number=self.number + 1, due_s=min(self.due_s, due_s) if waits else due_s)


@attrs.frozen(kw_only=True)
class Answered:
    """What came of asking one question.

    Attributes:
        number: Of the hurry that was tried; a higher one is still to be.
        shown: Number of the newest hurry that the last answer covers; -1 before the first answer.
        count: Answers so far.
        tried_s: When the last try ended, on the engine's clock.
        answered_s: When the last answer began to be given; None before the first.
        failed_s: When the first of the newest failures in a row ended; None for none.
        error: The newest failure, in words; "" for none.
        value: The last answer.
    """

    number: int = 0
    shown: int = -1
    count: int = 0
    tried_s: float = 0.0
    answered_s: float | None = None
    failed_s: float | None = None
    error: str = ""
    value: Brought = None

    @property
    def took_s(self) -> float:
        """How long the last answer took, in seconds; 0 where the newest try failed."""
        return 0.0 if self.answered_s is None or self.failed_s is not None else self.tried_s - self.answered_s


class Questions:
    """A `Domain`: the listing, the runtime's health, and its events, each asked by itself.

    Keys are the three constants above.

    Args:
        looks: Whom to ask.
        seen: Takes over each listing.
        hurry: Asks for a listing soon.
        events: Follows events; None where there are none.
        pace: How often.
    """

    def __init__(
        self,
        looks: Looks,
        seen: World[str, PodListing],
        hurry: Callable[[], None],
        *,
        events: Looks | None,
        pace: Pace,
    ) -> None:
        self._looks = looks
        self._seen = seen
        self._hurry = hurry
        self._events = events
        self._pace = pace
        self._first_s: float | None = None
        self._is_unheard = False

    def plan(self, view: View[str, Asked, Answered, int], /) -> Plan[Answered, int]:
        """Ask again after a period, or sooner where somebody hurries; never twice at a time."""
        want = view.want
        if want is None or view.running:
            return Plan()
        if view.key == EVENTS:
            if self._events is None:
                return Plan()
            # A stream that ends as soon as it has begun is not begun again without a pause.
            began_s = None if view.have is None else view.have.answered_s
            if began_s is not None and view.now_s < began_s + self._pace.gap_s:
                return Plan(again_at_s=began_s + self._pace.gap_s)
            return Plan(steps=[Step(scope=(EVENTS,), verb="follow", detail=0)])
        pace, have = self._pace, view.have
        if have is not None:
            due_s = self._due_s(want, have, pace.health_s if view.key == HEALTH else self._period_s)
            if view.now_s < due_s:
                return Plan(again_at_s=due_s)
        elif view.key == LISTING:
            self._first_s = view.now_s
        verb, number = "list" if view.key == LISTING else "ask", want.number
        return Plan(
            steps=[Step(scope=(view.key,), verb=verb, detail=number, deadline_s=pace.list_s, subject=number)]
        )

    def _due_s(self, want: Asked, have: Answered, period_s: float) -> float:
        rest_s = max(self._pace.gap_s, have.took_s * self._pace.rest_times)
        soonest_s = have.tried_s + min(rest_s, period_s)
        if want.urgent > have.number:
            return soonest_s
        next_s = self._next_s(have.tried_s, period_s)
        return min(max(soonest_s, want.due_s), next_s) if want.number > have.number else next_s

    def _next_s(self, tried_s: float, period_s: float) -> float:
        if not self._pace.is_steady or self._first_s is None:
            return tried_s + period_s
        return self._first_s + (math.floor((tried_s - self._first_s) / period_s) + 1) * period_s

    @property
    def _period_s(self) -> float:
        return min(self._pace.period_s, _UNHEARD_S) if self._is_unheard else self._pace.period_s

    def perform(self, step: Step[int], cancel: Cancel, /) -> Brought | Failed[Brought]:
        """Ask; a listing is taken over at once, from the moment at which it began."""
        if step.verb == "follow":
            return self._followed(cancel)
        period_s = self._pace.health_s if step.verb == "ask" else self._period_s
        try:
            if step.verb == "ask":
                return check("health", self._looks.health(), RuntimeHealth, "a RuntimeHealth")
            since = self._seen.generation
            listing = check("listing", self._looks.listing(), Listing, "a Listing; Listing.of makes one")
        except Exception as error:  # noqa: BLE001 - asked again, whatever went wrong
            return Failed(error, again_after_s=period_s)
        self._seen.replace(listing.pods, since=since, by="listing")
        return tuple(one.what for one in listing.oddities)

    def _followed(self, cancel: Cancel) -> None | Failed[Brought]:
        try:
            if self._events is not None:
                self._events.follow(self._heard, cancel)
        except Exception as error:  # noqa: BLE001 - asked again, whatever went wrong
            was_unheard, self._is_unheard = self._is_unheard, True
            if not was_unheard:
                self._hurry()
            has_none = isinstance(error, RuntimeRefusedError)
            return Failed(error, again_after_s=_NO_EVENTS_AGAIN_S if has_none else self._pace.period_s)
        return None

    def _heard(self) -> None:
        self._is_unheard = False
        self._hurry()

    def settled(
        self, have: Answered | None, step: Step[int], outcome: Outcome[Brought], /
    ) -> Answered | None:
        """Answers are counted; a failure keeps the answer before."""
        before = Answered() if have is None else have
        match outcome:
            case Done(result=value):
                return Answered(
                    number=max(before.number, step.detail),
                    shown=step.detail,
                    count=before.count + 1,
                    tried_s=outcome.ended_s,
                    answered_s=outcome.began_s,
                    value=value,
                )
            case Failed() | Uncertain():
                since_s = outcome.ended_s if before.failed_s is None else before.failed_s
                return attrs.evolve(
                    before,
                    number=max(before.number, step.detail),
                    tried_s=outcome.ended_s,
                    failed_s=since_s,
                    error=error_words(outcome.error),
                )
            case _:
                return have


@attrs.frozen(kw_only=True)
class Inspection:
    """What an inspection is made for.

    Attributes:
        uid: Which pod.
        marks: What the listing shows of it.
        asked: What of that has to be asked, and what is known without.
    """

    uid: str
    marks: Marks
    asked: Unasked = attrs.field(eq=False)


class Inspections:
    """A `Domain`: what is listed of each pod, and what is known of it.

    Args:
        looks: Whom to ask.
        told: Pods whose ends were told to whoever needs them; they may be forgotten.
        pace: How long one may take.
    """

    def __init__(self, looks: Looks, told: Near[str, str, int], *, pace: Pace) -> None:
        self._looks = looks
        self._told = told
        self._pace = pace

    def plan(self, view: View[str, PodListing, PodKnown, Inspection], /) -> Plan[PodKnown, Inspection]:
        """Inspect what is new of a pod in its listing; one that makes no sense is left alone, and told."""
        want, have = view.want, view.have
        if want is None:
            return self._plan_gone(view, have)
        if want.is_spoilt:
            fault = "; ".join(one.what for one in want.oddities if one.spoils)
            doubted = attrs.evolve(PodKnown(uid=view.key) if have is None else have, fault=fault)
            return Plan() if doubted == have else Plan(have=doubted)
        if have is not None and have.is_current(want):
            return Plan()
        asked = unasked(want, None if have is None else have.report)
        if asked.due is None:
            known = PodKnown(uid=view.key) if have is None else have
            return Plan(have=known.inspected(asked.report, want.marks))
        inspection = Inspection(uid=view.key, marks=want.marks, asked=asked)
        return Plan(
            steps=[
                Step(
                    scope=("pod", view.key),
                    verb="inspect",
                    detail=inspection,
                    deadline_s=self._pace.inspect_s,
                    subject=tuple(want.marks.items()),
                )
            ]
        )

    def perform(self, step: Step[Inspection], _cancel: Cancel, /) -> PodReport | Failed[PodReport]:
        """Ask about one pod, what is not known of it."""
        asked = step.detail.asked
        try:
            told = self._looks.inspect(step.detail.uid, asked.due)
            return asked.with_told(inspected(step.detail.uid, told))
        except Exception as error:  # noqa: BLE001 - asked again, whatever went wrong
            return Failed(error, again_after_s=self._pace.again_s)

    def settled(
        self, have: PodKnown | None, step: Step[Inspection], outcome: Outcome[PodReport], /
    ) -> PodKnown | None:
        """The report with every end that was ever seen; in doubt where there is none."""
        known = PodKnown(uid=step.detail.uid) if have is None else have
        match outcome:
            case Done(result=report):
                return known.inspected(report, step.detail.marks, asked=step.detail.asked.due)
            case Failed() | Uncertain():
                return attrs.evolve(known, fault=error_words(outcome.error))
            case _:
                return have

    def _plan_gone(
        self, view: View[str, PodListing, PodKnown, Inspection], have: PodKnown | None
    ) -> Plan[PodKnown, Inspection]:
        if have is None:
            return Plan()
        left = have.gone()
        if not left.ends or view.of(self._told).get(view.key):
            return Plan(have=None, cancel=True)
        return Plan(cancel=True) if left == have else Plan(have=left, cancel=True)
