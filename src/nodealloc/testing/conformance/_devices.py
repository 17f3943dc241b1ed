"""Recorded device hints against `nodealloc.devices`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from nodealloc.devices import Device, DeviceList
from nodealloc.devices import device_hints as hints_for
from nodealloc.podspec import Json
from nodealloc.testing.conformance._kinds import Row

__all__ = ["device_hints"]


def device_hints(row: Row, _machines: Mapping[str, Row], /) -> tuple[Json, Json]:
    """Hints for a request, as recorded and as answered here."""
    nodes = cast("list[int]", row["numa_nodes"])
    described = cast("list[Mapping[str, Json]]", row["devices"] or [])
    devices = DeviceList.of((_device(entry) for entry in described), nodes=nodes)
    hints = hints_for(
        nodes,
        cast("int", row["request"]),
        by_node=devices.by_node,
        available=devices.mask_of(cast("list[str]", row["available"] or [])),
        reusable=devices.mask_of(cast("list[str]", row["reusable"] or [])),
    )
    return row["hints"], [[hint.affinity, hint.preferred] for hint in hints]


def _device(entry: Mapping[str, Json]) -> Device:
    places = cast("list[int] | None", entry["numa_nodes"])
    mask = None if places is None else sum(1 << node for node in places)
    return Device(cast("str", entry["id"]), numa_nodes=mask)
