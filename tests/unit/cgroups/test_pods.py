"""What pods and nodes ask for."""

from __future__ import annotations

import attrs
import pytest

from nodealloc.allocatable import Reservation
from nodealloc.cgroups import (
    NO_LIMIT,
    CgroupMount,
    CgroupName,
    Enforce,
    Enforcement,
    Layout,
    Limits,
    PodOptions,
    TreeOptions,
    container_files,
    container_limits,
    enforced_limits,
    oom_score_adj,
    pod_name,
    pod_uid,
    pod_view,
)
from nodealloc.cgroups._enforcement import enforcement_faults
from nodealloc.cgroups._pods import pod_limits
from nodealloc.cgroups._qos_tree import desired_tree
from nodealloc.idset import CPUSet
from nodealloc.podspec import Container, Pod, Quantity

ROOT = CgroupName.of("kubepods")
MIB = 1 << 20
V2 = Layout(
    mounts=(CgroupMount(path="/c", version=2, controllers=("cpu", "cpuset", "hugetlb", "memory", "pids")),)
)


def amounts(**texts: str) -> dict[str, Quantity]:
    """Quantities from texts; `cpu`, `memory`."""
    return {name: Quantity.parse(text) for name, text in texts.items()}


def pod(uid: str = "u", **resources: str) -> Pod:
    """A burstable pod with these requests and no limits."""
    return Pod(uid=uid, name=uid, containers=(Container(name="app", requests=amounts(**resources)),))


def test_quota_can_be_switched_off() -> None:
    """Without quotas a limit lifts what was set before; shares stay."""
    full = amounts(cpu="1", memory="1Gi")
    guaranteed = Pod(uid="u", containers=(Container(name="app", requests=full, limits=full),))
    limits = pod_limits(guaranteed, PodOptions(cpu_quota=False, pids=9))
    assert (limits.cpu_quota_us, limits.cpu_shares, limits.pids) == (NO_LIMIT, 1024, 9)
    assert pod_limits(guaranteed, PodOptions(period_us=20_000)).cpu_quota_us == 20_000


def test_unasked_huge_pages_are_denied_where_the_machine_has_them() -> None:
    """With the machine's sizes, a pod gets none of those that it does not ask for."""
    limits = pod_limits(pod(cpu="1"), PodOptions(hugepage_sizes=(2 * MIB,)))
    assert limits.hugepage_bytes == {2 * MIB: 0}


def test_container_follows_its_own_limits() -> None:
    """A missing CPU request follows the limit; what is not limited is not asked for."""
    assert container_limits(Container(name="c", limits=amounts(cpu="500m", memory="1Mi"))) == Limits(
        cpu_shares=512, cpu_quota_us=50_000, cpu_period_us=100_000, memory_bytes=MIB
    )
    assert container_limits(Container(name="c")) == Limits(cpu_shares=2)


def test_memory_qos() -> None:
    """`memory.high` stands between request and limit; a guaranteed container needs none."""
    options = PodOptions(memory_qos=True, memory_throttling=0.5, allocatable_memory_bytes=300 * MIB)
    between = Container(name="c", requests=amounts(memory="100Mi"), limits=amounts(memory="200Mi"))
    assert container_limits(between, options).memory_high_bytes == 150 * MIB
    assert container_limits(between, options).memory_min_bytes == 100 * MIB
    unlimited = Container(name="c", requests=amounts(memory="100Mi"))
    assert container_limits(unlimited, options).memory_high_bytes == 200 * MIB
    same = Container(name="c", requests=amounts(memory="100Mi"), limits=amounts(memory="100Mi"))
    assert container_limits(same, options).memory_high_bytes is None
    tree = desired_tree([pod("a", memory="64Mi")], TreeOptions(pods=options))
    assert tree[ROOT].memory_min_bytes == tree[ROOT.child("burstable")].memory_min_bytes == 64 * MIB
    assert tree[ROOT.child("burstable").child("poda")].memory_min_bytes == 64 * MIB


def test_memory_reserve() -> None:
    """Worse classes may not use what better ones request, to the percentage that is asked for."""
    full = amounts(cpu="1", memory="100Mi")
    guaranteed = Pod(uid="g", containers=(Container(name="app", requests=full, limits=full),))
    options = TreeOptions(memory_reserve_percent=50, allocatable_memory_bytes=1000 * MIB)
    tree = desired_tree([guaranteed, pod("b", memory="200Mi")], options)
    assert tree[ROOT.child("burstable")].memory_bytes == 950 * MIB
    assert tree[ROOT.child("besteffort")].memory_bytes == 850 * MIB
    assert (
        desired_tree([], TreeOptions(memory_reserve_percent=50))[ROOT.child("burstable")].memory_bytes is None
    )


def test_sidecar_is_as_safe_as_its_pod() -> None:
    """A sidecar's score follows the smallest container that it serves; an init container's does not."""
    side = Container(name="side", restartable=True)
    app = Container(name="app", requests=amounts(memory="512Mi"))
    init = Container(name="init", requests=amounts(memory="1Mi"))
    served = Pod(uid="u", init_containers=(side, init), containers=(app,))
    assert oom_score_adj(served, side, memory_capacity_bytes=1 << 30) == 500
    assert oom_score_adj(served, init, memory_capacity_bytes=1 << 30) == 999
    assert oom_score_adj(served, app, memory_capacity_bytes=1 << 20) == 3
    with pytest.raises(ValueError, match="some memory"):
        oom_score_adj(served, app, memory_capacity_bytes=0)


def test_node_critical_pods_are_lost_last() -> None:
    """A pod says by its class and its priority that the node needs it, and a review says so too."""
    needed = attrs.evolve(
        pod("web", memory="64Mi"), priority_class_name="system-node-critical", priority=2_000_001_000
    )
    text = pod_view(needed, V2, memory_capacity_bytes=1 << 30)
    assert text.endswith("oom_score_adj = -997")
    (app,) = needed.containers
    for other in (
        attrs.evolve(needed, priority_class_name="system-cluster-critical"),
        attrs.evolve(needed, priority=None),
    ):
        assert oom_score_adj(other, app, memory_capacity_bytes=1 << 30) == 938
    static = attrs.evolve(needed, priority=None, annotations={"kubernetes.io/config.source": "file"})
    assert oom_score_adj(static, app, memory_capacity_bytes=1 << 30) == -997


def test_uid_comes_back_from_the_cgroup_alone() -> None:
    """Only direct children of the classes are pods."""
    burstable = pod(cpu="1")
    assert pod_uid(ROOT, pod_name(ROOT, burstable)) == "u"
    for other in (ROOT, ROOT.child("burstable"), ROOT.child("pod"), pod_name(ROOT, burstable).child("podx")):
        assert pod_uid(ROOT, other) is None
    assert pod_uid(ROOT, CgroupName()) is None
    with pytest.raises(ValueError, match="podu_1"):
        pod_name(ROOT, pod("u_1"))


def test_enforcement_leaves_eviction_in() -> None:
    """All pods together may use what hard eviction keeps free; only levels that are enforced are told."""
    capacity = {**amounts(cpu="8", memory="16Gi", pid="1000"), "hugepages-2Mi": Quantity.of("1Gi")}
    reservation = Reservation(
        kube_reserved=amounts(cpu="500m", memory="1Gi", pid="100"),
        system_reserved=amounts(cpu="500m"),
        hard_eviction={"memory.available": "512Mi"},
    )
    enforcement = Enforcement(
        levels=frozenset({Enforce.PODS, Enforce.KUBE_RESERVED}), kube_cgroup=CgroupName.of("kube")
    )
    levels = enforced_limits(capacity, reservation, enforcement)
    assert levels == {
        Enforce.PODS: Limits(
            cpu_shares=7168, memory_bytes=14 << 30, pids=900, hugepage_bytes={2 * MIB: 1 << 30}
        ),
        Enforce.KUBE_RESERVED: Limits(cpu_shares=512, memory_bytes=1 << 30, pids=100),
    }
    assert enforced_limits(capacity, reservation) == {Enforce.PODS: levels[Enforce.PODS]}


def test_compressible_enforcement_is_cpu_alone() -> None:
    """The compressible level limits CPU and leaves memory to be used; unenforced pods get the capacity."""
    levels = enforced_limits(
        amounts(cpu="4", memory="8Gi"),
        Reservation(system_reserved=amounts(cpu="1", memory="1Gi")),
        Enforcement(
            levels=frozenset({Enforce.SYSTEM_RESERVED_COMPRESSIBLE}), system_cgroup=CgroupName.of("system")
        ),
    )
    assert levels == {
        Enforce.PODS: Limits(cpu_shares=4096, memory_bytes=8 << 30),
        Enforce.SYSTEM_RESERVED_COMPRESSIBLE: Limits(cpu_shares=1024),
    }


def test_every_fault_of_an_enforcement_is_named() -> None:
    """Levels without their cgroup, levels twice, nothing reserved, exact CPUs with a cgroup: all at once."""
    reservation = Reservation(kube_reserved=amounts(memory="3Gi"), reserved_cpus=CPUSet.of(3))
    enforcement = Enforcement(
        levels=frozenset(
            {Enforce.KUBE_RESERVED, Enforce.KUBE_RESERVED_COMPRESSIBLE, Enforce.SYSTEM_RESERVED}
        ),
        system_cgroup=CgroupName.of("system"),
    )
    assert enforcement_faults(reservation, enforcement) == (
        (
            "reserved CPUs 3 together with the system-reserved cgroup /system: exact CPUs need no shares; "
            "name one of the two"
        ),
        "kube-reserved-compressible is a part of kube-reserved, and both are to be enforced; keep one",
        "kube-reserved is to be enforced without a cgroup; name the one its processes are in",
        "system-reserved is to be enforced, but nothing is reserved; reserve some or leave it out",
    )
    assert enforcement_faults(reservation, Enforcement()) == ()


def test_view_says_what_would_be_written() -> None:
    """All cgroups on the way to a container, each with its files, and nothing is touched."""
    text = pod_view(
        pod("web", cpu="500m", memory="64Mi"),
        V2,
        beside=[pod("other", cpu="1500m")],
        memory_capacity_bytes=1 << 30,
    )
    assert text.splitlines() == [
        "pod default/web: Burstable",
        "/kubepods",
        "  (created; nothing is limited)",
        "/kubepods/burstable",
        "  /c/kubepods/burstable/cpu.weight = 79",
        "/kubepods/burstable/podweb",
        "  /c/kubepods/burstable/podweb/cpu.weight = 20",
        "/kubepods/burstable/podweb/app",
        "  /c/kubepods/burstable/podweb/app/cpu.weight = 20",
        "  /proc/PID/oom_score_adj = 938",
    ]


@pytest.mark.parametrize(
    ("asked", "limit", "annotations", "swap"),
    [
        ("1Gi", "2Gi", {}, 1 << 28),
        ("2Gi", "2Gi", {}, 0),  # all of its memory is promised
        (None, None, {}, 0),
        ("1Gi", "2Gi", {"kubernetes.io/config.source": "file"}, 0),  # critical
        ("9Gi", "9.5Gi", {}, 0),  # more than there is
    ],
)
def test_swap_is_shared_out_by_the_part_of_memory_that_is_asked_for(
    asked: str | None, limit: str | None, annotations: dict[str, str], swap: int
) -> None:
    """One eighth of 8 GiB has an eighth of 2 GiB."""
    one = Container(
        name="c",
        requests=amounts(memory=asked) if asked else {},
        limits=amounts(memory=limit) if limit else {},
    )
    whole = Pod(uid="u", name="p", containers=(one, Container(name="d")), annotations=annotations)
    options = PodOptions(unified=True, swap="LimitedSwap", swap_capacity_bytes=2 << 30)
    files = container_files(whole, one, options, memory_capacity_bytes=8 << 30)
    assert files == {"memory.swap.max": str(swap)}


@pytest.mark.parametrize(("limited", "bounded"), [((True, False), True), ((False, True), False)])
def test_who_starts_behind_a_limited_sidecar_counts_as_limited(
    limited: tuple[bool, bool], bounded: bool
) -> None:
    """Limits of init containers are looked at together with those of the sidecars before them."""
    full = amounts(cpu="1", memory="1Gi")
    sidecar, job = (full if one else {} for one in limited)
    limits = pod_limits(
        Pod(
            uid="u",
            init_containers=(
                Container(name="s", limits=sidecar, restartable=True),
                Container(name="i", limits=job),
            ),
            containers=(Container(name="app", requests=full, limits=full),),
        )
    )
    assert limits.memory_bytes == (2 << 30 if bounded else None)
    assert limits.cpu_quota_us == (200_000 if bounded else None)


def test_a_limit_below_a_page_is_a_page() -> None:
    """An API takes it, so that nothing is raised; the kernel counts in pages."""
    tiny = Container(name="c", limits=amounts(memory="4095"))
    assert container_limits(tiny).memory_bytes == 4096
    assert pod_limits(Pod(uid="u", containers=(tiny,))).memory_bytes == 4096
