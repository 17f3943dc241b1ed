"""On which NUMA nodes a number of CPUs fits: the hints of the CPU policy."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, compress

from nodealloc.cpuset._layout import CpuLayout
from nodealloc.topology import LISTED_NODES, CountedHints, Need, NumaMask, TopologyHint, node_masks

__all__ = ["HintTable"]


class HintTable:
    """Where a number of CPUs fits on a machine: hints that are listed, on many nodes counted.

    Lists have every mask of the NUMA nodes in the kubelet's order, to be filtered.

    Masks stand by size, then in lexicographic order of their node ids. Which of
    them hold enough free CPUs is decided for all at once: an integer has one
    lane for each mask, node by node the free CPUs are added to the lanes that
    contain the node, and what is left over the request shows in the top bit of
    a lane. May be shared between threads.

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
        # By the least number of nodes; filled when first asked for, and the same whoever fills it.
        self._judged: dict[int, list[TopologyHint]] = {}
        if len(layout.nodes) > LISTED_NODES:
            self._lanes = 0
            return
        masks = node_masks(layout.node_ids)
        self._lanes = len(masks)
        self._lane_bytes = 2 if 2 * layout.cpus.bit_count() < 1 << 14 else 4
        self._node_lanes = [self._lane_mask([mask >> node & 1 for mask in masks]) for node in layout.node_ids]
        self._ones = self._lane_mask([1] * self._lanes)
        self._sizes = [mask.bit_count() for mask in masks]
        parts = _sockets(layout)
        self._sockets = [_touched(parts, mask) for mask in masks] if align_by_socket else []
        self._plain = [TopologyHint(mask, preferred=False) for mask in masks]

    def hints(
        self, available: int, request: int, /, *, reusable: int = 0
    ) -> list[TopologyHint] | CountedHints:
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
        if not self._lanes:
            return self._counted(available, request, reusable)
        if self._lanes == 1:
            fits = (available & self._layout.cpus).bit_count() + reusable.bit_count() >= request
            return self._judgement(1)[:] if fits else []
        top = 8 * self._lane_bytes - 1
        if request >= 1 << top:
            return []
        room = self._ones * ((1 << top) - request)
        must = self._ones
        for node, lanes in zip(self._layout.nodes, self._node_lanes, strict=True):
            room += lanes * (node & available).bit_count()
            held = (node & reusable).bit_count() if reusable else 0
            if held:
                room += lanes * held
                must &= lanes
        fitting = room >> top & must
        if not fitting:
            return []
        chosen = fitting.to_bytes(self._lanes * self._lane_bytes, "little")[:: self._lane_bytes]
        return list(compress(self._judgement(self._narrowest(request)), chosen))

    def _judgement(self, narrowest: int) -> list[TopologyHint]:
        """All masks as hints, for requests that need so many nodes at least."""
        judged = self._judged.get(narrowest)
        if judged is None:
            sockets = self._least_sockets(narrowest)
            good = [size == narrowest for size in self._sizes]
            if sockets:
                good = [one or number == sockets for one, number in zip(good, self._sockets, strict=True)]
            judged = self._judged[narrowest] = [
                TopologyHint(hint.affinity, preferred=True) if one else hint
                for hint, one in zip(self._plain, good, strict=True)
            ]
        return judged

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

    def _lane_mask(self, values: Sequence[int]) -> int:
        width = self._lane_bytes
        return int.from_bytes(b"".join(value.to_bytes(width, "little") for value in values), "little")


def _sockets(layout: CpuLayout) -> tuple[NumaMask, ...]:
    """The nodes of each socket, as masks."""
    return tuple([sum([1 << layout.node_ids[node] for node in nodes]) for nodes in layout.socket_nodes])


def _touched(parts: Sequence[NumaMask], mask: NumaMask) -> int:
    return sum([1 for part in parts if part & mask])
