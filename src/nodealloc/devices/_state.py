"""What is remembered: grants and the names of resources, as the kubelet's device file has them."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from typing import Final, TypeVar, cast

import attrs

from nodealloc._typed import typed
from nodealloc.checkpoint import DEVICE_STATE, DeviceManagerState, PodDevices
from nodealloc.devices._grants import NO_NODE, Grant, doubled
from nodealloc.devices._inventory import Inventory
from nodealloc.devices._life import Phase
from nodealloc.devices._stock import DeviceStock, masks
from nodealloc.errors import DecodeError, Fault
from nodealloc.idset import MAX_ID
from nodealloc.podspec import Json

__all__ = ["from_rows", "read_alike", "remembered", "restored", "to_row"]

S = TypeVar("S", bound=DeviceStock)

_LISTED: Final = 16 << 10
"""Characters of devices that are named without being granted: every commit of everybody writes them."""


@typed
def remembered(allocator: DeviceStock, /) -> DeviceManagerState:
    """The allocator as `kubelet_internal_checkpoint` keeps it.

    A grant that its plugin has not answered has no answer there either (null).
    A resource whose plugin is gone is not named. Health is that of the moment,
    and of a resource with many devices none is named: nobody reads them back
    (`read_alike`). What was granted last stands last.
    """
    entries = [
        grant.entry(workload, member, resource)
        for workload, held in allocator.grants.items()
        for (member, resource), grant in held.items()
    ]
    # Whatever stands behind an entry that changed is hashed anew: large ones seldom change.
    entries.sort(key=lambda entry: not entry.is_large)
    return DeviceManagerState(pod_device_entries=tuple(entries), registered_devices=_registered(allocator))


def _registered(allocator: DeviceStock) -> dict[str, tuple[str, ...]]:
    """Resources and their healthy devices, as long as all of these take little room; the smallest first."""
    lists = {name: allocator.inventories[name].devices for name in _known(allocator)}
    left = _LISTED
    registered: dict[str, tuple[str, ...]] = {}
    for name in sorted(lists, key=lambda name: (lists[name].characters, name)):
        devices = lists[name]
        left -= devices.characters
        registered[name] = devices.ids_of(devices.healthy) if left >= 0 else ()
    return registered


def read_alike(before: DeviceStock, after: DeviceStock, /) -> bool:
    """Whether the next process, a kubelet or one of ours, reads the same from the records of both.

    It reads grants and the names of resources; which devices there are, and how
    they are, their plugins have to say again.

    Source: kubelet v1.32 ``cm/devicemanager/manager.go``, which writes the ids of
    healthy devices with every list and reads none of them.
    """
    return before.grants == after.grants and _known(before) == _known(after)


def _known(allocator: DeviceStock) -> set[str]:
    """Resources whose plugins are awaited after a restart; names with nobody behind them are none."""
    return {
        name
        for name, one in allocator.inventories.items()
        if one.phase is not Phase.GONE and (one.phase is not Phase.LOST or one.settled or one.devices.ids)
    }


@typed
def restored(allocator: S, state: DeviceManagerState, /, *, now_s: float = 0.0) -> S:
    """An allocator that knows what was remembered, with every plugin awaited.

    Args:
        allocator: Its NUMA nodes and settings count, and devices that a program said, since nobody will
            say them again; what it holds is replaced.
        state: From the file.
        now_s: When the grace period of the awaited plugins begins.

    Raises:
        DecodeError: A device is on a NUMA node that no machine has, or a resource has no name.
    """
    grants: dict[str, dict[tuple[str, str], Grant]] = {}
    resources = set(state.registered_devices or {})
    for entry in state.pod_device_entries or ():
        places = {_node(node, entry): tuple(ids) for node, ids in (entry.device_ids or {}).items() if ids}
        grant = Grant(places=places, response=entry.alloc_resp)
        grants.setdefault(entry.pod_uid, {})[entry.container_name, entry.resource_name] = grant
        resources.add(entry.resource_name)
    if "" in resources:
        raise DecodeError(DEVICE_STATE, [Fault("$.Data", "a resource has an empty name")])
    inventories = {
        resource: Inventory(resource=resource, phase=Phase.AWAITED, since_s=now_s)
        for resource in sorted(resources)
    }
    said = {name: one for name, one in allocator.inventories.items() if one.is_said}
    return attrs.evolve(
        allocator,
        grants=grants,
        inventories={**inventories, **said},
        answers={},
        unanswered=(),
        held=masks(said, grants),
        doubled=doubled(grants),
    )


def _node(node: int, entry: PodDevices) -> int:
    if node == NO_NODE or 0 <= node <= MAX_ID:
        return node
    path = f"$.Data.PodDeviceEntries[{entry.pod_uid!r}, {entry.container_name!r}].DeviceIDs"
    reason = f"NUMA node {node} is neither from 0 to {MAX_ID} nor {NO_NODE}"
    raise DecodeError(DEVICE_STATE, [Fault(path, reason)])


def to_row(allocator: DeviceStock, workload: str, /) -> list[Json]:
    """What one workload holds, as JSON: a list of member, resource, places and the plugin's answer."""
    return [
        {
            "member": member,
            "resource": resource,
            "places": {str(node): list(ids) for node, ids in sorted(grant.places.items())},
            "response": None if grant.response is None else b64encode(grant.response).decode(),
        }
        for (member, resource), grant in sorted(allocator.grants.get(workload, {}).items())
    ]


def from_rows(allocator: S, rows: Mapping[str, Json], /) -> S:
    """An allocator that knows what `to_row` said of each workload, with every plugin awaited.

    Args:
        allocator: Its NUMA nodes and settings count; what it holds is replaced.
        rows: By workload.

    Raises:
        DecodeError: Something that `to_row` never says.
    """
    entries: list[PodDevices] = []
    for workload, row in rows.items():
        try:
            entries += [_entry(workload, one) for one in cast("Sequence[Mapping[str, Json]]", row)]
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            reason = f"no row of device grants ({type(error).__name__}: {error})"
            raise DecodeError(f"devices of {workload}", [Fault("$", reason)]) from error
    state = DeviceManagerState(pod_device_entries=tuple(entries), registered_devices={})
    return restored(allocator, state)


def _entry(workload: str, row: Mapping[str, Json]) -> PodDevices:
    response = row["response"]
    places = cast("Mapping[str, Sequence[str]]", row["places"])
    return PodDevices(
        pod_uid=workload,
        container_name=str(row["member"]),
        resource_name=str(row["resource"]),
        device_ids={int(node): tuple(map(str, ids)) for node, ids in places.items()},
        alloc_resp=None if response is None else b64decode(str(response), validate=True),
    )
