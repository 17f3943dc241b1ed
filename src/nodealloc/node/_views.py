"""What a node holds and has left, as values: for people, for schedulers, for a status page."""

from __future__ import annotations

from nodealloc._typed import typed
from nodealloc._units import amount_text
from nodealloc.topology import Accounts, Holding, ResourceUse, Snapshot

__all__ = ["describe", "holdings", "resource_use"]


@typed
def holdings(snapshot: Snapshot, /) -> tuple[Holding, ...]:
    """Everything that is held, by owner and resource, of the allocators that have `Accounts`."""
    found = [held for one in snapshot.allocators if isinstance(one, Accounts) for held in one.holdings()]
    return tuple(sorted(found, key=lambda one: (one.owner, one.resource, one.nodes.mask)))


@typed
def resource_use(snapshot: Snapshot, /) -> tuple[ResourceUse, ...]:
    """What there is and is left, by resource and NUMA node, of the allocators that have `Accounts`."""
    found = [use for one in snapshot.allocators if isinstance(one, Accounts) for use in one.capacity()]
    return tuple(sorted(found, key=lambda one: (one.resource, -1 if one.node is None else one.node)))


@typed
def describe(snapshot: Snapshot, /) -> str:
    """Both as text, a line each; a resource of which there is nothing on any node is left out."""
    use = resource_use(snapshot)
    there = {one.resource for one in use if one.allocatable}
    lines = [
        f"{one.resource} on {'no node' if one.node is None else f'node {one.node}'}: "
        f"{amount_text(one.resource, one.available)} of {amount_text(one.resource, one.allocatable)} left"
        for one in use
        if one.resource in there
    ]
    lines += [
        f"{one.owner.workload}/{one.owner.member} "
        f"holds {amount_text(one.resource, one.amount)} {one.resource}"
        + (f" on nodes {one.nodes}" if one.nodes else "")
        + (f": {one.what}" if one.what else "")
        for one in holdings(snapshot)
    ]
    return "\n".join(lines)
