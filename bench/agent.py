"""The example agent on processes: many pods at once, idle, and killed and started again."""

from __future__ import annotations

import json
import os
import resource
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from bench.figure import Figure
from examples.agent.outside import Surroundings, surroundings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["figures"]

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


def _live(count: int) -> _Life:
    with surroundings("processes", more={"maxPods": 5000, "fileCheckFrequency": "20s"}) as place:
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
    """Ten, a hundred, a thousand sleepers."""
    counts = [int(one) for one in os.environ.get("NODEALLOC_BENCH_PODS", "10 100 1000").split()]
    found = {count: _live(count) for count in counts}
    most, last = counts[-1], found[counts[-1]]

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
            value=float(getattr(last, field)),
            unit=unit,
            at_most=at_most,
            growth=growth(field),
            growth_of="pods",
        )
