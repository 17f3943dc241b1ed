"""Does the node have enough: pods, CPU, memory, ephemeral storage, huge pages, extended resources."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Final

from nodealloc import _attrs as attrs
from nodealloc._typed import typed
from nodealloc.admission._rules import Rules
from nodealloc.admission._verdicts import ADMITTED
from nodealloc.podfacts import LifeState, NodeView
from nodealloc.podspec import Pod, Quantity, is_extended_resource
from nodealloc.verdicts import Admitted, NotYet, Refused

__all__ = ["PODS", "Shortage", "node_fit", "shortages"]

PODS: Final = "pods"
"""The resource that counts pods."""
_NANOS: Final = 10**9
_FIRST: Final = (PODS, "cpu", "memory", "ephemeral-storage")
_PAGES: Final = "hugepages-"
_SYNCING: Final = LifeState.SYNCING


@attrs.frozen(slots=False)  # a dict is filled faster than slots
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

    Args:
        pod: Who wants to come in.
        view: The node, with what it gives out and everybody who is in.
        rules: What is right, or `KUBELET`.

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
    allocatable, elsewhere, pods = view.allocatable, view.elsewhere, view.pods
    used = pods.requested
    short: list[Shortage] = []
    limit = allocatable.get(PODS)
    most = -(-limit.nanos // _NANOS) if limit is not None else 0
    there = len(pods)
    if there + 1 > most and PODS not in elsewhere:
        short.append(Shortage(PODS, 1, there, most, (there + 1 - most) * _NANOS))
    for name, nanos in pod.requested_nanos:
        have, taken = allocatable.get(name), used.get(name)
        free = (have.nanos if have is not None else 0) - (taken.nanos if taken is not None else 0)
        if nanos <= free or (elsewhere and _is_elsewhere(name, elsewhere)):
            continue
        if have is None and not rules.needs_every_resource and is_extended_resource(name):
            # Of what the node does not have, containers ask nothing; the pod's overhead stays.
            nanos = amount_of(pod.overhead, name)  # noqa: PLW2901
            if not nanos:
                continue
        short.append(_shortage(name, nanos, taken, have, nanos - free))
    return sorted(short, key=_place) if len(short) > 1 else short


def _place(one: Shortage) -> tuple[int, str]:
    return (_FIRST.index(one.resource), "") if one.resource in _FIRST else (len(_FIRST), one.resource)


def _is_elsewhere(name: str, elsewhere: frozenset[str]) -> bool:
    return name in elsewhere or (name.startswith(_PAGES) and f"{_PAGES}*" in elsewhere)


def _shortage(name: str, nanos: int, taken: Quantity | None, have: Quantity | None, missing: int) -> Shortage:
    unit = _NANOS // 1000 if name == "cpu" else _NANOS
    # Rounded up, as `Quantity.value` does; none of them is negative.
    return Shortage(
        name,
        -(-nanos // unit),
        -(-taken.nanos // unit) if taken is not None else 0,
        -(-have.nanos // unit) if have is not None else 0,
        missing,
    )


def amount_of(requests: Mapping[str, Quantity], name: str) -> int:
    """Billionths of a resource; 0 where nothing is asked."""
    found = requests.get(name)
    return found.nanos if found is not None else 0
