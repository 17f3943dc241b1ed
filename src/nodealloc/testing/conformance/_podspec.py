"""Kind `quantity`: parsing, rounding and the canonical form."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodealloc.errors import DecodeError
from nodealloc.podspec import Quantity

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nodealloc.podspec import Json
    from nodealloc.testing.conformance._kinds import Row

__all__ = ["quantity"]

_INT64 = 2**63


def quantity(row: Row, _machines: Mapping[str, Row]) -> tuple[Json, Json]:
    """Expected and got for one text.

    Where the exact thousandths do not fit 64 bits, the recorded figure has
    wrapped around and is not compared.
    """
    try:
        amount = Quantity.parse(str(row["in"]))
    except DecodeError:
        return {"error": row["error"]}, {"error": True}
    if row["error"]:
        return {"error": True}, {"error": False, "canonical": str(amount)}
    got: dict[str, Json] = {"canonical": str(amount), "value": amount.value}
    if abs(amount.milli_value) < _INT64:
        got["milli_value"] = amount.milli_value
    return {name: row[name] for name in got}, got
