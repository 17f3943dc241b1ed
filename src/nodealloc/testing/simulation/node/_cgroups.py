"""The cgroup tree of a simulated node: who stands where, whoever wrote it, and calls on it that fail."""

from __future__ import annotations

import errno
import math

from nodealloc.cgroups import (
    CgroupBusyError,
    CgroupName,
    CgroupStats,
    LimitRefusedError,
    Limits,
    TreeDriver,
    pod_uid,
)
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
        return life.port(FaultyCgroups(life, self))

    def power_cut(self) -> None:
        """The machine boots: nothing of pods is there."""
        self.tree: dict[CgroupName, Limits] = {CgroupName(): Limits(), _OTHERS: Limits()}

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


class FaultyCgroups:
    """The same tree by the calls of one life, which fail once or for a while.

    Faults, by name: `cgroup cannot be made`, `cgroup write fails` (what was written before it stays),
    `cgroup cannot be removed`, and of those above pods, which fail for a while whenever they do: `class
    cgroup cannot be made`, `class cgroup write fails`.

    Args:
        life: Whose.
        tree: What is there.
    """

    def __init__(self, life: Life, tree: SimulatedCgroups) -> None:
        self._life, self._tree = life, tree
        self._until_s: dict[tuple[CgroupName, str], float] = {}

    def apply(self, name: CgroupName, limits: Limits, /) -> None:
        """See `CgroupDriver.apply`."""
        which = "cgroup" if pod_uid(PODS, name) is not None else "class cgroup"
        if name not in self._tree.tree and self._fails(name, f"{which} cannot be made"):
            raise _refused(name, "", "a directory", self._life.chance.rng.choice(_NOT_MADE))
        if not self._fails(name, f"{which} write fails"):
            self._tree.apply(name, limits)
            return
        rng = self._life.chance.rng
        asked = list(limits.asked)
        written = asked[: rng.randrange(len(asked))] if asked else []
        self._tree.apply(name, limits.only(written))
        raise _refused(name, f"/{asked[len(written)] if asked else 'cpu.weight'}", "1", rng.choice(_REFUSED))

    def remove(self, name: CgroupName, /) -> None:
        """See `CgroupDriver.remove`."""
        if name in self._tree.tree and self._fails(name, "cgroup cannot be removed"):
            if self._life.chance.rng.random() < _BUSY:
                raise CgroupBusyError(name, ())
            raise _refused(name, "", "a directory", errno.ENODEV)
        self._tree.remove(name)

    def read(self, name: CgroupName, /) -> Limits | None:
        """See `CgroupDriver.read`."""
        return self._tree.read(name)

    def attach(self, name: CgroupName, pid: int, /) -> None:
        """See `ProcessDriver.attach`."""
        self._tree.attach(name, pid)

    def pids(self, name: CgroupName, /) -> frozenset[int]:
        """See `ProcessDriver.pids`."""
        return self._tree.pids(name)

    def kill(self, name: CgroupName, /) -> tuple[Process, ...]:
        """See `ProcessDriver.kill`."""
        return self._tree.kill(name)

    def children(self, name: CgroupName, /) -> tuple[CgroupName, ...]:
        """See `TreeReader.children`."""
        return self._tree.children(name)

    def stats(self, name: CgroupName, /) -> CgroupStats:
        """See `TreeReader.stats`."""
        return self._tree.stats(name)

    def _fails(self, name: CgroupName, fault: str) -> bool:
        now_s, rng = self._life.clock.awake_s, self._life.chance.rng
        if now_s < self._until_s.get((name, fault), -math.inf):
            return True
        if not self._life.chance.strikes(fault):
            return False
        if fault.startswith("class") or rng.random() < _FOR_A_WHILE:
            self._until_s[name, fault] = now_s + rng.uniform(*_SPELL_S)
        return True


_REFUSED = (errno.EBUSY, errno.ENOSPC, errno.EINVAL, errno.ENODEV)
"""What a kernel answers to a write that it does not take."""
_NOT_MADE = (errno.ENOSPC, errno.EBUSY, errno.ENOMEM)
"""The same where a directory cannot be made."""
_BUSY = 0.7
"""Of cgroups that cannot be removed so many are in use by what nobody sees."""
_FOR_A_WHILE, _SPELL_S = 0.4, (2.0, 60.0)
"""Of calls that fail so many fail for a while, of one cgroup, and for so long."""


def _refused(name: CgroupName, file: str, text: str, number: int) -> LimitRefusedError:
    return LimitRefusedError(name, f"{name.path()}{file}", text, number)
