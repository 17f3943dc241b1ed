"""Checkers of how containers are ended and started again: grace, hooks, back-off, images."""

from __future__ import annotations

import math
from collections import Counter

from nodealloc.podfacts import PodStatus
from nodealloc.runtime import RunState
from nodealloc.testing.simulation.node._environment import Environment
from nodealloc.testing.simulation.node._events import STOP, Event, Ran, What
from nodealloc.testing.simulation.node._guarantee import Guarantee, ProbesHeard, RoomHeard
from nodealloc.testing.simulation.node._pods import LIVE, POST_START, PRE_STOP, STARTED

__all__ = [
    "GraceIsGiven",
    "HooksFirst",
    "ImagesStay",
    "NewestStays",
    "RestartsWait",
    "SidecarsLast",
    "UnheardHaveTime",
    "UnwellGo",
]

_SLACK_S = 1.0
"""Seconds that a grace may be shorter than what is left: it is counted from when the agent read of it."""
_BACK_OFF_S = 10.0
"""After its first restart, which comes at once, a container waits so long, then twice that."""
_LONGEST_S = 300.0
_ANEW_S = 600.0
"""Who ended so long after its last start begins anew."""
_KEPT_S = 2.0
"""Of a grace so much at most is kept for a container whose turn did not come before."""


class GraceIsGiven(RoomHeard):
    """Guarantee 7."""

    words = "whoever is asked to end has the time that its pod was given"

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self._asked: set[str] = set()
        self._alone: set[str] = set()
        self._own_ends: dict[str, tuple[float, float]] = {}
        self._started_in_s: dict[str, float] = {}

    def heard(self, event: Event, /) -> None:
        """The first signal of a container leaves it what is left of its pod's grace."""
        self.hear_probe(event)
        self.hear_critical(event)
        if event.what is What.SANDBOX_MADE:
            self._own_ends.pop(event.uid, None)  # it goes on in this one
        if event.what is What.STARTED and event.asked_s is not None:
            self._started_in_s[event.id] = event.at_s - event.asked_s
        if isinstance(event.value, Ran) and event.value.command == PRE_STOP:
            # It began to end for a reason of its own, or of its pod's: that grace counts.
            self._asked |= {event.id} if event.uid not in self.environment.read else set()
        if event.what is not What.SIGNALLED or event.id in self._asked:
            return
        if self.ends_alone(event):
            self._has_its_own(event)
            return
        self._asked.add(event.id)
        deletion = self.environment.deletions.get(event.uid)
        if self.is_init(event) or not isinstance(event.value, float | int):
            return
        own = self._own_ends.get(event.uid)
        if own is None and event.uid not in self.environment.read and not self.main_runs(event.uid):
            # The pod comes to its end by itself: its time runs from here, for who is asked later.
            self._own_ends[event.uid] = event.at_s + event.value, self.environment.passed_s + event.value
        if deletion is None:
            return
        left_s = min(deletion.deadline_s - event.at_s, deletion.passed_deadline_s - self.environment.passed_s)
        if self.environment.overdue_s(event.uid) > 0 or self.makes_room(event):
            return
        # A pod may have come to its end by itself before the agent read of its deletion: what was
        # begun with the pod's own grace never gets more.
        pod = self.pod(event.uid)
        left_s = min(left_s, float(pod.termination_grace_period_seconds) if pod else left_s)
        if not self.main_runs(event.uid):
            # Its pod may have come to its end by itself while the call was under way that started this one.
            left_s -= self._started_in_s.get(event.id, 0.0)
        if own is not None:
            left_s = min(left_s, own[0] - event.at_s, own[1] - self.environment.passed_s)
        assert event.value >= left_s - _SLACK_S, (
            f"{event.uid}/{event.name} gets {event.value:g} s to end, and "
            f"{left_s:.1f} s of the pod's are left"
        )

    def _has_its_own(self, event: Event) -> None:
        """Who ends alone has its pod's grace, or what its probe gives: seen where it was just decided."""
        environment, pod, container = self.environment, self.pod(event.uid), self.container(event)
        is_one_life = environment.only_ends and not environment.reads.alive_since_s
        if event.id in self._alone or not is_one_life or pod is None or container is None:
            return
        self._alone.add(event.id)
        ends = (
            event.uid in environment.deletions
            or self.makes_room(event)
            or environment.overdue_s(event.uid) > -_SLACK_S
        )
        has_hook = container.lifecycle is not None and container.lifecycle.pre_stop is not None
        if ends or has_hook or not isinstance(event.value, float | int):
            return
        own_s = pod.termination_grace_period_seconds
        probes = (one.termination_grace_period_seconds for one in self.failed_probes(event))
        least_s = min((own_s if one is None else one for one in probes), default=own_s)
        least_s = min(own_s, least_s)
        assert event.value >= least_s - _SLACK_S, (
            f"{event.uid}/{event.name} gets {event.value:g} s to end, and {least_s} s are its own"
        )


class UnheardHaveTime(Guarantee):
    """Guarantee 7: its time may be over before the runtime does what it is asked."""

    words = "a container that the runtime failed to ask to end has a part of its grace once it is asked"

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self._unheard: set[str] = set()
        self._heard: set[str] = set()

    def heard(self, event: Event, /) -> None:
        """The first signal after calls that failed leaves it what is kept of a grace."""
        if event.what is What.KILLED:
            self._unheard.clear()  # the next life does not know of them
        elif event.what is What.FAILED and event.value == STOP and event.id not in self._heard:
            self._unheard.add(event.id)
        elif event.what is What.HUNG and event.value == STOP:
            self._heard.add(event.id)  # this call may reach it still, with what was left before
        elif event.what is What.SIGNALLED and event.id not in self._heard:
            self._heard.add(event.id)
            # What ends with its sandbox is asked for nothing.
            if event.id in self._unheard and event.asked_s is not None:
                self._has_time(event)

    def _has_time(self, event: Event) -> None:
        pod, container = self.pod(event.uid), self.container(event)
        is_strange = event.id in self.environment.containers.strange
        if pod is None or container is None or is_strange or not isinstance(event.value, float | int):
            return
        probes = (container.liveness_probe, container.startup_probe)
        graces_s = [pod.termination_grace_period_seconds, pod.deletion_grace_period_seconds]
        graces_s += [one.termination_grace_period_seconds for one in probes if one is not None]
        least_s = min(one for one in graces_s if one is not None)
        assert event.value >= min(_KEPT_S, least_s / 2), (
            f"{event.uid}/{event.name} gets {event.value:g} s to end, of {least_s} s, and calls that asked "
            "it before failed"
        )


class HooksFirst(Guarantee):
    """Guarantee 7."""

    words = "a container's hook is run before it is asked to end"

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self._ran: set[str] = set()

    def heard(self, event: Event, /) -> None:
        """Whoever has a hook, and time for it, has had it run."""
        container = self.container(event)
        hook = container.lifecycle.pre_stop if container is not None and container.lifecycle else None
        if hook is None or hook.exec is None:
            return
        if isinstance(event.value, Ran) and event.value.command == hook.exec.command[0]:
            self._ran.add(event.id)
        if event.what is What.SIGNALLED and isinstance(event.value, float | int) and event.value > _KEPT_S:
            assert event.id in self._ran, f"{event.uid}/{event.name} is asked to end before its hook was run"


class SidecarsLast(ProbesHeard):
    """Guarantee 7, and the order of a pod's end."""

    words = "a sidecar is asked to end after the containers that it is there for"

    def heard(self, event: Event, /) -> None:
        """Nothing runs that it serves, or their time is over."""
        self.hear_probe(event)
        pod = self.pod(event.uid) if event.what is What.SIGNALLED else None
        if pod is None or event.uid not in self.environment.read or not isinstance(event.value, float | int):
            return
        names = [one.name for one in pod.init_containers if one.restartable]
        if event.name not in names or event.value <= _KEPT_S or self.ends_alone(event):
            return
        behind = {*names[names.index(event.name) + 1 :], *(one.name for one in pod.containers)}
        runs = sorted(
            one.record.name
            for one in self.environment.containers.running
            if one.record.pod.uid == event.uid and one.record.name in behind
        )
        assert not runs, f"sidecar {event.uid}/{event.name} is asked to end while {', '.join(runs)} runs"


class UnwellGo(RoomHeard):
    """Ours: what a liveness probe is for."""

    words = "a container whose liveness or startup probe fails is ended, with the grace that the probe gives"

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self._up: set[str] = set()
        self._hook_failed: set[str] = set()

    def heard(self, event: Event, /) -> None:
        """Whoever is ended for its probe alone has the probe's own grace."""
        self.hear_probe(event)
        if isinstance(event.value, Ran):
            if event.value == Ran(STARTED, "0"):
                self._up.add(event.id)
            elif event.value.command == POST_START and event.value.came_of_it != "0":
                self._hook_failed.add(event.id)
        self.hear_critical(event)
        if event.what is not What.SIGNALLED or event.uid in self.environment.deletions:
            return
        if event.id in self._hook_failed:
            return  # that ends it as well, with its pod's grace
        if self.environment.overdue_s(event.uid) > 0 or self.makes_room(event):
            return
        failed = [one.termination_grace_period_seconds for one in self.failed_probes(event)]
        graces_s = [grace_s for grace_s in failed if grace_s is not None]
        if len(graces_s) < max(1, len(failed)) or self.is_outdated(event):
            return
        if not isinstance(event.value, float | int):
            return
        assert event.value <= max(graces_s), (
            f"{event.uid}/{event.name} is unwell and gets {event.value} s to end; "
            f"its probe gives {graces_s} s"
        )

    def settled(self) -> None:
        """By now it was ended."""
        for one in self.environment.containers.running:
            uid, name = one.record.pod.uid, one.record.name
            fails = self.environment.containers.unwell.get(one.record.id, set())
            pod = self.pod(uid)
            for each in pod.all_containers if pod is not None and fails else ():
                if each.name == name:
                    assert LIVE not in fails or not each.liveness_probe, (
                        f"{uid}/{name} runs, and its liveness probe fails"
                    )
                    assert STARTED not in fails or not each.startup_probe or one.record.id in self._up, (
                        f"{uid}/{name} runs, and its startup probe fails"
                    )


class RestartsWait(Guarantee):
    """Ours: the back-off of restarts."""

    words = "a container that ends again soon after its restart waits, each time twice as long"

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self._starts: Counter[tuple[str, str, str]] = Counter()
        self._before_s: dict[tuple[str, str, str], float] = {}
        self._ended_s: dict[tuple[str, str, str], float] = {}

    def heard(self, event: Event, /) -> None:
        """The third start in a sandbox comes ten seconds after the end before it, each further one later."""
        # What is to run from another image is another container, which has not ended yet.
        key = (event.uid, event.name, self.environment.containers.image_of(event.id))
        now_s = self.environment.passed_s
        if event.what in {What.SANDBOX_MADE, What.POWER, What.FORGOT}:
            for one in [one for one in self._starts if event.uid in {"", one[0]}]:
                del self._starts[one]
        if event.what is What.ENDED:
            self._ended_s[key] = now_s
        if event.what is What.STARTED:
            ended_s = self._ended_s.pop(key, None)
            before_s = self._before_s.get(key, math.inf)
            # A start counts from when it was decided, which was after the end before it.
            if ended_s is not None and ended_s - before_s >= _ANEW_S:
                self._starts[key] = 0
            if self._starts[key] >= 2 and ended_s is not None:
                waits_s = min(_BACK_OFF_S * 2.0 ** (self._starts[key] - 2), _LONGEST_S)
                has_waited = now_s - ended_s >= waits_s - _SLACK_S
                # An end counts from when it is seen, which may be as late as this start.
                assert has_waited or now_s - before_s >= _ANEW_S, (
                    f"{event.uid}/{event.name} starts {now_s - ended_s:.1f} s after it ended again, "
                    f"and not {waits_s:g} s"
                )
                self._starts[key] *= has_waited
            self._starts[key] += 1
            self._before_s[key] = now_s if ended_s is None else ended_s


class ImagesStay(Guarantee):
    """Guarantee 14."""

    words = "an image that a container runs from is not removed"

    def heard(self, event: Event, /) -> None:
        """Nothing runs from what is removed."""
        if event.what is What.IMAGE_REMOVED:
            for one in self.environment.containers.reports:
                runs = one.record.state is not RunState.EXITED
                assert not runs or event.id not in {one.record.image, one.record.image_id}, (
                    f"{event.id} is removed, and {one.record.pod.uid}/{one.record.name} runs from it"
                )


class NewestStays(Guarantee):
    """Guarantee 9: what people read of a container that ended stays until there is a newer end."""

    words = "the newest record of a container that ended stays while its pod goes on"

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self._newest: dict[tuple[str, str], str] = {}
        self._over: set[str] = set()

    def heard(self, event: Event, /) -> None:
        """What is removed has a successor that ended, or its pod is over."""
        if event.what is What.ENDED:
            self._newest[event.uid, event.name] = event.id
        if event.what is What.TOLD and isinstance(event.value, PodStatus) and event.value.is_terminal:
            self._over.add(event.uid)
        if (
            event.what is What.REMOVED
            and event.uid not in self.environment.deletions
            and event.uid not in self._over
        ):
            is_newest = self._newest.get((event.uid, event.name)) == event.id
            assert not is_newest, (
                f"the newest record of {event.uid}/{event.name} is removed, and its pod goes on"
            )
