"""Checkers of what an agent does without being asked again: edits, deadlines, restarts, probes, hooks."""

from __future__ import annotations

import math
from collections import Counter

from nodealloc.podfacts import Exited, PodStatus
from nodealloc.podspec import Container, Probe, PullPolicy, RestartPolicy
from nodealloc.testing.simulation.node._environment import Environment
from nodealloc.testing.simulation.node._events import Event, Ran, What
from nodealloc.testing.simulation.node._guarantee import Guarantee, ProbesHeard, RoomHeard
from nodealloc.testing.simulation.node._in_time import Owed
from nodealloc.testing.simulation.node._pods import POST_START, PRE_STOP, STARTED

__all__ = ["DeadlinesEnd", "EditsAreMade", "HooksAreRun", "ProbesGoOn", "RestartsCome", "StoppedStartAgain"]

_EARLY_S = 1.0
"""Deadlines are in whole seconds."""
_LATE_S = 60.0
"""So long after its deadline a pod may still run when all is quiet: its grace is at most half of it."""
_ASKED_S = 100.0
"""So long besides three periods nobody may have asked: the agent may have been away."""
_COMES_S = 10.0
"""So long after its wait, where nothing goes wrong, a container has started again."""
_HOOKED_S = 30.0
"""So long after a start the hooks of what started before may take."""
_AGAIN_S = 16.0
"""So long after its start an agent may take to run a hook again that it was killed in."""
_ENDS, _AGAIN = "ends", "again"
_BACK_S = 8.0
"""So long after its start the agent need not go on where it was killed."""
_STORED_S = 5.0
"""What ended so long before the agent was killed is remembered."""
_FETCHED_S = 120.0
"""So long after an edit images may be fetched, and others wait."""
_BACK_OFF_S, _LONGEST_S, _ANEW_S = 10.0, 300.0, 600.0
"""See `RestartsWait`."""


class EditsAreMade(Guarantee):
    """Ours: what an edit is for."""

    words = "when all is quiet, what runs was made from the image that is wanted now"

    def settled(self) -> None:
        """By now what was edited was started anew."""
        wanted = {uid: pod for pods in self.environment.pods.values() for uid, pod in pods.items()}
        for one in self.environment.containers.running:
            pod, name = wanted.get(one.record.pod.uid), one.record.name
            for container in () if pod is None else pod.containers:
                image = self.environment.containers.image_of(one.record.id)
                assert container.name != name or container.image == image, (
                    f"{one.record.pod.uid}/{name} runs from {image}, and {container.image} is wanted"
                )


class DeadlinesEnd(RoomHeard):
    """Ours: how long a pod may be active; and guarantee 8: the first reason counts."""

    words = "a pod that may be active for so long ends then, and not before, and that is told as the reason"

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self._ends: set[str] = set()

    def heard(self, event: Event, /) -> None:
        """Nobody is told that it was there for too long before it was, or that it ended for no reason."""
        self.hear_probe(event)
        self.hear_critical(event)
        if event.what is What.SIGNALLED and self._ends_for_it(event):
            self._ends.add(event.uid)
        if not isinstance(event.value, PodStatus):
            return
        if event.value.reason == "DeadlineExceeded":
            left_s = -self.environment.overdue_s(event.uid)
            assert left_s <= _EARLY_S, f"{event.uid} is told to be overdue, and {left_s:.1f} s are left"
        elif event.value.is_terminal:
            assert event.uid not in self._ends, (
                f"{event.uid} was there for too long, which ended it, and {event.value.reason or 'nothing'} "
                "is told as the reason"
            )

    def _ends_for_it(self, event: Event) -> bool:
        """Whether a main container is asked to end for no other reason."""
        pod, container = self.pod(event.uid), self.container(event)
        return (
            self.environment.only_ends
            and pod is not None
            and container in pod.containers
            and event.uid not in self.environment.deletions
            and self.environment.overdue_s(event.uid, is_awake=True) > -_EARLY_S
            and not (self.ends_alone(event) or self.makes_room(event))
        )

    def settled(self) -> None:
        """Nothing runs of what is overdue."""
        for one in self.environment.containers.running:
            late_s = self.environment.overdue_s(one.record.pod.uid, is_awake=True)
            assert late_s < _LATE_S, f"{one.record.pod.uid} runs {late_s:.0f} s after its deadline"


class HooksAreRun(Guarantee):
    """Ours: what is done right after a start."""

    words = "what runs has had its post-start hook run: soon where nothing goes wrong but kills"

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self._owed = Owed(environment)
        self._ran: set[str] = set()
        self._started: set[str] = set()
        self._ends: set[str] = set()
        self._over_s: dict[str, float] = {}

    def heard(self, event: Event, /) -> None:
        """Whose hook was run to its end, and who waits for that."""
        container = self.container(event)
        hook = container.lifecycle.post_start if container and container.lifecycle else None
        if event.what is What.STARTED:
            self._started.add(event.id)
            if hook is not None and self.environment.only_ends:
                self._owed.owe(event.at_s + _HOOKED_S, event.id)
        elif event.what in {What.SIGNALLED, What.ENDED}:
            self._ends.add(event.id)
        elif event.what is What.KILLED and self.environment.only_ends:
            self._cut_short(event.at_s)
        elif isinstance(event.value, Ran):
            if event.value.command == POST_START:
                self._ran.add(event.id)
                if self.environment.only_ends:
                    takes_s = self.environment.containers.takes_s(event.id, POST_START)
                    self._over_s[event.id] = event.at_s + takes_s
                    # One that the agent was killed in is run again, and may do well then.
                    due_s = event.at_s + takes_s + _HOOKED_S if event.value.failed else math.inf
                    self._owed.owe(due_s, event.id, _ENDS)
            self._ends |= {event.id} if event.value.command == PRE_STOP else set()
        for one, *what in self._owed.overdue(event.at_s):
            uid = self.environment.containers.pod_of(one)
            if what == [_AGAIN] and (uid in self.environment.read or self.environment.overdue_s(uid) > 0):
                continue
            assert one in self._ends or what != [_ENDS], f"{one} runs, and its post-start hook failed"
            assert one in self._ran or one in self._ends, f"{one} runs, and its post-start hook was not run"

    def _cut_short(self, now_s: float) -> None:
        """Of a hook that the agent was killed in nobody knows what came: it is run again."""
        killed_s, answered = self.environment.reads.killed_s, self.environment.containers.answered
        late = [one for one, over_s in self._over_s.items() if over_s > killed_s]
        # Where calls take no time, it had ended all the same.
        for one in [one for one in late if (one, POST_START) not in answered]:
            self._ran.discard(one)
            self._owed.owe(now_s + _AGAIN_S, one, _AGAIN)
        self._over_s.clear()

    def settled(self) -> None:
        """None is left out."""
        for one in self.environment.containers.running:
            pod = self.pod(one.record.pod.uid)
            for container in () if pod is None or one.record.id not in self._started else pod.containers:
                hook = container.lifecycle.post_start if container.lifecycle else None
                has_one = container.name == one.record.name and hook is not None
                assert not has_one or one.record.id in self._ran, (
                    f"{one.record.pod.uid}/{container.name} runs, and its post-start hook was not run"
                )


class ProbesGoOn(Guarantee):
    """Guarantee 10: a probe is asked by its periods, whatever clocks and restarts did meanwhile."""

    words = "whoever has a probe is asked again and again, and not before its initial delay"

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self._asked_s: dict[tuple[str, str], float] = {}
        self._started_s: dict[str, float] = {}
        self._up: set[str] = set()
        self._exact: set[str] = set()

    def heard(self, event: Event, /) -> None:
        """It is asked in time."""
        if event.what is What.STARTED:
            self._started_s[event.id] = event.at_s
            self._exact.add(event.id)
        elif event.what is What.KILLED:
            # When it started is then known by the wall clock alone.
            self._exact.clear()
        elif isinstance(event.value, Ran):
            command = event.value.command
            self._asked_s[event.id, command] = event.at_s
            if event.value == Ran(STARTED, "0"):
                self._up.add(event.id)
            container = self.container(event)
            for probe in () if container is None or event.id not in self._exact else _probes(container):
                since_s = event.at_s - self._started_s[event.id]
                is_early = _command(probe) == command and since_s < probe.initial_delay_seconds - _EARLY_S
                assert not is_early, (
                    f"{event.uid}/{event.name} is asked ({command}) {since_s:.1f} s after its start, "
                    f"and {probe.initial_delay_seconds} s are its initial delay"
                )

    def settled(self) -> None:
        """Nobody is forgotten."""
        for one in self.environment.containers.running:
            pod, cid = self.pod(one.record.pod.uid), one.record.id
            for container in () if pod is None else pod.containers:
                if container.name != one.record.name or cid not in self._started_s:
                    continue
                for probe in _probes(container):
                    if (probe is container.startup_probe) is (cid in self._up) and container.startup_probe:
                        continue
                    asked_s = self._asked_s.get((cid, _command(probe)), self._started_s[cid])
                    rests_s = 3 * probe.period_seconds + probe.initial_delay_seconds + _ASKED_S
                    assert self.environment.awake_s - asked_s <= rests_s, (
                        f"{one.record.pod.uid}/{container.name} runs, and nobody has asked it "
                        f"({_command(probe)}) for {self.environment.awake_s - asked_s:.0f} s"
                    )


class StoppedStartAgain(ProbesHeard):
    """Guarantee 1: an end that the agent itself brought about is none that a restart policy speaks of."""

    words = "when all is quiet, a container that was asked to end to start again has, whatever it left with"

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self._stopped: dict[tuple[str, str], tuple[str, str]] = {}
        self._unsure: set[str] = set()

    def heard(self, event: Event, /) -> None:
        """Who ended for that, and who started since."""
        self.hear_probe(event)
        self.hear_stop(event)
        key = (event.uid, event.name)
        if event.what is What.UNSURE:
            self._unsure.add(event.id)  # it is stopped for that, and its policy decides
        is_owed = event.id in self.stopped_to_start and event.id not in self._unsure
        if event.what is What.ENDED and is_owed and self._starts_again(event):
            self._stopped[key] = event.id, self.environment.containers.sandbox_of(event.id)
        elif event.what is What.STARTED:
            self._stopped.pop(key, None)

    def _starts_again(self, event: Event) -> bool:
        """Whether it is one that starts again: for another image whatever the policy, else by that."""
        pod, container = self.pod(event.uid), self.container(event)
        if pod is None or container not in pod.containers:
            return False
        return pod.restart_policy is not RestartPolicy.NEVER or self.is_outdated(event)

    def settled(self) -> None:
        """By now it did, unless its pod was ended for a told reason, or lost its sandbox under Never."""
        environment = self.environment
        for (uid, name), (made, box) in self._stopped.items():
            told = environment.told.get(uid)
            is_wanted = any(uid in pods for pods in environment.pods.values())
            ends = uid in environment.deletions or environment.overdue_s(uid) > 0
            ends = ends or bool(told and told.reason) or (self._never(uid) and not self._stands(box))
            assert ends or not is_wanted, f"{uid}/{name} ({made}) was asked to end, and does not start again"

    def _never(self, uid: str) -> bool:
        return self.environment.known[uid].restart_policy is RestartPolicy.NEVER

    def _stands(self, sandbox_id: str) -> bool:
        boxes = self.environment.containers.sandboxes
        return any(one.record.id == sandbox_id and one.record.is_ready for one in boxes)


class RestartsCome(RoomHeard):
    """Guarantee 1: the back-off of restarts has an end, and goes on through restarts of the agent."""

    words = (
        "where nothing goes wrong but kills, a container that has to start again does when its wait is over, "
        "unless its pod makes room for a critical one, which ends it"
    )

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self._starts: Counter[tuple[str, str]] = Counter()
        self._before_s: dict[tuple[str, str], float] = {}
        self._owed: dict[tuple[str, str], tuple[float, float]] = {}
        self._hooked_s: dict[str, float] = {}
        self._next_s = math.inf
        self._over: set[str] = set()
        self._edited_s = -_FETCHED_S

    def heard(self, event: Event, /) -> None:
        """It starts in time."""
        if not self.environment.only_ends:
            return
        self.hear_probe(event)
        self.hear_stop(event)
        key = (event.uid, event.name)
        if isinstance(event.value, Ran) and event.value.command == POST_START:
            # While the hook of one container runs, no other one of its pod starts.
            over_s = event.at_s + self.environment.containers.takes_s(event.id, POST_START)
            self._hooked_s[event.uid] = max(over_s, self._hooked_s.get(event.uid, over_s))
        if isinstance(event.value, PodStatus) and event.value.is_terminal:
            self._over.add(event.uid)
        if event.what in {What.EDITED, What.POWER}:
            self._edited_s = event.at_s
            self._owed.clear()
        elif event.what is What.SANDBOX_MADE:
            self._owed = {one: owed for one, owed in self._owed.items() if one[0] != event.uid}
        elif event.what is What.KILLED:
            self._put_off()
        elif event.what is What.STARTED:
            self._starts[key] += 1
            self._owed.pop(key, None)
            self._before_s[key] = event.at_s
        elif event.what is What.ENDED and self._restarts(event):
            if event.at_s - self._before_s.get(key, event.at_s) > _ANEW_S + _COMES_S:
                self._starts[key] = 1
            count = self._starts[key]
            waits_s = min(_BACK_OFF_S * 2.0 ** (count - 2), _LONGEST_S) if count > 1 else 0.0
            if self.environment.saw_faults(event.uid):
                waits_s = _LONGEST_S  # how often it had started before nobody has counted
            fetches_s = _FETCHED_S if event.at_s - self._edited_s < _FETCHED_S else 0.0
            # What ended while nobody looked is seen by the next life.
            seen_s = max(event.at_s, self.environment.reads.alive_since_s)
            self._owed[key] = seen_s, waits_s + _COMES_S + fetches_s
            self._next_s = min(self._next_s, sum(self._owed[key]))
        if self._next_s < event.at_s:
            self._has_come(event.at_s)

    def _put_off(self) -> None:
        """What ended when nobody looked, or just before that, counts from the start of the next life."""
        reads = self.environment.reads
        lost_s = reads.alive_since_s - reads.killed_s + _BACK_S
        self._owed = {
            key: (max(ended_s, reads.alive_since_s), waits_s + _BACK_S)
            if ended_s > reads.killed_s - _STORED_S
            else (ended_s, waits_s + lost_s)
            for key, (ended_s, waits_s) in self._owed.items()
        }

    def _has_come(self, now_s: float) -> None:
        dues = {
            key: max(sum(owed), self._hooked_s.get(key[0], -math.inf) + _COMES_S)
            for key, owed in self._owed.items()
        }
        for (uid, name), due_s in dues.items():
            is_wanted = uid not in self.environment.deletions and uid not in self._over
            # Who makes room has been told so by now.
            is_wanted = is_wanted and not self.is_victim(uid)
            assert due_s >= now_s or not is_wanted or self.environment.overdue_s(uid) > 0, (
                f"{uid}/{name} has ended, its wait is over, and {now_s - due_s + _COMES_S:.0f} s later "
                "it does not run"
            )
        self._owed = {key: owed for key, owed in self._owed.items() if dues[key] >= now_s}
        self._next_s = min((dues[key] for key in self._owed), default=math.inf)

    def _restarts(self, event: Event) -> bool:
        """Whether a main container ended that its policy has start again."""
        pod, container = self.pod(event.uid), self.container(event)
        if pod is None or container not in pod.containers or event.uid in self.environment.deletions:
            return False
        if any(one.image_pull_policy is PullPolicy.ALWAYS for one in pod.containers):
            return False  # it waits until its image was fetched once more
        policy = pod.restart_policy
        # What is asked to end to start again may leave with 0.
        fails = event.value != Exited(code=0) or event.id in self.stopped_to_start
        return policy is RestartPolicy.ALWAYS or (policy is RestartPolicy.ON_FAILURE and fails)


def _probes(container: Container) -> list[Probe]:
    every = (container.startup_probe, container.liveness_probe, container.readiness_probe)
    return [one for one in every if one is not None and one.exec is not None]


def _command(probe: Probe) -> str:
    return "" if probe.exec is None else probe.exec.command[0]
