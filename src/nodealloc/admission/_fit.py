"""Does the node have enough: pods, CPU, memory, ephemeral storage, huge pages, extended resources."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Final

import attrs

from nodealloc._typed import typed
from nodealloc.admission._rules import Rules
from nodealloc.admission._verdicts import ADMITTED
from nodealloc.podfacts import LifeState, NodeView
from nodealloc.podspec import Pod, Quantity, Resources, effective_requests, is_extended_resource
from nodealloc.verdicts import Admitted, NotYet, Refused

__all__ = ["PODS", "Shortage", "node_fit", "shortages", "wanted"]

PODS: Final = "pods"
"""The resource that counts pods."""
_NANOS: Final = 10**9
_FIRST: Final = ("cpu", "memory", "ephemeral-storage")
_PAGES: Final = "hugepages-"
_SYNCING: Final = LifeState.SYNCING


@attrs.frozen(kw_only=True)
class Shortage:
    """One resource of which a node has too little for a pod.

    Attributes:
        resource: Which.
        requested: By the pod, in whole units; CPU in thousandths.
        used: By the pods that are there.
        capacity: What the node gives out.
        missing_nanos: How much too little it is, in billionths.
    """

    resource: str
    requested: int
    used: int
    capacity: int
    missing_nanos: int

    def refusal(self) -> Refused:
        """In the kubelet's words."""
        resource, requested, used, capacity = self.resource, self.requested, self.used, self.capacity
        return Refused(
            reason=f"OutOf{resource}",
            message=f"Node didn't have enough resource: {resource}, requested: {requested}, "
            f"used: {used}, capacity: {capacity}",
            figures={"resource": resource, "requested": requested, "used": used, "capacity": capacity},
        )


@typed
def node_fit(pod: Pod, view: NodeView, /, *, rules: Rules) -> Admitted | Refused | NotYet:
    """Whether the node has what the pod requests at its peak, with its overhead, beside all that are there.

    What only a pod that is ending holds is *not yet*: it names that pod.

    Source: Kubernetes ``scheduler/framework/plugins/noderesources`` by the
    kubelet's ``lifecycle/predicate.go``; waiting for pods that end is ours.
    """
    short = shortages(pod, view, rules)
    if not short:
        return ADMITTED
    ending = (
        [one for one in view.pods.values() if one.state is not _SYNCING and one.state.is_ending]
        if view.pods
        else []
    )
    if ending and not shortages(pod, without(view, [one.pod.uid for one in ending]), rules):
        who = ending[0].pod.full_name
        more = f" and {len(ending) - 1} more" if len(ending) > 1 else ""
        return NotYet(blocker=who, message=f"{who}{more} still holds {short[0].resource}, and is ending")
    return short[0].refusal()


def without(view: NodeView, uids: list[str]) -> NodeView:
    """The view when these pods are gone."""
    return functools.reduce(lambda left, uid: left.without(uid), uids, view)


def shortages(pod: Pod, view: NodeView, rules: Rules, /) -> list[Shortage]:
    """All resources of which there is too little; first pods, CPU, memory, storage, then by name."""
    allocatable, used, elsewhere = view.allocatable, view.pods.requested, view.elsewhere
    short: list[Shortage] = []
    limit = allocatable.get(PODS)
    most = limit.value if limit is not None else 0
    there = len(view.pods)
    if there + 1 > most and PODS not in elsewhere:
        missing = (there + 1 - most) * 10**9
        short.append(Shortage(resource=PODS, requested=1, used=there, capacity=most, missing_nanos=missing))
    for name, nanos in _asked(pod, rules, allocatable):
        have, taken = allocatable.get(name), used.get(name)
        missing = nanos - (have.nanos if have is not None else 0) + (taken.nanos if taken is not None else 0)
        if missing > 0 and not (elsewhere and _is_elsewhere(name, elsewhere)):
            short.append(_shortage(name, nanos, taken, have, missing))
    return short


def _is_elsewhere(name: str, elsewhere: frozenset[str]) -> bool:
    return name in elsewhere or (name.startswith(_PAGES) and f"{_PAGES}*" in elsewhere)


def _asked(pod: Pod, rules: Rules, allocatable: Resources) -> list[tuple[str, int]]:
    asked = wanted(pod)
    if rules.needs_every_resource or not asked.extended or asked.extended <= allocatable.keys():
        return asked.amounts
    # Of what the node does not have, containers ask nothing; the pod's overhead stays.
    forgotten = asked.extended - allocatable.keys()
    kept = [
        (name, amount_of(pod.overhead, name) if name in forgotten else nanos) for name, nanos in asked.amounts
    ]
    return [one for one in kept if one[1]]


@attrs.frozen
class Wanted:
    """What a pod asks of a node: amounts in billionths that are not 0, in the order of being looked at."""

    amounts: list[tuple[str, int]]
    extended: frozenset[str]


_LAST: list[tuple[Pod, Wanted]] = []
"""The pod that was asked about last: one pod is asked about on thousands of nodes."""


def wanted(pod: Pod, /) -> Wanted:
    """What a pod requests at its peak."""
    last = _LAST[-1] if _LAST else None
    if last is not None and last[0] is pod:
        return last[1]
    requests = effective_requests(pod)
    names = [name for name in _FIRST if name in requests]
    if len(names) < len(requests):
        names += sorted(name for name in requests if name not in _FIRST)
    found = Wanted(
        [(name, requests[name].nanos) for name in names if requests[name].nanos],
        frozenset(name for name in names if name not in _FIRST and is_extended_resource(name)),
    )
    # One item, replaced in one step, so that threads at worst work something out again.
    _LAST[:] = [(pod, found)]
    return found


def _shortage(name: str, nanos: int, taken: Quantity | None, have: Quantity | None, missing: int) -> Shortage:
    unit = _NANOS // 1000 if name == "cpu" else _NANOS
    # Rounded up, as `Quantity.value` does; none of them is negative.
    return Shortage(
        resource=name,
        requested=-(-nanos // unit),
        used=-(-taken.nanos // unit) if taken is not None else 0,
        capacity=-(-have.nanos // unit) if have is not None else 0,
        missing_nanos=missing,
    )


def amount_of(requests: Mapping[str, Quantity], name: str) -> int:
    """Billionths of a resource; 0 where nothing is asked."""
    found = requests.get(name)
    return found.nanos if found is not None else 0
