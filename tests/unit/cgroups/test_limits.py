"""Limits: what is refused, where each goes, and how it reads back."""

from __future__ import annotations

import pytest

from nodealloc.cgroups import (
    NO_LIMIT,
    CgroupMount,
    CgroupName,
    CgroupStats,
    ControllerMissingError,
    Layout,
    Limits,
    UnsupportedLimitError,
    render,
)
from nodealloc.cgroups._convert import shares_to_weight
from nodealloc.cgroups._render import limits_from
from nodealloc.cgroups._stats import stats_from
from nodealloc.idset import CPUSet, NodeSet

NAME = CgroupName.of("a")
V1 = Layout(
    mounts=(
        CgroupMount(path="/c/cpu,cpuacct", version=1, controllers=("cpu", "cpuacct")),
        CgroupMount(path="/c/cpuset", version=1, controllers=("cpuset",)),
        CgroupMount(path="/c/hugetlb", version=1, controllers=("hugetlb",)),
        CgroupMount(path="/c/memory", version=1, controllers=("memory",)),
        CgroupMount(path="/c/pids", version=1, controllers=("pids",)),
    )
)
V2 = Layout(
    mounts=(CgroupMount(path="/c", version=2, controllers=("cpu", "cpuset", "hugetlb", "memory", "pids")),)
)
EVERYTHING = Limits(
    cpu_shares=1024,
    cpu_quota_us=50_000,
    cpu_period_us=100_000,
    memory_bytes=1 << 20,
    pids=10,
    cpus=CPUSet.of(0, 1, 2, 5),
    mems=NodeSet.of(0),
    hugepage_bytes={2 << 20: 4 << 20, 1 << 30: NO_LIMIT},
)


@pytest.mark.parametrize(
    ("limits", "why"),
    [
        ({"cpu_quota_us": 999}, "below 1000"),
        ({"cpu_quota_us": -2}, "below 1000"),
        ({"cpu_shares": 1}, "outside 2 to 262144"),
        ({"cpu_shares": 262145}, "outside 2 to 262144"),
        ({"cpu_quota_us": 5000, "cpu_period_us": 999}, "outside 1000 to 1000000"),
        ({"cpu_period_us": 100_000}, "without cpu_quota_us"),
        ({"memory_bytes": 4095}, "one page"),
        ({"memory_bytes": 0}, "one page"),
        ({"memory_min_bytes": -5}, "below 0"),
        ({"pids": 0}, "one process"),
        ({"cpus": CPUSet()}, "cpus is empty"),
        ({"mems": NodeSet()}, "mems is empty"),
        ({"hugepage_bytes": {1000: 1}}, "no huge page size"),
        ({"hugepage_bytes": {2 << 20: -2}}, "negative"),
    ],
)
def test_limits_below_the_kernels_are_named(limits: dict[str, int], why: str) -> None:
    """What the kernel would refuse or bend is refused at once, with a remedy."""
    with pytest.raises(ValueError, match=why):
        Limits(**limits)  # type: ignore[arg-type]


def test_v1_files() -> None:
    """Each limit in its v1 file, the period before the quota."""
    assert [str(write) for write in render(V1, NAME, EVERYTHING)] == [
        "/c/cpu,cpuacct/a/cpu.shares = 1024",
        "/c/cpu,cpuacct/a/cpu.cfs_period_us = 100000",
        "/c/cpu,cpuacct/a/cpu.cfs_quota_us = 50000",
        "/c/memory/a/memory.limit_in_bytes = 1048576",
        "/c/pids/a/pids.max = 10",
        "/c/cpuset/a/cpuset.cpus = 0-2,5",
        "/c/cpuset/a/cpuset.mems = 0",
        "/c/hugetlb/a/hugetlb.2MB.limit_in_bytes = 4194304",
        "/c/hugetlb/a/hugetlb.1GB.limit_in_bytes = 4611686018427387904",
    ]


def test_v2_files() -> None:
    """Each limit in its v2 file, quota and period in one."""
    more = Limits(memory_min_bytes=4096, memory_high_bytes=8192, swap_bytes=0).over(EVERYTHING)
    assert [str(write) for write in render(V2, NAME, more)] == [
        "/c/a/cpu.weight = 39",
        "/c/a/cpu.max = 50000 100000",
        "/c/a/memory.max = 1048576",
        "/c/a/memory.min = 4096",
        "/c/a/memory.high = 8192",
        "/c/a/memory.swap.max = 0",
        "/c/a/pids.max = 10",
        "/c/a/cpuset.cpus = 0-2,5",
        "/c/a/cpuset.mems = 0",
        "/c/a/hugetlb.2MB.max = 4194304",
        "/c/a/hugetlb.1GB.max = max",
    ]


def test_lifted_limits() -> None:
    """No limit is -1 on v1, where pids says max, and max on v2."""
    lifted = Limits(cpu_quota_us=NO_LIMIT, memory_bytes=NO_LIMIT, pids=NO_LIMIT)
    assert [write.text for write in render(V1, NAME, lifted)] == ["-1", "-1", "max"]
    assert [write.text for write in render(V2, NAME, lifted)] == ["max", "max", "max"]
    assert render(V2, NAME, Limits(cpu_quota_us=2000))[0].text == "2000"


def test_missing_controllers_are_named() -> None:
    """A limit without its controller is refused; huge pages of nothing need none."""
    bare = Layout(mounts=(CgroupMount(path="/c", version=2, controllers=("cpu",)),))
    with pytest.raises(ControllerMissingError, match="memory") as refused:
        render(bare, NAME, Limits(memory_bytes=1 << 20))
    assert refused.value.controller == "memory"
    assert render(bare, NAME, Limits(hugepage_bytes={2 << 20: 0, 1 << 30: NO_LIMIT})) == ()
    with pytest.raises(ControllerMissingError, match="hugetlb"):
        render(bare, NAME, Limits(hugepage_bytes={2 << 20: 2 << 20}))


def test_limits_of_v2_alone_are_named() -> None:
    """v1 has no protection of memory from below."""
    with pytest.raises(UnsupportedLimitError, match="memory_min_bytes: cgroup v1 has no such limit"):
        render(V1, NAME, Limits(memory_min_bytes=4096))


@pytest.mark.parametrize("layout", [V1, V2], ids=["v1", "v2"])
def test_files_read_back(layout: Layout) -> None:
    """What was written is what is read, from either version."""
    files = {(write.controller, write.file): write.text for write in render(layout, NAME, EVERYTHING)}
    found = limits_from(lambda controller, file: files.get((controller, file)), layout, (2 << 20, 1 << 30))
    assert shares_to_weight(found.cpu_shares or 0) == shares_to_weight(1024)
    assert found.since(EVERYTHING).asked.keys() <= {"cpu_shares"}


def test_unlimited_reads_back_as_no_limit() -> None:
    """The kernel's largest number stands for no limit; what others set too low reads as the least."""
    files = {"memory.limit_in_bytes": "9223372036854771712", "pids.max": "0", "cpu.cfs_quota_us": "-1"}
    found = limits_from(lambda _controller, file: files.get(file), V1)
    assert (found.memory_bytes, found.pids, found.cpu_quota_us) == (NO_LIMIT, 1, NO_LIMIT)
    assert limits_from(lambda _controller, file: {"memory.max": "0"}.get(file), V2).memory_bytes == 4096
    assert limits_from(lambda _controller, _file: None, Layout(mounts=())) == Limits()


def test_stats_have_one_shape() -> None:
    """Both versions end in bytes and nanoseconds."""
    v1 = {
        "memory.usage_in_bytes": "1000",
        "memory.stat": "cache 1\ntotal_inactive_file 300",
        "memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 2",
        "cpuacct.usage": "5000000",
        "cpu.stat": "nr_periods 4\nnr_throttled 3\nthrottled_time 2000000",
        "pids.current": "7",
    }
    v2 = {
        "memory.current": "1000",
        "memory.stat": "anon 1\ninactive_file 300",
        "memory.events": "low 0\noom_kill 2",
        "cpu.stat": "usage_usec 5000\nnr_periods 4\nnr_throttled 3\nthrottled_usec 2000",
        "pids.current": "7",
    }
    expected = CgroupStats(
        memory_bytes=1000,
        working_set_bytes=700,
        cpu_ns=5_000_000,
        periods=4,
        throttled_periods=3,
        throttled_ns=2_000_000,
        pids=7,
        oom_kills=2,
    )
    assert stats_from(lambda _controller, file: v1.get(file), V1) == expected
    assert stats_from(lambda _controller, file: v2.get(file), V2) == expected
    assert stats_from(lambda _controller, _file: None, V2) == CgroupStats()


def test_layout_says_what_it_is() -> None:
    """Kind and places in one line."""
    hybrid = Layout(mounts=(*V1.mounts[:1], CgroupMount(path="/c/unified", version=2)))
    assert (V1.kind, V2.kind, hybrid.kind) == ("v1", "v2", "hybrid")
    assert str(hybrid) == "cgroup hybrid: cpu+cpuacct at /c/cpu,cpuacct, no controllers at /c/unified"
    assert V1.unified is None
    assert hybrid.directory(hybrid.mounts[1], CgroupName()) == "/c/unified"
