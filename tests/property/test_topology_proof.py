"""Refusals of the whole-pod search are proofs: an independent solver finds no assignment either."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, cast

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from nodealloc.devices import Device, DeviceAllocator, DeviceList, Inventory, PluginOptions
from nodealloc.podspec import Quantity
from nodealloc.topology import (
    Claim,
    NumaTopology,
    Owner,
    Placed,
    Policy,
    PolicyName,
    Refusal,
    Snapshot,
    Workload,
    admit,
)

GPU, NIC = "example.com/gpu", "example.com/nic"


class Clauses(Protocol):
    """A cardinality constraint as clauses."""

    clauses: list[list[int]]
    nv: int


class Encoder(Protocol):
    """`pysat.card.CardEnc`."""

    def atmost(self, *, lits: Sequence[int], bound: int, top_id: int) -> Clauses:
        """At most so many of the literals are true; one that stands there twice counts twice."""
        ...


class Solver(Protocol):
    """`pysat.solvers.Solver`."""

    def __call__(self, *, bootstrap_with: Sequence[Sequence[int]]) -> Solver:
        """A solver of these clauses."""
        ...

    def solve(self) -> bool:
        """Whether they can all hold."""
        ...


def solvable(free: Sequence[Sequence[int]], wanted: Sequence[Sequence[int]]) -> bool:
    """Whether each member can have a node so that no node gives more than it has, by a SAT solver.

    Args:
        free: Node by node what is free of each resource.
        wanted: Member by member what is asked of each resource.
    """
    why = "python-sat is not installed: pip install 'nodealloc[proof]'"
    encoder = cast("Encoder", pytest.importorskip("pysat.card", reason=why).CardEnc)
    solver = cast("Solver", pytest.importorskip("pysat.solvers", reason=why).Solver)
    nodes, members = range(len(free)), range(len(wanted))
    on = {(member, node): 1 + member * len(free) + node for member in members for node in nodes}
    clauses = [[on[member, node] for node in nodes] for member in members]
    top = len(on)
    for node in nodes:
        for resource, most in enumerate(free[node]):
            taken = [on[member, node] for member in members for _ in range(wanted[member][resource])]
            if most == 0:
                clauses += [[-literal] for literal in taken]
            elif len(taken) > most:
                limit = encoder.atmost(lits=taken, bound=most, top_id=top)
                clauses += limit.clauses
                top = max(top, limit.nv)
    return solver(bootstrap_with=clauses).solve()


def inventory(resource: str, counts: Sequence[int]) -> Inventory:
    """So many devices of a resource on each node."""
    ids = [
        Device(f"{node:02}-{k}", numa_nodes=1 << node)
        for node, count in enumerate(counts)
        for k in range(count)
    ]
    listed = DeviceList.of(ids, nodes=range(len(counts)))
    return Inventory(resource=resource).registered(1, now_s=0.0).listed(1, listed, PluginOptions(), now_s=0.0)


@st.composite
def packings(draw: st.DrawFn) -> tuple[list[list[int]], list[list[int]]]:
    """Machines of 11 to 64 nodes of which few have room, and members that may just fit."""
    nodes = draw(st.integers(11, 64))
    free = [[0, 0] for _ in range(nodes)]
    for node in draw(st.sets(st.integers(0, nodes - 1), min_size=2, max_size=5)):
        free[node] = [draw(st.integers(1, 4)), draw(st.integers(1, 4))]
    member = st.tuples(st.integers(1, 3), st.integers(1, 3)).map(list)
    return free, draw(st.lists(member, min_size=2, max_size=6))


def asked_of(free: Sequence[Sequence[int]], wanted: Sequence[Sequence[int]]) -> Placed | Refusal:
    """What the search answers for members `m0`, `m1`… on a machine with so much free on each node."""
    allocator = DeviceAllocator(nodes=tuple(range(len(free))))
    for row, resource in enumerate((GPU, NIC)):
        allocator = allocator.with_inventory(inventory(resource, [each[row] for each in free]))
    snapshot = Snapshot(
        numa=NumaTopology(nodes=tuple(range(len(free)))),
        policy=Policy(name=PolicyName.SINGLE_NUMA_NODE, search=True),
        allocators=(allocator,),
    )
    claims = [
        Claim(owner=Owner("job", f"m{place}"), amounts={GPU: Quantity.of(gpus), NIC: Quantity.of(nics)})
        for place, (gpus, nics) in enumerate(wanted)
    ]
    verdict = admit(snapshot, Workload(key="job", claims=tuple(claims)))
    assert isinstance(verdict, (Placed, Refusal))
    return verdict


@given(packings())
def test_the_search_refuses_what_no_solver_places(packing: tuple[list[list[int]], list[list[int]]]) -> None:
    """Under single-numa-node: what is placed fits, what is refused for good fits nowhere."""
    free, wanted = packing
    possible = solvable(free, wanted)
    verdict = asked_of(free, wanted)
    event(f"{type(verdict).__name__}, solvable: {possible}")
    if isinstance(verdict, Placed):
        left = [list(each) for each in free]
        for place, (gpus, nics) in enumerate(wanted):
            node = (verdict.affinity[f"m{place}"].affinity or 0).bit_length() - 1
            left[node] = [left[node][0] - gpus, left[node][1] - nics]
        assert min(map(min, left)) >= 0
        assert possible
    else:
        assert verdict.exhausted or not possible


@given(packings(), st.data())
def test_more_free_never_refuses_what_the_search_placed(
    packing: tuple[list[list[int]], list[list[int]]], data: st.DataObject
) -> None:
    """A node that has more of something takes nothing away."""
    free, wanted = packing
    if isinstance(asked_of(free, wanted), Refusal):
        return
    node = data.draw(st.integers(0, len(free) - 1))
    free[node] = [free[node][0] + data.draw(st.integers(0, 2)), free[node][1] + data.draw(st.integers(0, 2))]
    verdict = asked_of(free, wanted)
    assert isinstance(verdict, Placed) or verdict.exhausted
