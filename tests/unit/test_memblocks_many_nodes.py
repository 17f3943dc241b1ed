"""Machines with more NUMA nodes than the kubelet takes: few sets, the same rules."""

from __future__ import annotations

import pytest

from nodealloc.idset import bits
from nodealloc.machine import Machine, NumaNode
from nodealloc.memblocks import MemoryAllocator, MemoryOptions, _layout, memory_allocator
from nodealloc.memblocks._groups import MAX_MASKS, family
from nodealloc.podspec import Quantity
from nodealloc.testing.memblocks import check_books
from nodealloc.topology import Claim, Owner, TopologyHint

GIB = 1 << 30
ANY = TopologyHint(None, preferred=False)


def static(*memory_gib: int, options: MemoryOptions | None = None) -> MemoryAllocator:
    """The static policy on nodes with that much memory."""
    nodes = tuple(NumaNode(id=node, memory_bytes=size * GIB) for node, size in enumerate(memory_gib))
    made = memory_allocator(Machine(cpus=(), numa_nodes=nodes), options=options)
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


def masks(allocator: MemoryAllocator, asked: Claim) -> list[int]:
    """The masks of a claim's hints."""
    return [hint.affinity or 0 for hint in allocator.hints([asked])["memory"] or ()]


@pytest.mark.parametrize(("nodes", "sets"), [(8, 255), (9, 511), (12, 829), (36, 1261), (64, 2080)])
def test_sets_are_few(nodes: int, sets: int) -> None:
    """All of them up to 9 nodes; then small ones, and neighbours of any number."""
    found = masks(static(*[4] * nodes), claim("a", 1))
    assert len(found) == len(set(found)) == sets
    assert found[-1] == (1 << nodes) - 1
    assert [mask.bit_count() for mask in found] == sorted(mask.bit_count() for mask in found)


def test_nodes_without_memory_are_not_considered() -> None:
    """36 nodes, 34 of them graphics memory that the system does not count: three sets."""
    allocator = static(*[8, 8], *[0] * 34)
    assert masks(allocator, claim("a", 9)) == [0b11]
    assert masks(allocator, claim("a", 1)) == [0b01, 0b10, 0b11]
    assert granted(allocator, claim("a", 9)).mems("a", "app") == "0-1"


def test_a_claim_over_many_nodes_takes_neighbours() -> None:
    """24 of 64 nodes, and the next one after them."""
    allocator = granted(static(*[4] * 64), claim("a", 96))
    assert allocator.mems("a", "app") == "0-23"
    assert granted(allocator, claim("b", 9)).mems("b", "app") == "24-26"


def test_gaps_between_used_nodes_are_bridged() -> None:
    """Neighbours are neighbours among the nodes that are free."""
    allocator = static(*[4] * 32)
    for node in range(0, 32, 2):
        allocator = granted(allocator, claim(f"pod-{node}", 1), TopologyHint(1 << node, preferred=True))
    after = granted(allocator, claim("a", 60))
    assert after.mems("a", "app") == ",".join(str(node) for node in range(1, 31, 2))
    assert after.release("a") == allocator


def test_an_affinity_is_widened_to_neighbours() -> None:
    """The nearest set around the affinity that has the bytes."""
    allocator = granted(static(*[4] * 64), claim("a", 12), TopologyHint(1 << 40, preferred=False))
    assert allocator.mems("a", "app") == "38-40"


def test_what_never_fits_is_said_on_large_machines_too() -> None:
    """The sum of all nodes is named."""
    answer = static(*[4] * 64).allocate(claim("a", 257), ANY)
    assert not isinstance(answer, MemoryAllocator)
    assert "never fits: all nodes together can grant 274877906944 bytes" in answer.detail


@pytest.mark.parametrize("count", range(1, 70))
def test_families_stay_small_and_whole(count: int) -> None:
    """Every node is in some set with each of its neighbours, and the set of all is there."""
    every = (1 << count) - 1
    found = family(every)
    assert len(found) <= MAX_MASKS + count * count // 2
    assert count == 1 or found[-1] == every
    pairs = {mask for mask in found if mask.bit_count() == 2}
    assert all(0b11 << node in pairs for node in range(count - 1))
    assert all(set(bits(mask)) <= set(range(count)) for mask in found)


def test_what_was_worked_out_is_forgotten_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers do not depend on what is remembered of earlier ones."""
    allocator = static(1, 2, 3)
    expected = [allocator.hints([claim("a", gib)]) for gib in (1, 4, 5, 6)]
    monkeypatch.setattr(_layout, "_MAX_KNOWN", 0)
    again = static(1, 2, 3)
    for _ in range(2):
        assert [again.hints([claim("a", gib)]) for gib in (1, 4, 5, 6)] == expected
        assert granted(again, claim("a", 6)).mems("a", "app") == "0-2"
