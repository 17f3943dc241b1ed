"""The example agent: many pods at once on processes, in both stores; on containerd beside a bare loop."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from bench.figure import Figure
from examples.agent.outside import Surroundings, compile_agent, surroundings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

__all__ = ["figures"]

ROOT = Path(__file__).parent.parent
_PATIENCE_S = 300.0
_IDLE_S = 10.0
_TICK_S = 1.0 / os.sysconf("SC_CLK_TCK")


@attrs.frozen(kw_only=True)
class _Life:
    """What one number of pods cost.

    Attributes:
        started_s: From the first manifest to the last container that runs.
        cpu_ms: CPU time of the agent for each of them, in milliseconds.
        idle_percent: Of a core, while nothing happens.
        memory_mib: Of the agent, resident.
        again_s: From its start after SIGKILL until it answers.
        moved: Containers that did not outlive that.
    """

    started_s: float
    cpu_ms: float
    idle_percent: float
    memory_mib: float
    again_s: float
    moved: int


def _manifest(number: int) -> str:
    app = {"name": "app", "image": "this-machine", "command": ["sleep", "1000000"]}
    spec = {"containers": [app], "terminationGracePeriodSeconds": 0}
    return json.dumps(
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"pod-{number}"}, "spec": spec}
    )


def _until(holds: Callable[[], bool], every_s: float = 0.05) -> float:
    """Seconds until something holds."""
    began_s = time.monotonic()
    while not holds():
        if time.monotonic() - began_s > _PATIENCE_S:
            raise TimeoutError(f"not within {_PATIENCE_S:g} s")
        time.sleep(every_s)
    return time.monotonic() - began_s


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * _TICK_S


def _memory_mib(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def _begun(place: Surroundings) -> int:
    """How many containers were started; a look at names alone, so that looking costs little."""
    return sum(1 for _ in (place.folder / "root" / "containers" / "containers").glob("*/started"))


def _live(count: int, store: str = "files") -> _Life:
    more = {"maxPods": 5000, "fileCheckFrequency": "20s"}
    with surroundings("processes", store=store, more=more) as place:
        first = place.start()
        _until(place.is_up)
        pid = first.process.pid
        before_s = _cpu_s(pid)
        for number in range(count):
            aside = place.pods / f".{number}"
            aside.write_text(_manifest(number))
            aside.rename(place.pods / f"{number}.json")
        started_s = _until(lambda: _begun(place) == count)
        _until(lambda: len(place.status()) > 0 and _settled(place, count), every_s=1.0)
        cpu_ms = (_cpu_s(pid) - before_s) / count * 1000
        idle_s = _cpu_s(pid)
        time.sleep(_IDLE_S)
        idle_percent = (_cpu_s(pid) - idle_s) / _IDLE_S * 100
        memory_mib = _memory_mib(pid)
        running = place.running()
        first.end(signal.SIGKILL)
        place.start()
        again_s = _until(place.is_up, every_s=0.01)
        time.sleep(2.0)
        after = place.running()
        return _Life(
            started_s=started_s,
            cpu_ms=cpu_ms,
            idle_percent=idle_percent,
            memory_mib=memory_mib,
            again_s=again_s,
            moved=sum(after.get(name) != one for name, one in running.items()),
        )


def _settled(place: Surroundings, count: int) -> bool:
    newest = {said["name"]: said["status"] for said in map(json.loads, place.status())}
    return bool(sum(one is not None and one["phase"] == "Running" for one in newest.values()) == count)


def figures() -> Iterator[Figure]:
    """Ten, a hundred, a thousand sleepers; the most of them in SQLite; then real containers."""
    counts = [int(one) for one in os.environ.get("NODEALLOC_BENCH_PODS", "10 100 1000").split()]
    compile_agent()
    found = {count: _live(count) for count in counts}
    yield from _many(found)
    yield from _stores(counts[-1], found[counts[-1]], _live(counts[-1], "sqlite"))
    yield from _beside()


def _many(found: Mapping[int, _Life]) -> Iterator[Figure]:
    most = max(found)

    def growth(field: str) -> list[tuple[float, float]]:
        return [(float(count), float(getattr(life, field))) for count, life in found.items()]

    for name, field, unit, at_most in (
        ("started, from manifests to processes", "started_s", "s", None),
        ("CPU of the agent for each that is started", "cpu_ms", "ms", None),
        ("idle, of a core", "idle_percent", "%", 1.0),
        ("memory of the agent", "memory_mib", "MiB", 150.0),
        ("from its start after SIGKILL until it answers", "again_s", "s", 3.0),
        ("containers that did not outlive that", "moved", "", 0.0),
    ):
        yield Figure(
            package="agent",
            name=f"{most:,} pods: {name}",
            value=float(getattr(found[most], field)),
            unit=unit,
            at_most=at_most,
            cpu=field in {"cpu_ms", "idle_percent"},
            growth=growth(field),
            growth_of="pods",
        )


def _stores(count: int, files: _Life, sqlite: _Life) -> Iterator[Figure]:
    for name, field in (
        ("started", "started_s"),
        ("CPU for each that is started", "cpu_ms"),
        ("until it answers again", "again_s"),
    ):
        yield Figure(
            package="agent",
            name=f"{count:,} pods: {name}, in SQLite over files",
            value=float(getattr(sqlite, field)) / float(getattr(files, field)),
            unit="×",
        )


def _beside() -> Iterator[Figure]:
    """None where there is no root, no namespace or no package; the reason is printed."""
    inside = ("--version", "1.7", "--seconds", "1800", "--module", "tests.cri.beside")
    done = subprocess.run(
        [sys.executable, "-m", "tests.cri", *inside], cwd=ROOT, capture_output=True, text=True, check=False
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if not lines:
        print(f"agent: not measured on containerd: {(done.stdout or done.stderr).strip().splitlines()[-1:]}")
        return
    found: dict[str, float] = json.loads(lines[-1])
    found["one"] = found["one_s"] / found["one_bare_s"]
    found["many"] = found["many_s"] / found["many_bare_s"]
    found["crash"] = found["crash_s"] / found["crash_bare_s"]
    found["probes_percent"] = found["probed_percent"] - found["idle_percent"]
    for field, name, unit, at_most in _BESIDE:
        yield Figure(
            package="agent",
            name=f"containerd: {name}",
            value=found[field],
            unit=unit,
            at_most=at_most,
            cpu=field in _WORK,
        )


_WORK = ("idle_percent", "idle_more_percent", "probes_percent", "again_cpu_s", "started_cpu_ms")
"""Fields that are work of a core, so that a slower machine does it slower."""
_BESIDE = (
    ("one", "manifest to container running, over the bare calls", "×", 1.1),
    ("many", "50 at once, over the bare calls", "×", 1.25),
    ("crash_s", "crash to the next attempt that runs, median", "s", 0.1),
    ("crash", "the same over the runtime's own word of it and two bare calls", "×", None),
    ("removed_s", "manifest gone to process gone, largest of 20", "s", 0.1),
    ("idle_percent", "idle with 50 pods, of a core", "%", 0.5),
    ("idle_more_percent", "idle with 100 pods, of a core", "%", 0.8),
    ("probes_percent", "50 pods asked each second, over idle", "%", 1.5),
    ("again_s", "SIGKILL and start with 50 pods until it answers", "s", 0.8),
    ("again_cpu_s", "CPU of that", "s", 0.5),
    ("again_moved", "containers and readiness that changed by it", "", 0.0),
    ("again_probed_moved", "the same with 50 that are probed", "", 0.0),
    ("started_cpu_ms", "CPU for each of 50 that are started", "ms", 8.0),
    ("memory_mib", "memory with 50 pods", "MiB", 70.0),
)
"""Field of what `tests.cri.beside` prints, what it is, its unit, and its bound."""
