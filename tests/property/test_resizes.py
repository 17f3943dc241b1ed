"""Laws of resizing in place: whatever a pod is edited to, it holds what it needs at its peak."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nodealloc.admission import resized
from nodealloc.cpuset import CpuAllocator, StaticPolicy
from nodealloc.machine import machine_from_text
from nodealloc.memblocks import MemoryAllocator
from nodealloc.podfacts import NodeView, PodOnNode
from nodealloc.podspec import Container, Pod, resources
from nodealloc.topology import Claim, Placed, Policy, Snapshot, admit, peak, workload_of

MACHINE = machine_from_text("1 socket x 16 cores, memory=16Gi")
VIEW = NodeView(name="n1", allocatable=resources({"cpu": 15, "memory": "16Gi", "pods": 9}))
GIB = 1 << 30

SHAPES = st.lists(st.sampled_from(("init", "sidecar", "main")), max_size=4)
AMOUNTS = st.tuples(st.integers(1, 5), st.integers(1, 5))


@st.composite
def edits(draw: st.DrawFn) -> list[Pod]:
    """A pod, and what it is edited to."""
    kinds = [*draw(SHAPES), "main"]

    def asking(place: int) -> Container:
        cpus, gib = draw(AMOUNTS)
        amounts = resources({"cpu": cpus, "memory": f"{gib}Gi"})
        return Container(
            name=f"c{place}", requests=amounts, limits=amounts, restartable=kinds[place] == "sidecar"
        )

    def form() -> Pod:
        made = [(kind, asking(place)) for place, kind in enumerate(kinds)]
        return Pod(
            uid="db",
            name="db",
            init_containers=tuple(one for kind, one in made if kind != "main"),
            containers=tuple(one for kind, one in made if kind == "main"),
        )

    return [form() for _ in range(draw(st.integers(2, 4)))]


def cpus_of(claim: Claim) -> int:
    """Whole CPUs that a claim asks for."""
    return claim.amounts["cpu"].nanos // 10**9


def bytes_of(claim: Claim) -> int:
    """Memory that a claim asks for."""
    return claim.amounts["memory"].nanos // 10**9


@given(edits())
def test_a_pod_holds_its_peak_whatever_it_is_edited_to(forms: list[Pod]) -> None:
    """Init containers may run once more: what they lent is not given to others with what is given back."""
    empty = Snapshot.of(
        MACHINE,
        policy=Policy.parse("best-effort"),
        allocators=[
            CpuAllocator(policy=StaticPolicy.of(MACHINE, reserved=1, resizable=True)),
            MemoryAllocator.of(MACHINE),
        ],
    )
    snapshot, now = empty, None
    for pod in forms:
        view = VIEW if now is None else VIEW.with_pod(PodOnNode.of(now))
        placed = admit(snapshot, pod) if now is None else resized(pod, view, snapshot, is_edit=True)
        if not isinstance(placed, Placed):
            continue
        snapshot, now = placed.snapshot, pod
        claims = workload_of(pod).claims
        memory, cpus = snapshot[MemoryAllocator], snapshot[CpuAllocator].state
        (table,) = memory.tables()
        assert table.tables["memory"].reserved == peak(claims, bytes_of)
        assert cpus.held.bit_count() >= peak(claims, cpus_of)
        held = cpus.assignments["db"]
        for place, claim in enumerate(claims):
            assert len(held[claim.owner.member].cpus) == cpus_of(claim)
            beside = [one for one in claims[place + 1 :] if claim.owner.member not in one.reuse]
            for other in beside:
                assert not held[claim.owner.member].cpus & held[other.owner.member].cpus
