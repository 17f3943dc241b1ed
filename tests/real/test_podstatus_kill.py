"""An agent that tells a folder is killed again and again; its successor tells the rest, and nothing else."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from pathlib import Path

import pytest

from nodealloc.checkpoint import FileStore, SqliteStore, row_formats, rows_of
from nodealloc.dsw_asw import InlineExecutor, World
from nodealloc.podfacts import LifeState, status_from_manifest
from nodealloc.podspec import Container, Pod
from nodealloc.podstatus import STATUS_ROWS, FolderSink, Observed, StatusManager, told_from_checkpoint

pytestmark = [pytest.mark.real, pytest.mark.forks]

FORMATS = row_formats(STATUS_ROWS)
PODS = 6
Store = FileStore | SqliteStore


def agent(store: Store, folder: Path, pods: World[str, Observed]) -> StatusManager[Observed]:
    """With what its predecessor left."""
    remembered = rows_of(STATUS_ROWS, store.read().values, told_from_checkpoint)
    sink = FolderSink(folder)
    return StatusManager(sink, pods, journal=store, remembered=remembered, executor=InlineExecutor())


def observed(number: int, generation: int) -> Observed:
    """A pod that starts, or has ended, by turns; each generation is another pod."""
    uid = f"pod/{number}.{generation // 2}"
    life = LifeState.TERMINATED if generation % 2 else LifeState.SYNCING
    return Observed(pod=Pod(uid=uid, name=f"web-{number}", containers=(Container(name="app"),)), life=life)


def wanted(generation: int) -> dict[str, Observed]:
    """All pods of a moment."""
    made = [observed(number, generation) for number in range(PODS)]
    return {one.pod.uid: one for one in made}


def live(kind: type[FileStore | SqliteStore], path: Path, first: int, report: int) -> None:
    """Generation after generation, each told to the parent once all of it was told."""
    store = kind(path / "store", FORMATS)
    pods: World[str, Observed] = World("pods")
    manager = agent(store, path / "told", pods)
    manager.heard(wanted(first))
    generation = first
    while True:
        pods.replace(wanted(generation))
        manager.run_until_quiet()
        os.write(report, generation.to_bytes(4, "big"))
        generation += 1


def kill_one(kind: type[FileStore | SqliteStore], path: Path, first: int, after_s: float) -> int:
    """Let an agent live and kill it; the last generation that it told the parent of, at least its first."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            live(kind, path, first, writing)
        finally:
            os._exit(1)
    os.close(writing)
    told = os.read(reading, 4)
    assert told, "the child could not tell"
    time.sleep(after_s)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    while part := os.read(reading, 1 << 16):
        told = (told + part)[-4:]
    os.close(reading)
    return int.from_bytes(told, "big")


def phases(folder: Path) -> dict[str, str]:
    """What the folder says; each file is whole."""
    found: dict[str, str] = {}
    for file in folder.glob("*.json"):
        document = json.loads(file.read_text())
        phase = status_from_manifest(document["status"]).phase
        assert phase is not None
        found[document["metadata"]["uid"]] = phase.value
    return found


@pytest.mark.parametrize("kind", [FileStore, SqliteStore])
def test_killed_at_any_moment_the_folder_ends_up_right(
    kind: type[FileStore | SqliteStore], tmp_path: Path
) -> None:
    """Files are whole at any moment; the last agent makes them say what is true, and forgets who is gone."""
    rng = random.Random(11)
    generation = -1
    for _ in range(8):
        generation = kill_one(kind, tmp_path, generation + 1, rng.random() * 0.1)
        assert phases(tmp_path / "told")
    assert generation >= 7
    # The last one may have begun the next generation: the world has gone on beyond it.
    generation += 2
    with kind(tmp_path / "store", FORMATS) as store:
        pods: World[str, Observed] = World("pods")
        manager = agent(store, tmp_path / "told", pods)
        pods.replace(wanted(generation))
        manager.heard()
        manager.run_until_quiet()
        expected = "Failed" if generation % 2 else "Pending"
        assert phases(tmp_path / "told") == dict.fromkeys(wanted(generation), expected)
        assert (
            rows_of(STATUS_ROWS, store.read().values, told_from_checkpoint).keys()
            == wanted(generation).keys()
        )
