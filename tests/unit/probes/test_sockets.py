"""The thread that waits for the sockets of probes: whoever wakes it is heard."""

from __future__ import annotations

import contextlib
import errno
import selectors
import socket
import threading
import time

import pytest

from nodealloc.podspec import TcpSocketAction
from nodealloc.probes import Question, Reply, ReplyKind, TcpProber
from nodealloc.probes._exchange import received
from nodealloc.probes._ports import Exchange
from nodealloc.probes._sockets import Sockets


class Interrupting:
    """The end that hears, in which a word comes between two looks."""

    def __init__(self, sockets: Sockets[int]) -> None:
        self.inner = sockets._hears
        self.sockets = sockets
        self.looks = 0

    def recv(self, size: int) -> bytes:
        """Somebody wakes the thread just as it takes off what woke it."""
        self.looks += 1
        if self.looks == 1:
            self.sockets.wake()
        return self.inner.recv(size)


def test_a_word_while_it_wakes_up_is_not_the_last_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Woken while it takes off what woke it, it can be woken again; it once slept for ever."""
    sockets: Sockets[int] = Sockets(lambda _token, _reply: None)
    interrupting = Interrupting(sockets)
    sockets.wake()
    with monkeypatch.context() as patched:
        patched.setattr(sockets, "_hears", interrupting)
        sockets.turn(1.0, time.monotonic)
    assert interrupting.looks >= 1
    threading.Timer(0.05, sockets.wake).start()
    began_s = time.monotonic()
    sockets.turn(5.0, time.monotonic)
    assert time.monotonic() - began_s < 4.0
    sockets.close()


class Refusing:
    """The end that says, for which the kernel has no memory at first."""

    def __init__(self, inner: socket.socket) -> None:
        self.inner, self.refused = inner, 0

    def send(self, data: bytes) -> int:
        """As of a socket."""
        if not self.refused:
            self.refused += 1
            raise OSError(errno.ENOBUFS, "no buffer space available")
        return self.inner.send(data)


def test_a_word_that_the_kernel_refuses_is_not_the_last_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was taken for said, and nothing woke the thread any more, not even to end it."""
    sockets: Sockets[int] = Sockets(lambda _token, _reply: None)
    refusing = Refusing(sockets._says)
    with monkeypatch.context() as patched:
        patched.setattr(sockets, "_says", refusing)
        sockets.wake()
        assert refusing.refused == 1
        sockets.wake()
    began = time.monotonic()
    sockets.turn(20.0, time.monotonic)
    assert time.monotonic() - began < 15
    sockets.close()


def test_an_answer_that_is_there_by_the_next_turn_is_taken_and_a_later_one_is_waited_for() -> None:
    """The first is never watched by the kernel; the second wakes the thread when it comes."""
    ended: dict[int, Reply] = {}
    sockets: Sockets[int] = Sockets(ended.__setitem__)
    quick, slow = socket.socketpair(), socket.socketpair()
    for number, (mine, _) in enumerate((quick, slow)):
        mine.setblocking(False)
        sockets.begin(number, heard_on(mine), time.monotonic() + 5.0)
    quick[1].send(b"ok")
    sockets.turn(5.0, time.monotonic)
    assert ended == {0: Reply(ReplyKind.SUCCESS, "ok")}
    threading.Timer(0.05, slow[1].send, (b"late",)).start()
    began_s = time.monotonic()
    sockets.turn(5.0, time.monotonic)
    assert time.monotonic() - began_s < 4.0
    assert ended[1] == Reply(ReplyKind.SUCCESS, "late")
    sockets.close()
    for one in (*quick, *slow):
        one.close()


def heard_on(one: socket.socket) -> Exchange:
    """What the other side says."""
    yield one, selectors.EVENT_READ
    said = yield from received(one, 64)
    return Reply(ReplyKind.SUCCESS, said.decode())


def test_a_question_of_many_steps_takes_few_turns() -> None:
    """Between two turns the thread may sleep: each step of a handshake would cost that much time."""
    ended: dict[int, Reply] = {}
    sockets: Sockets[int] = Sockets(ended.__setitem__)
    mine, theirs = socket.socketpair()
    mine.setblocking(False)

    def many_steps() -> Exchange:
        for _ in range(8):
            mine.send(b"?")
            yield mine, selectors.EVENT_READ
            yield from received(mine, 64)
        return Reply(ReplyKind.SUCCESS)

    def echo() -> None:
        while said := theirs.recv(64):
            theirs.send(said)

    threading.Thread(target=echo, daemon=True).start()
    sockets.begin(0, many_steps(), time.monotonic() + 5.0)
    for _ in range(3):
        sockets.turn(5.0, time.monotonic)
    assert ended == {0: Reply(ReplyKind.SUCCESS)}
    sockets.close()
    mine.close()
    theirs.close()


def test_a_socket_that_cannot_be_waited_for_is_an_error_of_its_own_question() -> None:
    """As a closed one; the others are waited for as before."""
    ended: dict[int, Reply] = {}
    closed: list[bool] = []
    sockets: Sockets[int] = Sockets(ended.__setitem__)
    mine, theirs = socket.socketpair()
    mine.setblocking(False)
    gone = socket.socket()
    gone.close()

    def asks_nobody() -> Exchange:
        try:
            yield gone, selectors.EVENT_WRITE
        finally:
            closed.append(True)
        raise AssertionError

    sockets.begin(0, asks_nobody(), time.monotonic() + 5.0)
    sockets.begin(1, heard_on(mine), time.monotonic() + 5.0)
    assert (ended[0].kind, closed, len(sockets)) == (ReplyKind.ERROR, [True], 1)
    theirs.send(b"ok")
    sockets.turn(5.0, time.monotonic)
    assert ended[1] == Reply(ReplyKind.SUCCESS, "ok")
    sockets.close()
    mine.close()
    theirs.close()


def test_a_question_that_goes_on_though_its_time_is_over_is_ended() -> None:
    """It would hold its place for ever, and its probe would never be asked again."""
    ended: dict[int, Reply] = {}
    sockets: Sockets[int] = Sockets(ended.__setitem__)
    mine, theirs = socket.socketpair()

    def goes_on() -> Exchange:
        while True:
            with contextlib.suppress(TimeoutError):
                yield mine, selectors.EVENT_READ

    sockets.begin(0, goes_on(), time.monotonic())
    sockets.turn(0.0, time.monotonic)
    assert (ended[0].kind, ended[0].timed_out, len(sockets)) == (ReplyKind.FAILURE, True, 0)
    sockets.close()
    mine.close()
    theirs.close()


def stubborn(one: socket.socket) -> Exchange:
    """Ends with an error of its own, and goes on where it should end."""
    while True:
        try:
            yield one, selectors.EVENT_READ
        except GeneratorExit:
            raise OSError("not now") from None
        except TimeoutError:
            continue


def test_a_question_that_does_not_end_well_is_over_all_the_same(caplog: pytest.LogCaptureFixture) -> None:
    """Past its time, dropped, or at the end of all: its error is logged, and nobody else waits for it."""
    ended: dict[int, Reply] = {}
    sockets: Sockets[int] = Sockets(ended.__setitem__)
    mine, theirs = socket.socketpair()
    sockets.begin(0, stubborn(mine), time.monotonic())
    sockets.turn(0.0, time.monotonic)
    assert (ended[0].timed_out, len(sockets)) == (True, 0)
    sockets.begin(1, stubborn(mine), time.monotonic() + 60.0)
    sockets.drop(1)
    assert len(sockets) == 0
    for number in (2, 3):
        sockets.begin(number, stubborn(mine), time.monotonic() + 60.0)
    sockets.close()
    assert (len(sockets), sockets._epoll.closed) == (0, True)
    assert caplog.text.count("OSError: not now") == 4
    mine.close()
    theirs.close()


def test_an_answer_may_take_as_long_as_anybody_says() -> None:
    """Centuries as well: the kernel, which would refuse such a wait, is asked for shorter ones."""
    ages_s = 2.0**62
    with socket.create_server(("127.0.0.1", 0)) as served:
        port = served.getsockname()[1]
        question = Question(
            action=TcpSocketAction(port=port), address="127.0.0.1", port=port, timeout_s=ages_s
        )
        assert TcpProber().probe(question).kind is ReplyKind.SUCCESS
    sockets: Sockets[int] = Sockets(lambda _token, _reply: None)
    sockets.wake()
    sockets.turn(ages_s, time.monotonic)
    sockets.close()
