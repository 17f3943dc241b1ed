"""Masks, hints and shortfalls in words, and as JSON has them."""

from __future__ import annotations

from nodealloc._units import amount_text
from nodealloc.idset import bits, format_list
from nodealloc.podspec import Json
from nodealloc.topology._hints import NumaMask, TopologyHint
from nodealloc.topology._ports import Shortfall
from nodealloc.topology._snapshot import Affinities

__all__ = ["hint_dict", "node_list", "nodes_text", "places", "shortfall_dict", "shortfall_line", "where"]


def shortfall_line(short: Shortfall) -> str:
    """Wanted, free and where, in the resource's own words."""
    wanted, free = amount_text(short.resource, short.wanted), amount_text(short.resource, short.free)
    return f"{short.resource}: {wanted} wanted, {free} free on {where(short.nodes)}"


def nodes_text(mask: NumaMask, /) -> str:
    """`node 3`, `nodes 0-1`."""
    if not mask:
        return "no node"
    return f"node{'' if mask.bit_count() == 1 else 's'} {format_list(mask)}"


def places(affinity: Affinities) -> str:
    """Each member and its nodes."""
    return ", ".join(f"{member} on {where(hint.affinity)}" for member, hint in affinity.items())


def where(mask: NumaMask | None) -> str:
    """The nodes of a mask in words; None is "any node"."""
    return "any node" if mask is None else nodes_text(mask)


def node_list(mask: NumaMask | None, /) -> Json:
    """The nodes of a mask as JSON has them; null for any."""
    return None if mask is None else list(bits(mask))


def hint_dict(hint: TopologyHint) -> Json:
    """A hint as JSON has it."""
    return {"nodes": node_list(hint.affinity), "preferred": hint.preferred}


def shortfall_dict(short: Shortfall) -> Json:
    """A shortfall as JSON has it."""
    return {
        "resource": short.resource,
        "wanted": short.wanted,
        "free": short.free,
        "nodes": node_list(short.nodes),
        "reason": short.reason,
        "detail": short.detail,
    }
