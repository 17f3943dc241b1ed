"""Fixtures for tests of policies, allocators and adapters; needs pytest.

Nothing loads by itself. In your `conftest.py`:

```python
pytest_plugins = ["nodealloc.testing.pytest_plugin"]
```

Each fixture is made from those above it in this table. Define one of the same
name in your test file, and everything below is made from yours.

| fixture           | gives                                                            |
|-------------------|------------------------------------------------------------------|
| `machine`         | the machine of `@pytest.mark.machine("2 sockets x 4 cores")`, or a default one |
| `topology_policy` | the topology policy, `best-effort`                               |
| `allocators`      | CPUs and memory of that machine, both with the static policy     |
| `snapshot`        | a node with these allocators and nothing held                    |
| `memory_store`    | a store that ends with the test                                  |
| `fake_runtime`    | a runtime in which nothing runs                                  |
| `node`            | a `NodeAllocator` over all of these, started                     |
| `restart`         | a function: the next `NodeAllocator`, over what the store holds   |
| `virtual_clock`   | a clock that stands still until it is told to advance            |
| `manual_executor` | an executor that runs what the test says, when it says so        |
| `cgroups`         | a driver over a cgroup v2 tree of plain files in `tmp_path`      |
| `simulate`        | a function: whole nodes with an agent of yours live through faults |
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Protocol, cast

import pytest

from nodealloc.cgroups import CgroupFs, stand_in
from nodealloc.checkpoint import MemoryStore
from nodealloc.cpuset import CpuAllocator
from nodealloc.machine import Machine, machine_from_text
from nodealloc.memblocks import MemoryAllocator
from nodealloc.node import FORMATS, NodeAllocator
from nodealloc.testing.dsw_asw import ManualExecutor, VirtualClock
from nodealloc.testing.node import FakeRuntime
from nodealloc.testing.simulation.node import NodeSimulation, SeedTally, Wiring, agent
from nodealloc.topology import Allocator, Policy, Snapshot

__all__ = [
    "DEFAULT_MACHINE",
    "Simulates",
    "allocators",
    "cgroups",
    "fake_runtime",
    "machine",
    "manual_executor",
    "memory_store",
    "node",
    "pytest_configure",
    "restart",
    "simulate",
    "snapshot",
    "topology_policy",
    "virtual_clock",
]

DEFAULT_MACHINE = "2 sockets x 4 cores x 2 threads, memory=16Gi"
"""What `machine` gives to a test that names none; memory is that of each NUMA node."""


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line("markers", "machine(text): the machine that the fixture `machine` gives")


@pytest.fixture
def machine(request: pytest.FixtureRequest) -> Machine:
    """From the nearest marker `machine`, or an indirect parameter: a text or a `Machine`."""
    item = cast("pytest.Item", request.node)
    marker = item.get_closest_marker("machine")
    named = dict[str, object](marker.kwargs) if marker else {}
    given: tuple[object, ...] = (*marker.args, *named.values()) if marker else (DEFAULT_MACHINE,)
    if len(given) != 1 or not named.keys() <= {"text"}:
        pytest.fail('the marker machine takes one text: @pytest.mark.machine("2 sockets x 4 cores")')
    chosen: object = getattr(request, "param", given[0])
    if isinstance(chosen, Machine):
        return chosen
    if isinstance(chosen, str):
        return machine_from_text(chosen)
    pytest.fail(f"the fixture machine takes a text or a Machine, found {chosen!r}")


@pytest.fixture
def topology_policy() -> Policy:
    """`best-effort`."""
    return Policy.parse("best-effort")


@pytest.fixture
def allocators(machine: Machine) -> tuple[Allocator, ...]:
    """CPUs, of which one core is reserved where there are two, and memory, of which nothing is."""
    spare = len(machine.groups("core")) > 1
    reserved = len(next(iter(machine.groups("core").values()))) if spare else 0
    return (
        CpuAllocator.of(machine, reserved=reserved),
        MemoryAllocator.of(machine),
    )


@pytest.fixture
def snapshot(machine: Machine, topology_policy: Policy, allocators: tuple[Allocator, ...]) -> Snapshot:
    """Nothing is held yet."""
    return Snapshot.of(machine, policy=topology_policy, allocators=allocators)


@pytest.fixture
def memory_store() -> MemoryStore:
    """Opened for what a `NodeAllocator` keeps."""
    return MemoryStore(FORMATS)


@pytest.fixture
def fake_runtime() -> FakeRuntime:
    """Reachable."""
    return FakeRuntime()


@pytest.fixture
def node(snapshot: Snapshot, memory_store: MemoryStore, fake_runtime: FakeRuntime) -> NodeAllocator:
    """Started; it has read `memory_store`, and asks `fake_runtime` what runs."""
    return _started(snapshot, memory_store, fake_runtime)


@pytest.fixture
def restart(
    snapshot: Snapshot, memory_store: MemoryStore, fake_runtime: FakeRuntime
) -> Callable[[], NodeAllocator]:
    """What the next process would have, as often as you call it; the runtime lives on.

    Each call reads the bytes that `memory_store` holds by then. What the node that
    it answers with decides goes into a store of its own.
    """

    def again() -> NodeAllocator:
        return _started(snapshot, MemoryStore(FORMATS, data=memory_store.data()), fake_runtime)

    return again


@pytest.fixture
def virtual_clock() -> VirtualClock:
    """At 0 seconds."""
    return VirtualClock()


@pytest.fixture
def manual_executor() -> ManualExecutor:
    """With nothing queued."""
    return ManualExecutor()


@pytest.fixture
def cgroups(tmp_path: Path) -> CgroupFs:
    """Behaves as the kernel's files do, needs no rights, confines nobody."""
    return stand_in(tmp_path / "cgroup")


def _started(empty: Snapshot, store: MemoryStore, runtime: FakeRuntime) -> NodeAllocator:
    fresh = NodeAllocator(empty, store, runtime=runtime)
    fresh.start()
    return fresh


class Simulates(Protocol):
    """What the fixture `simulate` gives."""

    def __call__(self, wiring: Wiring = agent, *, seeds: Iterable[int] = range(10)) -> SeedTally:
        """Live these seeds with this agent."""
        ...


@pytest.fixture
def simulate() -> Simulates:
    """A function from an agent's wiring and some seeds to what their lives came to.

    Raises `nodealloc.testing.simulation.ViolationError` at the first guarantee that is broken.
    """

    def run(wiring: Wiring = agent, *, seeds: Iterable[int] = range(10)) -> SeedTally:
        tally = SeedTally()
        for seed in seeds:
            with NodeSimulation(seed, wiring) as node:
                tally.count(node.run())
        return tally

    return run
