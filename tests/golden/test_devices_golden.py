"""Device files as kubelets wrote them."""

from __future__ import annotations

from pathlib import Path

from nodealloc.checkpoint import DeviceManagerState
from nodealloc.devices import DeviceAllocator
from nodealloc.devices._state import remembered, restored
from nodealloc.devices.plugins._codec import decode_response
from nodealloc.testing.conformance import read_rows


def test_device_files_survive_a_restart_of_ours(vectors: Path) -> None:
    """What a kubelet remembered is read, its answers are understood, and nothing of it is lost."""
    seen = 0
    for row in read_rows(vectors / "checkpoint_files.jsonl.gz"):
        if row["kind"] != "kubelet_internal_checkpoint":
            continue
        state = DeviceManagerState.unmarshal(str(row["file"]).encode())
        allocator = restored(DeviceAllocator(nodes=tuple(range(8))), state, now_s=0.0)
        entries = state.pod_device_entries or ()
        again = restored(DeviceAllocator(nodes=tuple(range(8))), remembered(allocator), now_s=0.0)
        assert again.grants == allocator.grants
        for entry in entries:
            grant = allocator.grants[entry.pod_uid][entry.container_name, entry.resource_name]
            assert grant.ids == {i for ids in (entry.device_ids or {}).values() for i in ids or ()}
            assert grant.response == entry.alloc_resp
            decode_response(entry.alloc_resp or b"")
            seen += 1
    assert seen > 100
