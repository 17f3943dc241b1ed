"""Hints and claims as words of a sentence."""

from __future__ import annotations

from nodealloc.idset import format_list
from nodealloc.topology import Claim, TopologyHint

__all__ = ["amounts_of", "told", "width"]


def width(hint: TopologyHint) -> int:
    return 1 << 20 if hint.affinity is None else hint.affinity.bit_count()


def told(hint: TopologyHint) -> str:
    """The nodes of a hint, for a sentence."""
    if hint.affinity is None:
        return "any node"
    nodes = format_list(hint.affinity) if hint.affinity > 0 else str(hint.affinity)
    return f"NUMA nodes {nodes}"


def amounts_of(claim: Claim) -> str:
    return ", ".join(f"{name}={amount}" for name, amount in claim.amounts.items())
