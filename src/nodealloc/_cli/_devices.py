"""Devices that an option puts on each NUMA node, beside those that a kubelet's files name already."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import count as numbers

from nodealloc._cli._machines import pairs
from nodealloc.devices import Device, DeviceAllocator
from nodealloc.errors import ConfigurationError
from nodealloc.podspec import is_extended_resource
from nodealloc.topology import NumaMask

__all__ = ["counts_of", "with_devices"]

_MOST = 200_000
"""Devices in all; more take minutes, and are a typing error."""


def counts_of(options: Iterable[str], nodes: int, /) -> dict[str, int]:
    """Resource to how many of it each of so many nodes has.

    Raises:
        ConfigurationError: Something else than `RESOURCE=COUNT`, a resource that is none of
            devices or comes twice, or too many.
    """
    found: dict[str, int] = {}
    for words in options:
        (resource, count), *others = pairs(words, "--devices").items() or [("", "")]
        if others or not (count.isascii() and count.isdigit()):
            raise ConfigurationError(f"--devices {words}: write RESOURCE=COUNT, with a count of 0 or more")
        if not is_extended_resource(resource):
            raise ConfigurationError(
                f"--devices {words}: {resource!r} is no extended resource; name it like example.com/gpu"
            )
        if resource in found:
            raise ConfigurationError(f"--devices {words}: {resource} comes twice; give each resource once")
        left = _MOST - nodes * sum(found.values())
        if len(count) > len(str(_MOST)) or nodes * int(count) > left:
            raise ConfigurationError(
                f"--devices {words}: at most {_MOST} devices may be on all nodes together"
            )
        found[resource] = int(count)
    return found


def with_devices(
    allocator: DeviceAllocator, counts: Mapping[str, int], nodes: Sequence[int], /
) -> DeviceAllocator:
    """An allocator to which so many healthy devices of each resource have been listed on each node.

    Devices that are held already are among them, and keep their ids.
    """
    for resource, count in counts.items():
        held = _held(allocator, resource)
        devices = [Device(name, numa_nodes=mask) for name, mask in held.items()]
        for node in nodes:
            here = sum([mask >> node & 1 for mask in held.values()])
            free = _names(resource, node, held)
            devices += [Device(next(free), numa_nodes=1 << node) for _ in range(count - here)]
        allocator = allocator.with_devices(resource, devices)
    return allocator


def _held(allocator: DeviceAllocator, resource: str) -> dict[str, NumaMask]:
    """The devices of a resource that somebody holds, with their nodes; 0 for one without a place."""
    return {
        device: sum([1 << node for node in nodes])
        for grants in allocator.grants.values()
        for (_, of), grant in grants.items()
        if of == resource
        for device, nodes in sorted(grant.nodes.items())
    }


def _names(resource: str, node: int, taken: Collection[str]) -> Iterator[str]:
    """Ids for devices of a node that are none of those taken."""
    made = (f"{resource.rpartition('/')[2]}-{node}-{number}" for number in numbers())
    return (name for name in made if name not in taken)
