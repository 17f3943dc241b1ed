"""Values only: one admitted workload as it is remembered."""

from __future__ import annotations

from collections.abc import Mapping

from nodealloc import _attrs as attrs
from nodealloc._frozen import Frozen, freeze
from nodealloc._typed import typed_fields
from nodealloc.podspec import Json
from nodealloc.topology import TopologyHint, Workload

__all__ = ["ROW", "WorkloadRecord"]

ROW = "workload"
"""Kind of a record's key in the store: `workload.<key of the workload>`."""


@typed_fields
@attrs.frozen(kw_only=True)
class WorkloadRecord:
    """Everything about one workload that a later process needs.

    Attributes:
        workload: Its claims; what was asked.
        order: Rises from one admission to the next.
        affinity: Member to the hint by which it was allocated.
        grants: Name of an allocator to what it granted, in the words of its
            `remembered`; absent where it granted nothing.
        bound: Member to the id of the container that uses its grant now.
        manifest: The pod as its manifest has it; None where no pod was asked for, or
            where nobody has told of it yet.
    """

    workload: Workload
    order: int = 0
    affinity: Mapping[str, TopologyHint] = attrs.field(factory=Frozen[str, TopologyHint], validator=freeze)
    grants: Mapping[str, Json] = attrs.field(factory=Frozen[str, Json], validator=freeze)
    bound: Mapping[str, str] = attrs.field(factory=Frozen[str, str], validator=freeze)
    manifest: Json = attrs.field(default=None, repr=False)
