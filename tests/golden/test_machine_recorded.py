"""Machines that were recorded with decisions, and one that cAdvisor described."""

from __future__ import annotations

import json
from pathlib import Path

from nodealloc.idset import CPUSet
from nodealloc.machine import machine_from_cadvisor, machine_from_json, machine_to_json
from nodealloc.testing.machine import recorded_machines


def test_recorded_machines_keep_their_ids(vectors: Path) -> None:
    """All thirteen load, and group ids are as recorded."""
    machines = recorded_machines(vectors / "machines.jsonl.gz")
    assert len(machines) == 13
    assert machines["dual-smt-16-interleaved"].cpu[1].socket == 1
    assert machines["octo-160"].groups("core")[2] == CPUSet.of(2, 3)


def test_recorded_machines_survive_json(vectors: Path) -> None:
    """Each goes through JSON text and comes back equal, fingerprint included."""
    for machine in recorded_machines(vectors / "machines.jsonl.gz").values():
        again = machine_from_json(json.loads(json.dumps(machine_to_json(machine))))
        assert again == machine
        assert again.fingerprint() == machine.fingerprint()


def test_a_kubelet_description_is_read_as_the_kubelet_reads_it(vectors: Path) -> None:
    """Core ids that repeat in each socket become unique; memory, pools and distances stay."""
    described = json.loads((vectors / "state_files" / "four-nodes.machineinfo.json").read_text())
    machine = machine_from_cadvisor(described, name="four")
    assert machine.online == CPUSet.parse("0-7")
    assert [cpu.core for cpu in machine.cpus] == [*range(8)]
    assert [cpu.socket for cpu in machine.cpus] == [0, 0, 1, 1, 2, 2, 3, 3]
    assert machine.node[0].memory_bytes == 526737408
    assert machine.node[3].hugepages == {2 << 20: 0, 1 << 30: 0}
    assert machine.distances is not None
    assert [machine.distances[0][node] for node in machine.nodes] == [10, 12, 21, 21]


def test_the_described_machine_is_the_one_whose_state_was_written(vectors: Path) -> None:
    """The CPUs and the memory of the state files that the kubelet wrote there are this machine's."""
    folder = vectors / "state_files"
    machine = machine_from_cadvisor(json.loads((folder / "four-nodes.machineinfo.json").read_text()))
    cpus = json.loads((folder / "four-nodes.cpu_manager_state").read_text())
    held = CPUSet.parse(cpus["defaultCpuSet"])
    for containers in cpus.get("entries", {}).values():
        for text in containers.values():
            held = held | CPUSet.parse(text)
    assert held <= machine.online
    memory = json.loads((folder / "four-nodes.memory_manager_state").read_text())
    totals = {int(n): row["memoryMap"]["memory"]["total"] for n, row in memory["machineState"].items()}
    assert totals == {node.id: node.memory_bytes for node in machine.numa_nodes}
