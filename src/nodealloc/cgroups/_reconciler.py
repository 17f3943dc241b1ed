"""The shell: keeps the cgroups of a node's pods as they should be."""

from __future__ import annotations

import mmap
import threading
from typing import TYPE_CHECKING, Protocol

import attrs

from nodealloc._frozen import freeze
from nodealloc.cgroups._convert import shares_to_weight, weight_to_shares
from nodealloc.cgroups._errors import CgroupAbsentError, MemoryInUseError
from nodealloc.cgroups._limits import Limits
from nodealloc.cgroups._pods import pod_uid, qos_name
from nodealloc.cgroups._ports import CgroupDriver, ProcessDriver, TreeReader
from nodealloc.cgroups._qos_tree import PodShare, TreeOptions, plan_tree, pod_share, tree_of
from nodealloc.cgroups._removal import Removal, Removals, RemovalState
from nodealloc.errors import NodeallocError, RetryableError
from nodealloc.podspec import QosClass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from nodealloc.cgroups._name import CgroupName
    from nodealloc.podspec import Pod

__all__ = ["Drift", "QosTree", "TreeDriver", "TreeReport"]


class TreeDriver(CgroupDriver, ProcessDriver, TreeReader, Protocol):
    """All that the tree needs of a driver; `CgroupFs` is one."""


@attrs.frozen(kw_only=True)
class Drift:
    """A limit that somebody else changed.

    Attributes:
        name: The cgroup.
        limit: Field of `Limits`; `cgroup` if the whole cgroup is gone.
        asked: What was asked for.
        found: What is there.
    """

    name: CgroupName
    limit: str
    asked: object
    found: object

    def __str__(self) -> str:
        """`/kubepods/burstable: cpu_shares is 7, asked for 300`."""
        return f"{self.name}: {self.limit} is {self.found}, asked for {self.asked}"


@attrs.frozen(kw_only=True)
class TreeReport:
    """What one round did.

    Attributes:
        applied: Cgroup to what was written into it.
        removals: Attempts to remove pods' cgroups.
        failed: Cgroup to why it is not as it should be; the next round tries again.
        refused: Uid of a pod to why it can have no cgroup as it is, such as a name
            or a limit that no kernel takes. What it had before stays as it was.
    """

    applied: Mapping[CgroupName, Limits] = attrs.field(validator=freeze)
    removals: tuple[Removal, ...]
    failed: Mapping[CgroupName, NodeallocError] = attrs.field(validator=freeze)
    refused: Mapping[str, ValueError] = attrs.field(factory=dict[str, ValueError], validator=freeze)

    @property
    def is_settled(self) -> bool:
        """Whether the tree is as it should be."""
        removed = all(removal.state is RemovalState.REMOVED for removal in self.removals)
        return removed and not self.failed and not self.refused


class QosTree:
    """Keeps the QoS classes and the pods of a node in their cgroups.

    A round writes only limits that are new or have changed since the last one;
    whatever else stands in the tree, and whatever others changed there, stays.
    May be used from several threads; rounds take turns, and what `remove` does
    to a cgroup does not wait for them.

    Attributes:
        options: What the administrator decided; may be replaced between rounds.
    """

    def __init__(
        self, driver: TreeDriver, options: TreeOptions, /, *, removals: Removals | None = None
    ) -> None:
        self.options = options
        self._driver = driver
        self._removals = removals or Removals(driver)
        self._lock = threading.Lock()
        self._asked: dict[CgroupName, Limits] = {}
        self._known: set[CgroupName] | None = None
        self._shares: dict[str, tuple[Pod, TreeOptions, PodShare]] = {}

    def sync(self, pods: Iterable[Pod], /, *, now_s: float) -> TreeReport:
        """Make the tree fit these pods: create, update, and remove the others.

        The first round also reads what is there: limits that are right already
        are not written, and pods' cgroups of an earlier life are removed.

        Args:
            pods: All pods that are to run, those that are ending included
                until their containers have ended.
            now_s: Seconds of a clock that does not go back.
        """
        with self._lock:
            shares, refused = self._shares_of(pods)
            desired = tree_of(shares, self.options)
            if self._known is None:
                self._adopt(desired)
            plan = plan_tree(desired, self._asked, self._known or (), self.options.root)
            applied: dict[CgroupName, Limits] = {}
            failed: dict[CgroupName, NodeallocError] = {}
            for name, change in plan.apply.items():
                try:
                    applied[name] = self._apply(name, change, desired[name])
                except NodeallocError as error:
                    failed[name] = error
                    if isinstance(error, CgroupAbsentError):
                        self._forget(error.name)
                    continue
                self._asked[name] = applied[name].over(self._asked.get(name, Limits()))
        root = self.options.root
        unwanted = [name for name in plan.remove if pod_uid(root, name) not in refused]
        removals = tuple(self.remove(name, now_s=now_s) for name in unwanted)
        return TreeReport(applied=applied, removals=removals, failed=failed, refused=refused)

    def remove(self, name: CgroupName, /, *, now_s: float) -> Removal:
        """Kill what runs in a pod's cgroup and remove it; see `Removals.remove`."""
        removal = self._removals.remove(name, now_s=now_s)
        if removal.state is RemovalState.REMOVED:
            with self._lock:
                self._asked.pop(name, None)
                (self._known or set()).discard(name)
        return removal

    def drift(self) -> tuple[Drift, ...]:
        """What others have changed of what was asked for; nothing is written."""
        with self._lock:
            asked = dict(self._asked)
        return tuple(each for name, limits in asked.items() for each in self._drift(name, limits))

    def repair(self, drifts: Iterable[Drift], /) -> None:
        """Have the cgroups of these drifts written in full by the next `sync`."""
        with self._lock:
            for each in drifts:
                self._asked.pop(each.name, None)

    def rescan(self) -> None:
        """Have the next `sync` read the tree again, as after a start."""
        with self._lock:
            self._known = None
            self._asked.clear()

    def _shares_of(self, pods: Iterable[Pod]) -> tuple[list[PodShare], dict[str, ValueError]]:
        """What each pod adds, and who can add nothing; an unchanged pod is not reckoned again."""
        known, self._shares = self._shares, {}
        refused: dict[str, ValueError] = {}
        for pod in pods:
            last = known.get(pod.uid)
            if last is None or last[0] is not pod or last[1] is not self.options:
                try:
                    last = (pod, self.options, pod_share(pod, self.options))
                except ValueError as error:  # one pod's trouble is no other's
                    refused[pod.uid] = error
                    last = last if last and last[1].root == self.options.root else None
            if last is not None:
                self._shares[pod.uid] = last
        return [share for _, _, share in self._shares.values()], refused

    def _forget(self, gone: CgroupName) -> None:
        """Somebody removed a cgroup: it and all below it are to be written in full."""
        for name in [each for each in self._asked if each == gone or each.is_below(gone)]:
            del self._asked[name]

    def _apply(self, name: CgroupName, change: Limits, whole: Limits) -> Limits:
        if self._removals.is_in_flight(name):
            raise RetryableError(f"cgroup {name}: it is being removed; it is made anew in a later round")
        if name in self._asked and self._driver.read(name) is None:
            # Somebody removed it; made anew with the change alone, it would lack all other limits.
            change = whole
        change = self._above_usage(name, change)
        self._removals.forget(name)
        self._driver.apply(name, change)
        if self._known is not None:
            self._known.add(name)
        return change

    def _adopt(self, desired: Mapping[CgroupName, Limits]) -> None:
        """Take over what is there, so that only differences are written."""
        known: set[CgroupName] = set()
        for parent in {qos_name(self.options.root, qos) for qos in QosClass}:
            known.update(self._driver.children(parent))
        for name in desired:
            if (found := self._driver.read(name)) is not None:
                known.add(name)
                self._asked[name] = desired[name].only(_kept(desired[name], found))
        self._known = known

    def _above_usage(self, name: CgroupName, change: Limits) -> Limits:
        """A memory limit below what is used would have the kernel kill in the cgroup, or refuse."""
        known = self._known is not None and name in self._known
        if change.memory_bytes is None or change.memory_bytes < 0 or not known:
            return change
        try:
            used = self._driver.stats(name).memory_bytes or 0
        except CgroupAbsentError:  # a crash left it in some hierarchies only; it is about to be completed
            return change
        if change.memory_bytes >= used:
            return change
        if name in {qos_name(self.options.root, qos) for qos in QosClass} - {self.options.root}:
            return attrs.evolve(change, memory_bytes=used)
        raise MemoryInUseError(name, change.memory_bytes, used)

    def _drift(self, name: CgroupName, asked: Limits) -> Iterator[Drift]:
        found = self._driver.read(name)
        if found is None:
            yield Drift(name=name, limit="cgroup", asked="to exist", found="gone")
            return
        for limit in asked.asked.keys() - _kept(asked, found):
            yield Drift(name=name, limit=limit, asked=asked.asked[limit], found=found.asked.get(limit))


def _kept(asked: Limits, found: Limits) -> frozenset[str]:
    """Fields of `asked` that read back as they were asked for."""
    pages = {size: found.hugepage_bytes.get(size) for size in asked.hugepage_bytes}
    actual = {**found.asked, "hugepage_bytes": pages}
    return frozenset(name for name, value in asked.asked.items() if _same(name, value, actual.get(name)))


def _same(limit: str, asked: object, found: object) -> bool:
    """Whether a limit reads back as asked, as exactly as the kernel keeps it."""
    if asked == found or not isinstance(asked, int) or not isinstance(found, int):
        return asked == found
    if limit == "cpu_shares":
        return found == weight_to_shares(shares_to_weight(asked))
    return limit.endswith("_bytes") and 0 <= asked - found < mmap.PAGESIZE
