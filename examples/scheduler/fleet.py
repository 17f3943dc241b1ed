"""A fleet of nodes in all states of fullness, made from a seed."""

from __future__ import annotations

import random
from collections.abc import Iterator

from examples.scheduler.score import Candidate
from nodealloc.cpuset import CpuAllocator, StaticPolicy
from nodealloc.machine import machine_from_text
from nodealloc.memblocks import MemoryAllocator
from nodealloc.podfacts import NodeView, PodOnNode
from nodealloc.podspec import Pod, Resources, resources
from nodealloc.topology import Admitted, Policy, Snapshot, admit

__all__ = ["KINDS", "fleet", "guaranteed"]

KINDS = (
    "2 sockets x 8 cores x 2 threads, memory=64Gi",
    "2 sockets x 2 numa x 8 cores x 2 threads, memory=32Gi",
    "1 socket x 4 numa x 16 cores, memory=64Gi",
)
"""The kinds of machines in the fleet, for `nodealloc.machine.machine_from_text`."""


def guaranteed(uid: str, *amounts: tuple[int, int]) -> Pod:
    """A pod of QoS class Guaranteed: CPUs and GiB of memory for each container."""
    containers = [
        {"name": f"app-{place}", "resources": {"limits": {"cpu": cpus, "memory": f"{gib}Gi"}}}
        for place, (cpus, gib) in enumerate(amounts)
    ]
    return Pod.from_manifest({"metadata": {"name": uid, "uid": uid}, "spec": {"containers": containers}})


def fleet(count: int, policy: Policy, *, seed: int = 0) -> Iterator[Candidate]:
    """`count` nodes; each has let in some pods already.

    Nodes of one kind share their machine, policy and layout: a batch of them
    pickles those once.
    """
    chance = random.Random(seed)  # noqa: S311 - a fleet, not a secret
    empty = [_empty(kind, policy) for kind in KINDS]
    pods = [guaranteed(f"old-{n}", (chance.randint(1, 12), chance.randint(1, 24))) for n in range(40)]
    there = {pod.uid: PodOnNode.of(pod) for pod in pods}
    for number in range(count):
        snapshot, allocatable = chance.choice(empty)
        view = NodeView(name=f"node-{number:05}", allocatable=allocatable)
        for pod in chance.sample(pods, chance.randint(0, 6)):
            verdict = admit(snapshot, pod)
            if isinstance(verdict, Admitted):
                snapshot, view = verdict.snapshot, view.with_pod(there[pod.uid])
        yield Candidate(view, snapshot)


def _empty(kind: str, policy: Policy) -> tuple[Snapshot, Resources]:
    """A node with nothing on it, and what it gives out."""
    machine = machine_from_text(kind)
    cpus = StaticPolicy.of(machine, reserved=1, topology_policy=policy.name.value)
    memory = sum(node.memory_bytes - (1 << 30) for node in machine.numa_nodes)
    allocatable = resources({"cpu": len(machine.online) - 1, "memory": memory, "pods": 110})
    snapshot = Snapshot.of(
        machine,
        policy=policy,
        allocators=(
            CpuAllocator(policy=cpus),
            MemoryAllocator.of(
                machine, reserved={node.id: {"memory": 1 << 30} for node in machine.numa_nodes}
            ),
        ),
    )
    return snapshot, allocatable
