"""Every system call of a commit fails, stops half way, or loses power: old or new, whole."""

from __future__ import annotations

import errno
import random
from collections.abc import Callable, Mapping

import pytest

from nodealloc.checkpoint import (
    Checkpoint,
    FileStore,
    Identity,
    JsonCheckpoint,
    Since,
    StoreFailedError,
)
from nodealloc.testing.checkpoint import FaultyFiles, InjectedFault, PowerCut, SimulatedDisk

Values = Mapping[str, Checkpoint]
Changes = Mapping[str, Checkpoint | None]
FORMATS = {"row.*": JsonCheckpoint.unmarshal}
HERE = Identity(boot_id="b", machine="m")


def row(number: int) -> JsonCheckpoint:
    """A record with some bulk, so that a write can stop half way."""
    return JsonCheckpoint(kind="row", version=1, value={"number": number, "bulk": "x" * 100})


OLD: Values = {f"row.{n}": row(n) for n in range(4)}
COMMITS: dict[str, Changes] = {
    "one replaced": {"row.0": row(10)},
    "one new": {"row.9": row(9)},
    "one forgotten": {"row.1": None},
    "three at once": {"row.0": row(10), "row.1": row(11), "row.9": row(9)},
    "many, one forgotten": {
        **{f"row.{n}": row(100 + n) for n in range(8)},
        "row.2": None,
    },
    "a damaged key settled": {"row.7": row(7)},
    "a damaged key forgotten": {"row.7": None},
}


Fault = Callable[[int, str], InjectedFault | None]


def no_fault(number: int, call: str) -> None:
    """Let every call pass."""


def cut_at(at: int) -> Fault:
    """Power goes before one call."""
    return lambda number, _call: InjectedFault(cut=number == at)


def fails_at(at: int, code: int) -> Fault:
    """One call fails."""
    return lambda number, _call: InjectedFault(code=code if number == at else 0)


def after(values: Values, changes: Changes) -> Values:
    """What a store holds after a commit."""
    merged: dict[str, Checkpoint | None] = {**values, **changes}
    return {key: value for key, value in merged.items() if value is not None}


def prepared(name: str) -> dict[str, bytes]:
    """Files of a directory that holds `OLD`, written by another store."""
    disk = SimulatedDisk()
    with FileStore(disk.path, FORMATS, files=disk, identity=HERE) as store:
        store.commit(OLD)
    files = dict(disk.files())
    if "damaged" in name:
        files["row.7"] = b"torn"
    return files


def opened(disk: SimulatedDisk) -> Values:
    """What a new process reads."""
    with FileStore(disk.path, FORMATS, files=disk, identity=HERE) as store:
        contents = store.read()
        assert {entry.key for entry in contents.damaged} <= {"row.7"}
        return contents.values


def faults(length: int) -> list[Fault]:
    """For each call: each error, before and after the effect, once and for good; short writes; EINTR."""
    found: list[Fault] = []

    def add(chosen: Callable[[int], bool], fault: InjectedFault, only: str = "") -> None:
        found.append(lambda n, name: fault if chosen(n) and only in {"", name} else None)

    for at in range(1, length + 2):
        for code in (errno.EIO, errno.ENOSPC):
            for happened in (False, True):
                fault = InjectedFault(code=code, happened=happened)
                add(lambda n, at=at: n == at, fault)  # type: ignore[misc]
                add(lambda n, at=at: n >= at, fault)  # type: ignore[misc]
        add(lambda n, at=at: n == at, InjectedFault(code=errno.EINTR))  # type: ignore[misc]
        add(lambda n, at=at: n == at, InjectedFault(taken=7), "write")  # type: ignore[misc]
        add(lambda n, at=at: n >= at, InjectedFault(taken=0), "write")  # type: ignore[misc]
    return found


def length_of(name: str) -> tuple[int, int]:
    """Number of calls before and within the commit."""
    disk = SimulatedDisk(prepared(name))
    counting = FaultyFiles(disk, no_fault)
    store = FileStore(disk.path, FORMATS, files=counting, identity=HERE)
    before = len(counting.log)
    store.commit(COMMITS[name])
    return before, len(counting.log) - before


@pytest.mark.parametrize("name", COMMITS)
def test_every_fault_leaves_old_or_new(name: str) -> None:
    """After any fault at any call the process, the next process, and a power cut see old or new."""
    changes = COMMITS[name]
    new = after(OLD, changes)
    files = prepared(name)
    _, length = length_of(name)
    rng = random.Random(1)
    points = 0
    for fault in faults(length):
        disk = SimulatedDisk(files)
        armed = [False]
        start = [0]
        faulty = FaultyFiles(disk, lambda n, call: fault(n - start[0], call) if armed[0] else None)  # noqa: B023
        store = FileStore(disk.path, FORMATS, files=faulty, identity=HERE)
        start[0], armed[0] = len(faulty.log), True
        try:
            store.commit(changes)
        except StoreFailedError:
            expected, allowed = OLD, [OLD, new]
        else:
            expected, allowed = new, [new]
        points += 1
        assert store.read().values == expected
        assert opened(disk.after_kill()) in allowed
        for dark in disk.outcomes(rng, limit=16):
            assert opened(dark) in allowed
        armed[0] = False
        store.commit({"row.5": row(55)})
        expected = after(expected, {"row.5": row(55)})
        assert store.read().values == expected
        for dark in disk.outcomes(rng, limit=4):
            assert opened(dark) == expected
        assert opened(disk.after_kill()) == expected
        store.close()
    assert points > 6 * length


@pytest.mark.parametrize("name", COMMITS)
def test_power_cut_at_every_call(name: str) -> None:
    """Power lost before any call of a commit, with any unflushed part lost: old or new, whole."""
    changes = COMMITS[name]
    new = after(OLD, changes)
    files = prepared(name)
    before, length = length_of(name)
    rng = random.Random(2)
    for at in range(before + 1, before + length + 1):
        disk = SimulatedDisk(files)
        faulty = FaultyFiles(disk, cut_at(at))
        store = FileStore(disk.path, FORMATS, files=faulty, identity=HERE)
        with pytest.raises(PowerCut):
            store.commit(changes)
        assert opened(disk.after_kill()) in (OLD, new)
        for dark in disk.outcomes(rng):
            assert opened(dark) in (OLD, new)
    disk = SimulatedDisk(files)
    with FileStore(disk.path, FORMATS, files=disk, identity=HERE) as store:
        store.commit(changes)
        for dark in disk.outcomes(rng):
            assert opened(dark) == new


@pytest.mark.parametrize("name", COMMITS)
def test_interrupted_calls_are_called_again(name: str) -> None:
    """EINTR at any call, and at every second call, fails nothing."""
    _, length = length_of(name)
    for chosen in (*({at} for at in range(1, length + 1)), set(range(1, 400, 2))):
        disk = SimulatedDisk(prepared(name))
        interrupted = InjectedFault(code=errno.EINTR)
        faulty = FaultyFiles(disk, lambda n, _: interrupted if n in chosen else None)  # noqa: B023
        with FileStore(disk.path, FORMATS, files=faulty, identity=HERE) as store:
            store.commit(COMMITS[name])
        assert opened(disk) == after(OLD, COMMITS[name])


def test_power_cut_during_recovery() -> None:
    """A cut commit whose recovery is cut again, at any call, is still old or new."""
    name = "many, one forgotten"
    changes = COMMITS[name]
    new = after(OLD, changes)
    before, length = length_of(name)
    rng = random.Random(3)
    for at in range(before + 1, before + length + 1, 2):
        disk = SimulatedDisk(prepared(name))
        faulty = FaultyFiles(disk, cut_at(at))
        store = FileStore(disk.path, FORMATS, files=faulty, identity=HERE)
        with pytest.raises(PowerCut):
            store.commit(changes)
        for dark in disk.outcomes(rng, limit=2):
            files = dark.files()
            counting = FaultyFiles(SimulatedDisk(files), no_fault)
            FileStore(dark.path, FORMATS, files=counting, identity=HERE)
            for again in range(1, len(counting.log) + 1, 3):
                second = SimulatedDisk(files)
                cut = FaultyFiles(second, cut_at(again))
                with pytest.raises(PowerCut):
                    FileStore(dark.path, FORMATS, files=cut, identity=HERE)
                for darker in second.outcomes(rng, limit=2):
                    assert opened(darker) in (OLD, new)


def test_power_cuts_over_a_long_life() -> None:
    """Random commits and cuts one after another: what returned is there, what was cut is whole or absent."""
    rng = random.Random(4)
    disk = SimulatedDisk()
    known: Values = {}
    for _ in range(150):
        cut = rng.randrange(1, 160)
        faulty = FaultyFiles(disk, cut_at(cut))
        allowed = [known]
        try:
            store = FileStore(disk.path, FORMATS, files=faulty, identity=HERE)
            assert store.read().values == known
            while True:
                changes: Changes = {
                    f"row.{rng.randrange(6)}": row(rng.randrange(99)) if rng.random() < 0.7 else None
                    for _ in range(rng.randrange(1, 5))
                }
                allowed.append(after(known, changes))
                store.commit(changes)
                known = allowed.pop()
                allowed = [known]
        except PowerCut:
            pass
        disk = rng.choice(list(disk.outcomes(rng, limit=8)))
        known = opened(SimulatedDisk(disk.files()))
        assert known in allowed


def test_faults_at_opening_are_errors_or_nothing() -> None:
    """Opening with a fault at any call works, or says that it may be tried again; nothing is lost."""
    files = prepared("one new")
    counting = FaultyFiles(SimulatedDisk(files), no_fault)
    FileStore("/simulated", FORMATS, files=counting, identity=HERE)
    refused = 0
    for at in range(1, len(counting.log) + 1):
        for code in (errno.EIO, errno.ENOSPC, errno.EMFILE, errno.EINTR):
            disk = SimulatedDisk(files)
            faulty = FaultyFiles(disk, fails_at(at, code))
            try:
                store = FileStore(disk.path, FORMATS, files=faulty, identity=HERE)
            except StoreFailedError:
                refused += 1
            else:
                found = store.read()
                assert {**{entry.key: OLD[entry.key] for entry in found.damaged}, **found.values} == OLD
                store.close()
            assert not disk._locked
    assert refused > 10


def test_identity_changes_with_the_first_commit_only() -> None:
    """A reboot is still a reboot for a process that crashed before its first commit."""
    disk = SimulatedDisk()
    rebooted = Identity(boot_id="c", machine="m")
    moved = Identity(boot_id="c", machine="n")
    for who, since in ((HERE, Since.NEW), (HERE, Since.RESTART), (rebooted, Since.REBOOT)):
        FileStore(disk.path, FORMATS, files=disk, identity=who).close()
        with FileStore(disk.path, FORMATS, files=disk, identity=who) as store:
            assert store.read().since is since
            store.commit({})
    with FileStore(disk.path, FORMATS, files=disk, identity=moved) as store:
        assert store.read().since is Since.OTHER_MACHINE
        assert store.read().writer == rebooted


def test_files_of_one_commit_are_on_their_way_before_the_first_is_waited_for() -> None:
    """A disk that can take them together may; a commit of one file needs no hint."""
    for name, hints in (("three at once", 3), ("one replaced", 0)):
        disk = SimulatedDisk(prepared(name))
        files = FaultyFiles(disk, no_fault)
        with FileStore(disk.path, FORMATS, files=files, identity=HERE) as store:
            began = len(files.log)
            store.commit(COMMITS[name])
            calls = files.log[began:]
        assert calls.count("begin_writing") == hints
        assert not hints or "fsync" not in calls[: hints + calls.index("begin_writing")]


def test_a_commit_of_more_files_than_are_open_at_once_is_whole() -> None:
    """Two hundred rows go in parts of sixty-four, under one record."""
    many = {f"row.{number}": row(number) for number in range(200)}
    disk = SimulatedDisk(prepared(""))
    with FileStore(disk.path, FORMATS, files=disk, identity=HERE) as store:
        store.commit(many)
    assert opened(disk) == many
