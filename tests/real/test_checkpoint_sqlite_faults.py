"""Faults and kills at the system calls of SQLite itself, put there from outside by strace.

A writing process opens a store, is attached to, and commits; one call fails
(EIO, ENOSPC, EINTR, nothing written, the disk gone from here on), stops half
way (a file size limit inside the bytes to be written), or is the last one
(SIGKILL). The process tells what it was told. Then a fresh process reads.

A write that claims more than it did is left out: a disk that lies defeats
every store. So are calls that manage memory, but for the kills.

A run tries `AT_MOST` points of each scenario, evenly chosen;
NODEALLOC_FAULTS=all tries them all.
"""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Literal, TypeAlias

import attrs
import pytest

from nodealloc.checkpoint import Checkpoint, Formats, JsonCheckpoint, SqliteStore, StoreFailedError
from tests.often import often

Rows: TypeAlias = dict[str, list[int]]
Ending = Literal["exit", "next", "close"]

ENDINGS: tuple[Ending, ...] = ("exit", "next", "close")
FORMATS: Formats = {"row.*": JsonCheckpoint.unmarshal}
OLD: Rows = {f"row.{n}": [n] * 40 for n in range(4)}
NEXT: Rows = {"row.next": [7], "row.1": [8]}
AT_MOST = often(80)
# SQLite naps up to ten seconds for a lock that it could not give back; here it wakes at once.
NAPS = "?clock_nanosleep,?nanosleep"
UNSEEN = {"recvfrom", "sendto"}
CANNOT_FAIL = {
    *("brk", "mmap", "munmap", "mremap", "madvise", "mprotect", "futex", "exit_group"),
    *("getpid", "geteuid", "getuid", "gettid", "rt_sigaction", "rt_sigprocmask", "setrlimit", "prlimit64"),
}
BROKEN = {"pwrite64", "write", "fdatasync", "fsync", "ftruncate", "fallocate", "openat", "rename", "unlink"}

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.forks]


@attrs.frozen(kw_only=True)
class Scenario:
    """What a writer does while faults are put in its way.

    Attributes:
        name: Short.
        does: Open a store, commit to an open one, or close it.
        stored: What is there before.
        changes: What is committed.
        fold_at: Pages in the log after which a commit folds them into the file.
        earlier: What the same process committed just before.
        crashed: Whether the process before it was killed, so that its log is still there.
    """

    name: str
    does: Literal["open", "commit", "close"] = "commit"
    stored: Rows = OLD
    changes: Rows = attrs.field(factory=dict[str, list[int]])
    fold_at: int = 1000
    earlier: Rows = attrs.field(factory=dict[str, list[int]])
    crashed: bool = False

    @property
    def before(self) -> Rows:
        """What is stored when the faults begin."""
        return {**self.stored, **self.earlier}


MANY: Rows = {f"row.{n}": [n + 100] * 60 for n in range(12)}
BULKY: Rows = {f"row.{n}": [n + 100] * 900 for n in range(12)}
SCENARIOS = [
    Scenario(name="one", changes={"row.0": [9]}),
    Scenario(name="many", changes=BULKY, earlier={"row.2": [5]}),
    Scenario(name="folding", changes=BULKY, earlier={"row.2": [5]}, fold_at=5),
    Scenario(name="log-restarts", changes=MANY, earlier=BULKY, fold_at=5),
    Scenario(name="open", does="open", crashed=True),
    Scenario(name="create", does="open", stored={}),
    Scenario(name="close", does="close", earlier=MANY),
]


OPENING = [
    *(one for one in SCENARIOS if one.does == "open"),
    # Each row has pages of its own, in the file: the last process ended in order.
    Scenario(name="open-large", does="open", stored=BULKY),
]


@attrs.frozen(kw_only=True)
class Point:
    """One fault: where, what, and what the writer does after it.

    Attributes:
        options: For strace.
        ending: End at once, commit again first, or close in order.
        lasting: Whether later calls fail too.
        limit: Bytes that a file may have meanwhile; 0 for any number.
    """

    options: tuple[str, ...] = ()
    ending: Ending
    lasting: bool = False
    limit: int = 0


@attrs.frozen(kw_only=True)
class Seen:
    """What a writer told, line by line, and the system calls that it made between its gates."""

    told: list[str]
    calls: list[str]
    trace: str


def as_checkpoints(rows: Rows) -> dict[str, Checkpoint]:
    """Rows as a store takes them."""
    return {key: JsonCheckpoint(kind="row", version=1, value=list(value)) for key, value in rows.items()}


def as_rows(values: Mapping[str, Checkpoint]) -> Mapping[str, object]:
    """What a store holds, as plain values."""
    return {key: value.value for key, value in values.items() if isinstance(value, JsonCheckpoint)}


class Writer:
    """The process that faults are injected into; lives between `fork` and `_exit`."""

    def __init__(self, scenario: Scenario, path: Path, channel: socket.socket) -> None:
        self._scenario, self._path, self._channel = scenario, path, channel
        self._store: SqliteStore | None = None
        self._held: Rows = {}

    def run(self) -> None:
        """Prepare, wait for the gate, act, and tell."""
        scenario = self._scenario
        if scenario.does != "open":
            self._open()
            assert self._store is not None
            self._store._connection.execute(f"PRAGMA wal_autocheckpoint={scenario.fold_at}")
            self._store.commit(as_checkpoints(scenario.earlier))
        self._held = scenario.before
        self._channel.send(b"ready\n")
        ending, limit = self._channel.recv(64).decode().split()
        if int(limit):
            resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), resource.RLIM_INFINITY))
        if scenario.does == "open":
            self._try_open()
        elif scenario.does == "commit":
            self._try_commit(scenario.changes)
        else:
            self._close()
        if int(limit):
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        if self._store is not None and ending == "next":
            self._try_commit(NEXT)
        if self._store is not None and ending == "close":
            self._close()

    def _tell(self, line: str) -> None:
        self._channel.send(line.encode() + b"\n")

    def _open(self) -> None:
        self._store = SqliteStore(self._path, FORMATS)

    def _try_open(self) -> None:
        try:
            self._open()
        except StoreFailedError:
            self._tell("failed")
            return
        assert self._store is not None
        self._tell("ok" if self._is_right() else f"wrong: opened with {self._store.read()}")

    def _try_commit(self, changes: Rows) -> None:
        assert self._store is not None
        try:
            self._store.commit(as_checkpoints(changes))
        except StoreFailedError:
            self._tell("failed" if self._is_right() else "wrong: a failed commit is seen")
            return
        self._held = {**self._held, **changes}
        self._tell("ok" if self._is_right() else "wrong: a commit is not seen")

    def _is_right(self) -> bool:
        assert self._store is not None
        contents = self._store.read()
        return contents.is_whole and as_rows(contents.values) == self._held

    def _close(self) -> None:
        assert self._store is not None
        self._store.close()
        self._store = None
        self._tell("closed")


def in_child(scenario: Scenario, path: Path, channel: socket.socket) -> int:
    """Fork a writer; answers with its pid."""
    pid = os.fork()
    if pid == 0:
        try:
            Writer(scenario, path, channel).run()
        except BaseException as error:  # noqa: BLE001  # told to the parent, whatever it is
            channel.send(f"wrong: {error!r}\n".encode())
        finally:
            os._exit(0)
    return pid


def watched(scenario: Scenario, path: Path, point: Point, names: str = "all") -> Seen:
    """Let a writer act under strace, from its gate on."""
    mine, theirs = socket.socketpair()
    log = path.with_name("trace")
    pid = in_child(scenario, path, theirs)
    theirs.close()
    with mine:
        assert mine.recv(64) == b"ready\n"
        with subprocess.Popen(
            [
                "strace",
                "-p",
                str(pid),
                "-o",
                str(log),
                "-e",
                f"trace={names},{NAPS}",
                "-e",
                f"inject={NAPS}:retval=0",
                *point.options,
            ],
            stderr=subprocess.PIPE,
            text=True,
        ) as tracer:
            assert tracer.stderr is not None
            line = tracer.stderr.readline()
            if "attached" not in line:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                pytest.skip(f"strace may not attach: {line.strip()}")
            mine.send(f"{point.ending} {point.limit}".encode())
            told = b""
            while part := mine.recv(4096):
                told += part
            tracer.stderr.read()
    os.waitpid(pid, 0)
    trace = log.read_text(errors="replace")
    calls = re.findall(r"^(\w+)\(", trace, re.MULTILINE)
    return Seen(told=told.decode().splitlines(), calls=calls, trace=trace)


def prepared(scenario: Scenario, folder: Path) -> None:
    """Put down what the scenario starts from."""
    folder.mkdir()
    if not scenario.stored:
        return
    pid = os.fork()
    if pid == 0:
        store = SqliteStore(folder / "store", FORMATS)
        store.commit(as_checkpoints(scenario.stored))
        if not scenario.crashed:
            store.close()
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0


def points(seen: Seen) -> Iterator[Point]:
    """Every fault that a dry run has a place for."""
    counts: dict[str, int] = {}
    for number, name in enumerate(seen.calls):
        if name == "recvfrom":
            continue
        counts[name] = at = counts.get(name, 0) + 1
        yield Point(options=("-e", f"inject={name}:signal=KILL:when={at}"), ending="exit")
        if name in UNSEEN | CANNOT_FAIL:
            continue
        faults = [f"error={code}" for code in ("EIO", "ENOSPC", "EINTR")]
        if name in {"write", "pwrite64"}:
            faults.append("retval=0")
        for fault in faults:
            for ending in ENDINGS:
                yield Point(options=("-e", f"inject={name}:{fault}:when={at}"), ending=ending)
        if name in BROKEN:
            rest = [(other, seen.calls[:number].count(other) + 1) for other in sorted(BROKEN)]
            for code in ("EIO", "ENOSPC"):
                gone = [part for n, k in rest for part in ("-e", f"inject={n}:error={code}:when={k}+")]
                yield Point(options=tuple(gone), ending="next", lasting=True)
    sizes = re.findall(r"^pwrite64\(.*, (\d+), (\d+)\) += \d+$", seen.trace, re.MULTILINE)
    for limit in sorted({int(offset) + int(size) // 2 for size, offset in sizes}):
        for ending in ENDINGS:
            yield Point(ending=ending, limit=limit)


def allowed(scenario: Scenario, point: Point, told: list[str]) -> list[Rows]:
    """What may be read after a writer told this: what it acknowledged, and what it was in the middle of."""
    certain, possible = scenario.before, list[Rows]()
    attempts = [scenario.changes]
    if point.ending == "next" and not (scenario.does == "open" and told[:1] != ["ok"]):
        attempts.append(NEXT)
    for changes, answer in zip(attempts, [*told, "killed", "killed"], strict=False):
        after = {**certain, **changes}
        if answer == "ok":
            certain, possible = after, []
        else:
            possible.append(after)
        if answer == "killed":
            break
    # Only a crash may bring up a commit that failed: closing in order is none.
    return [certain] if told[-1:] == ["closed"] and not point.lasting else [certain, *possible]


def read_afresh(path: Path) -> str:
    """What another process reads, and whether it can go on from there; the reason where it cannot."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            with SqliteStore(path, FORMATS) as store:
                contents = store.read()
                store.commit(as_checkpoints({"row.after": [1]}))
            with SqliteStore(path, FORMATS) as store:
                again = store.read()
            found = as_rows(contents.values)
            goes_on = again.is_whole and as_rows(again.values) == {**found, "row.after": [1]}
            verdict = json.dumps(found) if contents.is_whole and goes_on else f"{contents} {again}"
        except BaseException as error:  # noqa: BLE001  # told to the parent, whatever it is
            verdict = repr(error)
        os.write(writing, verdict.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        answer = pipe.read().decode()
    os.waitpid(pid, 0)
    return answer


def evenly(every: list[Point]) -> list[Point]:
    """Some points of all, evenly chosen among kills and among the rest, unless all are asked for."""
    if os.environ.get("NODEALLOC_FAULTS") == "all" or len(every) <= AT_MOST:
        return every
    kills = [one for one in every if any("signal=KILL" in word for word in one.options)]
    rest = [one for one in every if one not in kills]
    few = AT_MOST // 5
    return [
        some[n * len(some) // most]
        for some, most in ((kills, few), (rest, AT_MOST - few))
        for n in range(most)
    ]


def ordered(states: list[Rows]) -> list[Rows]:
    """Rows in the order of their keys, as SQLite hands them out."""
    return [dict(sorted(rows.items())) for rows in states]


def sweep(scenario: Scenario, folder: Path, chosen: Callable[[list[Point]], list[Point]]) -> tuple[int, int]:
    """Try points of a scenario; answers with how many were refused and how many killed."""
    if shutil.which("strace") is None:
        pytest.skip("no strace to inject faults with")
    source, trial = folder / "source", folder / "trial"
    prepared(scenario, source)
    shutil.copytree(source, trial)
    dry = watched(scenario, trial / "store", Point(ending="exit"))
    assert dry.told == [{"commit": "ok", "open": "ok", "close": "closed"}[scenario.does]]
    every = list(points(dry))
    some = chosen(every)
    names = ",".join(sorted(set(dry.calls) - {"recvfrom"}))
    failed = killed = 0
    for point in some:
        shutil.rmtree(trial)
        shutil.copytree(source, trial)
        seen = watched(scenario, trial / "store", point, names)
        where = f"{scenario.name} {point} told {seen.told}"
        assert not any(line.startswith("wrong") for line in seen.told), where
        found = read_afresh(trial / "store")
        assert found in [json.dumps(rows) for rows in ordered(allowed(scenario, point, seen.told))], where
        failed += "failed" in seen.told
        killed += "+++ killed by SIGKILL" in seen.trace
    tried = f"{len(dry.calls)} calls, {len(some)} of {len(every)} points tried"
    print(f"{scenario.name}: {tried}, {failed} refused, {killed} killed")
    return failed, killed


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_faults_at_the_system_calls_of_sqlite(scenario: Scenario, tmp_path: Path) -> None:
    """Whatever call fails or is the last one: the set before or after, acknowledged ones never lost."""
    failed, killed = sweep(scenario, tmp_path, evenly)
    assert killed > 0
    assert failed > 0 or scenario.does == "close"


@pytest.mark.parametrize("lasting", [False, True], ids=["once", "from then on"])
@pytest.mark.parametrize(
    ("name", "call"),
    [("open", "fcntl"), ("open", "pread64"), ("open-large", "pread64"), ("create", "newfstatat")],
)
def test_a_failing_call_is_not_taken_for_damage(name: str, call: str, lasting: bool, tmp_path: Path) -> None:
    """Each lock, read and look that fails while a store opens: refused or opened, never set aside."""
    scenario = next(scenario for scenario in OPENING if scenario.name == name)

    def chosen(every: list[Point]) -> list[Point]:
        wanted = f"inject={call}:error=EIO:"
        once = [p for p in every if p.ending == "exit" and any(one.startswith(wanted) for one in p.options)]
        if not lasting:
            return once
        return [
            attrs.evolve(one, options=(*one.options[:-1], f"{one.options[-1]}+"), lasting=True)
            for one in once
        ]

    failed, _ = sweep(scenario, tmp_path, chosen)
    assert failed > 0


@pytest.mark.parametrize("name", ["one", "folding", "log-restarts"])
def test_a_lock_that_the_kernel_keeps_stops_no_commit(name: str, tmp_path: Path) -> None:
    """Each lock, and each release of one, fails once in a commit: that one and the next go through."""
    scenario = next(scenario for scenario in SCENARIOS if scenario.name == name)

    def chosen(every: list[Point]) -> list[Point]:
        return [
            p for p in every if p.ending == "next" and any("fcntl:error=EIO:" in one for one in p.options)
        ]

    failed, killed = sweep(scenario, tmp_path, chosen)
    assert (failed, killed) == (0, 0)
