"""The checker of cgroups: each is there while its pod is, is limited as the pod asks, and goes with it."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from nodealloc.cgroups import NO_LIMIT, CgroupName, Limits
from nodealloc.podspec import Pod, effective_requests
from nodealloc.testing.simulation.node._cgroups import PODS
from nodealloc.testing.simulation.node._events import Event, What
from nodealloc.testing.simulation.node._guarantee import Guarantee

__all__ = ["CgroupsHold"]

_BURSTABLE = PODS.child("burstable")
_OF_ALL = {PODS.path(), _BURSTABLE.path(), PODS.child("besteffort").path()}


class CgroupsHold(Guarantee):
    """Ours, of an agent that makes cgroups: of others' it touches none."""

    words = "what runs is in its pod's cgroup, with the pod's limits, and nobody else's is written or removed"

    def heard(self, event: Event, /) -> None:
        """A sandbox has its cgroup, which stays while anything runs in it."""
        if event.what is What.LIMITED:
            assert event.uid in self.environment.known or event.id in _OF_ALL, (
                f"limits are written to {event.id}, which is of no pod that anybody wanted"
            )
        if event.what is What.UNLIMITED:
            self._is_left(event)
        if event.what is What.SANDBOX_MADE and event.asked_s is not None:
            self._is_there(event)

    def _is_left(self, event: Event) -> None:
        """Nothing is in a cgroup that is removed, and it is one of a pod."""
        assert event.uid, f"{event.id} is removed, which is no pod's"
        containers = self.environment.containers
        stands = [
            one.record.id
            for one in containers.sandboxes
            if one.record.pod.uid == event.uid
            and one.record.is_ready
            and self.environment.cgroups.parent_of(one.record.id) == event.id
            and one.record.id not in containers.late
            # One that came beside the pod's own may not have been seen yet.
            and one.record.id not in self.environment.outages.excused
        ]
        assert not stands, f"{event.id} is removed while {stands[0]} stands in it"

    def _is_there(self, event: Event) -> None:
        cgroups = self.environment.cgroups
        if not cgroups.is_used or event.id in self.environment.containers.late:
            return
        parent = cgroups.parent_of(event.id)
        is_its = parent.rpartition("/")[2] == f"pod{event.uid}"
        assert is_its, f"a sandbox of {event.uid} is made in the cgroup {parent!r}"
        limits = cgroups.tree.get(CgroupName.parse(parent))
        assert limits is not None, f"a sandbox of {event.uid} is made, and {parent} is not there"
        self._are_limited(event.uid, parent, limits)

    def _are_limited(self, uid: str, parent: str, limits: Limits) -> None:
        """By one of the forms in which the pod was wanted: an edit may have come since."""
        for name, has in _limits_of(limits).items():
            amounts = {_asked(form)[name] for form in self.environment.forms.of(uid)}
            assert not amounts or has in amounts, (
                f"a sandbox of {uid} is made, and {name} of {parent} is {has}, not {_either(amounts)}"
            )

    def settled(self) -> None:
        """By now each has the limits that its pod asks for, and none is there for nobody."""
        cgroups = self.environment.cgroups
        if not cgroups.is_used:
            return
        wanted = {uid: pod for pods in self.environment.pods.values() for uid, pod in pods.items()}
        for uid, parent in self._cgroups().items():
            asked: Mapping[str, int | None] = _asked(wanted[uid]) if uid in wanted else {}
            limits = cgroups.tree.get(CgroupName.parse(parent)) if parent else None
            assert limits is not None, f"{uid} runs, and its cgroup {parent!r} is not there"
            for name, amount in asked.items():
                has = _limits_of(limits)[name]
                assert has == amount, f"{name} of {parent} is {has}, and {uid} asks for {amount}"
        there = cgroups.of_pods()
        for cgroup, uid in there.items():
            assert uid in wanted, f"{cgroup.path()} is there, and nobody wants {uid}"
        milli = sum(
            effective_requests(wanted[uid])["cpu"].milli_value
            for cgroup, uid in there.items()
            if cgroup.parent == _BURSTABLE
        )
        has = cgroups.tree.get(_BURSTABLE, Limits()).cpu_shares
        assert has == _shares(milli), f"{_BURSTABLE.path()} has {has} shares, and its pods {_shares(milli)}"

    def emptied(self) -> None:
        """And none once nobody is wanted any more."""
        self.settled()

    def _cgroups(self) -> Mapping[str, str]:
        """Uids of pods of which something runs that was waited for, and cgroups of their sandboxes."""
        containers = self.environment.containers
        return {
            one.record.pod.uid: self.environment.cgroups.parent_of(one.record.sandbox_id)
            for one in containers.running
            if one.record.id not in containers.late | containers.strange
        }


def _limits_of(limits: Limits) -> Mapping[str, int | None]:
    """What a cgroup has of what pods are limited by; None for no limit."""
    found = {
        "cpu_shares": limits.cpu_shares,
        "memory_bytes": limits.memory_bytes,
        "cpu_quota_us": limits.cpu_quota_us,
    }
    return {name: None if amount == NO_LIMIT else amount for name, amount in found.items()}


def _either(amounts: Collection[int | None]) -> str:
    return " or ".join(sorted(map(str, amounts)))


def _asked(pod: Pod) -> Mapping[str, int | None]:
    """The limits of a pod as a whole: hard ones where each of its containers has one."""
    amounts = effective_requests(pod)
    cpus_milli, is_limited = (
        amounts["cpu"].milli_value,
        all("cpu" in one.limits for one in pod.all_containers),
    )
    return {
        "cpu_shares": _shares(cpus_milli),
        "memory_bytes": amounts["memory"].value if is_limited else None,
        "cpu_quota_us": cpus_milli * 100 if is_limited else None,
    }


def _shares(cpus_milli: int) -> int:
    return max(2, cpus_milli * 1024 // 1000)
