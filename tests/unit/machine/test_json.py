"""Machines as JSON and as cAdvisor describes them, and what is refused there."""

from __future__ import annotations

import pytest

from nodealloc.errors import DecodeError
from nodealloc.idset import CPUSet
from nodealloc.machine import machine_from_cadvisor, machine_from_json, machine_from_text, machine_to_json


def faults(data: dict[str, object]) -> dict[str, str]:
    """Path to reason of everything that a document is refused for."""
    with pytest.raises(DecodeError) as caught:
        machine_from_json(data)
    return {fault.path: fault.reason for fault in caught.value.faults}


def test_the_shape_is_the_documented_one() -> None:
    """Ids are keys as JSON has them; lists are ascending."""
    assert machine_to_json(machine_from_text("2 cores, offline=1, hugepages=2Mi:3", name="m")) == {
        "name": "m",
        "cpus": {"0": {"socket": 0, "core": 0, "l3": 0, "die": None, "cluster": None, "numa_nodes": [0]}},
        "numa_nodes": {"0": {"cpus": [0], "memory_bytes": 16 << 30, "hugepages": {"2097152": 3}}},
        "distances": {"nodes": [0], "matrix": [[10]]},
        "offline_cpus": [1],
        "isolated_cpus": [],
    }


def test_a_kind_is_kept() -> None:
    """Hybrid cores survive."""
    machine = machine_from_text("1 fast cores + 1 slow cores")
    assert machine_from_json(machine_to_json(machine)).cpu[1].kind == "slow"


def test_nodes_follow_from_cpus_and_cpus_from_nodes() -> None:
    """One of the two is enough; a list may be text."""
    by_cpus = machine_from_json(
        {"cpus": {"0": {"numa_nodes": [2]}}, "numa_nodes": {"2": {"memory_bytes": 5}}}
    )
    assert by_cpus.node[2].cpus == CPUSet.of(0)
    by_nodes = machine_from_json({"cpus": {"0": {}, "1": {}}, "numa_nodes": {"2": {"cpus": "0-1"}}})
    assert by_nodes.cpu[1].numa_nodes == (2,)


def test_null_groups_get_stand_ins() -> None:
    """A null core is one of its own; null sockets are one."""
    machine = machine_from_json({"cpus": {"3": {"socket": None, "core": None}, "1": {"core": None}}})
    assert [(cpu.id, cpu.core, cpu.socket) for cpu in machine.cpus] == [(1, 1, 1), (3, 3, 1)]


def test_every_fault_is_listed() -> None:
    """Not only the first."""
    found = faults(
        {
            "name": 5,
            "cpus": {"0": {"socket": "x", "numa_nodes": [-1]}, "a": {}, "1": 3, "70000": {}},
            "numa_nodes": {"0": {"cpus": "0-x", "hugepages": {"0": 1, "y": 2}, "memory_bytes": 1.5}},
            "distances": {"nodes": [0], "matrix": [[1, 2]]},
            "offline_cpus": True,
            "isolated_cpus": ["x" * 100, None, {}],
        }
    )
    assert set(found) == {
        "$.name",
        "$.cpus.0.socket",
        "$.cpus.0.numa_nodes[0]",
        "$.cpus.a",
        "$.cpus.1",
        "$.cpus.70000",
        "$.numa_nodes.0.cpus",
        "$.numa_nodes.0.hugepages.0",
        "$.numa_nodes.0.hugepages.y",
        "$.numa_nodes.0.memory_bytes",
        "$.distances.matrix[0]",
        "$.offline_cpus",
        "$.isolated_cpus[0]",
        "$.isolated_cpus[1]",
        "$.isolated_cpus[2]",
    }


def test_a_machine_has_a_cpu() -> None:
    """An empty one is refused."""
    assert faults({"cpus": {}}) == {"$.cpus": "a machine has at least one CPU"}


def test_what_no_machine_can_be_is_refused() -> None:
    """The model's own refusal becomes a fault of the whole document."""
    found = faults({"cpus": {"0": {}}, "offline_cpus": [0]})
    assert "online and offline at once" in found["$"]


def test_rows_of_distances_are_as_many_as_nodes() -> None:
    """A matrix of another size is refused."""
    found = faults({"cpus": {"0": {}}, "distances": {"nodes": [0, 1], "matrix": [[1]]}})
    assert found == {"$.distances.matrix": "1 rows for 2 nodes"}


def core(threads: list[int], socket: int = 0, **more: object) -> dict[str, object]:
    """A core as cAdvisor writes it."""
    return {"core_id": 0, "thread_ids": threads, "socket_id": socket, **more}


def test_cadvisor_groups_go_by_the_kubelets_ids() -> None:
    """A core by its smallest CPU, an L3 by the first uncore cache, none where there is none."""
    machine = machine_from_cadvisor(
        {
            "topology": [
                {
                    "node_id": 4,
                    "memory": 7,
                    "cores": [core([9, 1], 2, uncore_caches=[{"id": 5}]), core([2], 2)],
                },
                {"node_id": 0, "memory": 3, "cores": None, "distances": None},
            ]
        },
        name="n",
    )
    assert [(cpu.id, cpu.core, cpu.socket, cpu.l3, cpu.numa_nodes) for cpu in machine.cpus] == [
        (1, 1, 2, 5, (4,)),
        (2, 2, 2, None, (4,)),
        (9, 1, 2, 5, (4,)),
    ]
    assert [node.memory_bytes for node in machine.numa_nodes] == [3, 7]
    assert machine.distances is None


@pytest.mark.parametrize(
    ("topology", "path"),
    [
        (None, "$.topology"),
        ([], "$.topology"),
        ([{"node_id": 0, "cores": []}], "$.topology"),
        ([{"node_id": -1, "cores": [core([0])]}], "$.topology[0].node_id"),
        ([{"node_id": 0, "cores": [core([0])]}, {"node_id": 0}], "$.topology[1].node_id"),
        ([{"node_id": 0, "cores": [core([])]}], "$.topology[0].cores[0].thread_ids"),
        ([{"node_id": 0, "cores": [core([0]), core([0])]}], "$.topology[0].cores[1].thread_ids"),
        (
            [{"node_id": 0, "cores": [core([0])], "hugepages": [{"page_size": 0, "num_pages": 1}]}],
            "$.topology[0].hugepages[0].page_size",
        ),
        ([{"node_id": 0, "cores": [core([0])], "distances": [10, 20]}], "$.topology"),
        (
            [{"node_id": 0, "cores": [core([0], uncore_caches=[3])]}],
            "$.topology[0].cores[0].uncore_caches[0]",
        ),
    ],
)
def test_cadvisor_faults_are_named(topology: object, path: str) -> None:
    """With the path in the document."""
    with pytest.raises(DecodeError) as caught:
        machine_from_cadvisor({"topology": topology})
    assert path in [fault.path for fault in caught.value.faults]
