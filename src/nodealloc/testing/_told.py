"""Hints and claims as words of a sentence, and what kind they are."""

from __future__ import annotations

from collections.abc import Sequence

from nodealloc.idset import format_list
from nodealloc.topology import Claim, TopologyHint, Workload

__all__ = ["amounts_of", "has_fractions", "is_listed", "told", "width"]


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


def is_listed(value: object) -> bool:
    """Whether a value is a list of something."""
    return isinstance(value, Sequence)


def has_fractions(asked: Workload) -> bool:
    """Whether a claim asks for a part of a unit."""
    return not all(amount.is_whole for claim in asked.claims for amount in claim.amounts.values())
