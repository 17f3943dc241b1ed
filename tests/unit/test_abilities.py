"""What allocators can do besides being granted: ours, the fake and their checks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

import attrs
import pytest

from nodealloc.cpuset import CpuAllocator, CPUSet, StaticPolicy, exclusive_cpus_setting
from nodealloc.devices import Device, DeviceAllocator, DeviceList, Inventory, PluginOptions
from nodealloc.errors import ConfigurationError, DecodeError
from nodealloc.idset import NodeSet
from nodealloc.machine import Machine, machine_from_text
from nodealloc.memblocks import (
    MemoryAllocator,
    UnpinnedMemory,
)
from nodealloc.node import KubeletFile
from nodealloc.podspec import Json, Quantity
from nodealloc.testing.abilities import (
    FakeCpuAllocator,
    check_accounts,
    check_adopts,
    check_confines,
    check_remembers,
    filled,
)
from nodealloc.testing.node import check_kubelet_file, check_regranted
from nodealloc.testing.topology import FakeAllocator, check_allocator, workload
from nodealloc.topology import (
    Accounts,
    Adopts,
    Allocator,
    Claim,
    Confinement,
    Confines,
    Holding,
    NumaTopology,
    Owner,
    Remembers,
    Shortfall,
    Snapshot,
    TopologyHint,
    Workload,
)

MACHINE = machine_from_text("2 sockets x 4 cores x 2 threads, memory=8Gi")
NUMA = Snapshot.of(MACHINE).numa
GPU = "example.com/gpu"
Check = Callable[[Allocator, Sequence[Workload]], None]


def devices() -> DeviceAllocator:
    """Four GPUs: two at one node each, one at both, one at none."""
    places = {"gpu-0": 0b01, "gpu-1": 0b10, "gpu-2": 0b11, "gpu-3": None}
    listed = DeviceList.of([Device(name, numa_nodes=mask) for name, mask in places.items()], nodes=(0, 1))
    known = Inventory(resource=GPU).registered(1, now_s=0.0)
    serving = known.listed(1, listed, PluginOptions(), now_s=0.0)
    return DeviceAllocator(nodes=(0, 1)).with_inventory(serving)


ALLOCATORS: dict[str, Allocator] = {
    "cpu": CpuAllocator.of(MACHINE, reserved=CPUSet.of(0)),
    "memory": MemoryAllocator.of(MACHINE, reserved={0: {"memory": 256 << 20}}),
    "devices": devices(),
    "fake": FakeCpuAllocator.of({0: 8, 1: 8}),
}
ASKED = [
    workload("a", {"cpu": 2, "memory": 1 << 30, GPU: 1}, {"cpu": 1, "memory": 1 << 20}),
    workload("b", {"cpu": 3, "memory": 3 << 30, GPU: 2}),
    workload("c", {}),
]
GROUPED = [workload("wide", {"cpu": 9, "memory": 9 << 30, GPU: 4})]
LENDING = [
    workload("init", {"cpu": 1, "memory": 1 << 30, GPU: 1}, init=[{"cpu": 2, "memory": 2 << 30, GPU: 1}])
]


@pytest.mark.parametrize("asked", [ASKED, GROUPED, LENDING], ids=["apart", "wide", "lending"])
@pytest.mark.parametrize("name", ALLOCATORS)
def test_every_allocator_keeps_the_promises_of_its_abilities(name: str, asked: list[Workload]) -> None:
    """All four, also where an init member lends to the members behind it."""
    allocator = ALLOCATORS[name]
    check_remembers(allocator, asked, exact=name != "devices")
    check_accounts(allocator, asked, NUMA)
    check_confines(allocator, asked)
    check_adopts(allocator, asked)


@pytest.mark.parametrize("name", ["cpu", "memory", "devices"])
def test_what_is_in_a_kubelets_file_comes_back(name: str) -> None:
    """The file of each allocator says who holds what, and is read again."""
    check_kubelet_file(ALLOCATORS[name], ASKED)


def test_the_fake_is_an_allocator_as_well() -> None:
    """It is held to what admission relies on, with a fraction of the shared pool."""
    claim = Claim(owner=Owner("job", "a"), amounts={"cpu": Quantity.parse("2500m")})
    fake = ALLOCATORS["fake"]
    check_allocator(fake, Workload(key="job", claims=(claim,)), NUMA)
    check_remembers(fake, [Workload(key="job", claims=(claim,))])


def test_a_promised_part_of_the_shared_pool_comes_back() -> None:
    """A container with CPUs of its own and a fraction keeps both, through a restart and an adoption."""
    policy = StaticPolicy.of(MACHINE, reserved=CPUSet.of(0), per_container=True)
    claim = Claim(
        owner=Owner("job", "a"),
        amounts={"cpu": Quantity.parse("2500m")},
        settings={exclusive_cpus_setting("a"): "2"},
    )
    job = Workload(key="job", claims=(claim,))
    cpus = CpuAllocator(policy=policy)
    after = filled(cpus, [job])
    assert isinstance(after, CpuAllocator)
    assert after.cpus_of(claim.owner) > after.exclusive_of(claim.owner)
    for check in (check_remembers, check_confines, check_adopts):
        check(cpus, [job])


def test_memory_that_nobody_pins_has_the_abilities_and_nothing_to_say() -> None:
    """Nothing is remembered, listed, counted or confined; what runs is taken in as it is."""
    unpinned = UnpinnedMemory()
    assert isinstance(unpinned, Remembers)
    assert isinstance(unpinned, Accounts)
    assert isinstance(unpinned, Confines)
    assert isinstance(unpinned, Adopts)
    assert isinstance(unpinned, KubeletFile)
    assert unpinned.remembered("a") is None
    assert (*unpinned.holdings(), *unpinned.capacity()) == ()
    assert unpinned.confinement(Owner("a", "app-0")) == Confinement()
    assert unpinned.adopted(ASKED[0].claims[0], Confinement(mems=NodeSet.of(1))) == unpinned
    row: Json = {"app-0": [{"nodes": 1, "resource": "memory", "size_bytes": 5}]}
    assert "policy None pins nothing" in unpinned.restored({"a": row}).moved[0]


def test_devices_are_adopted_by_name_or_not_at_all() -> None:
    """With or without their plugin; which ones it uses has to be said, all of them, and nobody else's."""
    claim = ASKED[0].claims[0]
    blank = DeviceAllocator(nodes=(0, 1))
    here = Confinement(devices={GPU: ("gpu-2",)})
    taken = blank.adopted(claim, here)
    assert isinstance(taken, DeviceAllocator)
    assert taken.confinement(claim.owner) == here
    assert [one.nodes for one in taken.holdings()] == [NodeSet()]
    listed = devices().adopted(claim, here)
    assert isinstance(listed, DeviceAllocator)
    assert [one.nodes for one in listed.holdings()] == [NodeSet.of(0, 1)]
    for where, why in (
        (Confinement(), "nobody has said which"),
        (Confinement(devices={GPU: ("gpu-1", "gpu-2")}), "1 were asked for, 2 are in use"),
    ):
        refused = blank.adopted(claim, where)
        assert isinstance(refused, Shortfall)
        assert why in refused.detail
    other = attrs.evolve(claim, owner=Owner("other", "app"))
    refused = taken.adopted(other, here)
    assert isinstance(refused, Shortfall)
    assert "gpu-2 of a/app-0, which holds them" in refused.detail


def test_an_adopted_device_is_not_granted_again_when_its_plugin_returns() -> None:
    """What it lists is free but for what was adopted."""
    taken = DeviceAllocator(nodes=(0, 1)).adopted(ASKED[0].claims[0], Confinement(devices={GPU: ("gpu-0",)}))
    assert isinstance(taken, DeviceAllocator)
    back = taken.with_inventory(attrs.evolve(devices().inventories[GPU], generation=2))
    after = filled(back, [workload("other", {GPU: 3})])
    assert isinstance(after, DeviceAllocator)
    assert after.confinement(Owner("other", "app-0")).devices == {GPU: ("gpu-1", "gpu-2", "gpu-3")}


def test_parts_of_a_confinement_become_one() -> None:
    """What nobody speaks of stays open; where two speak, only what both allow is left."""
    cpus = Confinement(cpus=CPUSet.of(1, 2, 3), exclusive=CPUSet.of(1))
    other = Confinement(cpus=CPUSet.of(1, 2), mems=NodeSet.of(0, 1), devices={GPU: ("gpu-0",)})
    third = Confinement(mems=NodeSet.of(1), devices={"example.com/nic": ("n",)})
    assert Confinement.of(cpus, other, third) == Confinement(
        cpus=CPUSet.of(1, 2),
        exclusive=CPUSet.of(1),
        mems=NodeSet.of(1),
        devices={GPU: ("gpu-0",), "example.com/nic": ("n",)},
    )
    assert Confinement.of() == Confinement()


def test_a_holding_that_contradicts_itself_is_refused() -> None:
    """As many CPUs are named as are held, and nobody holds less than nothing."""
    with pytest.raises(ValueError, match="3 cpu are held, and CPUs 1-2 are named"):
        Holding(owner=Owner("a", "b"), resource="cpu", amount=3, cpus=CPUSet.of(1, 2))
    with pytest.raises(ValueError, match="amount"):
        Holding(owner=Owner("a", "b"), resource="memory", amount=-1)


def test_a_machine_that_is_not_there_is_noticed() -> None:
    """`check_accounts` names the node that the machine has not."""
    with pytest.raises(AssertionError, match="the machine has no NUMA node 1"):
        check_accounts(ALLOCATORS["fake"], ASKED, NumaTopology(nodes=(0,)))


@pytest.mark.parametrize(
    ("check", "lacks"),
    [
        (check_remembers, "no `remembered` and `restored`"),
        (check_confines, "no `confinement`"),
        (lambda one, asked: check_accounts(one, asked, NUMA), "no `holdings` and `capacity`"),
        (check_kubelet_file, "keeps no file of the kubelet's"),
        (lambda one, asked: check_regranted(one, one, asked), "no `regranted`"),
    ],
)
def test_a_check_names_the_ability_that_is_missing(check: Check, lacks: str) -> None:
    """A misspelt method is found here, and not by a node that goes without."""
    with pytest.raises(AssertionError, match=lacks):
        check(FakeAllocator.of("cpu", {0: 8, 1: 8}), ASKED)


def test_the_fake_gives_up_whom_the_machine_has_no_room_for() -> None:
    """Of two that hold one CPU the second goes; what it never wrote is an error."""
    fake = FakeCpuAllocator.of({0: 2})
    row: Json = {"app": {"cpus": "0-1", "sharedMilliCpu": 0}}
    restored = fake.restored({"a": row, "b": row, "c": {"app": {"cpus": "7", "sharedMilliCpu": 0}}})
    assert list(restored.evicted) == ["b", "c"]
    assert isinstance(restored.allocator, Accounts)
    assert [one.owner.workload for one in restored.allocator.holdings()] == ["a"]
    with pytest.raises(DecodeError, match="CPUs of a"):
        fake.restored({"a": {"app": {"cpus": 7}}})


def test_whose_devices_changed_is_told_from_any_allocator() -> None:
    """Beside another kind everybody who holds some counts, and its file is written."""
    after = filled(devices(), [workload("a", {GPU: 1})])
    assert isinstance(after, DeviceAllocator)
    assert after.regranted(FakeAllocator.of(GPU, {})) == {"a"}
    assert after.to_kubelet(FakeAllocator.of(GPU, {})) == after.to_kubelet()
    assert after.to_kubelet(after) is None
    assert after.regranted(after) == []


def test_allocators_of_one_machine_are_built_and_asked_alike() -> None:
    """`of(machine)` makes each with nothing held; what an owner holds is asked for by the owner."""
    cpus, memory = CpuAllocator.of(MACHINE, reserved=CPUSet.of(0)), MemoryAllocator.of(MACHINE)
    gpus = DeviceAllocator.of(MACHINE, awaited=[GPU])
    assert cpus == CpuAllocator(policy=StaticPolicy.of(MACHINE, reserved=CPUSet.of(0)))
    assert gpus == DeviceAllocator(nodes=(0, 1), awaited=frozenset({GPU}))
    nobody = Owner("nobody", "app")
    assert cpus.cpus_of(nobody) == cpus.shared
    assert (memory.blocks_of(nobody), memory.mems_of(nobody)) == ((), NodeSet())
    assert gpus.devices_of(nobody) == {}
    for ask in (memory.blocks_of, memory.mems_of, gpus.devices_of, cpus.cpus_of):
        with pytest.raises(ConfigurationError, match="an Owner"):
            ask(cast("Owner", "nobody"))


def test_an_owner_is_told_which_devices_it_holds() -> None:
    """By resource; a member of the same workload holds its own."""
    claim = Claim(owner=Owner("a", "app"), amounts={GPU: Quantity.of(4)})
    held = devices().allocate(claim, TopologyHint(None, True))
    assert isinstance(held, DeviceAllocator)
    assert held.devices_of(claim.owner) == {GPU: {"gpu-0", "gpu-1", "gpu-2", "gpu-3"}}
    assert held.devices_of(Owner("a", "side")) == {}


def test_a_machine_without_numa_nodes_is_one_node_to_devices() -> None:
    """As it is to a `Snapshot`."""
    assert DeviceAllocator.of(Machine(cpus=(), numa_nodes=())).nodes == (0,)
