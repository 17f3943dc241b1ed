"""Golden stories: one sequence of events, one sequence of statuses, byte for byte.

To write a story, put its events into a file below `tests/golden/podstatus/`, run
`python -m tests.golden.test_podstatus_told`, and read what is told.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.golden.podstatus_told import Story

FOLDER = Path(__file__).parent / "podstatus"
STORIES = sorted(FOLDER.glob("*.txt"))


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.stem)
def test_a_story_is_told_as_it_was(path: Path) -> None:
    """The same events tell the same statuses, in the same order, to the last byte."""
    text = path.read_text(encoding="utf-8")
    assert Story().play(text) == text


def test_there_are_stories() -> None:
    """The folder was found, and each story has something that is told."""
    assert len(STORIES) >= 10
    assert all("\n= " in path.read_text(encoding="utf-8") for path in STORIES)


if __name__ == "__main__":
    for story in STORIES:
        story.write_text(Story().play(story.read_text(encoding="utf-8")), encoding="utf-8")
