"""May what runs grow or shrink in place: the same chain, then the allocators that can."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import attrs

from nodealloc.admission._chain import Handler, chain_of
from nodealloc.admission._rules import Rules
from nodealloc.errors import ConfigurationError
from nodealloc.podfacts import NodeView
from nodealloc.podspec import Pod, qos_class
from nodealloc.topology import Accounts, Allocator, Claim, Placed, Shortfall, Snapshot, workload_of
from nodealloc.verdicts import Admitted, NotYet, Refused

__all__ = ["Resizes", "resized"]

_RESIZED = frozenset({"cpu", "memory"})
_INFEASIBLE = "Infeasible"


@runtime_checkable
class Resizes(Protocol):
    """Ability of an allocator to let what runs grow and shrink. Pure."""

    def resize(self, claim: Claim, /) -> Allocator | Shortfall:
        """The allocator with the claim's owner holding what it asks for now; itself where nothing changes.

        Growing keeps what is held. A shortfall leaves everything as it was.
        """
        ...


def resized(
    pod: Pod, view: NodeView, snapshot: Snapshot, /, *handlers: Handler, rules: Rules | None = None
) -> Admitted | Refused | NotYet:
    """Whether a pod that runs may have other resources, without a restart.

    It is judged as if it came anew to the node without itself; then what its
    containers hold grows or shrinks. Nobody is asked to make room for it.

    Args:
        pod: As it is to be; the view has it as it is.
        view: The node.
        snapshot: Who holds what there.
        handlers: As of `chain_of`.
        rules: As of `chain_of`.

    Returns:
        `Placed` with the snapshot to commit. A refusal changes nothing.

    Raises:
        ConfigurationError: The view does not have this pod.

    Source: ours, for what Kubernetes allows to change: CPU and memory, within a QoS class.
    """
    there = view.pods.get(pod.uid)
    if there is None:
        raise ConfigurationError(
            f"pod {pod.full_name}: {view.name} does not have it; what does not run is admitted"
        )
    fault = _fault(there.pod, pod)
    if fault:
        return Refused(reason=_INFEASIBLE, message=fault)
    verdict = chain_of(*handlers, rules=rules)(pod, view.without(pod.uid))
    if not isinstance(verdict, Admitted):
        return verdict
    allocators = list(snapshot.allocators)
    before = {one.owner: one for one in workload_of(there.pod).claims}
    for claim in workload_of(pod).claims:
        if claim.amounts == before[claim.owner].amounts:
            continue
        for place, allocator in enumerate(allocators):
            changed = _changed(allocator, claim)
            if isinstance(changed, Shortfall):
                return Refused(
                    reason=changed.reason,
                    message=changed.detail or f"too little {changed.resource}",
                    figures={"resource": changed.resource, "wanted": changed.wanted, "free": changed.free},
                )
            allocators[place] = changed
    after = attrs.evolve(snapshot, allocators=tuple(allocators), generation=snapshot.generation + 1)
    return Placed(workload=pod.uid, snapshot=after, affinity=snapshot.admitted.get(pod.uid, {}))


def _changed(allocator: Allocator, claim: Claim) -> Allocator | Shortfall:
    if not isinstance(allocator, Resizes):
        return allocator
    holds = isinstance(allocator, Accounts) and any(one.owner == claim.owner for one in allocator.holdings())
    return allocator.resize(claim) if holds or allocator.hints((claim,)) else allocator


def _fault(before: Pod, after: Pod) -> str:
    """Why no node could do this without a restart; "" where one may."""
    if [one.name for one in before.all_containers] != [one.name for one in after.all_containers]:
        return "its containers are others than those that run; start it anew"
    old, new = qos_class(before), qos_class(after)
    if old is not new:
        return f"its QoS class would change from {old.value} to {new.value}; keep it, or start the pod anew"
    for had, wants in zip(before.all_containers, after.all_containers, strict=True):
        names = {*had.requests, *wants.requests, *had.limits, *wants.limits} - _RESIZED
        for name in sorted(names):
            if had.requests.get(name) != wants.requests.get(name) or had.limits.get(name) != wants.limits.get(
                name
            ):
                return f"{name} of {wants.name} would change; only cpu and memory do so in place"
    return ""
