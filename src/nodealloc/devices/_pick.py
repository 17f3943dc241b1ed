"""Pure decisions: which devices exactly."""

from __future__ import annotations

from collections.abc import Callable

from nodealloc import _attrs as attrs
from nodealloc._arguments import wrong
from nodealloc._typed import typed_on_error
from nodealloc.devices._inventory import DeviceList
from nodealloc.idset import bits, lowest

__all__ = ["Prefer", "pick"]

Prefer = Callable[[int, int], int | None]
"""From (to choose from, settled already) to the devices that the plugin likes; None = not known."""


@attrs.define
class _Choice:
    """Devices taken so far, as a mask, and how many are still wanted."""

    wanted: int
    taken: int = 0

    def take(self, candidates: int) -> None:
        """Take from the candidates, lowest first, until there are enough."""
        chosen = lowest(candidates & ~self.taken, self.wanted)
        self.taken |= chosen
        self.wanted -= chosen.bit_count()


@typed_on_error
def pick(
    devices: DeviceList,
    wanted: int,
    /,
    *,
    available: int,
    reusable: int,
    affinity: int | None,
    prefer: Prefer,
) -> int | None:
    """Choose devices: reusable ones, then inside the affinity, then preferred, then lowest ids.

    Args:
        devices: The resource's devices.
        wanted: How many, at least 1.
        available: Free and healthy ones.
        reusable: Healthy ones that the workload holds already and may use again.
        affinity: NUMA nodes as a mask, or None for any.
        prefer: The plugin's advice. It is asked only where there is a choice
            left: among the devices inside the affinity while they are more
            than enough, else among the rest.

    Returns:
        A mask of exactly `wanted` devices, or None when there are too few.

    Raises:
        ConfigurationError: `wanted` is less than 1.

    Source: kubelet v1.32 ``cm/devicemanager/manager.go``, which takes any where
    this takes the lowest ids and those inside the affinity.
    """
    if wanted < 1:
        raise wrong("pick, wanted", wanted, "a whole number of devices, 1 or more")
    inside = 0
    for node in bits(affinity or 0):
        inside |= devices.by_node.get(node, 0)
    choice = _Choice(wanted)
    choice.take(reusable & inside)
    choice.take(reusable)
    available &= ~choice.taken
    if available.bit_count() < choice.wanted:
        return None
    if (available & inside).bit_count() <= choice.wanted:
        choice.take(available & inside)
        rest = available & ~choice.taken
        settled = choice.taken
        among = available | settled
    else:
        rest = available & inside
        settled = choice.taken
        among = rest | settled
    if 0 < choice.wanted < rest.bit_count():
        choice.take((prefer(among, settled) or 0) & rest)
    choice.take(rest & devices.placed)
    choice.take(rest)
    return choice.taken
