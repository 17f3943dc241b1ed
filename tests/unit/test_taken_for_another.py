"""Values of the right kind that belong to another pod, machine or source: refused where they are given."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from nodealloc.cpuset import CpuAllocator, CpusetReconciler, NonePolicy
from nodealloc.dsw_asw import InlineExecutor
from nodealloc.errors import ConfigurationError
from nodealloc.idset import CPUSet
from nodealloc.kubeconfig import KubeletConfig, pod_sources
from nodealloc.machine import machine_from_text
from nodealloc.memblocks import MemoryAllocator
from nodealloc.podlife import PodSeen, plan_pod
from nodealloc.podsources import FolderSource, PodSources, Polling
from nodealloc.podspec import Container, Pod
from nodealloc.podstatus import Observed, with_runtime
from nodealloc.podstatus import Rules as StatusRules
from nodealloc.runtime import PodKnown, PodReport
from nodealloc.testing.cpuset import FakeCpusetWriter
from nodealloc.topology import Owner, Snapshot

SMALL = machine_from_text("2 cores")
LARGE = machine_from_text("2 sockets x 4 cores")
POD = Pod(uid="u", name="web", containers=(Container(name="app"),))


def confined() -> CpusetReconciler:
    """One of two containers on four CPUs."""
    machine = machine_from_text("4 cores")
    keeper = CpusetReconciler(
        FakeCpusetWriter({}, online=CPUSet.parse("0-3")),
        executor=InlineExecutor(),
        allocator=CpuAllocator.of(machine),
    )
    for name in ("web", "db"):
        keeper.add(name, Owner(name, "main"))
    return keeper


ANOTHERS: Mapping[str, tuple[Callable[[], object], str]] = {
    "a container that nobody added": (
        lambda: confined().wait_exclusive("nobody"),
        r"'nobody' was not added, or was removed: add\(target, owner\) first; there are: db, web",
    ),
    "intruders of nobody": (lambda: confined().intruders("nobody"), "'nobody' was not added"),
    "an allocator of another machine": (
        lambda: confined().follow(CpuAllocator.of(LARGE)),
        "machine with CPUs 0-7, and the reconciler began with CPUs 0-3",
    ),
    "a report of another pod": (
        lambda: plan_pod(POD, PodSeen(report=PodReport(uid="other"))),
        "the pod is u, and the report is of pod other; inspect the pod by its uid",
    ),
    "rules of another package": (
        lambda: plan_pod(POD, PodSeen(report=PodReport(uid="u")), rules=StatusRules()),  # type: ignore[arg-type]
        r"plan_pod: rules: expected a Rules, found the Rules of nodealloc\.podstatus",
    ),
    "what is known of another pod": (
        lambda: with_runtime(Observed(pod=POD), PodKnown(uid="other")),
        "is of pod u, what is known of pod other",
    ),
    "a period of no source": (
        lambda: PodSources({"file": FolderSource("/run")}, polling=Polling(periods={"files": 5})),
        "'files' is none of the sources 'file'",
    ),
    "CPUs of fewer nodes": (
        lambda: Snapshot.of(LARGE, allocators=(CpuAllocator.of(SMALL),)),
        "knows cpu on NUMA nodes 0, and the machine has some on 1 too",
    ),
    "no CPUs for anybody, of fewer nodes": (
        lambda: Snapshot.of(LARGE, allocators=(CpuAllocator(policy=NonePolicy.of(SMALL)),)),
        "knows cpu on NUMA nodes 0, and the machine has some on 1 too",
    ),
    "memory of fewer nodes": (
        lambda: Snapshot.of(LARGE, allocators=(MemoryAllocator.of(SMALL),)),
        "knows memory on NUMA nodes 0, and the machine has some on 1 too",
    ),
}


@pytest.mark.parametrize("name", ANOTHERS)
def test_what_belongs_to_another_is_refused(name: str) -> None:
    """The error says to whom it belongs and what belongs here."""
    call, words = ANOTHERS[name]
    with pytest.raises(ConfigurationError, match=words):
        call()


@pytest.mark.parametrize(
    "text",
    [
        "2 sockets x 4 cores",
        "1 socket x (1 numa x 4 cores + 1 numa x 0 cores)",
        "2 sockets x 2 cores, memory=8Gi/0",
        "2 sockets x 2 cores, offline=2-3",
    ],
)
def test_a_node_that_lacks_something_is_no_other_machine(text: str) -> None:
    """CPUs are counted where there are some, and so is memory."""
    machine = machine_from_text(text)
    own = CpuAllocator.of(machine), MemoryAllocator.of(machine)
    assert Snapshot.of(machine, allocators=own).allocators == own


def test_a_refused_allocator_is_not_followed() -> None:
    """What was followed before stays."""
    keeper = confined()
    with pytest.raises(ConfigurationError):
        keeper.follow(CpuAllocator.of(LARGE))
    keeper.add("late", Owner("late", "main"))
    keeper.reconcile()
    assert keeper.applied("late") is None or keeper.is_in_line("late")


def test_a_configuration_without_an_address_has_no_period_for_one() -> None:
    """`httpCheckFrequency` has a value by itself."""
    sources = pod_sources(KubeletConfig(static_pod_path="/nonexistent"), node_name="n")
    assert sources.answers.snapshot() == {}
