"""In-place resize: the chain first, then CPUs and memory; a refusal changes nothing."""

from __future__ import annotations

import attrs
import pytest

from nodealloc.admission import resized
from nodealloc.cpuset import CpuAllocator, StaticPolicy
from nodealloc.errors import ConfigurationError
from nodealloc.machine import machine_from_text
from nodealloc.memblocks import MemoryAllocator
from nodealloc.podfacts import NodeView, PodOnNode
from nodealloc.podspec import Container, Pod, resources
from nodealloc.topology import Owner, Placed, Policy, Snapshot, admit, workload_of
from nodealloc.verdicts import Refused

MACHINE = machine_from_text("2 sockets x 4 cores, memory=8Gi")
GIB = 1 << 30
DB = Owner("db", "app")


def pod(cpu: str, memory: str, *, limited: bool = True, gpus: int = 0) -> Pod:
    """A pod of one container."""
    amounts = resources({"cpu": cpu, "memory": memory, **({"example.com/gpu": gpus} if gpus else {})})
    box = Container(name="app", requests=amounts, limits=amounts if limited else {})
    return Pod(uid="db", name="db", containers=(box,))


def node(first: Pod) -> tuple[NodeView, Snapshot]:
    """A node where the pod runs."""
    empty = Snapshot.of(
        MACHINE,
        policy=Policy.parse("single-numa-node"),
        allocators=[
            CpuAllocator(policy=StaticPolicy.of(MACHINE, reserved=1, resizable=True)),
            MemoryAllocator.of(MACHINE),
        ],
    )
    placed = admit(empty, first)
    assert isinstance(placed, Placed)
    view = NodeView(name="n1", allocatable=resources({"cpu": 7, "memory": "16Gi", "pods": 9}))
    return view.with_pod(PodOnNode.of(first)), placed.snapshot


def test_a_pod_grows_and_shrinks_in_place() -> None:
    """CPUs and memory stay where they are and become more, then what they were at first."""
    view, before = node(pod("2", "1Gi"))
    cpus = before[CpuAllocator].cpus_of(DB)
    grown = resized(pod("3", "5Gi"), view, before)
    assert isinstance(grown, Placed)
    assert cpus < grown.snapshot[CpuAllocator].cpus_of(DB)
    (had,), (has,) = (one[MemoryAllocator].state.blocks(DB) for one in (before, grown.snapshot))
    assert (has.nodes, has.size_bytes) == (had.nodes, 5 * GIB)
    larger = view.with_pod(PodOnNode.of(pod("3", "5Gi")))
    back = resized(pod("2", "1Gi"), larger, grown.snapshot)
    assert isinstance(back, Placed)
    assert back.snapshot[CpuAllocator].cpus_of(DB) == cpus
    assert back.snapshot[MemoryAllocator].tables() == before[MemoryAllocator].tables()


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        (pod("8", "1Gi"), "OutOfcpu"),
        (pod("2", "17Gi"), "OutOfmemory"),
        (pod("2", "9Gi"), "UnexpectedAdmissionError"),
        (pod("5", "1Gi"), "TopologyAffinityError"),
        (pod("2", "1Gi", limited=False), "Infeasible"),
        (pod("2", "1Gi", gpus=1), "Infeasible"),
        (Pod(uid="db", containers=(Container(name="other"),)), "Infeasible"),
        (pod("2500m", "1Gi"), "Infeasible"),
    ],
)
def test_a_refusal_changes_nothing(wanted: Pod, reason: str) -> None:
    """Too much for the node or for its own NUMA nodes, another QoS class, other resources or containers."""
    view, before = node(pod("2", "1Gi"))
    held = before[CpuAllocator].state, before[MemoryAllocator].state
    verdict = resized(wanted, view, before)
    assert isinstance(verdict, Refused)
    assert verdict.reason == reason
    assert (before[CpuAllocator].state, before[MemoryAllocator].state) == held


def test_an_edit_may_ask_for_other_storage() -> None:
    """Nobody holds a part of it: there is enough on the node, or there is not."""
    view, before = node(pod("2", "1Gi"))
    view = attrs.evolve(view, allocatable={**view.allocatable, **resources({"ephemeral-storage": "8Gi"})})

    def asking(storage: str) -> Pod:
        (app,) = pod("2", "1Gi").containers
        more = {**app.requests, **resources({"ephemeral-storage": storage})}
        return attrs.evolve(pod("2", "1Gi"), containers=(attrs.evolve(app, requests=more, limits=more),))

    assert isinstance(resized(asking("1Gi"), view, before, is_edit=True), Placed)
    for wanted, is_edit, reason in (
        (asking("9Gi"), True, "OutOfephemeral-storage"),
        (asking("1Gi"), False, "Infeasible"),
    ):
        refused = resized(wanted, view, before, is_edit=is_edit)
        assert isinstance(refused, Refused)
        assert refused.reason == reason


def test_a_pod_of_the_shared_pool_resizes_without_holding_anything() -> None:
    """It is counted by node fit alone."""
    view, before = node(pod("1", "1Gi", limited=False))
    grown = resized(pod("3", "2Gi", limited=False), view, before)
    assert isinstance(grown, Placed)
    assert grown.snapshot.allocators == before.allocators
    assert isinstance(resized(pod("8", "2Gi", limited=False), view, before), Refused)


def test_a_pod_that_is_not_there_is_not_resized() -> None:
    """It has to be admitted."""
    view, before = node(pod("1", "1Gi"))
    with pytest.raises(ConfigurationError, match="does not have it"):
        resized(pod("1", "1Gi"), view.without("db"), before)


@pytest.mark.parametrize(
    ("before", "after"),
    [((2, 5), (5, 2)), ((5, 2), (2, 5)), ((1, 2, 4), (2, 4, 1)), ((4, 1, 2), (2, 4, 1))],
)
def test_what_one_container_gives_back_another_may_have(
    before: tuple[int, ...], after: tuple[int, ...]
) -> None:
    """Whichever of them comes first in the manifest: the pod asks for no more than it has."""
    pods = [
        Pod(
            uid="db",
            containers=tuple(
                Container(name=f"c{number}", requests=amounts, limits=amounts)
                for number, cpus in enumerate(counts)
                for amounts in (resources({"cpu": cpus, "memory": "1Gi"}),)
            ),
        )
        for counts in (before, after)
    ]
    cpus = CpuAllocator(policy=StaticPolicy.of(MACHINE, reserved=1, resizable=True))
    placed = admit(Snapshot.of(MACHINE, allocators=[cpus]), pods[0])
    assert isinstance(placed, Placed)
    view = NodeView(name="n1", allocatable=resources({"cpu": 7, "memory": "16Gi", "pods": 9}))
    done = resized(pods[1], view.with_pod(PodOnNode.of(pods[0])), placed.snapshot)
    assert isinstance(done, Placed), done
    held = [done.snapshot[CpuAllocator].cpus_of(Owner("db", f"c{one}")) for one in range(len(after))]
    assert tuple(map(len, held)) == after
    assert len(set().union(*held)) == sum(after)


def with_init(*, init: str, app: str, cpu: str = "2") -> Pod:
    """A pod of an init container and a main one."""

    def asking(name: str, memory: str) -> Container:
        amounts = resources({"cpu": cpu, "memory": memory})
        return Container(name=name, requests=amounts, limits=amounts)

    return Pod(
        uid="db", name="db", init_containers=(asking("first", init),), containers=(asking("app", app),)
    )


@pytest.mark.parametrize(
    ("before", "after", "held_gib"),
    [
        (("6Gi", "6Gi"), ("6Gi", "1Gi"), 6),
        (("6Gi", "2Gi"), ("6Gi", "5Gi"), 6),
        (("4Gi", "4Gi"), ("4Gi", "6Gi"), 6),
        (("6Gi", "6Gi"), ("2Gi", "3Gi"), 3),
        (("2Gi", "6Gi"), ("3Gi", "6Gi"), 6),
        (("2Gi", "2Gi"), ("5Gi", "1Gi"), 5),
    ],
)
def test_what_init_containers_lent_stays_held_for_them(
    before: tuple[str, str], after: tuple[str, str], held_gib: int
) -> None:
    """They run first, or once more in another sandbox: a pod holds what it needs at its peak, and no more."""
    first, then = (with_init(init=init, app=app) for init, app in (before, after))
    view, runs = node(first)
    edited = resized(then, view, runs, is_edit=True)
    assert isinstance(edited, Placed)
    anew = node(then)[1]
    assert edited.snapshot[MemoryAllocator].tables() == anew[MemoryAllocator].tables()
    assert edited.snapshot[MemoryAllocator].state.grants == anew[MemoryAllocator].state.grants
    (table,) = [one.tables["memory"] for one in anew[MemoryAllocator].tables() if one.assignments]
    assert table.reserved == held_gib * GIB


def test_memory_that_was_lent_needs_to_know_whose_it_was() -> None:
    """A claim alone does not say what the init containers of its pod need."""
    _, runs = node(with_init(init="6Gi", app="6Gi"))
    (_, app) = workload_of(with_init(init="6Gi", app="1Gi")).claims
    with pytest.raises(ConfigurationError, match="first"):
        runs[MemoryAllocator].resize(app)
    with pytest.raises(ConfigurationError, match="not among the claims"):
        runs[MemoryAllocator].resize(app, workload_of(with_init(init="6Gi", app="2Gi")))
