"""Values only: a set of NUMA nodes as an integer, and one way to place a request."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

__all__ = ["NumaMask", "TopologyHint"]

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
