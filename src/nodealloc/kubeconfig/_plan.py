"""What a configuration comes to on a machine: the options of the packages."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from typing import Final, Self, TypeVar

import attrs

from nodealloc._arguments import wrong
from nodealloc._typed import typed, typed_fields
from nodealloc.admission import Chain, Rules, SysctlAllowList, chain_of, safe_sysctls
from nodealloc.allocatable import Reservation, allocatable, usable_by_pods
from nodealloc.cgroups import CgroupName, Enforce, Enforcement, PodOptions, TreeOptions, enforced_limits
from nodealloc.cpuset import CpuAllocator, NonePolicy, StaticOptions, StaticPolicy
from nodealloc.devices import DeviceAllocator
from nodealloc.errors import ConfigurationError
from nodealloc.idset import CPUSet
from nodealloc.kubeconfig._configuration import KubeletConfig
from nodealloc.machine import Machine
from nodealloc.memblocks import MemoryAllocator, UnpinnedMemory, check_reserved
from nodealloc.podfacts import NodeView
from nodealloc.podlife import LifePolicy, RestartBackOff
from nodealloc.podspec import Quantity, Resources, resources
from nodealloc.topology import Allocator, Policy, Scope, Snapshot

__all__ = ["NodePlan", "life_policy"]

E = TypeVar("E", bound=enum.Enum)

_NEEDS: Final[Mapping[str, tuple[str, bool]]] = {
    **dict.fromkeys(
        (
            "align-by-socket",
            "distribute-cpus-across-cores",
            "distribute-cpus-across-numa",
            "prefer-align-cpus-by-uncorecache",
            "strict-cpu-reservation",
        ),
        ("CPUManagerPolicyAlphaOptions", False),
    ),
    "full-pcpus-only": ("CPUManagerPolicyBetaOptions", True),
    "max-allowable-numa-nodes": ("TopologyManagerPolicyBetaOptions", True),
}
"""Option to the feature that it needs, and whether that is on where nothing is said.

Source: Kubernetes v1.32 ``cm/cpumanager/policy_options.go``, ``cm/topologymanager/policy_options.go``.
"""
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
_RESERVABLE: Final = ("cpu", "memory", "ephemeral-storage", "pid")
_LONGEST_S: Final = 300.0
_BASE_S: Final = 10.0
"""A container's first wait, unless the longest is shorter."""


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
        whole = {**capacity, **resources({"pods": config.max_pods})}
        reservation = Reservation(
            kube_reserved=resources(config.kube_reserved),
            system_reserved=resources(config.system_reserved),
            hard_eviction=config.eviction_hard,
            reserved_cpus=CPUSet.parse(config.reserved_system_cpus),
        )
        view = NodeView(
            name=name,
            labels=_labels(name, architecture),
            allocatable=allocatable(whole, reservation, online=machine.online),
        )
        pods = PodOptions(
            cpu_quota=config.cpu_cfs_quota,
            period_us=round(config.cpu_cfs_quota_period_s * 1_000_000),
            pids=config.pod_pids_limit if config.pod_pids_limit > 0 else None,
            memory_qos=unified and config.feature_gates.get("MemoryQoS", False),
            memory_throttling=config.memory_throttling_factor,
            hugepage_sizes=tuple(sorted({size for node in machine.numa_nodes for size in node.hugepages})),
            allocatable_memory_bytes=usable_by_pods(whole, reservation)["memory"].value,
            unified=unified,
            swap=config.memory_swap.swap_behavior,
            swap_capacity_bytes=swap_bytes,
            single_oom_kill=not unified or config.single_process_oom_kill is True,
        )
        _check_features(config)
        _check_levels(config.enforce_node_allocatable)
        _check_reserved(config)
        sysctls = SysctlAllowList.of([*safe_sysctls(kernel), *config.allowed_unsafe_sysctls])
        return cls(
            empty=Snapshot.of(
                machine,
                policy=Policy.parse(config.topology_manager_policy, config.topology_manager_policy_options),
                scope=_word(Scope, "topologyManagerScope", config.topology_manager_scope),
                allocators=(
                    DeviceAllocator.of(machine),
                    _cpus(config, machine, reservation),
                    _memory(config, machine, reservation, whole),
                ),
            ),
            view=view,
            chain=chain_of(sysctls, rules=rules),
            tree=_tree(config, whole, reservation, pods),
            capacity=whole,
        )


@typed
def life_policy(config: KubeletConfig, /) -> LifePolicy:
    """How patient a configuration is with containers and the runtime.

    Raises:
        ConfigurationError: Images are to be fetched one at a time and several at once; the longest wait
            between restarts is out of bounds, or without its feature.
    """
    most, serial = config.max_parallel_image_pulls, config.serialize_image_pulls
    several = most is not None and most > 1
    if serial and several:
        raise ConfigurationError(
            f"maxParallelImagePulls is {most} where serializeImagePulls is true; leave one of them out"
        )
    cap_s = _longest_wait_s(config)
    return LifePolicy(
        restarts=RestartBackOff(base_s=min(_BASE_S, cap_s), cap_s=cap_s),
        call_s=config.runtime_request_timeout_s,
        pulls_at_once=most if several or serial is False else 1,
    )


def _labels(name: str, architecture: str) -> Mapping[str, str]:
    """Those that a kubelet gives its node. Source: kubelet ``kubelet_node_status.go``."""
    known = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux"}
    if architecture:
        known["kubernetes.io/arch"] = _ARCHITECTURES.get(architecture, architecture)
    return known


def _longest_wait_s(config: KubeletConfig) -> float:
    said = config.crash_loop_back_off.max_container_restart_period_s
    if said is None:
        return _LONGEST_S
    if not config.feature_gates.get("KubeletCrashLoopBackOffMax", False):
        raise ConfigurationError("crashLoopBackOff needs featureGates: KubeletCrashLoopBackOffMax: true")
    if not 1 <= said <= _LONGEST_S:
        raise ConfigurationError(f"crashLoopBackOff: maxContainerRestartPeriod is {said} s; give 1s to 300s")
    return said


def _tree(
    config: KubeletConfig, capacity: Resources, reservation: Reservation, pods: PodOptions
) -> TreeOptions:
    words = [one for one in config.enforce_node_allocatable if one != "none"]
    levels = frozenset(_word(Enforce, "enforceNodeAllocatable", one) for one in words)
    limits = enforced_limits(capacity, reservation, Enforcement(levels=levels))
    return TreeOptions(
        root=CgroupName.parse(config.cgroup_root).child("kubepods"),
        # All pages that there are: a limit of as many holds nobody back, and needs a controller.
        root_limits=attrs.evolve(limits[Enforce.PODS], hugepage_bytes={}),
        pods=pods,
    )


def _memory(
    config: KubeletConfig, machine: Machine, reservation: Reservation, capacity: Resources
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
    below, left = usable_by_pods(capacity, reservation), allocatable(capacity, reservation)
    check_reserved(
        {node: {name: amount.value for name, amount in kept.items()} for node, kept in reserved.items()},
        kube_reserved=reservation.kube,
        system_reserved=reservation.system,
        eviction_bytes=(below["memory"] - left["memory"]).value,
    )
    return found


def _check_levels(words: Sequence[str]) -> None:
    """Levels of `enforceNodeAllocatable`: those of the system's own cgroups have no room here."""
    if "none" in words and len(words) > 1:
        raise ConfigurationError("enforceNodeAllocatable has none beside others; give none alone")
    for one in words:
        if one not in {"none", Enforce.PODS.value}:
            _word(Enforce, "enforceNodeAllocatable", one)
            raise ConfigurationError(
                f"enforceNodeAllocatable has {one}, whose cgroup has no room here yet; leave it out"
            )


def _check_reserved(config: KubeletConfig) -> None:
    """Source: kubelet ``app/server.go``."""
    both = (("kubeReserved", config.kube_reserved), ("systemReserved", config.system_reserved))
    for field, amounts in both:
        for name in amounts:
            if name not in _RESERVABLE:
                raise ConfigurationError(f"{field} has {name[:80]!r}; give {', '.join(_RESERVABLE)}")


def _check_features(config: KubeletConfig) -> None:
    """An option of a manager needs the feature of its stage to be on."""
    for option in (*config.cpu_manager_policy_options, *config.topology_manager_policy_options):
        feature, is_on = _NEEDS.get(option, ("", True))
        if not config.feature_gates.get(feature, is_on):
            raise ConfigurationError(f"option {option} needs featureGates: {feature}: true")


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


def _word(kind: type[E], field: str, word: str) -> E:
    found = next((one for one in kind if one.value == word), None)
    if found is None:
        raise ConfigurationError(f"{field} is {word!r}; give {', '.join(str(one.value) for one in kind)}")
    return found
