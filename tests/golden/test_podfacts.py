"""Every recorded status can be said in the values of `podfacts`, and comes back as it was."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from nodealloc.testing.conformance import read_rows
from nodealloc.testing.conformance._recorded_status import recorded_status, status_row

NOW = 40
STATUS_KEYS = {"phase", "conditions", "container_statuses", "init_container_statuses", "start_time"}


def statuses(value: object) -> Iterator[dict[str, object]]:
    """Every document inside a row that has the shape of a status."""
    if isinstance(value, dict):
        if value.keys() & STATUS_KEYS and "op" not in value and "kind" not in value and "pod" not in value:
            yield value
        for name, part in value.items():
            if name not in STATUS_KEYS:
                yield from statuses(part)
    elif isinstance(value, list):
        for part in value:
            yield from statuses(part)


def said(value: object) -> object:
    """A document without null, empty texts and empty lists; the moment of the call as a number."""
    if isinstance(value, dict):
        kept = {name: said(part) for name, part in value.items()}
        return {
            name: part
            for name, part in kept.items()
            if part or isinstance(part, (bool, int, float)) or name in {"waiting", "running", "terminated"}
        }
    if isinstance(value, list):
        return [said(part) for part in value]
    return NOW if value == "now" else value


def whole(value: object) -> object:
    """A status with the fields that a row may leave out because they are false or zero."""
    document = said(value)
    assert isinstance(document, dict)
    for kind in ("init_container_statuses", "container_statuses", "ephemeral_container_statuses"):
        for one in document.get(kind, ()):
            one.setdefault("ready", False)
            one.setdefault("restart_count", 0)
            for state in (one.get("state", {}), one.get("last_state", {})):
                if "terminated" in state:
                    state["terminated"].setdefault("exit_code", 0)
    return document


@pytest.mark.parametrize(("kind", "least"), [("pod_phase_status", 1000), ("status_merge", 1500)])
def test_every_recorded_status_comes_back(kind: str, least: int, vectors: Path) -> None:
    """Phase, conditions, containers, addresses and times: nothing is lost and nothing is added."""
    seen = 0
    for row in read_rows(vectors / f"{kind}.jsonl.gz"):
        for document in statuses(dict(row)):
            expected = whole(document)
            assert isinstance(expected, dict)
            assert status_row(recorded_status(expected)) == expected, row["id"]
            seen += 1
    assert seen >= least
