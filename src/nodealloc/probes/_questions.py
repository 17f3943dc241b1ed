"""Questions under way, over sockets of one thread or with a worker each: bounded, one a probe."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial

from nodealloc import _attrs as attrs
from nodealloc._arguments import is_other
from nodealloc._error_words import error_words
from nodealloc.dsw_asw import Clock, Executor, Running
from nodealloc.probes._lines import Line
from nodealloc.probes._options import ProbeOptions, Probers
from nodealloc.probes._ports import Exchange, Exchanges, Prober, Question
from nodealloc.probes._replies import Reply, ReplyKind
from nodealloc.probes._sockets import Sockets

__all__ = ["Answer", "Questions"]


@attrs.define(eq=False)
class Answer:
    """What came of one question.

    Attributes:
        line: Whose it was.
        number: Which one; no two questions have the same.
        reply: What came of it.
        began_s: When it left, on the asking clock.
        ended_s: When its answer was there.
    """

    line: Line
    number: int
    reply: Reply
    began_s: float
    ended_s: float


@attrs.define(eq=False)
class _Question:
    """One question, from its line to its end.

    Attributes:
        busy: See `Line`.
    """

    line: Line
    number: int
    busy: str
    question: Question
    prober: Prober
    exchange: Exchange | None
    began_s: float = 0.0


class Questions:
    """Asks, and collects answers; only `next_answer` and what calls `on_answer` know other threads.

    Args:
        probers: Who asks.
        options: The bounds.
        executor: Gives workers.
        clock: Time.
        on_answer: Called, from any thread, when there is an answer.

    Attributes:
        sockets: What the thread of its own waits for; None without one.
    """

    def __init__(
        self,
        probers: Probers,
        *,
        options: ProbeOptions,
        executor: Executor,
        clock: Clock,
        on_answer: Callable[[], None],
    ) -> None:
        self._probers, self._executor, self._clock = probers, executor, clock
        self._on_answer = on_answer
        self._most = {True: options.sockets, False: options.workers}
        # Asked once: whether something keeps a Protocol takes longer than most questions.
        self._exchange = {
            id(one): one.exchange
            for one in (probers.http, probers.tcp, probers.exec, probers.grpc)
            if isinstance(one, Exchanges)
        }
        self._answers: deque[Answer] = deque()
        self._over_sockets: dict[int, _Question] = {}
        self._workers: dict[int, Running[object]] = {}
        self._busy: dict[int, str] = {}
        self._busy_now: set[str] = set()
        self._waiting: dict[bool, deque[_Question]] = {True: deque(), False: deque()}
        self._number = 0
        self.sockets: Sockets[int] | None = None

    def running(self) -> tuple[Running[object], ...]:
        """Those that took a worker and have not ended."""
        return tuple(self._workers.values())

    def select(self) -> None:
        """Use sockets of the calling thread from now on."""
        self.sockets = Sockets(self._socket_ended)

    def leave(self) -> None:
        """Give the sockets back."""
        if self.sockets is not None:
            self.sockets.close()

    def ask(self, line: Line, now_s: float) -> None:
        """Ask now, or when there is room; its answer comes by `next_answer`, in every case."""
        self._number += 1
        line.number = self._number
        question = line.ask.question
        prober = None if question is None else self._probers.of(question.action)
        if question is None or prober is None:
            fault = line.ask.fault or "there is no prober for what the pod asks for"
            self._answer(Answer(line, line.number, Reply(ReplyKind.ERROR, fault), now_s, now_s))
            return
        begin = None if self.sockets is None else self._exchange.get(id(prober))
        try:
            exchange = None if begin is None else begin(question)
        except Exception as error:  # noqa: BLE001 - one prober's fault is an error of its own probe
            self._answer(Answer(line, line.number, _could_not(error), now_s, now_s))
            return
        made = _Question(line, line.number, line.busy, question, prober, exchange)
        if line.busy in self._busy_now:
            hung = Reply(ReplyKind.UNKNOWN, "the question before has not come back yet")
            self._answer(Answer(line, line.number, hung, now_s, now_s))
        elif self._is_full(is_socket=exchange is not None):
            self._waiting[exchange is not None].append(made)
        else:
            self._send(made)

    def drop(self, line: Line, /) -> None:
        """Nobody wants the answer to a line's question; a worker keeps its place until it is back."""
        number, line.number = line.number, 0
        if not number:
            return
        for waiting in self._waiting.values():
            for one in [one for one in waiting if one.number == number]:
                waiting.remove(one)
        if self.sockets is not None and number in self._over_sockets:
            self.sockets.drop(number)
            del self._over_sockets[number]
            self._free(number)

    def ask_nothing_more(self) -> None:
        """Who waits for room waits no more."""
        for waiting in self._waiting.values():
            waiting.clear()

    def forget_answers(self) -> None:
        """Nobody hears what comes now; from any thread."""
        while (answer := self.next_answer()) is not None:
            self._workers.pop(answer.number, None)

    def next_answer(self) -> Answer | None:
        """The oldest answer that was not taken."""
        try:
            return self._answers.popleft()
        except IndexError:
            return None

    def over(self, answer: Answer, /) -> None:
        """An answer was taken: there is room for another question."""
        if self._workers:
            self._workers.pop(answer.number, None)
        self._free(answer.number)

    def _free(self, number: int) -> None:
        busy = self._busy.pop(number, None)
        if busy is None:
            return
        self._busy_now.discard(busy)
        for is_socket, waiting in self._waiting.items():
            while waiting and not self._is_full(is_socket=is_socket):
                self._send(waiting.popleft())

    def _is_full(self, *, is_socket: bool) -> bool:
        return len(self._over_sockets if is_socket else self._workers) >= self._most[is_socket]

    def _send(self, made: _Question) -> None:
        number, now_s = made.number, self._clock.monotonic_s()
        busy = self._busy[number] = made.busy
        self._busy_now.add(busy)
        if made.exchange is not None and self.sockets is not None:
            made.began_s = now_s
            self._over_sockets[number] = made
            self.sockets.begin(number, made.exchange, now_s + made.question.timeout_s)
            return
        self._workers[number] = Running(
            scope=made.line.key, verb="probe", detail=made.question, since_s=now_s
        )
        try:
            future = self._executor.submit(self._work, made)
        except Exception as error:  # noqa: BLE001 - an executor may raise what it likes
            self._answer(Answer(made.line, number, _could_not(error), now_s, now_s))
        else:
            future.add_done_callback(partial(self._dropped, made))

    def _work(self, made: _Question) -> None:
        """Ask, on a worker."""
        began_s = self._clock.monotonic_s()
        try:
            reply = made.prober.probe(made.question)
        except Exception as error:  # noqa: BLE001 - whatever it is, nobody was asked
            reply = _could_not(error)
        self._answer(Answer(made.line, made.number, reply, began_s, self._clock.monotonic_s()))

    def _dropped(self, made: _Question, future: Future[None]) -> None:
        """The executor gave it up, or something that is no error ended its worker."""
        if future.cancelled() or future.exception(timeout=0) is not None:
            now_s = self._clock.monotonic_s()
            lost = Reply(ReplyKind.ERROR, "the question was given up before it was asked")
            self._answer(Answer(made.line, made.number, lost, now_s, now_s))

    def _socket_ended(self, number: int, reply: Reply) -> None:
        made = self._over_sockets.pop(number)
        answer = Answer(made.line, number, reply, made.began_s, self._clock.monotonic_s())
        self._answers.append(_checked(answer))

    def _answer(self, answer: Answer) -> None:
        self._answers.append(_checked(answer))
        self._on_answer()


def _checked(answer: Answer) -> Answer:
    """The answer itself, where its prober said what one may say."""
    if is_other(answer.reply, Reply):
        said = Reply(ReplyKind.ERROR, f"the prober answered {answer.reply!r}; it has to answer a Reply")
        return attrs.evolve(answer, reply=said)
    return answer


def _could_not(error: Exception) -> Reply:
    return Reply(ReplyKind.ERROR, error_words(error))
