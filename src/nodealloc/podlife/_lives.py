"""The shell: takes pods, and brings each of them through its life."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, cast

import attrs

from nodealloc._fields import fields_but
from nodealloc._frozen import PlainJson, extended
from nodealloc._sound import require_sound
from nodealloc._typed import typed, typed_methods
from nodealloc.checkpoint import JsonCheckpoint, require_formats, row_key
from nodealloc.dsw_asw import (
    Clock,
    Executor,
    Failure,
    Group,
    Journal,
    Moment,
    Observer,
    Running,
    SystemClock,
    World,
)
from nodealloc.errors import ConfigurationError
from nodealloc.podfacts import LifeState, PodSource
from nodealloc.podlife._arrivals import Following
from nodealloc.podlife._codec import POD_ROWS, manifest_of, record_to_checkpoint
from nodealloc.podlife._details import LifePolicy
from nodealloc.podlife._domain import Lives
from nodealloc.podlife._engines import (
    EngineParts,
    facts_engine,
    life_engine,
    nears_of,
    orphans_engine,
    threads,
)
from nodealloc.podlife._facts import PodFacts
from nodealloc.podlife._heeding import failures_of
from nodealloc.podlife._hooks import ContainerHooks
from nodealloc.podlife._images import CredentialSource
from nodealloc.podlife._known_pods import KnownPods
from nodealloc.podlife._listings import Listings
from nodealloc.podlife._performing import Performer
from nodealloc.podlife._ports import (
    Configures,
    HookRunner,
    LifeTold,
    LifeVerdicts,
    PodRuntime,
    Preparation,
    Told,
    Verdicts,
)
from nodealloc.podlife._record import Ending, EndingKind, PodRecord, PodWanted
from nodealloc.podlife._restarts import Restarts
from nodealloc.podlife._rules import RIGHT, Rules
from nodealloc.podlife._worlds import HEARD, Worlds
from nodealloc.podsources import PodSources
from nodealloc.podspec import Container, Pod, is_static
from nodealloc.runtime import PodListing, RuntimeWatch

__all__ = ["PodLives"]


@typed_methods
class PodLives(Group):
    """Brings each pod of a node through its life: parts, sandbox, containers, end. Thread-safe.

    A `Group` of `nodealloc.dsw_asw`: put it into a group of yours together with
    the `RuntimeWatch` that looks at the same runtime. Every pod goes its own
    way: what fails for one delays no other, and what hangs only the starts of others, by
    `FewAtOnce`, while as many of them hang as may go at once.

    Args:
        runtime: What runs containers.
        watch: Looks at it; driven by whoever made it.
        configuring: Says what sandboxes and containers are made from.
        hooks: Runs hooks; by default commands by the runtime, and requests over HTTP.
        preparations: Parts of a pod that are ready before anything of it runs, in
            their order; they are taken back in the reverse.
        probes: What probes say, by pod uid; None where nothing is probed.
        told: What others were told of pods, by uid: that a pod is not ready is told before
            anything of it is asked to end, for which `policy.told_s` is waited at most. A
            pod that is not in there is not waited for; None to wait for nobody.
        sources: Where pods come from; None where `put`, `remove` and `heard` are called.
        journal: Where a pod's life is remembered before anything is done; None to
            forget it with the process. Given the same one as others, all commit together.
        remembered: What was remembered, by pod uid (`record_from_checkpoint`).
        policy: How patient to be.
        rules: Where the kubelet is wrong.
        facts: An empty world for `facts`, for those who have to know it before; None to make one.
        credentials: As whom images are fetched; None for as nobody.
        executor: Runs calls; by default a thread for each, but for sandboxes and containers that are
            started, of which twice as many as there are CPUs go at once.
        clock: Time for graces, back-off and deadlines.
        now: This moment, for what outlives a boot; its monotonic part is that of `clock`.
        observer: Is told of progress.

    Attributes:
        wanted: What was said of each pod.
        pods: What is remembered of each; the engine writes it.
        facts: What others need to know of each. Make it a `Near`, or watch it.
        needs: What has to be driven as well: the watch, and the sources.

    Raises:
        ConfigurationError: Two preparations have one name.
    """

    @typed
    def __init__(
        self,
        runtime: PodRuntime,
        *,
        watch: RuntimeWatch,
        configuring: Configures,
        hooks: HookRunner | None = None,
        preparations: Sequence[Preparation] = (),
        probes: World[str, Verdicts] | None = None,
        told: World[str, Told] | None = None,
        sources: PodSources | None = None,
        journal: Journal[JsonCheckpoint] | None = None,
        remembered: Mapping[str, PodRecord] | None = None,
        policy: LifePolicy = LifePolicy(),  # noqa: B008 - immutable
        rules: Rules = RIGHT,
        facts: World[str, PodFacts] | None = None,
        credentials: CredentialSource | None = None,
        executor: Executor | None = None,
        clock: Clock | None = None,
        now: Callable[[], Moment] = Moment.now,
        observer: Observer | None = None,
    ) -> None:
        _check_names(preparations)
        require_formats(journal, (f"{POD_ROWS}.*",), "PodLives, journal")
        self._worlds = Worlds() if facts is None else Worlds(facts=facts)
        self._rules = rules
        self.wanted: World[str, PodWanted] = self._worlds.wanted
        self.pods: World[str, PodRecord] = self._worlds.pods
        self.facts: World[str, PodFacts] = self._worlds.facts
        self.needs: tuple[Group, ...] = (watch,) if sources is None else (watch, sources)
        self._now, self._watch, self._listings = now, watch, Listings(watch)
        self._manifests: dict[str, tuple[Pod, PlainJson]] = {}
        self._remember(remembered or {})
        shared = EngineParts(
            executor=threads() if executor is None else executor,
            take_up_s=None if executor is None else 60.0,
            clock=SystemClock() if clock is None else clock,
            observer=observer,
        )
        performer = Performer(
            runtime,
            watch,
            self._listings,
            configuring=configuring,
            hooks=ContainerHooks(runtime) if hooks is None else hooks,
            preparations=preparations,
            worlds=self._worlds,
            clock=shared.clock,
            policy=policy,
            rules=rules,
            credentials=credentials,
        )
        nears = nears_of(
            self._worlds,
            watch,
            self._listings,
            cast("World[str, LifeVerdicts] | None", probes),
            cast("World[str, LifeTold] | None", told),
        )
        began_s = shared.clock.monotonic_s()
        lives = Lives(nears, performer, preparations, policy, rules, began_s=began_s)
        self._lives = life_engine(
            lives, self._worlds, nears, preparations, shared, journal=journal, rows=self._rows
        )
        super().__init__(
            self._lives,
            orphans_engine(self._worlds, watch.seen, self._adopt, shared, rules),
            facts_engine(self._worlds, nears, shared, rules),
            name="pods",
        )
        self._closing = [] if sources is None else [Following(sources, self).close]

    @typed
    def put(self, pod: Pod, /) -> None:
        """A pod is to be here, or is to be here in another form; one that is to be deleted carries that.

        A pod that ends, or has ended, stays so: what comes back under its uid does not
        run, unless `rules` say so (`stays_ended`).

        Raises:
            ConfigurationError: It has no uid, no name or no container, or two containers of one name.
        """
        require_sound(pod)
        unix_s = self._now().unix_s

        def said(want: PodWanted | None) -> PodWanted:
            if want is None:
                return PodWanted(pod=pod, said_unix_s=unix_s)
            if want.is_removed and not self._rules.stays_ended:
                return attrs.evolve(want, again=pod, is_said=True, said_unix_s=unix_s)
            kept = want.pod if _means_the_same(want.pod, pod) else pod
            return attrs.evolve(want, pod=kept, is_said=True, is_removed=False, is_orphan=False)

        if is_static(pod):
            self._line_up(pod.uid, pod.full_name)
        self.wanted.alter(pod.uid, said, by="put")

    @typed
    def remove(self, uid: str, /, *, grace_s: float | None = None) -> bool:
        """No source has a pod any more: it ends, and is forgotten when nothing of it is left.

        Args:
            uid: Which.
            grace_s: How long it has at most, in seconds; None for as long as it
                says. Said again, the shorter one counts, from then.

        Returns:
            Whether there is such a pod.
        """

        def removed(want: PodWanted) -> PodWanted:
            given_s = _UNKNOWN_S if grace_s is None and self._is_unknown(want.pod) else grace_s
            if given_s is not None:
                want = want.ended(Ending(kind=EndingKind.REMOVED, grace_s=given_s))
            return attrs.evolve(want, is_removed=True, again=None)

        return self._alter(uid, removed, "remove")

    @typed
    def end(self, uid: str, ending: Ending, /) -> bool:
        """A pod has to end, though a source still has it: eviction, shutdown, room for another.

        Returns:
            Whether there is such a pod.
        """
        return self._alter(uid, lambda want: want.ended(ending), "end")

    @typed
    def poke(self, uid: str, container: str = "", /) -> bool:
        """Start now what waits for its back-off, and try again now what failed.

        Args:
            uid: Of the pod.
            container: Which one; "" for all.

        Returns:
            Whether there is such a pod.
        """

        def poked(want: PodWanted) -> PodWanted:
            number = want.pokes.get(container, 0) + 1
            return attrs.evolve(want, pokes=extended(want.pokes, container, number))

        is_there = self._alter(uid, poked, "poke")
        self._lives.retry_now(uid)
        return is_there

    def heard(self) -> None:
        """Every source was heard: what none of them has ends, and so does what only the runtime knows.

        Until then nothing that ran before this program began is ended.
        """

        def unsaid(want: PodWanted) -> PodWanted:
            if want.is_said or want.is_orphan:
                return want
            if self._rules.remembers_pods:
                return attrs.evolve(want, is_removed=True)
            ends = want.ended(Ending(kind=EndingKind.REMOVED, grace_s=_UNKNOWN_S))
            return attrs.evolve(ends, is_removed=True, pod=_as_the_runtime_knows(want.pod))

        for uid in tuple(self.wanted.snapshot()):
            self._alter(uid, unsaid, "heard")
        # What an earlier life forgot, and whose ends the watch had not forgotten yet when that ended.
        for uid in sorted(self._watch.pods.snapshot().keys() - self.wanted.snapshot().keys()):
            self._watch.forget(uid)
        self._worlds.heard.put(HEARD, 1, by="heard")

    def pod_source(self) -> PodSource:
        """What others ask which pods are here, and whether they have ended."""
        return KnownPods(self._worlds, self.is_ready)

    @typed
    def failures(self, uid: str, /) -> tuple[Failure, ...]:
        """The last error of each step of a pod that failed, or that the runtime only said it did."""
        return (*self._lives.failures(uid), *failures_of(uid, self.pods.get(uid)))

    def close(self, timeout_s: float = 0.0, /) -> tuple[Running[object], ...]:
        """Start nothing more; see `Group.close`."""
        for leave in self._closing:
            leave()
        self._listings.close()
        return super().close(timeout_s)

    def is_ready(self) -> bool:
        """Whether it is known which pods should be here, and which are."""
        return HEARD in self._worlds.heard and self._watch.heard().listing > 0

    @typed
    def has_ended(self, uid: str, /) -> bool:
        """Whether a pod has to end, or has ended: no container of it is ever started again."""
        record = self.pods.get(uid)
        return record is not None and record.life.is_ending

    @typed
    def may_run(self, uid: str, /) -> bool:
        """Whether the newest listing shows a container of a pod that has begun and not ended.

        Before the first listing nobody knows: it may, unless it was refused.
        """
        if self._watch.heard().listing:
            seen = self._watch.seen.get(uid)
            return seen is not None and any(one.state.may_run for one in seen.containers)
        record = self.pods.get(uid)
        ending = None if record is None else record.ending
        return ending is None or ending.kind is not EndingKind.REFUSED

    def _alter(self, uid: str, change: Callable[[PodWanted], PodWanted], by: str) -> bool:
        found = self.wanted.alter(uid, lambda want: None if want is None else change(want), by=by)
        return found is not None

    def _is_unknown(self, pod: Pod) -> bool:
        return not (self._rules.knows_removed or is_static(pod) or pod.deletion_timestamp)

    def _line_up(self, uid: str, full_name: str) -> None:
        record = self.pods.get(uid)
        if record is not None and record.life is LifeState.FINISHED:
            return
        self._worlds.lines.alter(
            full_name, lambda line: line if uid in (line or ()) else (*(line or ()), uid), by="put"
        )

    def _remember(self, remembered: Mapping[str, PodRecord]) -> None:
        """Who had its name keeps it: those that came first are first in their lines."""
        order = sorted(
            remembered.items(), key=lambda one: (one[1].life is LifeState.WAITING, one[1].noticed_s)
        )
        for uid, was in order:
            is_refused = was.ending is not None and was.ending.kind is EndingKind.REFUSED
            if is_refused and is_static(was.pod) and not self._rules.keeps_refusals:
                continue
            record = was if self._rules.keeps_delays else was.but(restarts=Restarts())
            if not self._rules.remembers_pods and record.life is LifeState.TERMINATING:
                record = record.but(grace_s=None, deadline_s=None, stopping={}, pre_stop={}, told_by_s=None)
            self.pods.put(uid, record, by="remembered")
            want = PodWanted(
                pod=record.pod, said_unix_s=record.noticed_unix_s, is_said=False, pokes=record.pokes
            )
            self.wanted.put(uid, want, by="remembered")
            if is_static(record.pod):
                self._line_up(uid, record.pod.full_name)

    def _rows(self, uid: str, record: PodRecord | None) -> Mapping[str, JsonCheckpoint | None]:
        key = row_key(POD_ROWS, uid)
        if record is None:
            self._manifests.pop(uid, None)
            return {key: None}
        if record.is_stored_as(self.pods.get(uid)):
            return {}
        form = self._manifests.get(uid)
        if form is None or form[0] is not record.pod:
            form = self._manifests[uid] = (record.pod, manifest_of(record.pod))
        return {key: record_to_checkpoint(record, self._now(), manifest=form[1])}

    def _adopt(self, listing: PodListing) -> None:
        """Only the runtime knows it: it ends like any other pod."""
        owners = [one.pod for one in listing.sandboxes] + [one.pod for one in listing.containers]
        if not owners:
            return
        identity = owners[0]
        names = dict.fromkeys(one.name for one in listing.containers)
        pod = Pod(
            uid=listing.uid,
            name=identity.name,
            namespace=identity.namespace,
            containers=tuple(Container(name=name) for name in names),
        )
        want = PodWanted(pod=pod, said_unix_s=self._now().unix_s, is_orphan=True)
        self.wanted.alter(listing.uid, lambda before: before or want, by="orphan")


def _check_names(preparations: Sequence[Preparation]) -> None:
    names = [one.name for one in preparations]
    twice = sorted({one for one in names if names.count(one) > 1})
    if twice:
        raise ConfigurationError(
            f"preparations {', '.join(twice)} stand there twice; a name is remembered, so give each its own"
        )


_lasting: Final = fields_but(Pod, "status", "carried")
"""Without what may change, or change in part, while running it stays the same."""
_UNKNOWN_S: Final = 1.0
"""How long a kubelet gives a pod that only the runtime knows."""


def _as_the_runtime_knows(pod: Pod) -> Pod:
    """Without hooks, and without an order among its containers."""
    plain = tuple(Container(name=one.name, image=one.image) for one in pod.all_containers)
    return attrs.evolve(pod, init_containers=(), containers=plain, ephemeral_containers=())


def _means_the_same(before: Pod, now: Pod) -> bool:
    """Whether nothing of a pod changed that running it depends on."""
    return before is now or _meaning(before) == _meaning(now)


def _meaning(pod: Pod) -> tuple[object, ...]:
    carried = {key: value for key, value in pod.carried.items() if not key.startswith("metadata.")}
    return (*_lasting(pod), carried)
