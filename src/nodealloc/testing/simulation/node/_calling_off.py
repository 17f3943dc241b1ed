"""Checkers of what is called off: as a pod ends nothing more of it is begun."""

from __future__ import annotations

from nodealloc.testing.simulation.node._events import Event, What
from nodealloc.testing.simulation.node._guarantee import Guarantee

__all__ = ["EndsCallOff"]

_DECIDED_S = 3.0
"""So long after it was read that a pod is to go what was decided before may still begin."""
_BACK_S = 15.0
"""So long after its start an agent may not know yet what an earlier one had read."""


class EndsCallOff(Guarantee):
    """Guarantee 3: no late act, however long the call before it took."""

    words = "once it was read that a pod is to go, no call begins that makes or starts something of it"

    def heard(self, event: Event, /) -> None:
        """The call began before that, or a moment later."""
        environment = self.environment
        if event.asked_s is None or environment.strays():
            return
        if not (environment.only_ends or (environment.reads_once and environment.is_steady)):
            return
        if event.what in _BEGINS:
            late_s = self._late_s(event.uid, event.asked_s)
            assert late_s <= _DECIDED_S, (
                f"{event.uid}/{event.name}: {event.what.value}, and {late_s:.0f} s before that was asked for "
                "it was read that the pod is to go"
            )
        elif event.what is What.PULLED:
            wanted_by = {uid for uid, _ in self.wanted_from(event.id)}
            late_s = min((self._late_s(uid, event.asked_s) for uid in wanted_by), default=0.0)
            assert late_s <= _DECIDED_S, (
                f"{event.id} is fetched, and {late_s:.0f} s before that was asked for it was read that "
                f"{', '.join(sorted(wanted_by))} is to go"
            )

    def _late_s(self, uid: str, asked_s: float) -> float:
        """Since when the agent had read by then that it is to go, in seconds; 0 where it need not know."""
        reads = self.environment.reads
        read_s = reads.ends_s.get(uid, asked_s)
        # What was read just before a kill was forgotten with it.
        return asked_s - max(read_s, reads.alive_since_s + _BACK_S)


_BEGINS = frozenset({What.MADE, What.STARTED})
