"""Has plugins prepare what a workload was granted, and remembers what they answer."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import CancelledError

from nodealloc.devices._allocator import DeviceAllocator
from nodealloc.devices._grants import Grant
from nodealloc.devices._ports import AllocatorKeeper, PluginCalls
from nodealloc.dsw_asw import Cancel
from nodealloc.topology import Owner

__all__ = ["prepare"]


def prepare(
    keeper: AllocatorKeeper, calls: Callable[[str], PluginCalls], workload: str, cancel: Cancel | None, /
) -> None:
    """Ask for what has no answer yet; see `DevicePlugins.prepare`.

    Args:
        keeper: Knows what was granted, and keeps the answers.
        calls: From a resource to its plugin; raises where there is none.
        workload: Whose grants.
        cancel: Asks to stop.
    """
    for (member, resource), grant in sorted(keeper.current().grants.get(workload, {}).items()):
        if grant.response is not None:
            continue
        if cancel is not None and cancel.is_set():
            raise CancelledError
        response = calls(resource).allocate(sorted(grant.ids), cancel=cancel)
        _answered(keeper, Owner(workload, member), resource, grant, response)


def _answered(keeper: AllocatorKeeper, owner: Owner, resource: str, asked: Grant, response: bytes) -> None:
    """Remember an answer, unless other devices were granted to the same owner meanwhile."""

    def altered(allocator: DeviceAllocator) -> DeviceAllocator:
        grant = allocator.grants.get(owner.workload, {}).get((owner.member, resource))
        return allocator.with_response(owner, resource, response) if grant == asked else allocator

    keeper.alter(altered)
