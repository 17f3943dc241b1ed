"""How bytes of a group spread over its nodes in the books.

The kernel alone decides on which node of a group a page lies; the books fill
nodes in ascending order. One row of figures goes in, another comes out.
"""

from __future__ import annotations

from collections.abc import Sequence

from nodealloc.memblocks._layout import Row

__all__ = ["give", "settle", "take"]


def take(free: Row, columns: Sequence[int], size: int, /) -> Row:
    """Take bytes from the first of the nodes that has some, then from the next.

    The nodes together must have them.
    """
    if len(columns) == 1:
        column = columns[0]
        return (*free[:column], free[column] - size, *free[column + 1 :])
    left = list(free)
    for column in columns:
        used = min(left[column], size)
        left[column] -= used
        size -= used
    return tuple(left)


def give(free: Row, usable: Row, columns: Sequence[int], size: int, /) -> Row:
    """Give bytes back to the first of the nodes that lacks some, then to the next.

    The nodes together must lack them. Not the inverse of `take` node by node
    where several owners share a group, but its inverse for the group.
    """
    if len(columns) == 1:
        column = columns[0]
        return (*free[:column], free[column] + size, *free[column + 1 :])
    left = list(free)
    for column in columns:
        returned = min(usable[column] - left[column], size)
        left[column] += returned
        size -= returned
    return tuple(left)


def settle(free: Row, usable: Row, columns: Sequence[int], change: int, /) -> Row:
    """Change what a group holds, and spread it anew as if taken at once.

    The outcome depends on what the group holds, not on how it came to it.
    """
    held = change + sum([usable[column] - free[column] for column in columns])
    left = list(free)
    for column in columns:
        used = min(usable[column], held)
        left[column] = usable[column] - used
        held -= used
    return tuple(left)
