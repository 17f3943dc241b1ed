"""Whole nodes: every hint and every merge on the way of an admission against trying everything.

The hints are written anew from the rules, set by set (`plain_hints`), and so is the merge
(`plain_merge`).
"""

from __future__ import annotations

import random
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from unittest import mock

import attrs
from hypothesis import given
from hypothesis import strategies as st

from nodealloc.cpuset import CpuAllocator, StaticOptions, StaticPolicy
from nodealloc.cpuset import _hints as cpu_hints
from nodealloc.cpuset import _policy as cpu_policy
from nodealloc.devices import Device, DeviceAllocator, DeviceList, Inventory, PluginOptions
from nodealloc.devices import _hints as device_hints
from nodealloc.idset import CPUSet
from nodealloc.machine import Cpu, Machine, NumaNode
from nodealloc.memblocks import MemoryAllocator
from nodealloc.memblocks import _layout as memory_layout
from nodealloc.podspec import Quantity
from nodealloc.topology import (
    Admitted,
    Allocator,
    Claim,
    ClaimKind,
    Closest,
    CountedHints,
    Hints,
    LeastAllocated,
    Merged,
    MostAllocated,
    NotYet,
    NumaTopology,
    Owner,
    Policy,
    PolicyName,
    Refusal,
    Scope,
    Snapshot,
    TopologyHint,
    Workload,
    _admission,
    _asking,
    admit,
    merge,
    release,
)
from nodealloc.topology._work import Work
from tests.property.plain_hints import of_cpus, of_devices, of_memory
from tests.property.plain_merge import as_lists, listed, outcomes, tried

GIB, PAGE = 1 << 30, 2 << 20
GPU, NIC = "example.com/gpu", "example.com/nic"
UNITS = 1_000_000_000


@attrs.frozen
class Node:
    """A machine with its devices, and what a snapshot of it starts with."""

    machine: Machine
    devices: Mapping[str, Sequence[Device]]
    snapshot: Snapshot


def machine(rng: random.Random, most_nodes: int) -> Machine:
    """Nodes with gaps between their ids, some without CPUs or memory."""
    ids = sorted(rng.sample(range(12), rng.randint(1, most_nodes)))
    sockets = rng.choice((1, 2, 2, len(ids)))
    cpus: list[Cpu] = []
    nodes: list[NumaNode] = []
    for place, node in enumerate(ids):
        count = rng.choice((0, 2, 4, 4, 6)) or (0 if cpus or place < len(ids) - 1 else 4)
        own = range(len(cpus), len(cpus) + count)
        socket = place * sockets // len(ids)
        cpus += [Cpu(id=cpu, core=cpu // 2, socket=socket, numa_nodes=(node,), l3=node) for cpu in own]
        pages = rng.choice((0, 256, 512))
        size = rng.choice((0, 2, 4, 4, 5)) * GIB + pages * PAGE
        nodes.append(NumaNode(id=node, cpus=CPUSet.of(own), memory_bytes=size, hugepages={PAGE: pages}))
    far = {one: {other: 10 if one == other else rng.randint(11, 14) for other in ids} for one in ids}
    return Machine(cpus=tuple(cpus), numa_nodes=tuple(nodes), distances=far)


def devices(rng: random.Random, nodes: Sequence[int]) -> list[Device]:
    """A few, near one node, near two, or nowhere; one in eight is unhealthy."""
    found: list[Device] = []
    for number in range(rng.randint(1, 2 * len(nodes))):
        near = rng.sample(nodes, min(len(nodes), rng.choice((0, 1, 1, 1, 1, 2))))
        place = sum([1 << node for node in near]) or None
        found.append(Device(f"{number:02}", "Healthy" if rng.randrange(8) else "sick", place))
    return found


def node(rng: random.Random, most_nodes: int) -> Node:
    """An empty node under some policy."""
    made = machine(rng, most_nodes)
    inventories = {resource: devices(rng, tuple(made.nodes)) for resource in (GPU, NIC)}
    allocator = DeviceAllocator.of(made)
    for resource, those in inventories.items():
        listed = DeviceList.of(those, nodes=made.nodes)
        blank = Inventory(resource=resource).registered(1, now_s=0.0)
        allocator = allocator.with_inventory(blank.listed(1, listed, PluginOptions(), now_s=0.0))
    options = rng.choice(({}, {}, {"align_by_socket": True}, {"distribute_cpus_across_numa": True}))
    picks = StaticPolicy.of(made, reserved=rng.randint(0, 2), options=StaticOptions(**options))
    policy = Policy(
        name=rng.choice((PolicyName.BEST_EFFORT, PolicyName.RESTRICTED, PolicyName.SINGLE_NUMA_NODE)),
        prefer_closest=rng.random() < 0.3,
        comparison=rng.choice((None,) * 6 + (MostAllocated(), LeastAllocated(), Closest())),
        work_units=UNITS,
    )
    snapshot = Snapshot.of(
        made,
        policy=policy,
        scope=rng.choice(list(Scope)),
        allocators=(CpuAllocator(policy=picks), MemoryAllocator.of(made), allocator),
    )
    return Node(made, inventories, snapshot)


def workload(rng: random.Random, key: str, most_members: int, most: Mapping[str, int]) -> Workload:
    """Init members, sidecars and main members, some of which share; amounts up to what the machine has."""
    claims: list[Claim] = []
    ended: tuple[str, ...] = ()
    exclusive = rng.randrange(6) > 0
    count = rng.randint(1, most_members)
    for place in range(count):
        kind = ClaimKind.MAIN if place == count - 1 else rng.choice(list(ClaimKind))
        if claims and claims[-1].kind is ClaimKind.MAIN:
            kind = ClaimKind.MAIN
        part = rng.choice((4, 2, 1, 1)) * count
        amounts = {
            resource: Quantity.of(unit * rng.randint(1, max(1, -(-most[resource] // (part * unit)))))
            for resource, unit in (
                ("cpu", 1),
                ("memory", GIB // 4),
                ("hugepages-2Mi", PAGE),
                (GPU, 1),
                (NIC, 1),
            )
            if rng.random() < (0.8 if resource in {"cpu", "memory"} else 0.4)
        }
        if claims and rng.random() < 0.4:
            amounts = dict(claims[-1].amounts)  # the search does not try equal members in every order
        member = f"m{place}"
        claims.append(
            Claim(owner=Owner(key, member), amounts=amounts, kind=kind, exclusive=exclusive, reuse=ended)
        )
        ended += (member,) if kind is ClaimKind.INIT else ()
    return Workload(key=key, claims=tuple(claims))


def most_of(given: Node) -> dict[str, int]:
    """What the whole machine has of each resource."""
    nodes = given.machine.numa_nodes
    pages = sum(one.hugepages.get(PAGE, 0) for one in nodes) * PAGE
    return {
        "cpu": len(given.machine.cpus),
        "memory": sum(one.memory_bytes for one in nodes) - pages,
        "hugepages-2Mi": pages,
        **{resource: len(those) for resource, those in given.devices.items()},
    }


def hints_as_written(given: Node, allocators: Sequence[Allocator], claims: Sequence[Claim]) -> list[Hints]:
    """What the allocators answer, each answer to a single claim compared with the rules."""
    answers = _asking.hints_of(allocators, claims)
    assert not isinstance(answers, NotYet)
    if len(claims) > 1:
        return answers
    cpus, memory, gpus = allocators
    assert isinstance(cpus, CpuAllocator)
    assert isinstance(memory, MemoryAllocator)
    assert isinstance(gpus, DeviceAllocator)
    numa = given.snapshot.numa
    expected = (
        of_cpus(cpus, given.machine, claims[0]),
        of_memory(memory, claims[0]),
        of_devices(gpus, given.devices, numa.nodes, claims[0]),
    )
    for answer, wanted in zip(answers, expected, strict=True):
        assert answer.keys() == wanted.keys()
        for resource, options in answer.items():
            if isinstance(options, CountedHints):
                assert {*listed(options, numa)} == {*(wanted[resource] or ())}
            else:
                assert (None if options is None else [*options]) == wanted[resource], resource
    return answers


def merged_as_defined(
    policy: Policy,
    providers: Sequence[Hints],
    numa: NumaTopology,
    _names: Sequence[str],
    allocated: Mapping[int, float] | None,
    work: Work,
) -> Merged:
    """The merge, compared with trying everything."""
    found = merge(policy, providers, numa, allocated=allocated, work=work)
    assert found == tried(policy, as_lists(providers, numa), numa, allocated or {})
    return found


def lived(rng: random.Random, given: Node, steps: int) -> Snapshot:
    """The node after some workloads came and went, every hint and merge looked at."""
    snapshot, most, here = given.snapshot, most_of(given), list[str]()
    with mock.patch.multiple(
        _admission,
        merge=merged_as_defined,
        hints_of=partial(hints_as_written, given),
    ):
        for step in range(steps):
            if here and rng.random() < 0.25:
                snapshot = release(snapshot, here.pop(rng.randrange(len(here))))
                continue
            verdict = admit(snapshot, workload(rng, f"w{step}", 3, most))
            if isinstance(verdict, Admitted):
                snapshot = verdict.snapshot
                here.append(f"w{step}")
    return snapshot


@given(st.integers(0, 1 << 32))
def test_a_node_decides_as_trying_everything_does(seed: int) -> None:
    """Policies, options, scopes, init members, devices near two nodes: on machines that a kubelet takes."""
    rng = random.Random(seed)
    lived(rng, node(rng, 5), 5)


@given(st.integers(0, 1 << 32))
def test_a_node_that_counts_decides_as_trying_everything_does(seed: int) -> None:
    """The same where hints are counted, as on more than eight nodes."""
    rng = random.Random(seed)
    with counting():
        lived(rng, node(rng, 5), 5)


@contextmanager
def counting() -> Generator[None]:
    """Allocators count their hints on machines of any size."""
    with (
        mock.patch.object(cpu_hints, "LISTED_NODES", 0),
        mock.patch.object(memory_layout, "LISTED_NODES", 0),
        mock.patch.object(device_hints, "LISTED_NODES", 0),
    ):
        cpu_policy._table.cache_clear()
        yield
        cpu_policy._table.cache_clear()


@given(st.integers(0, 1 << 32))
def test_the_search_places_whatever_can_be_placed(seed: int) -> None:
    """Its refusal is a proof: no choice of hints, one for each member, is granted by all allocators."""
    rng = random.Random(seed)
    given = node(rng, 3)
    if rng.random() < 0.5:
        policy = attrs.evolve(given.snapshot.policy, name=PolicyName.SINGLE_NUMA_NODE)
        one_by_one = attrs.evolve(given.snapshot, policy=policy, scope=Scope.CONTAINER)
        compare_search(one_by_one, packing(rng, given))
    else:
        compare_search(lived(rng, given, 3), workload(rng, "asked", 3, most_of(given)))


def packing(rng: random.Random, given: Node) -> Workload:
    """Members that fill single nodes with CPUs, in an order in which early ones often take too much."""
    cpus = given.snapshot[CpuAllocator].policy
    assert isinstance(cpus, StaticPolicy)
    sizes: list[int] = []
    for one in given.machine.numa_nodes:
        free = len(one.cpus - cpus.reserved)
        while free:
            sizes.append(rng.randint(1, free))
            free -= sizes[-1]
    rng.shuffle(sizes)
    asked = [Quantity.of(size) for size in sizes[:5]] or [Quantity.of(1)]
    return Workload(
        key="asked",
        claims=tuple(
            Claim(owner=Owner("asked", f"m{n}"), amounts={"cpu": one}) for n, one in enumerate(asked)
        ),
    )


def compare_search(snapshot: Snapshot, asked: Workload) -> None:
    """The search against all choices."""
    searching = attrs.evolve(snapshot, policy=attrs.evolve(snapshot.policy, search=True, search_steps=UNITS))
    verdict = admit(searching, asked)
    assert isinstance(verdict, Admitted) == placeable(snapshot, asked)
    assert isinstance(verdict, Admitted) or (isinstance(verdict, Refusal) and not verdict.exhausted)


def placeable(snapshot: Snapshot, asked: Workload) -> bool:
    """Whether some hint for each member, or one for all in scope `pod`, is granted by every allocator."""
    if snapshot.scope is Scope.CONTAINER:
        return _placeable(snapshot, snapshot.allocators, asked.claims)
    return any(
        _granted(snapshot.allocators, asked.claims, hint) is not None
        for hint in let_in(snapshot, snapshot.allocators, asked.claims)
    )


def _placeable(snapshot: Snapshot, allocators: tuple[Allocator, ...], claims: Sequence[Claim]) -> bool:
    if not claims:
        return True
    for hint in let_in(snapshot, allocators, claims[:1]):
        granted = _granted(allocators, claims[:1], hint)
        if granted is not None and _placeable(snapshot, granted, claims[1:]):
            return True
    return False


def let_in(
    snapshot: Snapshot, allocators: Sequence[Allocator], claims: Sequence[Claim]
) -> list[TopologyHint]:
    """Every hint that comes out and that the policy lets in; under best-effort all nodes as well."""
    policy, numa = snapshot.policy, snapshot.numa
    answers = _asking.hints_of(allocators, claims)
    assert not isinstance(answers, NotYet)
    found = outcomes(policy, as_lists(answers, numa), numa)
    good = {mask for mask, preferred in found if preferred}
    anywhere = numa.mask if policy.name is PolicyName.SINGLE_NUMA_NODE else 0
    hints = [TopologyHint(None if mask == anywhere else mask, preferred=True) for mask in good]
    if policy.name is PolicyName.BEST_EFFORT:
        rest = {mask for mask, _ in found} | {numa.mask}
        hints += [TopologyHint(mask, preferred=False) for mask in rest - good]
    return hints


def _granted(
    allocators: tuple[Allocator, ...], claims: Sequence[Claim], hint: TopologyHint
) -> tuple[Allocator, ...] | None:
    for claim in claims:
        granted = _asking.allocated(allocators, claim, hint)
        if isinstance(granted, _asking.Stopped):
            return None
        allocators = granted
    return allocators
