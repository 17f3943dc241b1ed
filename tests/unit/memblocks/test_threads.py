"""What users of the kubelet suffered from, each once: the symptom is gone, or has its name."""

from __future__ import annotations

import attrs

from nodealloc.machine import Machine, NumaNode
from nodealloc.memblocks import (
    MemoryAllocator,
    MemoryOptions,
)
from nodealloc.podspec import Quantity
from nodealloc.topology import (
    Admitted,
    Claim,
    NumaTopology,
    Owner,
    Policy,
    PolicyName,
    Refusal,
    Snapshot,
    Workload,
    admit,
    release,
)

GIB = 1 << 30
MIB = 1 << 20


def node(policy: PolicyName, *memory: int, options: MemoryOptions | None = None) -> Snapshot:
    """A node with memory alone under a topology policy."""
    machine = Machine(
        cpus=(), numa_nodes=tuple(NumaNode(id=i, memory_bytes=size) for i, size in enumerate(memory))
    )
    return Snapshot(
        numa=NumaTopology(nodes=tuple(range(len(memory)))),
        policy=Policy(name=policy),
        allocators=(MemoryAllocator.of(machine, options=options),),
    )


def pod(key: str, *sizes: int) -> Workload:
    """A pod whose containers ask for so many bytes."""
    claims = [
        Claim(owner=Owner(key, f"app-{i}"), amounts={"memory": Quantity.of(size)})
        for i, size in enumerate(sizes)
    ]
    return Workload(key=key, claims=tuple(claims))


def after(snapshot: Snapshot, asked: Workload) -> Snapshot:
    """The node with the pod in it."""
    verdict = admit(snapshot, asked)
    assert isinstance(verdict, Admitted)
    return verdict.snapshot


def memory(snapshot: Snapshot) -> MemoryAllocator:
    """Its memory."""
    (allocator,) = snapshot.allocators
    assert isinstance(allocator, MemoryAllocator)
    return allocator


def test_a_small_pod_keeps_a_large_one_from_joining_two_nodes() -> None:
    """Refused, as in kubernetes 128708; the text says what is in the way."""
    full = node(PolicyName.RESTRICTED, 8 * GIB, 8 * GIB)
    verdict = admit(after(full, pod("small", 256 * MIB)), pod("large", 9 * GIB))
    assert isinstance(verdict, Refusal)
    assert verdict.shortfall is not None
    assert (
        "fits an idle machine on 2 NUMA nodes, but allocations on single nodes keep 0 out"
        in verdict.shortfall.detail
    )
    assert isinstance(admit(full, pod("large", 9 * GIB)), Admitted)


def test_what_never_fits_is_told_from_what_does_not_fit_now() -> None:
    """Two refusals with two texts (kubernetes 128669)."""
    full = after(node(PolicyName.RESTRICTED, 8 * GIB, 8 * GIB), pod("a", 8 * GIB))
    full = after(full, pod("b", 8 * GIB))
    texts: list[str] = []
    for asked in (pod("never", 17 * GIB), pod("later", GIB)):
        verdict = admit(full, asked)
        assert isinstance(verdict, Refusal)
        assert verdict.shortfall is not None
        texts.append(verdict.shortfall.detail)
    assert "never fits" in texts[0]
    assert "fits an idle machine on 1 NUMA node: release what is held on 0-1" in texts[1]


def test_best_effort_does_not_refuse_what_has_a_place() -> None:
    """A merge of CPUs and memory that memory cannot serve gives way with `fall_back` (kubernetes 138495)."""
    options = MemoryOptions(fall_back=True)
    snapshot = after(node(PolicyName.BEST_EFFORT, 8 * GIB, 8 * GIB, options=options), pod("a", GIB))
    claim = pod("b", GIB).claims[0]
    wide = memory(snapshot).hints([claim])["memory"]
    assert wide is not None
    affinity = next(iter(wide))._replace(affinity=0b11, preferred=False)
    assert isinstance(memory(snapshot).allocate(claim, affinity), MemoryAllocator)
    plain = attrs.evolve(memory(snapshot), options=MemoryOptions())
    assert not isinstance(plain.allocate(claim, affinity), MemoryAllocator)


def test_state_does_not_depend_on_the_order_of_coming_and_going() -> None:
    """Two histories, one state (kubernetes 113130), in strict mode to the byte."""
    empty = node(PolicyName.BEST_EFFORT, 4 * GIB, 4 * GIB, options=MemoryOptions(strict=True))
    one = after(after(after(empty, pod("a", 5 * GIB)), pod("b", 2 * GIB)), pod("c", GIB))
    other = after(after(empty, pod("c", 5 * GIB)), pod("b", 2 * GIB))
    there = release(one, "a")
    assert memory(there).state.free == (((1 * GIB), 4 * GIB),)
    assert memory(release(other, "c")).state.free == ((2 * GIB, 4 * GIB),)
    assert memory(release(there, "c")).state == memory(release(other, "c")).state


def test_memory_that_shifts_between_boots_keeps_everybody() -> None:
    """Tens of megabytes go from one node to the other (kubernetes 131253); nobody notices."""
    before = after(node(PolicyName.RESTRICTED, 8 * GIB, 8 * GIB), pod("a", 4 * GIB))
    today = memory(node(PolicyName.RESTRICTED, 8 * GIB - 50 * MIB, 8 * GIB + 50 * MIB))
    plan = today.plan_restore(memory(before).recorded())
    assert plan.is_clean
    assert plan.beyond == ()
    assert [str(drift) for drift in plan.drifts] == [
        "NUMA node 0: memory was 8589934592 bytes and is 8537505792 (-52428800; 134217728 allowed)",
        "NUMA node 1: memory was 8589934592 bytes and is 8642363392 (+52428800; 134217728 allowed)",
    ]


def test_a_restart_refuses_nobody() -> None:
    """Running pods are asked for again and stay where they are (kubernetes 123971)."""
    before = after(node(PolicyName.RESTRICTED, 8 * GIB, 8 * GIB), pod("a", 6 * GIB, 2 * GIB))
    restarted = attrs.evolve(before, admitted={})
    verdict = admit(restarted, pod("a", 6 * GIB, 2 * GIB))
    assert isinstance(verdict, Admitted)
    assert verdict.snapshot.allocators == before.allocators
