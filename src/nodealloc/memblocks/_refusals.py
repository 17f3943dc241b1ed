"""Why a demand was not granted, in figures and in a sentence."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from nodealloc._units import bytes_text
from nodealloc.idset import format_list
from nodealloc.topology import Shortfall

if TYPE_CHECKING:
    from nodealloc.memblocks._static_policy import PlacementQuery, Unplaced
    from nodealloc.topology import NumaMask

__all__ = ["refusal"]


def refusal(query: PlacementQuery, why: Unplaced, /) -> Shortfall:
    """A shortfall that tells what never fits from what only does not fit now."""
    nodes = query.layout.mask if why.nodes is None else why.nodes & query.layout.mask
    row, wanted = _shortest(query, nodes)
    resource = query.layout.resources[row]
    free = _free(query, row, nodes)
    tell = partial(_detail, query, why, resource, wanted, free)
    if query.layout.sets is None:
        # Of many nodes, what would fit instead may take more work than may be spent: that is an answer too.
        return Shortfall(resource=resource, wanted=wanted, free=free, nodes=why.nodes, detail=tell())
    return Shortfall.told_by(tell, resource=resource, wanted=wanted, free=free, nodes=why.nodes)


def _detail(query: PlacementQuery, why: Unplaced, resource: str, wanted: int, free: int) -> str:
    where = "any NUMA node" if why.nodes is None else f"NUMA nodes {format_list(why.nodes)}"
    return (
        f"{resource}: {bytes_text(wanted)} asked on {where}, {bytes_text(free)} free there; "
        f"{why.text}; {_remedy(query, why)}"
    )


def _free(query: PlacementQuery, row: int, nodes: NumaMask) -> int:
    figures = query.state.free[row]
    return sum([figures[column] for column in query.layout.columns[nodes]])


def _shortest(query: PlacementQuery, nodes: NumaMask) -> tuple[int, int]:
    """The first demand that the nodes cannot serve, else the last one."""
    for row, size in query.demand:
        if _free(query, row, nodes) < size:
            return row, size
    return query.demand[-1]


def _remedy(query: PlacementQuery, why: Unplaced) -> str:
    layout, state = query.layout, query.state
    narrowest = layout.narrowest(query.demand)
    if narrowest > len(layout.nodes):
        row, _ = next(
            (one for one in query.demand if layout.sum(one[0], layout.mask) < one[1]), query.demand[-1]
        )
        most = layout.sum(row, layout.mask)
        return f"it never fits: all nodes together can grant {bytes_text(most)} of {layout.resources[row]}"
    # Without an affinity all hints have been looked at already, in vain.
    found = () if why.nodes is None else query.some(4)
    if found:
        listed = ", ".join(format_list(hint.affinity or 0) for hint in found)
        return f"it would fit on NUMA nodes {listed}; let the other resources go there"
    used = layout.mask & ~state.shape.unused
    single = format_list(used & ~state.shape.grouped)
    text = f"it fits an idle machine on {narrowest} NUMA node{'s' if narrowest > 1 else ''}"
    if narrowest > 1 and single:
        return f"{text}, but allocations on single nodes keep {single} out of any group: release those"
    return f"{text}: release what is held on {format_list(used)}"
