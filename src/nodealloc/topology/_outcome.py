"""Values only: what a merge comes to."""

from __future__ import annotations

from typing import NamedTuple

from nodealloc.topology._masks import TopologyHint

__all__ = ["Merged"]


class Merged(NamedTuple):
    """Outcome of a merge.

    Attributes:
        hint: The best hint that the providers' hints intersect to; an affinity
            of None allows any node.
        admit: Whether the policy lets it in.
    """

    hint: TopologyHint
    admit: bool
