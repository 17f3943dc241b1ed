"""Tables of a machine of at most eight NUMA nodes, made once for each set of nodes.

Every set of its nodes has a place: narrow sets first, of one width the numerically lower
first, which is the order in which the merge likes them. A hint is then one integer, and
what a whole list of hints says is theirs or-ed together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import compress
from typing import Final, TypeAlias, final

from nodealloc.idset import bits
from nodealloc.topology._masks import NumaMask, TopologyHint
from nodealloc.topology._outcome import Merged

__all__ = ["ANYWHERE", "FREE", "NEVER", "NODES", "PLACES", "Said", "SmallMachine"]

NODES: Final = 8
"""As many nodes as a kubelet takes."""

PLACES: Final = 1 << NODES
"""More than there are sets."""

NEVER: Final = PLACES * PLACES
"""Rank of no nodes, behind all others."""

ANYWHERE: Final = 1 << 62
"""Any node; above all nodes of such a machine."""

FREE: Final = Merged(TopologyHint(affinity=None, preferred=True), admit=True)
"""Any node, and that is preferred."""

_FEW: Final = 4
_DIGITS: Final = bytes.maketrans(b"01", b"\0\1")

Said: TypeAlias = dict[tuple[NumaMask | None, bool], int]


@final
class SmallMachine:
    """What the merge looks up about a machine with these nodes; nobody changes it.

    What a hint says has three parts, one bit a place in each: the set that it names; from
    `inside` up the sets inside that; from `good` up the set again if it is preferred. "Any
    node" names nothing, all sets are inside it, and preferred it has the bit behind the last place.

    Attributes:
        full: All nodes.
        masks: The set of each place; behind them, for "any node", all nodes.
        place: The place of each set; behind them, that of "any node".
        said: What each hint says, by its affinity and whether it is preferred.
        every: Bits of all sets.
        inside: By how many bits the second part is shifted.
        good: By how many bits the third part is shifted.
        widths: Bits of the sets of so many nodes.
        in_order: For a set whose width is best, by its place, bits of the sets of each width, the best first.
        nearness: The same as a rank of each set, `PLACES` times that of its width and its place; no nodes
            have `NEVER`.
        around: For each place bits of the sets that contain its set.
        preferred: The outcome of each place, preferred; the last is that of "any node", as in those below.
        tolerated: The same, not preferred but let in.
        refused: The same, not let in.
        offers: Under single-numa-node the node that each hint offers; 0 for none, `ANYWHERE` for any.
        alone: Under single-numa-node the outcome for a node, or for 0, which is any.
    """

    __slots__ = (
        "alone",
        "around",
        "every",
        "full",
        "good",
        "in_order",
        "inside",
        "masks",
        "nearness",
        "offers",
        "place",
        "preferred",
        "refused",
        "said",
        "tolerated",
        "widths",
    )

    def __init__(self, full: NumaMask) -> None:
        self.full: NumaMask = full
        own = sorted(_subsets(full), key=_by_width)
        self.masks: Sequence[NumaMask] = [*own, full]
        count = len(own)
        self.place: Mapping[NumaMask | None, int] = {mask: place for place, mask in enumerate([*own, None])}
        self.every: int = (1 << count) - 1
        self.inside: int = count
        self.good: int = 2 * count
        self.widths: list[int] = [0] * (full.bit_count() + 1)
        for place, mask in enumerate(own):
            self.widths[mask.bit_count()] |= 1 << place
        in_order = [
            [
                self.widths[width]
                for width in (*range(target, 0, -1), *range(target + 1, full.bit_count() + 1))
            ]
            for target in range(full.bit_count() + 1)
        ]
        self.in_order: list[Sequence[int]] = [in_order[mask.bit_count()] for mask in own]
        ranks = [self._ranks(widths) for widths in in_order]
        self.nearness: list[Mapping[NumaMask, int]] = [ranks[mask.bit_count()] for mask in own]
        inside = _inside(own, self.place)
        self.around: list[int] = _around(own, self.place, full)
        self.said: Said = {(None, False): self.every << self.inside}
        self.said[None, True] = self.said[None, False] | 1 << count << self.good
        for place, mask in enumerate(own):
            poor = 1 << place | inside[place] << self.inside
            self.said[mask, False], self.said[mask, True] = poor, poor | 1 << place << self.good
        poor_hints = [TopologyHint(mask, preferred=False) for mask in self.masks]
        self.preferred: list[Merged] = [
            Merged(TopologyHint(mask, preferred=True), admit=True) for mask in self.masks
        ]
        self.tolerated: list[Merged] = [Merged(one, admit=True) for one in poor_hints]
        self.refused: list[Merged] = [Merged(one, admit=False) for one in poor_hints]
        self.offers: Said = dict.fromkeys(self.said, 0) | {(None, True): ANYWHERE}
        self.alone: dict[NumaMask, Merged] = {0: FREE}
        for mask in own[: full.bit_count()]:
            self.offers[mask, True] = mask
            self.alone[mask] = FREE if mask == full else self.preferred[self.place[mask]]

    def _ranks(self, widths: Sequence[int]) -> Mapping[NumaMask, int]:
        ranks = {
            mask: PLACES * rank + self.place[mask]
            for rank, sets in enumerate(widths)
            for mask in self.chosen(sets)
        }
        return {**ranks, 0: NEVER}

    def chosen(self, sets: int) -> list[NumaMask]:
        """Some sets, narrow ones first."""
        masks = self.masks
        if sets.bit_count() > _FEW:
            return [*compress(masks, f"{sets:b}"[::-1].encode().translate(_DIGITS))]
        found: list[NumaMask] = []
        while sets:
            lowest = sets & -sets
            found.append(masks[lowest.bit_length() - 1])
            sets ^= lowest
        return found


def _by_width(mask: NumaMask) -> tuple[int, NumaMask]:
    return mask.bit_count(), mask


def _subsets(full: NumaMask) -> list[NumaMask]:
    """Every set of some nodes but the empty one."""
    found = [0]
    for node in bits(full):
        found += [mask | 1 << node for mask in found]
    return found[1:]


def _inside(own: Sequence[NumaMask], place: Mapping[NumaMask | None, int]) -> list[int]:
    """For each set bits of the sets inside it, itself among them; narrower ones are known before it."""
    found: list[int] = []
    for mask in own:
        within = 1 << len(found)
        for node in bits(mask):
            narrower = mask & ~(1 << node)
            within |= found[place[narrower]] if narrower else 0
        found.append(within)
    return found


def _around(own: Sequence[NumaMask], place: Mapping[NumaMask | None, int], full: NumaMask) -> list[int]:
    """For each set bits of the sets that contain it, itself among them; wider ones are known before it."""
    found = [0] * len(own)
    for at in range(len(own) - 1, -1, -1):
        found[at] = 1 << at
        for node in bits(full & ~own[at]):
            found[at] |= found[place[own[at] | 1 << node]]
    return found
