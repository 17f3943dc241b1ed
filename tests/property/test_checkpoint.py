"""Laws of checkpoints and stores, over generated values."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodealloc.checkpoint import (
    Checkpoint,
    CpuManagerState,
    DeviceManagerState,
    FileStore,
    JsonCheckpoint,
    MemoryManagerState,
    row_key,
)
from nodealloc.checkpoint._fnv import fnv1a32
from nodealloc.checkpoint._keys import check_key, reader_for
from nodealloc.testing.checkpoint import FaultyFiles, InjectedFault, PowerCut, SimulatedDisk, check_checkpoint
from nodealloc.testing.strategies.checkpoint import (
    cpu_manager_states,
    device_manager_states,
    json_values,
    memory_manager_states,
)

SEEDS = st.integers(0, 2**32)


@given(cpu_manager_states(), SEEDS)
def test_cpu_states(state: CpuManagerState, seed: int) -> None:
    """Any CPU state keeps the contract of a checkpoint."""
    check_checkpoint(state, rng=random.Random(seed), count=20)


@given(memory_manager_states(), SEEDS)
def test_memory_states(state: MemoryManagerState, seed: int) -> None:
    """Any memory state keeps the contract of a checkpoint."""
    check_checkpoint(state, rng=random.Random(seed), count=20)


@given(device_manager_states(), SEEDS)
def test_device_states(state: DeviceManagerState, seed: int) -> None:
    """Any device state keeps the contract of a checkpoint."""
    check_checkpoint(state, rng=random.Random(seed), count=20)


@given(st.text(), st.integers(0, 9), json_values(), SEEDS)
def test_records(kind: str, version: int, value: object, seed: int) -> None:
    """Any record keeps the contract of a checkpoint."""
    try:
        record = JsonCheckpoint(kind=kind, version=version, value=value)  # type: ignore[arg-type]
        record.marshal()
    except UnicodeEncodeError:
        return
    check_checkpoint(record, rng=random.Random(seed), count=20)


@given(st.binary(max_size=6000))
def test_fnv_is_the_byte_loop(data: bytes) -> None:
    """The fast hash equals the plain definition."""
    value = 2166136261
    for byte in data:
        value = ((value ^ byte) * 16777619) & 0xFFFFFFFF
    assert fnv1a32(data) == value


@given(st.integers(0, 200_000), st.integers(0, 2**32))
def test_fnv_of_long_texts(length: int, seed: int) -> None:
    """The same over lengths on all sides of what the fast way works with."""
    data = random.Random(seed).randbytes(length)
    value = 2166136261
    for byte in data:
        value = ((value ^ byte) * 16777619) & 0xFFFFFFFF
    assert fnv1a32(data) == value


@given(st.text(max_size=30), st.text(max_size=30))
def test_row_keys_are_keys_and_differ(one: str, other: str) -> None:
    """Any text that UTF-8 can carry makes a key, different texts different ones."""
    try:
        keys = {row_key("pod", one), row_key("pod", other)}
    except (UnicodeEncodeError, ValueError):
        return
    assert len(keys) == len({one, other})
    for key in keys:
        assert check_key(key) == key
        assert reader_for(key, {"pod.*": JsonCheckpoint.unmarshal}) is not None


@given(st.text(max_size=12))
def test_no_key_leaves_its_directory(text: str) -> None:
    """Whatever passes as a key is one plain file name."""
    try:
        key = check_key(text)
    except ValueError:
        return
    assert key not in {"", ".", ".."}
    assert not set(key) & set("/\\\0\n ")
    assert not key.startswith(".")


@given(SEEDS, st.lists(st.integers(1, 60), min_size=1, max_size=6))
def test_no_chain_of_power_cuts_mixes_commits(seed: int, cuts: list[int]) -> None:
    """Commits and cuts in any sequence: what a store opens with was committed, or was being committed."""
    rng = random.Random(seed)
    formats = {"row.*": JsonCheckpoint.unmarshal}
    disk = SimulatedDisk()
    known: dict[str, Checkpoint] = {}
    for cut in cuts:
        faulty = FaultyFiles(disk, lambda n, _: InjectedFault(cut=n == cut))  # noqa: B023
        tried = known
        try:
            store = FileStore(disk.path, formats, files=faulty)
            assert store.read().values == known
            for number in range(9):
                rows = rng.sample(range(5), rng.randrange(1, 4))
                changes = {f"row.{n}": JsonCheckpoint(kind="r", version=0, value=number) for n in rows}
                tried = {**known, **changes}
                store.commit(changes)
                known = tried
        except PowerCut:
            pass
        disk = rng.choice(list(disk.outcomes(rng, limit=4)))
        with FileStore(disk.path, formats, files=disk) as store:
            found = dict(store.read().values)
        assert found in (known, tried)
        known = found


def test_keys_that_are_refused() -> None:
    """Separators, parents, hidden names, and what is too long."""
    for key in ("", "a/b", "../a", "a..b", ".a", "a.", "a" * 201, "ä", "a b", "a\n", "-a", "a\0"):
        with pytest.raises(ValueError, match="key"):
            check_key(key)
