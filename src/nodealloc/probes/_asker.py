"""The shell that asks: when each probe is due, what is under way, what came of it."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Iterator
from typing import Final, Generic, TypeVar

from nodealloc import _attrs as attrs
from nodealloc._frozen import Frozen
from nodealloc.dsw_asw import Clock, Driven, Executor, Passing, Running, Summary
from nodealloc.podfacts import LifeState, PodEvent
from nodealloc.probes._asks import Ask, Heards, asks_of, tally_of
from nodealloc.probes._batching import Batching
from nodealloc.probes._budget import Budget
from nodealloc.probes._kinds import ProbeKind, asks
from nodealloc.probes._lines import Key, Line, Timetable
from nodealloc.probes._options import ProbeOptions, Probers
from nodealloc.probes._ports import ReportedPod
from nodealloc.probes._questions import Answer, Questions
from nodealloc.probes._replies import Reply, ReplyKind
from nodealloc.probes._rules import Rules
from nodealloc.probes._tally import TRIES, Instance, Next, changes_nothing, event_of, hear, look
from nodealloc.probes._verdicts import Passed, ProbeVerdict, Unwell
from nodealloc.probes._worlds import Worlds

__all__ = ["Asker"]

_log = logging.getLogger("nodealloc.probes")
_STEP_S: Final = 0.1
"""Between two looks whether a worker is back while nothing else is done any more."""

Seen = TypeVar("Seen", bound=ReportedPod)


class Asker(Driven, Passing, Generic[Seen]):
    """Asks probes when they are due; a part of `Probing`.

    At most one question of each probe is under way: a prober that never returns is
    never asked a second time.
    """

    def __init__(
        self,
        worlds: Worlds[Seen],
        *,
        probers: Probers,
        options: ProbeOptions,
        rules: Rules,
        on_event: Callable[[PodEvent], None] | None,
        executor: Executor,
        clock: Clock,
        unix_s: Callable[[], float],
    ) -> None:
        super().__init__("probes", 10.0)
        self._worlds, self._options, self._rules = worlds, options, rules
        self._on_event, self._clock, self._unix_s = on_event, clock, unix_s
        self._passing = threading.RLock()
        self._lines: dict[Key, Line] = {}
        self._of_pod: dict[str, dict[Key, None]] = {}
        self._met: dict[str, float] = {}
        self._table = Timetable(options.first_per_s)
        self._budget = Budget(options.kills, options.kills_window_s)
        self._questions = Questions(
            probers, options=options, executor=executor, clock=clock, on_answer=self._wake
        )
        self._events: list[PodEvent] = []
        self._changed: dict[str, None] = {}
        self._batching = Batching(self._work, clock)
        self._closed, self.withheld = False, 0
        # Pods with a probe: how others are wakes nobody.
        self._probed: dict[str, None] = {}
        self._watches = [
            worlds.wanted.watch(self._wake),
            worlds.reports.watch(self._wake, of=self._probed),
            worlds.verdicts.watch(self._wake),
        ]
        if any(len(watch) for watch in self._watches):
            self._work.set()

    # As part of a group: whatever passes are made, questions take a worker.

    def reconcile(self) -> Summary:
        """Hear what came, and ask what is due."""
        self.begin_pass()
        return self.end_pass(None)

    @property
    def has_work(self) -> bool:
        """Whether a pass now would find something to do; never where a thread of its own does it."""
        if self._questions.sockets is not None:
            return False
        if self._work.is_set() or self._changed:
            return True
        wait_s = self.seconds_to_next()
        return wait_s is not None and wait_s <= 0

    def begin_pass(self) -> None:
        """Hear what came, and ask what is due; there is nothing to write down."""
        self.move_on()

    def end_pass(self, error: Exception | None, /) -> Summary:
        """What is under way."""
        del error
        with self._passing:
            self._passed()
            return Summary(passes=1, running=len(self.running()), next_due_s=self._table.next_s())

    def abandon_pass(self) -> None:
        """The pass was interrupted: look again."""
        self._wake()

    def seconds_to_next(self) -> float | None:
        """How long until a question is due."""
        with self._passing:
            due_s = self._table.next_s()
        return None if due_s is None else max(0.0, due_s - self._clock.monotonic_s())

    def reconcilers(self) -> Iterator[Passing]:
        """Itself."""
        yield self

    def running(self) -> tuple[Running[object], ...]:
        """Questions that took a worker and have not ended."""
        return self._questions.running()

    def close(self, timeout_s: float = 0.0, /) -> tuple[Running[object], ...]:
        """Ask nothing more; drop what goes over sockets, and wait for workers."""
        until_s = time.monotonic() + timeout_s
        with self._passing:
            self._closed = True
            self._questions.ask_nothing_more()
        for watch in self._watches:
            watch.close()
        self._wake()
        while self.running() and (left_s := until_s - time.monotonic()) > 0:
            # Not by a pass: the thread that waits for sockets may be in the middle of one.
            self._questions.forget_answers()
            self._work.wait(min(left_s, _STEP_S))
            self._work.clear()
        return self.running()

    # With a thread of its own: sockets share it.

    def select(self) -> None:
        """From now on whoever calls `turn` waits for sockets, too."""
        self._questions.select()

    def turn(self, most_s: float | None, /) -> None:
        """Wait for sockets, a due moment or a word, and move on."""
        sockets = self._questions.sockets
        if sockets is None:
            return
        end_s = sockets.next_end_s()
        self._batching.wait(end_s)
        waits = [wait for wait in (self.seconds_to_next(), most_s) if wait is not None]
        if end_s is not None:
            waits.append(max(0.0, end_s - self._clock.monotonic_s()))
        sockets.turn(0.0 if self._work.is_set() else min(waits, default=None), self._clock.monotonic_s)
        self._batching.turned()
        self.move_on()

    def leave(self) -> None:
        """The thread ends."""
        with self._passing:
            self._questions.leave()

    def interrupt(self) -> None:
        """Have `turn` return; from any thread."""
        sockets = self._questions.sockets
        if sockets is not None:
            sockets.wake()

    def _wake(self) -> None:
        super()._wake()
        self.interrupt()

    # What both do.

    def move_on(self) -> None:
        """Look at what changed, hear what came, ask what is due."""
        with self._passing:
            self._work.clear()
            self._changed.update((uid, None) for watch in self._watches for uid in watch.take())
            while self._changed:
                uid = next(iter(self._changed))
                del self._changed[uid]  # first: where looking at it raises, the others are looked at later
                self._look_at(uid)
            while (answer := self._questions.next_answer()) is not None:
                self._heard(answer)
            now_s = self._clock.monotonic_s()
            while not self._closed and (line := self._table.take(now_s)) is not None:
                self._due(line, now_s)
            events, self._events = self._events, []
        for event in events:
            self._tell(event)

    def _tell(self, event: PodEvent) -> None:
        if self._on_event is not None:
            try:
                self._on_event(event)
            except Exception:  # noqa: BLE001 - a listener's fault is its own
                _log.exception("whoever listens to events raised; the next one is told all the same")

    def _look_at(self, uid: str) -> None:
        """A pod, its containers or its verdicts changed."""
        want = self._worlds.wanted.get(uid)
        if want is not None and want.has_probes:
            self._probed[uid] = None
        else:
            self._probed.pop(uid, None)
        known = self._worlds.reports.get(uid)
        asks: tuple[Ask, ...] = ()
        if want is not None:
            verdicts = self._worlds.verdicts.get(uid)
            asks = asks_of(want, known, verdicts, node_ip=self._options.node_ip)
        keys = {(uid, ask.name, ask.asking.kind) for ask in asks}
        for key in [key for key in self._of_pod.get(uid, ()) if key not in keys]:
            self._drop(key)
        for ask in asks:
            self._update((uid, ask.name, ask.asking.kind), ask)
        if want is not None and want.pod is not None:
            self._met.setdefault(uid, self._clock.monotonic_s())
        if want is None:
            self._met.pop(uid, None)
            self._worlds.heard.drop(uid, by="probes")

    def _drop(self, key: Key) -> None:
        line = self._lines.pop(key)
        self._batching.drop(key)
        line.due_s = None
        self._questions.drop(line)
        mine = self._of_pod[key[0]]
        mine.pop(key, None)
        if not mine:
            del self._of_pod[key[0]]

    def _update(self, key: Key, ask: Ask) -> None:
        now_s = self._clock.monotonic_s()
        line = self._lines.get(key)
        if line is None:
            line = self._lines[key] = Line(key, ask, tally_of(ask))
            self._of_pod.setdefault(key[0], {})[key] = None
            line.started_s = self._start_of(key[0], ask, now_s)
        elif line.ask.container_id != ask.container_id:
            self._questions.drop(line)
            line.started_s, line.is_first, line.due_s = self._began(ask, now_s), True, None
        elif line.ask.asks_otherwise(ask):
            # Nothing that was answered to another question counts for this one; what stands, stands.
            self._questions.drop(line)
            line.tally = attrs.evolve(line.tally, was_success=None, run=0)
            line.is_first, line.due_s = True, None
        elif line.ask.asking.schedule != ask.asking.schedule:
            line.due_s = None
        line.ask, line.instance, line.busy = ask, None, f"{ask.container_id} {key[2].value}"
        self._batching.add(key, ask.asking.schedule)
        if line.due_s is None and not line.number:
            self._plan(line, now_s)

    def _start_of(self, uid: str, ask: Ask, now_s: float) -> float | None:
        """When an instance that was not seen before started, on our clock.

        The wall clock counts only where it ran before we looked: it may jump.
        """
        if isinstance(ask.verdict, Passed | Unwell) or (uid not in self._met and ask.started_unix_s is None):
            return None  # asked before, or long ago: its delay is over
        if uid in self._met or ask.started_unix_s is None:
            return self._began(ask, now_s)
        return now_s - max(0.0, self._unix_s() - ask.started_unix_s)

    def _began(self, ask: Ask, now_s: float) -> float:
        """When an instance started of which we hear now; a kubelet goes by its second on the wall clock."""
        if self._rules.asks_at_once or ask.started_unix_s is None:
            return now_s
        return now_s - max(0.0, self._unix_s() - math.floor(ask.started_unix_s))

    def _looked(self, line: Line, at_s: float) -> Next:
        """Whether a line is asked at a moment; what comes up on the way is told."""
        ask, instance = line.ask, line.instance
        if instance is None:
            instance = line.instance = Instance(
                id=ask.container_id,
                is_running=ask.is_running,
                has_ended=ask.has_ended,
                started_s=line.started_s,
                has_started=ask.has_started,
            )
        looked = look(line.tally, ask.asking, instance, life=ask.life, now_s=at_s, rules=self._rules)
        if ask.life is LifeState.TERMINATING and ask.asking.kind.kills:
            return looked.next  # nobody asks it any more, nor is anything made up for it
        line.tally = looked.tally
        for verdict in looked.told:
            self._say(line, verdict)
        return looked.next

    def _plan(self, line: Line, now_s: float) -> None:
        """Find out when a line that rests is asked, if at all."""
        delay_s = line.ask.asking.schedule.initial_delay_s
        at_s = now_s if line.started_s is None else max(now_s, line.started_s + delay_s)
        at_s = self._asking_s(line, at_s, now_s)
        if self._looked(line, at_s) is Next.ASK:
            self._table.add(line, at_s)

    def _asking_s(self, line: Line, at_s: float, now_s: float) -> float:
        """When to ask: at that moment, or, by a kubelet's rules, at the next whole period since the pod came.

        A kubelet asks for readiness at each change of what is told, too: that question waits for nothing.
        """
        uid, _, kind = line.key
        if self._rules.asks_at_once or kind is ProbeKind.READINESS:
            return at_s
        began_s, period_s = self._met.get(uid, now_s), line.ask.asking.schedule.period_s
        return began_s + max(0, math.ceil((at_s - began_s) / period_s)) * period_s

    def _due(self, line: Line, now_s: float) -> None:
        asked_s = line.asked_s
        late = now_s - asked_s > self._options.late_s
        if (line.is_first or late) and not line.is_paced:
            place_s = self._table.place(now_s)
            if place_s > now_s:
                self._table.add(line, place_s, is_paced=True)
                return
            line.asked_s = now_s
        line.is_first = line.is_paced = False
        if self._looked(line, now_s) is Next.ASK:
            line.tries, line.asked = 1, line.ask
            self._questions.ask(line, now_s)

    def _heard(self, answer: Answer) -> None:
        """What came of a question becomes a tally, and perhaps a verdict."""
        self._questions.over(answer)
        line = answer.line
        if line.number != answer.number:
            return
        line.number = 0
        now_s = self._clock.monotonic_s()
        reply = self._judged(line.ask, answer)
        if reply.kind is ReplyKind.ERROR and line.tries < TRIES and not self._closed:
            line.tries += 1
            self._questions.ask(line, now_s)
            return
        asking = line.ask.asking
        is_steady = line.ask is line.asked and changes_nothing(line.tally, asking, reply)
        # Asked before its pod had to end, and not to be killed for it any more.
        if not is_steady and asks(asking.kind, line.ask.life, asking.container):
            self._count(line, reply, now_s)
        due_s = line.asked_s + asking.schedule.period_s
        if due_s < now_s:
            due_s += (now_s - due_s) // asking.schedule.period_s * asking.schedule.period_s
        if is_steady or self._looked(line, max(due_s, now_s)) is Next.ASK:
            self._table.add(line, due_s)

    def _judged(self, ask: Ask, answer: Answer) -> Reply:
        """The agent's own lateness is nobody's failure."""
        took_s, given_s = answer.ended_s - answer.began_s, ask.asking.schedule.timeout_s
        if not answer.reply.timed_out or took_s <= given_s + self._options.late_s:
            return answer.reply
        return Reply(
            ReplyKind.UNKNOWN,
            f"the agent itself was late: {took_s:.1f} s went by for a time-out of {given_s:g} s",
        )

    def _count(self, line: Line, reply: Reply, now_s: float) -> None:
        asking, before = line.ask.asking, line.tally
        heard = hear(before, asking, reply, rules=self._rules)
        if isinstance(heard.told, Unwell) and asking.kind.kills and not self._budget.spend(now_s):
            self.withheld += 1
            run = asking.schedule.failure_threshold - 1
            line.tally = attrs.evolve(before, was_success=False, run=run)
            kills, window_s = self._options.kills, self._options.kills_window_s
            reply = attrs.evolve(
                reply, message=f"{reply.message}; not killed: {kills} were within {window_s:g} s"
            )
        else:
            line.tally = heard.tally
            if heard.told is not None:
                self._say(line, heard.told)
        event = event_of(reply, asking.kind, line.ask.pod, line.ask.name, rules=self._rules)
        if event is not None:
            self._events.append(event)

    def _say(self, line: Line, verdict: ProbeVerdict) -> None:
        """Write down what was heard; the engine remembers it, and tells."""
        uid = line.key[0]
        there = {self._lines[key].ask.container_id for key in self._of_pod[uid]} | {line.ask.container_id}

        def change(before: Heards | None) -> Heards:
            kept = {key: one for key, one in (before or {}).items() if key[0] in there}
            return Frozen({**kept, (line.ask.container_id, line.ask.asking.kind): verdict})

        self._worlds.heard.alter(uid, change, by="probes")
