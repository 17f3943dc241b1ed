"""Recorded set algebra and parsing."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

from nodealloc.testing.conformance._idset import cpuset


def test_every_recorded_row_agrees(vectors: Path) -> None:
    """All recorded operations and texts give what was recorded."""
    rows = [
        json.loads(line) for line in gzip.decompress((vectors / "cpuset.jsonl.gz").read_bytes()).splitlines()
    ]
    assert len(rows) == 816
    for row in rows:
        expected, got = cpuset(row, {})
        assert got == expected, row
