"""A prober that says what a test wants, and what every prober is held to.

>>> from nodealloc.podspec import ExecAction
>>> prober = FakeProber()
>>> prober.says("sick", ReplyKind.FAILURE, "status 500")
>>> well = Question(action=ExecAction(), container_id="well")
>>> sick = Question(action=ExecAction(), container_id="sick")
>>> check_prober(prober, well=well, sick=sick)
>>> prober.probe(sick)
Reply(kind=<ReplyKind.FAILURE: 'failure'>, message='status 500', timed_out=False)
"""

from __future__ import annotations

import selectors
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Final

from nodealloc._typed import typed
from nodealloc.errors import PermanentError
from nodealloc.probes import Exchange, Exchanges, Exec, Prober, Question, Reply, ReplyKind
from nodealloc.testing._wording import in_words

__all__ = ["FakeProber", "check_exchanges", "check_exec", "check_prober"]

_GRACE_S: Final = 10.0
"""How long after its time-out a question may come back on a machine that is busy otherwise."""


class FakeProber:
    """A `Prober` that says what a test wants, by the id of the container; thread-safe.

    Attributes:
        asked: Every question, in order.
        most: How many were under way at a time, at most.
    """

    def __init__(self) -> None:
        self.asked: list[Question] = []
        self.most: int = 0
        self._replies: dict[str, Reply | Exception] = {}
        self._gates: dict[str, threading.Event] = {}
        self._lock = threading.Lock()
        self._now = 0

    def says(
        self, container_id: str, kind: ReplyKind, message: str = "", /, *, timed_out: bool = False
    ) -> None:
        """From now on a container, "" for all without words of their own, answers so."""
        self._replies[container_id] = Reply(kind, message, timed_out=timed_out)

    @typed
    def fails(self, container_id: str, error: Exception, /) -> None:
        """From now on a container cannot be asked."""
        self._replies[container_id] = error

    @typed
    def hangs(self, container_id: str, /) -> threading.Event:
        """From now on questions to a container do not come back before the event is set."""
        gate = self._gates[container_id] = threading.Event()
        return gate

    def probe(self, question: Question, /) -> Reply:
        """See `Prober.probe`."""
        with self._lock:
            self.asked.append(question)
            self._now += 1
            self.most = max(self.most, self._now)
        try:
            gate = self._gates.get(question.container_id)
            if gate is not None:
                gate.wait()
            reply = self._replies.get(question.container_id) or self._replies.get("")
            if isinstance(reply, Exception):
                raise reply
            return reply or Reply(ReplyKind.SUCCESS)
        finally:
            with self._lock:
                self._now -= 1


@in_words
def check_prober(
    prober: Prober, /, *, well: Question, sick: Question, silent: Question | None = None
) -> None:
    """Hold a prober to its promises.

    Args:
        prober: To check.
        well: A question that is answered well.
        sick: One that is answered otherwise.
        silent: One that nobody answers in time; None where there is no such thing.

    Raises:
        AssertionError: A promise is broken; the text says which.
    """
    for _ in range(2):
        reply = _asked(prober, well)
        assert reply.kind.is_success, f"who is well is said to be {reply}"
        assert not reply.timed_out, "who is well has answered, and is said to have run out of time"
        reply = _asked(prober, sick)
        assert reply.kind in {ReplyKind.FAILURE, ReplyKind.REFUSED}, f"who is not well is said to be {reply}"
        assert reply.message, "a failure says nothing; whoever looks for its cause has an empty event"
    if silent is not None:
        reply = _asked(prober, silent)
        assert reply.kind is ReplyKind.FAILURE, f"who does not answer is said to be {reply}"
    together: list[Reply] = []
    threads = [threading.Thread(target=lambda: together.append(_asked(prober, well))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(well.timeout_s + 2 * _GRACE_S)
    assert len(together) == len(threads), "asked by four threads at a time, not all got an answer"
    assert all(one.kind.is_success for one in together), (
        f"asked by four threads at a time, one got {together}"
    )


def _asked(prober: Prober, question: Question) -> Reply:
    began_s = time.monotonic()
    reply: object = prober.probe(question)
    took_s = time.monotonic() - began_s
    assert isinstance(reply, Reply), f"{reply!r} is no Reply"
    assert took_s < question.timeout_s + _GRACE_S, (
        f"a question with a time-out of {question.timeout_s:g} s came back after {took_s:.1f} s"
    )
    return reply


@in_words
def check_exchanges(prober: Exchanges, /, *, well: Question, sick: Question, silent: Question) -> None:
    """Hold a prober that takes no thread to its promises; what `check_prober` says, and these.

    Args:
        prober: To check.
        well: A question that is answered well.
        sick: One that is answered otherwise.
        silent: One that nobody answers.

    Raises:
        AssertionError: A promise is broken; the text says which.
    """
    check_prober(prober, well=well, sick=sick, silent=silent)
    for question, expected in ((well, True), (sick, False)):
        reply = _driven(_exchange(prober, question), question.timeout_s)
        assert reply.kind.is_success is expected, f"over a socket of others it says {reply}"
    one = _exchange(prober, silent)
    waits = next(one)[0]
    late = _cut_off(one)
    assert late is not None, "told that its time is over, it goes on"
    assert late.kind is ReplyKind.FAILURE, f"who does not answer is said to be {late}"
    assert late.timed_out, "nobody answered in time, and the reply does not say so"
    assert waits.fileno() < 0, "an exchange has ended and left its socket open"
    dropped = _exchange(prober, silent)
    waits = next(dropped)[0]
    dropped.close()
    assert waits.fileno() < 0, "an exchange was closed and left its socket open"


def _cut_off(exchange: Exchange) -> Reply | None:
    """What it says when its time is over; None where it does not end."""
    try:
        exchange.throw(TimeoutError())
    except StopIteration as done:
        reply: Reply = done.value
        return reply
    return None


def _exchange(prober: Exchanges, question: Question) -> Exchange:
    made = prober.exchange(question)
    assert made is not None, "give questions to addresses, which are asked without blocking"
    return made


def _driven(exchange: Exchange, timeout_s: float) -> Reply:
    until_s = time.monotonic() + timeout_s + _GRACE_S
    with selectors.DefaultSelector() as selector:
        try:
            while True:
                began_s = time.monotonic()
                one, events = next(exchange)
                assert time.monotonic() - began_s < _GRACE_S, "it blocks the thread that it shares"
                assert not one.getblocking(), "it waits for a socket that blocks"
                selector.register(one, events)
                assert selector.select(max(0.0, until_s - time.monotonic())), "it waits for ever"
                selector.unregister(one)
        except StopIteration as done:
            reply: Reply = done.value
            return reply


@in_words
def check_exec(
    commands: Exec, container_id: str, wanted: Mapping[Sequence[str], int], /, *, absent: Sequence[str] = ()
) -> None:
    """Hold whoever runs commands for probes to its promises.

    Args:
        commands: To check.
        container_id: A container that runs.
        wanted: Commands to what they leave with; at least two different statuses.
        absent: A command that is not there; empty where there is no such thing.

    Raises:
        AssertionError: A promise is broken; the text says which.
    """
    assert len(set(wanted.values())) > 1, "give commands that end differently"
    for command, code in wanted.items():
        got = commands.run_command(container_id, command, 30.0)
        assert got.code == code, f"{' '.join(command)}: left with {code}, and is said to have with {got.code}"
        assert isinstance(got.output + got.errors, bytes)
    if absent:
        try:
            commands.run_command(container_id, absent, 30.0)
        except PermanentError:
            pass
        else:
            raise AssertionError("a command that is not there was run")
