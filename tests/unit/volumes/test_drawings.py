"""Drawings in the docs are those of the tables that the code reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodealloc.dsw_asw._drawing import as_svg
from nodealloc.volumes import MOUNT_LIFE, VOLUME_LIFE

DOCS = Path(__file__).parents[3] / "docs" / "reference"


@pytest.mark.parametrize(
    ("name", "drawn"),
    [("volume-life.svg", as_svg(VOLUME_LIFE)), ("mount-life.svg", as_svg(MOUNT_LIFE))],
    ids=["volume", "mount"],
)
def test_the_drawing_matches_its_table(name: str, drawn: str) -> None:
    """A table that changed without its picture is found here; write `as_svg` of it to the file."""
    assert (DOCS / name).read_text(encoding="utf-8") == drawn
