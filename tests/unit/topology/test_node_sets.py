"""Sets of up to eight nodes as bits, and hints that are listed as such."""

from __future__ import annotations

import pickle
import random
from collections.abc import Sequence

import pytest

from nodealloc.topology import (
    Hints,
    MaskOutsideError,
    NodeSets,
    NumaTopology,
    Policy,
    PolicyName,
    TopologyHint,
    merge,
    node_masks,
)

MACHINES = [(0,), (0, 1), (1, 3, 7), (2, 9, 40), (0, 8), tuple(range(8))]


@pytest.mark.parametrize("nodes", MACHINES)
def test_sets_that_hold_enough_are_found_all_at_once(nodes: tuple[int, ...]) -> None:
    """As adding up each set finds them; units near several nodes count once."""
    rng, sets = random.Random(1), NodeSets.of(nodes)
    for most in (5, 40, 90_000) * 10:
        places = [rng.sample(nodes, rng.randint(1, len(nodes))) for _ in range(rng.randint(0, 6))]
        amounts = [(sum(1 << node for node in place), rng.randint(0, most)) for place in places]
        wanted = rng.randint(0, 2 * most)
        found = sets.hints(sets.holding(amounts, wanted), sets.widths[1])
        assert list(found) == [
            (mask, mask.bit_count() == 1)
            for mask in node_masks(nodes)
            if sum(amount for place, amount in amounts if place & mask) >= wanted
        ]
    assert sets.holding([(1 << nodes[0], 1)], 10**40) == 0


@pytest.mark.parametrize("ids_each", [3, 40, 9_000])
@pytest.mark.parametrize("nodes", MACHINES)
def test_ids_are_counted_as_amounts_are(nodes: tuple[int, ...], ids_each: int) -> None:
    """Of ids that do not move, those that are free; what counts besides counts again where it is free."""
    rng, sets = random.Random(2), NodeSets.of(nodes)
    all_ids = ids_each * len(nodes)
    parts = [(1 << node, (1 << ids_each) - 1 << ids_each * place) for place, node in enumerate(nodes)]
    holding = sets.counting(parts)
    for _ in range(20):
        free, besides = rng.getrandbits(all_ids), rng.choice([0, rng.getrandbits(all_ids)])
        amounts = [(node, (ids & free).bit_count() + (ids & besides).bit_count()) for node, ids in parts]
        wanted = rng.randint(1, 2 * all_ids)
        assert holding(wanted, free, besides) == sets.holding(amounts, wanted)
    assert holding(10**40, -1, -1) == 0


@pytest.mark.parametrize("nodes", MACHINES)
def test_thresholds_are_what_adding_up_finds(nodes: tuple[int, ...]) -> None:
    """For amounts of any size, as memory in bytes has them."""
    rng, sets = random.Random(2), NodeSets.of(nodes)
    for _ in range(10):
        amounts = [rng.choice([0, 10**30, rng.randint(0, 9)]) for _ in nodes]
        held = {
            mask: sum(amount for node, amount in zip(nodes, amounts, strict=True) if mask >> node & 1)
            for mask in node_masks(nodes)
        }
        holders = sets.holders(tuple(amounts))
        for wanted in (0, 5, 10**30, 10**31):
            found = sets.hints(holders(wanted), 0)
            assert [hint.affinity for hint in found] == [mask for mask in held if held[mask] >= wanted]


def test_the_narrowest_set_is_the_lowest() -> None:
    """Of one width the numerically lowest, which need not be listed first."""
    sets = NodeSets.of((0, 1, 2, 3))
    assert sets.lowest(sets.bit[0b1001] | sets.bit[0b0110] | sets.bit[0b0111]) == 0b0110
    assert sets.lowest(0) == 0
    assert list(sets.hints(sets.bit[0b1001] | sets.bit[0b0110], 0)) == [(0b1001, False), (0b0110, False)]


def test_listed_hints_are_a_sequence_like_any_other() -> None:
    """They compare with lists, can be hashed, cut and pickled."""
    sets = NodeSets.of((0, 1))
    hints = sets.hints(sets.every, sets.widths[1])
    listed = [
        TopologyHint(1, preferred=True),
        TopologyHint(2, preferred=True),
        TopologyHint(3, preferred=False),
    ]
    assert hints == listed
    same: object = tuple(listed)
    others: list[object] = [listed[1:], "hints"]
    assert hints == same
    assert hints not in others
    assert hints[1:] == listed[1:]
    assert hints[0] == listed[0]
    assert len({hints, tuple(listed)}) == 1
    assert pickle.loads(pickle.dumps(hints)) == hints  # noqa: S301 - our own
    assert repr(hints) == repr(listed)
    assert not sets.hints(0, 0)


def test_a_set_outside_the_machine_is_named() -> None:
    """Whether its nodes have an id like those of the machine or not."""
    numa = NumaTopology(nodes=(0, 1))
    for nodes in ((0, 1, 2), (0, 9)):
        sets = NodeSets.of(nodes)
        for name in (PolicyName.RESTRICTED, PolicyName.SINGLE_NUMA_NODE):
            with pytest.raises(MaskOutsideError, match="gpus"):
                merge(Policy(name=name), [{"gpu": sets.hints(sets.every, sets.every)}], numa, ["gpus"])


def test_bits_merge_as_lists_do() -> None:
    """Under every policy, mixed with lists or not, whichever nodes an allocator knows of."""
    rng = random.Random(3)
    for _ in range(300):
        nodes = tuple(sorted(rng.sample(range(8), rng.randint(1, 8))))
        far = {one: {other: rng.choice([10, 11, 21]) for other in nodes} for one in nodes}
        numa = NumaTopology(nodes=nodes, distances=far)
        as_bits: list[Hints] = [{f"r{place}": _some(rng, nodes)} for place in range(rng.randint(1, 4))]
        as_lists: list[Hints] = [{name: [*one] for name, one in hints.items() if one} for hints in as_bits]
        as_lists = [one or dict.fromkeys(hints, ()) for one, hints in zip(as_lists, as_bits, strict=True)]
        mixed = [rng.choice(both) for both in zip(as_bits, as_lists, strict=True)]
        for name in PolicyName:
            for near in (False, True):
                policy = Policy(name=name, prefer_closest=near)
                expected = merge(policy, as_lists, numa)
                assert merge(policy, as_bits, numa) == expected
                assert merge(policy, mixed, numa) == expected


def _some(rng: random.Random, nodes: tuple[int, ...]) -> Sequence[TopologyHint]:
    """Hints on some of the nodes: what holds enough of something, or sets drawn by lot."""
    sets = NodeSets.of(tuple(sorted(rng.sample(nodes, rng.randint(1, len(nodes))))))
    preferred = rng.choice([0, sets.widths[1], sets.up_to[2]])
    if rng.random() < 0.5:
        amounts = [(1 << node, rng.randint(0, 6)) for node in sets.nodes]
        return sets.hints(sets.holding(amounts, rng.randint(1, 9)), preferred)
    return sets.hints(sum(bit for bit in sets.bit.values() if rng.random() < 0.4), preferred)
