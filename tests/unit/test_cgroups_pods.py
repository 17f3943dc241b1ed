"""What pods and nodes ask for."""

from __future__ import annotations

import pytest

from nodealloc.cgroups import (
    NO_LIMIT,
    CgroupName,
    Enforce,
    Layout,
    Limits,
    Mount,
    PodOptions,
    Reservation,
    ReservationError,
    TreeOptions,
    allocatable,
    container_limits,
    desired_tree,
    enforced_limits,
    oom_score_adj,
    pod_limits,
    pod_name,
    pod_uid,
    pod_view,
    reservation_faults,
)
from nodealloc.idset import CPUSet
from nodealloc.podspec import Container, Pod, Quantity

ROOT = CgroupName.of("kubepods")
MIB = 1 << 20
V2 = Layout(mounts=(Mount(path="/c", version=2, controllers=("cpu", "cpuset", "hugetlb", "memory", "pids")),))


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
    assert oom_score_adj(served, app, memory_capacity_bytes=1 << 30, node_critical=True) == -997
    with pytest.raises(ValueError, match="some memory"):
        oom_score_adj(served, app, memory_capacity_bytes=0)


def test_uid_comes_back_from_the_cgroup_alone() -> None:
    """Only direct children of the classes are pods."""
    burstable = pod(cpu="1")
    assert pod_uid(ROOT, pod_name(ROOT, burstable)) == "u"
    for other in (ROOT, ROOT.child("burstable"), ROOT.child("pod"), pod_name(ROOT, burstable).child("podx")):
        assert pod_uid(ROOT, other) is None
    assert pod_uid(ROOT, CgroupName()) is None
    with pytest.raises(ValueError, match="podu_1"):
        pod_name(ROOT, pod("u_1"))


def test_allocatable_of_a_node() -> None:
    """Reservations, hard eviction and huge pages leave the rest; enforcement leaves eviction in."""
    capacity = {**amounts(cpu="8", memory="16Gi", pid="1000"), "hugepages-2Mi": Quantity.of("1Gi")}
    capacity["ephemeral-storage"] = Quantity.of("100Gi")
    reservation = Reservation(
        kube_reserved=amounts(cpu="500m", memory="1Gi", pid="100"),
        system_reserved=amounts(cpu="500m"),
        hard_eviction={"memory.available": "512Mi", "nodefs.available": "10%", "imagefs.available": "15%"},
        enforce=frozenset({Enforce.PODS, Enforce.KUBE_RESERVED}),
        kube_reserved_cgroup=CgroupName.of("kube"),
    )
    left = allocatable(capacity, reservation)
    assert {name: str(amount) for name, amount in left.items()} == {
        "cpu": "7",
        "memory": "13824Mi",
        "pid": "900",
        "hugepages-2Mi": "1Gi",
        "ephemeral-storage": "90Gi",
    }
    levels = enforced_limits(capacity, reservation)
    assert levels[Enforce.PODS] == Limits(
        cpu_shares=7168, memory_bytes=14 << 30, pids=900, hugepage_bytes={2 * MIB: 1 << 30}
    )
    assert levels[Enforce.KUBE_RESERVED] == Limits(cpu_shares=512, memory_bytes=1 << 30, pids=100)
    assert Enforce.SYSTEM_RESERVED not in levels


def test_compressible_enforcement_is_cpu_alone() -> None:
    """The compressible level limits CPU and leaves memory to be used; unenforced pods get the capacity."""
    capacity = amounts(cpu="4", memory="8Gi")
    levels = enforced_limits(
        capacity,
        Reservation(
            system_reserved=amounts(cpu="1", memory="1Gi"),
            enforce=frozenset({Enforce.SYSTEM_RESERVED_COMPRESSIBLE}),
            system_reserved_cgroup=CgroupName.of("system"),
        ),
    )
    assert levels == {
        Enforce.PODS: Limits(cpu_shares=4096, memory_bytes=8 << 30),
        Enforce.SYSTEM_RESERVED_COMPRESSIBLE: Limits(cpu_shares=1024),
    }


def test_exact_reserved_cpus_stand_in_for_amounts() -> None:
    """CPUs that are named count instead of amounts of CPU; memory stays."""
    reservation = Reservation(
        kube_reserved=amounts(cpu="3", memory="1Gi"),
        reserved_cpus=CPUSet.parse("0-1"),
        system_reserved=amounts(cpu="2"),
    )
    left = allocatable(amounts(cpu="8", memory="8Gi"), reservation, online=CPUSet.parse("0-7"))
    assert (str(left["cpu"]), str(left["memory"])) == ("6", "7Gi")


def test_every_fault_of_a_reservation_is_named() -> None:
    """Too much, unknown, negative, malformed, offline, and levels without their cgroup: all at once."""
    reservation = Reservation(
        kube_reserved=amounts(memory="3Gi", gpu="1"),
        system_reserved=amounts(memory="-1", cpu="1"),
        hard_eviction={
            "memory.available": "2Gi",
            "nodefs.available": "110%",
            "nodefs.inodesFree": "many",
            "memory.free": "1Mi",
        },
        reserved_cpus=CPUSet.of(9),
        enforce=frozenset(
            {Enforce.KUBE_RESERVED, Enforce.KUBE_RESERVED_COMPRESSIBLE, Enforce.SYSTEM_RESERVED}
        ),
        system_reserved_cgroup=CgroupName.of("system"),
    )
    capacity = amounts(cpu="4", memory="4Gi")
    faults = reservation_faults(capacity, reservation, online=CPUSet.parse("0-3"))
    for words in (
        "kube-reserved names gpu",
        "system-reserved memory -1 is negative",
        "memory:",
        "nodefs.available '110%'",
        "nodefs.inodesFree 'many'",
        "memory.free is no signal; known are",
        "reserved CPUs 9 are not online",
        "together with the system-reserved cgroup /system",
        "kube-reserved-compressible is a part of kube-reserved",
        "kube-reserved is to be enforced without a cgroup",
    ):
        assert any(words in fault for fault in faults), words
    with pytest.raises(ReservationError, match="of 4Gi") as refused:
        allocatable(capacity, reservation)
    assert len(refused.value.faults) == len(faults) - 1
    idle = Reservation(
        enforce=frozenset({Enforce.SYSTEM_RESERVED}), system_reserved_cgroup=CgroupName.of("s")
    )
    assert any("nothing is reserved" in fault for fault in reservation_faults(capacity, idle))


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
