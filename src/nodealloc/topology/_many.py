"""The merge of hints that are all listed where combinations abound: few of them are tried."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from math import prod

from nodealloc.idset import bits
from nodealloc.topology._closeness import closest
from nodealloc.topology._common_sets import CommonSets
from nodealloc.topology._errors import WorkLimitError
from nodealloc.topology._halves import HALVED_NODES, HalvedSets
from nodealloc.topology._hints import NumaMask, NumaTopology
from nodealloc.topology._nearest import nearest
from nodealloc.topology._reachable import inside, reachable
from nodealloc.topology._scarcest import Scarcest
from nodealloc.topology._work import Work

__all__ = ["of_many"]

_LOOK_AHEAD = 300_000
"""Combinations above which it pays to leave out what comes to nothing."""

_WALKED = 30_000
"""Units that a walk in order may take; where it takes more, masks of the right width are rare."""

_HALVED = 400_000
"""Units that going through halves may take for one width; where it takes more, lists are dense."""

_SHORT = 5_000
"""Pairs of masks of two lists up to which list by list ends soon."""

_SAMPLED = 20
"""So many masks of a list, up to twice as many, tell for all what they have in common with others."""

_WALKED_LISTS = 10_000
"""Hints beyond which a walk takes too long to prepare."""

_TRIED_FIRST = 32
"""Masks that are tried before all intersections are; where none of them is right, few are."""


def of_many(
    sorted_lists: Sequence[Sequence[NumaMask]], target: int, numa: NumaTopology, *, near: bool, work: Work
) -> NumaMask:
    """The best mask when no combination is preferred; 0 without any.

    A good mask is looked for first, then better ones only.

    A mask that is as wide as it should be can be beaten only by a lower one of
    that width, which has no node above the highest one of the mask that was
    found. Hints with too few nodes below that cannot contain it. Closeness
    orders differently, so nothing is left out there.

    Args:
        sorted_lists: Masks of each list, each once.
        target: How many nodes the neediest resource needs; masks of that width are best.
        numa: The machine.
        near: Whether the closest of equally wide masks wins, in place of the lowest.
        work: What is spent.
    """
    lists = _inside_fixed(sorted_lists, numa.mask)
    if not all(lists):
        return 0
    work.spend(sum(map(len, lists)))
    sure = 0 if near else _sure(lists, target)
    if sure:
        below = (1 << sure.bit_length()) - 1
        lists = [[mask for mask in masks if (mask & below).bit_count() >= target] for masks in lists]
        if below.bit_count() == target or not all(lists):
            return sure
    if prod(map(len, sorted_lists)) > _LOOK_AHEAD:
        return _best(lists, sure, target, numa, near=near, work=work)
    found = reachable(lists, numa.mask, work)
    found.add(sure)
    if near:
        work.spend(len(found) * target)
    best = nearest(found, target)
    return numa.closest(best) if near else best[0]


def _best(
    lists: Sequence[Sequence[NumaMask]],
    sure: NumaMask,
    target: int,
    numa: NumaTopology,
    *,
    near: bool,
    work: Work,
) -> NumaMask:
    """The best mask of so many combinations that they are not all tried; `sure` is one, or 0."""
    common, sets = inside(lists, numa.mask)
    if not common:
        return 0
    if sum(map(len, sets)) <= _WALKED_LISTS:
        found = _walked(sets, common, target, numa, near=near, work=work)
        if found:
            return found
    space = _Rare(sets, common, work)
    most = common.bit_count()
    for width in (*range(min(target, most), 0, -1), *range(target + 1, most + 1)):
        if near:
            equals = space.every(width)
            work.spend(len(equals) * width)
            found = numa.closest(tuple(sorted(equals))) if equals else 0
        else:
            found = space.lowest(width, below=sure) or sure
        if found:
            return found
    return 0


class _Rare:
    """Sets where those of the right width are rare: by halves as long as that ends, else list by list."""

    def __init__(self, sets: list[set[NumaMask]], common: NumaMask, work: Work) -> None:
        self._sets = sets
        self._common = common
        self._work = work
        self._part = Work(min(work.left, _HALVED))
        self._halves: HalvedSets | None = None
        self._meeting: CommonSets | None = None
        self._scarcest: Scarcest | None = None
        self._contained: dict[int, set[NumaMask]] = {}
        pairs = len(sets[0]) * len(sets[-1])
        if common.bit_count() <= HALVED_NODES and pairs > _SHORT:
            with suppress(WorkLimitError):
                self._halves = HalvedSets(sets, common, self._comes_out, self._part)
        # Lists are short ones first; of the first two, some masks from all over.
        some, others = [sorted(one)[:: len(one) // _SAMPLED + 1] for one in (sets * 2)[:2]]
        self._shared = [(one & other).bit_count() for one in some for other in others]

    def _met(self) -> CommonSets:
        if self._meeting is None:
            self._meeting = CommonSets(self._sets, self._common, self._part)
        return self._meeting

    def _comes_out(self, mask: NumaMask) -> bool:
        return self._met().surely(mask)

    def lowest(self, width: int, below: NumaMask) -> NumaMask:
        """The lowest set of so many nodes, if it is `below` another one; 0 without any."""
        halves = self._halves
        if halves is not None and self._is_shared(width):
            with self._aside():
                known = self._known(halves, width)
                if known is None:
                    return halves.lowest(width)
                return next(filter(self._comes_out, sorted(known)), 0)
        return self._by_list().lowest(width, below)

    def _known(self, halves: HalvedSets, width: int) -> set[NumaMask] | None:
        """All sets of so many nodes that each list has a mask for, where narrower ones are rare; else None.

        Such a set has others of one node less in it. Where those are rare, one search for
        them settles all wider ones, of which there are mostly none.
        """
        found = self._contained.get(width)
        if found is None and width > 1 and (width - 1 in self._contained or halves.are_rare(width - 1)):
            narrower = self._known(halves, width - 1)
            if narrower is None:
                narrower = self._contained[width - 1] = halves.contained(width - 1)
            wider = {mask | 1 << node for mask in narrower for node in bits(self._common & ~mask)}
            found = self._contained[width] = set(filter(self._met().contains, wider))
        return found

    def every(self, width: int) -> set[NumaMask]:
        """All sets of so many nodes."""
        halves = self._halves
        if halves is not None and self._is_shared(width):
            with self._aside():
                return halves.every(width)
        return self._by_list().every(width)

    @contextmanager
    def _aside(self) -> Generator[None]:
        """Set work aside for one width; once that is used up, halves are not tried again."""
        before = self._part.left = min(self._work.left, _HALVED)
        try:
            yield
        except WorkLimitError:
            self._halves = None
        finally:
            self._work.spend(before - max(self._part.left, 0))

    def _is_shared(self, width: int) -> bool:
        """Whether many masks have so many nodes in common; where few do, list by list ends sooner."""
        return 8 * sum([shared >= width for shared in self._shared]) > len(self._shared)

    def _by_list(self) -> Scarcest:
        if self._scarcest is None:
            self._scarcest = Scarcest(self._sets, self._common, self._work)
        return self._scarcest


def _walked(
    sets: Sequence[set[NumaMask]],
    common: NumaMask,
    width: int,
    numa: NumaTopology,
    *,
    near: bool,
    work: Work,
) -> NumaMask:
    """The best mask of a width, if a short walk in order ends; else 0."""
    part = Work(min(work.left, _WALKED))
    found = 0
    with suppress(WorkLimitError):
        space = CommonSets(sets, common, part)
        found = closest([space], width, numa, part) if near else space.lowest(width)
    work.spend(part.limit - max(part.left, 0))
    return found


def _inside_fixed(sorted_lists: Sequence[Sequence[NumaMask]], full: NumaMask) -> list[list[NumaMask]]:
    """The masks of lists with a choice, as far as lists without one allow them."""
    fixed = full
    for masks in sorted_lists:
        if len(masks) == 1:
            fixed &= masks[0]
    found = [
        [inside for mask in masks if (inside := mask & fixed)] for masks in sorted_lists if len(masks) > 1
    ]
    return found or [[fixed] if fixed else []]


def _sure(lists: Sequence[Sequence[NumaMask]], target: int) -> NumaMask:
    """The lowest of a few masks of the right width that one list has and all others contain; else 0."""
    right = {mask for masks in lists for mask in masks if mask.bit_count() == target}
    for mask in sorted(right)[:_TRIED_FIRST]:
        if all(any(not mask & ~other for other in masks) for masks in lists):
            return mask
    return 0
