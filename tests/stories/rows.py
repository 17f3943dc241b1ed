"""Stories as they lie in a file, and which of them need a room that is not built yet."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import attrs

__all__ = ["ROOMS_TO_COME", "Story", "read", "reason_to_skip"]

Json = object

ROOMS_TO_COME: Final[Mapping[str, str]] = {
    "eviction": "who has to go when the node runs short (eviction)",
    "shutdown": "the order in which pods end when the machine goes down (shutdown)",
    "node": "what to tell about the node (nodestatus)",
    "logs": "rotation of logs (serving)",
    "mirror": "who makes mirror pods (an API server's side of static pods)",
    "resize": "who judges a resize that an API server asks for",
}
"""Kinds of stories that need something that does not exist, and what."""

_STEPS_TO_COME: Final[Mapping[str, str]] = {
    "shutdown_signal": ROOMS_TO_COME["shutdown"],
}
_NAMED: Final[Mapping[str, str]] = {
    "emptydir-disk-over-limit": ROOMS_TO_COME["eviction"],
}


@attrs.frozen
class Story:
    """One row.

    Attributes:
        row: The whole of it.
    """

    row: Mapping[str, Json]

    @property
    def name(self) -> str:
        """What it is called."""
        return str(self.row["name"])

    @property
    def kind(self) -> str:
        """What it is about."""
        return str(self.row["kind"])

    @property
    def end(self) -> float:
        """How long is watched, in seconds."""
        return float(str(self.row["end"]))

    @property
    def steps(self) -> Sequence[Mapping[str, Json]]:
        """What is done."""
        steps = self.row["steps"]
        return steps if isinstance(steps, list) else []

    @property
    def seen(self) -> Mapping[str, Json]:
        """What was recorded."""
        seen = self.row["seen"]
        return seen if isinstance(seen, dict) else {}

    @property
    def settings(self) -> Mapping[str, Json]:
        """Fields of the configuration that this story sets."""
        settings = self.row.get("kubelet")
        return settings if isinstance(settings, dict) else {}


def read(path: Path, /) -> list[Story]:
    """All stories of a file, gzip or plain."""
    data = path.read_bytes()
    lines = (gzip.decompress(data) if path.suffix == ".gz" else data).splitlines()
    return [Story(json.loads(line)) for line in lines if line.strip()]


def _fell_over(story: Story) -> bool:
    """Whether the recorded agent stopped answering though nobody ended it, without a word of why."""
    answers = story.seen.get("agent")
    silent = isinstance(answers, list) and [one[1] for one in answers] == ["does not answer"]
    return silent and not story.seen.get("agent_fatal")


def reason_to_skip(story: Story, /) -> str:
    """What it needs that is not there; "" for nothing."""
    if story.name in _NAMED:
        return _NAMED[story.name]
    if story.kind in ROOMS_TO_COME and story.name != "termination-messages":
        return ROOMS_TO_COME[story.kind]
    if _fell_over(story):
        return "nothing that can be imitated: the recorded agent fell over"
    for step in story.steps:
        if (what := _STEPS_TO_COME.get(str(step["do"]))) is not None:
            return what
    return ""
