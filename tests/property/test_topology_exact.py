"""Counted hints against trying everything, and laws where everything is too much."""

from __future__ import annotations

from itertools import combinations

import attrs
from hypothesis import given
from hypothesis import strategies as st

from nodealloc.testing.strategies.topology import counted_hints, hints, numa_topologies
from nodealloc.topology import (
    Closest,
    CountedHints,
    Hints,
    LeastAllocated,
    Merged,
    MostAllocated,
    Need,
    NumaTopology,
    Policy,
    PolicyName,
    Scene,
    TopologyHint,
    WorkLimitError,
    merge,
)

POLICIES = st.builds(
    Policy,
    name=st.sampled_from([PolicyName.BEST_EFFORT, PolicyName.RESTRICTED, PolicyName.SINGLE_NUMA_NODE]),
    prefer_closest=st.booleans(),
    comparison=st.none() | st.none() | st.sampled_from([MostAllocated(), LeastAllocated(), Closest()]),
    work_units=st.just(100_000_000),
)


def listed(counted: CountedHints, numa: NumaTopology) -> list[TopologyHint]:
    """The hints that an answer stands for, by its definition: every set of the machine's nodes is tried."""
    found = list(counted.others)
    for size in range(1, len(numa.nodes) + 1):
        for chosen in combinations(numa.nodes, size):
            mask = sum(1 << node for node in chosen)
            inside = not mask & ~counted.nodes
            held = [sum(size for place, size in need.amounts if place & mask) for need in counted.needs]
            if inside and all(have >= need.wanted for have, need in zip(held, counted.needs, strict=True)):
                parts = sum(1 for part in counted.parts if part & mask)
                good = len(chosen) == counted.preferred_width or 0 < counted.preferred_parts == parts
                found.append(TopologyHint(mask, good))
    return found


def tried(
    policy: Policy, lists: list[list[TopologyHint]], numa: NumaTopology, allocated: dict[int, float]
) -> Merged:
    """The merge by its definition: everything that can come out, and the first of it in order."""
    single = policy.name is PolicyName.SINGLE_NUMA_NODE
    if single:
        lists = [
            [hint for hint in one if hint.preferred and (hint.affinity or 1).bit_count() == 1]
            for one in lists
        ]
    outcomes: set[tuple[int, int, bool]] = {(numa.mask, -1, True)}
    for one in lists:
        outcomes = {
            (
                reached & (numa.mask if mask is None else mask),
                same if mask is None or same == mask else mask if same == -1 else -2,
                good and preferred and (mask is None or same in {-1, mask}),
            )
            for reached, same, good in outcomes
            for mask, preferred in one
        }
    masks = [[hint.affinity for hint in one if hint.affinity is not None] for one in lists]
    target = max((min(map(int.bit_count, some)) for some in masks if some), default=0)
    scene = Scene(numa=numa, narrowest=target, allocated=allocated)

    def order(outcome: tuple[int, bool]) -> tuple[object, ...]:
        mask, good = outcome
        width = mask.bit_count()
        rank: tuple[float, ...] = (1, width) if good or width > target else (0, -width)
        if policy.comparison is not None:
            rank = policy.comparison.rank(TopologyHint(mask, good), scene)
        elif policy.prefer_closest and not single:
            rank = (*rank, numa.spread(mask))
        return (not good, rank, mask)

    found = min(((mask, good) for mask, _, good in outcomes if mask), key=order, default=(numa.mask, False))
    affinity = None if single and found[0] == numa.mask else found[0]
    return Merged(TopologyHint(affinity, found[1]), found[1] or policy.name is PolicyName.BEST_EFFORT)


@st.composite
def questions(draw: st.DrawFn, most_nodes: int) -> tuple[NumaTopology, list[Hints], list[list[TopologyHint]]]:
    """A machine, what providers answer, and the same answers as lists."""
    numa = draw(numa_topologies(most_nodes=most_nodes, highest=14))
    providers: list[Hints] = []
    lists: list[list[TopologyHint]] = []
    for _ in range(draw(st.integers(1, 3))):
        if draw(st.integers(0, 3)):
            answer = draw(counted_hints(numa))
            copies = draw(st.integers(1, 2))  # memory and huge pages have one answer
            providers.append({f"resource-{copy}": answer for copy in range(copies)})
            lists += [listed(answer, numa) or [TopologyHint(None, preferred=False)]] * copies
        else:
            options = draw(hints(numa))
            providers.append({"listed": options})
            lists.append(
                [TopologyHint(None, preferred=True)]
                if options is None
                else options or [TopologyHint(None, preferred=False)]
            )
    return numa, providers, lists


@given(questions(6), POLICIES, st.data())
def test_counted_hints_merge_as_if_they_were_listed(
    question: tuple[NumaTopology, list[Hints], list[list[TopologyHint]]], policy: Policy, data: st.DataObject
) -> None:
    """Under every policy, option and comparison, mixed with lists: what trying everything finds."""
    numa, providers, lists = question
    taken = {node: data.draw(st.integers(0, 3)) / 3 for node in numa.nodes}
    assert merge(policy, providers, numa, allocated=taken) == tried(policy, lists, numa, taken)


@given(questions(10), POLICIES)
def test_up_to_ten_nodes(
    question: tuple[NumaTopology, list[Hints], list[list[TopologyHint]]], policy: Policy
) -> None:
    """The same on machines that no kubelet starts on."""
    numa, providers, lists = question
    assert merge(policy, providers, numa) == tried(policy, lists, numa, {})


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
