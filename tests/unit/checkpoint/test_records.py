"""Lines of records: what is believed of one, and what that costs."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

import nodealloc.checkpoint._record as written_down
from nodealloc import checkpoint
from nodealloc.checkpoint import (
    CPU_STATE,
    DEVICE_STATE,
    KUBELET_FORMATS,
    MEMORY_STATE,
    Checkpoint,
    CorruptCheckpointError,
    CpuManagerState,
    CpuManagerStateV1,
    DeviceManagerState,
    JsonCheckpoint,
    MemoryManagerState,
    MemoryStore,
)
from nodealloc.errors import ConfigurationError, DecodeError
from nodealloc.podspec import Json

VALUE: Json = {"pods": ["ä", {"name": 'a "quoted" one', "cpus": 1.5}], "version": 1, "none": None}


def _record() -> JsonCheckpoint:
    return JsonCheckpoint(kind="wörk", version=3, value=VALUE)


def _changed(line: bytes) -> Iterator[bytes]:
    """The line with one byte another, away, or twice."""
    for at in range(len(line)):
        yield line[:at] + line[at + 1 :]
        yield line[: at + 1] + line[at:]
        for bit in (1, 2, 16):
            yield line[:at] + bytes([line[at] ^ bit]) + line[at + 1 :]


def test_no_changed_byte_is_believed() -> None:
    """A line of which a byte was changed is refused, or means the same."""
    record = _record()
    for line in _changed(record.marshal()):
        try:
            found = JsonCheckpoint.unmarshal(line)
            found.verify()
        except (DecodeError, CorruptCheckpointError):
            continue
        assert found == record


def test_a_line_that_is_laid_out_otherwise_is_believed() -> None:
    """Whoever writes the same record with spaces, and its keys in another order, has not damaged it."""
    document = json.loads(_record().marshal())
    found = JsonCheckpoint.unmarshal(json.dumps(dict(reversed(document.items())), indent=2).encode())
    found.verify()
    assert found == _record()


def test_a_value_that_is_put_in_place_of_another_is_not_believed() -> None:
    """The checksum of one record does not speak for another one's value."""
    line = _record().marshal().replace(b'"cpus":1.5', b'"cpus":2.5')
    with pytest.raises(CorruptCheckpointError):
        JsonCheckpoint.unmarshal(line).verify()


def test_a_value_that_is_as_it_was_written_is_not_written_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """A start believes each of thousands of lines by its text."""
    line, again = _record().marshal(), list[object]()
    canonical = written_down.__dict__["_canonical"]

    def counted(value: object) -> object:
        again.append(value)
        return canonical(value)

    monkeypatch.setattr(written_down, "_canonical", counted)
    JsonCheckpoint.unmarshal(line).verify()
    assert again == ["wörk"]


@pytest.mark.parametrize("value", ["\ud800", {"a": ["b\ud800"]}, {"\ud800": 1}])
def test_a_text_that_cannot_be_written_is_refused(value: Json) -> None:
    """Half of a pair of surrogates, as a value or a key, and the store stays as it is."""
    store = MemoryStore({"a": JsonCheckpoint.unmarshal})
    with pytest.raises(
        ConfigurationError, match=r"record of kind 'k': .*\\ud800' has half of a pair of surrog"
    ):
        store.commit({"a": JsonCheckpoint(kind="k", version=1, value=value)})
    assert store.read().values == {}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (
            CPU_STATE,
            CpuManagerState(policy_name="static", default_cpuset="0", entries={"u\ud800": {"a": "1"}}),
        ),
        (CPU_STATE, CpuManagerStateV1(policy_name="static\ud800", default_cpuset="0")),
        (MEMORY_STATE, MemoryManagerState(policy_name="None\ud800", machine_state={})),
        (DEVICE_STATE, DeviceManagerState(registered_devices={"a.b/c": ("\ud800",)})),
    ],
)
def test_a_state_that_cannot_be_written_is_refused_by_its_key(key: str, value: Checkpoint) -> None:
    """A kubelet's file, too, and the store stays as it is."""
    store = MemoryStore(KUBELET_FORMATS)
    with pytest.raises(
        ConfigurationError, match=rf"commit, '{key}': .+\\ud800.* has half of a pair of surrog"
    ):
        store.commit({key: value})
    assert store.read().values == {}


def test_everything_that_is_public_is_listed() -> None:
    """What is loaded when somebody asks for it, too."""
    assert set(checkpoint.__all__) <= set(dir(checkpoint))
