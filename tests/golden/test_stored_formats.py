"""Every format of ours that stands on a disk, with every field in use: read for ever, written as it was.

`agent/filled_v1.json` was written by the code of its time. A release that writes a row otherwise gives it
another version, and reads this one still: what is recorded here is added to, and never made anew.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

import attrs
import pytest

from nodealloc.agent import AGENT_FORMATS, Remembered
from nodealloc.checkpoint import (
    FileStore,
    Formats,
    Identity,
    JsonCheckpoint,
    MemoryStore,
    Since,
    SqliteStore,
    StoreFailedError,
)
from nodealloc.cpuset import CpuAllocator, CPUSet
from nodealloc.dsw_asw import Moment
from nodealloc.machine import machine_from_text
from nodealloc.node._codec import from_checkpoint, to_checkpoint
from nodealloc.node._record import WorkloadRecord
from nodealloc.podlife import _codec as podlife
from nodealloc.podsources import Editions, editions_to_checkpoint
from nodealloc.podsources._editions import Edition
from nodealloc.podstatus import _codec as podstatus
from nodealloc.probes import _codec as probes
from nodealloc.runtime import _codec as runtime

FOLDER: Final = Path(__file__).with_name("agent")
STORED: Final[Mapping[str, Any]] = json.loads((FOLDER / "filled_v1.json").read_text(encoding="utf-8"))
ROWS: Final[Mapping[str, str]] = STORED["rows"]
UID: Final = "8f1c0000-0000-4000-8000-00000000000f"
NOW: Final = Moment(
    boot_id="00000000-0000-4000-8000-000000000001", monotonic_s=1000.0, unix_s=1_700_000_000.0
)
HERE: Final = Identity(boot_id="boot-1", machine="machine-1")
FORMATS: Final[Formats] = {"row.*": JsonCheckpoint.unmarshal}
Writer: TypeAlias = Callable[[Remembered], JsonCheckpoint]
WRITERS: Final[Mapping[str, Writer]] = {
    "podlife": lambda was: podlife.record_to_checkpoint(was.lives[UID], NOW),
    "podstatus": lambda was: podstatus.told_to_checkpoint(was.told[UID]),
    "probes": lambda was: probes.verdicts_to_checkpoint(was.verdicts[UID]),
    "runtime": lambda was: runtime.pod_to_checkpoint(was.known[UID]),
    "sources": lambda was: editions_to_checkpoint(was.editions["file"]),
}


def stored(kind: str) -> JsonCheckpoint:
    """The one row of a kind."""
    (text,) = [text for key, text in ROWS.items() if key.startswith(f"{kind}.")]
    return JsonCheckpoint.unmarshal(text.encode())


def remembered() -> Remembered:
    """What an agent of today finds."""
    store = MemoryStore(AGENT_FORMATS, data={key: text.encode() for key, text in ROWS.items()})
    assert store.read().is_whole
    assert store.read().values.keys() == ROWS.keys()
    return Remembered.read(store, now=NOW)


@pytest.mark.parametrize("kind", WRITERS)
def test_a_row_with_every_field_comes_back(kind: str) -> None:
    """Byte for byte, but for what later releases add, which is empty."""
    before, now = stored(kind), WRITERS[kind](remembered())
    assert (before.kind, before.version) == (now.kind, now.version)
    was: Any = before.value
    value: Any = now.value
    assert {name: value[name] for name in was} == was
    assert not any(value[name] for name in value.keys() - was.keys())


def test_a_workload_with_every_field_comes_back() -> None:
    """What it was granted, too, to a container that may grow and has shared CPUs besides."""
    record = from_checkpoint(stored("workload"))
    assert to_checkpoint(record) == stored("workload")
    cpus = CpuAllocator.of(machine_from_text("4 cores"), reserved=CPUSet.of(0))
    restored = cpus.restored({UID: record.grants["cpu"]})
    assert (restored.moved, dict(restored.evicted)) == ((), {})
    assert isinstance(restored.allocator, CpuAllocator)
    assert restored.allocator.remembered(UID) == record.grants["cpu"]


@pytest.mark.parametrize(
    ("kind", "shape"),
    [
        ("podlife", podlife._Row),  # the layout itself is what is looked at
        ("podstatus", podstatus._Row),
        ("probes", probes._Row),
        ("runtime", runtime._Row),
        ("sources", Editions),
        ("workload", WorkloadRecord),
    ],
)
def test_no_field_is_without_a_stored_example(kind: str, shape: type[attrs.AttrsInstance]) -> None:
    """Whoever adds one to a row adds a file with it in use: from then on it is read for ever."""
    value: Any = stored(kind).value
    names = [field.name for field in attrs.fields(shape)]
    assert [name for name in names if not value.get(name)] == []
    if shape is Editions:
        (edition,) = value["by_name"].values()
        assert edition.keys() == {field.name for field in attrs.fields(Edition)}


def test_what_was_set_aside_is_read() -> None:
    """With the row that it was, to the letter."""
    value: Any = stored("set-aside").value
    row = JsonCheckpoint.unmarshal(value["text"].encode())
    assert (value["key"], row.kind, row.version) == ("workload.other", "workload", 2)


def test_a_commit_that_an_earlier_release_began_is_finished(tmp_path: Path) -> None:
    """A directory as it stands when the power goes after the record's rename; and whose it was."""
    folder = tmp_path / "store"
    folder.mkdir(mode=0o700)
    for name, text in STORED["files"].items():
        (folder / name).write_text(text, encoding="utf-8")
    with FileStore(folder, FORMATS, identity=HERE) as store:
        found = store.read()
    assert found.is_whole
    assert {key: getattr(row, "value", None) for key, row in found.values.items()} == {"row.1": 3}
    assert (found.since, found.writer) == (Since.RESTART, HERE)


def test_a_commit_that_a_later_release_began_is_left_to_it(tmp_path: Path) -> None:
    """Its record was carried out as one of today, whatever that release meant by it."""
    folder = tmp_path / "store"
    folder.mkdir(mode=0o700)
    files: dict[str, str] = {**STORED["files"]}
    value = JsonCheckpoint.unmarshal(files[".nodealloc.commit"].encode()).value
    later = JsonCheckpoint(kind="commit", version=2, value=value).marshal()
    files[".nodealloc.commit"] = later.decode()
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    with pytest.raises(StoreFailedError, match=r"\.nodealloc\.commit.*version 2.*release that wrote it"):
        FileStore(folder, FORMATS)
    left = {path.name: path.read_text() for path in folder.iterdir() if path.name != ".nodealloc.lock"}
    assert left == files


def test_a_database_of_an_earlier_release_is_read(tmp_path: Path) -> None:
    """Its tables, the damage that is not settled, and whose it was."""
    path = tmp_path / "store.db"
    path.touch(mode=0o600)
    connection = sqlite3.connect(path)
    connection.executescript("\n".join(STORED["sqlite"]))
    connection.close()
    with SqliteStore(path, FORMATS, identity=HERE) as store:
        found = store.read()
        assert {key: getattr(row, "value", None) for key, row in found.values.items()} == {"row.1": 1}
        assert [one.key for one in found.damaged] == ["row.2"]
        assert (found.since, found.writer) == (Since.RESTART, HERE)
        store.commit({"row.2": JsonCheckpoint(kind="row", version=1, value=4)})
    with SqliteStore(path, FORMATS) as store:
        assert store.read().is_whole
