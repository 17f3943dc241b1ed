"""From a configuration to the values of the packages: machine, reservation, node, tree, settings of pods."""

from __future__ import annotations

import os
from pathlib import Path

import attrs

from examples.agent.config import KubeletConfig, seconds
from nodealloc.admission import Chain, SysctlAllowList, chain_of, safe_sysctls
from nodealloc.allocatable import Reservation, allocatable
from nodealloc.cgroups import CgroupName, Enforce, Enforcement, PodOptions, TreeOptions, enforced_limits
from nodealloc.cpuset import CpuAllocator, NonePolicy, StaticOptions, StaticPolicy
from nodealloc.devices import DeviceAllocator
from nodealloc.errors import ConfigurationError
from nodealloc.idset import CPUSet
from nodealloc.machine import Machine
from nodealloc.memblocks import MemoryAllocator, UnpinnedMemory
from nodealloc.podfacts import NodeView
from nodealloc.podspec import Resources, resources
from nodealloc.topology import Policy, Scope, Snapshot

__all__ = ["Built", "build"]


@attrs.frozen(kw_only=True)
class Built:
    """What a configuration comes to on a machine.

    Attributes:
        empty: The node with nothing held.
        view: What it gives out.
        chain: Who judges pods.
        tree: Of the pods' cgroups.
        capacity: Of the machine.
        reserved: CPUs of the system.
    """

    empty: Snapshot
    view: NodeView
    chain: Chain
    tree: TreeOptions
    capacity: Resources
    reserved: CPUSet


def build(config: KubeletConfig, machine: Machine, *, name: str, root: Path, memory_bytes: int = 0) -> Built:
    """Everything that follows from what the agent is told.

    Args:
        config: It.
        machine: What is given out.
        name: Of the node.
        root: The agent's folder; pods' files lie on its file system.
        memory_bytes: Of the machine, where its nodes do not tell all of it.

    Raises:
        ValueError: It contradicts itself, or the machine.
    """
    disk = os.statvfs(root)
    processes = min(int(Path(f"/proc/sys/kernel/{file}").read_text()) for file in ("pid_max", "threads-max"))
    capacity = resources(
        {
            "cpu": len(machine.cpus),
            "memory": memory_bytes or sum(node.memory_bytes for node in machine.numa_nodes),
            "ephemeral-storage": disk.f_blocks * disk.f_frsize,
            "pods": config.max_pods,
            "pid": processes,
        }
    )
    reserved = CPUSet.parse(config.reserved_system_cpus)
    reservation = Reservation(
        kube_reserved=resources(config.kube_reserved),
        system_reserved=resources(config.system_reserved),
        hard_eviction=config.eviction_hard,
        reserved_cpus=reserved,
    )
    given = allocatable(capacity, reservation, online=machine.online)
    allowed = config.allowed_unsafe_sysctls
    levels = frozenset(Enforce(one) for one in config.enforce_node_allocatable if one != "none")
    limits = enforced_limits(capacity, reservation, Enforcement(levels=levels))
    pods = PodOptions(
        cpu_quota=config.cpu_cfs_quota,
        period_us=round(seconds(config.cpu_cfs_quota_period) * 1_000_000),
        pids=config.pod_pids_limit if config.pod_pids_limit > 0 else None,
    )
    return Built(
        empty=_snapshot(config, machine, reserved, reservation),
        view=NodeView(
            name=name,
            labels={"kubernetes.io/hostname": name, "kubernetes.io/os": "linux"},
            allocatable=given,
        ),
        chain=chain_of(SysctlAllowList.of([*safe_sysctls(os.uname().release), *allowed])),
        tree=TreeOptions(
            root=CgroupName.parse(config.cgroup_root).child("kubepods"),
            root_limits=limits[Enforce.PODS],
            pods=pods,
        ),
        capacity=capacity,
        reserved=reserved,
    )


def _snapshot(
    config: KubeletConfig, machine: Machine, reserved: CPUSet, reservation: Reservation
) -> Snapshot:
    per_node = {one.numa_node: dict(one.limits) for one in config.reserved_memory}
    return Snapshot.of(
        machine,
        policy=Policy.parse(config.topology_manager_policy, config.topology_manager_policy_options),
        scope=Scope(config.topology_manager_scope),
        allocators=(
            DeviceAllocator.of(machine),
            _cpus(config, machine, reserved, reservation),
            UnpinnedMemory()
            if config.memory_manager_policy == "None"
            else MemoryAllocator.of(machine, policy=config.memory_manager_policy, reserved=per_node),
        ),
    )


def _cpus(
    config: KubeletConfig, machine: Machine, reserved: CPUSet, reservation: Reservation
) -> CpuAllocator:
    if config.cpu_manager_policy == "none":
        return CpuAllocator(policy=NonePolicy.of(machine))
    if config.cpu_manager_policy != "static":
        raise ConfigurationError(f"cpuManagerPolicy is {config.cpu_manager_policy!r}; give none or static")
    kept = sum(
        (one["cpu"].milli_value for one in (reservation.system, reservation.kube) if "cpu" in one), start=0
    )
    count = -(-kept // 1000)
    if not reserved and not count:
        raise ConfigurationError(
            "cpuManagerPolicy static without a CPU for the system; set reservedSystemCPUs or reserve cpu"
        )
    options = StaticOptions.from_kubelet(config.cpu_manager_policy_options)
    policy = StaticPolicy.of(machine, reserved=reserved or count, options=options)
    return CpuAllocator(policy=policy)
