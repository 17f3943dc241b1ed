"""Which CPUs, as values that people can read; pickers work on masks."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

from nodealloc import _attrs as attrs
from nodealloc._arguments import check, within, wrong
from nodealloc._typed import typed, typed_fields, typed_methods
from nodealloc.cpuset._distributed import take_distributed
from nodealloc.cpuset._errors import NotEnoughCpusError, PickerError
from nodealloc.cpuset._pickers import SortStrategy, take_packed
from nodealloc.errors import ConfigurationError
from nodealloc.idset import CPUSet

if TYPE_CHECKING:
    from nodealloc.cpuset._layout import CpuLayout
    from nodealloc.cpuset._ports import Picker

__all__ = ["KubeletPicker", "PickMode", "check_taken", "picked", "take_cpus"]


class PickMode(enum.Enum):
    """How CPUs lie on NUMA nodes; the values are the kubelet's names."""

    PACKED = "numa-packed"
    """One node is used up before the next is touched."""
    DISTRIBUTED = "numa-distributed"
    """The same number from each of as few nodes as can serve (`distribute-cpus-across-numa`)."""


# Members of an enumeration are slow to look up before Python 3.12.
_PACKED = PickMode.PACKED


@typed_methods
@typed_fields
@attrs.frozen(kw_only=True)
class KubeletPicker:
    """A `Picker` that takes the CPUs that the kubelet would take.

    Attributes:
        mode: How CPUs lie on NUMA nodes.
        strategy: In which order single CPUs are taken.
        group_size: For `PickMode.DISTRIBUTED`: CPUs go in groups of this many.
        align_caches: For `PickMode.PACKED`: fill, or fit into, last-level
            caches first (`prefer-align-cpus-by-uncorecache`).
    """

    mode: PickMode = PickMode.PACKED
    strategy: SortStrategy = SortStrategy.PACKED
    group_size: int = attrs.field(default=1, validator=within(1))
    align_caches: bool = False

    def pick(self, layout: CpuLayout, available: int, count: int, /) -> int | None:
        """See `Picker.pick`."""
        if self.mode is _PACKED:
            return take_packed(
                layout, available, count, strategy=self.strategy, align_caches=self.align_caches
            )
        return take_distributed(layout, available, count, strategy=self.strategy, group_size=self.group_size)


@typed
def take_cpus(
    layout: CpuLayout, available: CPUSet | str, count: int, /, *, picker: Picker | None = None
) -> CPUSet:
    """Choose `count` of the available CPUs.

    Args:
        layout: The machine, as `CpuLayout.of` made it.
        available: CPUs that may be taken, or their text such as `0-3`.
        count: Whole logical CPUs, 0 or more.
        picker: How to choose; packed by default.

    Returns:
        Exactly `count` CPUs, a subset of `available`.

    Raises:
        NotEnoughCpusError: Fewer are available.
        PickerError: The picker answered with anything else.
        ConfigurationError: `count` is negative, or `available` is not on the machine.
    """
    if not hasattr(layout, "threads_per_core"):
        raise wrong("take_cpus, layout", layout, "a CpuLayout; CpuLayout.of(machine) makes one")
    available = CPUSet.parse(available) if isinstance(available, str) else available
    check("take_cpus, available", available, CPUSet, "a CPUSet or its text")
    if type(count) is not int:
        raise wrong("take_cpus, count", count, "a whole number of CPUs")
    strangers = available.mask & ~layout.cpus
    if strangers:
        raise ConfigurationError(
            f"CPUs {CPUSet.from_mask(strangers)} are not online on this machine, "
            f"which has {CPUSet.from_mask(layout.cpus)}; leave them out of `available`"
        )
    if count < 0:
        raise ConfigurationError(f"{count} CPUs wanted; ask for 0 or more")
    taken = picked(picker or KubeletPicker(), layout, available.mask, count)
    if taken is None:
        raise NotEnoughCpusError(count, len(available))
    return CPUSet.from_mask(taken)


def picked(picker: Picker, layout: CpuLayout, available: int, count: int) -> int | None:
    """What a picker takes, where that is what it was asked for.

    Raises:
        PickerError: It is anything else.
    """
    taken = picker.pick(layout, available, count)
    if taken is not None:
        check_taken(picker, taken, available, count)
    return taken


def check_taken(picker: Picker, taken: int, available: int, count: int) -> None:
    """Exactly so many of those, as a mask; raises `PickerError`."""
    if taken.__class__ is not int or taken & ~available or taken.bit_count() != count:
        raise PickerError(type(picker).__name__, taken, available, count)
