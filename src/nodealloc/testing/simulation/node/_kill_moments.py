"""When it counts what an agent remembers: an end, a hook or a wait goes on."""

from __future__ import annotations

from nodealloc.podfacts import Exited
from nodealloc.podspec import RestartPolicy
from nodealloc.testing.simulation.node._deeds import Deed, Ran, What
from nodealloc.testing.simulation.node._outside import Outside
from nodealloc.testing.simulation.node._pods import POST_START, PRE_STOP

__all__ = ["KillMoments"]

_WAITS_S = 40.0
"""So long after its end a container may wait to be started again, for all that is looked at here."""
_STORED_S = 3.0
"""So long after a hook it counts whether that it was run is remembered."""

_BEGUN_S = 0.7
"""So long after a start it is remembered that its hook is to be run."""


class KillMoments:
    """Listens to what happens.

    Args:
        outside: What is true.
    """

    def __init__(self, outside: Outside) -> None:
        self._outside = outside
        self._ending: set[str] = set()
        self._until_s: dict[tuple[str, str], float] = {}
        self._hooked_s = 0.0
        self._hooks_s: dict[str, tuple[float, float]] = {}
        self._succeeded: set[str] = set()

    @property
    def is_now(self) -> bool:
        """Whether something is under way of which another life has to know."""
        now_s = self._outside.awake_s
        self._until_s = {key: until_s for key, until_s in self._until_s.items() if until_s > now_s}
        return bool(self._ending or self._until_s) or now_s < self._hooked_s

    @property
    def is_in_hook(self) -> bool:
        """Whether a hook after a start has run for a moment, and runs on; of each container once."""
        now_s = self._outside.awake_s
        found = [one for one, (from_s, until_s) in self._hooks_s.items() if from_s <= now_s < until_s]
        for one in found:
            self._hooks_s[one] = 0.0, 0.0
        return bool(found)

    @property
    def is_half_done(self) -> bool:
        """Whether a container has succeeded for good in a pod in which others run."""
        # Who asks what runs lets others end, which is heard here.
        return any(
            uid not in self._outside.deletions and self._outside.containers.running_of(uid)
            for uid in sorted(self._succeeded)
        )

    def heard(self, deed: Deed, /) -> None:
        """Something happened."""
        key = deed.uid, deed.name
        if deed.what is What.SIGNALLED or deed.value == Ran(PRE_STOP, "0"):
            self._ending.add(deed.id)
        elif deed.what in {What.ENDED, What.REMOVED}:
            self._ending.discard(deed.id)
            if deed.what is What.ENDED and deed.uid not in self._outside.deletions:
                self._until_s[key] = deed.at_s + _WAITS_S
                self._succeeded |= {deed.uid} if self._has_succeeded(deed) else set()
        elif deed.what is What.POWER:
            self._succeeded.clear()
        elif deed.what is What.STARTED:
            self._until_s.pop(key, None)
        elif isinstance(deed.value, Ran) and deed.value.command == POST_START:
            takes_s = self._outside.containers.takes_s(deed.id, POST_START)
            self._hooked_s = max(self._hooked_s, deed.at_s + takes_s + _STORED_S)
            self._hooks_s.setdefault(deed.id, (deed.at_s + _BEGUN_S, deed.at_s + takes_s))

    def _has_succeeded(self, deed: Deed) -> bool:
        pod = self._outside.known.get(deed.uid)
        if pod is None or pod.restart_policy is not RestartPolicy.ON_FAILURE:
            return False
        return deed.value == Exited(code=0) and any(one.name == deed.name for one in pod.containers)
