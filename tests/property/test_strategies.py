"""What users may ask of the strategies holds for whatever they draw."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodealloc.testing.strategies import (
    cgroups,
    cpuset,
    devices,
    dsw_asw,
    machine,
    memblocks,
    node,
    podspec,
    topology,
    volumes,
)
from nodealloc.topology import NumaTopology

NUMA = NumaTopology(nodes=(0, 3))

BOUNDS: Mapping[str, tuple[st.SearchStrategy[object], Callable[..., object]]] = {
    "cgroup names": (cgroups.cgroup_names(max_depth=2), lambda one: len(one.parts) <= 2),
    "scopes": (dsw_asw.scopes(max_depth=2, names="xyz"), lambda one: len(one) <= 2 and set(one) <= {*"xyz"}),
    "CPUs of a workload": (
        cpuset.cpu_workloads("j", max_cpus=2),
        lambda one: one.key == "j" and all(claim.amounts["cpu"].value <= 2 for claim in one.claims),
    ),
    "devices' nodes": (
        devices.device_lists(nodes=2),
        lambda one: all(set(one.nodes_of(name)) <= {0, 1} for name in one.ids),
    ),
    "inventories' nodes": (
        devices.inventories("r/r", nodes=2),
        lambda one: one.resource == "r/r" and set(one.devices.by_node) <= {-1, 0, 1},
    ),
    "device allocators": (devices.device_allocators("r/r", nodes=2), lambda one: one.nodes == (0, 1)),
    "machines": (
        machine.machines(max_cpus=6, offline=False, cpuless_nodes=False),
        lambda one: len(one.online) <= 6 and not one.offline and all(each.cpus for each in one.numa_nodes),
    ),
    "memory machines": (memblocks.memory_machines(max_nodes=2), lambda one: 1 <= len(one.numa_nodes) <= 2),
    "memory workloads": (
        memblocks.memory_workloads("m", exclusive=False),
        lambda one: not any(claim.exclusive for claim in one.claims),
    ),
    "memory histories": (memblocks.memory_histories(max_steps=3), lambda one: 1 <= len(one) <= 3),
    "histories of nodes": (
        node.node_histories(max_steps=3, max_pods=2),
        lambda one: (
            len(one) <= 3
            and {step.pod.name for step in one if isinstance(step, node.Admit)} <= {"pod-0", "pod-1"}
        ),
    ),
    "manifests": (
        podspec.manifests(name="p", extended=("r/r",), most_containers=1),
        lambda one: one["metadata"]["uid"] == "p" and len(one["spec"]["containers"]) == 1,
    ),
    "hints of providers": (
        topology.provider_hints(NUMA, most_providers=2, most_hints=1),
        lambda one: len(one) <= 2 and all(len(found or ()) <= 1 for each in one for found in each.values()),
    ),
    "workloads": (
        topology.workloads("w", most_members=1, most_units=2),
        lambda one: all(amount.value <= 2 for claim in one.claims for amount in claim.amounts.values()),
    ),
    "snapshots": (
        topology.snapshots(most_units=1),
        lambda one: all(
            units.bit_count() <= 1 for allocator in one.allocators for units in allocator.units.values()
        ),
    ),
    "volumes": (volumes.volume_specs(plugin="a/b", name="v"), lambda one: one.id == "a/b/v"),
}


@pytest.mark.parametrize("name", sorted(BOUNDS))
def test_what_is_drawn_is_what_was_asked_for(name: str) -> None:
    """Sizes, names and kinds that an argument bounds are bounded."""
    strategy, holds = BOUNDS[name]

    @given(drawn=strategy)
    def bounded(drawn: object) -> None:
        assert holds(drawn), drawn

    bounded()
