"""Checkers of what stays behind: records of a pod that is gone, and files that are not whole."""

from __future__ import annotations

from nodealloc.testing.simulation.node._deeds import Deed, What
from nodealloc.testing.simulation.node._guarantee import Guarantee

__all__ = ["RecordsGoFirst", "StoreIsWhole"]

_ASIDE = (".nodealloc.damaged-", ".nodealloc.kept-")
"""How the names of files begin that a store found damaged and put aside."""


class RecordsGoFirst(Guarantee):
    """Guarantee 11: whoever says that a pod is gone has looked."""

    words = "when a pod is told gone the runtime has no sandbox and no container of it"

    def heard(self, deed: Deed, /) -> None:
        """Nothing of it is there but what came too late for anybody to wait for."""
        if deed.what is not What.GONE:
            return
        containers = self.outside.containers
        boxes = [one.record.id for one in containers.sandboxes if one.record.pod.uid == deed.uid]
        runs = [one.record.id for one in containers.reports if one.record.pod.uid == deed.uid]
        left = [one for one in (*boxes, *runs) if one not in containers.late | containers.strange]
        assert not left, f"{deed.uid} is told gone, and the runtime still has {', '.join(left)}"


class StoreIsWhole(Guarantee):
    """Guarantee 9: no kill, no power cut and no full disk tears what was stored."""

    words = "no file of the agent's store is ever found damaged"

    def heard(self, deed: Deed, /) -> None:
        """When a life has ended none was put aside."""
        if deed.what is What.KILLED:
            self.settled()

    def settled(self) -> None:
        """None is put aside."""
        damaged = [one for one in self.outside.files() if one.rpartition("/")[2].startswith(_ASIDE)]
        assert not damaged, f"{damaged[0]} was found damaged by the agent, and nothing but the agent wrote it"
