"""Laws of memory: no byte twice, none lost, and a state that forgets how it came about."""

from __future__ import annotations

import pickle
import random
from functools import partial

import attrs
from hypothesis import given
from hypothesis import strategies as st

from nodealloc.checkpoint import MemoryManagerState
from nodealloc.memblocks import MemoryAllocator
from nodealloc.memblocks._codec import from_kubelet
from nodealloc.memblocks._granting import replay
from nodealloc.testing.memblocks import check_books
from nodealloc.testing.strategies.memblocks import (
    Admission,
    MemoryRemoval,
    memory_allocators,
    memory_histories,
    memory_workloads,
)
from nodealloc.topology import (
    Admitted,
    Claim,
    NumaTopology,
    Owner,
    Policy,
    PolicyName,
    Refusal,
    Scope,
    Shortfall,
    Snapshot,
    TopologyHint,
    Workload,
    admit,
    peak,
    release,
)

ANY = TopologyHint(None, preferred=False)


def offered(allocator: MemoryAllocator, *claims: Claim) -> list[TopologyHint]:
    """The hints of one claim, or of a whole workload; all resources have the same."""
    found = [*allocator.hints(claims).values()]
    return [*(found[0] or ())] if found else []


def after(allocator: MemoryAllocator, step: Admission | MemoryRemoval) -> MemoryAllocator:
    """One step on: a workload is let in as a whole or not at all."""
    if isinstance(step, MemoryRemoval):
        members = [*allocator.state.grants.get(step.key, {})]
        if step.member is None or not members:
            return allocator.release(step.key)
        return allocator.release(step.key, members[step.member % len(members)])
    tried = allocator
    for place, claim in enumerate(step.workload.claims):
        granted = tried.allocate(claim, step.affinity(place, offered(tried, claim)))
        if isinstance(granted, Shortfall):
            return allocator
        tried = granted
    return tried


def held_bytes(allocator: MemoryAllocator, key: str, resource: str) -> int:
    """Bytes of one resource that a workload holds."""
    members = allocator.state.grants.get(key, {})
    return sum(
        block.size_bytes for blocks in members.values() for block in blocks if block.resource == resource
    )


def asked(resource: str, claim: Claim) -> int:
    """Bytes of one resource that a claim asks for."""
    return claim.amounts[resource].value if resource in claim.amounts else 0


@given(allocator=memory_allocators(), steps=memory_histories())
def test_no_byte_is_granted_twice_or_lost(
    allocator: MemoryAllocator, steps: list[Admission | MemoryRemoval]
) -> None:
    """After every step the books add up, and taking all workloads away restores the beginning."""
    empty = allocator
    for step in steps:
        allocator = after(allocator, step)
        check_books(allocator)
    for key in [*allocator.state.grants]:
        allocator = allocator.release(key)
        check_books(allocator)
    assert allocator == empty


@given(allocator=memory_allocators(), steps=memory_histories(), workload=memory_workloads("late"))
def test_release_gives_back_exactly_what_was_taken(
    allocator: MemoryAllocator, steps: list[Admission | MemoryRemoval], workload: Workload
) -> None:
    """A workload that comes and goes leaves every group of nodes with the bytes that it had."""
    for step in steps:
        allocator = after(allocator, step)
    come = after(allocator, Admission(workload, (1,)))
    gone = come.release("late")
    check_books(gone)
    assert gone.state.grants == allocator.state.grants
    assert [sum(row) for row in gone.state.free] == [sum(row) for row in allocator.state.free]
    if allocator.options.strict:
        assert gone == allocator


@given(allocator=memory_allocators(strict=True), steps=memory_histories(), seed=st.integers(0, 99))
def test_a_strict_state_is_the_replay_of_its_grants(
    allocator: MemoryAllocator, steps: list[Admission | MemoryRemoval], seed: int
) -> None:
    """Whatever happened before, the state is what its grants make, in any order."""
    for step in steps:
        allocator = after(allocator, step)
    state = allocator.state
    keys = [*state.grants]
    random.Random(seed).shuffle(keys)
    again = replay(state.layout, {key: state.grants[key] for key in keys})
    assert again == state
    assert attrs.evolve(again, grants=state.grants) == state


@given(allocator=memory_allocators(), steps=memory_histories(), workload=memory_workloads("new"))
def test_every_hint_is_one_that_allocation_accepts(
    allocator: MemoryAllocator, steps: list[Admission | MemoryRemoval], workload: Workload
) -> None:
    """What is offered for a claim can be had, on exactly those nodes."""
    for step in steps:
        allocator = after(allocator, step)
    for claim in workload.claims:
        hints = offered(allocator, claim)
        for hint in hints:
            granted = allocator.allocate(claim, hint)
            assert isinstance(granted, MemoryAllocator), (hint, granted)
            assert {block.nodes for block in granted.blocks_of(Owner("new", claim.owner.member))} == {
                hint.affinity
            }
        if hints:
            granted = allocator.allocate(claim, hints[0])
            assert isinstance(granted, MemoryAllocator)
            allocator = granted


@given(allocator=memory_allocators(strict=True), steps=memory_histories(), workload=memory_workloads("new"))
def test_every_hint_of_a_whole_workload_serves_all_of_it(
    allocator: MemoryAllocator, steps: list[Admission | MemoryRemoval], workload: Workload
) -> None:
    """With hints for the peak of a workload, its members fit one after the other."""
    for step in steps:
        allocator = after(allocator, step)
    hints = offered(allocator, *workload.claims)
    for hint in hints:
        tried = allocator
        for claim in workload.claims:
            granted = tried.allocate(claim, hint)
            assert isinstance(granted, MemoryAllocator), (hint, claim, granted)
            tried = granted
        assert {block.nodes for blocks in tried.state.grants["new"].values() for block in blocks} == {
            hint.affinity
        }


@given(allocator=memory_allocators(), workload=memory_workloads("only"))
def test_a_workload_on_one_group_holds_its_peak(allocator: MemoryAllocator, workload: Workload) -> None:
    """Reuse makes a workload hold what it needs at one moment, and no more."""
    hints = offered(allocator, *workload.claims)
    if not hints:
        return
    for claim in workload.claims:
        granted = allocator.allocate(claim, hints[0])
        if isinstance(granted, Shortfall):
            return
        allocator = granted
    groups = {block.nodes for blocks in allocator.state.grants["only"].values() for block in blocks}
    if len(groups) != 1:
        return
    for resource in allocator.state.layout.resources:
        wanted = peak(workload.claims, partial(asked, resource))
        assert held_bytes(allocator, "only", resource) == wanted


@given(allocator=memory_allocators(), steps=memory_histories(), workload=memory_workloads("again"))
def test_held_claims_are_granted_again_as_they_are(
    allocator: MemoryAllocator, steps: list[Admission | MemoryRemoval], workload: Workload
) -> None:
    """Asking for what is held changes nothing, and its hint is where it is."""
    for step in steps:
        allocator = after(allocator, step)
    allocator = after(allocator, Admission(workload, (0,)))
    for claim in workload.claims:
        blocks = allocator.blocks_of(Owner("again", claim.owner.member))
        if blocks:
            assert allocator.allocate(claim, ANY) == allocator
            assert {hint.affinity for hint in offered(allocator, claim)} == {blocks[0].nodes}
            assert allocator.mems_of(claim.owner) == blocks[0].node_set


@given(allocator=memory_allocators(), steps=memory_histories())
def test_records_and_pickles_restore_the_state(
    allocator: MemoryAllocator, steps: list[Admission | MemoryRemoval]
) -> None:
    """Through the kubelet's bytes and back, on the same machine, everything is as it was."""
    empty = allocator
    for step in steps:
        allocator = after(allocator, step)
    data = allocator.to_kubelet().marshal()
    record = MemoryManagerState.unmarshal(data)
    record.verify()
    plan = empty.plan_restore(from_kubelet(record))
    assert (plan.move, plan.evict, plan.drifts, plan.faults) == ((), (), (), ())
    assert plan.allocator == allocator
    assert allocator.to_kubelet().marshal() == data
    assert pickle.loads(pickle.dumps(allocator)) == allocator  # noqa: S301  our own bytes


@given(
    allocator=memory_allocators(),
    steps=memory_histories(),
    change=st.lists(st.sampled_from([-(1 << 30), -(1 << 20), 0, 0, 1 << 20]), min_size=4, max_size=4),
)
def test_a_machine_that_shrank_keeps_what_fits(
    allocator: MemoryAllocator, steps: list[Admission | MemoryRemoval], change: list[int]
) -> None:
    """Everybody is kept, moved or evicted; the books add up, and who is kept is where he was."""
    for step in steps:
        allocator = after(allocator, step)
    layout = allocator.state.layout
    usable, total = [*layout.allocatable], [*layout.total]
    bytes_now = [max(size + change[i % 4], 0) for i, size in enumerate(usable[-1])]
    total[-1] = tuple(t + now - was for t, now, was in zip(total[-1], bytes_now, usable[-1], strict=True))
    usable[-1] = tuple(bytes_now)
    today = attrs.evolve(layout, allocatable=tuple(usable), total=tuple(total))
    empty = attrs.evolve(allocator, state=type(allocator.state).empty(today))
    plan = empty.plan_restore(allocator.recorded())
    assert isinstance(plan.allocator, MemoryAllocator)
    check_books(plan.allocator)
    owners = {*plan.keep, *(one.owner for one in plan.move), *(one.owner for one in plan.evict)}
    assert len(owners) == len(plan.keep) + len(plan.move) + len(plan.evict)
    assert len(owners) == sum(map(len, allocator.state.grants.values()))
    for owner in plan.keep:
        assert plan.allocator.state.blocks(owner) == allocator.state.blocks(owner)
    assert all(one.after == plan.allocator.state.blocks(one.owner) != one.before for one in plan.move)
    assert not any(plan.allocator.state.blocks(one.owner) for one in plan.evict)
    assert len(plan.drifts) == sum(was != now for was, now in zip(layout.total[-1], total[-1], strict=True))


@given(
    allocator=memory_allocators(strict=True),
    steps=memory_histories(),
    workload=memory_workloads("asked"),
    scope=st.sampled_from(Scope),
)
def test_no_merge_ends_in_a_refusal_by_memory(
    allocator: MemoryAllocator, steps: list[Admission | MemoryRemoval], workload: Workload, scope: Scope
) -> None:
    """Under best-effort, strict and falling back, memory refuses only what has no hint at all."""
    allocator = attrs.evolve(allocator, options=attrs.evolve(allocator.options, fall_back=True))
    for step in steps:
        allocator = after(allocator, step)
    node = Snapshot(
        numa=NumaTopology(nodes=allocator.state.layout.nodes),
        policy=Policy(name=PolicyName.BEST_EFFORT),
        scope=scope,
        allocators=(allocator,),
    )
    verdict = admit(node, workload)
    if isinstance(verdict, Refusal):
        assert verdict.shortfall is not None
        assert scope is Scope.CONTAINER or not allocator.hints(workload.claims)
    else:
        assert isinstance(verdict, Admitted)
        assert release(verdict.snapshot, "asked").allocators == (allocator,)
