"""One plugin's huge answer: right to the last byte, and worked out once."""

from __future__ import annotations

import copy
import pickle
import random
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

from nodealloc.checkpoint import (
    KUBELET_FORMATS,
    DeviceManagerState,
    FileStore,
    KeptBytes,
    PodDevices,
    _kept_bytes,
)
from nodealloc.checkpoint._fnv import fnv1a32
from nodealloc.devices import (
    Device,
    DeviceAllocator,
    DeviceLedger,
    DeviceList,
    Inventory,
    PluginOptions,
)
from nodealloc.devices._state import restored
from nodealloc.podspec import Quantity
from nodealloc.topology import Claim, Owner, TopologyHint

GPU = "example.com/gpu"


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
def prints(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Sizes of the answers that were printed since."""
    sizes: list[int] = []
    printed = _kept_bytes.printed

    def counted(data: bytes, /) -> bytes:
        sizes.append(len(data))
        return printed(data)

    monkeypatch.setattr(_kept_bytes, "printed", counted)
    yield sizes
    monkeypatch.undo()


def test_what_others_commit_works_no_large_answer_out_again(tmp_path: Path, prints: list[int]) -> None:
    """A hundred commits beside three large answers: each was printed for its own commit alone."""
    devices = DeviceList.of([Device(f"d{number:03}") for number in range(200)], nodes=(0,))
    serving = Inventory(resource=GPU).registered(1, now_s=0.0).listed(1, devices, PluginOptions(), now_s=0.0)
    with FileStore(tmp_path, KUBELET_FORMATS) as store:
        ledger = DeviceLedger(DeviceAllocator().with_inventory(serving), store=store)

        def grant(workload: str, answer: bytes) -> None:
            claim = Claim(owner=Owner(workload, "c"), amounts={GPU: Quantity.of(1)})

            def change(allocator: DeviceAllocator) -> DeviceAllocator:
                after = allocator.allocate(claim, TopologyHint(None, True))
                assert isinstance(after, DeviceAllocator)
                return after

            ledger.alter(change)
            ledger.alter(lambda one: one.with_response(Owner(workload, "c"), GPU, answer))

        for number in range(3):
            grant(f"m{number}", bytes([number]) * 100_000)
        prints.clear()
        for number in range(25):
            grant(f"a{number:02}", b"small")
            grant(f"z{number:02}", b"small")
        for number in range(25):
            ledger.release(f"a{number:02}")
        assert prints == []
        kept = store.read().get("kubelet_internal_checkpoint", DeviceManagerState)
    assert kept is not None
    again = restored(DeviceAllocator(), DeviceManagerState.unmarshal(kept.marshal()), now_s=0.0)
    assert again.grants == ledger.current().grants


def test_bytes_that_are_kept_travel_as_plain_ones() -> None:
    """Copies and pickles carry no more than the bytes."""
    large = KeptBytes.of(bytes(5000))
    assert isinstance(large, KeptBytes)
    assert len(large.base64) > 5000
    for other in (copy.copy(large), copy.deepcopy(large), pickle.loads(pickle.dumps(large))):  # noqa: S301 - our own
        assert type(other) is bytes
        assert other == large
    assert len(pickle.dumps(large)) < 5100
    assert KeptBytes.of(large) is large
    assert KeptBytes.of(None) is None
    assert type(KeptBytes.of(b"small")) is bytes
