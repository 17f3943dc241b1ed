"""Rows that packages remember: one reader says for all of them what is wrong, and where."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import pytest

from nodealloc._stored import Stored, row_converter
from nodealloc.agent import AGENT_FORMATS, Remembered
from nodealloc.checkpoint import JsonCheckpoint, MemoryStore, row_key
from nodealloc.dsw_asw import Moment
from nodealloc.errors import DecodeError
from nodealloc.node._codec import from_checkpoint
from nodealloc.podlife import record_from_checkpoint
from nodealloc.podsources import editions_from_checkpoint
from nodealloc.podspec import Json
from nodealloc.podstatus import told_from_checkpoint
from nodealloc.probes import verdicts_from_checkpoint
from nodealloc.runtime import pod_from_checkpoint

NOW = Moment(boot_id="b", monotonic_s=1.0, unix_s=2.0)

READERS: dict[str, Callable[[JsonCheckpoint], object]] = {
    "pod editions": editions_from_checkpoint,
    "pod ends": pod_from_checkpoint,
    "pod life": lambda row: record_from_checkpoint(row, NOW),
    "pod status": told_from_checkpoint,
    "probe verdicts": verdicts_from_checkpoint,
    "workload": from_checkpoint,
}
kinds = pytest.mark.parametrize("kind", READERS)


@kinds
def test_a_row_of_another_version_says_who_can_read_it(kind: str) -> None:
    """Whoever went back to an older version learns which one to start."""
    with pytest.raises(DecodeError) as caught:
        READERS[kind](JsonCheckpoint(kind=kind, version=7, value={}))
    (fault,) = caught.value.faults
    assert fault.path == "$"
    assert fault.reason == (
        f"expected {kind} version 1, found {kind} version 7; start the version that wrote it"
    )


@kinds
@pytest.mark.parametrize("value", [None, 7, "text", [], [["uid", "u"]]], ids=repr)
def test_a_row_that_holds_no_mapping_is_refused(kind: str, value: Json) -> None:
    """It is a damaged row as any other, not a failure of the reader."""
    with pytest.raises(DecodeError, match="expected a mapping @ "):
        READERS[kind](JsonCheckpoint(kind=kind, version=1, value=value))


@kinds
def test_a_field_that_nobody_wrote_is_named(kind: str) -> None:
    """A row of a later version is not read in part."""
    words = r"extra fields found \(colour\); start the version that wrote it"
    with pytest.raises(DecodeError, match=words):
        READERS[kind](JsonCheckpoint(kind=kind, version=1, value={"colour": "red"}))


@pytest.mark.parametrize("prefix", ["runtime", "podlife", "podstatus", "probes", "sources"])
def test_a_row_that_an_agent_cannot_read_is_named_by_its_key(prefix: str) -> None:
    """There may be thousands; which one it is says what to look at, or to take away."""
    key = row_key(prefix, "8f1c")
    store = MemoryStore(AGENT_FORMATS)
    store.commit({key: JsonCheckpoint(kind="later", version=2, value={})})
    with pytest.raises(
        DecodeError, match=f"^{prefix}.8f1c: row of .*start the version that wrote it"
    ) as caught:
        Remembered.read(store, now=NOW)
    assert [fault.path for fault in caught.value.faults] == ["$"]
    assert key in store.read().values


@attrs.frozen(kw_only=True)
class Row:
    """All that a field of a row is made of."""

    name: str = ""
    amount: int = 0
    share: float = 0.0
    is_there: bool = False
    tags: tuple[str, ...] = ()


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("name", 3, "a text"),
        ("amount", "3", "a whole number"),
        ("amount", True, "a whole number"),
        ("amount", 1.5, "a whole number"),
        ("share", "0.5", "a number"),
        ("share", False, "a number"),
        ("is_there", "false", "true or false"),
        ("is_there", 0, "true or false"),
        ("tags", "abc", "a list of texts"),
        ("tags", ["a", 1], "a list of texts"),
    ],
)
def test_nothing_stands_for_something_of_another_kind(field: str, value: Json, expected: str) -> None:
    """The fault says what was found at which path."""
    rows = Stored(Row, kind="row", converter=row_converter())
    with pytest.raises(DecodeError) as caught:
        rows.read(JsonCheckpoint(kind="row", version=1, value={field: value}))
    (fault,) = caught.value.faults
    assert (fault.path, fault.reason) == (f"$.{field}", f"expected {expected}, found {value!r}")


def test_what_is_written_is_read_again() -> None:
    """Through the bytes of a store."""
    rows = Stored(Row, kind="row", converter=row_converter())
    made = Row(name="a @ $.b", amount=-1, share=3, is_there=True, tags=("x", "y"))
    assert rows.read(JsonCheckpoint.unmarshal(rows.written(made).marshal())) == made
