"""On which NUMA nodes a number of CPUs fits: the hints of the CPU policy."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from nodealloc.cpuset._layout import CpuLayout
from nodealloc.topology import LISTED_NODES, CountedHints, Need, NodeSets, NumaMask, TopologyHint

__all__ = ["HintTable"]


class HintTable:
    """Where a number of CPUs fits on a machine: hints that are listed, on many nodes counted.

    May be shared between threads.

    Source: kubelet ``cm/cpumanager/policy_static.go``. Nodes without CPUs are
    in no mask. With more than `LISTED_NODES` nodes the hints are the same and
    are counted (`CountedHints`).
    """

    def __init__(self, layout: CpuLayout, /, *, align_by_socket: bool = False) -> None:
        self._layout = layout
        largest_first = sorted((node.bit_count() for node in layout.nodes), reverse=True)
        self._capacity = list(accumulate(largest_first))
        self._align = align_by_socket
        self._singles = [1 << node for node in layout.node_ids]
        self._sets = NodeSets.of(layout.node_ids) if len(layout.nodes) <= LISTED_NODES else None
        places = [*zip(self._singles, layout.nodes, strict=True)]
        self._holding = self._sets.counting(places) if self._sets else None
        # By the request; filled when first asked for, and the same whoever fills it.
        self._judged: dict[int, int] = {}

    def hints(
        self, available: int, request: int, /, *, reusable: int = 0
    ) -> Sequence[TopologyHint] | CountedHints:
        """Where `request` CPUs fit.

        Args:
            available: Free CPUs, as a mask.
            request: Whole CPUs, at least 1.
            reusable: CPUs that the asker's workload holds already; a hint
                contains all their nodes.

        Returns:
            Hints in the kubelet's order; preferred are those of the least
            number of nodes that could hold the request on an empty machine
            (and, with `align_by_socket`, those on the least number of sockets).
        """
        sets, holding = self._sets, self._holding
        if sets is None or holding is None:
            return self._counted(available, request, reusable)
        fitting = holding(request, available, reusable)
        if reusable:
            fitting &= sets.containing[self._layout.nodes_of(reusable)]
        preferred = self._judged.get(request)
        if preferred is None:
            preferred = self._preferred(sets, self._narrowest(request))
            if request <= self._capacity[-1]:
                self._judged[request] = preferred
        return sets.hints(fitting, preferred)

    def _preferred(self, sets: NodeSets, narrowest: int) -> int:
        """Sets that are preferred by requests that need so many nodes at least."""
        sockets = self._least_sockets(narrowest)
        if not sockets:
            return sets.widths[narrowest]
        parts = _sockets(self._layout)
        aligned = [bit for mask, bit in sets.bit.items() if _touched(parts, mask) == sockets]
        return sets.widths[narrowest] | sum(aligned)

    def _counted(self, available: int, request: int, reusable: int) -> list[TopologyHint] | CountedHints:
        """The same where there are too many masks to list."""
        layout, narrowest = self._layout, self._narrowest(request)
        amounts: list[tuple[NumaMask, int]] = []
        needs: list[Need] = []
        room = 0
        for single, cpus in zip(self._singles, layout.nodes, strict=True):
            free = (cpus & available).bit_count()
            held = (cpus & reusable).bit_count() if reusable else 0
            if held:
                needs.append(Need.touching(single))
            if free + held:
                amounts.append((single, free + held))
                room += free + held
        if room < request:
            return []
        needs.append(Need(wanted=request, amounts=tuple(amounts)))
        sockets = self._least_sockets(narrowest)
        return CountedHints(
            nodes=sum(self._singles),
            needs=tuple(needs),
            preferred_width=narrowest,
            parts=_sockets(layout) if sockets else (),
            preferred_parts=sockets,
        )

    def _least_sockets(self, narrowest: int) -> int:
        """With `align_by_socket` the least number of sockets that so many nodes stand on; else 0."""
        per_socket = len(self._layout.nodes) // len(self._layout.sockets)
        return -(-narrowest // per_socket) if self._align and per_socket else 0

    def _narrowest(self, request: int) -> int:
        """Least number of nodes whose CPUs, free or not, could hold the request."""
        for size, capacity in enumerate(self._capacity, start=1):
            if capacity >= request:
                return size
        return len(self._capacity)


def _sockets(layout: CpuLayout) -> tuple[NumaMask, ...]:
    """The nodes of each socket, as masks."""
    return tuple([sum([1 << layout.node_ids[node] for node in nodes]) for nodes in layout.socket_nodes])


def _touched(parts: Sequence[NumaMask], mask: NumaMask) -> int:
    return sum([1 for part in parts if part & mask])
