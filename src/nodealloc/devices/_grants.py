"""Values only: which devices a member of a workload holds, and what it got with them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from nodealloc import _attrs as attrs
from nodealloc._arguments import wrong
from nodealloc._frozen import freeze
from nodealloc._typed import typed, typed_fields
from nodealloc.checkpoint import PodDevices
from nodealloc.idset import MAX_ID

__all__ = ["NO_NODE", "Grant", "Grants", "doubled", "ids_held", "told_doubled", "without"]

NO_NODE = -1
"""Stands for "no NUMA node" where places are remembered, as in the kubelet's file."""


@typed_fields
@attrs.frozen(kw_only=True, slots=False)
class Grant:
    """Devices of one resource in one member's hands.

    Attributes:
        places: NUMA node to the ids there, ascending; a device at several
            nodes stands under each, one without a place under `NO_NODE`.
        response: What the plugin answered to `Allocate`, in the bytes in which
            it came; None as long as it has not answered.
    """

    places: Mapping[int, tuple[str, ...]] = attrs.field(validator=freeze)
    response: bytes | None = None

    def __attrs_post_init__(self) -> None:
        for node in self.places:
            if not NO_NODE <= node <= MAX_ID:
                expected = f"ids of NUMA nodes from 0 to {MAX_ID}, or {NO_NODE} for no node"
                raise wrong("Grant.places", node, expected)

    def __getstate__(self) -> dict[str, object]:
        """What is pickled: the fields, not what was worked out from them."""
        return {field.name: self.__dict__[field.name] for field in attrs.fields(Grant)}

    @property
    def ids(self) -> frozenset[str]:
        """The devices."""
        return frozenset(identity for ids in self.places.values() for identity in ids)

    @property
    def nodes(self) -> Mapping[str, tuple[int, ...]]:
        """Device to its nodes, ascending; empty for one without a place."""
        found: dict[str, tuple[int, ...]] = {}
        for node, ids in sorted(self.places.items()):
            here = () if node == NO_NODE else (node,)
            for identity in ids:
                found[identity] = found.get(identity, ()) + here
        return found

    def entry(self, workload: str, member: str, resource: str, /) -> PodDevices:
        """As the kubelet's file has it; kept, so that a large one is worked out once."""
        kept: PodDevices | None = self.__dict__.get("_entry")
        whose = (workload, member, resource)
        if kept is None or (kept.pod_uid, kept.container_name, kept.resource_name) != whose:
            kept = self.__dict__["_entry"] = PodDevices(
                pod_uid=workload,
                container_name=member,
                resource_name=resource,
                device_ids=self.places,
                alloc_resp=self.response,
            )
        return kept

    def answered(self, response: bytes, /) -> Grant:
        """The same devices with what their plugin answered; what `entry` keeps of them stays."""
        fresh = attrs.evolve(self, response=response)
        kept: PodDevices | None = self.__dict__.get("_entry")
        if kept is not None:
            fresh.__dict__["_entry"] = kept.answered(response)
        return fresh

    @classmethod
    @typed
    def of(cls, devices: Iterable[tuple[str, tuple[int, ...]]], /, *, response: bytes | None = None) -> Grant:
        """From ids with their nodes."""
        places: dict[int, list[str]] = {}
        for identity, nodes in sorted(devices):
            for node in nodes or (NO_NODE,):
                places.setdefault(node, []).append(identity)
        return cls(places={node: tuple(places[node]) for node in sorted(places)}, response=response)


Grants = Mapping[str, Mapping[tuple[str, str], Grant]]
"""Workload to (member, resource) to what is held."""


def without(
    grants: Grants, workload: str, member: str | None, /
) -> dict[str, Mapping[tuple[str, str], Grant]]:
    """The grants but for what one member, or the whole workload, holds."""
    kept = dict(grants)
    rest = {key: grant for key, grant in kept.pop(workload, {}).items() if member not in (None, key[0])}
    if rest:
        kept[workload] = rest
    return kept


def ids_held(resource: str, grants: Grants, /) -> set[str]:
    """The devices of a resource that somebody holds."""
    return {
        identity
        for held in grants.values()
        for (_, name), grant in held.items()
        if name == resource
        for identity in grant.ids
    }


def doubled(grants: Grants, /) -> frozenset[tuple[str, str]]:
    """Resource and id of each device that two workloads hold: no decision says so, a file may."""
    holders: dict[tuple[str, str], str] = {}
    return frozenset(
        (resource, identity)
        for workload, held in grants.items()
        for (_, resource), grant in held.items()
        for identity in grant.ids
        if holders.setdefault((resource, identity), workload) != workload
    )


def told_doubled(grants: Grants, /) -> tuple[str, ...]:
    """Each device that two workloads hold, with all who hold it, a line for each; most starts have none."""
    twice = doubled(grants)
    holders: dict[tuple[str, str], list[str]] = {one: [] for one in sorted(twice)}
    for workload, held in grants.items() if twice else ():
        for (member, resource), grant in held.items():
            for identity in grant.ids:
                if (resource, identity) in twice:
                    holders[resource, identity].append(f"{workload}/{member}")
    return tuple(
        f"{resource} {identity} is held by {', '.join(owners)} at once: all keep it, and nobody else gets "
        "it; end all of these pods but one"
        for (resource, identity), owners in holders.items()
    )
