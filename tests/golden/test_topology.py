"""Recorded merges, and recorded nodes with the real allocators."""

from __future__ import annotations

import gzip
import json
import pickle
from collections import Counter
from pathlib import Path

import attrs
import pytest

from nodealloc.cpuset import CpuAllocator, CPUSet
from nodealloc.machine import machine_from_text
from nodealloc.memblocks import MemoryAllocator
from nodealloc.testing.conformance._admission import recorded_pod, snapshot_of
from nodealloc.testing.conformance._topology import merge_arguments
from nodealloc.testing.topology import check_allocator, workload
from nodealloc.topology import (
    Admitted,
    Closest,
    Feasibility,
    Narrowest,
    NumaTopology,
    Policy,
    PolicyName,
    Refusal,
    Snapshot,
    TopologyHint,
    admit,
    explain,
    merge,
    release,
    workload_of,
)


def rows(path: Path) -> list[dict[str, object]]:
    """Recorded rows of one file."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


@pytest.fixture(scope="module")
def machines() -> dict[str, dict[str, object]]:
    """Recorded machines by name."""
    folder = Path(__file__).parent.parent / "vectors"
    return {str(row["name"]): row for row in rows(folder / "machines.jsonl.gz")}


def test_the_long_way_makes_recorded_merges_as_well(vectors: Path) -> None:
    """The kubelet's comparison as a strategy, on every tenth row."""
    for row in rows(vectors / "merge.jsonl.gz")[::10]:
        policy, providers, numa = merge_arguments(row)  # type: ignore[arg-type]
        closest = policy.prefer_closest and policy.name is not PolicyName.SINGLE_NUMA_NODE
        comparison = Closest() if closest else Narrowest()
        found = merge(attrs.evolve(policy, comparison=comparison), providers, numa)
        assert [[*found.hint], found.admit] == [row["hint"], row["admit"]]


def test_refusals_of_recorded_nodes_explain_themselves(
    vectors: Path, machines: dict[str, dict[str, object]]
) -> None:
    """With real CPU and memory allocators: feasibilities vary, text is short, JSON is JSON."""
    feasibilities: Counter[Feasibility] = Counter()
    for trace in rows(vectors / "admission.jsonl.gz")[::8]:
        node = snapshot_of(trace, machines)  # type: ignore[arg-type]
        for step in trace["steps"]:  # type: ignore[attr-defined]
            if step["op"] == "remove":
                node = release(node, step["uid"])
                continue
            verdict = admit(node, recorded_pod(step["pod"]))
            if isinstance(verdict, Admitted):
                node = verdict.snapshot
                continue
            assert isinstance(verdict, Refusal)
            story = explain(verdict)
            feasibilities[story.feasibility] += 1
            assert story.reason == step["reason"]
            assert 1 <= len(story.text.splitlines()) <= 16
            assert len(str(verdict).splitlines()) == 2
            assert json.loads(json.dumps(story.as_dict()))["feasibility"] == story.feasibility.value
            assert str(pickle.loads(pickle.dumps(verdict))) == str(verdict)  # noqa: S301
    assert set(feasibilities) == set(Feasibility) - {Feasibility.UNDECIDED}


def test_real_allocators_keep_what_allocators_promise(
    vectors: Path, machines: dict[str, dict[str, object]]
) -> None:
    """CPU and memory allocators of recorded nodes, for the first pods that come there."""
    for trace in rows(vectors / "admission.jsonl.gz")[::20]:
        node = snapshot_of(trace, machines)  # type: ignore[arg-type]
        pods = [recorded_pod(step["pod"]) for step in trace["steps"] if step["op"] == "admit"]  # type: ignore[attr-defined]
        for pod in pods[:3]:
            for allocator in node.allocators:
                exact = allocator.name == "cpu"  # memory goes back inside a group as the kubelet's does
                check_allocator(
                    allocator, workload_of(pod), node.numa, every_hint_grants=False, exact_release=exact
                )


def test_an_init_container_moves_to_where_the_app_has_room() -> None:
    """Kubernetes #110306: a small init container takes the wrong node, and the app is refused."""
    machine = machine_from_text("2 sockets x 4 cores")
    node = Snapshot(
        numa=NumaTopology(nodes=(0, 1)),
        policy=Policy(name=PolicyName.RESTRICTED),
        allocators=(CpuAllocator.of(machine, reserved=CPUSet.of(0)),),
    )
    pod = workload("pod", {"cpu": 4}, init=[{"cpu": 1}])
    refusal = admit(node, pod)
    assert isinstance(refusal, Refusal)
    assert (refusal.member, explain(refusal).feasibility) == ("app-0", Feasibility.UNLUCKY_ORDER)
    found = admit(attrs.evolve(node, policy=attrs.evolve(node.policy, search=True)), pod)
    assert isinstance(found, Admitted)
    assert found.affinity == {"init-0": TopologyHint(2, True), "app-0": TopologyHint(2, True)}


def test_a_machine_of_36_nodes_is_admitted_on() -> None:
    """Kubernetes #135541: 2 nodes with CPUs, 34 with memory alone; hints span what holds the resource."""
    machine = machine_from_text("2 numa x 36 cores + 34 numa x 0 cores")
    node = Snapshot(
        numa=NumaTopology(nodes=tuple(machine.nodes), distances=machine.distances or {}),
        policy=Policy.parse("restricted"),
        allocators=(
            CpuAllocator.of(machine, reserved=1),
            MemoryAllocator.of(machine, reserved={0: {"memory": 1 << 30}}),
        ),
    )
    verdict = admit(node, workload("small", {"cpu": 8, "memory": 4 << 30}, {"cpu": 36, "memory": 4 << 30}))
    assert isinstance(verdict, Admitted)
    assert [hint.affinity for hint in verdict.affinity.values()] == [1, 2]
    refusal = admit(node, workload("large", {"cpu": 100, "memory": 4 << 30}))
    assert isinstance(refusal, Refusal)
    story = explain(refusal)
    assert story.feasibility is Feasibility.NEVER_FITS
    lines = story.text.splitlines()
    assert lines[1] == "  cpu (cpu): 100 wanted; free: 35 on node 0, 36 on node 1; possible nodes: none"
    assert "free: 15 GiB on node 0, 16 GiB on nodes 1-35;" in lines[2]
