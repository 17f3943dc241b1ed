"""A snapshot is made from a machine, and asked for its allocators by class or name."""

from __future__ import annotations

import pickle
from collections.abc import Mapping

import attrs
import pytest

from nodealloc.cpuset import CpuAllocator
from nodealloc.errors import NodeallocError
from nodealloc.machine import machine_from_text
from nodealloc.testing.topology import FakeAllocator
from nodealloc.topology import NumaTopology, Policy, Scope, Snapshot, UnknownAllocatorError

MACHINE = machine_from_text("2 sockets x 2 cores")
CPUS = CpuAllocator.of(MACHINE)
GPUS = FakeAllocator.of("example.com/gpu", {0: 1, 1: 1})
NICS = FakeAllocator.of("example.com/nic", {0: 1})


@attrs.frozen
class Described:
    """A machine of somebody else's."""

    nodes: tuple[int, ...] = (0, 2)
    distances: Mapping[int, Mapping[int, int]] | None = None


def test_a_snapshot_is_made_from_a_machine() -> None:
    """Its NUMA nodes and distances are those of the machine; the rest is as given."""
    policy = Policy.parse("restricted")
    made = Snapshot.of(MACHINE, policy=policy, scope=Scope.POD, allocators=[CPUS])
    assert made == Snapshot(
        numa=NumaTopology(nodes=(0, 1), distances=MACHINE.distances or {}),
        policy=policy,
        scope=Scope.POD,
        allocators=(CPUS,),
    )


def test_any_machine_with_nodes_and_distances_will_do() -> None:
    """No class is asked for; unknown distances are none, and no NUMA nodes are one."""
    assert Snapshot.of(Described()).numa == NumaTopology(nodes=(0, 2))
    near = {0: {0: 10, 2: 21}, 2: {0: 21, 2: 10}}
    assert Snapshot.of(Described(distances=near)).numa.distances == near
    assert Snapshot.of(Described(nodes=(), distances={})).numa == NumaTopology(nodes=(0,))


def test_an_allocator_is_found_by_its_class_or_name() -> None:
    """The answer is the very value."""
    node = Snapshot.of(MACHINE, allocators=[CPUS, GPUS, NICS])
    assert node[CpuAllocator] is CPUS
    assert node["example.com/nic"] is NICS


def test_what_is_not_there_is_named_with_what_there_is() -> None:
    """The error is a `KeyError` of ours whose text is a sentence, and survives pickling."""
    node = Snapshot.of(MACHINE, allocators=[GPUS, NICS])
    with pytest.raises(UnknownAllocatorError) as caught:
        node[CpuAllocator]
    error = caught.value
    assert isinstance(error, KeyError)
    assert isinstance(error, NodeallocError)
    assert str(error) == (
        "no allocator CpuAllocator; there are: "
        "example.com/gpu (FakeAllocator), example.com/nic (FakeAllocator)"
    )
    assert str(pickle.loads(pickle.dumps(error))) == str(error)  # noqa: S301 - our own bytes
    with pytest.raises(UnknownAllocatorError, match="no allocator cpus; there are: none"):
        Snapshot.of(MACHINE)["cpus"]


def test_of_two_of_a_class_the_name_decides() -> None:
    """Neither is taken at random: the error names both."""
    node = Snapshot.of(MACHINE, allocators=[CPUS, GPUS, NICS])
    with pytest.raises(UnknownAllocatorError, match="2 allocators are a FakeAllocator; ask by") as caught:
        node[FakeAllocator]
    assert caught.value.found == 2
    assert "example.com/nic" in str(caught.value)
