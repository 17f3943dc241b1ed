"""The kind `cpuset`: set algebra, and reading of CPU lists."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodealloc.errors import DecodeError
from nodealloc.idset import CPUSet

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nodealloc.podspec import Json
    from nodealloc.testing.conformance._kinds import Row

__all__ = ["cpuset"]


def cpuset(row: Row, _machines: Mapping[str, Row], /) -> tuple[Json, Json]:
    """(expected, got) of one row; a text that is refused has an empty `out` and `error`."""
    if row["op"] == "parse":
        return {"out": row["out"], "error": row["error"]}, _parsed(str(row["in"]))
    a, b = CPUSet.parse(str(row["a"])), CPUSet.parse(str(row["b"]))
    got: dict[str, Json] = {
        "union": str(a | b),
        "intersection": str(a & b),
        "difference": str(a - b),
        "equal": a == b,
        "a_subset_of_b": a <= b,
        "size_a": len(a),
    }
    return {name: row[name] for name in got}, got


def _parsed(text: str) -> dict[str, Json]:
    try:
        return {"out": str(CPUSet.parse(text)), "error": False}
    except DecodeError:
        return {"out": "", "error": True}
