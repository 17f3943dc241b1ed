"""Of some masks those that are nearest to a width."""

from __future__ import annotations

from collections.abc import Iterable

from nodealloc.topology._hints import NumaMask

__all__ = ["narrowest", "nearest"]


def nearest(masks: Iterable[NumaMask], target: int) -> tuple[NumaMask, ...]:
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
    ties.sort()
    return tuple(ties)


def narrowest(masks: Iterable[NumaMask]) -> tuple[NumaMask, ...]:
    """Of some masks, at least one, those with the fewest nodes, ascending."""
    least = 1 << 62
    ties: list[NumaMask] = []
    for mask in masks:
        width = mask.bit_count()
        if width < least:
            least, ties = width, [mask]
        elif width == least:
            ties.append(mask)
    ties.sort()
    return tuple(ties)
