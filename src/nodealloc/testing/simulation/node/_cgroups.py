"""The cgroup tree of a simulated node: who stands where, whoever wrote it."""

from __future__ import annotations

from nodealloc.cgroups import CgroupName, Limits, TreeDriver, pod_uid
from nodealloc.cgroups._errors import Process
from nodealloc.testing.cgroups import FakeCgroups
from nodealloc.testing.simulation._clock import SimulatedClock
from nodealloc.testing.simulation._life import Life
from nodealloc.testing.simulation.node._containers import SimulatedContainers
from nodealloc.testing.simulation.node._events import Event, Events, What

__all__ = ["PODS", "SimulatedCgroups"]

PODS = CgroupName.of("kubepods")
"""Of all pods."""
_OTHERS = CgroupName.of("system.slice")
"""Somebody else's."""


class SimulatedCgroups(FakeCgroups):
    """A tree over all lives of an agent. Whatever runs in a sandbox is in the cgroup that this was made with.

    Args:
        clock: The machine's.
        events: Is told of limits and of cgroups that were removed.
        containers: Who is in there.

    Attributes:
        is_used: Whether the agent makes cgroups at all.
    """

    def __init__(self, clock: SimulatedClock, events: Events, containers: SimulatedContainers) -> None:
        super().__init__()
        self.is_used: bool = False
        self._clock = clock
        self._events = events
        self._containers = containers
        self._numbers: dict[str, int] = {}
        self.power_cut()

    def serve(self, life: Life) -> TreeDriver:
        """What this life calls."""
        self.calls.clear()
        return life.port(self)

    def power_cut(self) -> None:
        """The machine boots: nothing of pods is there."""
        self.tree = {CgroupName(): Limits(), _OTHERS: Limits()}

    def leave(self, parent: str) -> None:
        """Somebody else made a pod's cgroup before, and those above it."""
        name = CgroupName.parse(parent)
        for depth in range(len(name.parts)):
            self.tree.setdefault(CgroupName(name.parts[: depth + 1]), Limits())

    def apply(self, name: CgroupName, limits: Limits, /) -> None:
        """See `CgroupDriver.apply`."""
        super().apply(name, limits)
        self.is_used = True
        self._happen(What.LIMITED, name)

    def remove(self, name: CgroupName, /) -> None:
        """See `CgroupDriver.remove`."""
        was_there = name in self.tree
        super().remove(name)
        if was_there:
            self._happen(What.UNLIMITED, name)

    def pids(self, name: CgroupName, /) -> frozenset[int]:
        """See `ProcessDriver.pids`: a process for each container that runs."""
        return frozenset(self._numbers.setdefault(one, len(self._numbers) + 2) for one in self._inside(name))

    def kill(self, name: CgroupName, /) -> tuple[Process, ...]:
        """See `ProcessDriver.kill`."""
        for one in self._inside(name):
            self._containers.stop_container(one, 0.0)
        return ()

    def parent_of(self, sandbox_id: str) -> str:
        """The cgroup that a sandbox was made in; "" for none."""
        made = self._containers.boxes_with.get(sandbox_id)
        return "" if made is None else made.cgroup_parent

    def of_pods(self) -> dict[CgroupName, str]:
        """The cgroups of pods that are there, each with the pod's uid."""
        return {name: uid for name in self.tree if (uid := pod_uid(PODS, name)) is not None}

    def _inside(self, name: CgroupName) -> list[str]:
        path = name.path()
        return [
            one.record.id
            for one in self._containers.running
            if f"{self.parent_of(one.record.sandbox_id)}/".startswith(f"{path}/")
        ]

    def _happen(self, what: What, name: CgroupName) -> None:
        uid = pod_uid(PODS, name) or ""
        self._events.happen(Event(what=what, at_s=self._clock.awake_s, uid=uid, id=name.path()))
