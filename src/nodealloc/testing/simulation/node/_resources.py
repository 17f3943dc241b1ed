"""What devices the plugins of a simulated node serve, and how a container sees them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from nodealloc.devices import PluginOptions

__all__ = ["NODES", "OF_EACH_NODE", "RESOURCES", "file_of", "library_of", "node_of", "variable_of"]

RESOURCES: Final[Mapping[str, PluginOptions]] = {
    "sim.example/gpu": PluginOptions(preferred_allocation=True),
    "sim.example/nic": PluginOptions(pre_start_required=True),
}
"""What plugins serve, and what each wants to be asked."""
NODES: Final = 2
"""NUMA nodes with devices."""
OF_EACH_NODE: Final = 2
"""Devices of each resource at each NUMA node."""


def variable_of(resource: str, /) -> str:
    """The variable by which a plugin tells a container its devices."""
    return resource.upper().replace("/", "_").replace(".", "_")


def file_of(device: str, /) -> str:
    """The file of a device."""
    return f"/dev/{device}"


def library_of(resource: str, /) -> str:
    """What a container finds beside its devices, to read."""
    return f"/opt/{resource}"


def node_of(device: str, /) -> int:
    """The NUMA node of a device."""
    return int(device.rpartition("-")[2]) // OF_EACH_NODE
