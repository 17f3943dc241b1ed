"""Bugs that are planted into what the kit keeps a Protocol with, one method at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest

from nodealloc.checkpoint import MemoryStore
from nodealloc.cpuset import KubeletPicker
from nodealloc.devices import DeviceLedger
from nodealloc.testing.abilities import FakeCpuAllocator
from nodealloc.testing.cgroups import FakeCgroups
from nodealloc.testing.cpuset import FakeCpusetWriter
from nodealloc.testing.pluginreg import RecordingHandler
from nodealloc.testing.podfacts import FakePods
from nodealloc.testing.podstatus import FakeSink
from nodealloc.testing.probes import FakeProber
from nodealloc.testing.runtime import FakeContainerRuntime
from nodealloc.testing.topology import FakeAllocator, check_allocator, workload
from nodealloc.testing.volumes import FakeMounter
from nodealloc.topology import NumaTopology
from tests.unit.test_ports import KEPT

__all__ = ["PLANTED", "RIGHT", "Bug", "planted", "refused"]

_OWNERS: tuple[type, ...] = (
    DeviceLedger,
    FakeAllocator,
    FakeCgroups,
    FakeContainerRuntime,
    FakeCpuAllocator,
    FakeCpusetWriter,
    FakeMounter,
    FakePods,
    FakeProber,
    FakeSink,
    KubeletPicker,
    MemoryStore,
    RecordingHandler,
)
RIGHT: Mapping[tuple[type, str], Callable[..., Any]] = {
    (owner, name): getattr(owner, name)
    for owner in _OWNERS
    for name in dir(owner)
    if callable(getattr(owner, name))
}
"""Methods as they are without a bug."""
GPU = "example.com/gpu"


def _allocators(_: Path) -> None:
    """Four units on each of two nodes."""
    asked = workload("job", {GPU: 1}, {GPU: 3}, init=[{GPU: 1}])
    numa = NumaTopology(nodes=(0, 1), distances={0: {0: 10, 1: 21}, 1: {0: 21, 1: 10}})
    check_allocator(FakeAllocator(name=GPU, units={0: 0b1111, 1: 0b1111_0000}), asked, numa)


_CHECKS = {**KEPT, "topology.Allocator": _allocators}


@attrs.frozen
class Bug:
    """A method done wrong.

    Attributes:
        port: The Protocol, as in `KEPT`.
        owner: Whose method.
        method: Its name.
        broken: What it is replaced by.
        says: What the check has to say, as a pattern.
    """

    port: str
    owner: type
    method: str
    broken: Callable[..., Any]
    says: str


PLANTED: dict[str, Bug] = {}
_SOUND: set[str] = set()
"""Whose check passed without a bug."""


def planted(port: str, owner: type, method: str, says: str) -> Callable[[Callable[..., Any]], None]:
    """PlantedFault a function in a method's place."""

    def plant(broken: Callable[..., Any]) -> None:
        PLANTED[broken.__name__] = Bug(port, owner, method, broken, says)

    return plant


def refused(bug: Bug, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether the check says what is wrong, in a sentence of its own."""
    if bug.port not in _SOUND:
        _CHECKS[bug.port](folder)
        _SOUND.add(bug.port)
    monkeypatch.setattr(bug.owner, bug.method, bug.broken)
    with pytest.raises(AssertionError, match=bug.says):
        _CHECKS[bug.port](folder / "again")
