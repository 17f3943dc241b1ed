"""Containers that come later under the uid of a pod that is in."""

from __future__ import annotations

from nodealloc.checkpoint import MemoryStore
from nodealloc.cpuset import CpuAllocator
from nodealloc.machine import machine_from_text
from nodealloc.node import FORMATS, NodeAllocator
from nodealloc.podspec import Container, Pod, Quantity
from nodealloc.testing.topology import workload
from nodealloc.topology import Owner, Placed, Snapshot
from nodealloc.verdicts import NotYet, Refused

MACHINE = machine_from_text("8 cores")


def pod(**cpus: int) -> Pod:
    """Under one uid, with a container of so many CPUs of its own for each name."""
    amounts = {name: {"cpu": Quantity.of(count), "memory": Quantity.of(1)} for name, count in cpus.items()}
    containers = tuple(Container(name=name, requests=some, limits=some) for name, some in amounts.items())
    return Pod(uid="u", name="web", containers=containers)


def started(store: MemoryStore) -> NodeAllocator:
    """A node of eight CPUs, one of them for the system."""
    allocators = (CpuAllocator.of(MACHINE, reserved=1),)
    node = NodeAllocator(Snapshot.of(MACHINE, allocators=allocators), store)
    node.start()
    return node


def cpus_of(node: NodeAllocator, member: str) -> int:
    """How many it has for itself."""
    return len(node.snapshot[CpuAllocator].exclusive_of(Owner("u", member)))


def test_a_container_more_is_granted_beside_what_the_others_keep() -> None:
    """It was let in without anything before; nobody was told."""
    node = started(MemoryStore(FORMATS))
    node.admit(pod(app=2))
    before = node.snapshot[CpuAllocator].exclusive_of(Owner("u", "app"))
    answer = node.admit(pod(app=2, more=3))
    assert isinstance(answer, Placed)
    assert not answer.repeated
    assert set(answer.affinity) == {"app", "more"}
    assert cpus_of(node, "more") == 3
    assert node.snapshot[CpuAllocator].exclusive_of(Owner("u", "app")) == before
    assert node.view.pods["u"].requests["cpu"] == Quantity.of(5)
    assert node.before_start(Owner("u", "more"), "c").exclusive


def test_a_container_more_that_does_not_fit_is_refused_and_nothing_changes() -> None:
    """The pod stays as it was; asked as it was, it is in."""
    node = started(MemoryStore(FORMATS))
    node.admit(pod(app=2))
    held, view = node.snapshot, node.view
    answer = node.admit(pod(app=2, more=9))
    assert isinstance(answer, Refused)
    assert answer.reason == "OutOfcpu"
    assert node.snapshot is held
    assert node.view is view
    again = node.admit(pod(app=2))
    assert isinstance(again, Placed)
    assert again.repeated


def test_what_came_later_is_remembered_with_the_others() -> None:
    """The record has all claims; a restart moves nobody."""
    store = MemoryStore(FORMATS)
    node = started(store)
    node.admit(pod(app=2))
    node.before_start(Owner("u", "app"), "c-1")
    node.admit(pod(app=2, more=3))
    assert node.records["u"].bound == {"app": "c-1"}
    later = started(MemoryStore(FORMATS, data=store.data()))
    assert later.snapshot[CpuAllocator] == node.snapshot[CpuAllocator]
    assert [one.owner.member for one in later.records["u"].workload.claims] == ["app", "more"]
    answer = later.admit(pod(app=2, more=3))
    assert isinstance(answer, Placed)
    assert answer.repeated


def test_a_member_that_was_released_does_not_come_back_by_itself() -> None:
    """Its pod is asked for again after a restart: what has ended gets nothing."""
    node = started(MemoryStore(FORMATS))
    node.admit(pod(app=2, more=3))
    node.release("u", "more")
    answer = node.admit(pod(app=2, more=3))
    assert isinstance(answer, Placed)
    assert answer.repeated
    assert cpus_of(node, "more") == 0


def test_a_rank_more_of_a_job_is_granted_too() -> None:
    """Claims that are no pod's join in the same way."""
    node = started(MemoryStore(FORMATS))
    node.admit(workload("u", {"cpu": 2}))
    answer = node.admit(workload("u", {"cpu": 2}, {"cpu": 1}))
    assert isinstance(answer, Placed)
    assert cpus_of(node, "app-1") == 1


def test_what_came_later_waits_for_the_start_as_anybody_does() -> None:
    """What was admitted is let in before the start is over, what is new is not."""
    store = MemoryStore(FORMATS)
    started(store).admit(pod(app=2))
    allocators = (CpuAllocator.of(MACHINE, reserved=2),)
    node = NodeAllocator(Snapshot.of(MACHINE, allocators=allocators), MemoryStore(FORMATS, data=store.data()))
    report = node.start()
    assert not report.is_clean
    assert isinstance(node.admit(pod(app=2)), Placed)
    assert isinstance(node.admit(pod(app=2, more=1)), NotYet)
