"""Editions of one source as JSON and back; dicts stop here."""

from __future__ import annotations

from typing import Final

import cattrs

from nodealloc._stored import Stored, count, row_converter
from nodealloc._typed import typed
from nodealloc.checkpoint import JsonCheckpoint
from nodealloc.podsources._editions import Editions

__all__ = ["SOURCE_ROWS", "editions_from_checkpoint", "editions_to_checkpoint"]

SOURCE_ROWS: Final = "sources"
"""Kind of the rows of editions, for `row_key` and `rows_of` of `nodealloc.checkpoint`, by source."""


def editions_to_checkpoint(editions: Editions, /) -> JsonCheckpoint:
    """What a store takes of them, such as under `row_key(SOURCE_ROWS, source)`."""
    return _STORED.written(editions)


@typed
def editions_from_checkpoint(checkpoint: JsonCheckpoint, /) -> Editions:
    """What was written.

    Raises:
        DecodeError: It is of another kind or version, or not of this shape.
    """
    return _STORED.read(checkpoint)


def _converter() -> cattrs.Converter:
    converter = row_converter()
    converter.register_structure_hook(int, count)
    return converter


_STORED: Final = Stored(Editions, kind="pod editions", converter=_converter())
