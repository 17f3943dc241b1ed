"""Tools for device plugins in other languages, and what is said where they are missing."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.foreign import built


def test_nothing_is_installed_where_nothing_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Node from elsewhere brings its npm; Debian's would be in its way."""

    def installed(*_: object) -> None:
        pytest.fail("packages were installed")

    monkeypatch.setattr("shutil.which", lambda tool: f"/opt/node/bin/{tool}")
    monkeypatch.setattr(built, "_run", installed)
    built.install("js")


def test_all_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the packages that have it."""
    monkeypatch.setattr("shutil.which", lambda _: None)
    monkeypatch.setattr(built, "_place", lambda language: Path("/nonexistent") / language)
    with pytest.raises(built.Absent, match="node and npm missing; Debian has it in: nodejs npm"):
        built.build("js")


def test_the_reason_has_the_last_words_of_the_tool(tmp_path: Path) -> None:
    """Its exit status alone says nothing."""
    words = [
        sys.executable,
        "-c",
        "import sys; sys.exit('npm: Depends: node-gyp, not installable')",
    ]
    with pytest.raises(built.Absent, match=r"ended with 1: npm: Depends: node-gyp"):
        built._run(words, tmp_path)
