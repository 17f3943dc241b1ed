"""Every set of up to eight NUMA nodes as a bit of one integer, and hints that are listed as such bits.

What is asked of all sets is then answered for all of them at once, by a few
operations of whole integers: which hold enough, which lie inside some nodes,
which do two resources have in common, which is the best.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import accumulate, compress
from typing import Final, NamedTuple, TypeAlias, cast, final, overload

from nodealloc._typed import typed, typed_on_error
from nodealloc.topology._counted import node_masks
from nodealloc.topology._masks import NumaMask, TopologyHint

__all__ = ["ListedHints", "NodeSets"]

_Slice: TypeAlias = "slice[int | None, int | None, int | None]"

_BYTE: Final = 8
"""Each bit stands in a byte of its own, so that bytes and bits turn into each other without a loop."""
_SMALL: Final = 1 << 15
"""Amounts that add up in two bytes; larger ones have eight."""
_KNOWN: Final = 1024
"""Answers that are kept; on eight nodes there are more, of half a kilobyte each."""


class _Worked(dict[int, int]):
    """Bits by set of nodes, or by lanes of sets, worked out when first asked for."""

    __slots__ = ("_work",)

    def __init__(self, work: Callable[[NumaMask], int]) -> None:
        super().__init__()
        self._work = work

    def __missing__(self, asked: int) -> int:
        if len(self) >= _KNOWN:
            self.clear()
        found = self[asked] = self._work(asked)
        return found


@final
class NodeSets:
    """Every set of some nodes, at most `LISTED_NODES`; make it by `of`, which keeps it.

    Sets have places: narrow ones first, of one width the numerically lower
    first, which is the order in which the merge likes them. Machines whose node
    ids are below 8 have the places of all such ids, so that their bits mean the same.

    Attributes:
        nodes: The nodes, ascending.
        every: Bits of all sets.
        masks: The set of each place.
        bit: The bit of each set.
        containing: Bits of the sets that contain all of some nodes.
        within: Bits of the sets that have none but some nodes.
        widths: Bits of the sets of so many nodes, from 0 to one more than there are.
        up_to: Bits of the sets of at most so many nodes.
    """

    __slots__ = (
        "_kubelets",
        "_lanes",
        "_length",
        "_own",
        "_standing",
        "bit",
        "containing",
        "every",
        "masks",
        "nodes",
        "up_to",
        "widths",
        "within",
    )

    @typed
    def __init__(self, nodes: tuple[int, ...]) -> None:
        self.nodes: tuple[int, ...] = tuple(nodes)
        own = node_masks(self.nodes)
        is_small = not nodes or nodes[-1] < _BYTE
        self.masks: tuple[NumaMask, ...] = _small_masks() if is_small else tuple(sorted(own, key=_by_width))
        place = {mask: place for place, mask in enumerate(self.masks)}
        self.bit: dict[NumaMask, int] = {mask: 1 << _BYTE * place[mask] for mask in own}
        self.every: int = sum(self.bit.values())
        own_bits = self.bit.items()
        self.within: _Worked = _Worked(lambda mask: sum([bit for one, bit in own_bits if not one & ~mask]))
        self.containing: _Worked = _Worked(
            lambda mask: sum([bit for one, bit in own_bits if not mask & ~one])
        )
        self.widths: list[int] = [0] * (len(nodes) + 2)
        for mask, one in self.bit.items():
            self.widths[mask.bit_count()] |= one
        self.up_to: list[int] = [*accumulate(self.widths)]
        # In the kubelet's order each set's place, and what it is as a hint: none, not preferred, preferred.
        self._kubelets = [
            (place[mask], (None, TopologyHint(mask, preferred=False), TopologyHint(mask, preferred=True)))
            for mask in own
        ]
        self._length = -(-self.every.bit_length() // _BYTE)
        self._own = sorted(own, key=place.__getitem__)
        # By the size of a lane in bytes: lanes of the sets with any of some nodes; bits of the sets of lanes.
        self._lanes = {size: _Worked(partial(self._lane, size)) for size in (2, 8)}
        self._standing = {size: _Worked(partial(self._stand, size)) for size in (2, 8)}

    @classmethod
    @typed_on_error
    def of(cls, nodes: tuple[int, ...], /) -> NodeSets:
        """The sets of these nodes, ascending; raises `ConfigurationError` for more than `LISTED_NODES`."""
        return _node_sets(tuple(nodes))

    def lowest(self, sets: int, /) -> NumaMask:
        """The narrowest of some sets, of several the numerically lowest; 0 without any."""
        return self.masks[(sets & -sets).bit_length() >> 3] if sets else 0

    def holding(self, amounts: Sequence[tuple[NumaMask, int]], wanted: int, /) -> int:
        """Bits of the sets that hold so many units.

        All sets are added up at once: an integer has one lane for each, and
        what is left over `wanted` shows in the lane's top bit.

        Args:
            amounts: How many are where; units near several nodes count once for a set
                with any of them. All together are fewer than 2⁶³.
            wanted: How many are asked for.
        """
        size = 2 if wanted < _SMALL and sum([amount for _, amount in amounts]) < _SMALL else 8
        lanes, top = self._lanes[size], 8 * size - 1
        if wanted >> top:
            return 0
        room = lanes[0] * ((1 << top) - wanted)
        for mask, amount in amounts:
            room += lanes[mask] * amount
        return self._standing[size][room >> top & lanes[0]]

    def counting(self, parts: Sequence[tuple[NumaMask, int]], /) -> Callable[[int, int, int], int]:
        """Tells bits of the sets with enough ids, where they do not move and only which are free changes.

        Args:
            parts: Nodes, and the ids near them as a mask.

        Returns:
            A function of how many ids are asked for (at least 1), of those that are free, and of
            those that count besides, also where they are free: both as masks.
        """
        size = 2 if sum([ids.bit_count() for _, ids in parts]) < _SMALL // 2 else 8
        top, every, standing = 8 * size - 1, self._lanes[size][0], self._standing[size]
        lacking = _Worked(lambda wanted: every * ((1 << top) - wanted))
        lanes = [(_Worked(self._lanes[size][mask].__mul__), ids) for mask, ids in parts]

        def holding(wanted: int, free: int, besides: int) -> int:
            if wanted >> top:
                return 0
            room = lacking[wanted]
            for times, ids in lanes:
                room += times[(ids & free).bit_count()]
            if besides:
                for times, ids in lanes:
                    room += times[(ids & besides).bit_count()]
            return standing[room >> top & every]

        return holding

    def _lane(self, size: int, mask: NumaMask) -> int:
        """Sets with any of some nodes, so many bytes apart; all sets for 0."""
        spread = bytearray(len(self._own) * size)
        spread[::size] = bytes([1 if one & mask or not mask else 0 for one in self._own])
        return int.from_bytes(spread, "little")

    def _stand(self, size: int, lanes: int) -> int:
        """Bits of the sets whose lanes are 1."""
        held = lanes.to_bytes(len(self._own) * size, "little")[::size]
        return sum([self.bit[mask] for mask in compress(self._own, held)])

    def holders(self, amounts: tuple[int, ...], /) -> Callable[[int], int]:
        """Tells bits of the sets that hold so much of amounts that do not change, one a node; it is kept."""
        return _thresholds(self.nodes, amounts).holding

    def hints(self, sets: int, preferred: int, /) -> Sequence[TopologyHint]:
        """Some sets as hints; preferred are those of them that are in `preferred`."""
        made = ListedHints()
        made.of, made.sets, made.preferred = self, sets, sets & preferred
        return made

    def listed(self, sets: int, preferred: int, /) -> list[TopologyHint]:
        """The same in the kubelet's order: small sets first, then by node ids."""
        kinds = (sets + preferred).to_bytes(self._length, "little")
        return [hint for place, hints in self._kubelets if (hint := hints[kinds[place]])]


@final
class ListedHints(Sequence[TopologyHint]):
    """Hints that are listed, as bits of `NodeSets`: a sequence in the kubelet's order, which nobody changes.

    Attributes:
        of: The sets that there are.
        sets: Bits of those that are hints.
        preferred: Bits of those that are preferred.
    """

    __slots__ = ("of", "preferred", "sets")

    of: NodeSets
    sets: int
    preferred: int

    def __iter__(self) -> Iterator[TopologyHint]:
        return iter(self.of.listed(self.sets, self.preferred))

    @overload
    def __getitem__(self, place: int, /) -> TopologyHint: ...
    @overload
    def __getitem__(self, place: _Slice, /) -> Sequence[TopologyHint]: ...
    def __getitem__(self, place: int | _Slice, /) -> TopologyHint | Sequence[TopologyHint]:
        return self.of.listed(self.sets, self.preferred)[place]

    def __len__(self) -> int:
        return self.sets.bit_count()

    def __eq__(self, other: object, /) -> bool:
        """Whether another sequence lists the same hints in the same order."""
        if not isinstance(other, ListedHints | list | tuple):
            return NotImplemented
        return list(self) == list(cast("Sequence[object]", other))

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(list(self))

    def __reduce__(self) -> tuple[object, ...]:
        return _again, (self.of.nodes, self.sets, self.preferred)


def _again(nodes: tuple[int, ...], sets: int, preferred: int) -> Sequence[TopologyHint]:
    return NodeSets.of(nodes).hints(sets, preferred)


class _Thresholds(NamedTuple):
    """What each set holds of amounts that do not change.

    Attributes:
        sums: What sets hold, ascending.
        holders: Of each sum bits of the sets that hold so much; behind them 0.
    """

    sums: Sequence[int]
    holders: Sequence[int]

    def holding(self, wanted: int, /) -> int:
        """Bits of the sets that hold so much."""
        return self.holders[bisect_left(self.sums, wanted)]


_node_sets = lru_cache(maxsize=64)(NodeSets)


@lru_cache(maxsize=1)
def _small_masks() -> tuple[NumaMask, ...]:
    return tuple(sorted(range(1, 1 << _BYTE), key=_by_width))


@lru_cache(maxsize=256)
def _thresholds(nodes: tuple[int, ...], amounts: tuple[int, ...]) -> _Thresholds:
    sets, held = NodeSets.of(nodes), {0: 0}
    here = {1 << node: amount for node, amount in zip(nodes, amounts, strict=True)}
    for mask in sets.bit:  # a set stands behind its subsets
        low = mask & -mask
        held[mask] = held[mask ^ low] + here[low]
    largest_first = sorted(sets.bit, key=held.__getitem__, reverse=True)
    holders = [0, *accumulate([sets.bit[mask] for mask in largest_first])]
    return _Thresholds([held[mask] for mask in reversed(largest_first)], holders[::-1])


def _by_width(mask: NumaMask) -> tuple[int, NumaMask]:
    return mask.bit_count(), mask
