"""Kinds `take_cpus` and `cpu_hints`: which CPUs, and on which nodes they would fit."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from nodealloc.cpuset import CpuLayout, CPUSet, KubeletPicker, NotEnoughCpusError, PickMode
from nodealloc.cpuset import (
    take_cpus as take,
)
from nodealloc.cpuset._hints import HintTable
from nodealloc.cpuset._pickers import SortStrategy
from nodealloc.testing.conformance._recorded_machine import recorded_machine

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nodealloc.podspec import Json
    from nodealloc.testing.conformance._kinds import Row

__all__ = ["cpu_hints", "take_cpus"]

_layouts: dict[int, tuple[Row, CpuLayout]] = {}
_tables: dict[tuple[int, bool], HintTable] = {}


def take_cpus(row: Row, machines: Mapping[str, Row]) -> tuple[Json, Json]:
    """Expected and got for one pick; null stands for a refusal."""
    picker = KubeletPicker(
        mode=PickMode(row["mode"]),
        strategy=SortStrategy(row["strategy"]),
        group_size=cast("int", row["cpu_group_size"]),
        align_caches=bool(row["prefer_align_by_uncore_cache"]),
    )
    expected = None if row["error"] else row["result"]
    layout = _layout(machines[str(row["machine"])])
    try:
        got = take(layout, CPUSet.parse(str(row["available"])), cast("int", row["num_cpus"]), picker=picker)
    except NotEnoughCpusError:
        return expected, None
    return expected, str(got)


def cpu_hints(row: Row, machines: Mapping[str, Row]) -> tuple[Json, Json]:
    """Expected and got for one request, hints in their order."""
    hints = _table(machines[str(row["machine"])], bool(row["align_by_socket"])).hints(
        CPUSet.parse(str(row["available"])).mask,
        cast("int", row["request"]),
        reusable=CPUSet.parse(str(row["reusable"])).mask,
    )
    return row["hints"], [[hint.affinity, hint.preferred] for hint in hints]


def _layout(machine: Row) -> CpuLayout:
    # The row is kept beside its layout, so that its identity is not given to another.
    known = _layouts.get(id(machine))
    if known is None:
        known = _layouts[id(machine)] = (machine, CpuLayout.of(recorded_machine(machine)))
    return known[1]


def _table(machine: Row, align_by_socket: bool) -> HintTable:
    layout = _layout(machine)
    key = (id(machine), align_by_socket)
    if key not in _tables:
        _tables[key] = HintTable(layout, align_by_socket=align_by_socket)
    return _tables[key]
