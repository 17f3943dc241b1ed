"""Pure: what a cgroup has used, in one shape from either version."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodealloc import _attrs as attrs

if TYPE_CHECKING:
    from collections.abc import Callable

    from nodealloc.cgroups._layout import Layout

__all__ = ["CgroupStats", "stats_from"]


@attrs.frozen(kw_only=True)
class CgroupStats:
    """Usage of a cgroup and all below it; None where its controller is not there.

    Attributes:
        memory_bytes: Memory charged to it, page cache included.
        working_set_bytes: The same without page cache that has long been unused,
            as eviction counts it.
        cpu_ns: CPU time used so far, in nanoseconds.
        periods: Quota periods in which it wanted to run.
        throttled_periods: Of these, periods in which its quota ran out.
        throttled_ns: Time that its tasks stood still for it, in nanoseconds.
        pids: Tasks in it.
        oom_kills: Processes that the kernel killed in it for memory; v1 counts
            the cgroup alone, v2 all below it as well.
    """

    memory_bytes: int | None = None
    working_set_bytes: int | None = None
    cpu_ns: int | None = None
    periods: int | None = None
    throttled_periods: int | None = None
    throttled_ns: int | None = None
    pids: int | None = None
    oom_kills: int | None = None


def _table(text: str | None) -> dict[str, int]:
    """`key number` lines."""
    pairs = (line.split() for line in (text or "").splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].lstrip("-").isdigit()}


def _whole(text: str | None) -> int | None:
    return int(text) if text and text.isdigit() else None


def stats_from(read: Callable[[str, str], str | None], layout: Layout, /) -> CgroupStats:
    """Usage from the control files.

    Args:
        read: From a controller and the name of its file to the text, or None.
        layout: Which version each controller is in.

    Source: kernel ``admin-guide/cgroup-v1`` and ``cgroup-v2``; the working set
    as cAdvisor counts it.
    """

    def is_v1(controller: str) -> bool:
        mount = layout.mount_of(controller)
        return mount is not None and mount.version == 1

    old_memory = is_v1("memory")
    usage = _whole(read("memory", "memory.usage_in_bytes" if old_memory else "memory.current"))
    idle = _table(read("memory", "memory.stat")).get(
        "total_inactive_file" if old_memory else "inactive_file", 0
    )
    events = _table(read("memory", "memory.oom_control" if old_memory else "memory.events"))
    cpu = _table(read("cpu", "cpu.stat"))
    throttled = cpu.get("throttled_time") if is_v1("cpu") else _thousand(cpu.get("throttled_usec"))
    used = _whole(read("cpuacct", "cpuacct.usage")) if is_v1("cpuacct") else _thousand(cpu.get("usage_usec"))
    return CgroupStats(
        memory_bytes=usage,
        working_set_bytes=None if usage is None else max(usage - idle, 0),
        cpu_ns=used,
        periods=cpu.get("nr_periods"),
        throttled_periods=cpu.get("nr_throttled"),
        throttled_ns=throttled,
        pids=_whole(read("pids", "pids.current")),
        oom_kills=events.get("oom_kill"),
    )


def _thousand(microseconds: int | None) -> int | None:
    return None if microseconds is None else microseconds * 1000
