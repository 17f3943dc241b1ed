"""What a benchmark module yields, and the means to measure it."""

from __future__ import annotations

import functools
import gzip
import json
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import attrs

__all__ = [
    "VECTORS",
    "Figure",
    "against_kubelet",
    "best_ns",
    "calibration",
    "kubelet_ns",
    "paced_ns",
    "paced_sum_ns",
    "ratios",
    "rows",
]

VECTORS = Path(__file__).parent.parent / "tests" / "vectors"


@attrs.frozen(kw_only=True)
class Figure:
    """One line of the table.

    Attributes:
        package: Package that it speaks of.
        name: What was measured, in words.
        value: The figure.
        unit: `× kubelet`, `ms`, `per s`, `MiB`; ratios are what is compared elsewhere.
        at_most: Bound that the project set itself, or None.
        at_least: The same, from below.
        cpu: Whether it is work of a core, which a slower machine does slower: the bound then
            holds for the pace of the machine that the kubelet's times were recorded on.
        pace: This machine's while it was measured, where that was looked at so closely (`paced_ns`).
        growth: (x, value) pairs where growth is the point; drawn as SVG.
        growth_of: What x counts.
        growth_unit: Unit of the growth's values; that of the figure unless said.
    """

    package: str
    name: str
    value: float
    unit: str
    at_most: float | None = None
    at_least: float | None = None
    cpu: bool = False
    pace: float | None = None
    growth: Sequence[tuple[float, float]] = ()
    growth_of: str = ""
    growth_unit: str = attrs.field(default=attrs.Factory(lambda self: self.unit, takes_self=True))


def best_ns(call: Callable[[], object], *, seconds: float = 0.02, rounds: int = 3) -> float:
    """Shortest mean time of a call in nanoseconds, over `rounds` batches of about `seconds`."""
    call()
    started = time.perf_counter_ns()
    call()
    once = max(time.perf_counter_ns() - started, 1)
    count = max(1, min(100_000, int(seconds * 1e9 / once)))
    best = float(once)
    for _ in range(rounds):
        started = time.perf_counter_ns()
        for _ in range(count):
            call()
        best = min(best, (time.perf_counter_ns() - started) / count)
    return best


def paced_ns(call: Callable[[], object], *, rounds: int = 5) -> tuple[float, float]:
    """A call's CPU time in nanoseconds, and the machine's pace meanwhile: the median of some rounds.

    A machine that others use changes its pace within a second, so each round stands between two
    calibration loops, and the rounds are ordered by their time at the recorded machine's pace.
    """
    usual = float(json.loads((VECTORS / "kubelet_ns.json").read_text())["calibration_loop_ns"])
    found = []
    before = _cpu_ns(_loop)
    for _ in range(rounds):
        took = _cpu_ns(call)
        after = _cpu_ns(_loop)
        pace = (before + after) / 2 / usual
        found.append((took / pace, took, pace))
        before = after
    _, took, pace = statistics.median_low(found)
    return took, pace


def paced_sum_ns(calls: Iterable[Callable[[], object]]) -> tuple[float, float]:
    """CPU time of calls in nanoseconds, each made once, and the machine's pace over all of them."""
    usual = float(json.loads((VECTORS / "kubelet_ns.json").read_text())["calibration_loop_ns"])
    total = at_usual_pace = 0.0
    before = _cpu_ns(_loop)
    for call in calls:
        took = _cpu_ns(call, least_ns=0)
        after = _cpu_ns(_loop)
        total += took
        at_usual_pace += took * 2 * usual / (before + after)
        before = after
    return total, total / at_usual_pace


def _cpu_ns(call: Callable[[], object], least_ns: int = 5_000_000) -> float:
    """Mean CPU time of a call, made at least once and repeated until some milliseconds are full."""
    began = time.process_time_ns()
    count = took = 0
    while not count or took < least_ns:
        call()
        count += 1
        took = time.process_time_ns() - began
    return took / count


def calibration(recording: str = "kubelet_ns", *, rounds: int = 45) -> float:
    """This machine's time for the recorded calibration loop, as a ratio to the recording's."""
    recorded = json.loads((VECTORS / f"{recording}.json").read_text())["calibration_loop_ns"]
    return best_ns(_loop, seconds=0.02, rounds=rounds) / float(recorded)


def kubelet_ns(kind: str, recording: str = "kubelet_ns") -> list[float]:
    """Recorded nanoseconds of the kubelet for the first rows of a kind, scaled to this machine."""
    recorded = json.loads((VECTORS / f"{recording}.json").read_text())
    scale = calibration(recording)
    return [figure * scale for figure in recorded[kind]]


def _repeated_ns(call: Callable[[], object]) -> float:
    return best_ns(call, seconds=0.001, rounds=1)


def against_kubelet(
    calls: Iterable[Callable[[], object]],
    kind: str,
    recording: str = "kubelet_ns",
    *,
    rounds: int = 5,
    timed_ns: Callable[[Callable[[], object]], float] = _repeated_ns,
) -> list[float]:
    """Row by row, a call's time as a part of the kubelet's; the calibration loop runs beside each.

    A machine that others use changes its pace within a second, so that one calibration for all
    rows says little: here each row is timed between two of them, and the median of some rounds counts.
    `timed_ns` takes the time where a call is not simply to be repeated.
    """
    recorded = json.loads((VECTORS / f"{recording}.json").read_text())
    usual = float(recorded["calibration_loop_ns"])
    found = []
    for call, theirs in zip(calls, recorded[kind], strict=False):
        before = _loop_ns()
        parts = []
        for _ in range(rounds):
            mine = timed_ns(call)
            after = _loop_ns()
            parts.append(mine / theirs * 2 * usual / (before + after))
            before = after
        found.append(statistics.median(parts))
    return found


def _loop_ns() -> float:
    return best_ns(_loop, seconds=0.002, rounds=1)


def _loop() -> int:
    """What the recorded calibration timed."""
    return sum(i * i for i in range(10000))


def ratios(ours: Sequence[float], kubelet: Sequence[float]) -> list[float]:
    """Row by row, our time as a part of the kubelet's."""
    return [mine / theirs for mine, theirs in zip(ours, kubelet, strict=True)]


@functools.cache
def rows(kind: str) -> list[dict[str, object]]:
    """All recorded rows of a kind."""
    with gzip.open(VECTORS / f"{kind}.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]
