"""The shell: takes pods, and brings each of them through its life."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import cast

from nodealloc._sound import require_sound
from nodealloc._typed import typed, typed_methods
from nodealloc.checkpoint import JsonCheckpoint, require_formats
from nodealloc.dsw_asw import (
    Clock,
    Executor,
    Failure,
    Group,
    Journal,
    Moment,
    Observer,
    Running,
    World,
)
from nodealloc.errors import ConfigurationError
from nodealloc.podfacts import PodSource
from nodealloc.podlife._arrivals import Following
from nodealloc.podlife._codec import POD_ROWS
from nodealloc.podlife._details import LifePolicy
from nodealloc.podlife._domain import Lives
from nodealloc.podlife._engines import (
    EngineParts,
    facts_engine,
    life_engine,
    nears_of,
    orphans_engine,
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
from nodealloc.podlife._record import Ending, EndingKind, PodRecord
from nodealloc.podlife._remembered import RememberedPods
from nodealloc.podlife._rules import RIGHT, Rules
from nodealloc.podlife._wanted import PodWanted, orphaned, poked, removed, said, unsaid
from nodealloc.podlife._worlds import HEARD, Worlds
from nodealloc.podsources import PodSources
from nodealloc.podspec import Pod, is_static
from nodealloc.runtime import PodListing, RuntimeWatch

__all__ = ["PodLives"]


@typed_methods
class PodLives(Group):
    """Brings each pod of a node through its life: parts, sandbox, containers, end. Thread-safe.

    A `Group` of `nodealloc.dsw_asw`: put it into a group of yours together with
    the `RuntimeWatch` that looks at the same runtime. Every pod goes its own
    way: what fails for one delays no other, nor does what hangs, but for two things: starts
    wait up to 2 s for others (`FewAtOnce`), and fetches for those before them
    (`LifePolicy.pulls_at_once`).

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
            started, of which twice as many as there are CPUs go at once. One that is given has no order
            of its own for preparations that are `in_order`.
        clock: Time for graces, back-off and deadlines.
        now: This moment, for what outlives a boot; its monotonic part is that of `clock`.
        observer: Is told of progress.

    Attributes:
        wanted: What was said of each pod.
        pods: What is remembered of each; the engine writes it.
        facts: What others need to know of each. Make it a `Near`, or watch it.
        needs: What has to be driven as well: the watch, and the sources.

    Raises:
        ConfigurationError: Two preparations have one name, or both are to be made ready in order.
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
        rows = RememberedPods(self._worlds, rules, now)
        rows.take_over(remembered or {})
        shared = EngineParts.of(executor, clock, observer, preparations=preparations)
        self._in_order = shared.in_order
        if self._in_order is not None:
            self._in_order.expect(rows.asking_again(self._in_order.part))
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
            in_order=shared.in_order,
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
            lives, self._worlds, nears, preparations, shared, journal=journal, rows=rows.rows
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
            ConfigurationError: It has no uid, no name or no container, or one that is no such, or two
                containers of one name.
        """
        require_sound(pod)
        unix_s = self._now().unix_s
        if is_static(pod):
            self._worlds.line_up(pod.uid, pod.full_name)
        self.wanted.alter(pod.uid, lambda want: said(want, pod, self._rules, unix_s), by="put")

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
        return self._alter(uid, lambda want: removed(want, grace_s, self._rules), "remove")

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
        is_there = self._alter(uid, lambda want: poked(want, container), "poke")
        self._lives.retry_now(uid)
        return is_there

    def heard(self) -> None:
        """Every source was heard: what none of them has ends, and so does what only the runtime knows.

        Until then nothing that ran before this program began is ended.
        """
        for uid in tuple(self.wanted.snapshot()):
            self._alter(uid, partial(unsaid, rules=self._rules, listing=self._watch.seen.get(uid)), "heard")
        if self._in_order is not None:
            wanted = self.wanted.snapshot().items()
            self._in_order.expect_no_more(uid for uid, want in wanted if not want.value.is_said)
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
    def is_ending(self, uid: str, /) -> bool:
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

    def _adopt(self, listing: PodListing) -> None:
        """Only the runtime knows it: it ends like any other pod."""
        want = orphaned(listing, self._now().unix_s)
        if want is not None:
            self.wanted.alter(listing.uid, lambda before: before or want, by="orphan")


def _check_names(preparations: Sequence[Preparation]) -> None:
    names = [one.name for one in preparations]
    twice = sorted({one for one in names if names.count(one) > 1})
    if twice:
        raise ConfigurationError(
            f"preparations {', '.join(twice)} stand there twice; a name is remembered, so give each its own"
        )
    ordered = [one.name for one in preparations if one.in_order]
    if len(ordered) > 1:
        raise ConfigurationError(
            f"preparations {', '.join(ordered)} are all `in_order`; one part is, such as admission"
        )
