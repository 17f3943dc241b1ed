"""Checkers of what an agent owes within a time, where nothing goes wrong but kills, or calls that hang."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator

from nodealloc.podfacts import Exited
from nodealloc.podspec import Probe, RestartPolicy
from nodealloc.testing.simulation.node._environment import Environment
from nodealloc.testing.simulation.node._events import Event, Ran, What
from nodealloc.testing.simulation.node._guarantee import Guarantee, ProbesHeard, RoomHeard
from nodealloc.testing.simulation.node._pods import POST_START, PRE_STOP

__all__ = [
    "EndsInTime",
    "HearsInTime",
    "HooksOnce",
    "MadeAsWanted",
    "Owed",
    "ProbesInTime",
    "StrangersGo",
    "UnwellGoSoon",
]

_SOON_S = 6.0
"""So long what is to be done may take: a listing, a plan, a call."""
_TOLD_S = 2.0
"""So long at most others are waited for who are told that a pod is not ready any more."""
_PLANNED_S = 2.0
"""So long after something was read what was decided before may still begin."""
_BACK_S = 15.0
"""So long after the agent's start it need not have done what it found undone."""
_FELT_S = 200.0
"""A call about the whole node that hangs is felt for so many seconds at most."""
_WRITTEN_S = 2.0
"""That a hook has ended is remembered so long afterwards."""
_GONE_S = 60.0
"""So long somebody else's container may run: it has its grace, and its pod may have to be taken up."""
_HARMLESS = frozenset({"run_command", None})
"""Calls that hang and put off no end: hooks, and telling of it."""


class Owed:
    """What is owed to whom, and when it is due; a later start of the agent puts that off.

    Args:
        environment: Knows when the agent was started.
    """

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._due: list[tuple[float, int, tuple[str, ...]]] = []
        self._owed: dict[tuple[str, ...], int] = {}
        self._number = 0

    def owe(self, due_s: float, *what: str) -> None:
        """This is due then, and not as it was before."""
        self._number += 1
        self._owed[what] = self._number
        heapq.heappush(self._due, (due_s, self._number, what))

    def overdue(self, now_s: float) -> Iterator[tuple[str, ...]]:
        """What was due by now; each is named once."""
        while self._due and self._due[0][0] < now_s:
            due_s, number, what = heapq.heappop(self._due)
            if self._owed.get(what) != number:
                continue
            put_off_s = self._environment.reads.alive_since_s + _BACK_S
            if due_s < put_off_s:
                heapq.heappush(self._due, (put_off_s, number, what))
                continue
            del self._owed[what]
            yield what


class EndsInTime(Guarantee):
    """Guarantee 7: a shorter grace counts once it was read, hooks cannot stretch it, and restarts do not."""

    words = "a pod has ended when the grace that the agent has read is over, and ends when its time is over"

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self._owed = Owed(environment)
        self._asked: set[str] = set()
        self._active: set[str] = set()
        self._hung: set[str] = set()
        self._put_off_s: dict[str, float] = {}
        self._node_s = -_FELT_S

    def heard(self, event: Event, /) -> None:
        """By then nothing of it runs; by then somebody asked it to end."""
        environment, uid = self.environment, event.uid
        if not (environment.only_ends or environment.only_tells or environment.only_hangs):
            return
        if event.what is What.READ:
            self._owed.owe(environment.reads.ends_by_s[uid] + _SOON_S, _ENDS, uid)
            if environment.only_tells:
                self._owed.owe(event.at_s + _TOLD_S + _SOON_S, _IS_ASKED, uid)
        elif event.what is What.SIGNALLED or (
            isinstance(event.value, Ran) and event.value.command == PRE_STOP
        ):
            self._asked.add(event.id)
        elif event.what is What.STARTED:
            # It may have been asked for long ago, and nobody can ask it to end before it runs.
            self._put_off(uid, event.at_s)
        elif event.what is What.ENDED and event.id in self._asked:
            # A sidecar is asked when what is to end before it has ended.
            self._put_off(uid, event.at_s)
        elif event.what is What.HUNG and uid and event.value not in _HARMLESS:
            self._hung.add(uid)
        elif event.what is What.HUNG and not uid:
            self._node_s = event.at_s
        pod = self.pod(uid) if event.what is What.SANDBOX_MADE and uid not in self._active else None
        if pod is not None and pod.active_deadline_seconds is not None:
            self._active.add(uid)
            self._owed.owe(event.at_s + pod.active_deadline_seconds + _SOON_S, _ASKED, uid)
        for what, whose in self._owed.overdue(event.at_s):
            if whose not in self._hung and event.at_s - self._node_s > _FELT_S:
                self._has_to_end(what, whose, event.at_s)

    def _put_off(self, uid: str, until_s: float) -> None:
        self._put_off_s[uid] = max(until_s, self._put_off_s.get(uid, until_s))

    def _has_to_end(self, what: str, uid: str, now_s: float) -> None:
        environment = self.environment
        # What somebody else started may not have been seen yet; that it goes is asked for by `StrangersGo`.
        away = environment.containers.late | environment.containers.strange
        runs = [one for one in environment.containers.running_of(uid) if one not in away]
        if what == _ENDS:
            if now_s < environment.reads.ends_by_s.get(uid, now_s) + _SOON_S:
                return  # the agent was killed before it remembered that
            assert not runs, f"{', '.join(runs)} of {uid} runs, and the grace that was read is long over"
        elif now_s < (later_s := self._put_off_s.get(uid, -_SOON_S) + _SOON_S):
            self._owed.owe(later_s, what, uid)
        else:
            is_asked = not runs or not self._asked.isdisjoint(runs)
            why = (
                "was there for longer than it may" if what == _ASKED else "is to go, which was read long ago"
            )
            assert is_asked, f"{uid} {why}, and nobody asks {', '.join(runs)} to end"


_ENDS, _ASKED, _IS_ASKED = "ends", "is overdue", "is asked"


class HearsInTime(Guarantee):
    """Ours: whoever is told of a change reads it."""

    words = "what changes in a source that tells of it is read soon, and not with the next reading"

    def heard(self, event: Event, /) -> None:
        """Nothing waits to be read."""
        if not self.environment.only_ends:
            return
        for source, since_s in self.environment.reads.waits_s.items():
            waited_s = event.at_s - max(since_s, self.environment.reads.alive_since_s + _BACK_S)
            is_told = source in self.environment.reads.followed
            assert not is_told or waited_s <= _SOON_S, (
                f"a change of {source} is not read {waited_s:.0f} s later"
            )


class HooksOnce(Guarantee):
    """Guarantee 9: that a hook was run is remembered."""

    words = "a container's hook is run once"

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self._ran: dict[tuple[str, str], float] = {}

    def heard(self, event: Event, /) -> None:
        """It was not run before, unless the agent was killed in the middle of it."""
        if not self.environment.only_ends:
            return
        if event.what is What.KILLED:
            forgotten_s = self.environment.reads.killed_s - _WRITTEN_S
            self._ran = {key: ended_s for key, ended_s in self._ran.items() if ended_s < forgotten_s}
        if isinstance(event.value, Ran) and event.value.command in {PRE_STOP, POST_START}:
            key = event.id, event.value.command
            assert key not in self._ran, f"{event.uid}/{event.name}: its hook {key[1]} is run again"
            self._ran[key] = event.at_s + self.environment.containers.takes_s(event.id, key[1])


class MadeAsWanted(Guarantee):
    """Guarantee 3: no late act."""

    words = (
        "a container is made from the image that is wanted of it, as far as the agent had read, "
        "unless an edit of its pod waits"
    )

    def heard(self, event: Event, /) -> None:
        """Its image was not another one some time before it was asked for."""
        if event.what is not What.MADE or not (self.environment.only_ends or self.environment.only_hangs):
            return
        image, read_s = self.environment.reads.images.get((event.uid, event.name), ("", 0.0))
        asked_s = event.at_s if event.asked_s is None else event.asked_s
        made = self.environment.containers.image_of(event.id)
        since_s = max(read_s, self.environment.reads.alive_since_s)
        forms = self.environment.forms
        if forms.may_wait(event.uid) and forms.made_from(event.uid, event.name, made) is not None:
            return
        assert not image or made == image or asked_s - since_s < _PLANNED_S, (
            f"{event.uid}/{event.name} is made from {made}, and {image} was read {asked_s - read_s:.0f} s ago"
        )


class ProbesInTime(ProbesHeard):
    """Guarantee 10, while all goes well: no period is left out."""

    words = "while a container is wanted and well, its probes are asked by their periods"

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self._asked_s: dict[tuple[str, str], float] = {}
        self._since_s: dict[str, float] = {}
        self._codes: dict[tuple[str, str], int] = {}

    def heard(self, event: Event, /) -> None:
        """When it is asked, or ends, it was asked a while ago."""
        if not self.environment.only_ends:
            return
        self.hear_probe(event)
        if event.what is What.ENDED and isinstance(event.value, Exited):
            self._codes[event.uid, event.name] = event.value.code
        if event.what is What.STARTED:
            self._codes.pop((event.uid, event.name), None)
            self._since_s[event.id] = event.at_s
        elif event.what is What.SIGNALLED or (
            isinstance(event.value, Ran) and event.value.command == PRE_STOP
        ):
            self._since_s.pop(event.id, None)  # it ends, for whatever reason
        command = event.value.command if isinstance(event.value, Ran) else ""
        if not command and event.what is not What.ENDED:
            return
        container = self.container(event) if event.id in self._since_s else None
        if (
            container is not None
            and event.uid not in self.environment.deletions
            and not self._may_rest(event)
        ):
            startup = _command(container.startup_probe)
            is_up = not startup or self._asked_s.get((event.id, f"{startup} passed")) is not None
            later = (container.liveness_probe, container.readiness_probe)
            for probe in later if is_up else (container.startup_probe,):
                if probe is not None and (_command(probe) == command or not command):
                    self._has_been_asked(event, probe, startup)
        if command:
            self._asked_s[event.id, command] = event.at_s
            if isinstance(event.value, Ran) and event.value.came_of_it == "0":
                self._asked_s.setdefault((event.id, f"{command} passed"), event.at_s)

    def _may_rest(self, event: Event) -> bool:
        """Whether it is to be ended, so that nobody needs to know how it is."""
        is_overdue = self.environment.overdue_s(event.uid) > -_SOON_S
        pods = self.environment.pods.values()
        is_wanted = any(event.uid in one for one in pods)
        return is_overdue or self.ends_alone(event) or not is_wanted or self._has_run(event.uid)

    def _has_run(self, uid: str) -> bool:
        """Whether all main containers of a pod have ended for good: its sidecars end one after the other."""
        pod = self.pod(uid)
        codes = [] if pod is None else [self._codes.get((uid, one.name)) for one in pod.containers]
        if pod is None or pod.restart_policy is RestartPolicy.ALWAYS or None in codes:
            return False
        return pod.restart_policy is RestartPolicy.NEVER or not any(codes)

    def _has_been_asked(self, event: Event, probe: Probe, startup: str) -> None:
        command = _command(probe)
        began_s = self._asked_s.get((event.id, f"{startup} passed"), self._since_s[event.id])
        asked_s = self._asked_s.get((event.id, command), began_s + probe.initial_delay_seconds)
        rested_s = event.at_s - max(asked_s, self.environment.reads.alive_since_s + _BACK_S)
        assert rested_s <= 2 * probe.period_seconds + _SOON_S, (
            f"{event.uid}/{event.name} was not asked ({command}) for {rested_s:.0f} s, "
            f"and {probe.period_seconds} s are its period"
        )


def _command(probe: Probe | None) -> str:
    return "" if probe is None or probe.exec is None else probe.exec.command[0]


class UnwellGoSoon(RoomHeard):
    """Ours: what liveness and startup probes are for, while all goes well."""

    words = "a container whose liveness or startup probe has failed as often as it may is asked to end soon"

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self._owed = Owed(environment)
        self._row: Counter[tuple[str, str]] = Counter()
        self._ends: set[str] = set()

    def heard(self, event: Event, /) -> None:
        """Who has failed so often in a row, in one life of the agent."""
        if not self.environment.only_ends:
            return
        if event.what is What.KILLED:
            # Of answers that nobody wrote down the next one knows nothing.
            self._row.clear()
            self._owed = Owed(self.environment)
        elif event.what in {What.SIGNALLED, What.ENDED}:
            self._ends.add(event.id)
        elif isinstance(event.value, Ran):
            self._ends |= {event.id} if event.value.command == PRE_STOP else set()
            self._count(event, event.value)
        for one, uid in self._owed.overdue(event.at_s):
            goes_on = any(uid in pods for pods in self.environment.pods.values())
            ends = uid in self.environment.deletions or self.environment.overdue_s(uid) > -_SOON_S
            if goes_on and not ends and not self.is_victim(uid):
                assert one in self._ends, f"{one} of {uid} is unwell for long, and nobody asks it to end"

    def _count(self, event: Event, ran: Ran) -> None:
        key, container = (event.id, ran.command), self.container(event)
        self._row[key] = self._row[key] + 1 if ran.came_of_it == "1" else 0
        for probe in () if container is None else (container.liveness_probe, container.startup_probe):
            if probe is None or _command(probe) != ran.command or event.id in self._ends:
                continue
            if self._row[key] == probe.failure_threshold:
                self._owed.owe(event.at_s + probe.timeout_seconds + _SOON_S, event.id, event.uid)


class StrangersGo(Guarantee):
    """Guarantees 2 and 11: what nobody wanted goes, once every source was heard."""

    words = "a container that somebody else started is ended, and nothing of it stays"

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self._owed = Owed(environment)

    def heard(self, event: Event, /) -> None:
        """It does not run for long."""
        if event.what is What.INTRUDED and self.environment.only_ends:
            self._owed.owe(event.at_s + _GONE_S, event.id)
        for (one,) in self._owed.overdue(event.at_s):
            self._is_gone(one)

    def settled(self) -> None:
        """By now none runs."""
        for one in self.environment.containers.strange:
            self._is_gone(one)

    def _is_gone(self, container_id: str) -> None:
        runs = any(one.record.id == container_id for one in self.environment.containers.running)
        assert not runs, f"{container_id}, which somebody else started, runs on"
