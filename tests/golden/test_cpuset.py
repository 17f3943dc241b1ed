"""What kubelets decided and wrote, decided and written again."""

from __future__ import annotations

import gzip
import json
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from nodealloc.checkpoint import CpuManagerState
from nodealloc.cpuset import CpuAllocator, CPUSet, StaticOptions, StaticPolicy
from nodealloc.cpuset._codec import from_kubelet, to_kubelet
from nodealloc.machine import Machine, discover, machine_from_cadvisor
from nodealloc.podspec import Container, Json, Pod, Quantity
from nodealloc.testing.conformance import read_machines
from nodealloc.testing.conformance._recorded_machine import recorded_machine
from nodealloc.testing.cpuset import check_picker
from nodealloc.topology import Claim, Owner, Shortfall, TopologyHint, workload_of
from tests.archives import unpack


def test_admitted_containers_get_the_recorded_cpus(vectors: Path) -> None:
    """With the recorded affinities, 200 node histories leave the recorded CPUs and shared pools."""
    machines = {
        name: recorded_machine(row) for name, row in read_machines(vectors / "machines.jsonl.gz").items()
    }
    steps = sum(_replayed(trace, machines) for trace in _rows(vectors / "admission.jsonl.gz"))
    assert steps == 4800


def test_reads_and_writes_a_file_that_a_kubelet_wrote(vectors: Path) -> None:
    """A genuine state file is read, kept whole on its machine, and written byte for byte."""
    data = (vectors / "state_files" / "four-nodes.cpu_manager_state").read_bytes()
    described = (vectors / "state_files" / "four-nodes.machineinfo.json").read_text(encoding="utf-8")
    machine = machine_from_cadvisor(json.loads(described))
    recorded = from_kubelet(CpuManagerState.unmarshal(data))
    plan = CpuAllocator.of(machine, reserved=CPUSet.of(0)).plan_restore(recorded)
    assert plan.is_clean, str(plan)
    assert to_kubelet(plan.allocator).marshal() == data


@pytest.mark.slow
def test_captured_machines_are_given_out_whole(captures: Path, tmp_path: Path) -> None:
    """On every captured machine pickers keep their promise, and all CPUs can be granted and freed."""
    archives = sorted(captures.glob("*.tar.xz"))
    assert archives, f"nothing in {captures}"
    for archive in archives:
        name = archive.name.removesuffix(".tar.xz")
        with tarfile.open(archive) as packed:
            unpack(packed, tmp_path)
        machine = discover(tmp_path / name / "sys").machine
        _give_out(machine, StaticOptions())
        _give_out(machine, StaticOptions(prefer_align_cpus_by_uncorecache=True))
        _give_out(machine, StaticOptions(distribute_cpus_across_numa=True, full_pcpus_only=True))


def _give_out(machine: Machine, options: StaticOptions) -> None:
    policy = StaticPolicy.of(machine, reserved=1, options=options)
    check_picker(policy.picker, policy.layout)
    node = empty = CpuAllocator(policy=policy)
    size = policy.layout.threads_per_core if options.full_pcpus_only else 3
    for number in range(len(machine.online)):
        job = Claim(owner=Owner(f"job-{number}", "main"), amounts={"cpu": Quantity.of(size)})
        hints = node.hints([job])["cpu"]
        answer = node.allocate(job, next(iter(hints or ()), TopologyHint(None, preferred=False)))
        if isinstance(answer, Shortfall):
            break
        node = answer
        if options.full_pcpus_only and policy.only_whole_cores:
            held = node.exclusive_of(job.owner).mask
            assert policy.layout.whole_cores(held) == held
    left = (policy.allocatable & ~node.state.held).bit_count()
    assert left < size or options.full_pcpus_only
    for owner, _ in tuple(node.state.items()):
        node = node.release(owner.workload)
    assert node == empty


def _rows(path: Path) -> Iterator[dict[str, Json]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def _replayed(trace: Mapping[str, object], machines: Mapping[str, Machine]) -> int:
    options = trace["cpu_policy_options"]
    assert isinstance(options, dict)
    policy = StaticPolicy.of(
        machines[str(trace["machine"])],
        reserved=CPUSet.parse(str(trace["reserved_cpus"])),
        options=StaticOptions.from_kubelet(options),
        topology_policy=str(trace["topology_policy"]),
    )
    node = CpuAllocator(policy=policy)
    steps = trace["steps"]
    assert isinstance(steps, list)
    for step in steps:
        node = _step(node, step)
        assert str(node.shared) == step["default_cpuset"]
    return len(steps)


def _step(node: CpuAllocator, step: Mapping[str, object]) -> CpuAllocator:
    if step["op"] != "admit":
        return node.release(str(step["uid"]))
    if not step["admit"]:
        return node
    affinity, granted = step["affinity"], dict[str, str]()
    assert isinstance(affinity, dict)
    for claim in workload_of(_pod(step["pod"])).claims:
        nodes, preferred = affinity.get(claim.owner.member, (None, False))
        answer = node.allocate(claim, TopologyHint(nodes, preferred))
        assert not isinstance(answer, Shortfall), answer
        node = answer
        if node.exclusive_of(claim.owner):
            granted[claim.owner.member] = str(node.exclusive_of(claim.owner))
    assert granted == step.get("cpus", {})
    return node


def _pod(written: object) -> Pod:
    assert isinstance(written, dict)
    return Pod(
        uid=written["uid"],
        init_containers=tuple(_container(one) for one in written["init_containers"]),
        containers=tuple(_container(one) for one in written["containers"]),
    )


def _container(written: Mapping[str, Mapping[str, str]]) -> Container:
    return Container(
        name=str(written["name"]),
        requests={name: Quantity.parse(text) for name, text in written["requests"].items()},
        limits={name: Quantity.parse(text) for name, text in written["limits"].items()},
        restartable=bool(written.get("restartable")),
    )
