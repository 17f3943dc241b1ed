"""Commits and their bytes as what is stored grows, and what a kubelet checksum costs."""

from __future__ import annotations

import json
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from bench.figure import Figure, best_ns
from nodealloc.checkpoint import (
    Checkpoint,
    CpuManagerState,
    FileStore,
    Json,
    JsonCheckpoint,
    SqliteStore,
    row_key,
)
from nodealloc.checkpoint._fnv import fnv1a32

STORED = (10, 100, 1_000, 10_000)
PODS = 100
FORMATS = {"pod.*": JsonCheckpoint.unmarshal}


def uid(rng: random.Random) -> str:
    """A pod uid."""
    digits = f"{rng.getrandbits(128):032x}"
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def admission(number: int) -> JsonCheckpoint:
    """What one admitted pod holds: CPUs, memory, a device."""
    value: Json = {
        "cpus": {"app": f"{number % 64}-{number % 64 + 1}"},
        "memory": {"app": [{"nodes": [number % 4], "type": "memory", "size_bytes": 1 << 30}]},
        "devices": {"app": {"example.com/gpu": [f"gpu-{number}"]}},
    }
    return JsonCheckpoint(kind="pod", version=1, value=value)


def written_by_process() -> int:
    """Bytes that this process handed to write(2) and its kin so far."""
    for line in Path("/proc/self/io").read_text().splitlines():
        if line.startswith("wchar"):
            return int(line.split()[1])
    return 0


Commit = Callable[[Mapping[str, Checkpoint | None]], None]


def measure(commit: Commit, count: int) -> tuple[int, float, float]:
    """Median seconds and mean bytes of a commit that admits one pod or forgets one; `count` comes first."""
    rng = random.Random(count)
    pods = 8 if count == 10_000 and getattr(commit, "__name__", "") == "plain_commit" else PODS
    changes: list[Mapping[str, Checkpoint | None]] = []
    keys = [row_key("pod", uid(rng)) for _ in range(pods)]
    for number, key in enumerate(keys):
        changes.append({key: admission(number)})
        if number >= 4:
            changes.append({keys[number - 4]: None})
    before = written_by_process()
    durations = [once(lambda: commit(change)) for change in changes]  # noqa: B023
    return count, statistics.median(durations), (written_by_process() - before) / len(changes)


def once(call: Callable[[], None]) -> float:
    """Seconds of one call."""
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def rewrite(path: Path) -> Callable[[Mapping[str, Checkpoint | None]], None]:
    """The plain way: the whole state in one file, written aside, flushed and renamed for each change."""
    held: dict[str, JsonCheckpoint] = {}

    def plain_commit(changes: Mapping[str, Checkpoint | None]) -> None:
        for key, value in changes.items():
            if isinstance(value, JsonCheckpoint):
                held[key] = value
            else:
                held.pop(key, None)
        whole = json.dumps({key: row.value for key, row in held.items()}).encode()
        new = path.with_suffix(".new")
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.write(descriptor, whole)
        os.fsync(descriptor)
        os.close(descriptor)
        new.rename(path)
        folder = os.open(path.parent, os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)

    return plain_commit


def growth(name: str, at_most: float | None, points: list[tuple[int, float, float]]) -> Iterator[Figure]:
    """The figures of one store."""
    yield Figure(
        package="checkpoint",
        name=f"{name}: time of a commit, 10,000 stored to 10 stored",
        value=points[-1][1] / points[0][1],
        unit="×",
        at_most=at_most,
        growth=[(count, seconds * 1e6) for count, seconds, _ in points],
        growth_of="assignments stored",
        growth_unit="µs a commit",
    )
    yield Figure(
        package="checkpoint",
        name=f"{name}: commits a second with 10,000 stored",
        value=1 / points[-1][1],
        unit="per s",
    )
    yield Figure(
        package="checkpoint",
        name=f"{name}: bytes of a commit, 10,000 stored to 10 stored",
        value=points[-1][2] / points[0][2],
        unit="×",
        at_most=at_most,
        growth=[(count, size) for count, _, size in points],
        growth_of="assignments stored",
        growth_unit="bytes a commit",
    )


def stores() -> Iterator[Figure]:
    """All three ways of storing, over the same commits."""
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder)
        found: dict[str, list[tuple[int, float, float]]] = {"SqliteStore": [], "FileStore": [], "rewrite": []}
        for count in STORED:
            rng = random.Random(0)
            fill: dict[str, Checkpoint | None] = {
                row_key("pod", uid(rng)): admission(number) for number in range(count)
            }
            with SqliteStore(base / f"{count}.db", FORMATS) as database:
                database.commit(fill)
            with SqliteStore(base / f"{count}.db", FORMATS) as database:
                found["SqliteStore"].append(measure(database.commit, count))
            held = base / f"files-{count}"
            held.mkdir()
            for key, value in fill.items():
                if value is not None:
                    (held / key).write_bytes(value.marshal())
            with FileStore(held, FORMATS) as files:
                found["FileStore"].append(measure(files.commit, count))
            plain = rewrite(base / f"{count}.json")
            plain(fill)
            found["rewrite"].append(measure(plain, count))
        yield from growth("SqliteStore", 2.0, found["SqliteStore"])
        yield from growth("FileStore, a file a pod", None, found["FileStore"])
        yield from growth("plain rewrite of one file", None, found["rewrite"])
        yield Figure(
            package="checkpoint",
            name="plain rewrite: time of a commit as a multiple of SqliteStore's, 10,000 stored",
            value=found["rewrite"][-1][1] / found["SqliteStore"][-1][1],
            unit="×",
        )


def plain_fnv(data: bytes) -> int:
    """The definition, byte by byte."""
    value = 2166136261
    for byte in data:
        value = ((value ^ byte) * 16777619) & 0xFFFFFFFF
    return value


def checksum() -> Iterator[Figure]:
    """A kubelet CPU state with 1,000 entries."""
    rng = random.Random(1)
    entries = {uid(rng): {"app": f"{number}-{number + 1}"} for number in range(1_000)}
    state = CpuManagerState(policy_name="static", default_cpuset="0-1", entries=entries)
    text = state._printed("CPUManagerCheckpoint")
    fast, slow = best_ns(lambda: fnv1a32(text)), best_ns(lambda: plain_fnv(text))
    whole = best_ns(state.marshal)
    yield Figure(
        package="checkpoint",
        name=f"FNV-1a of {len(text)} bytes: speed to the plain byte loop",
        value=slow / fast,
        unit="×",
        at_least=2.5,
    )
    yield Figure(
        package="checkpoint",
        name="kubelet CPU state with 1,000 entries: marshal with checksum",
        value=whole / 1e6,
        unit="ms",
    )
    yield Figure(
        package="checkpoint",
        name="part of the FNV step in that",
        value=100 * fast / whole,
        unit="%",
        at_most=50,
    )
    data = state.marshal()
    yield Figure(
        package="checkpoint",
        name="the same read and verified",
        value=best_ns(lambda: CpuManagerState.unmarshal(data).verify()) / 1e6,
        unit="ms",
    )


def figures() -> Iterator[Figure]:
    """All figures of this package."""
    yield from checksum()
    yield from stores()
