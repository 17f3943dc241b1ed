"""Checks of stores and checkpoints, faults at any system call, and a disk that loses power.

- `check_checkpoint` and `check_store` hold your own classes to the contracts.
- `FaultyFiles` makes a chosen system call of a `FileStore` fail, or stop half way.
- `SimulatedDisk` is a directory in memory that knows what was flushed;
  `SimulatedDisk.outcomes` are the disks that a power cut may leave.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping

from nodealloc.checkpoint import (
    Checkpoint,
    CorruptCheckpointError,
    Formats,
    JsonCheckpoint,
    Store,
    StoreClosedError,
)
from nodealloc.errors import DecodeError, Fault
from nodealloc.testing._simulated_disk import FaultyFiles, InjectedFault, PowerCut, SimulatedDisk
from nodealloc.testing._wording import in_words

__all__ = [
    "FaultyFiles",
    "InjectedFault",
    "PowerCut",
    "SimulatedDisk",
    "check_checkpoint",
    "check_store",
    "mutations",
]


def mutations(data: bytes, rng: random.Random, count: int) -> Iterator[bytes]:
    """Damaged copies of some bytes: changed, lost, doubled, cut, extended, and JSON out of bounds."""
    nasty = (
        b"[" * 5000,
        b"9" * 5000,
        b"NaN",
        b"-Infinity",
        b"1e999",
        b"\x00",
        b"\xff",
        b'"\\ud800"',
        b"null",
    )
    for _ in range(count):
        copy = bytearray(data)
        for _ in range(rng.choice((1, 1, 1, 2, 5))):
            start = rng.randrange(len(copy) + 1)
            end = min(len(copy), start + rng.choice((1, 1, 2, 8, 40)))
            kind = rng.randrange(7)
            if kind == 0 and start < len(copy):
                copy[start] ^= 1 << rng.randrange(8)
            elif kind == 1 and start < len(copy):
                copy[start] = rng.randrange(256)
            elif kind == 2:
                del copy[start:end]
            elif kind == 3:
                copy[start:start] = copy[start:end]
            elif kind == 4:
                copy[start:end] = rng.choice(nasty)
            elif kind == 5:
                del copy[start:]
            else:
                copy += rng.choice((b"\n", b" ", b"}", b"x", b"\x00", bytes(copy[start:end])))
        yield bytes(copy)


@in_words
def check_checkpoint(value: Checkpoint, *, rng: random.Random | None = None, count: int = 200) -> None:
    """Hold a checkpoint class to its contract with one value; raises `AssertionError`.

    The value survives its bytes, the same value gives the same bytes, and every
    damaged copy is refused, or equal, and nothing else.
    """
    rng = rng or random.Random(0)
    data = value.marshal()
    assert value.marshal() == data, "the same value gives other bytes"
    again = type(value).unmarshal(data)
    assert again == value, f"what is read back differs: {again!r}"
    again.verify()
    assert again.marshal() == data, "what is read back gives other bytes"
    for damaged in mutations(data, rng, count):
        try:
            found = type(value).unmarshal(damaged)
            found.verify()
        except (DecodeError, CorruptCheckpointError):
            continue
        assert found == value, f"damage went unnoticed: {damaged!r}"


def _row(number: int) -> JsonCheckpoint:
    return JsonCheckpoint(kind="row", version=1, value={"number": number})


_LARGE = 100_000
"""Bytes of a value that no buffer of a page or two holds."""


class _Bad:
    """A checkpoint that cannot be written."""

    def marshal(self) -> bytes:
        raise ValueError("cannot be written")

    @classmethod
    def unmarshal(cls, data: bytes, /) -> _Bad:
        raise DecodeError("bad", [Fault("$", f"{len(data)} bytes too many")])

    def verify(self) -> None:
        pass


@in_words
def check_store(
    reopen: Callable[[Formats], Store], *, damage: Callable[[str, bytes], None] | None = None
) -> None:
    """Hold a store to the contract of `Store`; raises `AssertionError`.

    Args:
        reopen: Opens the same medium again; it is empty at first, and the store
            that was opened before is closed.
        damage: Replaces the stored bytes of a key while no store is open.
    """
    formats = {"row.*": JsonCheckpoint.unmarshal, "row.9": JsonCheckpoint.unmarshal}
    _check_commits(reopen(formats))
    store = reopen(formats)
    left = {"row.1": _row(5), "row.9": _row(9)}
    _check_there(store, left, "after a key was written anew, opened again")
    _takes(store, {"row.1": _row(1)}, "a key once more")
    _check_closed(store)
    store = reopen(formats)
    _check_there(store, {**left, "row.1": _row(1)}, "after opening again")
    assert store.read().is_whole, "damage is reported where there is none"
    _check_many(store, lambda: reopen(formats))
    if damage is not None:
        _check_damage(reopen, formats, damage)


def _check_commits(store: Store) -> None:
    """An empty store takes and refuses commits; closed, it has 5 for `row.1` and 9 for `row.9`."""
    assert store.read().values == {}, "an empty store holds something"
    changes: dict[str, Checkpoint | None] = {"row.1": _row(1), "row.2": _row(2)}
    _takes(store, changes, "two keys")
    assert list(changes) == ["row.1", "row.2"], "a commit changed what it was given"
    both = {"row.1": _row(1), "row.2": _row(2)}
    _check_there(store, both, "after a commit")
    earlier = store.read()
    _takes(store, {"row.2": None, "row.3": None, "row.9": _row(9)}, "a key that is absent, to be forgotten")
    expected: dict[str, Checkpoint] = {"row.1": _row(1), "row.9": _row(9)}
    _check_there(store, expected, "after None for a key, which forgets it")
    assert dict(earlier.values) == both, "what was read before a commit changed with it"
    for wrong in ("", "../row.1", "row/1", ".row", "row.\n", "row." + "x" * 300, "stranger"):
        _refuses(store, {"row.1": _row(7), wrong: _row(1)})
    _refuses(store, {"row.1": _row(7), "row.2": _Bad()})
    _check_there(store, expected, "a refused commit changed something")
    _takes(store, {}, "nothing")
    _takes(store, {"row.1": _row(5)}, "a key anew")
    _check_there(store, {**expected, "row.1": _row(5)}, "after a key was written anew")
    store.close()


def _check_closed(store: Store) -> None:
    """A store may be closed twice, and takes nothing afterwards."""
    store.close()
    try:
        store.close()
    except Exception as error:
        raise AssertionError(f"closing twice raised {error!r}") from error
    try:
        store.commit({"row.1": None})
    except StoreClosedError:
        return
    raise AssertionError("a closed store takes commits")


def _check_many(store: Store, reopen: Callable[[], Store]) -> None:
    """Many keys at once, in a store that has `row.1` and `row.9`: written, forgotten, one written anew."""
    many: dict[str, Checkpoint] = {f"row.{number}": _row(number) for number in range(100, 120)}
    many |= {"row.Case": _row(1), "row.case": _row(2), "row.twin": _row(2)}
    many["row.large"] = JsonCheckpoint(kind="row", version=1, value={"text": "x" * _LARGE})
    _takes(store, {**many, "row.1": None}, f"{len(many)} keys, a large one, and one to be forgotten")
    expected = {"row.9": _row(9), **many}
    _check_there(store, expected, f"after a commit of {len(many)} keys")
    store.close()
    store = reopen()
    _check_there(store, expected, f"after a commit of {len(many)} keys, opened again")
    _takes(store, {**dict.fromkeys(many), "row.1": _row(1)}, "all of them, to be forgotten")
    _takes(store, {"row.1": None}, "a key, to be forgotten")
    _takes(store, {"row.1": _row(1)}, "a key that was forgotten")
    store.close()
    store = reopen()
    _check_there(store, {"row.1": _row(1), "row.9": _row(9)}, "after a forgotten key was written anew")
    store.close()


def _check_damage(
    reopen: Callable[[Formats], Store], formats: Formats, damage: Callable[[str, bytes], None]
) -> None:
    good = _row(1).marshal()
    for bad in (b"", good[:-1], good + b"x", good.replace(b"1", b"2"), b"[]", b"\xff\x00"):
        damage("row.1", bad)
        for _ in range(2):
            store = reopen(formats)
            contents = store.read()
            assert [entry.key for entry in contents.damaged] == ["row.1"], f"damage {bad!r} is not reported"
            assert contents.damaged[0].reason, f"damage {bad!r} has no reason"
            assert contents.damaged[0].kept_as, f"damage {bad!r} was not kept"
            assert contents.values == {"row.9": _row(9)}, "the rest has to load"
            store.close()
        store = reopen(formats)
        store.commit({"row.9": _row(9)})
        assert not store.read().is_whole, "another key's commit settles nothing"
        store.commit({"row.1": _row(1)})
        assert store.read().is_whole, "a key that is committed again is whole"
        store.close()
        store = reopen(formats)
        assert store.read().is_whole, "a key that was committed again is not whole after opening again"
        assert store.read().values["row.1"] == _row(1), "a key that was committed again is lost"
        store.close()


def _check_there(store: Store, expected: Mapping[str, Checkpoint], when: str) -> None:
    """Every key with its last value, and no other."""
    contents = store.read()
    bad = {one.key: one.reason for one in contents.damaged}
    assert not bad, f"{when}: damage is reported where there is none: {bad}"
    for key in sorted({*contents.values, *expected}):
        found, right = contents.values.get(key), expected.get(key)
        assert found == right, f"{when}: {key} is {found}, and {right} was committed last"


def _takes(store: Store, changes: Mapping[str, Checkpoint | None], what: str) -> None:
    try:
        store.commit(changes)
    except Exception as error:
        raise AssertionError(f"a commit of {what} raised {error!r}") from error


def _refuses(store: Store, changes: Mapping[str, Checkpoint | None]) -> None:
    try:
        store.commit(changes)
    except ValueError:
        return
    raise AssertionError(f"a commit of {sorted(changes)} has to be refused")
