"""Checkers of what runs: each hears every event of the node, and remembers what it needs."""

from __future__ import annotations

import attrs

from nodealloc.podfacts import ContainerTerminated, Exited, HostPort, PodPhase, PodStatus, host_ports_of
from nodealloc.podspec import Pod, RestartPolicy
from nodealloc.testing.simulation.node._environment import API, Environment
from nodealloc.testing.simulation.node._events import Event, Ran, What
from nodealloc.testing.simulation.node._guarantee import Guarantee, ProbesHeard, RoomHeard, StartsHeard
from nodealloc.testing.simulation.node._pods import STARTED

__all__ = [
    "AttemptsOnce",
    "DebuggedOnce",
    "FinishedStays",
    "InitFirst",
    "InitOnce",
    "NothingAfterwards",
    "NothingWithoutReason",
    "OneCopy",
    "OneDeadline",
    "PortsOnce",
]

_SLACK_S = 1.0
"""Seconds that a signal may come after its deadline."""
_SEEN_S = 150.0
"""So long after its start an agent may not have seen what somebody else started: its runtime was away."""
_KEPT_S = 2.0
"""Of a grace so much at most is kept for who has not heard yet."""
_EXACT_S = 0.1
"""Seconds by which two calls may differ that speak of one deadline."""


class OneCopy(Guarantee):
    """Guarantee 3."""

    words = "a container of a pod never runs twice at a time"

    def heard(self, event: Event, /) -> None:
        """A start is no second copy."""
        if event.what is What.STARTED:
            copies = [
                one.record.id
                for one in self.environment.containers.running
                if (one.record.pod.uid, one.record.name) == (event.uid, event.name)
            ]
            assert len(copies) == 1, f"{event.uid}/{event.name} runs {len(copies)} times: {', '.join(copies)}"


class AttemptsOnce(StartsHeard):
    """Guarantees 1 and 9."""

    words = "no attempt of a container of which an agent can know starts twice"

    def heard(self, event: Event, /) -> None:
        """A start has a number that none before it had, in its sandbox."""
        if event.what is What.STARTED:
            this = event.attempt, self.environment.containers.sandbox_of(event.id)
            before = self.starts[event.uid, event.name]
            assert this not in before, f"attempt {event.attempt} of {event.uid}/{event.name} starts again"
        self.hear_start(event)


class FinishedStays(ProbesHeard):
    """Guarantees 1 and 8."""

    words = "what its policy does not restart never runs again"

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self._started: set[tuple[str, str, str]] = set()
        self._succeeded: set[tuple[str, str]] = set()
        self._told = set[tuple[str, str]]()

    def heard(self, event: Event, /) -> None:
        """A start is allowed by the pod's policy, or by what it was asked to end for."""
        self.hear_probe(event)
        self.hear_stop(event)
        self._told |= {(event.uid, name) for _, name in _successes(event)}
        pod, container = self.pod(event.uid), self.container(event)
        if event.what is What.SANDBOX_MADE and pod is not None:
            self._needs_one(pod)
        if pod is None or container is None or container not in pod.containers:
            return
        key = (event.uid, event.name)
        # What is to run from another image is another container, of which no policy speaks.
        first = (*key, self.environment.containers.image_of(event.id))
        if event.what is What.ENDED and event.value == Exited(code=0) and event.id not in self.stopped_alone:
            self._succeeded.add(key)
        if event.what is What.FORGOT:  # perhaps nobody looked in time
            self._succeeded -= {key} - self._told
        if event.what is What.STARTED:
            if pod.restart_policy is RestartPolicy.NEVER:
                assert first not in self._started, f"{event.uid}/{event.name} starts again under policy Never"
            if pod.restart_policy is RestartPolicy.ON_FAILURE:
                assert key not in self._succeeded or first not in self._started, (
                    f"{event.uid}/{event.name} starts again after it succeeded"
                )
            if first not in self._started:
                self._succeeded.discard(key)  # that was the other one
            self._started.add(first)

    def _needs_one(self, pod: Pod) -> None:
        """A sandbox is made for something that is to run in it."""
        has_succeeded = all(
            (pod.uid, one.name) in self._succeeded and (pod.uid, one.name, one.image) in self._started
            for one in pod.containers
        )
        assert not has_succeeded or pod.restart_policy is not RestartPolicy.ON_FAILURE, (
            f"{pod.uid} gets another sandbox, and all that its policy would start in it has succeeded"
        )


class InitFirst(Guarantee):
    """Ours: the order of a pod's containers."""

    words = "a container starts when the init containers before it have succeeded in its sandbox"

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self._done: set[tuple[str, str, str]] = set()

    def heard(self, event: Event, /) -> None:
        """A sidecar before it has started."""
        is_up = event.value == Ran(STARTED, "0")
        pod = self.pod(event.uid) if is_up or event.what in {What.STARTED, What.ENDED} else None
        box, container = self.environment.containers.sandbox_of(event.id), self.container(event)
        if pod is None or not box or container is None:
            return
        inits = [one.name for one in pod.init_containers]
        is_plain = self.is_init(event) or container.startup_probe is not None
        if event.what is What.STARTED:
            before = inits[: inits.index(event.name)] if event.name in inits else inits
            missing = [one for one in before if (event.uid, one, box) not in self._done]
            assert not missing, f"{event.uid}/{event.name} starts, and {', '.join(missing)} comes before it"
        if (event.what is What.STARTED and not is_plain) or is_up or event.value == Exited(code=0):
            self._done.add((event.uid, event.name, box))


class InitOnce(Guarantee):
    """Guarantee 1."""

    words = (
        "an init container that succeeded does not run again in its sandbox, nor one that failed under Never"
    )

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self._codes: dict[tuple[str, str, str], int] = {}
        self._told = set[str | None]()

    def heard(self, event: Event, /) -> None:
        """A start is not of an init container that is over."""
        self._told |= {id_ for id_, _ in _successes(event)}
        if event.what not in {What.STARTED, What.ENDED, What.FORGOT} or not self.is_init(event):
            return
        one = next(one for one in self.environment.containers.reports if one.record.id == event.id)
        key = (event.uid, event.name, one.record.sandbox_id)
        code, pod = self._codes.get(key), self.pod(event.uid)
        if event.what is What.ENDED and isinstance(event.value, Exited):
            # How one ends of which the runtime said something strange is not its own doing.
            if event.value.code == 0 or not self.environment.outages.is_excused(event.id):
                self._codes[key] = event.value.code
        elif event.what is What.FORGOT and (code or event.id not in self._told):
            self._codes.pop(key, None)  # perhaps nobody looked in time
        elif event.what is What.STARTED:
            has_failed = bool(code) and pod is not None and pod.restart_policy is RestartPolicy.NEVER
            is_over, what = code == 0 or has_failed, "failed" if has_failed else "succeeded"
            assert not is_over, f"init container {event.uid}/{event.name} {what} and starts again"


class NothingWithoutReason(RoomHeard):
    """Guarantees 1, 2, 13 and 14."""

    words = (
        "no container is asked to end that is wanted, as far as the agent has read, and well, "
        "unless it makes room for a critical pod"
    )

    def heard(self, event: Event, /) -> None:
        """A signal is for a pod that somebody wants gone, that is not alive, or that has ended by itself."""
        self.hear_probe(event)
        self.hear_critical(event)
        if event.what is not What.SIGNALLED or event.uid in self.environment.read:
            return
        pod = self.pod(event.uid)
        if pod is None or self.ends_alone(event) or self.environment.overdue_s(event.uid) > 0:
            return
        if not self._goes_on(event) or self.makes_room(event):
            return
        why = "the agent has not read that" if event.uid in self.environment.deletions else "nobody wants"
        raise AssertionError(f"{event.uid}/{event.name} is asked to end, and {why} {pod.name} is to go")

    def _goes_on(self, event: Event) -> bool:
        """Whether a main container runs that is not about to be ended for good itself."""
        pod, containers = self.pod(event.uid), self.environment.containers
        runs = self.main_runs(event.uid)
        if pod is None or pod.restart_policy is not RestartPolicy.NEVER:
            return bool(runs)
        mains = [one.record for one in containers.running if one.record.id in runs]
        return not all(self.ends_alone(attrs.evolve(event, id=one.id, name=one.name)) for one in mains)


class OneDeadline(ProbesHeard):
    """Guarantees 7 and 10: sleep and a wall clock that is set lengthen nothing."""

    words = "a pod has one deadline; its grace never grows"

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self._first_s: dict[str, float] = {}
        self._grace_s: dict[str, float] = {}
        self._told_s: dict[str, tuple[float, float]] = {}
        self._asked: set[str] = set()
        self._until_s: dict[str, tuple[float, float]] = {}

    def heard(self, event: Event, /) -> None:
        """A signal leaves no more time than there was at the first one of the end, or at any other."""
        self.hear_probe(event)
        if event.what is What.DELETED and isinstance(event.value, float):
            # A shorter one counts when it was read, which may be after the signal.
            self._grace_s[event.uid] = max(event.value, self._grace_s.get(event.uid, event.value))
        if event.what is What.KILLED:
            # Its successor cannot know who had heard: where its own call fails, something is kept again.
            self._asked.clear()
        if event.what is What.POWER:
            self._first_s.clear()
            self._told_s.clear()
        if event.what is not What.SIGNALLED:
            return
        if event.uid in self.environment.read and not self.ends_alone(event):
            self._is_left(event)
        self._stands_alone(event)

    def _is_left(self, event: Event) -> None:
        pod = self.pod(event.uid)
        own_s = float(pod.termination_grace_period_seconds) if pod else 0.0
        asked_s = event.at_s if event.asked_s is None else event.asked_s
        first_s = self._first_s[event.uid] = min(self._first_s.get(event.uid, asked_s), asked_s)
        most_s = max(self._grace_s.get(event.uid, own_s), own_s)
        left_s = max(0.0, first_s + most_s - asked_s)
        given_s = float(event.value) if isinstance(event.value, float | int) else 0.0
        # Who could not be asked before has not heard of its end: something is kept for that.
        is_kept = event.id not in self._asked and given_s <= _KEPT_S
        self._stands(event, asked_s, given_s)
        assert is_kept or given_s <= left_s + _SLACK_S, (
            f"{event.uid}/{event.name} gets {given_s:g} s to end, and {left_s:.1f} s of the pod's are left"
        )

    def _stands_alone(self, event: Event) -> None:
        """Nor does that of one container, whatever it is asked to end for."""
        asked_s = event.at_s if event.asked_s is None else event.asked_s
        given_s = float(event.value) if isinstance(event.value, float | int) else 0.0
        until_s, since_s = self._until_s.setdefault(event.id, (asked_s + given_s, asked_s))
        # A call that hung may come after one that was made later: it says nothing.
        is_older = asked_s < since_s
        assert is_older or given_s <= _KEPT_S or asked_s + given_s <= until_s + _SLACK_S, (
            f"{event.uid}/{event.name}, {event.id}, gets {given_s:g} s to end; {until_s - asked_s:.1f} s are "
            "left of what it was told before"
        )

    def _stands(self, event: Event, asked_s: float, given_s: float) -> None:
        """A deadline that a container was told does not move later."""
        told_s, since_s = self._told_s.get(event.uid, (asked_s + given_s, asked_s))
        # Whose first call failed has not heard of its end yet: something is kept for that.
        is_first = event.id not in self._asked
        self._asked.add(event.id)
        if is_first and given_s <= _KEPT_S:
            return
        # Calls overtake each other: an older one that comes a moment later says nothing.
        is_later = asked_s - since_s > _SLACK_S and given_s > max(0.0, told_s - asked_s) + _EXACT_S
        assert not is_later, (
            f"{event.uid}/{event.name} gets {given_s:g} s to end, and {told_s - asked_s:.1f} s are left of "
            "what the pod's containers were told before"
        )
        if asked_s + given_s <= told_s:
            self._told_s[event.uid] = asked_s + given_s, asked_s


class DebuggedOnce(Guarantee):
    """Guarantee 3."""

    words = "a container that was added to a pod to look at it runs once, whatever becomes of it"

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self._started: set[tuple[str, str]] = set()

    def heard(self, event: Event, /) -> None:
        """It never started before."""
        pod = self.pod(event.uid) if event.what is What.STARTED else None
        if pod is not None and any(one.name == event.name for one in pod.ephemeral_containers):
            key = (event.uid, event.name)
            assert key not in self._started, f"{event.uid}/{event.name} is ephemeral and starts again"
            self._started.add(key)

    def settled(self) -> None:
        """By now it did, where its pod runs."""
        told = self.environment.told
        for uid, pod in self.environment.pods[API].items():
            if uid in told and told[uid].phase is PodPhase.RUNNING and self.main_runs(uid):
                for one in pod.ephemeral_containers:
                    assert (uid, one.name) in self._started, f"{uid} runs, and {one.name} never started in it"


class PortsOnce(Guarantee):
    """Ours: admission."""

    words = "a port of the node that one pod has is no other's"

    def heard(self, event: Event, /) -> None:
        """Nothing runs that has the ports of what starts."""
        pod = self.pod(event.uid) if event.what is What.STARTED else None
        mine = host_ports_of(pod) if pod is not None else frozenset[HostPort]()
        away = self.environment.containers.late | self.environment.containers.strange
        for one in self.environment.containers.running if mine else ():
            other = self.pod(one.record.pod.uid)
            if other is not None and other is not pod and one.record.id not in away:
                both = mine & host_ports_of(other)
                assert not both, (
                    f"{event.uid}/{event.name} starts with port {next(iter(both)).port} of the node, "
                    f"which is {other.uid}'s"
                )


class NothingAfterwards(Guarantee):
    """Guarantee 11."""

    words = "when a pod is told gone nothing of it runs, and nothing ever starts again"

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self._intruded_s: dict[str, float] = {}

    def heard(self, event: Event, /) -> None:
        """Nothing runs when it is told gone, nor starts afterwards."""
        if event.what is What.INTRUDED:
            self._intruded_s[event.id] = event.at_s
        if event.what is What.GONE:
            runs = [
                one.record.id
                for one in self.environment.containers.running
                if one.record.pod.uid == event.uid
                # What somebody else started in a pod that was over may not have been seen yet.
                and event.at_s - self._intruded_s.get(one.record.id, -_SEEN_S) >= _SEEN_S
            ]
            assert not runs, f"{event.uid} is told gone while {', '.join(runs)} runs"
        if event.what is What.STARTED:
            assert event.uid not in self.environment.gone, (
                f"{event.uid}/{event.name} starts after {event.uid} was gone"
            )


def _successes(event: Event) -> set[tuple[str | None, str]]:
    """Ids and names of containers that a status tells to have ended with 0."""
    if event.what is not What.TOLD or not isinstance(event.value, PodStatus):
        return set()
    return {
        (state.container_id, one.name)
        for one in event.value.all_containers
        for state in (one.state, one.last_state)
        if isinstance(state, ContainerTerminated) and state.exit == Exited(code=0)
    }
