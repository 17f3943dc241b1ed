"""Bugs in how containers are ended, started again, and asked how they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import cast

import attrs

from nodealloc.dsw_asw import Cancel, Moment
from nodealloc.runtime import CommandResult
from nodealloc.testing.simulation._life import Life
from nodealloc.testing.simulation.node._planted_faults._runtimes import Runtime, with_runtime
from nodealloc.testing.simulation.node._planted_faults._values import PlantedFault
from nodealloc.testing.simulation.node._pods import LIVE, PRE_STOP, READY
from nodealloc.testing.simulation.node._ports import NodePorts

__all__ = ["PLANTED_FAULTS"]


class NoGrace(Runtime):
    def stop_container(self, container_id: str, grace_s: float, /) -> None:
        self.inner.stop_container(container_id, min(grace_s, 0.5))


class NoHooks(Runtime):
    """A hook is believed to have been run."""

    def run_command(
        self, container_id: str, command: Sequence[str], timeout_s: float, /, cancel: Cancel | None = None
    ) -> CommandResult:
        if command[0] == PRE_STOP:
            return CommandResult(code=0)
        return self.inner.run_command(container_id, command, timeout_s, cancel)


class HastyClock:
    """A clock that counts thirty seconds for each."""

    def __init__(self, ports: NodePorts) -> None:
        self.now = ports.now

    def monotonic_s(self) -> float:
        return self.moment().monotonic_s

    def moment(self) -> Moment:
        now = self.now()
        return attrs.evolve(now, monotonic_s=30.0 * now.monotonic_s)


class HastyLife:
    """The same life by that clock."""

    def __init__(self, ports: NodePorts) -> None:
        self.inner = ports.life
        self.clock = HastyClock(ports)

    def __getattr__(self, name: str) -> object:
        return getattr(self.inner, name)


def hurries(ports: NodePorts) -> NodePorts:
    life = HastyLife(ports)
    return attrs.evolve(ports, life=cast("Life", life), now=life.clock.moment)


class ImagesGo(Runtime):
    """With a container its image goes."""

    def remove_container(self, container_id: str, /) -> None:
        self.inner.remove_container(container_id)
        for one in self.inner.images():
            self.inner.remove_image(one.id)


class AlwaysWell(Runtime):
    """What a probe of readiness answers does not matter."""

    def run_command(
        self, container_id: str, command: Sequence[str], timeout_s: float, /, cancel: Cancel | None = None
    ) -> CommandResult:
        result = self.inner.run_command(container_id, command, timeout_s, cancel)
        return CommandResult(code=0) if command[0] == READY else result


class KillsTheWell(Runtime):
    """Of six answers three are taken for failures."""

    def __init__(self, ports: NodePorts) -> None:
        super().__init__(ports)
        self.asked: Counter[str] = Counter()

    def run_command(
        self, container_id: str, command: Sequence[str], timeout_s: float, /, cancel: Cancel | None = None
    ) -> CommandResult:
        result = self.inner.run_command(container_id, command, timeout_s, cancel)
        if command[0] == LIVE:
            self.asked[container_id] += 1
            if self.asked[container_id] % 6 in {3, 4, 5}:
                return CommandResult(code=1)
        return result


PLANTED_FAULTS: tuple[PlantedFault, ...] = (
    PlantedFault(
        name="no-grace", about="whoever is asked to end is killed at once", spoil=with_runtime(NoGrace)
    ),
    PlantedFault(name="no-hooks", about="hooks are skipped", spoil=with_runtime(NoHooks)),
    PlantedFault(
        name="hasty-clock",
        about="time flies: graces, back-offs and patience are a thirtieth of what they should be",
        spoil=lambda: hurries,
    ),
    PlantedFault(
        name="images-go",
        about="images are removed while containers run from them",
        spoil=with_runtime(ImagesGo),
    ),
    PlantedFault(
        name="always-well",
        about="a pod is told to be ready though its probe fails",
        spoil=with_runtime(AlwaysWell),
    ),
    PlantedFault(
        name="kills-the-well",
        about="a container is killed though its probe does not fail",
        spoil=with_runtime(KillsTheWell),
    ),
)
