"""Checkers of probes: as many answers in a row count as one says, and it is asked as often as it says."""

from __future__ import annotations

from nodealloc.podspec import Container, Probe
from nodealloc.testing.simulation.node._environment import Environment
from nodealloc.testing.simulation.node._events import Event, Ran, What
from nodealloc.testing.simulation.node._guarantee import Guarantee, ProbesHeard
from nodealloc.testing.simulation.node._pods import STARTED

__all__ = ["ProbesCount", "ProbesKeepPace"]

_TOLD_S = 4.0
"""So long after an answer that counts others may not have been told of it."""
_PERIODS = 10
"""Over so many periods it is seen how long one lasts."""
_LATE_S = 1.0
"""By so much one question may come later than another: each waits for a moment until it is asked."""


class ProbesCount(ProbesHeard):
    """Guarantee 10: thresholds, seen where nothing goes wrong but kills, after which counting begins anew."""

    words = (
        "a probe that failed, or did well, as often in a row as it says has counted before it is asked again"
    )

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self._in_a_row: dict[tuple[str, str], tuple[bool, int, float]] = {}
        self._ends: set[str] = set()

    def heard(self, event: Event, /) -> None:
        """Before the next question everybody knows what the answers so far came to."""
        if not self.environment.only_ends:
            return
        if event.what in {What.KILLED, What.POWER}:
            self._in_a_row.clear()
        elif event.what is What.SIGNALLED:
            self._ends.add(event.id)
        if not isinstance(event.value, Ran):
            return
        self.hear_probe(event)
        container = self.container(event)
        if container is None:
            return
        for probe in _probes(container):
            if probe.exec is not None and probe.exec.command[0] == event.value.command:
                self._is_asked(event, event.value, probe, container)

    def _is_asked(self, event: Event, ran: Ran, probe: Probe, container: Container) -> None:
        key = event.id, ran.command
        failed, count, at_s = self._in_a_row.get(key, (ran.failed, 0, event.at_s))
        if probe is container.readiness_probe:
            if event.at_s - at_s > _TOLD_S:
                self._is_told(event, probe, failed=failed, count=count)
        else:
            assert not failed or count < probe.failure_threshold, (
                f"{event.uid}/{event.name} is asked again ({ran.command}), "
                f"and has failed {count} times in a row"
            )
            assert failed or ran.command != STARTED or not count, (
                f"{event.uid}/{event.name} is asked again whether it has started, and has said so"
            )
        self._in_a_row[key] = (ran.failed, count + 1 if failed is ran.failed else 1, event.at_s)

    def _is_told(self, event: Event, probe: Probe, *, failed: bool, count: int) -> None:
        environment, uid = self.environment, event.uid
        ends = event.id in self._ends or uid in environment.deletions or environment.overdue_s(uid) > -_TOLD_S
        if ends or self.ends_alone(event) or uid not in environment.told:
            return
        told = next((one for one in environment.told[uid].containers if one.name == event.name), None)
        if told is None or not (told.container_id or "").endswith(f"//{event.id}"):
            return
        assert not (failed and count >= probe.failure_threshold and told.ready), (
            f"{uid}/{event.name} is told to be ready, and has failed {count} times in a row"
        )
        assert failed or count < probe.success_threshold or told.ready, (
            f"{uid}/{event.name} is told not to be ready, and has passed {count} times in a row"
        )


class ProbesKeepPace(Guarantee):
    """Guarantee 10: a period is one, whatever the answers take; seen where nothing goes wrong but kills."""

    words = "over ten periods a probe is asked ten times"

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self._since: dict[tuple[str, str, str], tuple[float, int]] = {}

    def heard(self, event: Event, /) -> None:
        """By the last of so many questions their periods are over, and not much more."""
        if not self.environment.only_ends:
            return
        if event.what in {What.KILLED, What.POWER}:
            self._since.clear()
        elif event.what is What.EDITED:
            self._since = {key: one for key, one in self._since.items() if key[0] != event.uid}
        container = self.container(event) if isinstance(event.value, Ran) else None
        for probe in () if container is None else _probes(container):
            if isinstance(event.value, Ran) and probe.exec and probe.exec.command[0] == event.value.command:
                self._is_asked(event, event.value.command, probe.period_seconds)

    def _is_asked(self, event: Event, command: str, period_s: int) -> None:
        key = event.uid, event.id, command
        since_s, count = self._since.get(key, (event.at_s, -1))
        self._since[key] = since_s, count + 1
        if count + 1 < _PERIODS:
            return
        self._since[key] = event.at_s, 0
        takes_s = (event.at_s - since_s) / _PERIODS
        assert abs(takes_s - period_s) <= _LATE_S / _PERIODS, (
            f"{event.uid}/{event.name} is asked ({command}) each {takes_s:.2f} s, "
            f"and {period_s} s are its period"
        )


def _probes(container: Container) -> list[Probe]:
    every = (container.startup_probe, container.liveness_probe, container.readiness_probe)
    return [one for one in every if one is not None]
