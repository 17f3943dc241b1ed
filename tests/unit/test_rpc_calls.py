"""Calls without a thread each: who is next, and what follows a future."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
from concurrent.futures import CancelledError, Future
from pathlib import Path
from weakref import WeakSet

import pytest

from nodealloc import _sockets
from nodealloc._futures import then
from nodealloc._proto import pluginregistration_v1_pb2 as wire
from nodealloc._rpc.caller import Caller
from nodealloc._rpc.errors import CallUnavailableError
from nodealloc._rpc.places import Places
from nodealloc.devices.plugins._silent_processes import SilentProcessError, SilentProcesses
from nodealloc.errors import ConfigurationError
from nodealloc.pluginreg import GrpcRegistration, RegistrationUnavailableError
from nodealloc.testing.dsw_asw import VirtualClock

# Who is next.


def begun(places: Places[str], now_s: float) -> list[str]:
    """Who begins now, and who gives way to whom."""
    return [talk if leaves is None else f"{talk} for {leaves}" for talk, leaves in places.begin(now_s)]


def test_while_there_is_room_nobody_gives_way() -> None:
    """However long they last."""
    places = Places[str](2, first_s=0.1)
    places.wait("a", "a")
    places.wait("b", "b")
    assert begun(places, 0.0) == ["a", "b"]
    assert begun(places, 100.0) == []
    assert places.next_s() is None


def test_a_newcomer_takes_the_place_of_who_had_his_time() -> None:
    """Not before that time is over."""
    places = Places[str](2, first_s=0.1)
    for name in "abc":
        places.wait(name, name)
    assert begun(places, 0.0) == ["a", "b"]
    assert places.next_s() == pytest.approx(0.1)
    assert begun(places, 0.05) == []
    assert begun(places, 0.1) == ["c for a"]
    assert len(places) == 2


def test_newcomers_come_before_whoever_was_heard_and_later_turns_are_longer() -> None:
    """A crowd that hangs stands in its own way."""
    places = Places[str](4, first_s=0.1)
    now_s = 0.0
    for turn in range(30):
        for number in range(20):
            places.leave(f"hangs {number}, {turn - 1}")
            places.wait(f"hangs {number}, {turn}", f"hangs {number}")
        for _ in begun(places, now_s):
            pass
        now_s += 10.0
    places.wait("good", "good")
    assert begun(places, now_s)[0].startswith("good")
    places.leave("good")
    places.forget("good")
    places.wait("good again", "good")
    wait_s = 0.0
    while not any(one.startswith("good again") for one in begun(places, now_s + wait_s)):
        wait_s += 0.1
    assert wait_s <= 0.1


def test_half_of_the_places_are_kept_for_first_turns() -> None:
    """However long the turns of those are who had some; one who was cut has not lost the others' half."""
    places = Places[str](4, first_s=0.1)
    now_s = 0.0
    for turn in range(6):
        for peer in "abcd":
            places.wait(f"{peer}{turn}", peer)
        assert len(begun(places, now_s)) == 4
        for peer in "abcd":
            places.leave(f"{peer}{turn}")
    for peer in "abcd":
        places.wait(peer, peer)
    assert len(begun(places, now_s)) == 4
    for peer in ("new", "newer", "newest"):
        places.wait(peer, peer)
    assert begun(places, now_s) == ["new for d", "newer for c"]
    assert begun(places, now_s + 0.1) == ["newest for new"]


def test_of_one_place_nobody_is_cut_before_the_end_of_his_turn() -> None:
    """Newcomers without end would have all of it."""
    places = Places[str](1, first_s=0.1)
    places.wait("first", "a")
    assert begun(places, 0.0) == ["first"]
    places.leave("first")
    places.wait("second", "a")
    assert begun(places, 1.0) == ["second"]
    places.wait("new", "b")
    assert begun(places, 1.7) == []
    assert begun(places, 1.8) == ["new for second"]


def test_whoever_had_fewest_turns_is_next() -> None:
    """So whoever needs a longer turn gets it, after as many others as there are."""
    places = Places[str](2, first_s=0.1)
    order: list[str] = []
    names = [f"n{number}" for number in range(10)]
    for name in names:
        places.wait(name, name)
    now_s = 0.0
    for _ in range(400):
        for talk, leaves in places.begin(now_s):
            order.append(talk)
            if leaves is not None:
                places.wait(leaves, leaves)
        now_s += 0.1
    turns = {name: order.count(name) for name in names}
    # Whoever sat down first, in a place that is kept for newcomers, sits there as long as none comes.
    assert max(turns.values()) - sorted(turns.values())[1] <= 1
    assert sorted(order[:10]) == names


def test_a_thousand_of_one_owner_wait_behind_each_other() -> None:
    """The first of another comes before the second of theirs, in the line and after a turn."""
    places = Places[str](2, first_s=0.1)
    for number in range(1000):
        assert places.wait(f"crowd {number}", number, "crowd") == (number == 0)
    assert begun(places, 0.0) == ["crowd 0", "crowd 1"]
    assert places.wait("good", "good", "another")
    places.wait("nobody's", "nobody's")
    assert begun(places, 0.1) == ["good for crowd 0", "nobody's for crowd 1"]
    for number in range(1000):
        places.leave(f"crowd {number}")
    assert places.wait("crowd again", 0, "crowd")


def test_who_listens_is_known_without_a_word(tmp_path: Path) -> None:
    """It is the process that began to; where no caller is taken, it is nobody."""
    path = tmp_path / "s"
    assert _sockets.listener(path) == _sockets.NOBODY
    with socket.socket(socket.AF_UNIX) as there:
        there.bind(str(path))
        assert _sockets.listener(path) == _sockets.NOBODY
        there.listen(0)
        assert _sockets.listener(path) == os.getpid()
        assert _sockets.listener(path) == _sockets.NOBODY, "one caller waits there, and no more may"
    assert _sockets.listener(path) == _sockets.NOBODY


def refused(*_: object, **__: object) -> socket.socket:
    """No descriptor is left for a socket."""
    raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


def held(path: Path) -> int:
    """Descriptors of this process that name a socket."""
    count = 0
    for one in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):  # another thread's, and gone by now
            count += one.readlink() == path
    return count


def test_where_no_descriptor_is_left_to_look_with_none_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each call is told why, holds nothing, and goes through once there is one; who listens is not known."""
    path = tmp_path / "s"
    caller = Caller(path, wire.DESCRIPTOR, "Registration", largest_bytes=100)
    with socket.socket(socket.AF_UNIX) as there:
        there.bind(str(path))
        there.listen()
        with monkeypatch.context() as patched:
            patched.setattr(socket, "socket", refused)
            for call in (
                lambda: caller.call("GetInfo", b"", 0.1),
                lambda: caller.address("GetInfo", 0.0),
                lambda: caller.stream("GetInfo"),
            ):
                with pytest.raises(CallUnavailableError, match="Too many open files"):
                    call()
            assert _sockets.listener(path) == 0
            assert _sockets.seen_at(path) == "Too many open files"
        assert held(path) == 0
        assert caller.address("GetInfo", 0.0)
        assert held(path) == 1
        caller.close()
        assert held(path) == 0


@pytest.mark.parametrize("path", ["/run/a\0b.sock", "/run/\ud800.sock"])
def test_where_no_file_can_be_nobody_answers(path: str) -> None:
    """A path with a zero byte, or with half a character, is the room's own error like any other."""
    assert not _sockets.is_served(path)
    assert _sockets.listener(path) == _sockets.NOBODY
    assert _sockets.identity(path) is None
    caller = Caller(path, wire.DESCRIPTOR, "Registration", largest_bytes=100)
    for call in (
        lambda: caller.call("GetInfo", b"", 0.1),
        lambda: caller.address("GetInfo", 0.0),
        lambda: caller.stream("GetInfo"),
    ):
        with pytest.raises(CallUnavailableError, match="nothing can be there"):
            call()
    with pytest.raises(RegistrationUnavailableError, match="nothing can be there"):
        GrpcRegistration().info(path)


def test_a_process_that_answers_nothing_is_left_alone_for_a_while() -> None:
    """After sixteen sockets without an answer; one answer, or five seconds, and it is called again."""
    clock = VirtualClock()
    silence = SilentProcesses(clock)
    for _ in range(15):
        silence.kept(7)
    silence.check(7, "/x.sock", "Call")
    silence.kept(7)
    with pytest.raises(SilentProcessError, match="process 7 keeps silent on 16 others"):
        silence.check(7, "/x.sock", "Call")
    silence.check(8, "/x.sock", "Call")
    for _ in range(16):
        silence.kept(_sockets.NOBODY)
    with pytest.raises(SilentProcessError, match="nobody takes calls on 16 others that registered"):
        silence.check(_sockets.NOBODY, "/x.sock", "Call")
    silence.broken(7)
    silence.check(7, "/x.sock", "Call")
    for _ in range(16):
        silence.kept(7)
        silence.kept(0)
    silence.check(0, "/x.sock", "Call")
    clock.advance(5.1)
    silence.check(7, "/x.sock", "Call")
    for process in range(1, 3000):
        silence.kept(process)
    assert len(silence._silent) == 1 << 10


def test_no_place_is_too_few() -> None:
    """Nobody would ever have a turn."""
    with pytest.raises(ConfigurationError, match="give 1 or more"):
        Places[str](0, first_s=0.1)


def test_peers_beyond_the_most_are_forgotten() -> None:
    """Whoever makes sockets without end is not remembered without end."""
    places = Places[int](2, first_s=0.1)
    for number in range(9000):
        places.wait(number, number)
        list(places.begin(float(number)))
        places.leave(number)
    assert len(places._turns) <= 1 << 13


class Call:
    """One that can be seen to be forgotten."""


def test_a_call_that_ended_is_forgotten_though_nobody_wanted_its_place() -> None:
    """It would be kept for the life of the agent, its answer with it: one for each look at a dead socket."""
    places, kept = Places[Call](2, first_s=0.1), WeakSet[Call]()
    for number in range(100):
        call = Call()
        kept.add(call)
        places.wait(call, number % 3)
        assert [one for one, _ in places.begin(float(number))] == [call]
        places.leave(call)
        del call
    assert len(kept) <= 8


def test_a_call_that_left_the_line_is_forgotten_behind_one_who_waits() -> None:
    """Where places are wanted all the time, its turn would never come."""
    places, kept = Places[Call](1, first_s=0.1), WeakSet[Call]()
    first, second = Call(), Call()
    places.wait(first, "a")
    assert [one for one, _ in places.begin(0.0)] == [first]
    places.wait(second, "b")
    for _ in range(100):
        call = Call()
        kept.add(call)
        places.wait(call, "c")
        assert list(places.begin(0.0)) == []
        places.leave(call)
        del call
    assert len(kept) <= 8
    assert [one for one, _ in places.begin(0.1)] == [second]


# What follows a future.


def test_what_follows_a_future_is_done_with_it() -> None:
    """Its result, what it raises, and what another future brings."""
    first, inner = Future[int](), Future[int]()
    second: Future[int] = then(first, lambda _: inner)
    first.set_result(1)
    assert not second.done()
    inner.set_result(2)
    assert second.result(0) == 2
    failed = Future[int]()
    third = then(failed, lambda done: done.result() + 1)
    failed.set_exception(OSError("x"))
    assert isinstance(third.exception(0), OSError)
    broken = Future[int]()
    fourth: Future[int] = then(broken, lambda _: then(failed, lambda done: done.result()))
    broken.set_result(0)
    assert isinstance(fourth.exception(0), OSError)


def test_cancelling_what_follows_cancels_the_first() -> None:
    """And nothing is called."""
    first = Future[int]()
    called: list[int] = []
    second = then(first, lambda done: called.append(done.result()))
    second.cancel()
    assert first.cancelled()
    assert called == []
    with pytest.raises(CancelledError):
        second.result(0)
