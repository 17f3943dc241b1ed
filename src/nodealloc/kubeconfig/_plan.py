"""What a configuration comes to on a machine: the options of the packages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Self

from nodealloc import _attrs as attrs
from nodealloc._arguments import named, wrong
from nodealloc._typed import typed, typed_fields
from nodealloc.admission import AppArmor, Chain, Rules, SysctlAllowList, chain_of, safe_sysctls
from nodealloc.allocatable import Reservation, allocatable, usable_by_pods
from nodealloc.cgroups import CgroupName, Enforce, Enforcement, PodOptions, TreeOptions, enforced_limits
from nodealloc.cpuset import CpuAllocator, NonePolicy, StaticOptions, StaticPolicy
from nodealloc.devices import DeviceAllocator
from nodealloc.errors import ConfigurationError
from nodealloc.idset import CPUSet
from nodealloc.kubeconfig._configuration import KubeletConfig
from nodealloc.kubeconfig._contradictions import check_fields, check_node, word
from nodealloc.machine import Machine
from nodealloc.memblocks import MemoryAllocator, UnpinnedMemory, check_reserved
from nodealloc.podfacts import NodeView
from nodealloc.podspec import Quantity, Resources, resources
from nodealloc.topology import Allocator, Policy, Scope, Snapshot

__all__ = ["NodePlan"]

_ARCHITECTURES: Final = {
    "x86_64": "amd64",
    "aarch64": "arm64",
    "armv7l": "arm",
    "armv6l": "arm",
    "i386": "386",
    "i686": "386",
    "loongarch64": "loong64",
}
"""The kernel's word to Go's, where they differ."""


@typed_fields
@attrs.frozen(kw_only=True)
class NodePlan:
    """What a node is to be, with nothing on it.

    Attributes:
        empty: What it can give out.
        view: What pods are judged by.
        chain: Who judges them.
        tree: Of the pods' cgroups.
        capacity: Of the machine, with the number of pods.
    """

    empty: Snapshot
    view: NodeView
    chain: Chain
    tree: TreeOptions
    capacity: Resources

    @classmethod
    @typed
    def of(
        cls,
        config: KubeletConfig,
        machine: Machine,
        /,
        *,
        name: str,
        capacity: Resources,
        kernel: str,
        architecture: str = "",
        unified: bool = False,
        swap_bytes: int = 0,
        app_armor: bool = False,
        rules: Rules | None = None,
    ) -> Self:
        """What follows from a configuration; pure.

        Args:
            config: It.
            machine: What is given out.
            name: Of the node.
            capacity: Of the machine, such as `machine_capacity` says.
            kernel: Its release, such as `6.1.0`, by which sysctls are safe.
            architecture: Its instruction set as `uname -m` has it, such as `x86_64`; "" where nobody
                knows: the node has no label of it.
            unified: Whether its cgroups are of version 2 alone; what is said of memory's quality of
                service and of swap counts there only.
            swap_bytes: Of the machine.
            app_armor: Whether it enforces AppArmor, such as `has_app_armor` says; where it does not, pods
                that ask for a profile are refused.
            rules: Of admission; None for what is right.

        Raises:
            ConfigurationError: A word means nothing, an amount is none, or it contradicts the machine.

        Source: kubelet ``cm/container_manager_linux.go``, ``kubelet.go``.
        """
        lacking = [name for name in ("cpu", "memory") if name not in capacity]
        if lacking:
            raise wrong(
                "NodePlan.of: capacity", dict(capacity), f"{lacking[0]} too; machine_capacity tells all"
            )
        check_node(name)
        check_fields(config, unified=unified)
        whole = {**capacity, **resources({"pods": _most_pods(config, machine)})}
        reservation = Reservation(
            kube_reserved=resources(config.kube_reserved),
            system_reserved=resources(config.system_reserved),
            hard_eviction=config.eviction_hard,
            reserved_cpus=CPUSet.parse(config.reserved_system_cpus),
        )
        left = allocatable(whole, reservation, online=machine.online)
        usable = usable_by_pods(whole, reservation)
        pods = _pod_options(config, machine, usable, unified=unified, swap_bytes=swap_bytes)
        with named("allowedUnsafeSysctls"):
            sysctls = SysctlAllowList.of([*safe_sysctls(kernel), *config.allowed_unsafe_sysctls])
        return cls(
            empty=_empty(config, machine, reservation, usable["memory"] - left["memory"], rules or Rules()),
            view=NodeView(name=name, labels=_labels(name, architecture), allocatable=left),
            chain=chain_of(sysctls, _app_armor(enabled=app_armor, rules=rules), rules=rules),
            tree=_tree(config, whole, reservation, pods),
            capacity=whole,
        )


def _most_pods(config: KubeletConfig, machine: Machine) -> int:
    """So many pods at most, and so many for each CPU. Source: kubelet ``nodestatus/setters.go``."""
    if not config.pods_per_core:
        return config.max_pods
    return min(config.max_pods, config.pods_per_core * len(machine.online))


def _app_armor(*, enabled: bool, rules: Rules | None) -> AppArmor:
    return AppArmor(enabled=enabled, rules=rules or Rules())


def _empty(
    config: KubeletConfig, machine: Machine, reservation: Reservation, evicted: Quantity, rules: Rules
) -> Snapshot:
    # A kubelet lets in what nobody serves: it is neither waited for nor refused.
    needs_all = rules.needs_every_resource
    found = Snapshot.of(
        machine,
        policy=Policy.parse(config.topology_manager_policy, config.topology_manager_policy_options),
        scope=word(Scope, "topologyManagerScope", config.topology_manager_scope),
        allocators=(
            DeviceAllocator.of(machine, awaited=None if needs_all else ()),
            _cpus(config, machine, reservation),
            _memory(config, machine, reservation, evicted),
        ),
    )
    return found if needs_all else attrs.evolve(found, elsewhere=found.elsewhere | {"*"})


def _labels(name: str, architecture: str) -> Mapping[str, str]:
    """Those that a kubelet gives its node. Source: kubelet ``kubelet_node_status.go``."""
    known = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux"}
    if architecture:
        known["kubernetes.io/arch"] = _ARCHITECTURES.get(architecture, architecture)
    return known


def _pod_options(
    config: KubeletConfig, machine: Machine, usable: Resources, *, unified: bool, swap_bytes: int
) -> PodOptions:
    return PodOptions(
        cpu_quota=config.cpu_cfs_quota,
        period_us=round(config.cpu_cfs_quota_period_s * 1_000_000),
        pids=config.pod_pids_limit if config.pod_pids_limit > 0 else None,
        memory_qos=unified and config.feature_gates.get("MemoryQoS", False),
        memory_throttling=config.memory_throttling_factor,
        hugepage_sizes=tuple(sorted({size for node in machine.numa_nodes for size in node.hugepages})),
        allocatable_memory_bytes=usable["memory"].value,
        unified=unified,
        swap=config.memory_swap.swap_behavior,
        swap_capacity_bytes=swap_bytes,
        single_oom_kill=not unified or config.single_process_oom_kill is True,
    )


def _tree(
    config: KubeletConfig, capacity: Resources, reservation: Reservation, pods: PodOptions
) -> TreeOptions:
    words = [one for one in config.enforce_node_allocatable if one != "none"]
    levels = frozenset(word(Enforce, "enforceNodeAllocatable", one) for one in words)
    with named("cgroupRoot"):
        root = CgroupName.parse(config.cgroup_root).child("kubepods")
    limits = enforced_limits(capacity, reservation, Enforcement(levels=levels))
    return TreeOptions(
        root=root,
        # All pages that there are: a limit of as many holds nobody back, and needs a controller.
        root_limits=attrs.evolve(limits[Enforce.PODS], hugepage_bytes={}),
        pods=pods,
    )


def _memory(
    config: KubeletConfig, machine: Machine, reservation: Reservation, evicted: Quantity
) -> Allocator:
    reserved: dict[int, dict[str, Quantity]] = {}
    for one in config.reserved_memory:
        kept = reserved.setdefault(one.numa_node, {})
        for name, amount in resources(one.limits).items():
            if name in kept:
                raise ConfigurationError(f"reservedMemory: {name} of NUMA node {one.numa_node} stands twice")
            kept[name] = amount
    if config.memory_manager_policy == "None":
        return UnpinnedMemory()
    found = MemoryAllocator.of(machine, policy=config.memory_manager_policy, reserved=reserved)
    check_reserved(
        {node: {name: amount.value for name, amount in kept.items()} for node, kept in reserved.items()},
        kube_reserved=reservation.kube,
        system_reserved=reservation.system,
        eviction_bytes=evicted.value,
    )
    return found


def _cpus(config: KubeletConfig, machine: Machine, reservation: Reservation) -> CpuAllocator:
    options = StaticOptions.from_kubelet(config.cpu_manager_policy_options)
    if config.cpu_manager_policy == "none":
        if config.cpu_manager_policy_options:
            raise ConfigurationError("cpuManagerPolicyOptions are of the policy static; leave them out")
        return CpuAllocator(policy=NonePolicy.of(machine))
    if config.cpu_manager_policy != "static":
        raise ConfigurationError(f"cpuManagerPolicy is {config.cpu_manager_policy!r}; give none or static")
    kept = sum(one["cpu"].milli_value for one in (reservation.system, reservation.kube) if "cpu" in one)
    reserved = reservation.reserved_cpus
    if not reserved and not kept:
        raise ConfigurationError(
            "cpuManagerPolicy static without a CPU for the system; set reservedSystemCPUs or reserve cpu"
        )
    return CpuAllocator(
        policy=StaticPolicy.of(
            machine,
            reserved=reserved or -(-kept // 1000),
            options=options,
            topology_policy=config.topology_manager_policy,
        )
    )
