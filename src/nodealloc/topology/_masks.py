"""Values only: a set of NUMA nodes as an integer, and one way to place a request."""

from __future__ import annotations

from typing import NamedTuple, Self, TypeAlias

from nodealloc._arguments import wrong

__all__ = ["NumaMask", "TopologyHint"]

NumaMask: TypeAlias = int
"""A set of NUMA nodes as an integer: bit *n* stands for node *n*."""


class _Hint(NamedTuple):
    affinity: NumaMask | None
    preferred: bool


class TopologyHint(_Hint):
    """One way to place a request: on these NUMA nodes, and whether that is good.

    Attributes:
        affinity: Nodes as a mask, never 0; None means "any node".
        preferred: True when no narrower set of nodes could ever serve the request.

    Raises:
        ConfigurationError: The affinity is no mask of at least one node, such as
            `NodeSet("0-1").mask`, or `preferred` is neither True nor False.
    """

    __slots__ = ()

    def __new__(cls, affinity: NumaMask | None, preferred: bool) -> Self:
        """Looks at what is given by its class, since hints are made by the thousand."""
        if affinity is not None and (affinity.__class__ is not int or affinity <= 0):
            expected = "a mask of one node or more, such as NodeSet('0-1').mask; None for any node"
            raise wrong("TopologyHint, affinity", affinity, expected)
        if preferred.__class__ is not bool:
            raise wrong("TopologyHint, preferred", preferred, "True or False")
        return _Hint.__new__(cls, affinity, preferred)
