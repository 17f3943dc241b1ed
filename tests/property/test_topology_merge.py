"""The merge against a plain walk over every combination of hints."""

from __future__ import annotations

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from nodealloc.testing.strategies.topology import numa_topologies, policies, provider_hints
from nodealloc.topology import Hints, Merged, Narrowest, NumaTopology, Policy, PolicyName, TopologyHint, merge
from nodealloc.topology._reachable import reachable
from nodealloc.topology._work import Work


def exhaustive(policy: Policy, providers: list[Hints], numa: NumaTopology) -> Merged:
    """The merge as its definition reads: every combination, compared one after the other."""
    if policy.name is PolicyName.NONE:
        return Merged(TopologyHint(None, False), admit=True)
    single = policy.name is PolicyName.SINGLE_NUMA_NODE
    lists = flattened(providers)
    if single:
        lists = [[hint for hint in one if one_node(hint)] for one in lists]
    target = max(
        (min(mask.bit_count() for mask, _ in one if mask) for one in lists if any(mask for mask, _ in one)),
        default=0,
    )
    best: TopologyHint | None = None
    for combination in product(*lists):
        candidate = combined(combination, numa.mask)
        if candidate.affinity and (best is None or wins(candidate, best, target, policy, numa)):
            best = candidate
    if best is None:
        best = TopologyHint(numa.mask, False)
    if single and best.affinity == numa.mask:
        best = TopologyHint(None, best.preferred)
    return Merged(best, best.preferred or policy.name is PolicyName.BEST_EFFORT)


def flattened(providers: list[Hints]) -> list[list[TopologyHint]]:
    """One list of hints a resource; "no preference" and "impossible" become hints for any node."""
    lists: list[list[TopologyHint]] = []
    for answer in providers:
        for options in answer.values():
            if options is None:
                lists.append([TopologyHint(None, True)])
            else:
                lists.append(list(options) or [TopologyHint(None, False)])
    return lists


def one_node(hint: TopologyHint) -> bool:
    """Whether single-numa-node looks at the hint."""
    return hint.preferred and (hint.affinity is None or hint.affinity.bit_count() == 1)


def combined(hints: tuple[TopologyHint, ...], full: int) -> TopologyHint:
    """Intersection; preferred when all are, and all that name nodes name the same."""
    masks = [mask for mask, _ in hints if mask is not None]
    affinity = full
    for mask in masks:
        affinity &= mask
    return TopologyHint(affinity, len(set(masks)) <= 1 and all(good for _, good in hints))


def wins(new: TopologyHint, old: TopologyHint, target: int, policy: Policy, numa: NumaTopology) -> bool:
    """Whether a candidate replaces the best so far."""
    if new.preferred != old.preferred:
        return new.preferred
    assert new.affinity
    assert old.affinity
    width, before = new.affinity.bit_count(), old.affinity.bit_count()
    if not new.preferred and width != before and min(width, before) <= target:
        return (width <= target) and (width > before or before > target)
    if width != before:
        return width < before
    if policy.prefer_closest and policy.name is not PolicyName.SINGLE_NUMA_NODE:
        near, far = numa.spread(new.affinity), numa.spread(old.affinity)
        if near != far:
            return near < far
    return new.affinity < old.affinity


@given(st.data(), numa_topologies(), policies())
def test_it_is_what_trying_all_combinations_finds(
    data: st.DataObject, numa: NumaTopology, policy: Policy
) -> None:
    """Hint and verdict are those of the exhaustive walk."""
    providers = data.draw(provider_hints(numa))
    assert merge(policy, providers, numa) == exhaustive(policy, providers, numa)


@given(st.data(), numa_topologies(most_nodes=6), st.booleans())
def test_many_hints_of_which_none_is_preferred(
    data: st.DataObject, numa: NumaTopology, prefer_closest: bool
) -> None:
    """Where more combinations exist than are tried as they come, the winner is still the exhaustive one."""
    policy = Policy(name=PolicyName.BEST_EFFORT, prefer_closest=prefer_closest)
    mask = st.sets(st.sampled_from(numa.nodes), min_size=1).map(lambda some: sum(1 << node for node in some))
    hint = st.builds(TopologyHint, mask, st.just(False))
    lists = data.draw(st.lists(st.lists(hint, min_size=9, max_size=12), min_size=3, max_size=3))
    providers: list[Hints] = [{"resource": options} for options in lists]
    assert merge(policy, providers, numa) == exhaustive(policy, providers, numa)


@given(st.data(), numa_topologies(), policies())
def test_the_long_way_answers_alike(data: st.DataObject, numa: NumaTopology, policy: Policy) -> None:
    """A comparison that restates the kubelet's takes the long way to the same answer."""
    providers = data.draw(provider_hints(numa))
    plain = Policy(name=policy.name)
    restated = Policy(name=policy.name, comparison=Narrowest())
    assert merge(restated, providers, numa) == merge(plain, providers, numa)


@given(st.data(), numa_topologies(), policies())
def test_the_order_of_providers_and_hints_does_not_matter(
    data: st.DataObject, numa: NumaTopology, policy: Policy
) -> None:
    """Shuffled input has the same outcome."""
    providers = data.draw(provider_hints(numa))
    shuffled: list[Hints] = [
        {name: options and data.draw(st.permutations([*options])) for name, options in answer.items()}
        for answer in data.draw(st.permutations(providers))
    ]
    assert merge(policy, shuffled, numa) == merge(policy, providers, numa)


@given(st.data(), numa_topologies(most_nodes=8, highest=12))
def test_counting_finds_what_folding_finds(data: st.DataObject, numa: NumaTopology) -> None:
    """Both ways to the set of intersections agree with trying all pairs, also for long lists."""
    full = numa.mask
    mask = st.sets(st.sampled_from(numa.nodes), min_size=1).map(lambda some: sum(1 << node for node in some))
    few, many = st.lists(mask, min_size=1, max_size=4), st.lists(mask, min_size=60, max_size=120)
    lists = data.draw(st.lists(few | many, max_size=3))
    found = {full}
    for masks in lists:
        found = {one & other for one in found for other in masks} - {0}
    assert reachable(lists, full, Work(10_000_000)) == found
