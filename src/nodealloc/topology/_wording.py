"""An explanation in words and as JSON has it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from nodealloc._units import amount_text
from nodealloc.idset import bits, format_list
from nodealloc.podspec import Json

if TYPE_CHECKING:
    from nodealloc.topology._explanation import Explanation, ResourceView, Veto, WeakerFit
    from nodealloc.topology._hints import NumaMask, TopologyHint
    from nodealloc.topology._ports import Shortfall
    from nodealloc.topology._snapshot import Affinities

__all__ = ["as_dict", "hint_dict", "lines", "places", "shortfall_dict", "shortfall_line", "where"]

_SHOWN = 4
"""Parts of one kind in the text; the fields have them all."""

_OUTLOOK_WORDS: Mapping[str, str] = {
    "never-fits": "never fits here, not even on the emptied node",
    "never-preferred": "never fits here under this policy, not even on the emptied node",
    "no-room": "fits the emptied node; too little is free now",
    "not-preferred": "fits now, but not as preferred",
    "undecided": "not decided: given up after the counted work, with no proof that it does not fit",
    "unlucky-order": "fits now if earlier members leave the right nodes (option search-whole-pod)",
}


def lines(story: Explanation) -> list[str]:
    """An explanation, a few lines long."""
    who = f"{story.workload}/{story.members[0]}" if len(story.members) == 1 else story.workload
    told = [f"{who}: {story.reason} under {story.policy.value}: {_OUTLOOK_WORDS[story.outlook.value]}"]
    if story.shortfall is not None:
        told.append("  " + (story.shortfall.detail or shortfall_line(story.shortfall)))
    told += ["  " + _resource_line(view) for view in story.resources]
    told += ["  " + _veto_line(veto) for veto in story.vetoes[:_SHOWN]]
    if len(story.vetoes) > _SHOWN:
        told.append(f"  and {len(story.vetoes) - _SHOWN} more vetoes")
    if story.weaker is not None:
        places = ", ".join(
            f"{member} on {where(hint.affinity)}" for member, hint in story.weaker.affinity.items()
        )
        told.append(f"  would fit under {story.weaker.policy.value}: {places}")
    return told


def shortfall_line(short: Shortfall) -> str:
    """Wanted, free and where, in the resource's own words."""
    wanted, free = amount_text(short.resource, short.wanted), amount_text(short.resource, short.free)
    return f"{short.resource}: {wanted} wanted, {free} free on {where(short.nodes)}"


def _resource_line(view: ResourceView) -> str:
    asked = ""
    if view.wanted is not None:
        asked = f" {amount_text(view.resource, view.wanted)} wanted; free: {_free(view)};"
    masks = [format_list(mask) for mask in view.possible if mask is not None]
    more = f" and {len(masks) - _SHOWN} wider" if len(masks) > _SHOWN else ""
    possible = " or ".join(masks[:_SHOWN]) + more if masks else _anywhere(view)
    return f"{view.resource} ({view.provider}):{asked} possible nodes: {possible}"


def _anywhere(view: ResourceView) -> str:
    """Without any set of nodes: whether the provider has no preference, or nothing that would do."""
    most = sum(view.allocatable.values())
    lacking = view.wanted is not None and view.allocatable and view.wanted > most
    return "any" if None in view.preferred and not lacking else "none"


def _free(view: ResourceView) -> str:
    """Amounts with their nodes; nodes of one amount together, nodes without any left out."""
    nodes: dict[int, int] = {}
    for node, amount in sorted(view.free.items()):
        if amount:
            nodes[amount] = nodes.get(amount, 0) | (1 << node if node >= 0 else 0)
    parts = [f"{amount_text(view.resource, amount)} on {_place(mask)}" for amount, mask in nodes.items()]
    more = [f"more on {len(parts) - _SHOWN} other sets of nodes"] if len(parts) > _SHOWN else []
    return ", ".join(parts[:_SHOWN] + more) or "nothing"


def _place(mask: int) -> str:
    if not mask:
        return "no node"
    return f"node{'' if mask.bit_count() == 1 else 's'} {format_list(mask)}"


def _veto_line(veto: Veto) -> str:
    how = "possible, not preferred" if veto.possible else "impossible"
    return f"{_place(veto.mask)} vetoed by {veto.provider} for {veto.resource}: {how}"


def places(affinity: Affinities) -> str:
    """Each member and its nodes."""
    return ", ".join(f"{member} on {where(hint.affinity)}" for member, hint in affinity.items())


def where(mask: NumaMask | None) -> str:
    """The nodes of a mask in words; None is "any node"."""
    return "any node" if mask is None else _place(mask)


def _node_list(mask: NumaMask | None) -> Json:
    return None if mask is None else list(bits(mask))


def hint_dict(hint: TopologyHint) -> Json:
    """A hint as JSON has it."""
    return {"nodes": _node_list(hint.affinity), "preferred": hint.preferred}


def as_dict(story: Explanation) -> Mapping[str, Json]:
    """An explanation as JSON has it."""
    weaker, short = story.weaker, story.shortfall
    return {
        "workload": story.workload,
        "members": list(story.members),
        "reason": story.reason,
        "policy": story.policy.value,
        "outlook": story.outlook.value,
        "hint": hint_dict(story.hint),
        "resources": [_view_dict(view) for view in story.resources],
        "vetoes": [
            {
                "nodes": _node_list(veto.mask),
                "provider": veto.provider,
                "resource": veto.resource,
                "possible": veto.possible,
            }
            for veto in story.vetoes
        ],
        "weaker": None if weaker is None else _weaker_dict(weaker),
        "shortfall": None if short is None else shortfall_dict(short),
    }


def _view_dict(view: ResourceView) -> Json:
    return {
        "provider": view.provider,
        "resource": view.resource,
        "wanted": view.wanted,
        "free": {str(node): amount for node, amount in sorted(view.free.items())},
        "allocatable": {str(node): amount for node, amount in sorted(view.allocatable.items())},
        "possible": [_node_list(mask) for mask in view.possible],
        "preferred": [_node_list(mask) for mask in view.preferred],
    }


def _weaker_dict(weaker: WeakerFit) -> Json:
    places: dict[str, Json] = {member: hint_dict(hint) for member, hint in weaker.affinity.items()}
    return {"policy": weaker.policy.value, "affinity": places}


def shortfall_dict(short: Shortfall) -> Json:
    """A shortfall as JSON has it."""
    return {
        "resource": short.resource,
        "wanted": short.wanted,
        "free": short.free,
        "nodes": _node_list(short.nodes),
        "reason": short.reason,
        "detail": short.detail,
    }
