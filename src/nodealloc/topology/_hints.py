"""Values only: NUMA masks, hints, and the nodes that they speak of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

import attrs

__all__ = ["Hints", "NumaMask", "NumaTopology", "TopologyHint"]

NumaMask: TypeAlias = int
"""A set of NUMA nodes as an integer: bit *n* stands for node *n*."""


class TopologyHint(NamedTuple):
    """One way to place a request: on these NUMA nodes, and whether that is good.

    Attributes:
        affinity: Nodes as a mask, never 0; None means "any node".
        preferred: True when no narrower set of nodes could ever serve the request.
    """

    affinity: NumaMask | None
    preferred: bool


Hints: TypeAlias = Mapping[str, Sequence[TopologyHint] | None]
"""Per resource its possible hints: None = no preference, empty = impossible.

An empty mapping means that the provider has no preference about anything.
"""


@attrs.frozen(kw_only=True)
class NumaTopology:
    """NUMA nodes as the merge needs them; a scheduler builds it from three numbers.

    Attributes:
        nodes: Node ids, ascending; gaps, memory-only and CPU-less nodes allowed.
        distances: `distances[a][b]` from node a to b for all pairs of `nodes`;
            empty when unknown.
    """

    nodes: tuple[int, ...]
    distances: Mapping[int, Mapping[int, int]] = attrs.field(factory=dict[int, Mapping[int, int]])
