"""Decisions of the static policy: which groups of nodes could serve, and which one does.

A node serves either allocations of its own or those of one group of nodes,
never both and never two groups: otherwise its neighbours would take a group's
memory from under it.
"""

from __future__ import annotations

from collections.abc import Sequence

from nodealloc import _attrs as attrs
from nodealloc.idset import bits
from nodealloc.memblocks._layout import Demand, Layout
from nodealloc.memblocks._options import MemoryOptions
from nodealloc.memblocks._state import Left, MemoryState
from nodealloc.topology import CountedHints, NodeSets, NumaMask, TopologyHint

__all__ = ["PlacementQuery", "Unplaced", "place"]


@attrs.frozen
class PlacementQuery:
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
        columns = self.layout.columns[nodes]
        for row, size in self.demand:
            figures = self.state.free[row]
            if (figures[columns[0]] if len(columns) == 1 else sum([figures[at] for at in columns])) < size:
                return False
        return True

    def cut_by(self, nodes: NumaMask) -> bool:
        """Whether one of the nodes is in use, and not in exactly this group."""
        state = self.state
        for column in self.layout.columns[nodes]:
            if state.assignments[column] and state.groups[column] != nodes:
                return True
        return False

    def hints(self) -> Sequence[TopologyHint] | CountedHints:
        """Sets of nodes that can serve now, by size, then by ids; counted where the machine has many nodes.

        Preferred are those with no more nodes than could ever serve.
        """
        sets = self.layout.sets
        if sets is not None:
            ever = self.layout.serving(self.demand)
            return sets.hints(self._sets(sets, ever), sets.up_to[sets.lowest(ever).bit_count()])
        found = self._counted()
        return found if found.others or found.counts(found.nodes) else ()

    def some(self, count: int) -> Sequence[TopologyHint]:
        """The first of the hints, to be shown."""
        found = self.hints()
        return found.some(count) if isinstance(found, CountedHints) else found[:count] if found else ()

    def best(self, *, containing: NumaMask = 0) -> TopologyHint | None:
        """The narrowest of the hints that contain these nodes, of several the numerically smallest."""
        sets = self.layout.sets
        if sets is None:
            return self._counted().narrowest(containing=containing)
        ever = self.layout.serving(self.demand)
        nodes = sets.lowest(self._sets(sets, ever) & sets.containing[containing])
        return TopologyHint(nodes, nodes.bit_count() <= sets.lowest(ever).bit_count()) if nodes else None

    def _sets(self, sets: NodeSets, ever: int) -> int:
        """Bits of the sets that can serve now, out of those that could ever.

        A set of two and more unused nodes serves what it could ever serve, so that
        only single nodes and groups in use are looked up in the state.
        """
        unused, grouped, _ = self.state.shape
        found = sets.within[self._singles(grouped)] & sets.widths[1]
        if unused & (unused - 1):
            found |= ever & sets.within[unused] & ~sets.widths[1]
        for group in self._groups() if grouped else ():
            found |= sets.bit[group]
        return found

    def _counted(self) -> CountedHints:
        """Unused nodes by what they hold, and beside them nodes and groups that are in use."""
        unused, grouped, _ = self.state.shape
        narrowest = self.layout.narrowest(self.demand)
        groups = [*_alone(self._singles(grouped) & ~unused), *self._groups()]
        others = tuple([TopologyHint(group, group.bit_count() <= narrowest) for group in groups])
        return self.layout.counted(self.demand, unused, others, narrowest)

    def _groups(self) -> list[NumaMask]:
        """Groups in use that serve."""
        return [group for group in self.state.shape.groups if self.serves(group) and not self.cut_by(group)]

    def _singles(self, grouped: NumaMask) -> NumaMask:
        """Nodes that serve by themselves, none of them in a group."""
        layout = self.layout
        able = layout.mask if self.left else layout.nodes_with(self.state.free, self.demand)
        able &= ~grouped
        return sum([one for one in _alone(able) if self.serves(one)]) if self.left else able

    def serves(self, nodes: NumaMask) -> bool:
        """Whether the nodes have the free bytes, together with what may be reused there."""
        if self.satisfied_by(nodes):
            return True
        return (
            bool(self.left)
            and all(
                sum([self.state.free[row][column] for column in self.layout.columns[nodes]])
                + self.left.get((nodes, self.layout.resources[row]), 0)
                >= size
                for row, size in self.demand
            )
            and self.layout.suffices(nodes, self.demand)
        )


def _alone(nodes: NumaMask) -> list[NumaMask]:
    """Each of some nodes by itself."""
    return [1 << node for node in bits(nodes)]


@attrs.frozen
class Unplaced:
    """Why no group was found.

    Attributes:
        nodes: The merged affinity, or None for any node.
        text: The reason, to follow the amounts in a sentence.
    """

    nodes: NumaMask | None
    text: str


def place(query: PlacementQuery, affinity: TopologyHint, options: MemoryOptions) -> NumaMask | Unplaced:
    """The group of nodes that serves a demand under a merged affinity.

    The affinity itself where it has the bytes; else the narrowest candidate
    that contains it; for an affinity of None the narrowest of all.

    Source: kubelet ``cm/memorymanager/policy_static.go``; `MemoryOptions` are ours.
    """
    found = _placed(query, affinity, options)
    if options.fall_back and isinstance(found, Unplaced) and not affinity.preferred:
        anywhere = query.best()
        if anywhere is not None and anywhere.affinity is not None:
            return anywhere.affinity
    return found


def _placed(query: PlacementQuery, affinity: TopologyHint, options: MemoryOptions) -> NumaMask | Unplaced:
    nodes = affinity.affinity
    if nodes is None:
        return _chosen(query.best(), affinity, "no group of NUMA nodes has them free")
    nodes &= query.layout.mask
    if not nodes:
        return Unplaced(affinity.affinity, "the merged affinity names no node of this machine")
    # A kubelet, which is not strict, overlooks here what may be reused: it then looks for a wider group.
    serves = query.serves(nodes) and not query.cut_by(nodes) if options.strict else query.satisfied_by(nodes)
    if not serves:
        wider = query.best(containing=nodes)
        return _chosen(wider, affinity, "no group of NUMA nodes around the merged affinity has them free")
    if nodes & (nodes - 1) and query.cut_by(nodes):
        return Unplaced(
            nodes, "the merged affinity cuts through nodes or groups that serve other allocations"
        )
    return nodes


def _chosen(hint: TopologyHint | None, asked: TopologyHint, otherwise: str) -> NumaMask | Unplaced:
    if hint is None or hint.affinity is None:
        return Unplaced(asked.affinity, otherwise)
    if asked.preferred and not hint.preferred:
        return Unplaced(
            asked.affinity,
            f"only more nodes than would ever be needed have them free: mask {hint.affinity:#x}",
        )
    return hint.affinity
