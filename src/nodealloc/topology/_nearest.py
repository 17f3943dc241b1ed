"""Of some masks those that are nearest to a width, or whose nodes are closest."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from nodealloc.topology._hints import NumaMask, NumaTopology

__all__ = ["closest_of", "nearest"]


def nearest(masks: Iterable[NumaMask], target: int) -> list[NumaMask]:
    """The masks whose width is nearest to `target`, narrower ones first, ascending; 0 if all are empty."""
    nearest = 1 << 62
    ties: list[NumaMask] = [0]
    for mask in masks:
        width = mask.bit_count()
        distance = target - width if width <= target else width
        if distance < nearest and width:
            nearest = distance
            ties = [mask]
        elif distance == nearest and width:
            ties.append(mask)
    return sorted(ties)


def closest_of(ties: Sequence[NumaMask], numa: NumaTopology) -> NumaMask:
    """Of equally wide masks, ascending, the one whose nodes are closest to each other."""
    return min(ties, key=numa.spread)
