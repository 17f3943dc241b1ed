"""Pure: what is pod-shaped. Where a pod's cgroup stands, and what it and its containers may use."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final

from nodealloc import _attrs as attrs
from nodealloc._arguments import whole, within, wrong
from nodealloc._typed import typed, typed_fields
from nodealloc.cgroups._convert import (
    MIN_SHARES,
    PAGE_BYTES,
    PERIOD_US,
    milli_cpu_to_quota_us,
    milli_cpu_to_shares,
)
from nodealloc.cgroups._limits import NO_LIMIT, Limits
from nodealloc.errors import ConfigurationError
from nodealloc.podspec import (
    Container,
    Pod,
    QosClass,
    Resources,
    effective_limits,
    effective_requests,
    is_critical,
    page_bytes,
    qos_class,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nodealloc.cgroups._name import CgroupName

__all__ = [
    "POD_PREFIX",
    "PodOptions",
    "SwapBehavior",
    "container_files",
    "container_limits",
    "container_name",
    "oom_score_adj",
    "pod_limits",
    "pod_name",
    "pod_uid",
    "qos_name",
]

POD_PREFIX: Final = "pod"
"""A pod's cgroup is named by this and the pod's uid."""

_NODE_CRITICAL: Final = "system-node-critical"
_GUARANTEED_SCORE: Final = -997
_BEST_EFFORT_SCORE: Final = 1000


class SwapBehavior(Enum):
    """Who may use the machine's swap, in a kubelet's words (`memorySwap.swapBehavior`)."""

    NONE = "NoSwap"
    LIMITED = "LimitedSwap"
    """Containers of burstable pods, each as large a part of it as of memory; critical pods none."""


def _swap_behavior(word: SwapBehavior | str) -> SwapBehavior:
    """The behaviour that a kubelet's word means; "" is its default."""
    found = next((one for one in SwapBehavior if word in {one, one.value}), None)
    if found is None and word != "":
        raise wrong("PodOptions.swap", word, "NoSwap or LimitedSwap")
    return found or SwapBehavior.NONE


@typed_fields
@attrs.frozen(kw_only=True)
class PodOptions:
    """What the node's administrator decides about all pods.

    Attributes:
        cpu_quota: Whether CPU limits become quotas (`cpuCFSQuota`).
        period_us: Period of the quotas in microseconds (`cpuCFSQuotaPeriod`).
        pids: Most tasks in one pod, or None for no limit (`podPidsLimit`).
        memory_qos: Whether requests become `memory.min` and containers get a
            `memory.high` (feature `MemoryQoS`; cgroup v2 only).
        memory_throttling: Part of the way from request to limit at which
            `memory.high` stands, 0 to 1 (`memoryThrottlingFactor`).
        hugepage_sizes: Page sizes of the machine in bytes: a pod may use none of
            those that it does not ask for. Empty leaves them alone.
        allocatable_memory_bytes: Stands for the memory limit of a container
            without one, for `memory.high`: capacity less what is reserved; 0 if unknown.
        unified: Whether the node has cgroup v2, so that a container's swap and the
            manner of its end for lack of memory stand in files of their own.
        swap: Who may use the machine's swap (`memorySwap.swapBehavior`; cgroup v2 only).
        swap_capacity_bytes: Swap of the machine.
        single_oom_kill: Whether the kernel ends one process of a container that runs out of
            memory; False: all of them (`singleProcessOOMKill`; cgroup v2 only).
    """

    cpu_quota: bool = True
    period_us: int = attrs.field(default=PERIOD_US, validator=whole(1000, 1_000_000))
    pids: int | None = attrs.field(default=None, validator=attrs.validators.optional(whole(1)))
    memory_qos: bool = False
    memory_throttling: float = attrs.field(default=0.9, validator=within(0, 1))
    hugepage_sizes: tuple[int, ...] = ()
    allocatable_memory_bytes: int = attrs.field(default=0, validator=whole(0))
    unified: bool = False
    swap: SwapBehavior = attrs.field(default=SwapBehavior.NONE, converter=_swap_behavior)
    swap_capacity_bytes: int = attrs.field(default=0, validator=whole(0))
    single_oom_kill: bool = True


_DEFAULTS: Final = PodOptions()


def qos_name(root: CgroupName, qos: QosClass, /) -> CgroupName:
    """Where pods of a class live: guaranteed ones directly below the root."""
    return root if qos is QosClass.GUARANTEED else root.child(qos.value.lower())


@typed
def pod_name(root: CgroupName, pod: Pod, /) -> CgroupName:
    """A pod's cgroup: `/kubepods/burstable/pod1234`.

    Raises:
        ConfigurationError: The uid cannot stand in a cgroup's name; the message says why.

    Source: kubelet ``cm/pod_container_manager_linux.go``.
    """
    return qos_name(root, qos_class(pod)).child(f"{POD_PREFIX}{pod.uid}")


@typed
def pod_uid(root: CgroupName, name: CgroupName, /) -> str | None:
    """Uid of the pod whose cgroup this is, or None if it is no pod's."""
    parents = {qos_name(root, qos) for qos in QosClass}
    last = name.parts[-1] if name.parts else ""
    uid = last.removeprefix(POD_PREFIX)
    return uid if name.parent in parents and uid and uid != last else None


@typed
def container_name(root: CgroupName, pod: Pod, container: Container, /) -> CgroupName:
    """A container's cgroup: a leaf below its pod's. Container runtimes choose names of their own."""
    return pod_name(root, pod).child(container.name)


@typed
def pod_limits(pod: Pod, options: PodOptions = _DEFAULTS, /) -> Limits:
    """Limits of a pod as a whole.

    Shares follow the pod's effective CPU request. A quota or a memory limit is
    set only if every container has one, because a container without could use
    more than the sum of the others'. An init container or sidecar without one
    counts as limited by the sidecars before it. Less memory than a page is a page.

    Source: kubelet ``cm/helpers_linux.go``.
    """
    qos = qos_class(pod)
    requests, limits = effective_requests(pod), effective_limits(pod)
    quota_us, period_us = _quota(_milli(limits), options) if _all_limit(pod, "cpu") else (None, None)
    memory = _bytes(limits) if _all_limit(pod, "memory") else None
    memory_min = _bytes(requests) if options.memory_qos else 0
    return Limits(
        cpu_shares=MIN_SHARES if qos is QosClass.BEST_EFFORT else milli_cpu_to_shares(_milli(requests)),
        cpu_quota_us=quota_us,
        cpu_period_us=period_us,
        memory_bytes=_pages(memory or 0),
        memory_min_bytes=memory_min or None,
        pids=options.pids,
        hugepage_bytes=_hugepages(requests, options.hugepage_sizes),
    )


@typed
def container_limits(container: Container, options: PodOptions = _DEFAULTS, /) -> Limits:
    """Limits of one container; what it does not limit is not asked for, and less than a page is a page.

    Source: kubelet ``kuberuntime/kuberuntime_container_linux.go``.
    """
    requests = container.requests if "cpu" in container.requests else container.limits
    quota_us, period_us = (
        _quota(_milli(container.limits), options) if _milli(container.limits) else (None, None)
    )
    request, limit = _bytes(container.requests), _bytes(container.limits)
    return Limits(
        cpu_shares=milli_cpu_to_shares(_milli(requests)),
        cpu_quota_us=quota_us,
        cpu_period_us=period_us,
        memory_bytes=_pages(limit),
        memory_min_bytes=request or None if options.memory_qos else None,
        memory_high_bytes=_high(request, limit, options) if options.memory_qos else None,
        hugepage_bytes=_hugepages(container.limits, options.hugepage_sizes),
    )


@typed
def container_files(
    pod: Pod, container: Container, options: PodOptions = _DEFAULTS, /, *, memory_capacity_bytes: int
) -> Mapping[str, str]:
    """Files of cgroup v2 that a runtime is told of by their names; none where the node has cgroup v1.

    Args:
        pod: Whose container.
        container: One of the pod's.
        options: What the node's administrator decided.
        memory_capacity_bytes: Of the node: what a container requests of it is its share of the swap.

    Returns:
        File name to what is to stand in it.

    Source: kubelet ``kuberuntime/kuberuntime_container_linux.go``.
    """
    if not options.unified:
        return {}
    files = {"memory.swap.max": str(_swap(pod, container, options, memory_capacity_bytes))}
    if not options.single_oom_kill:
        files["memory.oom.group"] = "1"
    limits = container_limits(container, options)
    for name, amount in (("memory.min", limits.memory_min_bytes), ("memory.high", limits.memory_high_bytes)):
        if amount:
            files[name] = str(amount)
    return files


def _swap(pod: Pod, container: Container, options: PodOptions, capacity: int) -> int:
    """Bytes of swap beside memory."""
    request, limit = _bytes(container.requests), _bytes(container.limits)
    if options.swap is SwapBehavior.NONE or is_critical(pod) or qos_class(pod) is not QosClass.BURSTABLE:
        return 0
    if not 0 < request <= capacity or request == limit:
        return 0
    return int(request / capacity * options.swap_capacity_bytes)


@typed
def oom_score_adj(pod: Pod, container: Container, /, *, memory_capacity_bytes: int) -> int:
    """Which container the kernel kills first when the node runs out of memory.

    -997 for guaranteed pods and critical ones of the priority class
    `system-node-critical`, 1000 for best-effort ones; in between, the larger the
    part of the node's memory that is requested, the safer. A sidecar is at least
    as safe as the pod's safest-to-lose container.

    Args:
        pod: Whose container.
        container: One of the pod's.
        memory_capacity_bytes: Of the node, above 0.

    Raises:
        ConfigurationError: The node has no memory.

    Source: kubelet ``qos/policy.go``.
    """
    if memory_capacity_bytes <= 0:
        raise ConfigurationError(f"memory_capacity_bytes {memory_capacity_bytes}: a node has some memory")
    qos = qos_class(pod)
    is_needed = pod.priority_class_name == _NODE_CRITICAL and is_critical(pod)
    if is_needed or qos is QosClass.GUARANTEED:
        return _GUARANTEED_SCORE
    if qos is QosClass.BEST_EFFORT:
        return _BEST_EFFORT_SCORE
    request = _bytes(container.requests)
    if container.restartable and container in pod.init_containers:
        request = max(request, min((_bytes(each.requests) for each in pod.containers), default=0))
    score = _BEST_EFFORT_SCORE - 1000 * request // memory_capacity_bytes
    return min(max(score, _BEST_EFFORT_SCORE + _GUARANTEED_SCORE), _BEST_EFFORT_SCORE - 1)


def _milli(resources: Resources) -> int:
    return max(resources["cpu"].milli_value, 0) if "cpu" in resources else 0


def _bytes(resources: Resources) -> int:
    return max(resources["memory"].value, 0) if "memory" in resources else 0


def _pages(limit: int) -> int | None:
    return max(limit, PAGE_BYTES) if limit else None


def _all_limit(pod: Pod, resource: str) -> bool:
    """Whether everybody has a limit; an init container or sidecar also by one of a sidecar before it."""
    beside = False
    for each in pod.init_containers:
        limited = _limits(each, resource)
        if not limited and not beside:
            return False
        beside = beside or (limited and each.restartable)
    return all(_limits(each, resource) for each in pod.containers)


def _limits(container: Container, resource: str) -> bool:
    return resource in container.limits and container.limits[resource].nanos > 0


def _quota(milli_cpu: int, options: PodOptions) -> tuple[int | None, int | None]:
    if not options.cpu_quota or not milli_cpu:
        return NO_LIMIT, options.period_us
    return milli_cpu_to_quota_us(milli_cpu, period_us=options.period_us), options.period_us


def _high(request: int, limit: int, options: PodOptions) -> int | None:
    """Where reclaim starts to slow the container down; None where there is no room for it."""
    ceiling = limit or options.allocatable_memory_bytes
    high = int(request + (ceiling - request) * options.memory_throttling) // PAGE_BYTES * PAGE_BYTES
    return high if request != limit and high > request else None


def _hugepages(asked: Resources, sizes: tuple[int, ...]) -> Mapping[int, int]:
    pages = dict.fromkeys(sizes, 0)
    for resource, amount in asked.items():
        size = page_bytes(resource)
        if size is not None:
            pages[size] = amount.value
    return pages
