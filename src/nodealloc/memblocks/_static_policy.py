"""Decisions of the static policy: which groups of nodes could serve, and which one does.

A node serves either allocations of its own or those of one group of nodes,
never both and never two groups: otherwise its neighbours would take a group's
memory from under it.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from nodealloc.memblocks._groups import family, hint_pair, in_order, wide_hints
from nodealloc.memblocks._layout import Demand, Layout
from nodealloc.memblocks._options import MemoryOptions
from nodealloc.memblocks._state import Left, MemoryState
from nodealloc.topology import NumaMask, TopologyHint

__all__ = ["Question", "Why", "place"]


@attrs.frozen
class Question:
    """One demand, put to one state.

    Attributes:
        layout: What the nodes could grant.
        state: What they grant now.
        demand: What is asked; not empty.
        left: What ended members of the same workload left to reuse.
    """

    layout: Layout
    state: MemoryState
    demand: Demand
    left: Left

    def satisfied_by(self, nodes: NumaMask) -> bool:
        """Whether the nodes have the free bytes, reuse left out."""
        columns = self.layout.columns(nodes)
        for row, size in self.demand:
            figures = self.state.free[row]
            if (figures[columns[0]] if len(columns) == 1 else sum([figures[at] for at in columns])) < size:
                return False
        return True

    def cut_by(self, nodes: NumaMask) -> bool:
        """Whether one of the nodes is in use, and not in exactly this group."""
        state = self.state
        for column in self.layout.columns(nodes):
            if state.assignments[column] and state.groups[column] != nodes:
                return True
        return False

    def candidates(self) -> Sequence[NumaMask]:
        """Sets of nodes that can serve now, by size, then by ids."""
        return [*self._singles(), *self.wide()]

    def wide(self) -> Sequence[NumaMask]:
        """Those of two and more nodes.

        A set of unused nodes serves what it could ever serve, so that only
        groups in use are looked up in the state.
        """
        shape = self.state.shape
        unused = family(self.layout.considered(self.demand) & shape.unused)
        wide = self.layout.fitting(unused, self.demand)
        if shape.groups:
            groups = [group for group in shape.groups if self.serves(group) and not self.cut_by(group)]
            wide = sorted([*wide, *groups], key=in_order) if groups else wide
        return wide

    def hints(self) -> Sequence[TopologyHint]:
        """One hint for each candidate; preferred where no fewer nodes could ever serve."""
        layout, shape = self.layout, self.state.shape
        if not shape.groups and layout.each_serves(self.demand):
            unused = wide_hints(layout.considered(self.demand) & shape.unused)
            return (*[hint_pair(mask)[1] for mask in self._singles()], *unused)
        narrowest = layout.narrowest(self.demand)
        return [hint_pair(mask)[mask.bit_count() <= narrowest] for mask in self.candidates()]

    def best(self, *, containing: NumaMask = 0) -> TopologyHint | None:
        """The narrowest candidate that contains these nodes, of several the numerically smallest."""
        single = next((mask for mask in self._singles() if not containing & ~mask), None)
        if single is not None:
            return hint_pair(single)[1]
        found = [mask for mask in self.wide() if not containing & ~mask]
        if not found:
            return None
        mask = min(found, key=_narrow)
        return hint_pair(mask)[mask.bit_count() <= self.layout.narrowest(self.demand)]

    def _singles(self) -> list[NumaMask]:
        singles, grouped = self.layout.singles, self.state.shape.grouped
        if self.left:
            return [mask for mask in singles if not mask & grouped and self.serves(mask)]
        able = self.layout.nodes_with(self.state.free, self.demand) & ~grouped
        return [mask for mask in singles if mask & able]

    def serves(self, nodes: NumaMask) -> bool:
        """Whether the nodes have the free bytes, together with what may be reused there."""
        if self.satisfied_by(nodes):
            return True
        return (
            bool(self.left)
            and all(
                sum([self.state.free[row][column] for column in self.layout.columns(nodes)])
                + self.left.get((nodes, self.layout.resources[row]), 0)
                >= size
                for row, size in self.demand
            )
            and self.layout.suffices(nodes, self.demand)
        )


def _narrow(mask: NumaMask) -> tuple[int, NumaMask]:
    return mask.bit_count(), mask


@attrs.frozen
class Why:
    """Why no group was found.

    Attributes:
        nodes: The merged affinity, or None for any node.
        text: The reason, to follow the amounts in a sentence.
    """

    nodes: NumaMask | None
    text: str


def place(question: Question, affinity: TopologyHint, options: MemoryOptions) -> NumaMask | Why:
    """The group of nodes that serves a demand under a merged affinity.

    The affinity itself where it has the bytes; else the narrowest candidate
    that contains it; for an affinity of None the narrowest of all.

    Source: kubelet ``cm/memorymanager/policy_static.go``; `MemoryOptions` are ours.
    """
    found = _placed(question, affinity, options)
    if isinstance(found, Why) and options.fall_back and not affinity.preferred:
        anywhere = question.best()
        if anywhere is not None and anywhere.affinity is not None:
            return anywhere.affinity
    return found


def _placed(question: Question, affinity: TopologyHint, options: MemoryOptions) -> NumaMask | Why:
    nodes = affinity.affinity
    if nodes is None:
        return _chosen(question.best(), affinity, "no group of NUMA nodes has them free")
    nodes &= question.layout.mask
    if not nodes:
        return Why(affinity.affinity, "the merged affinity names no node of this machine")
    if options.strict:
        serves = question.serves(nodes) and not question.cut_by(nodes)
    else:
        # The kubelet overlooks here what may be reused: it then looks for a wider group.
        serves = question.satisfied_by(nodes)
    if not serves:
        wider = question.best(containing=nodes)
        return _chosen(wider, affinity, "no group of NUMA nodes around the merged affinity has them free")
    if nodes & (nodes - 1) and question.cut_by(nodes):
        return Why(nodes, "the merged affinity cuts through nodes or groups that serve other allocations")
    return nodes


def _chosen(hint: TopologyHint | None, asked: TopologyHint, otherwise: str) -> NumaMask | Why:
    if hint is None or hint.affinity is None:
        return Why(asked.affinity, otherwise)
    if asked.preferred and not hint.preferred:
        return Why(
            asked.affinity,
            f"only more nodes than would ever be needed have them free: mask {hint.affinity:#x}",
        )
    return hint.affinity
