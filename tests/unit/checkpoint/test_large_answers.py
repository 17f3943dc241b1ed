"""One plugin's huge answer, or its many devices: right to the last byte, and worked out once."""

from __future__ import annotations

import copy
import pickle
import random
from collections.abc import Callable, Iterator

import attrs
import pytest

from nodealloc.checkpoint import (
    KUBELET_FORMATS,
    DeviceManagerState,
    MemoryStore,
    PodDevices,
    _device_state,
    _pod_devices,
)
from nodealloc.checkpoint._fnv import fnv1a32
from nodealloc.devices import (
    Device,
    DeviceAllocator,
    DeviceLedger,
    DeviceList,
    Grant,
    Inventory,
    PluginOptions,
)
from nodealloc.devices._state import remembered, restored
from nodealloc.podspec import Quantity
from nodealloc.topology import Claim, Owner, TopologyHint

GPU = "example.com/gpu"
BIG = "example.com/big"


def entry(uid: str, answer: bytes | None) -> PodDevices:
    """What one pod got."""
    return PodDevices(
        pod_uid=uid, container_name="c", resource_name=GPU, device_ids={0: ("a",)}, alloc_resp=answer
    )


def state(*entries: PodDevices) -> DeviceManagerState:
    """A file with these."""
    return DeviceManagerState(pod_device_entries=entries, registered_devices={GPU: ("a",)})


def go_print(entries: tuple[PodDevices, ...]) -> bytes:
    """As Go prints such a state, in one piece."""
    listed = [
        f"{{PodUID:(string){one.pod_uid} ContainerName:(string)c ResourceName:(string){GPU} "
        f"DeviceIDs:(checkpoint.DevicesPerNUMA)map[0:[a]] "
        f"AllocResp:([]uint8)[{' '.join(map(str, one.alloc_resp or b''))}]}}"
        for one in entries
    ]
    return (
        "(checkpoint.checkpointData){PodDeviceEntries:([]checkpoint.PodDevicesEntry)"
        f"[{' '.join(listed)}] RegisteredDevices:(map[string][]string)map[{GPU}:[a]]}}"
    ).encode()


@pytest.mark.parametrize("seed", range(12))
def test_the_checksum_over_large_answers_is_that_of_the_whole(seed: int) -> None:
    """Large and small ones in any order, hashed anew beside the same large ones."""
    rng = random.Random(seed)
    answers = [rng.randbytes(rng.choice([0, 1, 4095, 4096, 5000, 20_000])) for _ in range(6)]
    entries = [entry(f"u{number}", answer) for number, answer in enumerate(answers)]
    for _ in range(4):
        rng.shuffle(entries)
        some = tuple(entries[: rng.randrange(7)])
        data = state(*some).marshal()
        read = DeviceManagerState.unmarshal(data)
        read.verify()
        assert read.checksum == fnv1a32(go_print(some))
        assert read == state(*some)


def test_a_damaged_large_answer_is_found() -> None:
    """One byte of twenty thousand."""
    answer = bytes(20_000)
    data = state(entry("u", answer)).marshal()
    read = DeviceManagerState.unmarshal(data)
    (kept,) = read.pod_device_entries or ()
    other = attrs.evolve(kept, alloc_resp=b"\1" + answer[1:])
    with pytest.raises(Exception, match="checksum"):
        attrs.evolve(read, pod_device_entries=(other,)).verify()


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """How many bytes were hashed since, piece by piece."""
    sizes: list[int] = []

    def counted(data: bytes, /, *, start: int = 2166136261) -> int:
        sizes.append(len(data))
        return fnv1a32(data, start=start)

    for module in (_device_state, _pod_devices):
        monkeypatch.setattr(module, "fnv1a32", counted)
    yield sizes
    monkeypatch.undo()


def serving(resource: str, ids: list[str]) -> Inventory:
    """A plugin that lists these."""
    devices = DeviceList.of([Device(one) for one in ids], nodes=(0,))
    blank = Inventory(resource=resource).registered(1, now_s=0.0)
    return blank.listed(1, devices, PluginOptions(), now_s=0.0)


def granted(allocator: DeviceAllocator, claim: Claim) -> DeviceAllocator:
    """With the claim, which fits."""
    after = allocator.allocate(claim, TopologyHint(None, True))
    assert isinstance(after, DeviceAllocator)
    return after


def grant(ledger: DeviceLedger, workload: str, answer: bytes, resource: str = GPU, count: int = 1) -> None:
    """Some devices, with their plugin's answer."""
    claim = Claim(owner=Owner(workload, "c"), amounts={resource: Quantity.of(count)})
    ledger.alter(lambda one: granted(one, claim))
    ledger.alter(lambda one: one.with_response(Owner(workload, "c"), resource, answer))


FEW = [f"d{number:03}" for number in range(200)]


def nothing(_: DeviceLedger) -> None:
    """No pod beside."""


def holds_all(ids: list[str]) -> Callable[[DeviceLedger], None]:
    """A pod that was granted all of them."""
    return lambda ledger: grant(ledger, "big", b"small", BIG, len(ids))


def answered_at_length(ledger: DeviceLedger) -> None:
    """Three pods with large answers."""
    for number in range(3):
        grant(ledger, f"m{number}", bytes(100_000), BIG)


MANY = [f"{number:06}-{'x' * 29}" for number in range(8_000)]
LONG = [f"{number:04}{'x' * 5_000}" for number in range(60)]
BESIDE: dict[str, tuple[list[str], Callable[[DeviceLedger], None]]] = {
    "many devices": (MANY, nothing),
    "long ids": (LONG, nothing),
    "many devices, granted": (MANY, holds_all(MANY)),
    "long ids, granted": (LONG, holds_all(LONG)),
    "large answers": (FEW, answered_at_length),
}


@pytest.mark.parametrize("beside", BESIDE)
def test_what_others_commit_works_nothing_large_out_again(hashed: list[int], beside: str) -> None:
    """Forty commits beside them: each hashes what it would hash without them."""
    ids, before = BESIDE[beside]
    hashes: list[int] = []
    for at, ledger_of in enumerate((FEW, ids)):
        with MemoryStore(KUBELET_FORMATS) as store:
            allocator = DeviceAllocator().with_inventory(serving(GPU, FEW))
            ledger = DeviceLedger(allocator.with_inventory(serving(BIG, ledger_of)), store=store)
            (before if at else nothing)(ledger)
            hashed.clear()
            for number in range(8):
                grant(ledger, f"a{number:02}", b"small")
                grant(ledger, f"z{number:02}", b"small")
            for number in range(8):
                ledger.release(f"a{number:02}")
            hashes.append(sum(hashed))
            kept = store.read().get("kubelet_internal_checkpoint", DeviceManagerState)
        assert kept is not None
        read = DeviceManagerState.unmarshal(kept.marshal())
        read.verify()
        again = restored(DeviceAllocator(), read, now_s=0.0)
        assert again.grants == ledger.current().grants
        assert again.inventories.keys() == {GPU, BIG}
    assert hashes[1] <= hashes[0] * 1.02


def test_an_answer_works_nothing_of_its_devices_out_again(hashed: list[int]) -> None:
    """It comes when the devices have been granted, and costs its own bytes."""
    with MemoryStore(KUBELET_FORMATS) as store:
        ledger = DeviceLedger(DeviceAllocator().with_inventory(serving(BIG, MANY)), store=store)
        claim = Claim(owner=Owner("w", "c"), amounts={BIG: Quantity.of(len(MANY))})
        ledger.alter(lambda one: granted(one, claim))
        assert sum(hashed) > 36 * len(MANY)
        for answer in (b"small", bytes(5_000), b"", b"other"):
            hashed.clear()
            ledger.alter(lambda one, said=answer: one.with_response(Owner("w", "c"), BIG, said))  # type: ignore[misc]
            assert sum(hashed) < 2 * 5_000 + 1_000
            kept = store.read().get("kubelet_internal_checkpoint", DeviceManagerState)
            assert kept is not None
            read = DeviceManagerState.unmarshal(kept.marshal())
            read.verify()
            assert [one.alloc_resp for one in read.pod_device_entries or ()] == [answer]
            assert read.marshal() == remembered(ledger.current()).marshal()


def test_a_file_names_the_devices_of_small_lists() -> None:
    """The smallest first, as long as they take little room; every resource is named."""
    lists = {GPU: FEW, BIG: MANY, "example.com/long": LONG, "example.com/nic": ["b", "a"]}
    allocator = DeviceAllocator()
    for resource, ids in lists.items():
        allocator = allocator.with_inventory(serving(resource, ids))
    registered = remembered(allocator).registered_devices or {}
    assert {name: len(ids or ()) for name, ids in registered.items()} == {
        GPU: 200,
        "example.com/nic": 2,
        BIG: 0,
        "example.com/long": 0,
    }


def test_what_is_kept_of_an_entry_does_not_travel() -> None:
    """Copies and pickles of grants and entries carry the fields alone; the same grant may stand elsewhere."""
    large = Grant.of([("a", (0,))], response=bytes(5000))
    entry = large.entry("w", "c", GPU)
    assert entry is large.entry("w", "c", GPU)
    assert large.entry("other", "c", GPU).pod_uid == "other"
    size = len(pickle.dumps(entry))
    assert DeviceManagerState(pod_device_entries=(entry,)).marshal()
    assert len(pickle.dumps(entry)) == size < 6000
    for other in (copy.copy(large), copy.deepcopy(large), pickle.loads(pickle.dumps(large))):  # noqa: S301 - our own
        assert other == large
        assert other.entry("w", "c", GPU) == entry
        assert len(pickle.dumps(other)) < 6000
