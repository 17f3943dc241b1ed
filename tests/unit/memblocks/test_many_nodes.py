"""Machines with more NUMA nodes than the kubelet takes: counted sets, the same rules."""

from __future__ import annotations

import pytest

from nodealloc.machine import Machine, NumaNode
from nodealloc.memblocks import (
    MemoryAllocator,
    MemoryOptions,
    _layout,
)
from nodealloc.podspec import Quantity
from nodealloc.testing.memblocks import check_books
from nodealloc.topology import Claim, CountedHints, Owner, TopologyHint

GIB = 1 << 30
ANY = TopologyHint(None, preferred=False)


def static(*memory_gib: int, options: MemoryOptions | None = None) -> MemoryAllocator:
    """The static policy on nodes with that much memory."""
    nodes = tuple(NumaNode(id=node, memory_bytes=size * GIB) for node, size in enumerate(memory_gib))
    made = MemoryAllocator.of(Machine(cpus=(), numa_nodes=nodes), options=options)
    assert isinstance(made, MemoryAllocator)
    return made


def claim(key: str, gib: int) -> Claim:
    """A claim of memory."""
    return Claim(owner=Owner(key, "app"), amounts={"memory": Quantity.of(gib * GIB)})


def granted(allocator: MemoryAllocator, asked: Claim, affinity: TopologyHint = ANY) -> MemoryAllocator:
    """The allocator with the claim granted."""
    answer = allocator.allocate(asked, affinity)
    assert isinstance(answer, MemoryAllocator), answer
    check_books(answer)
    return answer


def counted(allocator: MemoryAllocator, asked: Claim) -> CountedHints:
    """A claim's hints on a machine of many nodes."""
    found = allocator.hints([asked])["memory"]
    assert isinstance(found, CountedHints)
    return found


def test_every_set_counts() -> None:
    """On 64 nodes every set with the bytes is a hint, and those of the least size are preferred."""
    found = counted(static(*[4] * 64), claim("a", 12))
    assert TopologyHint(1 | 1 << 31 | 1 << 63, preferred=True) in found
    assert TopologyHint(0b11, preferred=True) not in found
    assert TopologyHint(0b1111, preferred=False) in found
    assert found.some(2) == [TopologyHint(0b111, preferred=True), TopologyHint(0b1011, preferred=True)]


def test_all_sets_are_listed_up_to_eight_nodes() -> None:
    """As the kubelet lists them: small ones first, then by ids."""
    listed = static(*[4] * 8).hints([claim("a", 1)])["memory"]
    assert listed is not None
    masks = [hint.affinity or 0 for hint in listed]
    assert len(masks) == len(set(masks)) == 255
    assert [mask.bit_count() for mask in masks] == sorted(mask.bit_count() for mask in masks)


def test_nodes_without_memory_help_nothing() -> None:
    """36 nodes, 34 of them graphics memory that the system does not count."""
    allocator = static(*[8, 8], *[0] * 34)
    assert counted(allocator, claim("a", 9)).some(2) == [TopologyHint(0b11, preferred=True)]
    assert [hint.affinity for hint in counted(allocator, claim("a", 1)).some(3)] == [0b01, 0b10]
    assert str(granted(allocator, claim("a", 9)).mems_of(Owner("a", "app"))) == "0-1"


def test_nodes_in_use_stand_for_themselves() -> None:
    """A node that serves by itself goes into no set, and a group in use is a set of its own."""
    allocator = granted(static(*[4] * 9), claim("one", 1), TopologyHint(1, preferred=True))
    allocator = granted(allocator, claim("two", 5), TopologyHint(0b110, preferred=True))
    found = counted(allocator, claim("a", 3))
    assert [hint.affinity for hint in found.others] == [0b001, 0b110]
    assert TopologyHint(0b001, preferred=True) in found
    assert TopologyHint(0b110, preferred=False) in found
    assert TopologyHint(0b011, preferred=False) not in found
    assert TopologyHint(0b110000000, preferred=False) in found


def test_a_claim_over_many_nodes_takes_neighbours() -> None:
    """24 of 64 nodes, and the next one the lowest after them."""
    allocator = granted(static(*[4] * 64), claim("a", 96))
    assert str(allocator.mems_of(Owner("a", "app"))) == "0-23"
    assert str(granted(allocator, claim("b", 9)).mems_of(Owner("b", "app"))) == "24-26"


def test_gaps_between_used_nodes_are_bridged() -> None:
    """A claim takes the lowest of the nodes that are free."""
    allocator = static(*[4] * 32)
    for node in range(0, 32, 2):
        allocator = granted(allocator, claim(f"pod-{node}", 1), TopologyHint(1 << node, preferred=True))
    after = granted(allocator, claim("a", 60))
    assert str(after.mems_of(Owner("a", "app"))) == ",".join(str(node) for node in range(1, 31, 2))
    assert after.release("a") == allocator


def test_an_affinity_is_widened_to_the_lowest_set_around_it() -> None:
    """The narrowest set that has the bytes, of several the lowest, as on machines of few nodes."""
    allocator = granted(static(*[4] * 64), claim("a", 12), TopologyHint(1 << 40, preferred=False))
    assert str(allocator.mems_of(Owner("a", "app"))) == "0-1,40"


def test_what_never_fits_is_said_on_large_machines_too() -> None:
    """The sum of all nodes is named."""
    answer = static(*[4] * 64).allocate(claim("a", 257), ANY)
    assert not isinstance(answer, MemoryAllocator)
    assert "never fits: all nodes together can grant 256 GiB" in answer.detail


def test_what_was_worked_out_is_forgotten_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers do not depend on what is remembered of earlier ones."""
    allocator = static(1, 2, 3)
    expected = [allocator.hints([claim("a", gib)]) for gib in (1, 4, 5, 6)]
    monkeypatch.setattr(_layout, "_MAX_KNOWN", 0)
    again = static(1, 2, 3)
    for _ in range(2):
        assert [again.hints([claim("a", gib)]) for gib in (1, 4, 5, 6)] == expected
        assert str(granted(again, claim("a", 6)).mems_of(Owner("a", "app"))) == "0-2"
