"""Checkers of what those are owed whom a call that hangs does not concern: hooks, mounts, and an end."""

from __future__ import annotations

from collections import Counter

from nodealloc.testing.simulation.node._environment import Environment
from nodealloc.testing.simulation.node._events import STOP, Event, Ran, What
from nodealloc.testing.simulation.node._guarantee import Guarantee
from nodealloc.testing.simulation.node._in_time import Owed
from nodealloc.testing.simulation.node._pods import OWN, POST_START, PRE_STOP, SHARED

__all__ = ["EndedHooksAreLeft", "Hangs", "HooksHaveTime", "KilledInTime", "MountsInTime"]

_FELT_S = 200.0
"""A call about the whole node that hangs is felt for so many seconds at most."""
_GRACE_S = 5.0
"""A grace from which on there is time for a hook, and for a container to hear of its end."""
_HEARS_S = 0.5
"""So much of such a grace is left at least when a container hears of its end."""
_LATE_S = 10.0
"""So long after its deadline a container is killed that did not heed a first call, or did not hear of it."""
_LEFT_S = 6.0
"""So long after an end somebody may still wait for a hook: a listing and a plan."""
_MOUNTS_S = 60.0
"""So long after one of a pod's volumes is mounted the other one may take."""
_SOURCE, _VOLUME, _HOOK = None, "mount", "run_command"
"""What a call that hangs is about, as events have it."""
_NOT_ENDS = (_SOURCE, _VOLUME, _HOOK)
"""What puts off no end that was read."""


class Hangs(Guarantee):
    """One that knows for whom calls hang, and when the last one hung that was about the whole node."""

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self._hung: Counter[tuple[str, object]] = Counter()
        self._node_s: dict[object, float] = {}

    def hear_hung(self, event: Event) -> None:
        """Count it."""
        if event.what is What.HUNG and event.uid:
            self._hung[event.uid, event.value] += 1
        elif event.what is What.HUNG:
            self._node_s[event.value] = event.at_s

    def is_felt(self, uid: str, now_s: float, *harmless: object) -> bool:
        """Whether a call hangs, or did a while ago, on which this pod waits; some of those do not matter."""
        own = any(whose == uid and call not in harmless for whose, call in self._hung)
        calls = [at_s for call, at_s in self._node_s.items() if call not in harmless]
        return own or any(now_s - at_s < _FELT_S for at_s in calls)


class HooksHaveTime(Hangs):
    """Guarantees 6 and 7."""

    words = "whose pod has time to end has its hook run, and hears of its end before it is killed"

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self._ran: set[str] = set()
        self._asked: set[str] = set()
        self._reads: Counter[str] = Counter()
        self._started_s: dict[str, float] = {}

    def heard(self, event: Event, /) -> None:
        """The first signal of a container leaves it some time, and comes after its hook."""
        if not self.environment.only_hangs:
            return
        self.hear_hung(event)
        if event.what is What.STARTED:
            self._started_s[event.id] = event.at_s
        elif event.what is What.READ:
            self._reads[event.uid] += 1
        elif isinstance(event.value, Ran) and event.value.command == PRE_STOP:
            self._ran.add(event.id)
        elif event.what is What.SIGNALLED and event.id not in self._asked:
            self._asked.add(event.id)
            self._has_had_time(event)

    def _has_had_time(self, event: Event) -> None:
        environment, pod, container = self.environment, self.pod(event.uid), self.container(event)
        # Whose time is made shorter meanwhile may have none left.
        if pod is None or container not in pod.containers or self._reads[event.uid] != 1:
            return
        read_s = environment.reads.ends_s[event.uid]
        least_s = min(environment.reads.ends_by_s[event.uid] - read_s, pod.termination_grace_period_seconds)
        has_time = least_s >= _GRACE_S and self._started_s.get(event.id, read_s) <= read_s
        if (
            not has_time
            or environment.overdue_s(event.uid) > 0
            or self.is_felt(event.uid, event.at_s, *_NOT_ENDS)
        ):
            return
        given_s = float(event.value) if isinstance(event.value, float | int) else 0.0
        assert given_s >= _HEARS_S, (
            f"{event.uid}/{event.name} is killed, and had not been asked to end in the {least_s:g} s "
            "that it had"
        )
        has_hook = container.lifecycle is not None and container.lifecycle.pre_stop is not None
        assert not has_hook or event.id in self._ran, (
            f"{event.uid}/{event.name} is asked to end, and its hook was not run in the {least_s:g} s "
            "that it had"
        )


class EndedHooksAreLeft(Guarantee):
    """Ours: what is done after an end waits for no hook."""

    words = (
        "where nothing goes wrong but kills, nobody waits for a hook whose container has ended, "
        "nor for what is done after a start once the agent has read that its pod is to go"
    )

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self._ended_s: dict[str, float] = {}

    def heard(self, event: Event, /) -> None:
        """By the time that a hook is over, neither had happened long ago."""
        if event.what is What.ENDED:
            self._ended_s[event.id] = event.at_s
        if event.what is not What.AWAITED or not self.environment.only_ends:
            return
        since_s = self._ended_s.get(event.id, event.at_s)
        if event.value == POST_START:
            since_s = min(since_s, self.environment.read.get(event.uid, event.at_s))
        waits_s = event.at_s - max(since_s, self.environment.reads.alive_since_s)
        assert waits_s < _LEFT_S, (
            f"{event.uid}/{event.name} is over, or its pod is to go, and for {waits_s:.0f} s its hook "
            f"{event.value} was waited for"
        )


class KilledInTime(Hangs):
    """Guarantee 7: who asks in vain asks again."""

    words = "a container that a call to end it did not reach is killed when its pod's time is over"

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self._owed = Owed(environment)
        self._calls: Counter[str] = Counter()

    def heard(self, event: Event, /) -> None:
        """Soon after its deadline it does not run any more."""
        if not self.environment.only_hangs:
            return
        self.hear_hung(event)
        if event.what is What.HUNG and event.value == STOP:
            self._calls[event.id] += 1
            ends_s = self.environment.reads.ends_by_s.get(event.uid)
            if ends_s is not None:
                self._owed.owe(max(event.at_s, ends_s) + _LATE_S, event.id)
        for (one,) in self._owed.overdue(event.at_s):
            self._is_gone(one, event.at_s)

    def _is_gone(self, container_id: str, now_s: float) -> None:
        uid = self.environment.containers.pod_of(container_id)
        if self._calls[container_id] > 1 or self.is_felt(uid, now_s, *_NOT_ENDS, STOP):
            return
        runs = container_id in self.environment.containers.running_of(uid)
        assert not runs, (
            f"{container_id} of {uid} runs long after its deadline: one call to end it hangs, "
            "and there was no other"
        )


class MountsInTime(Hangs):
    """Guarantee 6."""

    words = "a volume is mounted for a pod while a call hangs that mounts it for another pod"

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self._owed = Owed(environment)
        self._mounted: set[tuple[str, str]] = set()

    def heard(self, event: Event, /) -> None:
        """Who has one of its volumes soon has the other."""
        if not self.environment.only_hangs:
            return
        self.hear_hung(event)
        if event.what is What.MOUNTED:
            self._mounted.add((event.uid, event.id.rpartition("/")[2]))
            self._owed.owe(event.at_s + _MOUNTS_S, event.uid)
        for (uid,) in self._owed.overdue(event.at_s):
            is_over = uid in self.environment.deletions or self.environment.overdue_s(uid) > -_MOUNTS_S
            if is_over or self.environment.is_over(uid) or self.is_felt(uid, event.at_s, _SOURCE):
                continue
            # What an edit put in may have been read a moment ago; what it took out nobody mounts.
            forms = [
                {use.name for one in form.all_containers for use in one.volumes}
                for form in self.environment.forms.of(uid)
            ]
            names = set[str].intersection(*forms) if forms else set[str]()
            missing = [one for one in (OWN, SHARED) if one in names and (uid, one) not in self._mounted]
            assert not missing, f"{uid} waits for {missing[0]}, and no call of its own hangs"
