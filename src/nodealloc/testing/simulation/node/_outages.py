"""Spells in which the runtime of a simulated node is away, and what it has lost once it is back."""

from __future__ import annotations

import math
import random
from itertools import count

import attrs

from nodealloc.podfacts import Exited, ExitUnknown
from nodealloc.runtime import ContainerRecord, ContainerReport, Listing, PodListing, PodReport, RunState
from nodealloc.testing.simulation._chance import Chance
from nodealloc.testing.simulation._clock import SimulatedClock
from nodealloc.testing.simulation.node._containers import SimulatedContainers
from nodealloc.testing.simulation.node._events import Event, Events, What

__all__ = ["Outages"]

_LEAST_S, _MEAN_S, _MOST_S = 5.0, 30.0, 120.0
"""So long a runtime is away at least, on an average, and at most."""
_UNKNOWN_S = (5.0, 60.0)
"""So long it does not know how a container is; of some it never knows that again, until they have ended."""
_FOR_EVER = 0.3
_DOUBLED = 0.3


class Outages:
    """Says whether the runtime is away, and spoils what it has when it comes back.

    Faults, by name: `runtime goes away` (every call fails for a spell), `runtime refuses for a spell`
    (every call that changes something), and, once one that was away is back, for each
    container or sandbox: `container ends meanwhile` (with a status that is known or is not), `container is
    lost meanwhile` (it has ended, and its record is gone), `record is lost meanwhile` (of what had ended
    before), `sandbox ends meanwhile` (with all that ran in it), `state is unknown` (of a container that
    runs, for a while), `second sandbox is ready` (of one pod).

    Args:
        clock: The machine's.
        events: Is told what happens.
        containers: The runtime.

    Attributes:
        excused: Ids of containers of which the runtime did not know how they are, and of sandboxes that
            ended or were not alone: what is in them may be asked to end though its pod is well.
    """

    def __init__(self, clock: SimulatedClock, events: Events, containers: SimulatedContainers) -> None:
        self.excused: set[str] = set()
        self._clock, self._events, self._containers = clock, events, containers
        self._until_s = self._refuses_until_s = -math.inf
        self._comes_back = False
        self._unknown_until_s: dict[str, float] = {}
        self._numbers = count(1)

    def is_away(self, chance: Chance) -> bool:
        """Whether the runtime is away now; a spell may begin here, and what one has spoiled is seen here."""
        now_s = self._clock.awake_s
        if now_s < self._until_s:
            return True
        if self._comes_back:
            self._comes_back = False
            self._come_back(chance)
        if not chance.strikes("runtime goes away"):
            return False
        self._until_s = now_s + _spell_s(chance)
        self._comes_back = True
        self._events.happen(Event(what=What.AWAY, at_s=now_s, value=self._until_s - now_s))
        return True

    def refuses(self, chance: Chance) -> bool:
        """Whether it refuses all changes now, as one does whose disk is full; a spell may begin here."""
        now_s = self._clock.awake_s
        if now_s >= self._refuses_until_s and chance.strikes("runtime refuses for a spell"):
            self._refuses_until_s = now_s + _spell_s(chance)
        return now_s < self._refuses_until_s

    def is_excused(self, container_id: str) -> bool:
        """Whether a container may be asked to end since the runtime told something strange of it."""
        if not self.excused:
            return False
        return container_id in self.excused or self._containers.sandbox_of(container_id) in self.excused

    def failed(self, call: str, about: str) -> None:
        """A call about a container, a sandbox, a pod, or "" for the whole node has failed."""
        uid = self._containers.pod_of(about) or about
        self._events.happen(Event(what=What.FAILED, at_s=self._clock.awake_s, uid=uid, id=about, value=call))

    # What is told of containers whose state the runtime does not know.

    def listing(self) -> Listing:
        """See `Looks.listing`."""
        listing = self._containers.listing()
        if not self._are_unknown():
            return listing
        boxes = [one.record for one in self._containers.sandboxes]
        return Listing.of(boxes, [self._shown(one.record) for one in self._containers.reports])

    def inspect(self, uid: str, listed: PodListing | None) -> PodReport:
        """See `Looks.inspect`."""
        report = self._containers.inspect(uid, listed)
        if not self._are_unknown():
            return report
        shown = [attrs.evolve(one, record=self._shown(one.record)) for one in report.containers]
        return attrs.evolve(report, containers=tuple(shown))

    def _are_unknown(self) -> bool:
        """Whether there are any of which it does not know how they are."""
        if self._unknown_until_s:
            now_s = self._clock.awake_s
            self._unknown_until_s = {
                one: until_s for one, until_s in self._unknown_until_s.items() if until_s > now_s
            }
        return bool(self._unknown_until_s)

    def _shown(self, record: ContainerRecord) -> ContainerRecord:
        if record.id in self._unknown_until_s and record.state is RunState.RUNNING:
            return attrs.evolve(record, state=RunState.UNKNOWN)
        return record

    # What it has lost.

    def power_cut(self) -> None:
        """Nothing runs any more; records stay, and nobody knows how anything ended."""
        for one in self._containers.running:
            self._containers.end_by_itself(one.record.id, ExitUnknown())
        for box in self._containers.sandboxes:
            self._containers.unready(box.record.id)

    def double_some(self, rng: random.Random) -> None:
        """Of some pods that go on another sandbox is ready, so that this is found when all is quiet."""
        for box in [one for one in self._containers.sandboxes if one.record.is_ready]:
            if rng.random() < _DOUBLED:
                self._double(box.record.id)

    def restart(self) -> None:
        """It was restarted and lost every record of what does not run."""
        self._containers.catch_up()
        self._events.happen(Event(what=What.RESTARTED, at_s=self._clock.awake_s))
        for one in self._ended():
            self._containers.lose(one.record.id)

    def forget_newest(self) -> None:
        """The record of whatever ended last is gone."""
        if ended := self._ended():
            self._containers.lose(max(ended, key=lambda one: one.finished_unix_s or 0.0).record.id)

    def _ended(self) -> list[ContainerReport]:
        return [one for one in self._containers.reports if one.record.state is RunState.EXITED]

    def _come_back(self, chance: Chance) -> None:
        containers, strikes = self._containers, chance.strikes
        containers.catch_up()
        self._events.happen(Event(what=What.RESTARTED, at_s=self._clock.awake_s))
        for box in [one for one in containers.sandboxes if one.record.is_ready]:
            if strikes("sandbox ends meanwhile"):
                self._end_sandbox(box.record.id, chance)
        for one in containers.reports:
            self._spoil(one, chance)
        for box in [one for one in containers.sandboxes if one.record.is_ready]:
            if strikes("second sandbox is ready"):
                self._double(box.record.id)

    def _spoil(self, one: ContainerReport, chance: Chance) -> None:
        made, state = one.record.id, one.record.state
        if made in self._containers.strange:
            return
        if state is RunState.EXITED and chance.strikes("record is lost meanwhile"):
            self._containers.lose(made)
        elif state is not RunState.RUNNING:
            return
        elif chance.strikes("container ends meanwhile"):
            self._end(made, chance)
        elif chance.strikes("container is lost meanwhile"):
            self._containers.vanish(made)
        elif chance.strikes("state is unknown"):
            self.excused.add(made)
            spell_s = math.inf if chance.rng.random() < _FOR_EVER else chance.rng.uniform(*_UNKNOWN_S)
            self._unknown_until_s[made] = self._clock.awake_s + spell_s
            self._happen(What.UNSURE, made, one.record.name)

    def _end(self, container_id: str, chance: Chance) -> None:
        code = chance.rng.choice((0, 0, 1, None))
        self._containers.end_by_itself(container_id, ExitUnknown() if code is None else Exited(code=code))

    def _end_sandbox(self, sandbox_id: str, chance: Chance) -> None:
        """All that runs in it ends, each with a status of its own or as one that nobody knows."""
        self.excused.add(sandbox_id)
        for one in self._containers.running:
            if one.record.sandbox_id == sandbox_id:
                self._end(one.record.id, chance)
        self._containers.unready(sandbox_id)
        self._happen(What.SANDBOX_ENDED, sandbox_id)

    def _double(self, sandbox_id: str) -> None:
        boxes = self._containers.sandboxes
        box = next(one for one in boxes if one.record.id == sandbox_id)
        uid = box.record.pod.uid
        attempt = max(one.record.attempt for one in boxes if one.record.pod.uid == uid) + 1
        made = f"second-{next(self._numbers)}"
        created_unix_s = self._clock.unix_s
        record = attrs.evolve(box.record, id=made, attempt=attempt, created_unix_s=created_unix_s)
        self.excused |= {made, sandbox_id}
        self._containers.put(attrs.evolve(box, record=record))
        if sandbox_id in self._containers.boxes_with:
            self._containers.boxes_with[made] = self._containers.boxes_with[sandbox_id]
        self._happen(What.DOUBLED, made)

    def _happen(self, what: What, id_: str, name: str = "") -> None:
        uid = self._containers.pod_of(id_)
        self._events.happen(Event(what=what, at_s=self._clock.awake_s, uid=uid, name=name, id=id_))


def _spell_s(chance: Chance) -> float:
    """How long a spell lasts; most are short."""
    return min(_LEAST_S + chance.rng.expovariate(1.0) * (_MEAN_S - _LEAST_S), _MOST_S)
