"""Recorded state files: read, verified, and written again."""

from __future__ import annotations

from collections.abc import Mapping

from nodealloc.checkpoint import KUBELET_FORMATS
from nodealloc.podspec import Json
from nodealloc.testing.conformance._kinds import Row

__all__ = ["checkpoint_files"]


def checkpoint_files(row: Row, machines: Mapping[str, Row], /) -> tuple[Json, Json]:
    """The recorded bytes, and what reading, verifying and writing them gives."""
    del machines
    kind, recorded = row["kind"], row["file"]
    if not isinstance(kind, str) or not isinstance(recorded, str):
        raise TypeError(f"a row needs the texts `kind` and `file`, not {kind!r} and {recorded!r}")
    state = KUBELET_FORMATS[kind](recorded.encode())
    state.verify()
    return recorded, state.marshal().decode()
