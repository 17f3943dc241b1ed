"""Policies, options, comparisons and bad input of the merge, one behaviour each."""

from __future__ import annotations

import pickle
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import cast

import pytest

from nodealloc.topology import (
    Closest,
    ComparisonContext,
    CountedHints,
    DistanceError,
    HintError,
    Hints,
    LeastAllocated,
    MaskOutsideError,
    Merged,
    MostAllocated,
    Need,
    NumaTopology,
    Policy,
    PolicyName,
    Rank,
    Scope,
    Snapshot,
    TooManyNodesError,
    TopologyHint,
    UnknownOptionError,
    UnknownPolicyError,
    WorkLimitError,
    _listed,
    _merge,
    merge,
)
from nodealloc.topology._policy import KUBELET_MAX_NODES
from nodealloc.topology._work import Work

FOUR = NumaTopology(nodes=(0, 1, 2, 3))
RESTRICTED = Policy(name=PolicyName.RESTRICTED)
BEST_EFFORT = Policy(name=PolicyName.BEST_EFFORT)
SINGLE = Policy(name=PolicyName.SINGLE_NUMA_NODE)


def good(*masks: int) -> list[TopologyHint]:
    """Preferred hints."""
    return [TopologyHint(mask, True) for mask in masks]


def poor(*masks: int) -> list[TopologyHint]:
    """Hints that are not preferred."""
    return [TopologyHint(mask, False) for mask in masks]


def merged(
    policy: Policy, *lists: list[TopologyHint] | None, numa: NumaTopology = FOUR
) -> tuple[object, ...]:
    """Affinity, preferred, admitted."""
    found = merge(policy, [{"resource": options} for options in lists], numa)
    return (*found.hint, found.admit)


def test_policy_none_looks_at_nothing() -> None:
    """Any node, always in."""
    assert merged(Policy(), good(1)) == (None, False, True)


def test_preferred_needs_the_same_mask_everywhere() -> None:
    """Two preferred hints for different nodes make a hint that is not preferred."""
    assert merged(BEST_EFFORT, good(3), good(1)) == (1, False, True)
    assert merged(RESTRICTED, good(3), good(1)) == (1, False, False)
    assert merged(RESTRICTED, good(3, 1), good(1)) == (1, True, True)


def test_others_are_as_wide_as_the_neediest_resource() -> None:
    """Not preferred: as wide as the widest of the narrowest hints, else narrower, else wider."""
    assert merged(BEST_EFFORT, poor(1, 3, 7), poor(3, 7)) == (3, False, True)
    assert merged(BEST_EFFORT, poor(1, 14), poor(15, 1)) == (1, False, True)
    assert merged(BEST_EFFORT, poor(7, 8), poor(7, 1)) == (1, False, True)


def test_nothing_in_common_is_all_nodes() -> None:
    """No combination has a node in common."""
    assert merged(BEST_EFFORT, good(1), good(2)) == (15, False, True)
    assert merged(SINGLE, good(1), good(2)) == (None, False, False)


def test_no_preference_leaves_the_choice_to_others() -> None:
    """None and an empty mapping restrict nothing; an empty list makes everything not preferred."""
    assert merged(RESTRICTED, None, good(2)) == (2, True, True)
    assert merge(RESTRICTED, [{}], FOUR) == Merged(TopologyHint(15, True), admit=True)
    assert merged(RESTRICTED, [], good(2)) == (2, False, False)
    assert merged(SINGLE, None) == (None, True, True)


def test_a_machine_of_one_node_needs_no_affinity_under_single_numa_node() -> None:
    """All nodes are written as none."""
    assert merged(SINGLE, good(1), numa=NumaTopology(nodes=(0,))) == (None, True, True)


def test_close_nodes_win_among_equally_wide_ones() -> None:
    """`prefer-closest-numa-nodes` compares distances before ids; single-numa-node ignores it."""
    far = {one: {other: 10 if one == other else 30 for other in range(4)} for one in range(4)}
    far[2][3] = far[3][2] = 12
    numa = NumaTopology(nodes=(0, 1, 2, 3), distances=far)
    closest = Policy(name=PolicyName.RESTRICTED, prefer_closest=True)
    assert merged(closest, good(3, 12), numa=numa) == (12, True, True)
    assert merged(RESTRICTED, good(3, 12), numa=numa) == (3, True, True)
    by_strategy = Policy(name=PolicyName.RESTRICTED, comparison=Closest())
    assert merged(by_strategy, good(3, 12), numa=numa) == (12, True, True)


def test_nodes_can_be_packed_or_spread() -> None:
    """The shipped comparisons look at what is taken, within one width."""
    hints: list[Hints] = [{"cpu": good(1, 2, 4, 3)}]
    taken = {0: 0.2, 1: 0.7, 2: 0.1}
    pack = Policy(name=PolicyName.RESTRICTED, comparison=MostAllocated())
    spread = Policy(name=PolicyName.RESTRICTED, comparison=LeastAllocated())
    assert merge(pack, hints, FOUR, allocated=taken).hint.affinity == 2
    assert merge(spread, hints, FOUR, allocated=taken).hint.affinity == 4


class HighestFirst:
    """A comparison of one's own."""

    def rank(self, candidate: TopologyHint, context: ComparisonContext, /) -> Rank:
        """High nodes first."""
        return (-(candidate.affinity or 0),)


def test_a_comparison_of_ones_own_cannot_overrule_preferred() -> None:
    """It ranks the preferred hints among themselves, and the others only without them."""
    policy = Policy(name=PolicyName.RESTRICTED, comparison=HighestFirst())
    assert merged(policy, [*good(1, 2), *poor(8)]) == (2, True, True)


def test_words_of_a_kubelet_configuration() -> None:
    """Names and options are read as the kubelet reads them; its limit can be asked for."""
    policy = Policy.parse(
        "restricted", {"prefer-closest-numa-nodes": "true", "max-allowable-numa-nodes": "8"}
    )
    assert policy == Policy(name=PolicyName.RESTRICTED, prefer_closest=True, max_nodes=KUBELET_MAX_NODES)
    assert Policy.parse("") == Policy()
    assert Policy.parse("best-effort", {"search-whole-pod": "1"}).search
    assert Scope.parse("pod") is Scope.POD


@pytest.mark.parametrize("name", ["Restricted", "single", "none "])
def test_an_unknown_policy_is_refused_by_name(name: str) -> None:
    """The error lists what there is; so does the one for scopes."""
    with pytest.raises(UnknownPolicyError, match=f"'{name}'.*best-effort"):
        Policy.parse(name)
    with pytest.raises(UnknownPolicyError, match="container, pod"):
        Scope.parse(name)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("prefer-closest", "true"),
        ("prefer-closest-numa-nodes", "yes"),
        ("max-allowable-numa-nodes", "7"),
        ("max-allowable-numa-nodes", "many"),
        ("max-allowable-numa-nodes", "\u0669"),
        ("max-allowable-numa-nodes", "999999"),
    ],
)
def test_an_unknown_option_is_refused_by_name(option: str, value: str) -> None:
    """Also a value that the option does not take."""
    with pytest.raises(UnknownOptionError) as caught:
        Policy.parse("restricted", {option: value})
    assert (caught.value.name, caught.value.value) == (option, value)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)  # noqa: S301


def test_more_nodes_than_allowed_are_refused() -> None:
    """With both numbers; policy `none` does not care."""
    nine = NumaTopology(nodes=tuple(range(9)))
    with pytest.raises(TooManyNodesError, match=r"9 NUMA nodes.*is 8"):
        Snapshot(numa=nine, policy=Policy(name=PolicyName.RESTRICTED, max_nodes=8))
    Snapshot(numa=nine, policy=Policy(max_nodes=8))


@pytest.mark.parametrize(
    ("distances", "says"),
    [
        ({0: {0: 10, 1: 20}}, "from node 1: the row is missing"),
        ({0: {0: 10, 1: 20}, 1: {1: 10}}, "from node 1: none to node 0"),
        ({0: {0: 10, 1: -1}, 1: {0: 20, 1: 10}}, "from node 0: -1 to node 1"),
    ],
)
def test_distances_are_square_and_not_negative(distances: dict[int, dict[int, int]], says: str) -> None:
    """The row and the fault are named."""
    with pytest.raises(DistanceError, match=says) as caught:
        NumaTopology(nodes=(0, 1), distances=distances)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)  # noqa: S301


def test_closest_needs_distances() -> None:
    """In a snapshot as well as in a merge that has to compare."""
    closest = Policy(name=PolicyName.RESTRICTED, prefer_closest=True)
    with pytest.raises(DistanceError, match="prefer-closest-numa-nodes"):
        Snapshot(numa=FOUR, policy=closest)
    with pytest.raises(DistanceError, match="prefer-closest-numa-nodes"):
        merged(closest, good(3, 12))


@pytest.mark.parametrize("nodes", [(1, 0), (0, 0), (-1,), (70000,)])
def test_node_ids_ascend(nodes: tuple[int, ...]) -> None:
    """Each once, none negative."""
    with pytest.raises(ValueError, match="NUMA node ids"):
        NumaTopology(nodes=nodes)


@pytest.mark.parametrize("policy", [RESTRICTED, BEST_EFFORT, SINGLE])
@pytest.mark.parametrize("mask", [16, 17, 0, -1])
def test_a_mask_outside_the_machine_is_named(policy: Policy, mask: int) -> None:
    """With provider and resource; preferred or not, and whatever the other hints decide."""
    other: list[TopologyHint] | None = None if policy is SINGLE else []
    for preferred in (True, False):
        hint = TopologyHint._make((mask, preferred))  # past its own look at the mask
        with pytest.raises(MaskOutsideError) as caught:
            merge(
                policy,
                [{}, {"cpu": other}, {"gpu": [TopologyHint(1, True), hint]}],
                FOUR,
                names=["a", "b", "c"],
            )
        assert (caught.value.provider, caught.value.resource, caught.value.mask) == ("c", "gpu", mask)


@pytest.mark.parametrize("settled", [[], poor(1), good(3), [*good(3), TopologyHint(None, False)]])
def test_under_single_numa_node_nothing_is_looked_at_behind_a_refusal(settled: list[TopologyHint]) -> None:
    """Once no node can come of the hints, the others are not read; before it, each is."""
    refused = Merged(TopologyHint(None, False), admit=False)
    assert merge(SINGLE, [{"cpu": settled}, {"gpu": good(16)}], FOUR) == refused
    with pytest.raises(MaskOutsideError):
        merge(SINGLE, [{"gpu": good(16)}, {"cpu": settled}], FOUR)


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (7, "provider 0: a int came as hints"),
        ({"gpu": 7}, "provider 0, resource gpu: 7 is no sequence of hints"),
        ({"gpu": "all"}, "'all' is no sequence"),
        ({"gpu": [7]}, "resource gpu: 7 is no hint"),
        ({"gpu": [("1", True)]}, "is no hint"),
    ],
)
@pytest.mark.parametrize("policy", [RESTRICTED, SINGLE])
def test_nonsense_is_named(policy: Policy, answer: object, says: str) -> None:
    """An answer that is no mapping of resources to hints is the provider's fault."""
    with pytest.raises(HintError, match=says):
        merge(policy, [cast("Hints", answer)], FOUR)


def test_of_single_nodes_the_one_nearest_to_itself_is_closest() -> None:
    """Firmware may say that a node is further from itself than another; preferred or not, that counts."""
    far = {one: {other: 20 if one != other else 11 - one for other in (0, 1)} for one in (0, 1)}
    numa = NumaTopology(nodes=(0, 1), distances=far)
    closest = Policy(name=PolicyName.BEST_EFFORT, prefer_closest=True)
    assert merge(closest, [{"r": good(1, 2)}], numa).hint == TopologyHint(2, True)
    assert merge(closest, [{"r": [*good(1), *poor(2)]}, {"r": poor(1, 2)}], numa).hint.affinity == 2
    assert merge(BEST_EFFORT, [{"r": good(1, 2)}], numa).hint == TopologyHint(1, True)


def test_single_numa_node_takes_the_lowest_node_though_close_ones_are_preferred() -> None:
    """However far firmware says that a node is from itself, for listed hints as for counted ones."""
    numa = NumaTopology(nodes=(0, 1), distances={0: {0: 11, 1: 10}, 1: {0: 10, 1: 10}})
    policy = Policy(name=PolicyName.SINGLE_NUMA_NODE, prefer_closest=True)
    counted = CountedHints(nodes=3, needs=(Need(wanted=1, amounts=((1, 1), (2, 1))),), preferred_width=1)
    for hints in (good(1, 2), counted):
        assert merge(policy, [{"r": hints}], numa).hint == TopologyHint(1, True)


def test_a_topology_travels_without_what_it_has_worked_out() -> None:
    """Its spreads are known again when they are asked for; it is equal to the one that was sent."""
    far = {one: {other: 10 + abs(one - other) for other in range(4)} for one in range(4)}
    numa = NumaTopology(nodes=(0, 1, 2, 3), distances=far)
    sent = pickle.dumps(numa)
    assert numa.spread(0b1011) == numa.spread(0b1011) == 102
    assert pickle.dumps(numa) == sent
    arrived = pickle.loads(sent)  # noqa: S301
    assert (arrived, arrived.mask, arrived.spread(0b1011)) == (numa, 15, 102)


def test_the_same_question_again_has_the_same_answer_and_costs_the_same_work() -> None:
    """Answers are remembered with the work that they took, which is counted again each time."""
    few: list[Hints] = [{"cpu": good(1, 2)}, {"gpu": poor(6, 8)}]
    many: list[Hints] = [{str(place): poor(*range(1 + place, 13))} for place in range(4)]
    for lists in (few, many):
        for limit in (1_000_000, 100_000):
            spent: list[int] = []
            found: list[Merged] = []
            for _ in range(3):
                work = Work(limit)
                found.append(merge(BEST_EFFORT, lists, FOUR, work=work))
                spent.append(limit - work.left)
            assert len(set(spent)) == len(set(found)) == 1
            assert (spent[0] > 0) == (lists is many)


def test_a_remembered_answer_does_not_save_work_that_is_not_there() -> None:
    """Who may spend less than the answer took gives up, whether it was asked before or not."""
    many: list[Hints] = [{str(place): poor(*range(1 + place, 13))} for place in range(5)]
    work = Work(1_000_000)
    merge(BEST_EFFORT, many, FOUR, work=work)
    short = 1_000_000 - work.left - 1
    assert short >= 0
    with pytest.raises(WorkLimitError):
        merge(BEST_EFFORT, many, FOUR, work=Work(short))


def test_what_is_counted_is_not_taken_for_a_list_that_is_remembered() -> None:
    """Two counted answers differ, beside lists that are the same."""
    lists: Hints = {"cpu": good(1, 2, 4, 8)}
    for node in (1, 2, 4):
        counted = CountedHints(nodes=15, needs=(Need(amounts=((node, 1),), wanted=1),), preferred_width=1)
        for _ in range(2):
            assert merge(RESTRICTED, [lists, {"gpu": counted}], FOUR).hint.affinity == node


def test_what_is_remembered_is_of_one_policy_one_machine_and_its_distances() -> None:
    """The same lists come to something else under another policy, and on nodes that stand otherwise."""
    lists: list[Hints] = [{"cpu": good(3, 5, 6)}, {"gpu": good(3, 5, 6, 9)}]
    one = NumaTopology(nodes=(0, 1, 2, 3), distances=_line(0, 3, 1, 2))
    other = NumaTopology(nodes=(0, 1, 2, 3), distances=_line(0, 2, 3, 1))
    closest = Policy(name=PolicyName.RESTRICTED, prefer_closest=True)
    for _ in range(2):
        assert merge(RESTRICTED, lists, one).hint.affinity == 3
        assert merge(closest, lists, one).hint.affinity == 6
        assert merge(closest, lists, other).hint.affinity == 5
        assert merge(SINGLE, lists, one).admit is False
        assert merge(Policy(), lists, one).hint.affinity is None


def test_lists_of_a_larger_machine_are_still_outside_a_smaller_one() -> None:
    """A list that was sorted out for one machine is checked against each that it is asked of."""
    lists: list[Hints] = [{"cpu": good(1, 8)}]
    assert merge(RESTRICTED, lists, FOUR).admit
    assert merge(RESTRICTED, lists, FOUR).admit
    with pytest.raises(MaskOutsideError):
        merge(RESTRICTED, lists, NumaTopology(nodes=(0, 1)))


def test_a_comparison_of_ones_own_is_asked_each_time() -> None:
    """What it answers may depend on what is taken, so nothing of it is remembered."""
    lists: list[Hints] = [{"cpu": good(1, 2)}]
    packed = Policy(name=PolicyName.BEST_EFFORT, comparison=MostAllocated())
    for taken, node in ({0: 0.9, 1: 0.1}, 1), ({0: 0.1, 1: 0.9}, 2), ({0: 0.9, 1: 0.1}, 1):
        assert merge(packed, lists, FOUR, allocated=taken).hint.affinity == node


def _line(*order: int) -> dict[int, dict[int, int]]:
    """Distances of nodes that stand in a line in this order."""
    place = {node: position for position, node in enumerate(order)}
    return {one: {other: 10 + 5 * abs(place[one] - place[other]) for other in order} for one in order}


def test_threads_that_merge_first_at_once_have_sound_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each answers as one that merges alone, however many are the first on a machine."""
    eight, few = NumaTopology(nodes=tuple(range(8))), 4
    asked: list[tuple[Policy, list[Hints]]] = [
        (policy, [{"cpu": good(8, 16)}, {"gpu": [*good(16), *poor(24)]}])
        for policy in (SINGLE, RESTRICTED, BEST_EFFORT)
    ]
    alone = [merge(policy, lists, eight) for policy, lists in asked]
    for name in ("_machines", "OFFERS", "OUTCOMES"):
        monkeypatch.setattr(_listed, name, {})
    monkeypatch.setattr(_merge, "OFFERS", _listed.OFFERS)
    monkeypatch.setattr(_merge, "OUTCOMES", _listed.OUTCOMES)
    began = threading.Barrier(few)

    def first() -> list[Merged]:
        began.wait()
        return [merge(policy, lists, eight) for policy, lists in asked]

    interval_s = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(few) as threads:
            found = [done.result() for done in [threads.submit(first) for _ in range(few)]]
    finally:
        sys.setswitchinterval(interval_s)
    assert found == [alone] * few
    assert list(_listed.OFFERS) == list(_listed.OUTCOMES) == [255]


def test_tables_of_many_machines_make_room_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """A scheduler that knows thousands of kinds of machines keeps some of their tables."""
    monkeypatch.setattr(_listed, "_MACHINES", 3)
    for node in range(9, 15):
        for policy in (SINGLE, RESTRICTED):
            numa = NumaTopology(nodes=(0, node))
            assert merge(policy, [{"cpu": good(1 << node)}], numa) == (TopologyHint(1 << node, True), True)
    assert len(_listed.OFFERS) <= 3


@pytest.mark.parametrize("name", ["_machines", "OUTCOMES", "OFFERS"])
def test_tables_that_were_emptied_half_way_are_made_again(name: str) -> None:
    """One thread makes room while another puts tables in: some of them are gone, and come back."""
    numa = NumaTopology(nodes=(4, 11))
    asked = [(policy, [{"cpu": good(16)}, {"gpu": good(16, 2048)}]) for policy in (SINGLE, RESTRICTED)]
    before = [merge(policy, lists, numa) for policy, lists in asked]
    getattr(_listed, name).pop(numa.mask)
    assert [merge(policy, lists, numa) for policy, lists in asked] == before
    assert numa.mask in getattr(_listed, name)


@pytest.mark.parametrize("nodes", [(0, 1, 2, 3), (3, 9, 40, 61), (3, 9, 40, 62), (5, 90, 700, 8000)])
@pytest.mark.parametrize("near", [False, True])
def test_ids_of_nodes_are_names(nodes: tuple[int, ...], near: bool) -> None:
    """Whatever they are, the same hints come to the same nodes."""

    def asked(*masks: int) -> list[TopologyHint]:
        return poor(*[sum([1 << nodes[place] for place in range(4) if mask >> place & 1]) for mask in masks])

    far = {one: {other: 10 + abs(one - other) for other in nodes} for one in nodes}
    numa = NumaTopology(nodes=nodes, distances=far)
    policy = Policy(name=PolicyName.BEST_EFFORT, prefer_closest=near)
    for lists, mask in (((3, 6, 12), (7, 14)), 3), (((7, 14), (11, 13)), 3), (((9, 6), (10, 5), (12, 3)), 1):
        [expected] = asked(mask)
        hints: list[Hints] = [{"r": asked(*masks)} for masks in lists]
        assert merge(policy, hints, numa).hint == expected
