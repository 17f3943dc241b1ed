"""Values only: what a planted bug is."""

from __future__ import annotations

from collections.abc import Callable

from nodealloc import _attrs as attrs
from nodealloc.testing.simulation.node._ports import NodePorts

__all__ = ["PlantedFault"]


@attrs.frozen(kw_only=True)
class PlantedFault:
    """A bug.

    Attributes:
        name: By which it is asked for.
        about: What the agent does wrong.
        spoil: The ports of an agent that has it. Is made anew for each node, so
            that it may remember from one life to the next.
    """

    name: str
    about: str
    spoil: Callable[[], Callable[[NodePorts], NodePorts]]
