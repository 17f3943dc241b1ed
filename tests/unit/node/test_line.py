"""Decisions wait for one another in a line, and not for one that hangs."""

from __future__ import annotations

import threading
from collections.abc import Callable

from nodealloc.node._line import Line

LONG_S = 30.0


def lined_up(line: Line, call: Callable[[], object]) -> threading.Thread:
    """A thread that waits for its place, or has it, once this returns."""
    before = len(line._waiting)
    held = line._first

    def run() -> None:
        with line.place():
            call()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    while len(line._waiting) == before and line._first is held:
        pass
    return thread


def test_each_waits_for_those_before_it() -> None:
    """In the order in which they came, one at a time, however long all of them take."""
    line, order, inside, most = Line(LONG_S), list[int](), list[int](), list[int]()

    def decide(number: int) -> Callable[[], None]:
        def call() -> None:
            inside.append(number)
            most.append(len(inside))
            order.append(number)
            inside.pop()

        return call

    with line.place():
        threads = [lined_up(line, decide(number)) for number in range(8)]
        assert order == []
    for one in threads:
        one.join(LONG_S)
    assert order == list(range(8))
    assert set(most) == {1}


def test_one_that_hangs_is_waited_for_once() -> None:
    """The next one takes its place for good, and those behind that one wait for it as before."""
    line, goes_on, ended = Line(0.01), threading.Event(), threading.Event()
    hung = lined_up(line, lambda: goes_on.wait(LONG_S))
    with line.place():
        line._late_s = float("inf")  # this one does not hang
        mine = line._first
        goes_on.set()
        hung.join(LONG_S)
        assert line._first is mine, "who lost its place cannot give it away"
        other = lined_up(line, ended.set)
        assert not ended.is_set()
    assert ended.wait(LONG_S)
    other.join(LONG_S)
    assert line._first is None
    assert not line._waiting


def test_one_within_another_waits_for_nobody() -> None:
    """On the same thread, also when another one has taken the place."""
    line = Line(LONG_S)
    with line.place():
        with line.place():
            pass
        line._first = object()
        with line.place():
            pass
        line._first = None
    assert not line._waiting


def test_who_waits_briefly_goes_on_without_a_place() -> None:
    """And gives away nobody's; nobody waits behind it."""
    line = Line(LONG_S)
    entered, waiting = threading.Event(), list[int]()
    with line.place():
        mine = line._first

        def brief() -> None:
            with line.place(0.0):
                waiting.append(len(line._waiting))
                entered.set()

        thread = threading.Thread(target=brief, daemon=True)
        thread.start()
        thread.join(LONG_S)
        assert entered.is_set()
        assert line._first is mine
        assert waiting == [0]
