"""Where a container may run, from what its owner was granted."""

from __future__ import annotations

from nodealloc._typed import typed
from nodealloc.topology import Confinement, Confines, Owner, Snapshot

__all__ = ["confinement_of"]


@typed
def confinement_of(snapshot: Snapshot, owner: Owner, /) -> Confinement:
    """Where an owner's container runs, by what the snapshot's allocators that can `Confines` say."""
    return Confinement.of(
        *(one.confinement(owner) for one in snapshot.allocators if isinstance(one, Confines))
    )
