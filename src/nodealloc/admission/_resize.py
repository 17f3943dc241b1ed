"""May what runs grow or shrink in place: the same chain, then the allocators that can."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

import attrs

from nodealloc._typed import typed
from nodealloc.admission._chain import Handler, chain_of
from nodealloc.admission._fit import node_fit
from nodealloc.admission._rules import Rules
from nodealloc.admission._verdicts import MakingRoom, RoomMade
from nodealloc.errors import ConfigurationError
from nodealloc.idset import format_list
from nodealloc.podfacts import NodeView
from nodealloc.podspec import Pod, qos_class
from nodealloc.topology import (
    TOPOLOGY_AFFINITY_ERROR,
    Accounts,
    Allocator,
    Claim,
    Placed,
    PolicyName,
    Shortfall,
    Snapshot,
    TopologyHint,
    Workload,
    workload_of,
)
from nodealloc.verdicts import Admitted, NotYet, Refused

__all__ = ["Resizes", "resized"]

_RESIZED = frozenset({"cpu", "memory"})
_EDITED = frozenset({*_RESIZED, "ephemeral-storage"})
"""Of storage nobody holds a part, and no runtime is told."""
_INFEASIBLE = "Infeasible"
_ALIGNING = frozenset({PolicyName.RESTRICTED, PolicyName.SINGLE_NUMA_NODE})


@runtime_checkable
class Resizes(Protocol):
    """Ability of an allocator to let what runs grow and shrink. Pure."""

    def resize(self, claim: Claim, workload: Workload | None = None, /) -> Allocator | Shortfall:
        """The allocator with the claim's owner holding what it asks for now; itself where nothing changes.

        Growing keeps what is held. A shortfall leaves everything as it was. What
        members lend each other stays held for whoever needs it again: the init
        containers of a pod may run once more.

        Args:
            claim: What its owner asks for now.
            workload: All claims of its pod, as they are to be; the claim alone where None.
        """
        ...


@typed
def resized(
    pod: Pod,
    view: NodeView,
    snapshot: Snapshot,
    /,
    *,
    chain: Handler | None = None,
    is_edit: bool = False,
) -> Placed | Refused | NotYet:
    """Whether a pod that runs may have other resources, without a restart.

    It is judged as if it came anew to the node without itself. Then what its
    containers hold grows or shrinks. Where the policy refuses what is not aligned,
    nothing grows beyond the NUMA nodes that it was aligned to. Nobody is asked to
    make room for it.

    Args:
        pod: As it is to be; the view has it as it is.
        view: The node.
        snapshot: Who holds what there.
        chain: What judges; `chain_of()` where None. It needs no snapshot of its own.
        is_edit: Whether containers of it may start anew where that is needed: its QoS class may
            be another one then, and containers may have gone. Those that came are granted before.

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
    fault = _stays(there.pod, pod, _EDITED) if is_edit else _fault(there.pod, pod)
    if fault:
        return Refused(reason=_INFEASIBLE, message=fault)
    verdict = (chain or chain_of())(pod, view.without(pod.uid))
    if isinstance(verdict, MakingRoom | RoomMade):
        return _too_little(pod, view)
    if not isinstance(verdict, Admitted):
        return verdict
    return _regranted(there.pod, pod, snapshot)


def _regranted(before: Pod, after: Pod, snapshot: Snapshot) -> Placed | Refused:
    """The snapshot in which each container holds what it asks for now."""
    affinity = snapshot.admitted.get(after.uid, {})
    had = {one.owner: one.amounts for one in workload_of(before).claims}
    workload = workload_of(after)
    changed = [one for one in workload.claims if one.amounts != had.get(one.owner, one.amounts)]
    allocators: list[Allocator] = []
    for allocator in snapshot.allocators:
        answer = _with_all(
            allocator, changed, workload, affinity, is_aligned=snapshot.policy.name in _ALIGNING
        )
        if isinstance(answer, Refused):
            return answer
        allocators.append(answer)
    held = attrs.evolve(snapshot, allocators=tuple(allocators), generation=snapshot.generation + 1)
    return Placed(workload=after.uid, snapshot=held, affinity=affinity)


def _with_all(
    allocator: Allocator,
    claims: Sequence[Claim],
    workload: Workload,
    affinity: Mapping[str, TopologyHint],
    *,
    is_aligned: bool,
) -> Allocator | Refused:
    """One allocator with all of these; who lacks something is asked again once others have given back."""
    while claims:
        lacking: list[Claim] = []
        refused: list[Refused] = []
        for claim in claims:
            hint = affinity.get(claim.owner.member) if is_aligned else None
            changed = _changed(allocator, claim, workload)
            if isinstance(changed, Shortfall):
                refused.append(_short(changed))
            elif hint is not None and _leaves(changed, claim, hint):
                refused.append(_unaligned(claim, hint))
            else:
                allocator = changed
                continue
            lacking.append(claim)
        if len(lacking) == len(claims):
            return refused[0]
        claims = lacking
    return allocator


def _short(lacking: Shortfall) -> Refused:
    return Refused(
        reason=lacking.reason,
        message=lacking.detail or f"too little {lacking.resource}",
        figures={"resource": lacking.resource, "wanted": lacking.wanted, "free": lacking.free},
    )


def _leaves(allocator: Allocator, claim: Claim, hint: TopologyHint) -> bool:
    """Whether the claim's owner would hold something beside the NUMA nodes that it was aligned to."""
    if hint.affinity is None or not isinstance(allocator, Accounts):
        return False
    return any(one.nodes.mask & ~hint.affinity for one in allocator.holdings() if one.owner == claim.owner)


def _unaligned(claim: Claim, hint: TopologyHint) -> Refused:
    nodes = format_list(hint.affinity or 0)
    return Refused(
        reason=TOPOLOGY_AFFINITY_ERROR,
        message=f"{claim.owner.member} is aligned to NUMA node {nodes}, which has too little left to grow",
        figures={"nodes": nodes},
    )


def _too_little(pod: Pod, view: NodeView) -> Refused | NotYet:
    """What a critical pod lacks; for one that runs already nobody has to end."""
    fit = node_fit(pod, view.without(pod.uid), rules=Rules())
    if isinstance(fit, Admitted):  # a chain with a measure of its own
        return Refused(reason=_INFEASIBLE, message="others would have to make room; start the pod anew")
    return fit


def _changed(allocator: Allocator, claim: Claim, workload: Workload) -> Allocator | Shortfall:
    if not isinstance(allocator, Resizes):
        return allocator
    holds = isinstance(allocator, Accounts) and any(one.owner == claim.owner for one in allocator.holdings())
    return allocator.resize(claim, workload) if holds or allocator.hints((claim,)) else allocator


def _fault(before: Pod, after: Pod) -> str:
    """Why no node could do this without a restart; "" where one may."""
    if [one.name for one in before.all_containers] != [one.name for one in after.all_containers]:
        return "its containers are others than those that run; start it anew"
    old, new = qos_class(before), qos_class(after)
    if old is not new:
        return f"its QoS class would change from {old.value} to {new.value}; keep it, or start the pod anew"
    return _stays(before, after, _RESIZED)


def _stays(before: Pod, after: Pod, free: frozenset[str]) -> str:
    """What would change of a container and is not free to; "" where nothing does."""
    there = {one.name: one for one in before.all_containers}
    for wants in after.all_containers:
        had = there.get(wants.name, wants)
        names = {*had.requests, *wants.requests, *had.limits, *wants.limits} - free
        for name in sorted(names):
            if had.requests.get(name) != wants.requests.get(name) or had.limits.get(name) != wants.limits.get(
                name
            ):
                return f"{name} of {wants.name} would change; only {', '.join(sorted(free))} may, in place"
    return ""
