"""How long the thread that asks sleeps between two turns."""

from __future__ import annotations

import threading
import time

import pytest

from nodealloc.probes import ProbeKind
from nodealloc.probes._batching import Batching
from nodealloc.probes._schedule import Schedule
from nodealloc.testing.dsw_asw import VirtualClock

SLOW, HASTY = Schedule(period_s=1.0, timeout_s=1.0), Schedule(period_s=1.0, timeout_s=0.5)


class Told(threading.Event):
    """Notes for how long somebody waits, and says whether a word came."""

    def __init__(self, *, word: bool = False) -> None:
        super().__init__()
        self.waits: list[float] = []
        self.word = word

    def wait(self, timeout: float | None = None) -> bool:
        """No time passes."""
        assert timeout is not None
        self.waits.append(timeout)
        return self.word


def slept(
    work: Told, lines: int, monkeypatch: pytest.MonkeyPatch, *, hasty: int = 0, left_s: float = 9.0
) -> float:
    """Longest that was waited, rounded."""
    naps: list[float] = []
    monkeypatch.setattr(time, "sleep", naps.append)
    clock = VirtualClock(1000.0)
    batching = Batching(work, clock)
    for number in range(lines):
        batching.add(("u", f"c{number}", ProbeKind.LIVENESS), HASTY if number < hasty else SLOW)
    batching.turned()
    batching.wait(clock.monotonic_s() + left_s)
    return max(work.waits + naps, default=0.0)


def test_many_that_have_time_are_gathered_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few, or one with little time, are not."""
    assert slept(Told(), 16, monkeypatch) == pytest.approx(0.1)
    assert slept(Told(), 15, monkeypatch) == pytest.approx(0.04)
    assert slept(Told(), 50, monkeypatch, hasty=1) == pytest.approx(0.04)


def test_a_word_shortens_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is left of the shorter time is slept then."""
    work, naps = Told(word=True), list[float]()
    monkeypatch.setattr(time, "sleep", naps.append)
    clock = VirtualClock(1000.0)
    batching = Batching(work, clock)
    for number in range(50):
        batching.add(("u", f"c{number}", ProbeKind.LIVENESS), SLOW)
    batching.turned()
    batching.wait(None)
    assert naps == [pytest.approx(0.04)]


def test_it_ends_when_a_question_runs_out_of_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer that comes after that is late, however many are gathered."""
    assert slept(Told(), 50, monkeypatch, left_s=0.07) == pytest.approx(0.07)


def test_who_is_asked_no_more_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """The hasty one has gone, or has more time now."""
    monkeypatch.setattr(time, "sleep", lambda _: None)
    work = Told()
    batching = Batching(work, VirtualClock(1000.0))
    keys = [("u", f"c{number}", ProbeKind.LIVENESS) for number in range(20)]
    for key in keys:
        batching.add(key, HASTY)
    batching.drop(keys[0])
    for key in keys[1:]:
        batching.add(key, SLOW)
    batching.turned()
    batching.wait(None)
    assert work.waits == [pytest.approx(0.1)]
