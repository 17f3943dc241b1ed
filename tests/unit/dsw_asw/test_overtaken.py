"""What another thread does between two lines of a pass: nothing is lost, and an end is an end."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, KeysView
from concurrent.futures import CancelledError, Future

import pytest

from nodealloc.dsw_asw import (
    Cancel,
    Outcome,
    Plan,
    Reconciler,
    Running,
    ShutDownError,
    Step,
    ThreadExecutor,
    View,
    World,
)
from nodealloc.testing.devices import wait_until


class HookedClock:
    """The machine's clock; what is put into `next_call` is called once, by whoever asks next."""

    def __init__(self) -> None:
        self.next_call: Callable[[], None] | None = None

    def monotonic_s(self) -> float:
        """Now."""
        call, self.next_call = self.next_call, None
        if call is not None:
            call()
        return time.monotonic()


class Lasting:
    """A step for each key that lasts until it is asked to stop."""

    def __init__(self) -> None:
        self.began = {key: threading.Event() for key in "ab"}
        self.asked = {key: threading.Event() for key in "ab"}
        self.planned: dict[str, Callable[[], None]] = {}
        self.heeds, self.ends = True, threading.Event()

    def plan(self, view: View[str, int, int, str]) -> Plan[int, str]:
        """One step."""
        if view.want is None or view.running:
            return Plan()
        self.planned.pop(view.key, lambda: None)()
        return Plan(steps=[Step(scope=(view.key,), verb="last", detail=view.key)])

    def perform(self, step: Step[str], cancel: Cancel) -> None:
        """Until somebody asks."""
        self.began[step.detail].set()
        if not self.heeds:
            assert self.ends.wait(10.0)
        elif cancel.wait(5.0):
            self.asked[step.detail].set()
        raise CancelledError

    def settled(self, have: int | None, _step: Step[str], _outcome: Outcome[None]) -> int | None:
        """As before."""
        return have


def test_what_a_pass_starts_as_its_engine_is_stopped_is_asked_to_stop_as_well() -> None:
    """The pass had begun before: its operation would run on, and the stop wait all its time for it."""
    clock, domain = HookedClock(), Lasting()
    wanted: World[str, int] = World("wanted")
    engine: Reconciler[str, int, int, str] = Reconciler(
        domain, desired=wanted, actual=World("had"), executor=ThreadExecutor(), clock=clock, resync_s=None
    )
    wanted.put("a", 1)
    engine.reconcile()
    assert domain.began["a"].wait(10.0)
    left: list[tuple[Running[object], ...]] = []
    stopping = threading.Thread(target=lambda: left.append(engine.stop(20.0)))

    def stop_now() -> None:
        stopping.start()
        assert domain.asked["a"].wait(10.0)  # by now all that ran then have been asked

    def at_the_start() -> None:
        clock.next_call = stop_now

    domain.planned["b"] = at_the_start
    wanted.put("b", 1)
    engine.reconcile()
    stopping.join(30.0)
    assert left == [()]
    assert not domain.began["b"].is_set() or domain.asked["b"].is_set()


def test_an_end_that_others_settle_as_a_stop_begins_to_wait_for_it_is_heard(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Their pass takes the wake-up away; the stop goes on all the same."""
    domain, clock = Lasting(), HookedClock()
    wanted: World[str, int] = World("wanted")
    engine: Reconciler[str, int, int, str] = Reconciler(
        domain, desired=wanted, actual=World("had"), executor=ThreadExecutor(), clock=clock, resync_s=None
    )
    domain.heeds = False
    wanted.put("a", 1)
    engine.reconcile()
    waits, overtaken = engine.wait_for_pass, threading.Event()

    def overtaken_once(since: int, timeout_s: float | None = None, /) -> bool:
        if not overtaken.is_set():
            overtaken.set()
            domain.ends.set()
            wait_until(lambda: not engine.running(), what="the operation ends")
            others = threading.Thread(target=engine.run_until_quiet)
            others.start()
            others.join(10.0)
        return waits(since, timeout_s)

    monkeypatch.setattr(engine, "wait_for_pass", overtaken_once)
    stopping = threading.Thread(target=engine.stop, args=(600.0,), daemon=True)
    stopping.start()
    stopping.join(10.0)
    assert overtaken.is_set()
    assert not stopping.is_alive()


def test_who_begins_to_wait_as_an_engine_is_stopped_does_not_stop_that(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Both end the same wait at the same time: each goes on, and whoever waits hears of the end."""
    wanted: World[str, int] = World("wanted")
    engine: Reconciler[str, int, int, str] = Reconciler(
        Lasting(), desired=wanted, actual=World("had"), executor=ThreadExecutor(), resync_s=None
    )
    held, sets = threading.Event(), Future.set_exception
    left: list[tuple[Running[object], ...]] = []
    stopping = threading.Thread(target=lambda: left.append(engine.stop()), daemon=True)
    closes = engine._waits.close

    def noted(running: tuple[Running[object], ...]) -> None:
        assert held.wait(10.0)
        closes(running)

    def held_once(future: Future[None], error: BaseException | None) -> None:
        if not held.is_set():
            held.set()
            stopping.join(1.0)  # by then it is through, or waits for this thread
        sets(future, error)

    def lacks(_key: str, _want: int | None, _have: int | None) -> str:
        if not stopping.ident:
            stopping.start()
            wait_until(lambda: engine._begun.is_closed, what="the engine is closed")
        return "nothing is done any more"

    monkeypatch.setattr(engine._waits, "close", noted)
    monkeypatch.setattr(Future, "set_exception", held_once)
    wait = engine.wait(["a"], lacks)
    stopping.join(10.0)
    assert (held.is_set(), left) == (True, [()])
    with pytest.raises(ShutDownError):
        wait.result(0.0)


class Interrupted(dict[int, Callable[[], None]]):
    """Somebody else comes while it is copied for the first time."""

    def __init__(self, others: Callable[[], object]) -> None:
        super().__init__()
        self._others: list[Callable[[], object]] = [others]

    def __iter__(self) -> Iterator[int]:
        """As of a dict; that it is asked here keeps Python from copying it at once."""
        return super().__iter__()

    def keys(self) -> KeysView[int]:  # type: ignore[override]
        """See `dict`."""
        if self._others:
            other = threading.Thread(target=self._others.pop(), daemon=True)
            other.start()
            other.join(0.5)
        return super().keys()


def test_two_who_begin_to_listen_at_once_both_hear(monkeypatch: pytest.MonkeyPatch) -> None:
    """As two groups of one member: the one that was lost slept for ever."""
    wanted: World[str, int] = World("wanted")
    engine: Reconciler[str, int, int, str] = Reconciler(
        Lasting(), desired=wanted, actual=World("had"), executor=ThreadExecutor(), resync_s=None
    )
    heard: list[str] = []
    second = threading.Event()

    def listen_as_well() -> None:
        engine.add_listener(lambda: heard.append("second"))
        second.set()

    monkeypatch.setattr(engine, "_listeners", Interrupted(listen_as_well))
    leave = engine.add_listener(lambda: heard.append("first"))
    assert second.wait(10.0)
    wanted.put("a", 1)
    assert sorted(heard) == ["first", "second"]
    leave()
    assert len(engine._listeners) == 1
    engine.close()
