"""How candidates are compared: the kubelet's order, and strategies in its place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, TypeAlias

from nodealloc import _attrs as attrs
from nodealloc._frozen import Frozen, freeze
from nodealloc._typed import typed_fields, typed_on_error
from nodealloc.idset import bits
from nodealloc.topology._hints import NumaMask, NumaTopology, TopologyHint

__all__ = [
    "Closest",
    "Comparison",
    "ComparisonContext",
    "LeastAllocated",
    "MostAllocated",
    "Narrowest",
    "Rank",
]

Rank: TypeAlias = tuple[float, ...]
"""Compared element by element; the smallest wins, and of equals the lower mask."""


@typed_fields
@attrs.frozen(kw_only=True)
class ComparisonContext:
    """What a comparison may look at, apart from the candidate itself.

    Attributes:
        numa: The machine's nodes and distances.
        narrowest: Of each resource's narrowest hint the number of nodes; the
            largest of them. No placement can be aligned on fewer nodes.
        allocated: Node id to the share of it that is taken, 0 to 1, over the
            resources that are asked for; empty when nobody reported.
    """

    numa: NumaTopology
    narrowest: int = 0
    allocated: Mapping[int, float] = attrs.field(factory=Frozen[int, float], validator=freeze)


class Comparison(Protocol):
    """Which of several merged hints is best.

    A pure function that may be pickled. It is asked about preferred candidates
    alone as long as there is one, and about the others only when there is none:
    whether a hint is preferred is what policies admit by, so no comparison can
    overrule it.
    """

    def rank(self, candidate: TopologyHint, context: ComparisonContext, /) -> Rank:
        """How far from ideal a candidate is; its affinity is never None and never 0."""
        ...


def width_rank(candidate: TopologyHint, narrowest: int) -> tuple[int, int]:
    """Kubelet's order by width, which every shipped comparison begins with.

    Preferred: narrower is better. Others: as wide as `narrowest`, else a little
    narrower, else as little wider as possible.

    Source: kubelet ``cm/topologymanager/policy.go``, ``HintMerger.compare``.
    """
    width = (candidate.affinity or 0).bit_count()
    if candidate.preferred or width > narrowest:
        return (1, width)
    return (0, -width)


@attrs.frozen
class Narrowest:
    """The kubelet's comparison: by width, then the lower mask."""

    @typed_on_error
    def rank(self, candidate: TopologyHint, context: ComparisonContext, /) -> Rank:
        """Width only."""
        return width_rank(candidate, context.narrowest)


@attrs.frozen
class Closest:
    """The kubelet's comparison under `prefer-closest-numa-nodes`: by width, then distance."""

    @typed_on_error
    def rank(self, candidate: TopologyHint, context: ComparisonContext, /) -> Rank:
        """Width, then the distances inside the mask."""
        return (*width_rank(candidate, context.narrowest), context.numa.spread(candidate.affinity or 0))


@attrs.frozen
class MostAllocated:
    """Pack: of equally wide candidates the fullest nodes, so that empty nodes stay whole."""

    @typed_on_error
    def rank(self, candidate: TopologyHint, context: ComparisonContext, /) -> Rank:
        """Width, then the mean free share."""
        return (
            *width_rank(candidate, context.narrowest),
            -mean_share(candidate.affinity or 0, context.allocated),
        )


@attrs.frozen
class LeastAllocated:
    """Spread: of equally wide candidates the emptiest nodes, so that neighbours disturb least."""

    @typed_on_error
    def rank(self, candidate: TopologyHint, context: ComparisonContext, /) -> Rank:
        """Width, then the mean taken share."""
        return (
            *width_rank(candidate, context.narrowest),
            mean_share(candidate.affinity or 0, context.allocated),
        )


def mean_share(mask: NumaMask, shares: Mapping[int, float]) -> float:
    """Mean of the nodes' shares; a node without one counts as empty."""
    return sum(shares.get(node, 0.0) for node in bits(mask)) / max(1, mask.bit_count())
