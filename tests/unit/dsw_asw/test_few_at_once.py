"""An executor that hands on a few burdening steps at once: how many, in which order, past those that hang."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import ParamSpec, TypeVar

import pytest

from nodealloc.dsw_asw import (
    Cancel,
    FewAtOnce,
    InlineExecutor,
    Outcome,
    Plan,
    Reconciler,
    Step,
    ThreadExecutor,
    View,
    World,
)
from nodealloc.errors import ConfigurationError
from nodealloc.testing.devices import wait_until
from nodealloc.testing.dsw_asw import check_executor

P = ParamSpec("P")
T = TypeVar("T")
_PLACES = {"lift": 1, "push": 2}


class Work:
    """A step for each key that is wanted; it lasts until the test opens it."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.gates: dict[str, threading.Event] = {}

    def plan(self, view: View[str, str, str, str]) -> Plan[str, str]:
        """The verb that is wanted, once."""
        if view.want is None or view.have is not None or view.running:
            return Plan()
        return Plan(steps=[Step(scope=(view.key,), verb=view.want, detail=view.key)])

    def perform(self, step: Step[str], _cancel: Cancel) -> str:
        """Until its gate is open."""
        gate = self.gates.setdefault(step.detail, threading.Event())
        self.begun.append(step.detail)
        assert gate.wait(10.0)
        return step.detail

    def settled(self, _have: str | None, step: Step[str], _outcome: Outcome[str]) -> str:
        """Done."""
        return step.detail


class Bench:
    """Work behind such an executor."""

    def __init__(self, *, most: int, held_s: float = 60.0) -> None:
        self.work = Work()
        self.wanted: World[str, str] = World("wanted")
        self.done: World[str, str] = World("done")
        executor = FewAtOnce(
            ThreadExecutor("test"), most=most, burdens=lambda step: _PLACES.get(step.verb, 0), held_s=held_s
        )
        self.engine: Reconciler[str, str, str, str, str] = Reconciler(
            self.work, desired=self.wanted, actual=self.done, executor=executor, resync_s=None
        )

    def want(self, **verbs: str) -> None:
        """Keys with the verb of each."""
        for key, verb in verbs.items():
            self.wanted.put(key, verb)
        self.engine.run_until_quiet()

    def has_begun(self, *keys: str) -> None:
        """Wait for these, and see that there are no others."""
        wait_until(lambda: len(self.work.begun) >= len(keys), what="steps begin")
        assert sorted(self.work.begun) == sorted(keys)

    def end(self, *keys: str) -> None:
        """Let these return."""
        for key in keys:
            self.work.gates[key].set()


def test_it_keeps_every_promise_of_an_executor() -> None:
    """Calls that are no steps are handed on as they are."""
    check_executor(FewAtOnce(ThreadExecutor(), most=1, burdens=lambda _: 1))
    check_executor(FewAtOnce(InlineExecutor(), most=1, burdens=lambda _: 1))
    with pytest.raises(ConfigurationError, match="0 calls at once"):
        FewAtOnce(ThreadExecutor(), most=0, burdens=lambda _: 1)


def test_so_many_run_at_once_and_those_of_the_first_place_come_first() -> None:
    """What does not burden waits for nobody."""
    bench = Bench(most=2)
    bench.want(a="push", b="push", c="push", d="lift", e="look")
    bench.has_begun("a", "b", "e")
    bench.end("a")
    bench.has_begun("a", "b", "d", "e")
    bench.end("b", "d")
    bench.has_begun("a", "b", "c", "d", "e")
    bench.end("c", "e")
    wait_until(lambda: bench.engine.reconcile().running == 0, what="all end")
    assert set(bench.done.snapshot()) == set("abcde")


def test_those_that_hang_keep_others_waiting_for_a_while() -> None:
    """Each makes room after its time, also where nothing else happens meanwhile."""
    bench = Bench(most=1, held_s=0.05)
    bench.want(a="push", b="push", c="push")
    wait_until(lambda: len(bench.work.begun) == 3, what="the hanging ones are passed")
    bench.end("a", "b", "c")
    wait_until(lambda: not any(one.name == "few at once" for one in threading.enumerate()), what="it ends")


def test_what_is_taken_back_while_it_waits_is_never_performed() -> None:
    """And keeps nobody behind it waiting."""
    bench = Bench(most=1)
    bench.want(a="push", b="push", c="push")
    bench.has_begun("a")
    (waiting,) = [one for one in bench.engine.running() if one.scope == ("b",)]
    assert waiting.began_s is None
    for operation in bench.engine._operations.under_way():
        if operation.key == "b":
            bench.engine._operations.ask_to_stop(operation)
    bench.end("a")
    bench.has_begun("a", "c")
    bench.end("c")


def test_the_thread_of_one_that_ends_goes_on_with_the_next() -> None:
    """Waking another one for it costs more than most calls."""
    threads: list[threading.Thread] = []
    bench = Bench(most=1)
    perform = bench.work.perform

    def noted(step: Step[str], cancel: Cancel) -> str:
        threads.append(threading.current_thread())
        return perform(step, cancel)

    bench.engine._operations._perform = noted
    bench.want(**dict.fromkeys("abcd", "push"))
    for at, key in enumerate("abcd", 1):
        wait_until(lambda at=at: len(bench.work.begun) == at, what="the next begins")  # type: ignore[misc]
        bench.end(key)
    wait_until(lambda: bench.engine.reconcile().running == 0, what="all end")
    assert len(set(threads)) == 1


class Refusing:
    """An executor that has no threads left."""

    def submit(self, call: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """No."""
        raise RuntimeError("can't start new thread")


def test_what_cannot_be_handed_on_has_failed() -> None:
    """Its engine tries it again after a back-off, and its place is free."""
    bench = Bench(most=1)
    wanted: World[str, str] = World("wanted")
    executor = FewAtOnce(Refusing(), most=1, burdens=lambda _: 1)
    engine: Reconciler[str, str, str, str, str] = Reconciler(
        bench.work, desired=wanted, actual=World("done"), executor=executor, resync_s=None
    )
    wanted.put("a", "push")
    wanted.put("b", "push")
    engine.run_until_quiet()
    assert [str(engine.failures(key)[0].error) for key in "ab"] == ["can't start new thread"] * 2


def test_where_there_is_no_thread_to_look_for_those_that_hang_others_wait_for_an_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They go on as one ends: none is lost, nor counted as failed."""
    starts = threading.Thread.start

    def refused(thread: threading.Thread) -> None:
        if thread.name == "few at once":
            raise RuntimeError("can't start new thread")
        starts(thread)

    bench = Bench(most=1)
    bench.want(a="push")
    bench.has_begun("a")
    monkeypatch.setattr(threading.Thread, "start", refused)
    bench.want(b="push", c="push")
    assert not bench.engine.failures("b") + bench.engine.failures("c")
    bench.end("a")
    bench.has_begun("a", "b")
    bench.end("b")
    bench.has_begun("a", "b", "c")
    bench.end("c")
