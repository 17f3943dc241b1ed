"""Checkers of what is tried again: each hears every deed of the node, and remembers what it needs."""

from __future__ import annotations

from nodealloc.testing.simulation.node._deeds import Deed, What
from nodealloc.testing.simulation.node._guarantee import Guarantee
from nodealloc.testing.simulation.node._outside import Outside

__all__ = ["FailedCallsWait"]

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


class FailedCallsWait(Guarantee):
    """Guarantee 6: who tries again at once, and for ever, keeps the runtime from all others.

    Source: kubelet ``goroutinemap/exponentialbackoff``.
    """

    words = "what failed is tried again after a wait, which doubles with each further failure"

    def __init__(self, outside: Outside) -> None:
        super().__init__(outside)
        self._failed: dict[tuple[str, str], tuple[int, float]] = {}
        self._edited_s: dict[str, float] = {}

    def heard(self, deed: Deed, /) -> None:
        """A call that fails once more has had its wait."""
        if deed.what is What.KILLED:
            self._failed.clear()
        elif deed.what is What.EDITED:
            self._edited_s[deed.uid] = deed.at_s
        elif deed.what in _ANEW:
            for key in [key for key in self._failed if deed.uid in (key[1], self._pod_of(key[1]))]:
                del self._failed[key]
        elif deed.what is What.FAILED and deed.value in _WAIT:
            key = str(deed.value), deed.id
            times, at_s = self._failed.get(key, (0, 0.0))
            if deed.at_s - self._edited_s.get(deed.uid, -_READ_S) < _READ_S:
                times = 0
            self._failed[key] = times + 1, deed.at_s
            least_s = min(_FIRST_S * 2.0 ** (times - 1), _LONGEST_S) if times else 0.0
            # What an executor begins by itself, it begins without a wait.
            assert deed.at_s - at_s >= least_s - _SLACK_S or self.outside.strays() or not times, (
                f"{deed.uid}: {deed.value} of {deed.id} failed {times} times in a row, and is tried again "
                f"{deed.at_s - at_s:.2f} s later; {least_s:g} s are its wait"
            )

    def _pod_of(self, id_: str) -> str:
        return self.outside.containers.pod_of(id_)
