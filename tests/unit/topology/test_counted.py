"""Nodes that all hold everything, more of them than any list could name."""

from __future__ import annotations

import pickle

import attrs
import pytest

from nodealloc.cpuset import CpuAllocator
from nodealloc.devices import Device, DeviceAllocator, DeviceList, Inventory, PluginOptions, device_hints
from nodealloc.machine import machine_from_text
from nodealloc.memblocks import MemoryAllocator
from nodealloc.podspec import Quantity
from nodealloc.topology import (
    Claim,
    CountedHints,
    Feasibility,
    HintError,
    Hints,
    MaskOutsideError,
    Need,
    NotYet,
    NumaTopology,
    Owner,
    Placed,
    Policy,
    PolicyName,
    Refusal,
    Scope,
    Shortfall,
    Snapshot,
    TopologyHint,
    WorkLimitError,
    Workload,
    admit,
    explain,
    merge,
    node_masks,
    release,
)
from nodealloc.topology._verdicts import TOPOLOGY_WORK_LIMIT

GPU, NIC = "example.com/gpu", "example.com/nic"
GIB = 1 << 30
RESTRICTED = Policy(name=PolicyName.RESTRICTED)
BEST_EFFORT = Policy(name=PolicyName.BEST_EFFORT)


def devices(nodes: int, **each: int) -> DeviceAllocator:
    """So many devices of a resource on each node."""
    found = DeviceAllocator(nodes=tuple(range(nodes)))
    for name, count in each.items():
        ids = [
            Device(f"{name}-{node:02}-{k}", numa_nodes=1 << node)
            for node in range(nodes)
            for k in range(count)
        ]
        blank = Inventory(resource=f"example.com/{name}").registered(1, now_s=0.0)
        listed = blank.listed(1, DeviceList.of(ids, nodes=range(nodes)), PluginOptions(), now_s=0.0)
        found = found.with_inventory(listed)
    return found


def node(nodes: int, policy: Policy = RESTRICTED, *, scope: Scope = Scope.CONTAINER) -> Snapshot:
    """Nodes of 8 CPUs, 16 GiB with two sizes of huge pages, a GPU and two NICs each."""
    machine = machine_from_text(f"{nodes} numa x 8 cores, memory=16Gi, hugepages=2Mi:512/1Gi:2")
    return Snapshot(
        numa=NumaTopology(nodes=tuple(machine.nodes), distances=machine.distances or {}),
        policy=policy,
        scope=scope,
        allocators=(
            CpuAllocator.of(machine),
            MemoryAllocator.of(machine),
            devices(nodes, gpu=1, nic=2),
        ),
    )


def job(key: str, *members: dict[str, int]) -> Workload:
    """A workload of main members."""
    return Workload(
        key=key,
        claims=tuple(
            Claim(
                owner=Owner(key, f"m{place}"),
                amounts={name: Quantity.of(size) for name, size in amounts.items()},
            )
            for place, amounts in enumerate(members)
        ),
    )


def let_in(verdict: Placed | Refusal | NotYet) -> Snapshot:
    """The node with the workload in it."""
    assert isinstance(verdict, Placed), str(verdict)
    return verdict.snapshot


def affinity(verdict: Placed | Refusal | NotYet) -> int | None:
    """Of the only member."""
    assert isinstance(verdict, Placed), str(verdict)
    (hint,) = verdict.affinity.values()
    return hint.affinity


@pytest.mark.parametrize(
    ("nodes", "width"), [(12, 7), (13, 7), (14, 6), (16, 6), (20, 6), (32, 13), (64, 31)]
)
def test_cpus_and_devices_are_placed_on_any_part_of_a_machine(nodes: int, width: int) -> None:
    """8 CPUs and a GPU a node: so many whole nodes are the lowest ones, preferred."""
    asked = job("a", {"cpu": 8 * width, GPU: width})
    assert affinity(admit(node(nodes), asked)) == (1 << width) - 1


@pytest.mark.parametrize("nodes", [8, 10, 12, 32, 64])
def test_cpus_and_memory_are_placed_on_every_other_node(nodes: int) -> None:
    """Half the machine, on nodes of which no two are neighbours."""
    snapshot = node(nodes)
    for place in range(nodes):
        snapshot = let_in(admit(snapshot, job(f"job-{place}", {"cpu": 8, "memory": 12 * GIB})))
    for place in range(0, nodes, 2):
        snapshot = release(snapshot, f"job-{place}")
    asked = job("wide", {"cpu": 4 * nodes, "memory": (nodes // 2) * 13 * GIB})
    assert affinity(admit(snapshot, asked)) == sum(1 << place for place in range(0, nodes, 2))


@pytest.mark.parametrize("policy", [RESTRICTED, BEST_EFFORT])
@pytest.mark.parametrize("scope", Scope)
def test_a_machine_of_64_nodes_fills_up_and_empties(policy: Policy, scope: Scope) -> None:
    """Everything of everything, node by node, until nothing is left; and back to the same value."""
    snapshot = empty = node(64, policy, scope=scope)
    each = {"cpu": 8, "memory": 8 * GIB, "hugepages-2Mi": GIB, "hugepages-1Gi": 2 * GIB, GPU: 1, NIC: 2}
    for place in range(64):
        verdict = admit(snapshot, job(f"job-{place}", each))
        assert affinity(verdict) == 1 << place
        snapshot = let_in(verdict)
    assert isinstance(admit(snapshot, job("more", {GPU: 1})), Refusal)
    for place in range(64):
        snapshot = release(snapshot, f"job-{place}")
    assert snapshot.allocators == empty.allocators


def test_best_effort_takes_what_all_have_in_common() -> None:
    """CPUs need two nodes now, though one could ever serve: the lowest two, not preferred."""
    snapshot = node(32, BEST_EFFORT)
    for place in range(32):
        snapshot = let_in(admit(snapshot, job(f"job-{place}", {"cpu": 5})))
    found = admit(snapshot, job("wide", {"cpu": 6, GPU: 1}))
    assert isinstance(found, Placed)
    assert found.affinity == {"m0": TopologyHint(0b11, preferred=False)}


def test_close_nodes_win_on_a_large_machine() -> None:
    """`prefer-closest-numa-nodes` finds the four nodes of a socket that a lower set would leave."""
    machine = machine_from_text("4 sockets x 4 numa x 8 cores")
    snapshot = Snapshot(
        numa=NumaTopology(nodes=tuple(machine.nodes), distances=machine.distances or {}),
        policy=Policy(name=PolicyName.RESTRICTED, prefer_closest=True),
        allocators=(CpuAllocator.of(machine),),
    )
    for key in ("a", "b", "c", "d", "e"):  # one node each: 0 to 4
        snapshot = let_in(admit(snapshot, job(key, {"cpu": 8})))
    assert affinity(admit(snapshot, job("wide", {"cpu": 32}))) == 0xF00


def test_a_device_near_two_nodes_counts_once() -> None:
    """Ten devices, each at a pair of nodes: a pair holds one, and so does either node alone."""
    by_node = {place: 1 << place // 2 for place in range(20)}
    found = device_hints(range(20), 2, by_node=by_node, available=(1 << 10) - 1)
    assert isinstance(found, CountedHints)
    assert TopologyHint(0b101, preferred=True) in found
    assert TopologyHint(0b011, preferred=True) not in found
    assert TopologyHint(0b111, preferred=False) in found


def test_devices_that_are_reused_fix_their_nodes() -> None:
    """Every hint has a node of each device that the workload may use again."""
    by_node = {place: 1 << place for place in range(20)}
    found = device_hints(range(20), 2, by_node=by_node, available=(1 << 20) - 2, reusable=1)
    assert isinstance(found, CountedHints)
    assert TopologyHint(0b11, preferred=True) in found
    assert TopologyHint(0b110, preferred=True) not in found
    none_left = device_hints(range(20), 3, by_node=by_node, available=0b10, reusable=1)
    assert none_left == []


@pytest.mark.parametrize("policy", [RESTRICTED, BEST_EFFORT, Policy(name=PolicyName.SINGLE_NUMA_NODE)])
def test_counted_masks_outside_the_machine_are_named(policy: Policy) -> None:
    """As those of lists are, whether the figures or a set for itself name them."""
    numa = NumaTopology(nodes=(0, 1))
    inside = CountedHints(nodes=3, needs=(Need.touching(3),), preferred_width=1)
    for answer in (
        attrs.evolve(inside, nodes=7),
        attrs.evolve(inside, others=(TopologyHint(4, preferred=True),)),
        attrs.evolve(inside, others=(TopologyHint(None, preferred=True),)),
    ):
        with pytest.raises(HintError) as caught:
            merge(policy, [{"gpu": answer}], numa, names=["devices"])
        assert isinstance(caught.value, MaskOutsideError)
        assert (caught.value.provider, caught.value.resource) == ("devices", "gpu")


def test_figures_that_nothing_meets_are_an_empty_list() -> None:
    """Impossible, so that nothing is preferred."""
    numa = NumaTopology(nodes=(0, 1))
    nothing = CountedHints(nodes=3, needs=(Need(wanted=3, amounts=((1, 1), (2, 1))),), preferred_width=2)
    answers: list[Hints] = [{"a": nothing}, {"b": [TopologyHint(2, preferred=True)]}]
    lists: list[Hints] = [{"a": []}, answers[1]]
    assert list(nothing) == []
    for policy in (RESTRICTED, BEST_EFFORT, Policy(name=PolicyName.SINGLE_NUMA_NODE)):
        assert merge(policy, answers, numa) == merge(policy, lists, numa)


def test_sets_are_listed_for_few_nodes_only() -> None:
    """In the kubelet's order; for more the way out is named."""
    assert node_masks((0, 2, 5)) == (1, 4, 32, 5, 33, 36, 37)
    with pytest.raises(ValueError, match="CountedHints"):
        node_masks(tuple(range(9)))


def hard(nodes: int = 40) -> list[Hints]:
    """Two resources of which no set of half the nodes holds enough, which no sum of either tells."""
    first = [1000 + place * 37 % 101 for place in range(nodes)]
    second = [2200 - size for size in first]
    half = nodes // 2
    amounts = [tuple((1 << place, size) for place, size in enumerate(sizes)) for sizes in (first, second)]
    wanted = 1100 * half + 1
    return [
        {
            f"r{row}": CountedHints(
                nodes=(1 << nodes) - 1, needs=(Need(wanted=wanted, amounts=each),), preferred_width=half
            )
        }
        for row, each in enumerate(amounts)
    ]


def odd(nodes: int = 40) -> list[Hints]:
    """Even amounts of which an odd sum is wanted exactly: a subset sum, with no short proof."""
    sizes = [2 * (1000 + place * place * 7919 % 997) for place in range(nodes)]
    half = nodes // 2
    exact = 2 * (1000 + 498) * half + 1
    most = 2 * max(sizes)
    pair = (
        tuple((1 << place, size) for place, size in enumerate(sizes)),
        tuple((1 << place, most - size) for place, size in enumerate(sizes)),
    )
    return [
        {
            f"r{row}": CountedHints(
                nodes=(1 << nodes) - 1,
                needs=(Need(wanted=wanted, amounts=amounts),),
                preferred_width=half,
            )
        }
        for row, (wanted, amounts) in enumerate(zip((exact, most * half - exact), pair, strict=True))
    ]


def test_a_sum_of_all_needs_proves_what_no_need_proves_alone() -> None:
    """Each resource alone fits half the nodes, both never do: refused at once."""
    numa = NumaTopology(nodes=tuple(range(40)))
    found = merge(attrs.evolve(RESTRICTED, work_units=20_000), hard(), numa)
    assert not found.admit
    assert not found.hint.preferred


@attrs.frozen
class Answering:
    """An allocator that has one answer."""

    answer: Hints
    name: str = "answering"

    def hints(self, _claims: object, /) -> Hints:
        """The answer."""
        return self.answer

    def allocate(self, _claim: Claim, _affinity: TopologyHint, /) -> Answering | Shortfall:
        """Granted."""
        return self

    def release(self, _workload: str, _member: str | None = None, /) -> Answering:
        """Nothing to release."""
        return self


def test_work_is_counted_and_its_end_claims_no_proof() -> None:
    """The same on every machine: a refusal of its own kind that says that nothing is decided."""
    numa = NumaTopology(nodes=tuple(range(40)))
    policy = attrs.evolve(RESTRICTED, work_units=30_000)
    with pytest.raises(WorkLimitError, match="30000 units of work") as caught:
        merge(policy, odd(), numa)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)  # noqa: S301
    allocators = tuple(Answering(answer, f"a{place}") for place, answer in enumerate(odd()))
    snapshot = Snapshot(numa=numa, policy=policy, allocators=allocators)
    refusal = admit(snapshot, job("a", {"r0": 1}))
    assert isinstance(refusal, Refusal)
    assert (refusal.reason, refusal.exhausted) == (TOPOLOGY_WORK_LIMIT, True)
    assert explain(refusal).feasibility is Feasibility.UNDECIDED
    assert "with neither a placement nor a proof" in str(refusal)
    assert "no proof" in explain(refusal).text
    assert str(admit(snapshot, job("a", {"r0": 1}))) == str(refusal)


def test_a_search_is_bounded_by_work_too() -> None:
    """It ends exhausted, with as many steps as the work paid for."""
    policy = Policy(name=PolicyName.SINGLE_NUMA_NODE, search=True, work_units=20_000)
    snapshot = node(16, policy)
    refusal = admit(snapshot, job("a", *[{"cpu": 3 + place % 4, GPU: 1} for place in range(24)]))
    assert isinstance(refusal, Refusal)
    assert refusal.exhausted
    assert 0 < refusal.steps < 1000


def test_refusals_on_large_machines_show_a_few_hints() -> None:
    """Not all that there are: 64 of the narrowest."""
    snapshot = node(64)
    for place in range(64):
        snapshot = let_in(admit(snapshot, job(f"job-{place}", {"cpu": 5})))
    refusal = admit(snapshot, job("wide", {"cpu": 6, "memory": GIB}))
    assert isinstance(refusal, Refusal)
    views = {view.resource: view for view in explain(refusal).resources}
    assert len(views["cpu"].possible) == 64
    assert all(mask is not None and mask.bit_count() == 2 for mask in views["cpu"].possible)
    assert len(explain(refusal).text.splitlines()) < 16
    assert explain(refusal).feasibility is Feasibility.NOT_PREFERRED
