"""State files that kubelets wrote: read, verified, written back, and damaged."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

from nodealloc.checkpoint import (
    KUBELET_FORMATS,
    CorruptCheckpointError,
    CpuManagerState,
    CpuManagerStateV1,
    DeviceManagerState,
    MemoryManagerState,
    PodDevices,
    read_cpu_manager_state,
)
from nodealloc.checkpoint._cpu_state import CpuLayout
from nodealloc.checkpoint._fnv import fnv1a32
from nodealloc.checkpoint._memory_state import MemoryLayout
from nodealloc.checkpoint._pod_devices import DeviceLayout
from nodealloc.errors import DecodeError
from nodealloc.testing.checkpoint import mutations


def recorded(vectors: Path) -> Iterator[tuple[str, bytes]]:
    """All recorded files: kind and bytes."""
    with gzip.open(vectors / "checkpoint_files.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            yield row["kind"], row["file"].encode()


def test_recorded_files_come_back_byte_for_byte(vectors: Path) -> None:
    """Each recorded file is read, verified, and written as the same bytes, also from a state made anew."""
    count = 0
    for kind, data in recorded(vectors):
        state = KUBELET_FORMATS[kind](data)
        state.verify()
        assert state.marshal() == data
        assert KUBELET_FORMATS[kind](state.marshal()) == state
        count += 1
    assert count == 750


@pytest.mark.parametrize(
    "name",
    [
        "four-nodes.cpu_manager_state",
        "four-nodes.memory_manager_state",
        "four-nodes.kubelet_internal_checkpoint",
        "one-node.kubelet_internal_checkpoint",
    ],
)
def test_genuine_files_come_back_byte_for_byte(vectors: Path, name: str) -> None:
    """Files of running nodes are read, verified and written as the same bytes."""
    data = (vectors / "state_files" / name).read_bytes()
    state = KUBELET_FORMATS[name.partition(".")[2]](data)
    state.verify()
    assert state.marshal() == data


def test_any_changed_byte_is_detected_or_harmless(vectors: Path) -> None:
    """A file with one byte changed is refused, or has equal content, for bytes all over the files."""
    rng = random.Random(0)
    tried = harmless = 0
    for kind, data in recorded(vectors):
        state = KUBELET_FORMATS[kind](data)
        for _ in range(16):
            at = rng.randrange(len(data))
            changed = bytearray(data)
            changed[at] = rng.choice([byte for byte in range(256) if byte != data[at]])
            tried += 1
            try:
                found = KUBELET_FORMATS[kind](bytes(changed))
                found.verify()
            except (DecodeError, CorruptCheckpointError):
                continue
            harmless += 1
            assert found == state
    assert tried == 12_000
    assert harmless < 100


def test_each_byte_of_some_files(vectors: Path) -> None:
    """For one file of each kind: every byte, with several changes each."""
    seen: dict[str, bytes] = {}
    for kind, data in recorded(vectors):
        if 300 < len(data) < 500:
            seen.setdefault(kind, data)
    assert len(seen) == 3
    for kind, data in seen.items():
        state = KUBELET_FORMATS[kind](data)
        for at, byte in enumerate(data):
            for other in {byte ^ 1, byte ^ 0x20, (byte + 1) % 256, ord("0"), ord('"'), ord(" ")} - {byte}:
                try:
                    found = KUBELET_FORMATS[kind](data[:at] + bytes([other]) + data[at + 1 :])
                    found.verify()
                except (DecodeError, CorruptCheckpointError):
                    continue
                assert found == state


def test_ten_thousand_mutated_files(vectors: Path) -> None:
    """Cut, doubled, nested, oversized: each is refused or equal, and nothing else is ever raised."""
    rng = random.Random(1)
    tried = 0
    for kind, data in recorded(vectors):
        state = KUBELET_FORMATS[kind](data)
        for damaged in mutations(data, rng, 14):
            tried += 1
            try:
                found = KUBELET_FORMATS[kind](damaged)
                found.verify()
            except (DecodeError, CorruptCheckpointError):
                continue
            assert found == state
    assert tried == 10_500


V1 = (
    b'{"policyName":"static","defaultCpuSet":"7-9","entries":{"containerID1":"4-6","containerID2":"1-3"},'
    b'"checksum":2026311253}'
)
V1_EMPTY = b'{"policyName":"none","defaultCpuSet":"1-3","checksum":1694838852}'
V3 = (
    b'{"policyName":"static","defaultCpuSet":"1-2","entries":{"pod1":{"container1":"5-6","container2":"3-4"}},'
    b'"podEntries":{"pod2":{"cpuSet":"7-9"}},"checksum":766259872}'
)
MEMORY = (
    b'{"policyName":"static","machineState":{"0":{"numberOfAssignments":0,"memoryMap":{"memory":{"total":2048,'
    b'"systemReserved":512,"allocatable":1536,"reserved":512,"free":1024}},"cells":[]}},"entries":{"pod":'
    b'{"container1":[{"numaAffinity":[0],"type":"memory","size":512}]}}'
)
MEMORY_V1 = MEMORY + b',"checksum":4215593881}'
MEMORY_V2 = (
    MEMORY + b',"podEntries":{"pod":{"memoryBlocks":[{"numaAffinity":[0],"type":"memory","size":512}]}},'
    b'"checksum":1278640530}'
)
MEMORY_V3_CHECKSUM = 1849615440


@pytest.mark.parametrize("data", [V1, V3, MEMORY_V1, MEMORY_V2])
def test_layouts_of_other_versions(data: bytes) -> None:
    """Checksums that other kubelet versions gave are right, and the files come back as they were."""
    kind = "memory_manager_state" if b"machineState" in data else "cpu_manager_state"
    state = KUBELET_FORMATS[kind](data)
    state.verify()
    assert state.marshal() == data


def test_first_layout_is_migrated() -> None:
    """CPUs by container id move to pods; what the runtime does not know is handed back."""
    old = read_cpu_manager_state(V1)
    assert isinstance(old, CpuManagerStateV1)
    new, unknown = old.migrate({"containerID1": ("pod", "app")})
    assert new == CpuManagerState(policy_name="static", default_cpuset="7-9", entries={"pod": {"app": "4-6"}})
    assert unknown == {"containerID2": "1-3"}


def test_first_layout_without_assignments_is_migrated_at_once() -> None:
    """A state without assignments is the same in both layouts; only the checksum differs."""
    state = read_cpu_manager_state(V1_EMPTY)
    assert state == CpuManagerState(policy_name="none", default_cpuset="1-3")
    state.verify()
    assert state.marshal() != V1_EMPTY
    damaged = read_cpu_manager_state(V1_EMPTY.replace(b"1-3", b"1-4"))
    with pytest.raises(CorruptCheckpointError):
        damaged.verify()


def test_checksum_zero_of_a_cpu_state_is_accepted() -> None:
    """Files of before checksums carry 0."""
    for entries in (b"", b'"entries":{"pod":{"app":"1"}},', b'"entries":{"id":"1"},'):
        read_cpu_manager_state(
            b'{"policyName":"static","defaultCpuSet":"0",' + entries + b'"checksum":0}'
        ).verify()
    with pytest.raises(CorruptCheckpointError):
        MemoryManagerState.unmarshal(MEMORY + b',"checksum":0}').verify()


def test_renamed_types_are_known() -> None:
    """Kubelets hashed the name of their own Go type, which one of them had changed."""
    printed = (
        "(*state.CPUManagerCheckpointV2){PolicyName:(string)none DefaultCPUSet:(string)0-3 "
        "Entries:(map[string]map[string]string)map[] Checksum:(checksum.Checksum)0}"
    )

    def stored(text: str) -> CpuManagerState:
        checksum = fnv1a32(text.encode())
        data = f'{{"policyName":"none","defaultCpuSet":"0-3","checksum":{checksum}}}'.encode()
        state = read_cpu_manager_state(data)
        assert isinstance(state, CpuManagerState)
        return state

    stored(printed).verify()
    with pytest.raises(CorruptCheckpointError):
        stored(printed.replace("CheckpointV2", "CheckpointV9")).verify()


def test_newest_layouts_trust_their_text_alone() -> None:
    """The checksum that counts covers `data`; the rest is for older kubelets."""
    text = MEMORY.decode() + "}"
    assert fnv1a32(f"(string){text}".encode()) == MEMORY_V3_CHECKSUM
    memory = MemoryManagerState.unmarshal(
        json.dumps(
            {
                "policyName": "other",
                "machineState": {},
                "checksum": 1234,
                "data": text,
                "dataChecksum": MEMORY_V3_CHECKSUM,
            }
        ).encode()
    )
    memory.verify()
    assert memory.layout is MemoryLayout.V3
    assert memory.policy_name == "static"
    again = MemoryManagerState.unmarshal(memory.marshal())
    again.verify()
    assert again == memory
    assert b'"checksum":0,"data":' in memory.marshal()
    assert fnv1a32(b'(string){"policyName":"none","defaultCPUSet":"4-6"}') == 657950972
    cpu = CpuManagerState(
        policy_name="static", default_cpuset="0", pod_entries={"p": "1-2"}, layout=CpuLayout.V4
    )
    found = CpuManagerState.unmarshal(cpu.marshal())
    found.verify()
    assert found == cpu
    with pytest.raises(CorruptCheckpointError):
        CpuManagerState.unmarshal(cpu.marshal().replace(b"1-2", b"1-3")).verify()


def test_older_kubelets_read_the_newest_layouts() -> None:
    """The outer part of the newest layout is a file of the layout before, with checksum 0."""
    cpu = CpuManagerState(
        policy_name="static", default_cpuset="0", entries={"p": {"c": "1"}}, layout=CpuLayout.V4
    )
    outer = json.loads(cpu.marshal())
    del outer["data"], outer["dataChecksum"]
    older = CpuManagerState.unmarshal(json.dumps(outer).encode())
    older.verify()
    assert older.entries == cpu.entries


def test_device_files_of_before_numa() -> None:
    """One list of devices a container, as kubelets up to 1.19 wrote it; all devices count as node 0."""
    printed = (
        "(checkpoint.checkpointData){PodDeviceEntries:([]checkpoint.PodDevicesEntry)[{PodUID:(string)u "
        "ContainerName:(string)c ResourceName:(string)a/b DeviceIDs:([]string)[x y] AllocResp:([]uint8)[1]}] "
        "RegisteredDevices:(map[string][]string)map[a/b:[x y]]}"
    )
    data = (
        '{"Data":{"PodDeviceEntries":[{"PodUID":"u","ContainerName":"c","ResourceName":"a/b",'
        '"DeviceIDs":["x","y"],"AllocResp":"AQ=="}],"RegisteredDevices":{"a/b":["x","y"]}},'
        f'"Checksum":{fnv1a32(printed.encode())}}}'
    ).encode()
    state = DeviceManagerState.unmarshal(data)
    state.verify()
    assert state.layout is DeviceLayout.V1
    assert state.pod_device_entries is not None
    assert state.pod_device_entries[0].device_ids == {0: ("x", "y")}
    assert state.marshal() == data
    spread = attrs.evolve(state.pod_device_entries[0], device_ids={0: ("x",), 1: None, 3: ("y",)})
    assert attrs.evolve(state, pod_device_entries=(spread,)).marshal() == data


def test_boot_id_stands_outside_the_checksum() -> None:
    """A newer kubelet's boot id is read and written; an older one ignores it."""
    entry = PodDevices(pod_uid="u", container_name="c", resource_name="r", device_ids={-1: ("d",), 0: None})
    plain = DeviceManagerState(pod_device_entries=(entry,), registered_devices={"r": ("d",)})
    with_boot = DeviceManagerState(
        pod_device_entries=(entry,), registered_devices={"r": ("d",)}, boot_id="b-1"
    )
    assert with_boot.marshal() == plain.marshal()[:-1] + b',"BootID":"b-1"}'
    found = DeviceManagerState.unmarshal(with_boot.marshal())
    found.verify()
    assert found == with_boot
