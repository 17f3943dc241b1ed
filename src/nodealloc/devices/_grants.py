"""Values only: which devices a member of a workload holds, and what it got with them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from nodealloc._frozen import freeze
from nodealloc._typed import typed, typed_fields_on_error
from nodealloc.checkpoint import KeptBytes

__all__ = ["NO_NODE", "Grant", "Grants", "without"]

NO_NODE = -1
"""Stands for "no NUMA node" where places are remembered, as in the kubelet's file."""


def _kept(response: bytes | None) -> bytes | None:
    return KeptBytes.of(response)


@typed_fields_on_error
@attrs.frozen(kw_only=True)
class Grant:
    """Devices of one resource in one member's hands.

    Attributes:
        places: NUMA node to the ids there, ascending; a device at several
            nodes stands under each, one without a place under `NO_NODE`.
        response: What the plugin answered to `Allocate`, in the bytes in which
            it came; None as long as it has not answered.
    """

    places: Mapping[int, tuple[str, ...]] = attrs.field(validator=freeze)
    response: bytes | None = attrs.field(default=None, converter=_kept)

    @property
    def ids(self) -> frozenset[str]:
        """The devices."""
        return frozenset(identity for ids in self.places.values() for identity in ids)

    def nodes_of(self, identity: str, /) -> tuple[int, ...]:
        """Nodes of one device, ascending; empty for one without a place."""
        return tuple(sorted(node for node, ids in self.places.items() if node != NO_NODE and identity in ids))

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
