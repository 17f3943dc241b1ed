"""Which CPUs belong together: pure decisions over what each CPU says of itself."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from nodealloc import _attrs as attrs
from nodealloc.idset import bits

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["Partition", "by_ids", "by_masks", "named"]


@attrs.frozen(kw_only=True)
class Partition:
    """CPUs in disjoint groups.

    Attributes:
        groups: Smallest CPU of a group to the group's mask, ascending.
        unknown: Mask of CPUs that no readable mask names.
        disputed: Mask of CPUs whose own mask is another than their group.
    """

    groups: Mapping[int, int]
    unknown: int = 0
    disputed: int = 0


def by_masks(online: int, mask_of: Callable[[int], int | None]) -> Partition:
    """Group CPUs by the masks that they give.

    The smallest CPU of a group speaks for it and the largest confirms, so that
    a tree of 256 CPUs costs two files a group and not one a CPU. Where they
    differ, or two groups want one CPU, all CPUs are asked and the mask that
    most of its members give wins. An empty mask (ia64 gives those) says
    nothing, like an absent one.

    Source: the kernel's ``Documentation/admin-guide/cputopology.rst``, where
    masks of one group are the same; ours where they differ.
    """
    groups: dict[int, int] = {}
    free = online
    unknown = 0
    for cpu in bits(online):
        if not free >> cpu & 1:
            continue
        mask = (mask_of(cpu) or 0) & online
        if not mask:
            unknown |= 1 << cpu
            continue
        last = mask.bit_length() - 1
        if mask & ~free or not mask >> cpu & 1 or (last != cpu and (mask_of(last) or mask) & online != mask):
            return _by_vote(online, mask_of)
        groups[_lowest(mask)] = mask
        free &= ~mask
        unknown &= ~mask
    return Partition(groups=dict(sorted(groups.items())), unknown=unknown)


def _by_vote(online: int, mask_of: Callable[[int], int | None]) -> Partition:
    told = {cpu: mask & online | 1 << cpu for cpu in bits(online) if (mask := mask_of(cpu))}
    votes = Counter(told.values())
    groups: dict[int, int] = {}
    free = online
    for mask in sorted(votes, key=lambda mask: (-votes[mask], _lowest(mask))):
        if claimed := mask & free:
            groups[_lowest(claimed)] = claimed
            free &= ~claimed
    disputed = sum(1 << cpu for mask in groups.values() for cpu in bits(mask) if told.get(cpu, mask) != mask)
    return Partition(groups=dict(sorted(groups.items())), unknown=free, disputed=disputed)


def by_ids(cpus: int, id_of: Callable[[int], object | None]) -> tuple[Mapping[int, int], int]:
    """Group the CPUs of a mask by an id; (groups by smallest CPU, mask of those without an id)."""
    masks: dict[object, int] = {}
    unknown = 0
    for cpu in bits(cpus):
        key = id_of(cpu)
        if key is None:
            unknown |= 1 << cpu
        else:
            masks[key] = masks.get(key, 0) | 1 << cpu
    return {_lowest(mask): mask for mask in masks.values()}, unknown


def named(groups: Mapping[int, int], id_of: Callable[[int], int | None]) -> Mapping[int, int]:
    """Smallest CPU of a group to the id that it goes by.

    The kernel's own ids where they name the groups one to one (the order of
    ids decides which group is filled first, and the kubelet goes by these);
    else the smallest CPU of each.
    """
    ids = [id_of(first) for first in groups]
    if None in ids or len(set(ids)) < len(ids) or any(number is not None and number < 0 for number in ids):
        return {first: first for first in groups}
    return {first: number for first, number in zip(groups, ids, strict=True) if number is not None}


def _lowest(mask: int) -> int:
    return (mask & -mask).bit_length() - 1
