"""How an end that nobody saw stands in a manifest."""

from __future__ import annotations

from typing import Final

__all__ = ["UNKNOWN_CODE", "UNKNOWN_REASON"]

UNKNOWN_CODE: Final = 137
UNKNOWN_REASON: Final = "ContainerStatusUnknown"
"""How the API's JSON, which needs a number, says that nobody knows how a container ended."""
