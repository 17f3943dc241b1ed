"""Sets that lists of masks have in common, found by halves of the nodes."""

from __future__ import annotations

import random
from itertools import combinations

import pytest

from nodealloc.topology import Hints, NumaTopology, Policy, PolicyName, TopologyHint, _many, merge
from nodealloc.topology._common_sets import CommonSets
from nodealloc.topology._halves import HALVED_NODES, HalvedSets
from nodealloc.topology._reachable import inside
from nodealloc.topology._work import Work

BEST_EFFORT = Policy(name=PolicyName.BEST_EFFORT)


def _lists(rng: random.Random, nodes: list[int]) -> list[set[int]]:
    """Up to seven lists of masks of one density."""
    density = rng.choice((0.3, 0.5, 0.6, 0.85))
    lists: list[set[int]] = []
    for _ in range(rng.randint(1, 7)):
        masks = {
            sum([1 << node for node in nodes if rng.random() < density]) for _ in range(rng.randint(1, 14))
        }
        lists.append(masks - {0} or {1 << nodes[0]})
    return lists


@pytest.mark.parametrize("seed", range(40))
def test_all_sets_of_each_width_are_found(seed: int) -> None:
    """Every width has what intersecting all combinations has, and its lowest set, whatever the node ids."""
    rng = random.Random(seed)
    nodes = sorted(rng.sample(range(64), rng.randint(2, 12)))
    common = sum([1 << node for node in nodes])
    lists = _lists(rng, nodes)
    every = {common}
    for masks in lists:
        every = {one & other for one in every for other in masks}
    work = Work(100_000_000)
    space = HalvedSets(lists, common, CommonSets(lists, common, work).surely, work)
    for width in range(1, len(nodes) + 1):
        wanted = {mask for mask in every if mask.bit_count() == width}
        assert space.every(width) == wanted
        assert space.lowest(width) == min(wanted, default=0)


def test_the_order_of_many_long_lists_does_not_matter() -> None:
    """Twelve lists of 200 random masks on 32 nodes come to one answer within the work of one merge."""
    rng = random.Random(7)
    lists: list[Hints] = [
        {"one": [TopologyHint(rng.getrandbits(HALVED_NODES) or 1, preferred=False) for _ in range(200)]}
        for _ in range(12)
    ]
    numa = NumaTopology(nodes=tuple(range(HALVED_NODES)))
    found = merge(BEST_EFFORT, lists, numa)
    assert found.hint.affinity
    assert merge(BEST_EFFORT, lists[::-1], numa) == found


@pytest.mark.parametrize("seed", range(40))
def test_wider_sets_are_made_from_rare_ones(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked from the widest down, as a merge asks, each width has the lowest set of all combinations."""
    monkeypatch.setattr(_many, "_SHORT", 0)
    rng = random.Random(seed)
    nodes = sorted(rng.sample(range(64), rng.randint(4, 14)))
    common, lists = inside(_lists(rng, nodes), sum([1 << node for node in nodes]))
    every = {common}
    for masks in lists:
        every = {one & other for one in every for other in masks}
    space = _many._Rare(lists, common, Work(100_000_000))
    for width in range(common.bit_count(), 0, -1):
        assert space.lowest(width, below=0) == min([m for m in every if m.bit_count() == width], default=0)


def test_lists_that_need_more_nodes_than_they_share_come_to_what_they_share() -> None:
    """Each mask has three nodes of its list's own, so that the neediest wants more than the two shared."""
    lists: list[Hints] = []
    for place, shared in enumerate((0b11, 0b01, 0b01)):
        own = [sum(1 << 2 + 9 * place + node for node in some) for some in combinations(range(9), 3)][:70]
        masks = [mask | (shared if number else 0b11) for number, mask in enumerate(own)]
        lists.append({"one": [TopologyHint(mask, preferred=False) for mask in masks]})
    assert merge(BEST_EFFORT, lists, NumaTopology(nodes=tuple(range(29)))).hint.affinity == 0b11
