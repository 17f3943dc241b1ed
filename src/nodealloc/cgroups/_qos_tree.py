"""Pure: the cgroups that a set of pods wants, and what is new of limits that were asked for before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nodealloc import _attrs as attrs
from nodealloc._arguments import check, whole, within
from nodealloc._typed import typed_fields
from nodealloc.cgroups._convert import MIN_SHARES, PAGE_BYTES, milli_cpu_to_shares
from nodealloc.cgroups._limits import NO_LIMIT, Limits
from nodealloc.cgroups._name import CgroupName
from nodealloc.cgroups._pods import PodOptions, pod_limits, pod_name, qos_name
from nodealloc.podspec import QosClass, effective_requests, qos_class

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from nodealloc.podspec import Pod

__all__ = ["PodShare", "TreeOptions", "change_of", "desired_tree", "pod_share", "tree_of"]


def _name(name: CgroupName | str) -> CgroupName:
    if isinstance(name, str):
        return CgroupName.parse(name)
    return check("TreeOptions.root", name, CgroupName, "a CgroupName, or its path such as /kubepods")


@typed_fields
@attrs.frozen(kw_only=True)
class TreeOptions:
    """What the node's administrator decides about the tree.

    Attributes:
        root: Cgroup of all pods, or its path; its parent has to exist.
        root_limits: For all pods together: `enforced_limits(…)[Enforce.PODS]`.
        pods: What holds for each pod.
        memory_reserve_percent: Part of what better classes request that worse
            classes may not use, 0 to 100 (`qosReserved`, `memory=N%`).
        allocatable_memory_bytes: Memory for pods; needed for the reserve.
    """

    root: CgroupName = attrs.field(default=CgroupName.of("kubepods"), converter=_name)
    root_limits: Limits = Limits()
    pods: PodOptions = PodOptions()
    memory_reserve_percent: int = attrs.field(default=0, validator=within(0, 100))
    allocatable_memory_bytes: int = attrs.field(default=0, validator=whole(0))


@attrs.frozen(kw_only=True)
class PodShare:
    """What one pod adds to the tree; computed once a pod.

    Attributes:
        name: Its cgroup.
        qos: Its class.
        milli_cpu: Its effective CPU request.
        memory_bytes: Its effective memory request.
        limits: What its cgroup may use.
    """

    name: CgroupName
    qos: QosClass
    milli_cpu: int
    memory_bytes: int
    limits: Limits


def pod_share(pod: Pod, options: TreeOptions, /) -> PodShare:
    """What a pod adds to the tree."""
    requests = effective_requests(pod)
    return PodShare(
        name=pod_name(options.root, pod),
        qos=qos_class(pod),
        milli_cpu=requests["cpu"].milli_value if "cpu" in requests else 0,
        memory_bytes=requests["memory"].value if "memory" in requests else 0,
        limits=pod_limits(pod, options.pods),
    )


def desired_tree(pods: Iterable[Pod], options: TreeOptions, /) -> Mapping[CgroupName, Limits]:
    """The root, the two classes below it, and each pod, parents first.

    The burstable class has the shares of all its pods' requests together, so
    that it weighs against guaranteed pods as its pods would one by one.

    Source: kubelet ``cm/qos_container_manager_linux.go``. Huge pages of the
    classes are left alone, where the kubelet lifts them again every minute.
    """
    return tree_of([pod_share(pod, options) for pod in pods], options)


def tree_of(shares: Collection[PodShare], options: TreeOptions, /) -> Mapping[CgroupName, Limits]:
    """The same, from what was computed for each pod before."""
    memory = dict.fromkeys(QosClass, 0)
    for share in shares:
        memory[share.qos] += share.memory_bytes
    burstable_cpu = sum(share.milli_cpu for share in shares if share.qos is QosClass.BURSTABLE)
    burstable_max, best_effort_max = _reserve(memory, options)
    with_min = options.pods.memory_qos
    burstable_min = memory[QosClass.BURSTABLE]
    all_min = burstable_min + memory[QosClass.GUARANTEED]
    tree = {
        options.root: Limits(memory_min_bytes=all_min if with_min else None).over(options.root_limits),
        qos_name(options.root, QosClass.BURSTABLE): Limits(
            cpu_shares=milli_cpu_to_shares(burstable_cpu),
            memory_bytes=burstable_max,
            memory_min_bytes=burstable_min if with_min else None,
        ),
        qos_name(options.root, QosClass.BEST_EFFORT): Limits(
            cpu_shares=MIN_SHARES, memory_bytes=best_effort_max
        ),
    }
    tree |= {share.name: share.limits for share in shares}
    return tree


def _reserve(memory: Mapping[QosClass, int], options: TreeOptions) -> tuple[int | None, int | None]:
    """Memory limits of the burstable and the best-effort class, or None for none."""
    if not options.memory_reserve_percent or not options.allocatable_memory_bytes:
        return None, None
    percent = options.memory_reserve_percent
    burstable = options.allocatable_memory_bytes - memory[QosClass.GUARANTEED] * percent // 100
    best_effort = burstable - memory[QosClass.BURSTABLE] * percent // 100
    return max(burstable, PAGE_BYTES), max(best_effort, PAGE_BYTES)


_LIFTED: Final = {
    "cpu_quota_us": NO_LIMIT,
    "memory_bytes": NO_LIMIT,
    "memory_min_bytes": 0,
    "memory_high_bytes": NO_LIMIT,
    "swap_bytes": NO_LIMIT,
    "pids": NO_LIMIT,
}
"""What lifts a limit that was asked for once and is not any more."""
_NOTHING: Final = Limits()


def change_of(wanted: Limits, before: Limits, /) -> Limits:
    """What is new in `wanted`, with limits lifted that only `before` asked for."""
    if not before:
        return wanted
    if wanted == before:
        return _NOTHING
    now, earlier = wanted.asked, before.asked
    gone = {
        name: lifted
        for name, lifted in _LIFTED.items()
        if name not in now and earlier.get(name, lifted) != lifted
    }
    return wanted.since(before).over(
        Limits(
            cpu_quota_us=gone.get("cpu_quota_us"),
            memory_bytes=gone.get("memory_bytes"),
            memory_min_bytes=gone.get("memory_min_bytes"),
            memory_high_bytes=gone.get("memory_high_bytes"),
            swap_bytes=gone.get("swap_bytes"),
            pids=gone.get("pids"),
            hugepage_bytes={
                size: NO_LIMIT
                for size, amount in before.hugepage_bytes.items()
                if size not in wanted.hugepage_bytes and amount != NO_LIMIT
            },
        )
    )
