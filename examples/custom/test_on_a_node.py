"""GPU memory on a whole node: beside CPUs and memory, remembered, and there after a restart."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import cast

import attrs
import pytest

from examples.custom.gpu_memory import RESOURCE, GpuMemory
from nodealloc.checkpoint import Checkpoint
from nodealloc.cpuset import CpuAllocator, StaticPolicy
from nodealloc.machine import Machine
from nodealloc.node import CpuKeeper, Keeper, NodeAllocator, Restored
from nodealloc.podspec import Json
from nodealloc.testing.node import check_keeper
from nodealloc.testing.topology import workload
from nodealloc.topology import Admitted, Allocator, Owner, Policy, Refusal, Snapshot

pytest_plugins = ["nodealloc.testing.pytest_plugin"]

CARDS = GpuMemory(cards={"gpu0": (0, 16 << 30), "gpu1": (1, 24 << 30)})


class GpuKeeper:
    """How GPU memory is remembered: member to card and bytes."""

    def grants(self, allocator: Allocator, workload: str, /) -> Json:
        """None where the workload holds nothing."""
        held = cast("GpuMemory", allocator).held
        return {owner.member: list(held[owner]) for owner in held if owner.workload == workload} or None

    def restore(self, allocator: Allocator, grants: Mapping[str, Json], /) -> Restored:
        """Everything as it was: cards do not move."""
        rows = cast("Mapping[str, Mapping[str, Sequence[int | str]]]", grants)
        held = {
            Owner(key, member): (str(card), int(size))
            for key, members in rows.items()
            for member, (card, size) in members.items()
        }
        return Restored(allocator=attrs.evolve(cast("GpuMemory", allocator), held=held))

    def files(self, _allocator: Allocator, _before: Allocator | None = None, /) -> Mapping[str, Checkpoint]:
        """The kubelet has no file for this."""
        return {}


@pytest.fixture
def allocators(machine: Machine) -> tuple[Allocator, ...]:
    """In the place of those of the kit."""
    return (CpuAllocator(policy=StaticPolicy.of(machine)), CARDS)


@pytest.fixture
def keepers() -> Mapping[str, Keeper]:
    """One for each allocator."""
    return {"cpu": CpuKeeper(), "gpu-memory": GpuKeeper()}


@pytest.fixture
def topology_policy() -> Policy:
    """Everything of a workload on one NUMA node."""
    return Policy.parse("single-numa-node")


def test_what_is_kept_comes_back(snapshot: Snapshot, keepers: Mapping[str, Keeper]) -> None:
    """The kit's check of keepers holds for ours."""
    jobs = [workload(name, {"cpu": 1, RESOURCE: 8 << 30}) for name in ("a", "b")]
    check_keeper(keepers["gpu-memory"], snapshot, "gpu-memory", jobs)


@pytest.mark.parametrize("machine", ["2 sockets x 8 cores"], indirect=True)
def test_a_restart_gives_nothing_away(node: NodeAllocator, restart: Callable[[], NodeAllocator]) -> None:
    """The next process knows who holds the card, and refuses a second one."""
    assert isinstance(node.admit(workload("train", {"cpu": 4, RESOURCE: 20 << 30})), Admitted)
    later = restart()
    assert later.snapshot.allocators == node.snapshot.allocators
    assert isinstance(later.admit(workload("other", {RESOURCE: 20 << 30})), Refusal)
    later.release("train")
    assert isinstance(later.admit(workload("other", {RESOURCE: 20 << 30})), Admitted)
