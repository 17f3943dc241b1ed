"""Laws of names, conversions, limits, the plan and the stand-in."""

from __future__ import annotations

import contextlib
import tempfile

from hypothesis import given
from hypothesis import strategies as st

from nodealloc.cgroups import (
    CgroupMount,
    CgroupName,
    Layout,
    Limits,
    QosTree,
    Spelling,
    TreeOptions,
    container_limits,
    oom_score_adj,
    pod_name,
    pod_uid,
    render,
    stand_in,
)
from nodealloc.cgroups._convert import (
    MAX_SHARES,
    MIN_SHARES,
    milli_cpu_to_quota_us,
    milli_cpu_to_shares,
    shares_to_weight,
    weight_to_shares,
)
from nodealloc.cgroups._pods import pod_limits
from nodealloc.cgroups._qos_tree import desired_tree
from nodealloc.podspec import Pod
from nodealloc.testing.cgroups import FakeCgroups
from nodealloc.testing.strategies.cgroups import cgroup_names, cgroup_pods, limits

ROOT = CgroupName.of("kubepods")
V1 = Layout(
    mounts=tuple(
        CgroupMount(path=f"/c/{each}", version=1, controllers=(each,))
        for each in ("cpu", "cpuset", "hugetlb", "memory", "pids")
    )
)
V2 = Layout(
    mounts=(CgroupMount(path="/c", version=2, controllers=("cpu", "cpuset", "hugetlb", "memory", "pids")),)
)


@given(name=cgroup_names(), spelling=st.sampled_from(Spelling))
def test_names_survive_both_spellings(name: CgroupName, spelling: Spelling) -> None:
    """A name that is written and read is the same name."""
    assert CgroupName.parse(name.path(spelling), spelling) == name
    assert CgroupName.parse(name.unit, Spelling.SYSTEMD) == name


@given(text=st.text(max_size=30), spelling=st.sampled_from(Spelling))
def test_any_text_is_a_name_or_a_fault(text: str, spelling: Spelling) -> None:
    """Reading returns a name that can be written again, or raises ValueError; nothing else."""
    name = None
    with contextlib.suppress(ValueError):
        name = CgroupName.parse(text, spelling)
    if name is not None:
        assert CgroupName.parse(name.path(spelling), spelling) == name


@given(weight=st.integers(1, 10000))
def test_weight_survives_shares(weight: int) -> None:
    """Shares that stand for a weight have that weight, and one share fewer has less."""
    shares = weight_to_shares(weight)
    assert MIN_SHARES <= shares <= MAX_SHARES
    assert shares_to_weight(shares) == weight
    if shares > MIN_SHARES:
        assert shares_to_weight(shares - 1) < weight


@given(less=st.integers(0, 10**6), more=st.integers(0, 10**6))
def test_more_cpu_is_never_less(less: int, more: int) -> None:
    """Shares, weights and quotas never fall when an amount rises."""
    less, more = sorted((less, more))
    assert milli_cpu_to_shares(less) <= milli_cpu_to_shares(more)
    assert shares_to_weight(milli_cpu_to_shares(less)) <= shares_to_weight(milli_cpu_to_shares(more))
    if less:
        assert milli_cpu_to_quota_us(less) <= milli_cpu_to_quota_us(more)


@given(first=limits(), second=limits())
def test_change_over_the_old_is_the_new(first: Limits, second: Limits) -> None:
    """Writing only what changed ends where writing everything ends."""
    assert second.since(first).over(first) == second.over(first)
    assert not first.since(first)


@given(asked=limits(), layout=st.sampled_from([V1, V2]))
def test_only_what_is_asked_is_written(asked: Limits, layout: Layout) -> None:
    """There are as many files as there are settings asked for, each once."""
    writes = render(layout, ROOT, asked)
    assert len({write.path for write in writes}) == len(writes)
    fields = asked.asked.keys() - {"hugepage_bytes"} - ({"cpu_period_us"} if layout is V2 else set())
    assert len(writes) == len(fields) + len(asked.hugepage_bytes)


@given(asked=st.lists(limits(), max_size=4), version=st.sampled_from([1, 2]))
def test_stand_in_keeps_what_is_not_asked(asked: list[Limits], version: int) -> None:
    """After any updates, each setting is that of the last update that asked for it."""
    with tempfile.TemporaryDirectory() as directory:
        driver = stand_in(directory, version=version)
        driver.apply(ROOT, Limits())
        expected = driver.read(ROOT)
        for each in asked:
            assert expected is not None
            driver.apply(ROOT, each)
            # A new quota without a period keeps the period.
            expected = each.over(expected)
            found = driver.read(ROOT)
            assert found is not None
            for name in each.asked.keys() - {"cpu_shares", "hugepage_bytes"}:
                assert found.asked[name] == expected.asked[name]
            assert shares_to_weight(found.cpu_shares or 2) == shares_to_weight(expected.cpu_shares or 2)


@given(before=cgroup_pods(), after=cgroup_pods())
def test_one_round_converges(before: list[Pod], after: list[Pod]) -> None:
    """From any tree, one round leaves nothing to do, no cgroup of a pod that is gone, and no drift."""
    driver = FakeCgroups()
    tree = QosTree(driver, TreeOptions(root=ROOT))
    tree.reconcile(before)
    assert tree.reconcile(after).is_settled
    calls = len(driver.calls)
    again = tree.reconcile(after)
    assert not again.applied
    assert not again.removals
    assert len(driver.calls) == calls
    assert tree.observe() == ()
    there = {one.uid for one in after}
    had = {pod_name(ROOT, one) for one in before if one.uid in there}
    assert set(driver.tree) - {CgroupName()} == had | set(desired_tree(after, TreeOptions(root=ROOT)))


@given(some=cgroup_pods())
def test_every_cgroup_has_its_parent_in_the_tree(some: list[Pod]) -> None:
    """None is made below one that nobody makes."""
    desired = desired_tree(some, TreeOptions(root=ROOT))
    assert all(name.parent in desired or name == ROOT for name in desired)


@given(some=cgroup_pods())
def test_burstable_weighs_as_its_pods(some: list[Pod]) -> None:
    """The class has no fewer shares than any of its pods, and no more than all of them, but for rounding."""
    desired = desired_tree(some, TreeOptions(root=ROOT))
    burstable = ROOT.child("burstable")
    each = [limits.cpu_shares or 0 for name, limits in desired.items() if name.is_below(burstable)]
    total = desired[burstable].cpu_shares or 0
    assert total >= max(each, default=2)
    assert total <= sum(each) + len(each) + 2


@given(some=cgroup_pods(), capacity=st.integers(1 << 30, 1 << 40))
def test_pods_are_found_again(some: list[Pod], capacity: int) -> None:
    """A pod's cgroup leads back to its uid, and its containers' scores are in order."""
    for pod in some:
        assert pod_uid(ROOT, pod_name(ROOT, pod)) == pod.uid
        scores = [oom_score_adj(pod, each, memory_capacity_bytes=capacity) for each in pod.all_containers]
        assert all(score in {-997, 1000} or 3 <= score <= 999 for score in scores)
        limits = pod_limits(pod)
        for container in pod.containers:
            own = container_limits(container)
            assert (own.cpu_shares or 0) <= max(limits.cpu_shares or 0, 2)
            if limits.memory_bytes is not None:
                assert (own.memory_bytes or 0) <= limits.memory_bytes
