"""The remembered value: what one node is, by which policy it goes, and who has been let in."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from nodealloc.topology._hints import NumaTopology, TopologyHint
from nodealloc.topology._policy import Policy, Scope
from nodealloc.topology._ports import Allocator

__all__ = ["Affinities", "Snapshot"]

Affinities = Mapping[str, TopologyHint]
"""Member of a workload to the hint that it was given."""


@attrs.frozen(kw_only=True)
class Snapshot:
    """A node as admission sees it; a decision is a new snapshot.

    It pickles small: `numa` and `policy` are values that many snapshots share,
    and a pickle of several snapshots holds what they share once.

    Attributes:
        numa: The machine's NUMA nodes.
        policy: Which merged hints are let in.
        scope: Whether containers are aligned one by one or together.
        allocators: Who gives hints and allocates, in the order in which they
            are asked; their names differ.
        admitted: Workload key to the affinities of its members.
        generation: Grows by 1 with each change.

    Raises:
        TooManyNodesError: More nodes than the policy's `max_nodes`.
        DistanceError: The policy needs distances that `numa` lacks.
        ValueError: Two allocators have one name.
    """

    numa: NumaTopology
    policy: Policy = Policy()
    scope: Scope = Scope.CONTAINER
    allocators: tuple[Allocator, ...] = ()
    admitted: Mapping[str, Affinities] = attrs.field(factory=dict[str, Affinities])
    generation: int = 0

    def __attrs_post_init__(self) -> None:
        names = {allocator.name for allocator in self.allocators}
        if len(names) != len(self.allocators):
            listed = ", ".join(allocator.name for allocator in self.allocators)
            raise ValueError(f"allocators {listed}: each needs a name of its own")
        self.policy.check(self.numa)
