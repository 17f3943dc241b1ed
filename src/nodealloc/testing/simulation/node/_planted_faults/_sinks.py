"""Bugs in what an agent tells."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import attrs

from nodealloc.podfacts import (
    ConditionStatus,
    ContainerTerminated,
    PodPhase,
    PodStatus,
)
from nodealloc.testing.simulation.node._planted_faults._values import PlantedFault
from nodealloc.testing.simulation.node._ports import NodePorts
from nodealloc.testing.simulation.node._sources import SimulatedSink

__all__ = ["PLANTED_FAULTS"]


class Sink:
    """A sink that a bug changes."""

    def __init__(self, ports: NodePorts) -> None:
        self.inner = ports.sink
        self.life = ports.life

    def told(self, uid: str, status: PodStatus, /) -> None:
        self.inner.told(uid, status)

    def gone(self, uid: str, /) -> None:
        self.inner.gone(uid)


def with_sink(kind: Callable[[NodePorts], Sink]) -> Callable[[], Callable[[NodePorts], NodePorts]]:
    return lambda: lambda ports: attrs.evolve(ports, sink=cast("SimulatedSink", kind(ports)))


class Swallows(Sink):
    """What a sink did not take counts as told."""

    def told(self, uid: str, status: PodStatus, /) -> None:
        try:
            self.inner.told(uid, status)
        except OSError:
            return


class AlwaysReady(Sink):
    def told(self, uid: str, status: PodStatus, /) -> None:
        conditions = tuple(
            attrs.evolve(one, status=ConditionStatus.TRUE) if one.type == "Ready" else one
            for one in status.conditions
        )
        self.inner.told(uid, attrs.evolve(status, conditions=conditions))


class ReadinessReset(Sink):
    """Each life tells of each pod first that it is not ready."""

    def __init__(self, ports: NodePorts) -> None:
        super().__init__(ports)
        self.seen: set[str] = set()

    def told(self, uid: str, status: PodStatus, /) -> None:
        if uid not in self.seen and self.life.number > 1:
            self.seen.add(uid)
            conditions = tuple(
                attrs.evolve(one, status=ConditionStatus.FALSE) if one.type == "Ready" else one
                for one in status.conditions
            )
            self.inner.told(uid, attrs.evolve(status, conditions=conditions))
        self.inner.told(uid, status)


class CountsPerLife(Sink):
    """Restarts are counted from the start of the agent."""

    def told(self, uid: str, status: PodStatus, /) -> None:
        if self.life.number % 2 == 0:
            fewer = tuple(
                attrs.evolve(one, restart_count=max(0, one.restart_count - 1)) for one in status.containers
            )
            status = attrs.evolve(status, containers=fewer)
        self.inner.told(uid, status)


class ComesBack(Sink):
    """An ended pod is told to run for a moment, when a late observation arrives."""

    def told(self, uid: str, status: PodStatus, /) -> None:
        self.inner.told(uid, status)
        if status.is_terminal:
            self.inner.told(uid, attrs.evolve(status, phase=PodPhase.RUNNING))
            self.inner.told(uid, status)


class GoneTooEarly(Sink):
    """A pod is told gone with the first status of its end."""

    def told(self, uid: str, status: PodStatus, /) -> None:
        self.inner.told(uid, status)
        ready = status.condition("Ready")
        if status.containers and ready is not None and ready.status is ConditionStatus.FALSE:
            self.inner.gone(uid)


class EndsTooEarly(Sink):
    """A pod that is being ended is told to have ended."""

    def told(self, uid: str, status: PodStatus, /) -> None:
        states = [one.state for one in status.containers]
        if any(isinstance(one, ContainerTerminated) for one in states):
            status = attrs.evolve(status, phase=PodPhase.FAILED)
        self.inner.told(uid, status)


class ToldAfterwards(Sink):
    """A status that waited for its turn is told after its pod was told gone."""

    def __init__(self, ports: NodePorts) -> None:
        super().__init__(ports)
        self.last: dict[str, PodStatus] = {}

    def told(self, uid: str, status: PodStatus, /) -> None:
        self.inner.told(uid, status)
        self.last[uid] = status

    def gone(self, uid: str, /) -> None:
        self.inner.gone(uid)
        if uid in self.last:
            self.inner.told(uid, self.last.pop(uid))


class WaitsAgain(Sink):
    """Each life tells of each pod first that it waits."""

    def __init__(self, ports: NodePorts) -> None:
        super().__init__(ports)
        self.seen: set[str] = set()

    def told(self, uid: str, status: PodStatus, /) -> None:
        if uid not in self.seen and self.life.number > 1 and status.phase is PodPhase.RUNNING:
            self.inner.told(uid, attrs.evolve(status, phase=PodPhase.PENDING))
        self.seen.add(uid)
        self.inner.told(uid, status)


class CountsTwice(Sink):
    """A restart is counted when it is decided, and when it is done."""

    def told(self, uid: str, status: PodStatus, /) -> None:
        more = tuple(attrs.evolve(one, restart_count=2 * one.restart_count) for one in status.containers)
        self.inner.told(uid, attrs.evolve(status, containers=more))


class NoReasons(Sink):
    def told(self, uid: str, status: PodStatus, /) -> None:
        self.inner.told(uid, attrs.evolve(status, reason="", message=""))


PLANTED_FAULTS: tuple[PlantedFault, ...] = (
    PlantedFault(
        name="swallows-failed-telling",
        about="what a sink did not take counts as told",
        spoil=with_sink(Swallows),
    ),
    PlantedFault(
        name="always-ready",
        about="a pod is told to be ready while it ends",
        spoil=with_sink(AlwaysReady),
    ),
    PlantedFault(
        name="readiness-reset",
        about="a restarted agent tells of each pod first that it is not ready",
        spoil=with_sink(ReadinessReset),
    ),
    PlantedFault(
        name="counts-begin-anew",
        about="restart counts fall with a restart of the agent",
        spoil=with_sink(CountsPerLife),
    ),
    PlantedFault(name="counts-twice", about="a restart is counted twice", spoil=with_sink(CountsTwice)),
    PlantedFault(
        name="told-after-gone",
        about="a pod is told of after it was told gone",
        spoil=with_sink(ToldAfterwards),
    ),
    PlantedFault(
        name="waits-again",
        about="a restarted agent tells of each pod first that it waits",
        spoil=with_sink(WaitsAgain),
    ),
    PlantedFault(name="comes-back", about="an ended pod is told to run again", spoil=with_sink(ComesBack)),
    PlantedFault(
        name="gone-too-early",
        about="a pod is told gone while it ends",
        spoil=with_sink(GoneTooEarly),
    ),
    PlantedFault(
        name="ends-too-early",
        about="a pod is told to have ended when its first container has",
        spoil=with_sink(EndsTooEarly),
    ),
    PlantedFault(
        name="no-reasons",
        about="refused pods are told to have failed, and not why",
        spoil=with_sink(NoReasons),
    ),
)
