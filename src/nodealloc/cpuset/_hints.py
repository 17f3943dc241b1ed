"""On which NUMA nodes a number of CPUs fits: the hints of the CPU policy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate, combinations, compress

from nodealloc.cpuset._layout import CpuLayout
from nodealloc.topology import TopologyHint

__all__ = ["HintTable"]

_MASKS = 65_535
"""Masks of one table: all of 16 nodes, the narrow ones of more."""


class HintTable:
    """Every mask of a machine's NUMA nodes in the kubelet's order, ready to be filtered.

    Masks stand by size, then in lexicographic order of their node ids. Which of
    them hold enough free CPUs is decided for all at once: an integer has one
    lane for each mask, node by node the free CPUs are added to the lanes that
    contain the node, and what is left over the request shows in the top bit of
    a lane. May be shared between threads.

    Source: kubelet ``cm/cpumanager/policy_static.go``. Nodes without CPUs are
    in no mask. With more than 16 nodes the masks of the narrowest sizes are
    made, as far as they number 65,535, and that of all nodes.
    """

    def __init__(self, layout: CpuLayout, /, *, align_by_socket: bool = False) -> None:
        self._layout = layout
        members = _members(len(layout.nodes))
        self._lanes = len(members)
        self._lane_bytes = 2 if 2 * layout.cpus.bit_count() < 1 << 14 else 4
        self._node_lanes = [
            self._lane_mask([int(node in chosen) for chosen in members]) for node in range(len(layout.nodes))
        ]
        self._ones = self._lane_mask([1] * self._lanes)
        largest_first = sorted((node.bit_count() for node in layout.nodes), reverse=True)
        self._capacity = list(accumulate(largest_first))
        masks = [sum(1 << layout.node_ids[node] for node in chosen) for chosen in members]
        self._sizes = [len(chosen) for chosen in members]
        self._sockets = [_sockets(layout, chosen) for chosen in members] if align_by_socket else []
        self._plain = [TopologyHint(mask, preferred=False) for mask in masks]
        # By the least number of nodes; filled when first asked for, and the same whoever fills it.
        self._judged: dict[int, list[TopologyHint]] = {}

    def hints(self, available: int, request: int, /, *, reusable: int = 0) -> list[TopologyHint]:
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
            layout = self._layout
            per_socket = len(layout.nodes) // len(layout.sockets)
            sockets = -(-narrowest // per_socket) if self._sockets and per_socket else 0
            good = [size == narrowest for size in self._sizes]
            if sockets:
                good = [one or number == sockets for one, number in zip(good, self._sockets, strict=True)]
            judged = self._judged[narrowest] = [
                TopologyHint(hint.affinity, preferred=True) if one else hint
                for hint, one in zip(self._plain, good, strict=True)
            ]
        return judged

    def _narrowest(self, request: int) -> int:
        """Least number of nodes whose CPUs, free or not, could hold the request."""
        for size, capacity in enumerate(self._capacity, start=1):
            if capacity >= request:
                return size
        return len(self._capacity)

    def _lane_mask(self, values: Sequence[int]) -> int:
        width = self._lane_bytes
        return int.from_bytes(b"".join(value.to_bytes(width, "little") for value in values), "little")


def _members(nodes: int) -> list[tuple[int, ...]]:
    """Sets of node indexes: by size, then in lexicographic order."""
    listed: list[tuple[int, ...]] = []
    for size in range(1, nodes + 1):
        if len(listed) + math.comb(nodes, size) > _MASKS:
            listed.append(tuple(range(nodes)))
            break
        listed += combinations(range(nodes), size)
    return listed


def _sockets(layout: CpuLayout, chosen: Sequence[int]) -> int:
    return len({socket for node in chosen for socket in layout.node_sockets[node]})
