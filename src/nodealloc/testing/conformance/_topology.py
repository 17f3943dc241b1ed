"""Recorded merges of topology hints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from nodealloc import topology
from nodealloc.podspec import Json
from nodealloc.testing.conformance._kinds import Row
from nodealloc.topology import Hints, NumaTopology, Policy, PolicyName, TopologyHint

__all__ = ["merge", "merge_arguments"]

_RowHints = Mapping[str, Sequence[tuple[int | None, bool]] | None]


def merge(row: Row, _machines: Mapping[str, Row]) -> tuple[Json, Json]:
    """The hint and the verdict of one merge."""
    found = topology.merge(*merge_arguments(row))
    got: Json = [[found.hint.affinity, found.hint.preferred], found.admit]
    return [row["hint"], row["admit"]], got


def merge_arguments(row: Row, /) -> tuple[Policy, Sequence[Hints], NumaTopology]:
    """What `nodealloc.topology.merge` takes, from a recorded row."""
    policy = Policy(name=PolicyName(row["policy"]), prefer_closest=bool(row["prefer_closest"]))
    recorded = cast("Sequence[_RowHints | None]", row["providers"])
    distances = cast("Mapping[str, Sequence[int]]", row.get("distances", {}))
    numa = NumaTopology(
        nodes=tuple(cast("Sequence[int]", row["numa_nodes"])),
        distances={int(node): dict(enumerate(far)) for node, far in distances.items()},
    )
    return policy, [_hints(provider) for provider in recorded], numa


def _hints(recorded: _RowHints | None) -> Hints:
    return {
        resource: None if hints is None else [TopologyHint(mask, preferred) for mask, preferred in hints]
        for resource, hints in (recorded or {}).items()
    }
