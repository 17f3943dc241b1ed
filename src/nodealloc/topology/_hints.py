"""Values only: hints by resource, and the nodes that they speak of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TypeAlias

from nodealloc import _attrs as attrs
from nodealloc._arguments import check, wrong
from nodealloc._frozen import Frozen, frozen
from nodealloc._typed import typed_fields
from nodealloc.errors import ConfigurationError
from nodealloc.idset import MAX_ID, bits
from nodealloc.topology._counted import CountedHints
from nodealloc.topology._errors import DistanceError
from nodealloc.topology._masks import NumaMask, TopologyHint

__all__ = ["Hints", "NumaMask", "NumaTopology", "TopologyHint"]

_KEPT_SPREADS = 4096
"""Spreads that a topology keeps; the sets of the eight nodes that a kubelet may have are 255."""

Hints: TypeAlias = Mapping[str, Sequence[TopologyHint] | CountedHints | None]
"""Per resource its possible hints: None = no preference, empty = impossible.

They are listed, or counted (`CountedHints`) where there are too many for a list;
both mix freely. An empty mapping means that the provider has no preference about anything.
"""


def _node_ids(nodes: Iterable[int]) -> tuple[int, ...]:
    expected = "a tuple of node ids, such as (0, 1)"
    found = tuple(check("NumaTopology.nodes", nodes, Iterable, expected))
    for node in found:
        if type(node) is not int:
            raise wrong("NumaTopology.nodes", found, expected)
    return found


def _distances(rows: Mapping[int, Mapping[int, int]] | None) -> Mapping[int, Mapping[int, int]]:
    where, expected = "NumaTopology.distances", "a mapping of node id to a distance"
    if rows is None:
        return Frozen()
    check(where, rows, Mapping, "node id to a mapping, as {0: {0: 10, 1: 21}, 1: {0: 21, 1: 10}}")
    return Frozen(
        {node: frozen(check(f"{where}[{node!r}]", row, Mapping, expected)) for node, row in rows.items()}
    )


@typed_fields
@attrs.frozen(kw_only=True)
class NumaTopology:
    """NUMA nodes as the merge needs them; a scheduler builds it from three numbers.

    Attributes:
        nodes: Node ids, ascending; gaps, memory-only and CPU-less nodes allowed.
        distances: `distances[a][b]` from node a to b for all pairs of `nodes`;
            empty (or None) when unknown. Entries for other nodes are ignored.
        mask: All nodes as a mask; computed.
        even: Whether each node is as far from itself as any other is; computed.
    """

    nodes: tuple[int, ...] = attrs.field(converter=_node_ids)
    distances: Mapping[int, Mapping[int, int]] = attrs.field(default=None, converter=_distances)
    mask: NumaMask = attrs.field(init=False, repr=False, eq=False)
    even: bool = attrs.field(init=False, repr=False, eq=False)
    _spreads: dict[NumaMask, int] = attrs.field(init=False, repr=False, eq=False, factory=dict[NumaMask, int])

    def __attrs_post_init__(self) -> None:
        nodes = self.nodes
        rising = all(low < high for low, high in pairwise(nodes))
        if not rising or (nodes and not 0 <= nodes[0] <= nodes[-1] <= MAX_ID):
            raise ConfigurationError(
                f"NUMA node ids {nodes}: expected ascending ids from 0 to {MAX_ID}, each once"
            )
        for node in nodes if self.distances else ():
            self._check_row(node)
        object.__setattr__(self, "mask", sum(1 << node for node in nodes))
        own = {self.distances[node][node] for node in nodes} if self.distances else ()
        object.__setattr__(self, "even", len(own) == 1)

    def _check_row(self, node: int) -> None:
        row = self.distances.get(node)
        if row is None:
            raise DistanceError(node, "the row is missing; give one for every node, or none at all")
        for other in self.nodes:
            value = row.get(other)
            if value is None:
                raise DistanceError(node, f"none to node {other}; the table must be square")
            if value < 0:
                raise DistanceError(node, f"{value} to node {other}; distances are 0 or more")

    def spread(self, mask: NumaMask, /) -> int:
        """Sum of the distances between all pairs of nodes in `mask`, each node to itself included.

        For masks of one size it orders as the mean distance does.

        Raises:
            DistanceError: The distances are not known.

        Source: kubelet ``cm/topologymanager/numa_info.go``.
        """
        known = self._spreads.get(mask)
        if known is not None:
            return known
        rows = self.distances
        if not rows:
            needed = "unknown, but prefer-closest-numa-nodes compares them; give them or drop the option"
            raise DistanceError(None, needed)
        nodes = [*bits(mask)]
        total = 0
        for one in nodes:
            row = rows[one]
            total += sum([row[other] for other in nodes])
        if len(self._spreads) < _KEPT_SPREADS:
            self._spreads[mask] = total
        return total

    def closest(self, masks: tuple[NumaMask, ...], /) -> NumaMask:
        """Of equally wide masks, at least one, the first whose nodes are nearest to each other.

        Raises:
            DistanceError: There are several, and the distances are not known.
        """
        if len(masks) == 1:
            return masks[0]
        return min(masks, key=self.spread)

    def __getstate__(self) -> tuple[object, ...]:
        """Without the spreads, which can be worked out again."""
        return self.nodes, self.distances, self.mask, self.even

    def __setstate__(self, state: tuple[object, ...]) -> None:
        for name, value in zip(("nodes", "distances", "mask", "even"), state, strict=True):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "_spreads", dict[NumaMask, int]())
