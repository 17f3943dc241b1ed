"""Recorded facts: device hints, and device files as kubelets wrote them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

from nodealloc.checkpoint import DeviceManagerState
from nodealloc.devices import DeviceAllocator, decode_response, remembered, restored
from nodealloc.testing.conformance import _devices


def rows(vectors: Path, kind: str) -> list[dict[str, object]]:
    """All recorded rows of a kind."""
    with gzip.open(vectors / f"{kind}.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def test_hints_are_those_of_the_kubelet(vectors: Path) -> None:
    """Every recorded row, all hints in their order."""
    differing = []
    for row in rows(vectors, "device_hints"):
        expected, got = _devices.device_hints(row, {})  # type: ignore[arg-type]
        if expected != got:
            differing.append(row)
    assert not differing, f"{len(differing)} rows differ, the first: {differing[0]}"


def test_device_files_survive_a_restart_of_ours(vectors: Path) -> None:
    """What a kubelet remembered is read, its answers are understood, and nothing of it is lost."""
    seen = 0
    for row in rows(vectors, "checkpoint_files"):
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
