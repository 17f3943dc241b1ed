"""The shell: keeps the cgroups of a node's pods as they should be."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, TypeAlias

from nodealloc._typed import typed, typed_methods
from nodealloc.cgroups._domain import APPLY, LEAVE, REMOVE, Cgroups, Kept, Leave, Result, Task
from nodealloc.cgroups._life import CGROUP_LIFE, CgroupEvent, CgroupState
from nodealloc.cgroups._limits import Limits
from nodealloc.cgroups._name import CgroupName
from nodealloc.cgroups._pods import pod_uid, qos_name
from nodealloc.cgroups._ports import TreeDriver
from nodealloc.cgroups._progress import Progress, removal_under_way
from nodealloc.cgroups._qos_tree import PodShare, TreeOptions, change_of, pod_share, tree_of
from nodealloc.cgroups._render import same_in
from nodealloc.cgroups._report import Drift, Removal, RemovalState, TreeReport
from nodealloc.dsw_asw import (
    BackOff,
    Clock,
    Executor,
    InlineExecutor,
    Observer,
    Reconciler,
    SystemClock,
    World,
)
from nodealloc.errors import ConfigurationError
from nodealloc.podspec import Pod, QosClass

__all__ = ["QosTree"]

_FOUND: Final = CGROUP_LIFE.after(CgroupState.ABSENT, CgroupEvent.FOUND)


@typed_methods
class QosTree:
    """Keeps the QoS classes and the pods of a node in their cgroups. Thread-safe.

    Only limits that are new or have changed are written; whatever else stands
    in the tree, and whatever others changed there, stays.

    Args:
        driver: Writes.
        options: What the administrator decided.
        executor: Runs writes and removals. By default they run on the thread that
            reconciles; with a `ThreadExecutor` one that hangs holds up its own
            cgroup alone.
        clock: Time for back-off.
        back_off: How long to wait after failures.
        observer: Is told of progress.
        mends_pods: Whether limits of pods' cgroups that an earlier life made are written where they are
            others now, as after a change of `options`; a kubelet leaves a pod's cgroup that is there.

    Attributes:
        options: What the administrator decided; may be replaced, but for the root.
        engine: Does it; `start` it, or put it into a `Group`, and what `follow`
            takes in is done without anybody's call.
    """

    @typed
    def __init__(
        self,
        driver: TreeDriver,
        options: TreeOptions,
        /,
        *,
        executor: Executor | None = None,
        clock: Clock | None = None,
        back_off: BackOff | None = None,
        observer: Observer | None = None,
        mends_pods: bool = True,
    ) -> None:
        self.options = options
        self._mends_pods = mends_pods
        self._root = options.root
        self._classes = frozenset(qos_name(options.root, qos) for qos in QosClass) - {options.root}
        self._driver = driver
        self._clock: Clock = SystemClock() if clock is None else clock
        self._lock = threading.Lock()
        self._wanted: Mapping[CgroupName, Limits | Leave] = {}
        self._shares: _Shares = {}
        self._refused: Mapping[str, ValueError] = {}
        self._left = frozenset[str]()
        self._followed: TreeOptions | None = None
        self._desired: World[CgroupName, Limits | Leave] = World("wanted cgroups")
        self._kept: World[CgroupName, Kept] = World("cgroups")
        self._progress = Progress(observer)
        self._changed = (self._desired.watch(), self._kept.watch())
        self._open: set[CgroupName] = set()
        self._domain = domain = Cgroups(driver, self._root, self._classes, self._kept)
        self.engine: Reconciler[CgroupName, Limits | Leave, Kept, Task, Result] = Reconciler(
            domain,
            desired=self._desired,
            actual=self._kept,
            executor=InlineExecutor() if executor is None else executor,
            near=[domain.parents],
            clock=self._clock,
            back_off=back_off,
            observer=self._progress,
            name="cgroups",
        )

    @typed
    def follow(self, pods: Iterable[Pod], /, *, leave: Iterable[str] = ()) -> None:
        """Have the tree fit these pods from now on: create, update, and remove the others.

        The first call also reads what is there: limits that are right already
        are not written, and pods' cgroups of an earlier life are removed. A pod
        whose class is another one now keeps the cgroup that it had, beside the new
        one, until it goes.

        Args:
            pods: All pods that are to run, those that are ending included
                until their containers have ended.
            leave: Uids of pods of which nobody knows more: what cgroups they have stays as it is.

        Raises:
            ConfigurationError: The root is another one than at first.
        """
        with self._lock:
            if self.options.root != self._root:
                raise ConfigurationError(
                    f"TreeOptions.root is {self.options.root}, this tree stands at {self._root}; "
                    "make another QosTree"
                )
            before_shares, was_refused, options = self._shares, self._refused, self._followed
            shares, self._refused = self._shares_of(pods)
            left, self._left = self._left, frozenset(leave)
            unrefused = not (was_refused or self._refused)
            if (
                options is self.options
                and unrefused
                and left == self._left
                and _are_same(before_shares, self._shares)
            ):
                return
            wanted: dict[CgroupName, Limits | Leave] = dict(tree_of(shares, self.options))
            if options is None:
                self._adopt(wanted)
            self._followed = self.options
            before = self._wanted
            wanted |= self._of_other_classes(wanted, self._kept.snapshot() if options is None else before)
            wanted |= dict.fromkeys(self._left_alone(wanted), LEAVE)
            self._wanted = wanted
            for name in [name for name in before if name not in wanted]:
                self._desired.drop(name, by="follow")
            for name, limits in wanted.items():
                was = before.get(name)
                if was is not limits and was != limits:
                    self._desired.put(name, limits, by="follow")

    @typed
    def reconcile(self, pods: Iterable[Pod] | None = None, /, *, leave: Iterable[str] = ()) -> TreeReport:
        """Make passes until nothing is left that could be begun now.

        Args:
            pods: As for `follow`, which is called first; None leaves them as they were.
            leave: As for `follow`; nothing without `pods`.
        """
        if pods is not None:
            self.follow(pods, leave=leave)
        self.engine.run_until_quiet()
        return self._report()

    def observe(self) -> tuple[Drift, ...]:
        """Read the tree again, and say what others have changed of what was asked for.

        Limits are not fought over: `repair` has them written again. Pods'
        cgroups that nobody wants and that were not known are removed.
        """
        since = self._kept.generation
        kept = {name: record.value for name, record in self._kept.snapshot().items()}
        drifts = [each for name, one in kept.items() for each in self._drift(name, one.asked)]
        gone = {each.name for each in drifts if each.limit == "cgroup"}
        listing = {name: one for name, one in kept.items() if name in self._wanted or name not in gone}
        for name in self._pods_there() - listing.keys():
            listing[name] = Kept(state=_FOUND, is_pod=True)
        self._kept.replace(listing, since=since, by="observe")
        return tuple(each for each in drifts if each.name in self._wanted)

    def repair(self, drifts: Iterable[Drift], /) -> None:
        """Have the cgroups of these drifts written in full by the next pass."""
        for each in drifts:
            if each.limit == "cgroup":
                self._domain.lost(each.name)
            else:
                self._kept.alter(each.name, _doubted, by="repair")

    def _shares_of(self, pods: Iterable[Pod]) -> tuple[list[PodShare], dict[str, ValueError]]:
        """What each pod adds, and who can add nothing; an unchanged pod is not computed again."""
        known, self._shares = self._shares, {}
        refused: dict[str, ValueError] = {}
        for pod in pods:
            last = known.get(pod.uid)
            if last is None or last[0] is not pod or last[1] is not self.options:
                try:
                    last = (pod, self.options, pod_share(pod, self.options))
                except ValueError as error:  # one pod's trouble is no other's
                    refused[pod.uid] = error
            if last is not None:
                self._shares[pod.uid] = last
        return [share for _, _, share in self._shares.values()], refused

    def _of_other_classes(
        self, wanted: Mapping[CgroupName, object], there: Iterable[CgroupName]
    ) -> dict[CgroupName, Limits]:
        """What pods had before an edit changed their class: what runs there goes on, limited as its pod."""
        found: dict[CgroupName, Limits] = {}
        for name in there:
            known = None if name in wanted else self._shares.get(pod_uid(self._root, name) or "")
            if known is not None:
                found[name] = known[2].limits
        return found

    def _left_alone(self, wanted: Mapping[CgroupName, object]) -> Iterator[CgroupName]:
        """Cgroups of pods that can have none as they are, or of which nobody knows: what they had stays."""
        if self._refused or self._left:
            for name in self._kept.snapshot():
                uid = pod_uid(self._root, name)
                if name not in wanted and (uid in self._refused or uid in self._left):
                    yield name

    def _adopt(self, wanted: Mapping[CgroupName, Limits | Leave]) -> None:
        """Take over what is there, so that only differences are written."""
        since = self._kept.generation
        listing = {name: Kept(state=_FOUND, is_pod=True) for name in self._pods_there()}
        for name, limits in wanted.items():
            if isinstance(limits, Limits) and (found := self._driver.read(name)) is not None:
                is_pod = name != self._root and name not in self._classes
                is_left = is_pod and not self._mends_pods
                stands = limits.only(found.asked.keys() if is_left else same_in(limits, found))
                listing[name] = Kept(state=_FOUND, is_pod=is_pod, asked=stands)
                if not is_pod:
                    self._domain.above.put(name, _FOUND, by="observe")
        self._kept.replace(listing, since=since, by="observe")

    def _pods_there(self) -> set[CgroupName]:
        """Cgroups that are pods' by their name."""
        parents = {self._root, *self._classes}
        return {
            name
            for parent in parents
            for name in self._driver.children(parent)
            if name not in parents and pod_uid(self._root, name) is not None
        }

    def _drift(self, name: CgroupName, asked: Limits) -> Iterator[Drift]:
        found = self._driver.read(name)
        if found is None:
            yield Drift(name=name, limit="cgroup", asked="to exist", found="gone")
            return
        for limit in asked.asked.keys() - same_in(asked, found):
            yield Drift(name=name, limit=limit, asked=asked.asked[limit], found=found.asked.get(limit))

    def _report(self) -> TreeReport:
        with self._lock:
            for watch in self._changed:
                self._open.update(watch.take())
            self._open = {name for name in self._open if not self._is_in_line(name)}
            waiting = {name for name in self._open if isinstance(self._wanted.get(name), Limits)}
            ended = self._progress.take()
            failures = {name: self.engine.failures(name) for name in self._open}
            going = {name for name in self._open if name not in self._wanted}
            running = {one.scope[0] for one in self.engine.running()}
            removals = [Removal(name=name, state=RemovalState.REMOVED) for name in ended.removed]
            now_s = self._clock.monotonic_s()
            for name in going:
                kept = self._kept.get(name)
                failure = next((one for one in failures[name] if one.verb == REMOVE), None)
                removals.append(
                    removal_under_way(
                        name, kept, failure, now_s, tried=name in ended.tried, runs=name in running
                    )
                )
            return TreeReport(
                applied=ended.applied,
                removals=tuple(sorted(removals, key=lambda one: one.name)),
                failed={name: one.error for name in waiting for one in failures[name] if one.verb == APPLY},
                refused=self._refused,
                waiting=frozenset(waiting),
            )

    def _is_in_line(self, name: CgroupName) -> bool:
        want, kept = self._wanted.get(name), self._kept.get(name)
        if want is LEAVE:
            return True
        if want is None:
            return kept is None or not kept.is_pod
        return kept is not None and kept.state is CgroupState.PRESENT and not change_of(want, kept.asked)


_Shares: TypeAlias = dict[str, tuple[Pod, TreeOptions, PodShare]]


def _are_same(before: _Shares, after: _Shares) -> bool:
    """Whether no pod came, went or changed: the very same that were computed before."""
    return len(before) == len(after) and all(before.get(uid) is one for uid, one in after.items())


def _doubted(kept: Kept | None) -> Kept | None:
    return None if kept is None else kept.without_limits()
