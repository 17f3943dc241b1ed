"""Checkers of what is tried again: each hears every event of the node, and remembers what it needs."""

from __future__ import annotations

from collections.abc import Collection

from nodealloc.testing.simulation.node._environment import Environment
from nodealloc.testing.simulation.node._events import PULL, Event, What
from nodealloc.testing.simulation.node._guarantee import Guarantee

__all__ = ["FailedCallsWait", "FailedFetchesWait"]

_READ_S = 60.0
"""So long after an edit an agent may read it, and try what is wanted now as something that never failed."""
_SLACK_S = 0.05
_WAIT = frozenset({"run_sandbox", "start_container"})
"""Calls that one step of a pod makes, and no other: whoever makes one again tries the same step again."""
_ANEW = frozenset({What.DOUBLED, What.SANDBOX_MADE, What.SANDBOX_ENDED, What.SANDBOX_STOPPED})
"""After these something else is to be done for a pod, which waits for nothing that failed before."""


class _Failures:
    """What failed how often in a row: the wait before the next try doubles each time.

    Args:
        first_s: After the first failure.
        longest_s: However often it has failed.
        forgotten_s: So long after a failure the next one is a first one again.
    """

    def __init__(self, first_s: float, longest_s: float, forgotten_s: float) -> None:
        self._first_s, self._longest_s, self._forgotten_s = first_s, longest_s, forgotten_s
        self.of: dict[str, tuple[int, float]] = {}
        self.edited_s: dict[str, float] = {}

    def check(self, key: str, at_s: float, uids: Collection[str], said: str, *, is_excused: bool) -> None:
        """It has failed once more, for these pods; `said` begins what is said where it was too soon."""
        times, before_s = self.of.get(key, (0, 0.0))
        is_edited = any(at_s - self.edited_s.get(uid, -_READ_S) < _READ_S for uid in uids)
        if is_edited or at_s - before_s > self._forgotten_s:
            times = 0
        self.of[key] = times + 1, at_s
        least_s = min(self._first_s * 2.0 ** (times - 1), self._longest_s) if times else 0.0
        assert not times or is_excused or at_s - before_s >= least_s - _SLACK_S, (
            f"{said} {times} times in a row, and is tried again {at_s - before_s:.2f} s later; "
            f"{least_s:g} s are its wait"
        )


class FailedCallsWait(Guarantee):
    """Guarantee 6: who tries again at once, and for ever, keeps the runtime from all others.

    Source: ours; a kubelet (``pod_workers.go``) tries a pod again each 10 to 15 s.
    """

    words = "what failed is tried again after a wait, which doubles with each further failure, up to 15 s"

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self._calls = {name: _Failures(first_s=0.5, longest_s=15.0, forgotten_s=30.0) for name in _WAIT}

    def heard(self, event: Event, /) -> None:
        """A call that fails once more has had its wait."""
        for failures in self._calls.values():
            if event.what is What.KILLED:
                failures.of.clear()
            elif event.what is What.EDITED:
                failures.edited_s[event.uid] = event.at_s
            elif event.what in _ANEW:
                for id_ in [one for one in failures.of if event.uid in (one, self._pod_of(one))]:
                    del failures.of[id_]
        if event.what is What.FAILED and event.value in _WAIT:
            said = f"{event.uid}: {event.value} of {event.id} failed"
            # What an executor begins by itself, it begins without a wait.
            self._calls[str(event.value)].check(
                event.id, event.at_s, [event.uid], said, is_excused=bool(self.environment.strays())
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
        self._images = _Failures(first_s=10.0, longest_s=300.0, forgotten_s=600.0)

    def heard(self, event: Event, /) -> None:
        """One pod alone wants it, whose waits are known; whoever is wanted again asks anew."""
        failed = self._images.of
        if event.what is What.KILLED:
            failed.clear()
        elif event.what is What.EDITED:
            self._images.edited_s[event.uid] = event.at_s
        elif event.what in {What.WANTED, What.GONE}:
            for image in [one for one in failed if event.uid in self._wanted_by(one)]:
                del failed[image]
        elif event.what is What.PULLED:
            failed.pop(event.id, None)
        elif event.what is What.FAILED and event.value == PULL:
            wanted_by = self._wanted_by(event.id)
            is_excused = len(wanted_by) > 1 or bool(self.environment.strays())
            said = f"{event.id} could not be fetched"
            self._images.check(event.id, event.at_s, wanted_by, said, is_excused=is_excused)

    def _wanted_by(self, image: str) -> set[str]:
        return {uid for uid, _ in self.wanted_from(image)}
