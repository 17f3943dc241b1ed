"""The merge against a plain walk over every combination of hints."""

from __future__ import annotations

import random
from itertools import product
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodealloc.testing.strategies.topology import numa_topologies, policies, provider_hints
from nodealloc.topology import Hints, Merged, Narrowest, NumaTopology, Policy, PolicyName, TopologyHint, merge
from nodealloc.topology import _halves as halves
from nodealloc.topology import _many as many
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
    # Past its own look at the mask: what has no node in common is left out by whoever asks.
    return TopologyHint._make((affinity, len(set(masks)) <= 1 and all(good for _, good in hints)))


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


def long_lists(rng: random.Random, nodes: tuple[int, ...]) -> list[list[int]]:
    """Two to six lists of one sort, or of several.

    Masks by lot, of one width, of all but a few nodes, and of a few nodes that
    all lists know beside some of the list's own.
    """
    share, width = rng.choice((0.15, 0.3, 0.5, 0.8)), rng.randint(1, len(nodes))
    most = min(3, len(nodes))
    core = rng.sample(nodes, rng.randint(1, most))

    def mask(sort: int, own: list[int]) -> int:
        some = {
            0: lambda: [node for node in nodes if rng.random() < share],
            1: lambda: rng.sample(nodes, width),
            2: lambda: rng.sample(nodes, len(nodes) - rng.randint(1, most) + 1),
            3: lambda: rng.sample(core, rng.randint(0, len(core))) + rng.sample(own, min(len(own), 2)),
        }[sort]()
        return sum([1 << node for node in {*some}]) or 1 << nodes[0]

    sorts = [rng.randrange(4)] * 6 if rng.random() < 0.6 else [rng.randrange(4) for _ in range(6)]
    count = rng.choice((4, 12, 40))
    return [
        [mask(sort, own) for _ in range(rng.randint(1, count))]
        for sort in sorts[: rng.randint(2, 6)]
        for own in [rng.sample(nodes, rng.randint(1, len(nodes)))]
    ]


@given(st.integers(0, 1 << 32), numa_topologies(most_nodes=10, highest=20), st.booleans())
def test_long_lists_come_to_what_folding_them_comes_to(seed: int, numa: NumaTopology, near: bool) -> None:
    """Whichever way is gone: each bound on the way to another is drawn so small that all of them are."""
    rng = random.Random(seed)
    lists = long_lists(rng, numa.nodes)
    found = {numa.mask}
    for masks in lists:
        found = {one & other for one in found for other in masks}
    target = max([min([mask.bit_count() for mask in masks]) for masks in lists])

    def order(mask: int) -> tuple[object, ...]:
        width = mask.bit_count()
        return (width > target, width if width > target else -width, numa.spread(mask) if near else 0, mask)

    best = min(found - {0}, key=order, default=numa.mask)
    providers: list[Hints] = [{"resource": [TopologyHint(mask, False) for mask in masks]} for masks in lists]
    policy = Policy(name=PolicyName.BEST_EFFORT, prefer_closest=near, work_units=10**8)
    with (
        mock.patch.multiple(
            many,
            _LOOK_AHEAD=rng.choice((0, 0, 600)),
            _WALKED=rng.choice((0, 20, 300, 100_000)),
            _HALVED=rng.choice((0, 300, 3_000, 400_000)),
            _SHORT=rng.choice((0, 0, 5_000)),
            _WALKED_LISTS=rng.choice((0, 10_000)),
            _TRIED_FIRST=rng.choice((0, 32)),
            HALVED_NODES=rng.choice((0, 32, 32)),
        ),
        mock.patch.multiple(halves, _RARE=rng.choice((0, 20, 1 << 60)), _STEP=rng.choice((1, 6))),
    ):
        assert merge(policy, providers, numa).hint.affinity == best


@pytest.mark.parametrize(
    ("nodes", "lists", "hints", "units"),
    [(32, 8, 200, 200_000), (32, 16, 24, 100_000), (32, 16, 200, 1_000_000)],
)
def test_rare_masks_are_found_where_no_combination_is_as_wide_as_it_should_be(
    nodes: int, lists: int, hints: int, units: int
) -> None:
    """Many lists of masks with half of the nodes leave narrow sets in common; a merge says which is best."""
    rng = random.Random(0)
    masks = [{rng.getrandbits(nodes) or 1 for _ in range(hints)} for _ in range(lists)]
    providers: list[Hints] = [{"r": [TopologyHint(mask, False) for mask in some]} for some in masks]
    numa = NumaTopology(nodes=tuple(range(nodes)))
    found = merge(Policy(name=PolicyName.BEST_EFFORT), providers, numa, work=Work(units)).hint.affinity
    assert found is not None
    # It comes out: every list has masks around it, and what these have in common beyond it is nothing.
    left = {numa.mask & ~found}
    for some in masks:
        left = {one & other for one in left for other in some if not found & ~other}
    assert 0 in left


@pytest.mark.parametrize("share", [0.3, 0.5, 0.8])
@pytest.mark.parametrize(("nodes", "lists"), [(24, 3), (24, 6), (32, 3), (32, 5)])
def test_hundreds_of_random_masks_are_settled_with_a_fifth_of_the_work(
    nodes: int, lists: int, share: float
) -> None:
    """Two hundred masks a list on 24 and 32 nodes: the best width is found, and can come out."""
    rng = random.Random(nodes * lists)
    numa = NumaTopology(nodes=tuple(range(nodes)))
    masks = [
        [sum([1 << node for node in numa.nodes if rng.random() < share]) or 1 for _ in range(200)]
        for _ in range(lists)
    ]
    providers: list[Hints] = [{"r": [TopologyHint(mask, False) for mask in some]} for some in masks]
    found = merge(Policy(name=PolicyName.BEST_EFFORT), providers, numa, work=Work(200_000)).hint.affinity
    assert found is not None
    assert found.bit_count() <= max([min([mask.bit_count() for mask in some]) for some in masks])
    in_common = numa.mask
    for some in masks:
        containing = [mask for mask in some if not found & ~mask]
        assert containing
        for mask in containing:
            in_common &= mask
    assert in_common == found
