"""Recorded facts: genuine state files, and whole nodes under the stricter rules."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import attrs
import pytest

from nodealloc.checkpoint import MemoryManagerState
from nodealloc.machine import machine_from_cadvisor
from nodealloc.memblocks import (
    MemoryAllocator,
    MemoryOptions,
)
from nodealloc.memblocks._codec import from_kubelet
from nodealloc.podspec import Quantity
from nodealloc.testing.conformance import Row, read_machines, read_rows
from nodealloc.testing.conformance._admission import recorded_pod, snapshot_of
from nodealloc.testing.memblocks import check_books
from nodealloc.topology import (
    Admitted,
    Claim,
    Owner,
    Snapshot,
    TopologyHint,
    admit,
    release,
)

MIB = 1 << 20


def test_a_genuine_state_follows_from_machine_and_claims(vectors: Path) -> None:
    """Two pods of 128 MiB on nodes 1 and 2, 200 MiB reserved on node 0: the kubelet's bytes."""
    folder = vectors / "state_files"
    machine = machine_from_cadvisor(json.loads((folder / "four-nodes.machineinfo.json").read_text()))
    allocator = MemoryAllocator.of(machine, reserved={0: {"memory": 200 * MIB}})
    for key, node in (("g1", 1), ("g2", 2)):
        claim = Claim(owner=Owner(key, "c"), amounts={"memory": Quantity.of(128 * MIB)})
        granted = allocator.allocate(claim, TopologyHint(1 << node, preferred=True))
        assert isinstance(granted, MemoryAllocator)
        allocator = granted
    genuine = (folder / "four-nodes.memory_manager_state").read_bytes()
    assert allocator.to_kubelet().marshal() == genuine.rstrip(b"\n")


def test_a_genuine_state_is_restored_whole(vectors: Path) -> None:
    """Everybody stays, and writing it again gives the same bytes."""
    folder = vectors / "state_files"
    machine = machine_from_cadvisor(json.loads((folder / "four-nodes.machineinfo.json").read_text()))
    record = MemoryManagerState.unmarshal((folder / "four-nodes.memory_manager_state").read_bytes())
    plan = MemoryAllocator.of(machine, reserved={0: {"memory": 200 * MIB}}).plan_restore(from_kubelet(record))
    assert plan.is_clean
    assert (plan.drifts, plan.faults) == ((), ())
    assert plan.allocator.to_kubelet() == record


def memory(node: Snapshot) -> MemoryAllocator:
    """The memory of a node."""
    return cast("MemoryAllocator", node.allocators[1])


@pytest.mark.parametrize(
    "options",
    [MemoryOptions(), MemoryOptions(strict=True), MemoryOptions(strict=True, fall_back=True)],
    ids=["kubelet", "strict", "strict and falling back"],
)
def test_recorded_histories_keep_the_books(vectors: Path, options: MemoryOptions) -> None:
    """All traces under any option: no byte twice, restarts change nothing, in the end all is free."""
    machines = read_machines(vectors / "machines.jsonl.gz")
    admitted = 0
    for row in read_rows(vectors / "admission.jsonl.gz"):
        if row["memory_policy"] != "Static":
            continue
        node = snapshot_of(row, machines)
        empty = attrs.evolve(memory(node), options=options)
        node = attrs.evolve(node, allocators=(node.allocators[0], empty))
        for step in cast("Sequence[Row]", row["steps"]):
            if step["op"] == "remove":
                node = release(node, str(step["uid"]))
            else:
                verdict = admit(node, recorded_pod(cast("Row", step["pod"])))
                if isinstance(verdict, Admitted):
                    node, admitted = verdict.snapshot, admitted + 1
            check_books(memory(node))
        assert empty.plan_restore(from_kubelet(memory(node).to_kubelet())).allocator == memory(node)
        for key in [*node.admitted]:
            node = release(node, key)
        assert memory(node) == empty
    assert admitted > 1000
