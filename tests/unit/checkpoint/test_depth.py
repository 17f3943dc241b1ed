"""Deep records: read alike from wherever the caller stands; too deep is an error of ours."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from nodealloc.checkpoint import (
    FileStore,
    JsonCheckpoint,
    MemoryStore,
    SqliteStore,
    inspect,
    read_cpu_manager_state,
)
from nodealloc.checkpoint._json import _refuse_twins
from nodealloc.errors import DecodeError

T = TypeVar("T")
FORMATS = {"a": JsonCheckpoint.unmarshal}
DEEPEST = 256


def nested(levels: int) -> Any:  # JSON
    """Lists and mappings in turn, this deep."""
    value: object = 1
    for level in range(levels):
        value = [value] if level % 2 else {"k": value}
    return value


def record(levels: int) -> JsonCheckpoint:
    """A record whose value is this deep."""
    return JsonCheckpoint(kind="deep", version=1, value=nested(levels))


def from_frame(frames: int, function: Callable[[], T]) -> T:
    """Call with this many frames on the stack."""
    depth = 0
    frame = sys._getframe()
    while frame.f_back is not None:
        depth += 1
        frame = frame.f_back
    return _descend(frames - depth, function)


def _descend(frames: int, function: Callable[[], T]) -> T:
    return _descend(frames - 1, function) if frames > 0 else function()


FRAMES = [0, *range(300, 900, 50), *range(900, 960, 10)]
"""Of the thousand that Python allows; a store needs some thirty of its own to be opened."""


@pytest.mark.parametrize("levels", [1, 200, DEEPEST])
def test_a_record_is_the_same_from_every_frame(levels: int) -> None:
    """Bytes, checksum and value do not hang on how deep the caller's calls are."""
    data = record(levels).marshal()
    for frames in FRAMES:
        assert from_frame(frames, lambda: record(levels).marshal()) == data
        read = from_frame(frames, lambda: JsonCheckpoint.unmarshal(data))
        from_frame(frames, read.verify)
        assert read.value == nested(levels)


@pytest.mark.parametrize("levels", [DEEPEST + 1, 400, 990, 5000])
def test_a_deeper_record_is_no_record_from_any_frame(levels: int) -> None:
    """What is too deep to be written is a wrong value, and what is too deep to be read wrong bytes."""
    value = nested(levels)
    data = b'{"checksum":"0","kind":"deep","value":' + b"[" * levels + b"]" * levels + b',"version":1}'
    for frames in FRAMES:
        with pytest.raises(ValueError, match="nested more than 256 levels"):
            from_frame(frames, lambda: JsonCheckpoint(kind="deep", version=1, value=value))
        with pytest.raises(DecodeError, match="nested"):
            from_frame(frames, lambda: JsonCheckpoint.unmarshal(data))


@pytest.mark.parametrize("kind", [FileStore, SqliteStore])
def test_a_deep_record_is_not_damaged_by_a_deep_caller(
    tmp_path: Path, kind: type[FileStore | SqliteStore]
) -> None:
    """A store that is opened from deep inside a program finds what was committed, and moves nothing aside."""
    path = tmp_path / "store"
    with kind(path, FORMATS) as store:
        store.commit({"a": record(200)})
    for frames in (500, 700, 900, 940):
        with from_frame(frames, lambda: kind(path, FORMATS)) as store:
            contents = store.read()
            assert contents.damaged == ()
            assert contents.values == {"a": record(200)}
    assert [finding.reason for finding in inspect(path)] == [""]


def test_a_deep_record_is_committed_by_a_deep_caller() -> None:
    """Writing needs no more of the caller's stack than reading."""
    store = MemoryStore(FORMATS)
    from_frame(940, lambda: store.commit({"a": record(DEEPEST)}))
    assert MemoryStore(FORMATS, data=store.data()).read().values == {"a": record(DEEPEST)}


def test_a_key_that_stands_twice_is_found_in_one_pass() -> None:
    """An object of thousands of keys, the last one twice, is refused by that key."""
    compared = 0

    class Key(str):
        __slots__ = ()

        def __eq__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return super().__eq__(other)

        __hash__ = str.__hash__

    pairs: list[tuple[str, Any]] = [(Key(f"k{number}"), 0) for number in range(5000)]
    with pytest.raises(ValueError, match="'last' stands twice"):
        _refuse_twins([*pairs, (Key("last"), 0), (Key("last"), 1)])
    assert compared < 50_000


@pytest.mark.parametrize("kind", [FileStore, SqliteStore])
def test_at_the_end_of_the_stack_nothing_is_damaged_or_half_done(
    tmp_path: Path, kind: type[FileStore | SqliteStore]
) -> None:
    """Where Python has no room left even for a thread it says so, and store and disk agree all the same."""
    path = tmp_path / "store"
    kind(path, FORMATS).close()
    store = kind(path, FORMATS)
    done = 0
    for frames in range(900, 1000):
        value = record(150 + frames % 100)
        try:
            from_frame(frames, lambda value=value: store.commit({"a": value}))  # type: ignore[misc]
        except RecursionError:
            continue
        assert store.read().values == {"a": value}
        done += 1
    kept = dict(store.read().values)
    store.close()
    for frames in range(900, 1000):
        try:
            again = from_frame(frames, lambda: kind(path, FORMATS))
        except RecursionError:
            continue
        with again:
            assert again.read().damaged == ()
            assert again.read().values == kept
    with kind(path, FORMATS) as last:
        assert last.read().values == kept
    assert done > 60


def test_a_long_name_is_not_repeated_for_each_container() -> None:
    """Faults in a state file name the start of a long pod; thousands of containers below it cost little."""
    entries = {"p" * 100_000: {f"c{number}": 7 for number in range(5000)}}
    data = json.dumps(
        {"policyName": "static", "defaultCpuSet": "", "entries": entries, "checksum": 1}
    ).encode()
    with pytest.raises(DecodeError) as caught:
        read_cpu_manager_state(data)
    assert len(str(caught.value)) < 1 << 16
