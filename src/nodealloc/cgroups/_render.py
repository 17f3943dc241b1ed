"""Pure: from limits to the control files that hold them, and back."""

from __future__ import annotations

import mmap
from typing import TYPE_CHECKING, Final

from nodealloc import _attrs as attrs
from nodealloc._typed import typed
from nodealloc.cgroups._convert import PAGE_BYTES, hugepage_name, shares_to_weight, weight_to_shares
from nodealloc.cgroups._errors import ControllerMissingError, UnsupportedLimitError
from nodealloc.cgroups._layout import CgroupMount, Layout
from nodealloc.cgroups._limits import NO_LIMIT, Limits
from nodealloc.cgroups._name import CgroupName
from nodealloc.idset import CPUSet, NodeSet

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

__all__ = ["Write", "limits_from", "render", "same_in"]

MAX: Final = "max"
_V1_UNLIMITED: Final = 1 << 62
"""From here on a v1 memory limit stands for none: the kernel shows the largest that fits its pages."""

_V1_FILES: Final = {
    "cpu_shares": ("cpu", "cpu.shares"),
    "cpu_period_us": ("cpu", "cpu.cfs_period_us"),
    "cpu_quota_us": ("cpu", "cpu.cfs_quota_us"),
    "memory_bytes": ("memory", "memory.limit_in_bytes"),
    "pids": ("pids", "pids.max"),
    "cpus": ("cpuset", "cpuset.cpus"),
    "mems": ("cpuset", "cpuset.mems"),
}
_V2_FILES: Final = {
    "cpu_shares": ("cpu", "cpu.weight"),
    "cpu_quota_us": ("cpu", "cpu.max"),
    "memory_bytes": ("memory", "memory.max"),
    "memory_min_bytes": ("memory", "memory.min"),
    "memory_high_bytes": ("memory", "memory.high"),
    "swap_bytes": ("memory", "memory.swap.max"),
    "pids": ("pids", "pids.max"),
    "cpus": ("cpuset", "cpuset.cpus"),
    "mems": ("cpuset", "cpuset.mems"),
}


@attrs.frozen(kw_only=True)
class Write:
    """One text for one control file.

    Attributes:
        controller: Controller that the file belongs to.
        path: Absolute path of the file.
        text: What to write, without a newline.
    """

    controller: str
    path: str
    text: str

    @property
    def file(self) -> str:
        """The file's own name."""
        return self.path.rpartition("/")[2]

    def __str__(self) -> str:
        """`path = text`."""
        return f"{self.path} = {self.text}"


@typed
def render(layout: Layout, name: CgroupName, limits: Limits, /) -> tuple[Write, ...]:
    """What to write where, in an order that the kernel accepts; nothing is written.

    A huge page limit of 0 or none is left out where the machine has no huge
    page controller: there is nothing that it could confine.

    Args:
        layout: Which controller is mounted where.
        name: The cgroup.
        limits: What is asked of it; what is None is not written.

    Raises:
        ControllerMissingError: A limit's controller is not mounted.
        UnsupportedLimitError: A limit of v2 on a v1 controller.
    """
    writes = [
        _write(layout, name, field, limits)
        for field in limits.asked
        if field not in {"hugepage_bytes", "cpu_period_us"}
    ]
    if limits.cpu_period_us is not None and _mount(layout, name, "cpu").version == 1:
        at = next(index for index, write in enumerate(writes) if write.file == "cpu.cfs_quota_us")
        writes.insert(at, _write(layout, name, "cpu_period_us", limits))
    return (*writes, *_hugepage_writes(layout, name, limits.hugepage_bytes))


def _mount(layout: Layout, name: CgroupName, controller: str) -> CgroupMount:
    mount = layout.mount_of(controller)
    if mount is None:
        raise ControllerMissingError(
            controller,
            name,
            "is not offered by this tree; mount it, or have it handed down (cgroup.subtree_control)",
        )
    return mount


def _write(layout: Layout, name: CgroupName, field: str, limits: Limits) -> Write:
    controller = (_V1_FILES.get(field) or _V2_FILES[field])[0]
    mount = _mount(layout, name, controller)
    files = _V1_FILES if mount.version == 1 else _V2_FILES
    if field not in files:
        raise UnsupportedLimitError(field, controller)
    text = _text(field, limits, mount.version)
    return Write(controller=controller, path=f"{layout.directory(mount, name)}/{files[field][1]}", text=text)


def _text(field: str, limits: Limits, version: int) -> str:
    value = limits.asked[field]
    if isinstance(value, int):
        if field == "cpu_shares":
            return str(value if version == 1 else shares_to_weight(value))
        # The kernel's v1 pids controller says `max` as v2 does; memory and quota say -1.
        text = MAX if value == NO_LIMIT and (version == 2 or field == "pids") else str(value)
        period = limits.cpu_period_us if field == "cpu_quota_us" and version == 2 else None
        return text if period is None else f"{text} {period}"
    return str(value)


def _hugepage_writes(layout: Layout, name: CgroupName, pages: Mapping[int, int]) -> Iterator[Write]:
    mount = layout.mount_of("hugetlb")
    for size, amount in sorted(pages.items()):
        if mount is None:
            if amount in {0, NO_LIMIT}:
                continue
            mount = _mount(layout, name, "hugetlb")
        file = f"hugetlb.{hugepage_name(size)}." + ("limit_in_bytes" if mount.version == 1 else MAX)
        no_limit = str(_V1_UNLIMITED) if mount.version == 1 else MAX
        text = no_limit if amount == NO_LIMIT else str(amount)
        yield Write(controller="hugetlb", path=f"{layout.directory(mount, name)}/{file}", text=text)


def limits_from(
    read: Callable[[str, str], str | None], layout: Layout, sizes: tuple[int, ...] = (), /
) -> Limits:
    """Limits as the control files hold them; what cannot be read is None.

    Args:
        read: From a controller and the name of its file to the text, or None.
        layout: Which version each controller is in.
        sizes: Huge page sizes in bytes to look at.
    """
    found: dict[str, int] = {}
    ids: dict[str, str] = {}
    for field in (*_V1_FILES, *(_V2_FILES.keys() - _V1_FILES.keys())):
        controller = (_V1_FILES.get(field) or _V2_FILES[field])[0]
        mount = layout.mount_of(controller)
        files = _V1_FILES if mount is not None and mount.version == 1 else _V2_FILES
        text = read(controller, files[field][1]) if mount is not None and field in files else None
        if not text:
            continue
        if controller == "cpuset":
            ids[field] = text
        elif field == "cpu_shares":
            found[field] = int(text) if files is _V1_FILES else weight_to_shares(int(text))
        elif files is _V2_FILES and field == "cpu_quota_us":
            quota, _, period = text.partition(" ")
            found |= {field: _number(quota), "cpu_period_us": int(period)}
        else:
            found[field] = _number(text)
    return Limits(
        cpu_shares=found.get("cpu_shares"),
        cpu_quota_us=found.get("cpu_quota_us"),
        cpu_period_us=found.get("cpu_period_us") if "cpu_quota_us" in found else None,
        memory_bytes=_at_least(found.get("memory_bytes"), PAGE_BYTES),
        memory_min_bytes=found.get("memory_min_bytes"),
        memory_high_bytes=found.get("memory_high_bytes"),
        swap_bytes=found.get("swap_bytes"),
        pids=_at_least(found.get("pids"), 1),
        cpus=CPUSet.parse(ids["cpus"]) if "cpus" in ids else None,
        mems=NodeSet.parse(ids["mems"]) if "mems" in ids else None,
        hugepage_bytes=_read_hugepages(read, layout, sizes),
    )


def _number(text: str) -> int:
    amount = NO_LIMIT if text == MAX else int(text)
    return NO_LIMIT if amount >= _V1_UNLIMITED else amount


def _at_least(amount: int | None, least: int) -> int | None:
    """A limit that somebody else set below what `Limits` may ask for, raised to it."""
    return amount if amount is None or amount == NO_LIMIT else max(amount, least)


def _read_hugepages(
    read: Callable[[str, str], str | None], layout: Layout, sizes: tuple[int, ...]
) -> dict[int, int]:
    mount = layout.mount_of("hugetlb")
    if mount is None:
        return {}
    ending = "limit_in_bytes" if mount.version == 1 else MAX
    texts = {size: read("hugetlb", f"hugetlb.{hugepage_name(size)}.{ending}") for size in sizes}
    return {size: _number(text) for size, text in texts.items() if text}


def same_in(asked: Limits, found: Limits, /) -> frozenset[str]:
    """Fields of `asked` that read back as they were asked for."""
    pages = {size: found.hugepage_bytes.get(size) for size in asked.hugepage_bytes}
    actual = {**found.asked, "hugepage_bytes": pages}
    return frozenset(name for name, value in asked.asked.items() if _same(name, value, actual.get(name)))


def _same(limit: str, asked: object, found: object) -> bool:
    """Whether a limit reads back as asked, as exactly as the kernel keeps it."""
    if asked == found or not isinstance(asked, int) or not isinstance(found, int):
        return asked == found
    if limit == "cpu_shares":
        return found == weight_to_shares(shares_to_weight(asked))
    return limit.endswith("_bytes") and 0 <= asked - found < mmap.PAGESIZE
