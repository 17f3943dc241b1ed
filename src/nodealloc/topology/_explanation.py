"""Values only: the long story of a refusal, in fields, in lines and as JSON has it."""

from __future__ import annotations

import enum
from collections.abc import Mapping

from nodealloc import _attrs as attrs
from nodealloc._frozen import Frozen, freeze
from nodealloc._units import amount_text
from nodealloc.idset import format_list
from nodealloc.podspec import Json
from nodealloc.topology._hints import NumaMask, TopologyHint
from nodealloc.topology._policy import PolicyName
from nodealloc.topology._ports import Shortfall
from nodealloc.topology._snapshot import Affinities
from nodealloc.topology._wording import (
    hint_dict,
    node_list,
    nodes_text,
    shortfall_dict,
    shortfall_line,
    where,
)

__all__ = ["Explanation", "Feasibility", "ResourceView", "Veto", "WeakerFit"]

_SHOWN = 4
"""Parts of one kind in the text; the fields have them all."""

_FEASIBILITY_WORDS: Mapping[str, str] = {
    "never-fits": "never fits here, not even on the emptied node",
    "never-preferred": "never fits here under this policy, not even on the emptied node",
    "no-room": "fits the emptied node; too little is free now",
    "not-preferred": "fits now, but not as preferred",
    "undecided": "not decided: given up after the counted work, with no proof that it does not fit",
    "unlucky-order": "fits now if earlier members leave the right nodes (option search-whole-pod)",
}


class Feasibility(enum.Enum):
    """Whether waiting, or a weaker policy, would help."""

    NEVER_FITS = "never-fits"
    """Not even the emptied node takes it under the weakest policy."""
    NEVER_PREFERRED = "never-preferred"
    """Not even the emptied node takes it under this policy; a weaker one would."""
    NO_ROOM = "no-room"
    """The emptied node takes it; now not even a weaker policy would."""
    NOT_PREFERRED = "not-preferred"
    """It fits now, but not as this policy wants it; a weaker one would let it in."""
    UNLUCKY_ORDER = "unlucky-order"
    """It fits now under this very policy; a search over the whole pod finds how."""
    UNDECIDED = "undecided"
    """Nobody knows: telling would take more work than may be spent on it."""


@attrs.frozen(kw_only=True)
class ResourceView:
    """One resource as it was asked for and found.

    Attributes:
        provider: Who manages it.
        resource: Its name.
        wanted: In the resource's unit; None when the provider reports nothing.
        free: Node id to what is free there; -1 for what has no node.
        allocatable: Node id to what could ever be granted there.
        possible: Masks that were hinted, ascending by width; None for "any node".
        preferred: Those among them that were preferred.
    """

    provider: str
    resource: str
    wanted: int | None = None
    free: Mapping[int, int] = attrs.field(factory=Frozen[int, int], validator=freeze)
    allocatable: Mapping[int, int] = attrs.field(factory=Frozen[int, int], validator=freeze)
    possible: tuple[NumaMask | None, ...] = ()
    preferred: tuple[NumaMask | None, ...] = ()


@attrs.frozen(kw_only=True)
class Veto:
    """Who kept a mask from being chosen.

    Attributes:
        mask: A mask that somebody preferred.
        provider: Who did not.
        resource: For which resource.
        possible: Whether it would at least have served (a hint, not preferred).
    """

    mask: NumaMask
    provider: str
    resource: str
    possible: bool


@attrs.frozen(kw_only=True)
class WeakerFit:
    """What a weaker policy would have done with the same node.

    Attributes:
        policy: The strictest weaker policy that lets the workload in.
        affinity: Member to its hint there.
    """

    policy: PolicyName
    affinity: Affinities


@attrs.frozen(kw_only=True)
class Explanation:
    """The long story of a refusal.

    Attributes:
        workload: Its key.
        members: Whose claims failed.
        reason: The kubelet's name.
        policy: By which the node goes.
        feasibility: Whether waiting or a weaker policy would help.
        hint: What the hints had merged to.
        resources: What was asked for, and what was free.
        vetoes: Which provider kept which mask from being chosen.
        weaker: What a weaker policy would have done, or None.
        shortfall: What the allocator said that did not grant, or None.
    """

    workload: str
    members: tuple[str, ...]
    reason: str
    policy: PolicyName
    feasibility: Feasibility
    hint: TopologyHint
    resources: tuple[ResourceView, ...]
    vetoes: tuple[Veto, ...]
    weaker: WeakerFit | None
    shortfall: Shortfall | None

    @property
    def text(self) -> str:
        """A few lines for people."""
        return "\n".join(lines(self))

    def as_dict(self) -> Mapping[str, Json]:
        """The same as JSON has it; masks are lists of node ids, None is null."""
        return as_dict(self)


def lines(story: Explanation) -> list[str]:
    """An explanation, a few lines long."""
    who = f"{story.workload}/{story.members[0]}" if len(story.members) == 1 else story.workload
    told = [
        f"{who}: {story.reason} under {story.policy.value}: {_FEASIBILITY_WORDS[story.feasibility.value]}"
    ]
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
    parts = [f"{amount_text(view.resource, amount)} on {nodes_text(mask)}" for amount, mask in nodes.items()]
    more = [f"more on {len(parts) - _SHOWN} other sets of nodes"] if len(parts) > _SHOWN else []
    return ", ".join(parts[:_SHOWN] + more) or "nothing"


def _veto_line(veto: Veto) -> str:
    how = "possible, not preferred" if veto.possible else "impossible"
    return f"{nodes_text(veto.mask)} vetoed by {veto.provider} for {veto.resource}: {how}"


def as_dict(story: Explanation) -> Mapping[str, Json]:
    """An explanation as JSON has it."""
    weaker, short = story.weaker, story.shortfall
    return {
        "workload": story.workload,
        "members": list(story.members),
        "reason": story.reason,
        "policy": story.policy.value,
        "feasibility": story.feasibility.value,
        "hint": hint_dict(story.hint),
        "resources": [_view_dict(view) for view in story.resources],
        "vetoes": [
            {
                "nodes": node_list(veto.mask),
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
        "possible": [node_list(mask) for mask in view.possible],
        "preferred": [node_list(mask) for mask in view.preferred],
    }


def _weaker_dict(weaker: WeakerFit) -> Json:
    places: dict[str, Json] = {member: hint_dict(hint) for member, hint in weaker.affinity.items()}
    return {"policy": weaker.policy.value, "affinity": places}
