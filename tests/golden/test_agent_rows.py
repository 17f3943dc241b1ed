"""Rows of an agent as earlier releases wrote them: an upgrade forgets nothing, and so restarts nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from nodealloc.agent import AGENT_FORMATS, Remembered
from nodealloc.checkpoint import FileStore, JsonCheckpoint
from nodealloc.dsw_asw import Moment
from nodealloc.podfacts import LifeState
from nodealloc.podlife._codec import record_to_checkpoint
from nodealloc.podsources import editions_to_checkpoint
from nodealloc.podstatus._codec import told_to_checkpoint
from nodealloc.probes._codec import verdicts_to_checkpoint
from nodealloc.runtime._codec import pod_to_checkpoint

RECORDED: Final[Mapping[str, str]] = json.loads(
    Path(__file__).with_name("agent").joinpath("rows_v1.json").read_text(encoding="utf-8")
)
"""What the example agent left of pods that run, loop, end, have ended, came again and were refused."""


def value_of(key: str) -> Any:
    """What a row holds."""
    return json.loads(RECORDED[key])["value"]


NOW: Final = Moment(**value_of(min(RECORDED, key=lambda key: not key.startswith("podlife.")))["noticed"])


def is_alike(one: object, other: object) -> bool:
    """Equal but for times: of two clocks neither keeps quite the other's pace."""
    if isinstance(one, float) and isinstance(other, float):
        return one == pytest.approx(other, abs=1.0)
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(is_alike(one[key], other[key]) for key in one)
    if isinstance(one, Sequence) and isinstance(other, Sequence) and not isinstance(one, str):
        return len(one) == len(other) and all(map(is_alike, one, other))
    return one == other


@pytest.fixture
def was(tmp_path: Path) -> Remembered:
    """What this release reads in a folder of theirs."""
    folder = tmp_path / "checkpoint"
    folder.mkdir(mode=0o700)
    for key, text in RECORDED.items():
        (folder / key).write_text(text, encoding="utf-8")
    with FileStore(folder, AGENT_FORMATS) as store:
        found = store.read()
        assert not found.damaged
        assert found.values.keys() == RECORDED.keys()
        return Remembered.read(store, now=NOW)


def test_every_row_is_read_and_written_as_it_was(was: Remembered) -> None:
    """Field by field; a release that writes them otherwise says so by another version.

    What later releases have added is empty of what earlier ones wrote.
    """
    written: dict[str, JsonCheckpoint] = {
        **{f"podlife.{uid}": record_to_checkpoint(one, NOW) for uid, one in was.lives.items()},
        **{f"podstatus.{uid}": told_to_checkpoint(one) for uid, one in was.told.items()},
        **{f"probes.{uid}": verdicts_to_checkpoint(one) for uid, one in was.verdicts.items()},
        **{f"runtime.{uid}": pod_to_checkpoint(one) for uid, one in was.known.items()},
        **{f"sources.{source}": editions_to_checkpoint(one) for source, one in was.editions.items()},
    }
    others = {key for key in RECORDED if key.startswith(("workload.", "cpu_manager_state"))}
    assert written.keys() | others == RECORDED.keys()
    for key, row in written.items():
        before, now = json.loads(RECORDED[key]), json.loads(row.marshal())
        assert {**before, "checksum": "", "value": 0} == {**now, "checksum": "", "value": 0}
        added = {name: now["value"].pop(name) for name in now["value"].keys() - before["value"].keys()}
        assert not any(added.values()), key
        assert is_alike(before["value"], now["value"]), key
    assert {uid: pod.uid for uid, pod in was.pods.items()} == {uid: uid for uid in was.lives}


def test_every_pod_is_where_it_was(was: Remembered) -> None:
    """Who runs, has ended, ends or was refused, and how often each has started."""
    lives = {one.pod.name.removesuffix("-demo"): one for one in was.lives.values()}
    assert {name: one.life for name, one in lives.items() if one.life.is_ending} == {
        "done": LifeState.FINISHED,
        "large": LifeState.FINISHED,
        "ends": LifeState.TERMINATING,
    }
    assert lives["loop"].attempts == {"app": 2}
