"""What the providers' hints come to: one pass over all of them, for every policy and question."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from typing import NamedTuple, final

from nodealloc import _attrs as attrs
from nodealloc.topology._counted import CountedHints
from nodealloc.topology._hints import Hints, NumaMask, TopologyHint
from nodealloc.topology._options import options_of

__all__ = ["Listed", "Reading", "masks_of", "read"]


@final
@attrs.frozen(eq=False)
class Listed:
    """A list of hints, sorted out. A number is taken for the mask that it equals.

    Attributes:
        named: All nodes that it names; negative when a mask is none.
        good: Masks that are preferred.
        anywhere: Whether "any node" is a preferred hint.
        masks: All masks, ascending; 0 stands for "any node". Empty when no node is named.
        least: Number of nodes of the narrowest; 0 when no node is named.
    """

    named: NumaMask
    good: frozenset[NumaMask]
    anywhere: bool
    masks: tuple[NumaMask, ...]
    least: int


class Reading(NamedTuple):
    """All hints, sorted by what they do to the merge.

    Attributes:
        common: Masks that all lists prefer which are bound to nodes; None without any.
        offered: Masks preferred by lists that would go anywhere as well; None without any.
        lists: The lists that name nodes.
        counted: Answers that are counted; equal ones are one object and stand together.
    """

    common: frozenset[NumaMask] | None
    offered: frozenset[NumaMask] | None
    lists: Sequence[Listed]
    counted: Sequence[CountedHints]

    def choice(self, full: NumaMask) -> frozenset[NumaMask]:
        """Masks that every list prefers, `counted` left out of account."""
        if self.common is not None:
            return self.common
        return frozenset((full,)) if self.offered is None else self.offered | {full}

    def masks(self, full: NumaMask) -> list[Sequence[NumaMask]]:
        """The masks of each list; "any node" is all of them."""
        return [masks_of(one, full) for one in self.lists]


_NOTHING: frozenset[NumaMask] = frozenset()

_IMPOSSIBLE = Listed(0, _NOTHING, anywhere=False, masks=(), least=0)
"""An empty list: "any node", and that is not preferred."""


def read(providers: Sequence[Hints], full: NumaMask, names: Sequence[str] = ()) -> Reading:
    """Sort out all hints.

    None is a preferred "any node", an empty list an "any node" that is not preferred.

    Args:
        providers: Each provider's answer.
        full: All nodes of the machine.
        names: Names of the providers for messages.

    Raises:
        HintError: An answer is no mapping of resources to hints.
        MaskOutsideError: A hint names nodes that the machine does not have.

    Source: kubelet ``cm/topologymanager/policy.go``.
    """
    try:
        named, reading = _read(*_sorted_out(providers))
    except (TypeError, ValueError, AttributeError):
        _check(providers, full, names)
        raise
    if named & ~full:
        _check(providers, full, names)
        raise ValueError("the hints changed while they were read: a mask was outside the machine")
    return reading


def _sorted_out(providers: Sequence[Hints]) -> tuple[list[Listed], list[CountedHints]]:
    """Each list of hints sorted out, and the answers that are counted; None leaves nothing behind."""
    lists: list[Listed] = []
    counted: list[CountedHints] = []
    for hints in providers:
        for options in hints.values() if hints else ():
            if isinstance(options, CountedHints):
                counted.append(options)
            elif options:
                lists.append(_listed(frozenset(options)))
            elif options is not None:
                lists.append(_IMPOSSIBLE)
    return lists, counted


def _read(lists: Sequence[Listed], answers: Sequence[CountedHints]) -> tuple[NumaMask, Reading]:
    """All nodes that are named, and what lists and counted answers come to."""
    named = 0
    common: frozenset[NumaMask] | None = None
    offered: frozenset[NumaMask] | None = None
    for one in lists:
        named |= one.named
        if one.anywhere:
            if one.good:
                offered = one.good if offered is None else offered | one.good
        elif common is None:
            common = one.good
        elif common:
            common &= one.good
    counted: list[CountedHints] = []
    for answer in answers:
        named |= answer.named
        if not _count(counted, answer):
            common = _NOTHING
    return named, Reading(common, offered, [one for one in lists if one.named], counted)


def masks_of(one: Listed, full: NumaMask) -> Sequence[NumaMask]:
    """The masks of a list; "any node" is all of them."""
    return [mask or full for mask in one.masks]


def _listed(key: frozenset[TopologyHint]) -> Listed:
    """A list of hints, sorted out."""
    masks = {mask for mask, _ in key if mask is not None}
    good = {mask for mask, preferred in key if preferred and mask is not None}
    nowhere = [preferred for mask, preferred in key if mask is None]
    if set(map(type, masks)) - {int}:
        masks, good = _whole(masks), _whole(good)
    named = least = 0
    if masks:
        named = reduce(int.__or__, masks) if min(masks) > 0 else -1
        least = min(map(int.bit_count, masks))
    ordered = (0, *sorted(masks)) if nowhere and masks else tuple(sorted(masks))
    return Listed(named, frozenset(good), any(nowhere), ordered, least)


def _whole(numbers: Iterable[int]) -> set[int]:
    """The integers that some numbers equal; raises `ValueError` for what equals none."""
    found = {number: int(number) for number in numbers}
    for number, whole in found.items():
        if number != whole:
            raise ValueError(number)
    return set(found.values())


def _count(counted: list[CountedHints], hints: CountedHints) -> bool:
    """Add an answer that is counted, beside its equals; False when nothing meets its figures."""
    for place, known in enumerate(counted):
        if known is hints or known == hints:
            counted.insert(place, known)
            return True
    if not hints.others and not hints.counts(hints.nodes):
        return False
    counted.append(hints)
    return True


def _check(providers: Sequence[Hints], full: NumaMask, names: Sequence[str]) -> None:
    """Name the culprit, if there is one."""
    options_of(providers, full, names)
