"""Checkers of how containers are ended and started again: grace, hooks, back-off, images."""

from __future__ import annotations

import math
from collections import Counter

from nodealloc.podfacts import PodStatus
from nodealloc.runtime import RunState
from nodealloc.testing.simulation.node._deeds import Deed, Ran, What
from nodealloc.testing.simulation.node._guarantee import Guarantee, ProbesHeard, RoomHeard
from nodealloc.testing.simulation.node._outside import Outside
from nodealloc.testing.simulation.node._pods import LIVE, POST_START, PRE_STOP, STARTED

__all__ = [
    "GraceIsGiven",
    "HooksFirst",
    "ImagesStay",
    "NewestStays",
    "RestartsWait",
    "SidecarsLast",
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

    def __init__(self, outside: Outside) -> None:
        super().__init__(outside)
        self._asked: set[str] = set()
        self._alone: set[str] = set()
        self._own_ends: dict[str, tuple[float, float]] = {}

    def heard(self, deed: Deed, /) -> None:
        """The first signal of a container leaves it what is left of its pod's grace."""
        self.hear_probe(deed)
        self.hear_critical(deed)
        if deed.what is What.SANDBOX_MADE:
            self._own_ends.pop(deed.uid, None)  # it goes on in this one
        if isinstance(deed.value, Ran) and deed.value.command == PRE_STOP:
            # It began to end for a reason of its own, or of its pod's: that grace counts.
            self._asked |= {deed.id} if deed.uid not in self.outside.read else set()
        if deed.what is not What.SIGNALLED or deed.id in self._asked:
            return
        if self.ends_alone(deed):
            self._has_its_own(deed)
            return
        self._asked.add(deed.id)
        deletion = self.outside.deletions.get(deed.uid)
        if self.is_init(deed) or not isinstance(deed.value, float | int):
            return
        own = self._own_ends.get(deed.uid)
        if own is None and deed.uid not in self.outside.read and not self.main_runs(deed.uid):
            # The pod comes to its end by itself: its time runs from here, for who is asked later.
            self._own_ends[deed.uid] = deed.at_s + deed.value, self.outside.passed_s + deed.value
        if deletion is None:
            return
        left_s = min(deletion.deadline_s - deed.at_s, deletion.passed_deadline_s - self.outside.passed_s)
        if self.outside.overdue_s(deed.uid) > 0 or self.makes_room(deed):
            return
        # A pod may have come to its end by itself before the agent read of its deletion: what was
        # begun with the pod's own grace never gets more.
        pod = self.pod(deed.uid)
        left_s = min(left_s, float(pod.termination_grace_period_seconds) if pod else left_s)
        if own is not None:
            left_s = min(left_s, own[0] - deed.at_s, own[1] - self.outside.passed_s)
        assert deed.value >= left_s - _SLACK_S, (
            f"{deed.uid}/{deed.name} gets {deed.value:g} s to end, and {left_s:.1f} s of the pod's are left"
        )

    def _has_its_own(self, deed: Deed) -> None:
        """Who ends alone has its pod's grace, or what its probe gives: seen where it was just decided."""
        outside, pod, container = self.outside, self.pod(deed.uid), self.container(deed)
        is_one_life = outside.only_ends and not outside.reads.alive_since_s
        if deed.id in self._alone or not is_one_life or pod is None or container is None:
            return
        self._alone.add(deed.id)
        ends = (
            deed.uid in outside.deletions or self.makes_room(deed) or outside.overdue_s(deed.uid) > -_SLACK_S
        )
        has_hook = container.lifecycle is not None and container.lifecycle.pre_stop is not None
        if ends or has_hook or not isinstance(deed.value, float | int):
            return
        own_s = pod.termination_grace_period_seconds
        probes = (one.termination_grace_period_seconds for one in self.failed_probes(deed))
        least_s = min((own_s if one is None else one for one in probes), default=own_s)
        least_s = min(own_s, least_s)
        assert deed.value >= least_s - _SLACK_S, (
            f"{deed.uid}/{deed.name} gets {deed.value:g} s to end, and {least_s} s are its own"
        )


class HooksFirst(Guarantee):
    """Guarantee 7."""

    words = "a container's hook is run before it is asked to end"

    def __init__(self, outside: Outside) -> None:
        super().__init__(outside)
        self._ran: set[str] = set()

    def heard(self, deed: Deed, /) -> None:
        """Whoever has a hook, and time for it, has had it run."""
        container = self.container(deed)
        hook = container.lifecycle.pre_stop if container is not None and container.lifecycle else None
        if hook is None or hook.exec is None:
            return
        if isinstance(deed.value, Ran) and deed.value.command == hook.exec.command[0]:
            self._ran.add(deed.id)
        if deed.what is What.SIGNALLED and isinstance(deed.value, float | int) and deed.value > _KEPT_S:
            assert deed.id in self._ran, f"{deed.uid}/{deed.name} is asked to end before its hook was run"


class SidecarsLast(ProbesHeard):
    """Guarantee 7, and the order of a pod's end."""

    words = "a sidecar is asked to end after the containers that it is there for"

    def heard(self, deed: Deed, /) -> None:
        """Nothing runs that it serves, or their time is over."""
        self.hear_probe(deed)
        pod = self.pod(deed.uid) if deed.what is What.SIGNALLED else None
        if pod is None or deed.uid not in self.outside.read or not isinstance(deed.value, float | int):
            return
        names = [one.name for one in pod.init_containers if one.restartable]
        if deed.name not in names or deed.value <= _KEPT_S or self.ends_alone(deed):
            return
        behind = {*names[names.index(deed.name) + 1 :], *(one.name for one in pod.containers)}
        runs = sorted(
            one.record.name
            for one in self.outside.containers.running
            if one.record.pod.uid == deed.uid and one.record.name in behind
        )
        assert not runs, f"sidecar {deed.uid}/{deed.name} is asked to end while {', '.join(runs)} runs"


class UnwellGo(RoomHeard):
    """Ours: what a liveness probe is for."""

    words = "a container whose liveness or startup probe fails is ended, with the grace that the probe gives"

    def __init__(self, outside: Outside) -> None:
        super().__init__(outside)
        self._up: set[str] = set()
        self._hook_failed: set[str] = set()

    def heard(self, deed: Deed, /) -> None:
        """Whoever is ended for its probe alone has the probe's own grace."""
        self.hear_probe(deed)
        if isinstance(deed.value, Ran):
            if deed.value == Ran(STARTED, "0"):
                self._up.add(deed.id)
            elif deed.value.command == POST_START and deed.value.came_of_it != "0":
                self._hook_failed.add(deed.id)
        self.hear_critical(deed)
        if deed.what is not What.SIGNALLED or deed.uid in self.outside.deletions:
            return
        if deed.id in self._hook_failed:
            return  # that ends it as well, with its pod's grace
        if self.outside.overdue_s(deed.uid) > 0 or self.makes_room(deed):
            return
        failed = [one.termination_grace_period_seconds for one in self.failed_probes(deed)]
        graces_s = [grace_s for grace_s in failed if grace_s is not None]
        if len(graces_s) < max(1, len(failed)) or self.is_outdated(deed):
            return
        if not isinstance(deed.value, float | int):
            return
        assert deed.value <= max(graces_s), (
            f"{deed.uid}/{deed.name} is unwell and gets {deed.value} s to end; its probe gives {graces_s} s"
        )

    def settled(self) -> None:
        """By now it was ended."""
        for one in self.outside.containers.running:
            uid, name = one.record.pod.uid, one.record.name
            fails = self.outside.containers.unwell.get(one.record.id, set())
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

    def __init__(self, outside: Outside) -> None:
        super().__init__(outside)
        self._starts: Counter[tuple[str, str, str]] = Counter()
        self._before_s: dict[tuple[str, str, str], float] = {}
        self._ended_s: dict[tuple[str, str, str], float] = {}

    def heard(self, deed: Deed, /) -> None:
        """The third start in a sandbox comes ten seconds after the end before it, each further one later."""
        # What is to run from another image is another container, which has not ended yet.
        key = (deed.uid, deed.name, self.outside.containers.image_of(deed.id))
        now_s = self.outside.passed_s
        if deed.what in {What.SANDBOX_MADE, What.POWER, What.FORGOT}:
            for one in [one for one in self._starts if deed.uid in {"", one[0]}]:
                del self._starts[one]
        if deed.what is What.ENDED:
            self._ended_s[key] = now_s
        if deed.what is What.STARTED:
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
                    f"{deed.uid}/{deed.name} starts {now_s - ended_s:.1f} s after it ended again, "
                    f"and not {waits_s:g} s"
                )
                self._starts[key] *= has_waited
            self._starts[key] += 1
            self._before_s[key] = now_s if ended_s is None else ended_s


class ImagesStay(Guarantee):
    """Guarantee 14."""

    words = "an image that a container runs from is not removed"

    def heard(self, deed: Deed, /) -> None:
        """Nothing runs from what is removed."""
        if deed.what is What.IMAGE_REMOVED:
            for one in self.outside.containers.reports:
                runs = one.record.state is not RunState.EXITED
                assert not runs or deed.id not in {one.record.image, one.record.image_id}, (
                    f"{deed.id} is removed, and {one.record.pod.uid}/{one.record.name} runs from it"
                )


class NewestStays(Guarantee):
    """Guarantee 9: what people read of a container that ended stays until there is a newer end."""

    words = "the newest record of a container that ended stays while its pod goes on"

    def __init__(self, outside: Outside) -> None:
        super().__init__(outside)
        self._newest: dict[tuple[str, str], str] = {}
        self._over: set[str] = set()

    def heard(self, deed: Deed, /) -> None:
        """What is removed has a successor that ended, or its pod is over."""
        if deed.what is What.ENDED:
            self._newest[deed.uid, deed.name] = deed.id
        if deed.what is What.TOLD and isinstance(deed.value, PodStatus) and deed.value.phase is not None:
            self._over |= {deed.uid} if deed.value.phase.is_terminal else set()
        if (
            deed.what is What.REMOVED
            and deed.uid not in self.outside.deletions
            and deed.uid not in self._over
        ):
            is_newest = self._newest.get((deed.uid, deed.name)) == deed.id
            assert not is_newest, (
                f"the newest record of {deed.uid}/{deed.name} is removed, and its pod goes on"
            )
