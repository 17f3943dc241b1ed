"""After a restart: the kubelet's record, its books, and the plan."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import attrs
import pytest

from nodealloc.checkpoint import MemoryBlock, MemoryManagerState, MemoryNode
from nodealloc.checkpoint import (
    MemoryTable as StoredTable,
)
from nodealloc.checkpoint._memory_state import MemoryLayout
from nodealloc.errors import DecodeError
from nodealloc.machine import Machine, NumaNode
from nodealloc.memblocks import (
    Block,
    MemoryAllocator,
    MemoryOptions,
    MemoryPolicy,
    NodeMemory,
    UnpinnedMemory,
)
from nodealloc.memblocks._blocks import MemoryTable
from nodealloc.memblocks._codec import from_kubelet
from nodealloc.memblocks._granting import replay
from nodealloc.memblocks._recorded import RecordedMemory
from nodealloc.memblocks._state import MemoryState
from nodealloc.podspec import Quantity
from nodealloc.testing.memblocks import check_books
from nodealloc.topology import Claim, Owner, TopologyHint

GIB = 1 << 30
MIB = 1 << 20


def static(*memory_gib: float, huge_2mi: int = 0, first: int = 0) -> MemoryAllocator:
    """The static policy on nodes with that much memory beside their huge pages."""
    nodes = tuple(
        NumaNode(
            id=first + place,
            memory_bytes=int(size * GIB) + huge_2mi * 2 * MIB,
            hugepages={2 * MIB: huge_2mi} if huge_2mi else {},
        )
        for place, size in enumerate(memory_gib)
    )
    made = MemoryAllocator.of(Machine(cpus=(), numa_nodes=nodes))
    assert isinstance(made, MemoryAllocator)
    return made


def holding(allocator: MemoryAllocator, **wanted: tuple[float, int | None]) -> MemoryAllocator:
    """With workloads that hold so many GiB on these nodes."""
    for key, (gib, mask) in wanted.items():
        claim = Claim(owner=Owner(key, "app"), amounts={"memory": Quantity.of(int(gib * GIB))})
        answer = allocator.allocate(claim, TopologyHint(mask, preferred=False))
        assert isinstance(answer, MemoryAllocator)
        allocator = answer
    return allocator


def test_the_same_machine_restores_the_same_state() -> None:
    """Groups and the spread of bytes in them included."""
    before = holding(static(4, 4), a=(5, None), c=(1, 0b11), b=(1, 0b10)).release("c")
    plan = static(4, 4).plan_restore(before.recorded())
    assert plan.is_clean
    assert plan.allocator == before
    assert plan.keep == (Owner("a", "app"), Owner("b", "app"))
    assert (plan.drifts, plan.faults, plan.notes) == ((), (), ())


def test_a_little_less_memory_moves_nobody() -> None:
    """Every workload still fits; the drift is reported and within the bound."""
    before = holding(static(4, 4), a=(5, None))
    plan = static(3.98, 4).plan_restore(before.recorded())
    assert plan.is_clean
    assert plan.beyond == ()
    assert [drift.node for drift in plan.drifts] == [0]
    assert isinstance(plan.allocator, MemoryAllocator)
    check_books(plan.allocator)


def test_the_bound_is_the_callers() -> None:
    """What lies beyond is listed; it refuses nothing."""
    before = holding(static(4, 4), a=(1, 0b01))
    plan = static(3, 4).plan_restore(before.recorded(), max_drift_bytes=GIB - 1)
    assert plan.is_clean
    assert [str(drift) for drift in plan.beyond] == [
        "NUMA node 0: memory was 4294967296 bytes and is 3221225472 (-1073741824; 1073741823 allowed)"
    ]


def test_huge_pages_do_not_drift() -> None:
    """A pool of another size is somebody's doing."""
    plan = static(4, huge_2mi=3).plan_restore(static(4, huge_2mi=4).recorded())
    assert {(drift.resource, drift.is_beyond) for drift in plan.drifts} == {
        ("hugepages-2Mi", True),
        ("memory", False),
    }


def test_what_no_longer_fits_moves() -> None:
    """The larger workload gives way, to nodes that have the bytes."""
    before = holding(static(4, 4), small=(1, 0b01), large=(3, 0b01))
    plan = static(3, 4).plan_restore(before.recorded())
    assert plan.keep == (Owner("small", "app"),)
    (move,) = plan.move
    assert (move.owner, move.after) == (Owner("large", "app"), (Block(0b10, "memory", 3 * GIB),))
    assert "4294967296 bytes of memory are held on NUMA nodes 0, which have 3221225472" in move.reason
    assert not plan.is_clean
    assert str(plan).splitlines()[:2] == [
        "keep 1",
        f"move large/app from [0] memory 3221225472 to [1] memory 3221225472: {move.reason}",
    ]


def test_what_fits_nowhere_is_evicted_with_its_workload() -> None:
    """All members go, and nothing of them stays in the books."""
    before = holding(static(4, 4), a=(4, 0b01), b=(4, 0b10))
    plan = static(3, 4).plan_restore(before.recorded())
    assert plan.keep == (Owner("b", "app"),)
    (eviction,) = plan.evict
    assert eviction.owner == Owner("a", "app")
    assert f"evict a/app from [0] memory {4 * GIB}: " in str(plan)
    assert isinstance(plan.allocator, MemoryAllocator)
    assert list(plan.allocator.state.grants) == ["b"]


def test_a_node_that_is_gone_frees_its_holders_to_move() -> None:
    """They get a group that exists, in as few nodes as can be."""
    before = holding(static(4, 4, first=0), a=(2, 0b10))
    plan = static(4).plan_restore(before.recorded())
    (move,) = plan.move
    assert move.after == (Block(0b01, "memory", 2 * GIB),)
    assert "not on NUMA nodes of the machine, which has 0" in move.reason
    assert [drift.now_bytes for drift in plan.beyond] == [0]


def test_members_of_one_group_move_together() -> None:
    """What init members lent stays with those who borrowed it."""
    init = Block(0b01, "memory", GIB)
    app = Block(0b01, "memory", 2 * GIB)
    side = Block(0b10, "memory", GIB)
    grants = {"a": {"init": (init,), "app": (app,), "side": (side,)}}
    recorded = RecordedMemory(policy=MemoryPolicy.STATIC, grants=grants)
    plan = static(2, 3.5, 3).plan_restore(recorded)
    assert {move.owner.member: move.after[0].nodes for move in plan.move} == {"init": 0b100, "app": 0b100}
    assert plan.keep == (Owner("a", "side"),)


def test_a_page_size_that_is_gone_evicts() -> None:
    """There is nowhere to go with huge pages that no node has."""
    grants = {"a": {"app": (Block(1, "hugepages-1Gi", GIB), Block(1, "memory", GIB))}}
    plan = static(4).plan_restore(RecordedMemory(policy=MemoryPolicy.STATIC, grants=grants))
    assert [one.owner.workload for one in plan.evict] == ["a"]
    assert "a resource that the machine lacks" in plan.evict[0].reason


def test_parts_of_a_page_evict() -> None:
    """Grants that no allocator makes are not carried on."""
    grants = {"a": {"app": (Block(1, "hugepages-2Mi", MIB),)}}
    plan = static(4, huge_2mi=2).plan_restore(RecordedMemory(policy=MemoryPolicy.STATIC, grants=grants))
    assert "not a whole number of pages" in plan.evict[0].reason


def test_policy_none_pins_nothing_any_more() -> None:
    """Everybody may go anywhere."""
    before = holding(static(4), a=(1, 0b1))
    plan = UnpinnedMemory().plan_restore(before.recorded())
    assert [(move.owner.workload, move.after) for move in plan.move] == [("a", ())]
    assert plan.notes == ("policy was Static, is None",)
    assert "to anywhere: policy None pins nothing" in str(plan)


def test_the_allocator_of_today_has_to_be_empty() -> None:
    """Otherwise what it holds would be lost."""
    with pytest.raises(ValueError, match="holds 1 workloads"):
        holding(static(4), a=(1, 1)).plan_restore(RecordedMemory(policy=MemoryPolicy.STATIC))


def test_books_that_do_not_add_up_are_named_and_made_anew() -> None:
    """Each contradiction with its figures; the grants are what counts."""
    sound = holding(static(4, 4), a=(1, 0b01)).recorded()
    first, second = sound.nodes
    table = attrs.evolve(first.tables["memory"], free=7, reserved=9)
    odd = attrs.evolve(first, assignments=3, group=0b11, tables={"memory": table})
    plan = static(4, 4).plan_restore(attrs.evolve(sound, nodes=(odd, second)))
    assert [str(fault) for fault in plan.faults] == [
        "9 reserved and 7 free bytes are not the 4294967296 allocatable @ $.machineState[0].memory",
        "3 assignments are counted, 1 blocks name the node @ $.machineState[0]",
        "the node is in the group 0-1, its blocks are on 0 @ $.machineState[0]",
        "9 bytes are reserved on NUMA nodes 0, 1073741824 are held @ $.machineState[0].memory",
    ]
    assert plan.allocator == holding(static(4, 4), a=(1, 0b01))


@pytest.mark.parametrize(("low_gib", "high_gib"), [(0, 3), (-1, 4), (5, -2)])
def test_books_that_would_give_a_byte_twice_are_made_anew(low_gib: int, high_gib: int) -> None:
    """A node may not have more free than its own blocks leave, although the sum over a group is right."""
    grants = {"a": {"app": (Block(0b01, "memory", GIB),)}, "b": {"app": (Block(0b11, "memory", 2 * GIB),)}}
    recorded = RecordedMemory(
        policy=MemoryPolicy.STATIC,
        nodes=tuple(
            NodeMemory(node=node, assignments=count, group=0b11, tables={"memory": books(4, taken)})
            for node, count, taken in ((0, 2, low_gib), (1, 1, high_gib))
        ),
        grants=grants,
    )
    plan = static(4, 4).plan_restore(recorded)
    assert "$.machineState[0].memory" in [fault.path for fault in plan.faults]
    assert plan.allocator == attrs.evolve(static(4, 4), state=replay(static(4, 4).state.layout, grants))


def books(total_gib: int, reserved_gib: int) -> MemoryTable:
    """A table of memory without a system's share."""
    total, reserved = total_gib * GIB, reserved_gib * GIB
    return MemoryTable(
        total=total, system_reserved=0, allocatable=total, reserved=reserved, free=total - reserved
    )


OVERLAPPING = {
    "single": {"app": (Block(0b10, "memory", 3 * GIB),)},
    "low": {"app": (Block(0b011, "memory", 5 * GIB),)},
    "high": {"app": (Block(0b110, "memory", 2 * GIB),)},
}
"""Sets that share nodes: what is decided here never is like that, a file may be."""


@pytest.mark.parametrize("order", [*permutations(OVERLAPPING)])
@pytest.mark.parametrize("strict", [False, True])
def test_sets_that_share_nodes_come_apart_without_losing_a_byte(order: tuple[str, ...], strict: bool) -> None:
    """Whoever goes first; under `strict` the state is at each step the replay of what is left."""
    today = attrs.evolve(static(4, 4, 4), options=MemoryOptions(strict=strict))
    plan = today.plan_restore(RecordedMemory(policy=MemoryPolicy.STATIC, grants=OVERLAPPING))
    assert len(plan.keep) == 3
    left = plan.allocator
    assert isinstance(left, MemoryAllocator)
    for key in order:
        left = left.release(key)
        check_books(left)
        if strict:
            assert left.state == replay(left.state.layout, left.state.grants)
    assert left == today


def test_an_evicted_workload_is_not_kept_as_well() -> None:
    """Also a member that held nothing goes with its workload."""
    grants = {"a": {"big": (Block(0b1, "memory", 9 * GIB),), "idle": ()}}
    plan = static(4).plan_restore(RecordedMemory(policy=MemoryPolicy.STATIC, grants=grants))
    assert plan.keep == ()
    assert [one.owner.member for one in plan.evict] == ["big", "idle"]


def test_the_order_of_recorded_nodes_does_not_matter() -> None:
    """Each node's group goes to that node."""
    sound = holding(static(4, 4, 4), a=(6, 0b110)).recorded()
    plan = static(4, 4, 4).plan_restore(attrs.evolve(sound, nodes=sound.nodes[::-1]))
    assert plan == static(4, 4, 4).plan_restore(sound)


def test_grants_outside_the_recorded_nodes_are_named() -> None:
    """Nodes and resources that the record does not list."""
    sound = static(4).recorded()
    grants = {"a": {"app": (Block(0b10, "memory", 1), Block(0b1, "hugepages-2Mi", 0))}}
    told = [str(fault) for fault in attrs.evolve(sound, grants=grants).faults()]
    assert "[1] memory 1: the state does not list NUMA node 1 @ $.entries.a.app[0]" in told
    assert "[0] hugepages-2Mi 0: NUMA node 0 lists no hugepages-2Mi @ $.entries.a.app[1]" in told


def test_replay_refuses_what_does_not_fit() -> None:
    """Nothing is half applied."""
    layout = static(1, 1).state.layout
    with pytest.raises(
        DecodeError, match="3221225472 bytes of memory are held on NUMA nodes 0-1, which have"
    ):
        replay(layout, {"a": {"app": (Block(0b11, "memory", 3 * GIB),)}})
    with pytest.raises(DecodeError, match="not on NUMA nodes of the machine"):
        replay(layout, {"a": {"app": (Block(0b100, "memory", 1),)}})


def test_a_record_has_the_kubelets_figures() -> None:
    """One allocation on a group of two nodes, as `memory_manager_state` has it."""
    record = holding(static(1, 1), a=(1.5, None)).to_kubelet()
    assert record.policy_name == "Static"
    assert record.machine_state == {
        0: MemoryNode(
            number_of_assignments=1,
            cells=(0, 1),
            memory_map={
                "memory": StoredTable(total=GIB, system_reserved=0, allocatable=GIB, reserved=GIB, free=0)
            },
        ),
        1: MemoryNode(
            number_of_assignments=1,
            cells=(0, 1),
            memory_map={
                "memory": StoredTable(
                    total=GIB, system_reserved=0, allocatable=GIB, reserved=GIB // 2, free=GIB // 2
                )
            },
        ),
    }
    block = MemoryBlock(numa_affinity=(0, 1), type="memory", size=GIB * 3 // 2)
    assert record.entries == {"a": {"app": (block,)}}


def test_policy_none_is_recorded_by_name_alone() -> None:
    """As a kubelet without the static policy does."""
    record = UnpinnedMemory().to_kubelet()
    assert record.marshal() == b'{"policyName":"None","machineState":{},"checksum":4236770233}'
    assert from_kubelet(record) == RecordedMemory(policy=MemoryPolicy.NONE)


def test_a_record_that_cannot_be_is_refused_with_every_fault() -> None:
    """Policy, node ids, blocks without nodes, memory of whole pods."""
    record = MemoryManagerState(
        policy_name="Fancy",
        layout=MemoryLayout.V2,
        machine_state={-1: MemoryNode(number_of_assignments=0, cells=(70_000,))},
        entries={"a": {"app": (MemoryBlock(numa_affinity=None, type="memory", size=1),), "idle": None}},
        pod_entries={"b": ()},
    )
    with pytest.raises(DecodeError) as caught:
        from_kubelet(record)
    assert [fault.path for fault in caught.value.faults] == [
        "$.policyName",
        "$.podEntries['b']",
        "$.machineState[-1]",
        "$.machineState[-1].cells",
        "$.entries['a']['app'][0].numaAffinity",
    ]


def test_nil_lists_are_nothing() -> None:
    """Where the kubelet wrote null, nothing is held."""
    record = MemoryManagerState(
        policy_name="Static",
        machine_state={3: MemoryNode(number_of_assignments=0, memory_map=None, cells=None)},
        entries={"a": {"app": None}},
    )
    found = from_kubelet(record)
    assert found.grants == {"a": {"app": ()}}
    assert [(node.group, node.tables) for node in found.nodes] == [(0b1000, {})]


def test_states_compare_by_what_they_hold() -> None:
    """The count of changes is no part of it."""
    allocator = static(4)
    there = holding(allocator, a=(1, 1)).release("a")
    assert there == allocator
    assert there.state.generation == 2
    assert MemoryState.empty(allocator.state.layout) == allocator.state


def test_options_survive_a_restore(tmp_path: Path) -> None:
    """The plan's allocator is today's, with what was remembered in it."""
    options = MemoryOptions(strict=True)
    today = attrs.evolve(static(4), options=options)
    path = tmp_path / "memory_manager_state"
    path.write_bytes(holding(static(4), a=(1, 1)).to_kubelet().marshal())
    plan = today.plan_restore(from_kubelet(MemoryManagerState.unmarshal(path.read_bytes())))
    assert isinstance(plan.allocator, MemoryAllocator)
    assert plan.allocator.options == options
    assert str(plan.allocator.mems_of(Owner("a", "app"))) == "0"
