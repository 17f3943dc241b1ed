"""Bugs in how containers are ended, started again, and asked how they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import attrs

from nodealloc.runtime import CommandResult, PodReport
from nodealloc.testing.simulation.node._plants._runtimes import Runtime, with_runtime
from nodealloc.testing.simulation.node._plants._values import Plant
from nodealloc.testing.simulation.node._pods import LIVE, PRE_STOP, READY
from nodealloc.testing.simulation.node._ports import NodePorts

__all__ = ["PLANTS"]


class NoGrace(Runtime):
    def stop_container(self, container_id: str, grace_s: float, /) -> None:
        self.inner.stop_container(container_id, min(grace_s, 0.5))


class NoHooks(Runtime):
    """A hook is believed to have been run."""

    def run_command(self, container_id: str, command: Sequence[str], timeout_s: float, /) -> CommandResult:
        if command[0] == PRE_STOP:
            return CommandResult(code=0)
        return self.inner.run_command(container_id, command, timeout_s)


class EndedLongAgo(Runtime):
    """Ends are read in another time zone, so that every back-off is over."""

    def inspect(self, uid: str, /) -> PodReport:
        report = self.inner.inspect(uid)
        moved = tuple(
            attrs.evolve(one, finished_unix_s=one.finished_unix_s - 3600.0) if one.finished_unix_s else one
            for one in report.containers
        )
        return attrs.evolve(report, containers=moved)


class ImagesGo(Runtime):
    """With a container its image goes."""

    def remove_container(self, container_id: str, /) -> None:
        self.inner.remove_container(container_id)
        for one in self.inner.images():
            self.inner.remove_image(one.id)


class AlwaysWell(Runtime):
    """What a probe of readiness answers does not matter."""

    def run_command(self, container_id: str, command: Sequence[str], timeout_s: float, /) -> CommandResult:
        result = self.inner.run_command(container_id, command, timeout_s)
        return CommandResult(code=0) if command[0] == READY else result


class KillsTheWell(Runtime):
    """Of six answers three are taken for failures."""

    def __init__(self, ports: NodePorts) -> None:
        super().__init__(ports)
        self.asked: Counter[str] = Counter()

    def run_command(self, container_id: str, command: Sequence[str], timeout_s: float, /) -> CommandResult:
        result = self.inner.run_command(container_id, command, timeout_s)
        if command[0] == LIVE:
            self.asked[container_id] += 1
            if self.asked[container_id] % 6 in {3, 4, 5}:
                return CommandResult(code=1)
        return result


PLANTS: tuple[Plant, ...] = (
    Plant(name="no-grace", about="whoever is asked to end is killed at once", spoil=with_runtime(NoGrace)),
    Plant(name="no-hooks", about="hooks are skipped", spoil=with_runtime(NoHooks)),
    Plant(
        name="no-back-off",
        about="whatever ends is started again at once",
        spoil=with_runtime(EndedLongAgo),
    ),
    Plant(
        name="images-go",
        about="images are removed while containers run from them",
        spoil=with_runtime(ImagesGo),
    ),
    Plant(
        name="always-well",
        about="a pod is told to be ready though its probe fails",
        spoil=with_runtime(AlwaysWell),
    ),
    Plant(
        name="kills-the-well",
        about="a container is killed though its probe does not fail",
        spoil=with_runtime(KillsTheWell),
    ),
)
