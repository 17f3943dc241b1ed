"""Machines with memory and huge pages, reservations, and histories of workloads, for Hypothesis."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import strategies as st

from nodealloc import _attrs as attrs
from nodealloc.machine import Machine, NumaNode
from nodealloc.memblocks import (
    MemoryAllocator,
    MemoryOptions,
    MemoryPolicy,
    hugepages,
)
from nodealloc.podspec import Quantity
from nodealloc.topology import Claim, ClaimKind, Owner, TopologyHint, Workload

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "Admission",
    "MemoryRemoval",
    "memory_allocators",
    "memory_histories",
    "memory_machines",
    "memory_workloads",
]

_MIB = 1 << 20
_PAGES = (2 * _MIB, 1 << 30)


@st.composite
def memory_machines(draw: st.DrawFn, *, max_nodes: int = 4) -> Machine:
    """Machines of a few NUMA nodes: sparse ids, uneven memory, nodes without any, up to two page sizes."""
    count = draw(st.integers(1, max_nodes))
    step = draw(st.sampled_from([1, 1, 3]))
    pages = draw(st.sampled_from([(), (_PAGES[0],), _PAGES]))
    nodes: list[NumaNode] = []
    for index in range(count):
        pools = {page: draw(st.integers(0, 3)) for page in pages}
        free = draw(st.sampled_from([0, 256, 1024, 4096, 4097])) * _MIB
        huge = sum(page * number for page, number in pools.items())
        nodes.append(NumaNode(id=index * step, memory_bytes=free + huge, hugepages=pools))
    return Machine(name="memory", cpus=(), numa_nodes=tuple(nodes))


@st.composite
def memory_allocators(draw: st.DrawFn, *, strict: bool | None = None) -> MemoryAllocator:
    """Allocators with nothing held, on a machine that reserves some memory.

    Args:
        draw: Given by Hypothesis.
        strict: The option of that name; None draws it.
    """
    machine = draw(memory_machines())
    reserved: dict[int, Mapping[str, int]] = {}
    for node in machine.numa_nodes:
        huge = sum(page * number for page, number in node.hugepages.items())
        kept = draw(st.sampled_from([0, 0, 100 * _MIB, node.memory_bytes - huge]))
        reserved[node.id] = {"memory": min(kept, node.memory_bytes - huge)}
    options = MemoryOptions(
        strict=draw(st.booleans()) if strict is None else strict, fall_back=draw(st.booleans())
    )
    made = MemoryAllocator.of(machine, policy=MemoryPolicy.STATIC, reserved=reserved, options=options)
    assert isinstance(made, MemoryAllocator)
    return made


@st.composite
def _amounts(draw: st.DrawFn) -> Mapping[str, Quantity]:
    amounts = {"memory": draw(st.sampled_from([1, 64, 200, 256, 1000, 3000, 5000])) * _MIB}
    for page in draw(st.sampled_from([(), (), (_PAGES[0],), _PAGES])):
        amounts[hugepages(page)] = page * draw(st.integers(0, 3))
    return {name: Quantity.of(size) for name, size in amounts.items()}


@st.composite
def memory_workloads(draw: st.DrawFn, key: str = "pod", *, exclusive: bool = True) -> Workload:
    """Workloads of init members, sidecars and main members that ask for memory and huge pages."""
    kinds = draw(st.lists(st.sampled_from([ClaimKind.INIT, ClaimKind.INIT, ClaimKind.SIDECAR]), max_size=3))
    kinds += [ClaimKind.MAIN] * draw(st.integers(1, 3))
    claims: list[Claim] = []
    ended: tuple[str, ...] = ()
    for index, kind in enumerate(kinds):
        name = f"{kind.value}-{index}"
        claims.append(
            Claim(
                owner=Owner(key, name), amounts=draw(_amounts()), kind=kind, exclusive=exclusive, reuse=ended
            )
        )
        if kind is ClaimKind.INIT:
            ended = (*ended, name)
    return Workload(key=key, claims=tuple(claims))


@attrs.frozen
class Admission:
    """A step of a history: a workload comes, with the affinity that its members are given.

    Attributes:
        workload: Who comes.
        choices: One number a member: which of the hints, counted modulo their
            number; 0 stands for no affinity at all, negative numbers for a
            single node of it.
    """

    workload: Workload
    choices: tuple[int, ...]

    def affinity(self, place: int, offered: list[TopologyHint]) -> TopologyHint:
        """The affinity of the member at `place`, given its hints."""
        choice = self.choices[place % len(self.choices)]
        if not choice or not offered:
            return TopologyHint(None, preferred=False)
        hint = offered[abs(choice) % len(offered)]
        if choice > 0 or hint.affinity is None:
            return hint
        return TopologyHint(hint.affinity & -hint.affinity, preferred=False)


@attrs.frozen
class MemoryRemoval:
    """A step of a history: a workload goes, or one member of it.

    Attributes:
        key: Which workload.
        member: Which member, counted modulo their number; None for all.
    """

    key: str
    member: int | None


@st.composite
def memory_histories(draw: st.DrawFn, *, max_steps: int = 12) -> list[Admission | MemoryRemoval]:
    """Workloads that come and go."""
    steps: list[Admission | MemoryRemoval] = []
    for index in range(draw(st.integers(1, max_steps))):
        if index and draw(st.integers(0, 2)) == 0:
            key = f"pod-{draw(st.integers(0, index - 1))}"
            steps.append(MemoryRemoval(key, draw(st.sampled_from([None, None, None, 0, 1]))))
        else:
            choices = draw(st.lists(st.integers(-3, 12), min_size=1, max_size=3))
            steps.append(Admission(draw(memory_workloads(f"pod-{index}")), tuple(choices)))
    return steps
