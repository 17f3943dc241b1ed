"""Conversations of which only so many are held at once."""

from __future__ import annotations

import threading
import time

import pytest

from nodealloc._rpc.turns import Turns
from nodealloc.testing.devices import wait_until


class Talk:
    """A conversation on a thread of its own, which lasts until it is ended."""

    def __init__(self, turns: Turns, *, ends_well: bool = True) -> None:
        self.ends_well = ends_well
        self.ended = threading.Event()
        self.began = threading.Event()
        self.gave_way = False
        self._turns = turns
        self.thread = threading.Thread(target=self._hold, daemon=True)
        self.thread.start()

    def _hold(self) -> None:
        with self._turns.take(self._end) as turn:
            self.began.set()
            self.ended.wait(30)
            self.gave_way = turn.gave_way

    def _end(self) -> None:
        self.ended.set()
        if not self.ends_well:
            raise OSError("not now")


def test_whoever_lasts_longest_gives_way() -> None:
    """One too many ends the first, not the others."""
    turns = Turns(2, first_s=0.05)
    first, second = Talk(turns), Talk(turns)
    assert first.began.wait(10)
    assert second.began.wait(10)
    third = Talk(turns)
    assert third.began.wait(10)
    ended = [one for one in (first, second) if one.ended.wait(0.2)]
    assert len(ended) == 1
    ended[0].thread.join()
    assert ended[0].gave_way
    assert not third.ended.is_set()
    turns.close()


def test_nobody_gives_way_before_his_patience_is_over() -> None:
    """Whoever answers soon is not cut short by a crowd."""
    turns = Turns(1, first_s=0.3)
    began_s = time.monotonic()
    first = Talk(turns)
    assert first.began.wait(10)
    second = Talk(turns)
    assert second.began.wait(10)
    assert time.monotonic() - began_s >= 0.3
    assert first.ended.is_set()
    turns.close()


def test_a_place_that_is_given_back_is_taken_at_once() -> None:
    """Without anybody who gives way."""
    turns = Turns(1, first_s=60.0)
    first = Talk(turns)
    assert first.began.wait(10)
    second = Talk(turns)
    first.ended.set()
    assert second.began.wait(10)
    first.thread.join()
    assert not first.gave_way
    turns.close()


def test_after_the_end_every_conversation_ends_at_once() -> None:
    """Those under way, those that wait, and those that come."""
    turns = Turns(1, first_s=60.0)
    under_way, waiting = Talk(turns), Talk(turns)
    wait_until(lambda: under_way.began.is_set() or waiting.began.is_set())
    turns.close()
    turns.close()
    late = Talk(turns)
    for one in (under_way, waiting, late):
        one.thread.join(10)
        assert one.ended.is_set()


def test_no_conversation_at_all_is_no_bound() -> None:
    """Nobody would ever have a turn."""
    with pytest.raises(ValueError, match="give 1 or more"):
        Turns(0)


def test_one_that_does_not_end_well_costs_no_other(caplog: pytest.LogCaptureFixture) -> None:
    """Who takes its place has it, and at the end all others end."""
    turns = Turns(2, first_s=0.0)
    first, second = Talk(turns, ends_well=False), Talk(turns, ends_well=False)
    assert first.began.wait(10)
    assert second.began.wait(10)
    third, fourth = Talk(turns, ends_well=False), Talk(turns, ends_well=False)
    assert third.began.wait(10)
    assert fourth.began.wait(10)
    turns.close()
    for one in (first, second, third, fourth):
        one.thread.join(10)
        assert one.ended.is_set()
    late = Talk(turns, ends_well=False)
    assert late.began.wait(10)
    assert caplog.text.count("OSError: not now") == 5
