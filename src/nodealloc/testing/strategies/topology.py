"""Hypothesis strategies for machines, hints, policies, workloads and snapshots."""

from __future__ import annotations

import attrs
from hypothesis import strategies as st

from nodealloc.idset import bits
from nodealloc.testing.topology import FakeAllocator, workload
from nodealloc.topology import (
    CountedHints,
    Hints,
    Need,
    NumaTopology,
    Policy,
    PolicyName,
    Scope,
    Snapshot,
    TopologyHint,
    Workload,
)

__all__ = [
    "counted_hints",
    "hints",
    "numa_topologies",
    "policies",
    "provider_hints",
    "snapshots",
    "workloads",
]

_RESOURCES: tuple[str, ...] = ("cpu", "memory", "example.com/gpu")


@st.composite
def numa_topologies(draw: st.DrawFn, *, most_nodes: int = 5, highest: int = 9) -> NumaTopology:
    """Machines of 1 to `most_nodes` nodes with gaps between their ids and a table of distances."""
    ids = st.integers(0, highest)
    nodes = tuple(sorted(draw(st.sets(ids, min_size=1, max_size=most_nodes))))
    near, far = st.sampled_from((10, 10, 10, 11)), st.integers(10, 40)
    distances = {one: {other: draw(near if one == other else far) for other in nodes} for one in nodes}
    return NumaTopology(nodes=nodes, distances=distances)


def _masks(numa: NumaTopology) -> st.SearchStrategy[int]:
    """Non-empty sets of the machine's nodes."""
    nodes = tuple(bits(numa.mask))
    return st.sets(st.sampled_from(nodes), min_size=1).map(lambda chosen: sum(1 << node for node in chosen))


def hints(numa: NumaTopology, *, most: int = 6) -> st.SearchStrategy[list[TopologyHint] | None]:
    """One resource's hints: no preference, none possible, or some, "any node" among them."""
    hint = st.builds(TopologyHint, st.none() | _masks(numa) | _masks(numa), st.booleans())
    return st.none() | st.lists(hint, max_size=most)


@st.composite
def counted_hints(draw: st.DrawFn, numa: NumaTopology) -> CountedHints:
    """One resource's hints by figures: amounts on one node or near several, one or two needs.

    Some have nodes that have to be in each set, parts that belong together, and
    sets that stand for themselves.
    """
    nodes = draw(st.just(numa.mask) | _masks(numa))
    needs = [draw(_needs(nodes))]
    needs += draw(
        st.just(()) | st.tuples(_needs(nodes)) | st.tuples(st.builds(Need.touching, _one_of(nodes)))
    )
    split = 1 << numa.nodes[len(numa.nodes) // 2]
    halves = (nodes & (split - 1), nodes & -split)
    by_part = draw(st.integers(0, 7)) == 0
    found = CountedHints(
        nodes=nodes,
        needs=tuple(needs),
        preferred_width=draw(st.integers(1, len(numa.nodes))),
        parts=halves if by_part else (),
        preferred_parts=draw(st.integers(1, 2)) if by_part else 0,
    )
    others = draw(st.just(dict[int, bool]()) | st.dictionaries(_masks(numa), st.booleans(), max_size=4))
    alone = [TopologyHint(mask, good) for mask, good in others.items() if not found.counts(mask)]
    return attrs.evolve(found, others=tuple(alone))


def _one_of(nodes: int) -> st.SearchStrategy[int]:
    return st.sampled_from([1 << node for node in bits(nodes)])


@st.composite
def _needs(draw: st.DrawFn, nodes: int) -> Need:
    """An amount that some sets of the nodes hold: all nodes alike, or each its own."""
    each = [1 << node for node in bits(nodes)]
    alike = draw(st.integers(0, 4))
    amounts = [(node, alike or draw(st.integers(0, 9))) for node in each]
    if len(each) > 1 and draw(st.integers(0, 3)) == 0:
        near = draw(st.lists(st.sets(st.sampled_from(each), min_size=2, max_size=3), max_size=2))
        amounts += [(sum(place), draw(st.integers(1, 3))) for place in near]
    return Need(wanted=draw(st.integers(1, max(1, sum(size for _, size in amounts)))), amounts=tuple(amounts))


def provider_hints(
    numa: NumaTopology, *, most_providers: int = 4, most_hints: int = 6
) -> st.SearchStrategy[list[Hints]]:
    """What several providers answer about one claim."""
    names = st.sampled_from(_RESOURCES)
    answers = st.dictionaries(names, hints(numa, most=most_hints), max_size=2)
    return st.lists(answers, max_size=most_providers)


def policies(*, search: bool | None = False) -> st.SearchStrategy[Policy]:
    """Any policy; `search` None draws the whole-pod search as well."""
    return st.builds(
        Policy,
        name=st.sampled_from(PolicyName),
        prefer_closest=st.booleans(),
        search=st.booleans() if search is None else st.just(search),
    )


def workloads(key: str = "job", *, most_members: int = 3, most_units: int = 4) -> st.SearchStrategy[Workload]:
    """Workloads that ask for a few units of a few resources, init members included."""
    amounts = st.dictionaries(st.sampled_from(_RESOURCES), st.integers(1, most_units), max_size=2)
    main = st.lists(amounts, min_size=1, max_size=most_members)
    init = st.lists(amounts, max_size=2)
    return st.tuples(main, init).map(lambda asked: workload(key, *asked[0], init=asked[1]))


@st.composite
def snapshots(
    draw: st.DrawFn, *, policy: st.SearchStrategy[Policy] | None = None, most_units: int = 4
) -> Snapshot:
    """Empty nodes with a fake allocator for each of a few resources."""
    numa = draw(numa_topologies(most_nodes=3, highest=4))
    capacity = st.fixed_dictionaries({node: st.integers(0, most_units) for node in numa.nodes})
    names = draw(st.lists(st.sampled_from(_RESOURCES), min_size=1, unique=True))
    return Snapshot(
        numa=numa,
        policy=draw(policies() if policy is None else policy),
        scope=draw(st.sampled_from(Scope)),
        allocators=tuple(FakeAllocator.of(name, draw(capacity)) for name in names),
    )
