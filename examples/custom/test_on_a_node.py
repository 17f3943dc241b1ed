"""GPU memory on a whole node: remembered, shown, confined, taken over, and there after a restart."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import pytest

from examples.custom.gpu_memory import RESOURCE, GpuMemory
from nodealloc.checkpoint import MemoryStore
from nodealloc.cpuset import CpuAllocator, CPUSet
from nodealloc.errors import DecodeError
from nodealloc.machine import Machine
from nodealloc.node import FORMATS, AdoptionError, Confinement, NodeAllocator, describe, holdings
from nodealloc.testing.abilities import check_accounts, check_adopts, check_confines, check_remembers
from nodealloc.testing.topology import workload
from nodealloc.topology import Admitted, Allocator, NumaTopology, Owner, Policy, Refusal, Snapshot

pytest_plugins = ["nodealloc.testing.pytest_plugin"]

CARDS = GpuMemory(cards={"gpu0": (0, 16 << 30), "gpu1": (1, 24 << 30)})
JOBS = [workload(name, {"cpu": 1, RESOURCE: 8 << 30}) for name in ("a", "b")]


@pytest.fixture
def allocators(machine: Machine) -> tuple[Allocator, ...]:
    """In the place of those of the kit."""
    return (CpuAllocator.of(machine), CARDS)


@pytest.fixture
def topology_policy() -> Policy:
    """Everything of a workload on one NUMA node."""
    return Policy.parse("single-numa-node")


def test_it_keeps_the_promises_of_its_abilities() -> None:
    """The kit's checks hold for ours."""
    check_remembers(CARDS, JOBS)
    check_accounts(CARDS, JOBS, NumaTopology(nodes=(0, 1)))
    check_confines(CARDS, JOBS)
    check_adopts(CARDS, JOBS)


@pytest.mark.parametrize("machine", ["2 sockets x 8 cores"], indirect=True)
def test_a_restart_gives_nothing_away(node: NodeAllocator, restart: Callable[[], NodeAllocator]) -> None:
    """The next process knows who holds the card, and refuses a second one."""
    assert isinstance(node.admit(workload("train", {"cpu": 4, RESOURCE: 20 << 30})), Admitted)
    later = restart()
    assert later.snapshot.allocators == node.snapshot.allocators
    assert isinstance(later.admit(workload("other", {RESOURCE: 20 << 30})), Refusal)
    later.release("train")
    assert isinstance(later.admit(workload("other", {RESOURCE: 20 << 30})), Admitted)


def test_it_is_listed_and_confined_like_ours(node: NodeAllocator) -> None:
    """Who holds which card stands beside who holds which CPUs; a container is told its card."""
    node.admit(JOBS[0])
    assert [(one.resource, one.what) for one in holdings(node.snapshot)] == [
        ("cpu", "0"),
        (RESOURCE, "gpu0"),
    ]
    assert f"{RESOURCE} on node 0: {8 << 30} of {16 << 30} left" in describe(node.snapshot)
    where = node.before_start(Owner("a", "app-0"), "container-1")
    assert (where.cpus, where.devices) == (CPUSet.of(0), {RESOURCE: ("gpu0",)})


def test_what_runs_is_taken_over(snapshot: Snapshot) -> None:
    """After damage a container keeps the card that it uses, and others see what is left of it."""
    node = NodeAllocator(snapshot, MemoryStore(FORMATS, data={"workload.a": b"{"}))
    assert not node.start().is_clean
    node.adopt(JOBS[0], {"app-0": Confinement(exclusive=CPUSet.of(4), devices={RESOURCE: ("gpu1",)})})
    node.accept()
    assert node.snapshot[GpuMemory].held == {Owner("a", "app-0"): ("gpu1", 8 << 30)}
    assert isinstance(node.admit(workload("large", {RESOURCE: 17 << 30})), Refusal)
    with pytest.raises(AdoptionError, match="on card gpu1, 17179869184 are free there"):
        node.adopt(workload("b", {RESOURCE: 17 << 30}), {"app-0": Confinement(devices={RESOURCE: ("gpu1",)})})


def test_who_held_a_card_that_is_gone_has_to_go(node: NodeAllocator) -> None:
    """The report names it, and a row that it never wrote is an error."""
    node.admit(JOBS[0])
    smaller = attrs.evolve(node.snapshot[GpuMemory], cards={"gpu1": CARDS.cards["gpu1"]}, held={})
    report = smaller.restored({"a": node.snapshot[GpuMemory].remembered("a")})
    assert report.evicted == {"a": "card gpu0 is not there any more"}
    with pytest.raises(DecodeError, match=r"expected \[card, bytes\]"):
        CARDS.restored({"a": {"app-0": [17, 5]}})
