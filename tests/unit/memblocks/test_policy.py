"""Which nodes a claim gets: one behaviour each, on tiny machines."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from nodealloc.errors import ConfigurationError
from nodealloc.machine import Machine, NumaNode
from nodealloc.memblocks import (
    Block,
    MemoryAllocator,
    MemoryOptions,
    MemoryPolicy,
    UnpinnedMemory,
)
from nodealloc.memblocks._abilities import nodes_of
from nodealloc.podspec import Quantity
from nodealloc.testing.memblocks import check_books
from nodealloc.testing.topology import check_allocator, workload
from nodealloc.topology import Claim, ClaimKind, NumaTopology, Owner, Shortfall, TopologyHint

GIB = 1 << 30
MIB = 1 << 20
ANY = TopologyHint(None, preferred=False)


def machine(*memory_gib: float, huge_2mi: int = 0) -> Machine:
    """NUMA nodes 0, 1, … with that much memory beside their huge pages."""
    return Machine(
        cpus=(),
        numa_nodes=tuple(
            NumaNode(
                id=node, memory_bytes=int(size * GIB) + huge_2mi * 2 * MIB, hugepages={2 * MIB: huge_2mi}
            )
            for node, size in enumerate(memory_gib)
        ),
    )


def static(*memory_gib: float, options: MemoryOptions | None = None, huge_2mi: int = 0) -> MemoryAllocator:
    """The static policy on such a machine, nothing reserved."""
    made = MemoryAllocator.of(machine(*memory_gib, huge_2mi=huge_2mi), options=options)
    assert isinstance(made, MemoryAllocator)
    return made


def claim(
    key: str,
    member: str = "app",
    /,
    *,
    gib: float = 1,
    kind: ClaimKind = ClaimKind.MAIN,
    reuse: tuple[str, ...] = (),
    exclusive: bool = True,
    more: Mapping[str, int] | None = None,
) -> Claim:
    """A claim of so much memory, and of `more` by resource name in bytes."""
    amounts = {"memory": Quantity.of(int(gib * GIB))}
    amounts |= {name: Quantity.of(size) for name, size in (more or {}).items()}
    return Claim(owner=Owner(key, member), amounts=amounts, kind=kind, reuse=reuse, exclusive=exclusive)


def on(mask: int, *, preferred: bool = True) -> TopologyHint:
    """A merged affinity."""
    return TopologyHint(mask, preferred)


def granted(allocator: MemoryAllocator, *steps: tuple[Claim, TopologyHint]) -> MemoryAllocator:
    """The allocator with all of these granted, one after the other."""
    for asked, affinity in steps:
        answer = allocator.allocate(asked, affinity)
        assert isinstance(answer, MemoryAllocator), answer
        check_books(answer)
        allocator = answer
    return allocator


def refused(allocator: MemoryAllocator, asked: Claim, affinity: TopologyHint) -> Shortfall:
    """Why the claim is refused."""
    answer = allocator.allocate(asked, affinity)
    assert isinstance(answer, Shortfall)
    return answer


def hints(allocator: MemoryAllocator, *claims: Claim) -> list[tuple[int | None, bool]]:
    """Hints for memory."""
    return [(mask, preferred) for mask, preferred in allocator.hints(claims).get("memory") or ()]


def test_a_free_machine_offers_every_set_of_nodes() -> None:
    """By size, then by ids; the narrowest that could ever serve are preferred."""
    assert hints(static(1, 2, 2), claim("a", gib=2)) == [
        (0b010, True),
        (0b100, True),
        (0b011, False),
        (0b101, False),
        (0b110, False),
        (0b111, False),
    ]


def test_preferred_means_no_fewer_nodes_could_ever_serve() -> None:
    """A claim larger than any node prefers two nodes."""
    assert hints(static(2, 2, 2), claim("a", gib=3)) == [
        (0b011, True),
        (0b101, True),
        (0b110, True),
        (0b111, False),
    ]


def test_all_resources_have_the_same_hints() -> None:
    """A claim's memory and huge pages come from one group of nodes."""
    allocator = static(4, 4, huge_2mi=2)
    asked = claim("a", more={"hugepages-2Mi": 6 * MIB})
    answer = allocator.hints([asked])
    assert answer["hugepages-2Mi"] == answer["memory"] == (TopologyHint(0b11, preferred=True),)
    after = granted(allocator, (asked, on(0b11)))
    assert [str(block) for block in after.blocks_of(Owner("a", "app"))] == [
        "[0 1] hugepages-2Mi 6291456",
        "[0 1] memory 1073741824",
    ]


def test_what_fits_nowhere_has_no_hints_and_is_refused_with_the_figures() -> None:
    """As in the kubelet, the refusal comes from allocation; it says that it never fits."""
    allocator = static(1, 1)
    assert allocator.hints([claim("a", gib=3)]) == {}
    why = refused(allocator, claim("a", gib=3), ANY)
    assert (why.resource, why.wanted, why.free, why.nodes) == ("memory", 3 * GIB, 2 * GIB, None)
    assert why.reason == "UnexpectedAdmissionError"
    assert "never fits: all nodes together can grant 2 GiB" in why.detail


def test_without_affinity_the_narrowest_group_serves() -> None:
    """Of several the numerically smallest mask, although 0-3 stands before 1-2 in the list of hints."""
    one = granted(static(2, 2, 2, 2), (claim("a", gib=1), ANY))
    assert str(one.mems_of(Owner("a", "app"))) == "0"
    allocator = granted(
        static(1, 2, 2, 3), (claim("x", gib=0.5), on(0b0001)), (claim("y", gib=0.5), on(0b1000))
    )
    assert str(granted(allocator, (claim("a", gib=4), ANY)).mems_of(Owner("a", "app"))) == "1-2"


def test_an_affinity_too_small_is_widened() -> None:
    """The merged affinity may be a part of the group that was offered; the group is used."""
    after = granted(static(2, 2), (claim("a", gib=3), on(0b10)))
    assert after.blocks_of(Owner("a", "app")) == (Block(0b11, "memory", 3 * GIB),)
    assert after.state.free[-1] == (0, GIB)


def test_an_affinity_that_cannot_be_widened_is_refused() -> None:
    """It says which nodes would have served."""
    allocator = granted(static(2, 2, 2), (claim("a", gib=2), on(0b001)))
    why = refused(allocator, claim("b", gib=1), on(0b001))
    assert why.nodes == 0b001
    assert "would fit on NUMA nodes 1, 2, 1-2; let the other resources go there" in why.detail


def test_a_preferred_affinity_is_not_widened_beyond_need() -> None:
    """A group that is larger than ever needed is no answer to a preferred affinity."""
    allocator = granted(static(4, 4), (claim("a", gib=6), ANY))
    asked = claim("b", gib=2)
    assert hints(allocator, asked) == [(0b11, False)]
    why = refused(allocator, asked, on(0b01))
    assert "more nodes than would ever be needed" in why.detail
    assert str(granted(allocator, (asked, on(0b01, preferred=False))).mems_of(Owner("b", "app"))) == "0-1"


def test_a_node_of_its_own_joins_no_group() -> None:
    """Nodes 0 and 1 are free enough together, but node 0 serves an allocation of its own."""
    allocator = granted(static(8, 8), (claim("a", gib=0.25), on(0b01)))
    assert allocator.hints([claim("b", gib=9)]) == {}
    why = refused(allocator, claim("b", gib=9), ANY)
    assert "but allocations on single nodes keep 0 out of any group: release those" in why.detail
    assert "fits an idle machine on 2 NUMA nodes" in why.detail


def test_a_wide_affinity_through_used_nodes_is_refused() -> None:
    """The affinity has the bytes, but cuts through a node that serves its own allocations."""
    allocator = granted(static(8, 8), (claim("a"), on(0b01)))
    why = refused(allocator, claim("b"), on(0b11, preferred=False))
    assert "cuts through nodes or groups" in why.detail


def test_falling_back_takes_another_group_where_nobody_prefers_the_affinity() -> None:
    """The same claim, with the option: best-effort means best effort."""
    allocator = granted(static(8, 8, options=MemoryOptions(fall_back=True)), (claim("a"), on(0b01)))
    assert str(granted(allocator, (claim("b"), on(0b11, preferred=False))).mems_of(Owner("b", "app"))) == "0"
    refused(allocator, claim("b"), on(0b11, preferred=True))


def test_a_group_serves_only_its_own() -> None:
    """Nodes of a group are offered as that group, not one by one and not with others."""
    allocator = granted(static(2, 2, 2), (claim("a", gib=3), on(0b011)))
    assert hints(allocator, claim("b", gib=0.5)) == [(0b100, True), (0b011, False)]


def test_a_single_node_of_a_group_is_granted_as_the_kubelet_does_it() -> None:
    """By default the merged affinity wins, and the books still add up when all is gone."""
    allocator = granted(static(4, 4), (claim("a", gib=5), ANY), (claim("b", gib=2), on(0b10)))
    assert str(allocator.mems_of(Owner("b", "app"))) == "1"
    assert [node.group for node in allocator.tables()] == [0b11, 0b10]
    check_books(allocator.release("a"))
    assert allocator.release("a").release("b") == static(4, 4)


def test_books_that_would_contradict_the_grants_are_made_anew() -> None:
    """Bytes of a group came back to a node of which a neighbour holds a part by itself."""
    allocator = granted(static(5, 5), (claim("a", gib=5), on(0b11)), (claim("b", gib=2), on(0b11))).release(
        "b"
    )
    allocator = granted(allocator, (claim("s", gib=2), on(0b01)))
    assert [node.group for node in allocator.tables()] == [0b01, 0b11]
    assert allocator.state.free[-1] == (0, 3 * GIB)
    left = allocator.release("a")
    check_books(left)
    assert left.state.free[-1] == (3 * GIB, 5 * GIB)
    assert left.release("s") == static(5, 5)


def test_strict_widens_a_single_node_to_its_group() -> None:
    """With the option no node serves both."""
    strict = MemoryOptions(strict=True)
    allocator = granted(static(4, 4, options=strict), (claim("a", gib=5), ANY))
    after = granted(allocator, (claim("b", gib=2), on(0b10, preferred=False)))
    assert str(after.mems_of(Owner("b", "app"))) == "0-1"


def test_the_last_allocation_of_a_group_frees_its_nodes() -> None:
    """Afterwards each node stands alone again."""
    allocator = granted(static(2, 2), (claim("a", gib=3), ANY), (claim("b", gib=1), ANY))
    assert [node.assignments for node in allocator.tables()] == [2, 2]
    assert allocator.release("a").release("b") == static(2, 2)


def test_huge_pages_of_several_sizes_on_one_group() -> None:
    """Each resource is one block; all count on every node of the group."""
    nodes = tuple(NumaNode(id=node, memory_bytes=8 * GIB, hugepages={2 * MIB: 4, GIB: 2}) for node in (0, 4))
    allocator = MemoryAllocator.of(Machine(cpus=(), numa_nodes=nodes))
    assert isinstance(allocator, MemoryAllocator)
    asked = claim("a", gib=1, more={"hugepages-1Gi": 3 * GIB, "hugepages-2Mi": 2 * MIB})
    after = granted(allocator, (asked, ANY))
    assert str(after.mems_of(Owner("a", "app"))) == "0,4"
    assert [node.assignments for node in after.tables()] == [3, 3]
    assert [node.tables["hugepages-1Gi"].free for node in after.tables()] == [0, GIB]


def test_init_memory_is_used_again() -> None:
    """The app takes the init member's bytes first; the blocks always add up to what is held."""
    init = claim("a", "init", gib=3, kind=ClaimKind.INIT)
    app = claim("a", "app", gib=2, reuse=("idle", "init"))
    after = granted(static(4), (init, on(1)), (app, on(1)))
    assert after.state.free[-1] == (GIB,)
    assert [
        block.size_bytes for block in after.blocks_of(Owner("a", "init")) + after.blocks_of(Owner("a", "app"))
    ] == [
        1 * GIB,
        2 * GIB,
    ]
    both = granted(after, (claim("a", "app2", gib=2, reuse=("init",)), on(1)))
    assert both.state.free[-1] == (0,)
    assert both.release("a") == static(4)


def test_init_memory_elsewhere_is_not_used_again() -> None:
    """Only bytes on exactly the same group can be."""
    init = claim("a", "init", gib=1, kind=ClaimKind.INIT)
    after = granted(static(4, 4), (init, on(0b01)), (claim("a", "app", reuse=("init",)), on(0b10)))
    assert after.state.free[-1] == (3 * GIB, 3 * GIB)


def test_a_sidecar_lends_nothing_and_borrows() -> None:
    """It reuses what an ended init member left, and keeps it."""
    init = claim("a", "init", gib=2, kind=ClaimKind.INIT)
    sidecar = claim("a", "proxy", gib=1, kind=ClaimKind.SIDECAR, reuse=("init",))
    app = claim("a", "app", gib=2, reuse=("init",))
    after = granted(static(4), (init, on(1)), (sidecar, on(1)), (app, on(1)))
    assert after.state.free[-1] == (GIB,)
    assert [after.blocks_of(Owner("a", name))[0].size_bytes for name in ("init", "proxy", "app")] == [
        0,
        GIB,
        2 * GIB,
    ]


def test_hints_count_what_may_be_reused() -> None:
    """A full node is offered to the member that can reuse what is there."""
    init = claim("a", "init", gib=4, kind=ClaimKind.INIT)
    after = granted(static(4, 4), (init, on(0b01)))
    assert hints(after, claim("a", "app", gib=4, reuse=("init",))) == [(0b01, True), (0b10, True)]
    assert hints(after, claim("b", "app", gib=4)) == [(0b10, True)]


def test_a_workload_is_hinted_at_its_peak() -> None:
    """Init members run one after the other, sidecars beside all that follows."""
    claims = (
        claim("a", "init", gib=3, kind=ClaimKind.INIT),
        claim("a", "proxy", gib=1, kind=ClaimKind.SIDECAR),
        claim("a", "app", gib=2),
    )
    assert hints(static(3, 2), *claims) == [(0b01, True), (0b11, False)]


def test_what_only_init_members_ask_for_counts_in_strict_alone() -> None:
    """The kubelet leaves such huge pages out of a pod's hints."""
    claims = (
        claim("a", "init", kind=ClaimKind.INIT, more={"hugepages-2Mi": 2 * MIB}),
        claim("a", "app", reuse=("init",)),
    )
    assert set(static(2, huge_2mi=4).hints(claims)) == {"memory"}
    strict = static(2, huge_2mi=4, options=MemoryOptions(strict=True))
    assert set(strict.hints(claims)) == {"memory", "hugepages-2Mi"}


def test_claims_that_are_not_exclusive_get_nothing() -> None:
    """Pods of another class than Guaranteed roam over all nodes."""
    shared = claim("a", exclusive=False)
    allocator = static(4)
    assert allocator.hints([shared]) == {}
    assert allocator.allocate(shared, ANY) is allocator


def test_a_claim_without_memory_gets_nothing() -> None:
    """Other resources are none of its business, and 0 bytes are no request."""
    allocator = static(4, huge_2mi=1)
    amounts = {"cpu": Quantity.of(2), "memory": Quantity.of(0), "hugepages-1Gi": Quantity.of(0)}
    asked = Claim(owner=Owner("a", "app"), amounts=amounts)
    assert allocator.hints([asked]) == {}
    assert allocator.allocate(asked, ANY) is allocator


@pytest.mark.parametrize(
    ("resource", "amount", "told"),
    [
        ("memory", "100m", "whole bytes"),
        ("hugepages-2Mi", "3Mi", "pages of 2097152 bytes"),
        ("hugepages-1Gi", "1Gi", "no pool of that page size; it has hugepages-2Mi, memory"),
        ("hugepages-junk", "1Gi", "does not know that page size"),
    ],
)
def test_amounts_that_no_node_can_grant_are_named(resource: str, amount: str, told: str) -> None:
    """Fractions of a byte or page, and unknown page sizes: no hints, and a shortfall with the amount."""
    allocator = static(4, huge_2mi=4)
    asked = Claim(owner=Owner("a", "app"), amounts={resource: Quantity.parse(amount)})
    whole = (asked, claim("a", "other"))
    assert allocator.hints([asked]) == allocator.hints(whole) == {}
    why = refused(allocator, asked, ANY)
    assert why.resource == resource
    assert told in why.detail
    assert allocator.availability([asked])[0].resource == resource


def test_an_affinity_outside_the_machine_is_refused() -> None:
    """Nodes that memory does not know cannot serve; known ones beside them can."""
    assert "no node of this machine" in refused(static(4), claim("a"), on(0b100)).detail
    assert str(granted(static(4), (claim("a"), on(0b101))).mems_of(Owner("a", "app"))) == "0"


def test_releasing_one_member_keeps_the_others() -> None:
    """An unknown member or workload changes nothing."""
    allocator = granted(static(4), (claim("a", "one"), on(1)), (claim("a", "two"), on(1)))
    left = allocator.release("a", "one")
    assert left == granted(static(4), (claim("a", "two"), on(1)))
    assert allocator.release("a", "none") is allocator
    assert allocator.release("b") is allocator


def test_availability_shows_free_and_allocatable() -> None:
    """At the peak of what is asked, by node."""
    allocator = granted(static(4, 2), (claim("a"), on(0b01)))
    (shown,) = allocator.availability([claim("b", gib=2)])
    assert (shown.resource, shown.wanted) == ("memory", 2 * GIB)
    assert shown.free == {0: 3 * GIB, 1: 2 * GIB}
    assert shown.allocatable == {0: 4 * GIB, 1: 2 * GIB}


def test_policy_none_pins_nothing() -> None:
    """No hints, no blocks, the same value for ever."""
    with pytest.raises(ConfigurationError, match="UnpinnedMemory"):
        MemoryAllocator.of(machine(4), policy=MemoryPolicy.NONE)
    allocator = UnpinnedMemory()
    assert allocator.hints([claim("a")]) == {}
    assert allocator.allocate(claim("a"), on(1)) is allocator.release("a") is allocator
    assert allocator.availability([claim("a")]) == ()


def test_best_effort_decides_like_static() -> None:
    """Only its name differs."""
    allocator = MemoryAllocator.of(machine(4, 4), policy=MemoryPolicy.BEST_EFFORT)
    assert isinstance(allocator, MemoryAllocator)
    assert allocator.policy is MemoryPolicy.BEST_EFFORT
    after = granted(allocator, (claim("a", gib=5), ANY))
    assert after.state == granted(static(4, 4), (claim("a", gib=5), ANY)).state
    assert after.release("a").policy is MemoryPolicy.BEST_EFFORT


def test_a_static_allocator_cannot_be_called_none() -> None:
    """The policy `None` is another class."""
    with pytest.raises(ValueError, match="expected Static or BestEffort; for None take UnpinnedMemory"):
        MemoryAllocator(state=static(1).state, policy=MemoryPolicy.NONE)


ASKED = workload(
    "a",
    {"memory": GIB, "hugepages-2Mi": 2 * MIB},
    {"memory": 2 * GIB},
    {"memory": 3 * GIB},
    {"cpu": 1},
)


def test_admission_can_rely_on_it() -> None:
    """It passes the check that every allocator has to pass, on groups of nodes in strict mode."""
    strict = MemoryOptions(strict=True, fall_back=True)
    check_allocator(static(4, 4, huge_2mi=4, options=strict), ASKED, NumaTopology(nodes=(0, 1)))
    check_allocator(static(8, huge_2mi=4), ASKED, NumaTopology(nodes=(0,)))
    none = UnpinnedMemory()
    check_allocator(none, ASKED, NumaTopology(nodes=(0,)))


def test_by_default_bytes_move_inside_a_group_as_in_the_kubelet() -> None:
    """They go back to the first node that lacks some; for the group nothing changes."""
    before = granted(static(4, 4), (claim("a", gib=3), on(0b11)))
    after = granted(before, (claim("b", gib=2), on(0b11))).release("b")
    assert before.state.free[-1] == (1 * GIB, 4 * GIB)
    assert after.state.free[-1] == (2 * GIB, 3 * GIB)
    assert after.state.grants == before.state.grants


def test_mems_lists_the_nodes_of_all_blocks() -> None:
    """Ready for cpuset.mems; nothing held leaves the parent's nodes."""
    assert str(nodes_of([Block(0b1, "memory", 1), Block(0b11100, "hugepages-2Mi", 0)])) == "0,2-4"
    assert nodes_of([]) is None
    assert str(Block(0b110, "memory", 5).node_set) == "1-2"


def test_a_block_needs_nodes() -> None:
    """A mask of 0 would be memory nowhere."""
    with pytest.raises(ValueError, match="nodes"):
        Block(0, "memory", 1)
