"""Checkers of what is tried again: each hears every event of the node, and remembers what it needs."""

from __future__ import annotations

from nodealloc.testing.simulation.node._environment import Environment
from nodealloc.testing.simulation.node._events import PULL, Event, What
from nodealloc.testing.simulation.node._guarantee import Guarantee

__all__ = ["FailedCallsWait", "FailedFetchesWait"]

_FIRST_S = 0.5
"""A kubelet waits so long after a call's first failure, and twice that after each further one."""
_LONGEST_S = 100.0
"""It waits two minutes at most; what failed so often may be forgotten by then."""
_READ_S = 60.0
"""So long after an edit an agent may read it, and try what is wanted now as something that never failed."""
_SLACK_S = 0.05
_WAIT = frozenset({"run_sandbox", "start_container"})
"""Calls that one step of a pod makes, and no other: whoever makes one again tries the same step again."""
_ANEW = frozenset({What.DOUBLED, What.SANDBOX_MADE, What.SANDBOX_ENDED, What.SANDBOX_STOPPED})
"""After these something else is to be done for a pod, which waits for nothing that failed before."""

_FETCHED_AGAIN_S, _FETCHED_AT_LAST_S = 10.0, 300.0
"""A kubelet waits so long after an image could not be fetched, twice that after each further time, and so
long at most."""
_FORGOTTEN_S = 600.0
"""So long after a failure the next one is a first one again."""


class FailedCallsWait(Guarantee):
    """Guarantee 6: who tries again at once, and for ever, keeps the runtime from all others.

    Source: kubelet ``goroutinemap/exponentialbackoff``.
    """

    words = "what failed is tried again after a wait, which doubles with each further failure"

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self._failed: dict[tuple[str, str], tuple[int, float]] = {}
        self._edited_s: dict[str, float] = {}

    def heard(self, event: Event, /) -> None:
        """A call that fails once more has had its wait."""
        if event.what is What.KILLED:
            self._failed.clear()
        elif event.what is What.EDITED:
            self._edited_s[event.uid] = event.at_s
        elif event.what in _ANEW:
            for key in [key for key in self._failed if event.uid in (key[1], self._pod_of(key[1]))]:
                del self._failed[key]
        elif event.what is What.FAILED and event.value in _WAIT:
            key = str(event.value), event.id
            times, at_s = self._failed.get(key, (0, 0.0))
            if event.at_s - self._edited_s.get(event.uid, -_READ_S) < _READ_S:
                times = 0
            self._failed[key] = times + 1, event.at_s
            least_s = min(_FIRST_S * 2.0 ** (times - 1), _LONGEST_S) if times else 0.0
            # What an executor begins by itself, it begins without a wait.
            assert event.at_s - at_s >= least_s - _SLACK_S or self.environment.strays() or not times, (
                f"{event.uid}: {event.value} of {event.id} failed {times} times in a row, and is tried again "
                f"{event.at_s - at_s:.2f} s later; {least_s:g} s are its wait"
            )

    def _pod_of(self, id_: str) -> str:
        return self.environment.containers.pod_of(id_)


class FailedFetchesWait(Guarantee):
    """Guarantee 6, of images: a registry that says no is not asked by each node in each second.

    Source: kubelet ``images/image_manager.go``.
    """

    words = "an image that could not be fetched is asked for again after a wait, which doubles each time"

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self._failed: dict[str, tuple[int, float]] = {}
        self._edited_s: dict[str, float] = {}

    def heard(self, event: Event, /) -> None:
        """One pod alone wants it, whose waits are known; whoever is wanted again asks anew."""
        if event.what is What.KILLED:
            self._failed.clear()
        elif event.what is What.EDITED:
            self._edited_s[event.uid] = event.at_s
        elif event.what in {What.WANTED, What.GONE}:
            for image in [one for one in self._failed if event.uid in self._wanted_by(one)]:
                del self._failed[image]
        elif event.what is What.PULLED:
            self._failed.pop(event.id, None)
        elif event.what is What.FAILED and event.value == PULL:
            times, at_s = self._failed.get(event.id, (0, 0.0))
            wanted_by = self._wanted_by(event.id)
            if any(event.at_s - self._edited_s.get(uid, -_READ_S) < _READ_S for uid in wanted_by):
                times = 0
            least_s = min(_FETCHED_AGAIN_S * 2.0 ** (times - 1), _FETCHED_AT_LAST_S) if times else 0.0
            waited_s = event.at_s - at_s
            self._failed[event.id] = (1 if waited_s > _FORGOTTEN_S else times + 1), event.at_s
            # What an executor begins by itself, it begins without a wait.
            is_excused = len(wanted_by) > 1 or self.environment.strays()
            assert waited_s >= least_s - _SLACK_S or is_excused, (
                f"{event.id} could not be fetched {times} times in a row, and is asked for again "
                f"{waited_s:.2f} s later; {least_s:g} s are its wait"
            )

    def _wanted_by(self, image: str) -> set[str]:
        """Uids of pods that were ever to run from it."""
        environment = self.environment
        return {
            uid
            for uid in environment.known
            for form in environment.forms.of(uid)
            if any(one.image == image for one in form.all_containers)
        }
