"""Slips of whoever writes a first program: the error names what was written, where it was written."""

from __future__ import annotations

from typing import Any

import pytest

from nodealloc.errors import DecodeError
from nodealloc.podspec import resources

NOTHING: Any = None


def test_amounts_that_are_none_are_named() -> None:
    """Of several amounts each that is none is told with the name of its resource."""
    with pytest.raises(DecodeError) as caught:
        resources({"cpu": 1, "memory": "1Gb", "pods": NOTHING})
    assert [fault.path for fault in caught.value.faults] == ["$.memory", "$.pods"]
    assert "found '1Gb'" in caught.value.faults[0].reason
    assert "found nothing" in caught.value.faults[1].reason
