"""The shell: tells a sink of pods, each at its own pace, and remembers what it told."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Generic, TypeVar, cast

from nodealloc import _attrs as attrs
from nodealloc._arguments import addresses, names_in, within, wrong
from nodealloc._frozen import PlainJson
from nodealloc._typed import typed, typed_fields, typed_methods
from nodealloc.checkpoint import JsonCheckpoint, require_formats, row_key
from nodealloc.dsw_asw import (
    Clock,
    Executor,
    Failure,
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
from nodealloc.podfacts import PodStatus
from nodealloc.podstatus._codec import STATUS_ROWS, manifest_of, told_to_checkpoint
from nodealloc.podstatus._observed import Observed
from nodealloc.podstatus._ports import Sink
from nodealloc.podstatus._rules import RIGHT, Rules
from nodealloc.podstatus._taking import Told
from nodealloc.podstatus._telling import Decide, Part, Tellings

__all__ = ["StatusManager", "TellingOptions"]

W = TypeVar("W")


@typed_fields
@attrs.frozen(kw_only=True)
class TellingOptions:
    """What a node tells, and how.

    Attributes:
        node_ips: Addresses of the node; the family of the first one goes first.
        runtime: Scheme of container ids, as the runtime names itself.
        in_flight: Calls of the sink at once, at least 1; the urgent ones are first.
        deadline_s: After so many seconds a call counts as lost, and its pod is told
            again once it has returned. None waits for ever.
        says_next_try: Whether the message of a container that waits ends with the moment
            of its next try, in whole seconds. A kubelet does not say it.
        gather_s: What is new of a pod that is starting is told within so many seconds, together with what
            comes meanwhile; that it runs, has failed or has to end is told at once. 0 tells each step
            of a start. A kubelet looks once a second.
        settle_s: A change of a pod that has not to end waits so many seconds for what changes with it, and
            is decided about once. 0 decides about each. A kubelet decides about each.

    Raises:
        ConfigurationError: No call at once, no time for one or one that is none, or an address that is none.
    """

    node_ips: tuple[str, ...] = attrs.field(default=(), converter=tuple[str, ...])
    runtime: str = "containerd"
    in_flight: int = attrs.field(default=16, validator=within(1))
    deadline_s: float | None = attrs.field(default=60.0)
    says_next_try: bool = True
    gather_s: float = attrs.field(default=0.0, validator=within(0))
    settle_s: float = attrs.field(default=0.0, validator=within(0))

    def __attrs_post_init__(self) -> None:
        addresses("TellingOptions.node_ips", self.node_ips)
        if self.deadline_s is not None and not self.deadline_s > 0:
            raise ConfigurationError(
                f"TellingOptions.deadline_s {self.deadline_s:g} leaves no time for a call; "
                "give seconds beyond 0, or None"
            )
        for name, waits_s in (("gather_s", self.gather_s), ("settle_s", self.settle_s)):
            if waits_s == math.inf:
                raise wrong(f"TellingOptions.{name}", waits_s, "seconds that pass; what waits is told then")


def _itself(record: object) -> Observed:
    if not isinstance(record, Observed):
        raise ConfigurationError(
            f"{type(record).__name__} is not Observed; give `observed`, which makes one of a record"
        )
    return record


@typed_methods
class StatusManager(Group, Generic[W]):
    """Decides what is true of each pod, and tells a sink of it until the sink has taken it.

    A `Group` of `nodealloc.dsw_asw`: start it, or put it into a group of your
    own. Each pod is told by itself, one call at a time, so that a slow or
    failing sink holds up nobody; a pod that runs for the first time and one that
    has ended are told before others. A pod that is dropped from `pods` is told
    of in a terminal phase once, then that it is gone.

    Args:
        sink: Who is told.
        pods: The pods that there are, by uid: whoever runs them writes it.
        observed: From a record of `pods` to what is known, or to None for a pod that nobody is
            told of, such as one that only the runtime knew; None where they are `Observed`.
        parts: More worlds by uid that something is known from, such as
            `Part.of(watch.pods, with_runtime)`.
        journal: Where what was told is remembered before it is told; None to
            forget it with the process. A store of `nodealloc.checkpoint` is one.
        remembered: What was remembered (`told_from_checkpoint`), by uid. One of
            these that is not in `pods` is left alone until `heard`.
        told: Takes what is true and what was told; empty, and nobody else's to write. Made
            before `nodealloc.podlife.PodLives`, it lets pods' ends wait until they were told
            to be not ready. None for a new one.
        options: What the node tells, and how.
        rules: Whose.
        executor: Calls the sink; by default threads, `options.in_flight` at most.
        clock: Time for back-off and deadlines.
        unix_s: Now in Unix seconds, for what changed.
        observer: Is told of progress.

    Attributes:
        told: What is true of each pod and how much of it was told; the engine
            writes it. Make it a `Near` to wait for something that is told.
    """

    @typed
    def __init__(
        self,
        sink: Sink,
        pods: World[str, W],
        *,
        observed: Callable[[W], Observed | None] | None = None,
        parts: Sequence[Part] = (),
        journal: Journal[JsonCheckpoint] | None = None,
        remembered: Mapping[str, Told] | None = None,
        told: World[str, Told] | None = None,
        options: TellingOptions = TellingOptions(),
        rules: Rules = RIGHT,
        executor: Executor | None = None,
        clock: Clock | None = None,
        unix_s: Callable[[], float] = time.time,
        observer: Observer | None = None,
    ) -> None:
        require_formats(journal, (f"{STATUS_ROWS}.*",), "StatusManager, journal")
        self.told: World[str, Told] = World("told statuses") if told is None else told
        self._unheard: World[str, int] = World("remembered statuses")
        self._manifests: dict[str, tuple[PodStatus, PlainJson]] = {}
        for uid, one in (remembered or {}).items():
            self.told.put(uid, one, by="remembered")
            self._unheard.put(uid, 1, by="remembered")
        clocked: Clock = SystemClock() if clock is None else clock
        unheard: Near[str, str, int] = Near(self._unheard, lambda uid: [uid])
        domain = Tellings(
            sink,
            self.told,
            cast("Callable[[W], Observed | None]", _itself) if observed is None else observed,
            parts=parts,
            unheard=unheard,
            decide=Decide(node_ips=options.node_ips, runtime=options.runtime, rules=rules),
            unix_s=lambda now_s: unix_s() + now_s - clocked.monotonic_s(),
            deadline_s=options.deadline_s,
            says_next_try=options.says_next_try,
            gather_s=options.gather_s,
            settle_s=options.settle_s,
        )
        nears = [cast("Near[str, str, object]", unheard), *(part.near for part in parts)]
        self._telling = Reconciler(
            domain,
            desired=pods,
            actual=self.told,
            executor=ThreadExecutor("pod status", most=options.in_flight) if executor is None else executor,
            near=nears,
            remember=None if journal is None else Remember(journal=journal, rows=self._rows),
            clock=clocked,
            # One that waits behind others is not lost.
            take_up_s=None,
            plans_once=True,
            observer=observer,
            name="pod status",
        )
        self._pods = pods
        self._came = pods.watch(self._let_go)
        super().__init__(self._telling, name="pod status")

    def status(self, uid: str, /) -> PodStatus | None:
        """What is true of a pod, told already or not; None for one that is not known."""
        told = self.told.get(uid)
        return None if told is None else told.status

    def failures(self, uid: str, /) -> tuple[Failure, ...]:
        """Why the sink has not taken what is true of a pod, if it was asked."""
        return self._telling.failures(uid)

    def retry_now(self, uid: str, /) -> None:
        """Tell what is true of a pod with the next pass, though the sink has just refused it."""
        self._telling.retry_now(uid)

    def heard(self, uids: Iterable[str] = ()) -> None:
        """Every source of pods was heard: a remembered pod that nobody has is gone.

        Args:
            uids: Pods that there are, though whoever runs them may not have put
                them into `pods` yet; those are waited for.
        """
        there = names_in("StatusManager.heard: uids", uids)
        for uid in self._unheard.snapshot():
            if uid not in there:
                self._unheard.drop(uid, by="heard")

    def _let_go(self) -> None:
        """A remembered pod that was here, however shortly, and is no more is waited for no longer."""
        for uid in self._came.take():
            if uid in self._unheard and uid not in self._pods:
                self._unheard.drop(uid, by="gone")

    def _rows(self, uid: str, told: Told | None) -> Mapping[str, JsonCheckpoint | None]:
        key = row_key(STATUS_ROWS, uid)
        if told is None:
            self._manifests.pop(uid, None)
            return {key: None}
        form = self._manifests.get(uid)
        if form is None or form[0] is not told.status:
            form = self._manifests[uid] = (told.status, manifest_of(told.status))
        return {key: told_to_checkpoint(told, manifest=form[1])}
