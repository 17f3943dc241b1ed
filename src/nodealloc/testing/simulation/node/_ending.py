"""Checkers of how containers are ended and started again: grace, hooks, back-off, images."""

from __future__ import annotations

from collections import defaultdict, deque

from nodealloc.runtime import RunState
from nodealloc.testing.simulation.node._deeds import Deed, Ran, What
from nodealloc.testing.simulation.node._guarantee import Guarantee
from nodealloc.testing.simulation.node._outside import Outside

__all__ = ["GraceIsGiven", "HooksFirst", "ImagesStay", "RestartsWait"]

_SLACK_S = 1.0
"""Seconds that a grace may be shorter than what is left: it is counted from when the agent read of it."""
_WINDOW_S = 60.0
_STARTS = 4
"""At once, after 10 s and after 20 s more: the fifth start would wait 40 s."""


class GraceIsGiven(Guarantee):
    """Guarantee 7."""

    words = "whoever is asked to end has the time that its pod was given"

    def __init__(self, outside: Outside) -> None:
        super().__init__(outside)
        self._asked: set[str] = set()

    def heard(self, deed: Deed, /) -> None:
        """The first signal of a container leaves it what is left of its pod's grace."""
        if deed.what is not What.SIGNALLED or deed.id in self._asked:
            return
        self._asked.add(deed.id)
        deletion = self.outside.deletions.get(deed.uid)
        if deletion is None or self.is_init(deed) or not isinstance(deed.value, float | int):
            return
        left_s = min(deletion.deadline_s - deed.at_s, deletion.passed_deadline_s - self.outside.passed_s)
        # A pod may have come to its end by itself before the agent read of its deletion: what was
        # begun with the pod's own grace never gets more.
        pod = self.pod(deed.uid)
        left_s = min(left_s, float(pod.termination_grace_period_seconds) if pod else left_s)
        assert deed.value >= left_s - _SLACK_S, (
            f"{deed.uid}/{deed.name} gets {deed.value:g} s to end, and {left_s:.1f} s of the pod's are left"
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
        if deed.what is What.SIGNALLED and isinstance(deed.value, float | int) and deed.value > _SLACK_S:
            assert deed.id in self._ran, f"{deed.uid}/{deed.name} is asked to end before its hook was run"


class RestartsWait(Guarantee):
    """Ours: the back-off of restarts."""

    words = "a container that ends again and again is not started again at once"

    def __init__(self, outside: Outside) -> None:
        super().__init__(outside)
        self._starts_s: dict[tuple[str, str], deque[float]] = defaultdict(lambda: deque(maxlen=_STARTS))

    def heard(self, deed: Deed, /) -> None:
        """In a minute it starts four times at most, in each of its sandboxes."""
        if deed.what in {What.SANDBOX_MADE, What.POWER}:
            for key in [key for key in self._starts_s if deed.uid in {"", key[0]}]:
                del self._starts_s[key]
        if deed.what is What.STARTED:
            starts_s = self._starts_s[deed.uid, deed.name]
            assert len(starts_s) < _STARTS or deed.at_s - starts_s[0] > _WINDOW_S, (
                f"{deed.uid}/{deed.name} starts {_STARTS + 1} times in {deed.at_s - starts_s[0]:.0f} s"
            )
            starts_s.append(deed.at_s)


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
