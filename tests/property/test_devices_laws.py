"""Laws of devices: nothing twice, nothing lost, the same answer again."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from nodealloc.devices import (
    Device,
    DeviceAllocator,
    DeviceList,
    Inventory,
    Phase,
    PluginOptions,
    device_hints,
)
from nodealloc.devices._state import remembered, restored
from nodealloc.devices.plugins import _codec as codec
from nodealloc.devices.plugins._codec import (
    decode_list,
    encode_list,
)
from nodealloc.errors import DecodeError
from nodealloc.podspec import Quantity
from nodealloc.testing.strategies.devices import device_allocators, device_lists, devices, inventories
from nodealloc.topology import Claim, ClaimKind, CountedHints, Owner, TopologyHint

GPU = "example.com/gpu"
DECODERS = [
    codec.decode_register,
    codec.decode_options,
    codec.decode_list,
    codec.decode_preferred,
    codec.decode_allocated,
    codec.decode_response,
]


def ask(workload: str, member: str, count: int, **more: object) -> Claim:
    """A claim for GPUs."""
    return Claim(owner=Owner(workload, member), amounts={GPU: Quantity.of(count)}, **more)  # type: ignore[arg-type]


@given(st.data())
def test_no_device_is_held_twice(data: st.DataObject) -> None:
    """After any sequence of grants and releases no device is in two workloads, and releasing all restores."""
    allocator = begin = data.draw(device_allocators(GPU))
    for step in range(data.draw(st.integers(1, 15))):
        workload = f"w{data.draw(st.integers(0, 4))}"
        if data.draw(st.booleans()):
            affinity = TopologyHint(data.draw(st.none() | st.integers(1, 15)), True)
            answer = allocator.allocate(ask(workload, f"m{step % 3}", data.draw(st.integers(1, 3))), affinity)
            allocator = answer if isinstance(answer, DeviceAllocator) else allocator
        else:
            allocator = allocator.release(workload)
        held = [i for grants in allocator.grants.values() for grant in grants.values() for i in grant.ids]
        assert len(held) == len(set(held))
    for workload in list(allocator.grants):
        allocator = allocator.release(workload)
    assert allocator == begin


@given(st.data())
def test_init_containers_lend_and_nobody_shares_at_one_time(data: st.DataObject) -> None:
    """Members that run at one time are disjoint; the footprint is at most what runs plus what ended."""
    allocator = data.draw(device_allocators(GPU))
    ended: tuple[str, ...] = ()
    together: dict[str, frozenset[str]] = {}
    for number in range(data.draw(st.integers(1, 5))):
        kind = data.draw(st.sampled_from(list(ClaimKind)))
        count = data.draw(st.integers(1, 3))
        answer = allocator.allocate(
            ask("p", f"m{number}", count, kind=kind, reuse=ended), TopologyHint(None, True)
        )
        if not isinstance(answer, DeviceAllocator):
            break
        allocator = answer
        ids = allocator.grants["p"][f"m{number}", GPU].ids
        assert len(ids) == count
        assert all(not ids & other for other in together.values())
        if kind is ClaimKind.INIT:
            ended += (f"m{number}",)
        else:
            together[f"m{number}"] = ids


@given(device_allocators(GPU), st.integers(1, 4))
def test_every_hint_can_be_had(allocator: DeviceAllocator, count: int) -> None:
    """A hint that is offered is granted, with every device inside it where it has a place."""
    hints = allocator.hints([ask("p", "c", count)])
    assert isinstance(hints, dict)
    for hint in hints.get(GPU) or ():
        after = allocator.allocate(ask("p", "c", count), hint)
        assert isinstance(after, DeviceAllocator)
        grant = after.grants["p"]["c", GPU]
        assert hint.affinity is not None
        for nodes in grant.nodes.values():
            assert any(hint.affinity >> node & 1 for node in nodes)


@given(st.lists(devices()), st.sets(st.integers(0, 5), min_size=1))
def test_a_list_keeps_every_id_once(listed: list[Device], nodes: set[int]) -> None:
    """Columns say what the devices said: ids, health and places."""
    columns = DeviceList.of(listed, nodes=nodes)
    latest = {device.id: device for device in listed if device.id}
    assert columns.ids == tuple(sorted(latest))
    for identity, device in latest.items():
        bit = columns.index[identity]
        assert bool(columns.healthy >> bit & 1) == (device.health == "Healthy")
        places = {n for n in nodes if (device.numa_nodes or 0) >> n & 1}
        assert set(columns.nodes_of(identity)) == places
    assert columns.ids_of(columns.mask_of(latest)) == columns.ids


@given(st.lists(devices()))
def test_lists_read_back_from_the_wire(listed: list[Device]) -> None:
    """Encoding and decoding a list gives the same devices."""
    assert decode_list(encode_list(listed)) == listed


@given(st.binary(max_size=200), st.sampled_from(DECODERS))
def test_any_bytes_are_a_value_or_an_error(data: bytes, decode: Callable[[bytes], object]) -> None:
    """Whatever a plugin sends, it is understood or a `DecodeError`, and nothing else."""
    try:
        value = decode(data)
    except DecodeError:
        return
    assert decode(data) == value


@given(st.lists(devices(), max_size=5), st.data())
def test_damaged_lists_are_lists_or_errors(listed: list[Device], data: st.DataObject) -> None:
    """A list with some bytes changed, missing or doubled is devices or a `DecodeError`."""
    damaged = bytearray(encode_list(listed))
    for _ in range(data.draw(st.integers(1, 3))):
        if damaged:
            damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(damaged)))
    try:
        found = DeviceList.of(codec.decode_list(bytes(damaged[:cut])), nodes=(0, 1))
    except DecodeError:
        return
    assert found.healthy >> len(found.ids) == 0
    assert "" not in found.ids


@given(inventories(GPU), device_lists(), st.integers(0, 5))
def test_stale_generations_change_nothing(inventory: Inventory, listed: DeviceList, generation: int) -> None:
    """Only the current registration's list and end count."""
    if generation == inventory.generation:
        return
    assert inventory.listed(generation, listed, PluginOptions(), now_s=1.0) is inventory
    assert inventory.ended(generation, "late", now_s=1.0) is inventory


@given(device_allocators(GPU), st.integers(1, 3))
def test_memory_survives(allocator: DeviceAllocator, count: int) -> None:
    """What is remembered and restored grants the running pod again while its plugin is away."""
    answer = allocator.allocate(ask("p", "c", count), TopologyHint(None, True))
    if not isinstance(answer, DeviceAllocator):
        return
    after = restored(DeviceAllocator(nodes=allocator.nodes), remembered(answer), now_s=0.0)
    assert after.inventories[GPU].phase is Phase.AWAITED
    assert after.allocate(ask("p", "c", count), TopologyHint(1, True)) is after


@given(st.integers(9, 64), st.integers(1, 8))
def test_hints_of_many_nodes_are_counted(nodes: int, wanted: int) -> None:
    """With a device on each node every set of that many nodes is preferred, wherever it lies."""
    by_node = {node: 1 << node for node in range(nodes)}
    hints = device_hints(range(nodes), wanted, by_node=by_node, available=(1 << nodes) - 1)
    assert isinstance(hints, CountedHints)
    apart = sum(1 << node for node in range(0, nodes, 8)[:wanted])
    lowest, highest = (1 << wanted) - 1, (1 << wanted) - 1 << (nodes - wanted)
    assert TopologyHint(lowest, preferred=True) in hints
    assert TopologyHint(highest, preferred=True) in hints
    assert (TopologyHint(apart, preferred=True) in hints) == (apart.bit_count() == wanted)
    if lowest > 1:
        assert TopologyHint(lowest >> 1, preferred=False) not in hints
    assert hints.some(1) == [TopologyHint(lowest, preferred=True)]
