"""Counted hints against trying everything, and laws where everything is too much."""

from __future__ import annotations

import attrs
from hypothesis import given
from hypothesis import strategies as st

from nodealloc.testing.strategies.topology import counted_hints, hints, numa_topologies
from nodealloc.topology import (
    Closest,
    CountedHints,
    Hints,
    LeastAllocated,
    MostAllocated,
    Need,
    NumaTopology,
    Policy,
    PolicyName,
    TopologyHint,
    WorkLimitError,
    merge,
)
from tests.property.plain_merge import as_lists, listed, tried

POLICIES = st.builds(
    Policy,
    name=st.sampled_from([PolicyName.BEST_EFFORT, PolicyName.RESTRICTED, PolicyName.SINGLE_NUMA_NODE]),
    prefer_closest=st.booleans(),
    comparison=st.none() | st.none() | st.sampled_from([MostAllocated(), LeastAllocated(), Closest()]),
    work_units=st.just(100_000_000),
)


@st.composite
def questions(draw: st.DrawFn, most_nodes: int) -> tuple[NumaTopology, list[Hints]]:
    """A machine, and what providers answer: counted or listed."""
    numa = draw(numa_topologies(most_nodes=most_nodes, highest=14))
    providers: list[Hints] = []
    for _ in range(draw(st.integers(1, 3))):
        if draw(st.integers(0, 3)):
            answer = draw(counted_hints(numa))
            copies = draw(st.integers(1, 2))  # memory and huge pages have one answer
            providers.append({f"resource-{copy}": answer for copy in range(copies)})
        else:
            providers.append({"listed": draw(hints(numa))})
    return numa, providers


@given(questions(6), POLICIES, st.data())
def test_counted_hints_merge_as_if_they_were_listed(
    question: tuple[NumaTopology, list[Hints]], policy: Policy, data: st.DataObject
) -> None:
    """Under every policy, option and comparison, mixed with lists: what trying everything finds."""
    numa, providers = question
    taken = {node: data.draw(st.integers(0, 3)) / 3 for node in numa.nodes}
    expected = tried(policy, as_lists(providers, numa), numa, taken)
    assert merge(policy, providers, numa, allocated=taken) == expected


@given(questions(10), POLICIES)
def test_up_to_ten_nodes(question: tuple[NumaTopology, list[Hints]], policy: Policy) -> None:
    """The same on machines that no kubelet starts on."""
    numa, providers = question
    assert merge(policy, providers, numa) == tried(policy, as_lists(providers, numa), numa, {})


@given(st.data(), numa_topologies(most_nodes=8, highest=14))
def test_a_counted_answer_is_what_it_lists(data: st.DataObject, numa: NumaTopology) -> None:
    """Iterating, asking for one hint, and the narrowest one all agree with trying every set."""
    answer = data.draw(counted_hints(numa))
    expected = listed(answer, numa)
    assert set(answer) == set(expected)
    assert [hint.affinity for hint in answer if hint.affinity] == sorted(
        (hint.affinity or 0 for hint in expected),
        key=lambda mask: (mask.bit_count(), [node for node in numa.nodes if mask >> node & 1]),
    )
    for hint in expected:
        assert hint in answer
        assert answer.prefers(hint.affinity or 0) == hint.preferred
    narrowest = min(
        expected, key=lambda hint: ((hint.affinity or 0).bit_count(), hint.affinity), default=None
    )
    assert answer.narrowest() == narrowest
    assert set(answer.some(4)) <= set(expected)
    assert bool(answer.some(4)) == bool(expected)


def figures(nodes: int, least: int = 0) -> st.SearchStrategy[list[int]]:
    """What each node has free."""
    return st.lists(st.integers(least, 8), min_size=nodes, max_size=nodes)


@st.composite
def wide_answers(draw: st.DrawFn, nodes: int) -> CountedHints:
    """One resource of a machine of many nodes, some of it taken; the emptied machine has 8 on each."""
    free = draw(figures(nodes))
    wanted = draw(st.integers(1, max(1, sum(free))))
    amounts = tuple((1 << node, size) for node, size in enumerate(free))
    need = Need(wanted=wanted, amounts=amounts)
    return CountedHints(nodes=(1 << nodes) - 1, needs=(need,), preferred_width=-(-wanted // 8))


@given(st.data(), st.integers(11, 64))
def test_the_order_of_providers_does_not_matter_on_many_nodes(data: st.DataObject, nodes: int) -> None:
    """From 11 to 64 nodes, preferred or not."""
    numa = NumaTopology(nodes=tuple(range(nodes)))
    policy = Policy(name=data.draw(st.sampled_from(PolicyName)))
    providers: list[Hints] = [
        {f"resource-{place}": data.draw(wide_answers(nodes))} for place in range(data.draw(st.integers(1, 3)))
    ]
    try:
        found = merge(policy, providers, numa)
    except WorkLimitError:
        return
    assert merge(policy, data.draw(st.permutations(providers)), numa) == found


@given(st.data(), st.integers(11, 64))
def test_what_is_preferred_on_many_nodes_holds_enough(data: st.DataObject, nodes: int) -> None:
    """Under restricted an admitted affinity is a preferred hint of every resource."""
    numa = NumaTopology(nodes=tuple(range(nodes)))
    answers = [data.draw(wide_answers(nodes)) for _ in range(data.draw(st.integers(1, 3)))]
    providers: list[Hints] = [{f"resource-{place}": answer} for place, answer in enumerate(answers)]
    try:
        found = merge(Policy(name=PolicyName.RESTRICTED), providers, numa)
    except WorkLimitError:
        return
    mask = found.hint.affinity or 0
    assert mask
    assert not mask & ~numa.mask
    if found.admit:
        assert all(TopologyHint(mask, preferred=True) in answer for answer in answers)


@given(st.data(), st.integers(11, 64), st.sampled_from([PolicyName.RESTRICTED, PolicyName.SINGLE_NUMA_NODE]))
def test_more_free_never_refuses(data: st.DataObject, nodes: int, name: PolicyName) -> None:
    """What is admitted stays so when some node has more to give."""
    numa = NumaTopology(nodes=tuple(range(nodes)))
    answers = [data.draw(wide_answers(nodes)) for _ in range(data.draw(st.integers(1, 3)))]
    policy = Policy(name=name)
    more = [_with_more(answer, data.draw(figures(nodes))) for answer in answers]
    try:
        before = merge(policy, [{"r": answer} for answer in answers], numa)
        after = merge(policy, [{"r": answer} for answer in more], numa)
    except WorkLimitError:
        return
    assert after.admit or not before.admit


def _with_more(answer: CountedHints, added: list[int]) -> CountedHints:
    """Some more on each node, up to the 8 that the emptied machine has."""
    (need,) = answer.needs
    amounts = tuple(
        (place, min(8, size + more)) for (place, size), more in zip(need.amounts, added, strict=True)
    )
    return attrs.evolve(answer, needs=(attrs.evolve(need, amounts=amounts),))
