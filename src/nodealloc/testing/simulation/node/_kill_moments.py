"""When it counts what an agent remembers: an end, a hook or a wait goes on."""

from __future__ import annotations

from nodealloc.podfacts import Exited
from nodealloc.podspec import RestartPolicy
from nodealloc.testing.simulation.node._environment import Environment
from nodealloc.testing.simulation.node._events import Event, Ran, What
from nodealloc.testing.simulation.node._pods import POST_START, PRE_STOP

__all__ = ["KillMoments"]

_WAITS_S = 40.0
"""So long after its end a container may wait to be started again, for all that is looked at here."""
_STORED_S = 3.0
"""So long after a hook it counts whether that it was run is remembered."""

_BEGUN_S = 0.7
"""So long after a start it is remembered that its hook is to be run."""

_LASTS_S = 8.0
"""What a hook still takes that lasts."""


class KillMoments:
    """Listens to what happens.

    Args:
        environment: What is true.
    """

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._ending: set[str] = set()
        self._until_s: dict[tuple[str, str], float] = {}
        self._hooked_s = 0.0
        self._hooks_s: dict[str, tuple[float, float]] = {}
        self._long_s: dict[str, tuple[float, float]] = {}
        self._succeeded: set[str] = set()

    @property
    def is_now(self) -> bool:
        """Whether something is under way of which another life has to know."""
        now_s = self._environment.awake_s
        self._until_s = {key: until_s for key, until_s in self._until_s.items() if until_s > now_s}
        return bool(self._ending or self._until_s) or now_s < self._hooked_s

    @property
    def is_in_hook(self) -> bool:
        """Whether a hook after a start has run for a moment, and runs on; of each container once."""
        now_s = self._environment.awake_s
        found = [one for one, (from_s, until_s) in self._hooks_s.items() if from_s <= now_s < until_s]
        for one in found:
            self._hooks_s[one] = 0.0, 0.0
        return bool(found)

    def in_long_hook(self) -> str:
        """A container whose hook has run for a moment, and lasts; of each once, "" for none."""
        now_s = self._environment.awake_s
        for one, (from_s, until_s) in tuple(self._long_s.items()):
            if now_s >= from_s:
                del self._long_s[one]
                if now_s < until_s:
                    return one
        return ""

    @property
    def is_half_done(self) -> bool:
        """Whether a container has succeeded for good in a pod in which others run."""
        # Who asks what runs lets others end, which is heard here.
        return any(
            uid not in self._environment.deletions and self._environment.containers.running_of(uid)
            for uid in sorted(self._succeeded)
        )

    def heard(self, event: Event, /) -> None:
        """Something happened."""
        key = event.uid, event.name
        if isinstance(event.value, Ran) and event.value.command in {POST_START, PRE_STOP}:
            until_s = event.at_s + self._environment.containers.takes_s(event.id, event.value.command)
            self._long_s[event.id] = event.at_s + _BEGUN_S, until_s - _LASTS_S
        if event.what is What.SIGNALLED or event.value == Ran(PRE_STOP, "0"):
            self._ending.add(event.id)
        elif event.what in {What.ENDED, What.REMOVED}:
            self._ending.discard(event.id)
            if event.what is What.ENDED and event.uid not in self._environment.deletions:
                self._until_s[key] = event.at_s + _WAITS_S
                self._succeeded |= {event.uid} if self._has_succeeded(event) else set()
        elif event.what is What.POWER:
            self._succeeded.clear()
        elif event.what is What.STARTED:
            self._until_s.pop(key, None)
        elif isinstance(event.value, Ran) and event.value.command == POST_START:
            takes_s = self._environment.containers.takes_s(event.id, POST_START)
            self._hooked_s = max(self._hooked_s, event.at_s + takes_s + _STORED_S)
            self._hooks_s.setdefault(event.id, (event.at_s + _BEGUN_S, event.at_s + takes_s))

    def _has_succeeded(self, event: Event) -> bool:
        pod = self._environment.known.get(event.uid)
        if pod is None or pod.restart_policy is not RestartPolicy.ON_FAILURE:
            return False
        return event.value == Exited(code=0) and any(one.name == event.name for one in pod.containers)
