"""Admission, one behaviour each, on a node of two NUMA nodes."""

from __future__ import annotations

import pickle
from collections.abc import Sequence

import attrs
import pytest

from nodealloc.podspec import Container, Pod, Quantity
from nodealloc.testing.topology import FakeAllocator, check_allocator, workload
from nodealloc.topology import (
    Admitted,
    Availability,
    Claim,
    Comparison,
    Feasibility,
    Hints,
    LeastAllocated,
    MaskOutsideError,
    MostAllocated,
    NotYet,
    NumaTopology,
    Owner,
    Placed,
    Policy,
    PolicyName,
    ProviderError,
    Refusal,
    Scope,
    Shortfall,
    Snapshot,
    TopologyHint,
    Workload,
    admit,
    explain,
    lent,
    release,
    workload_of,
)

TWO = NumaTopology(nodes=(0, 1))
CPU = FakeAllocator.of("cpu", {0: 4, 1: 4})
GPU = FakeAllocator.of("gpu", {0: 2})
ANY = TopologyHint(None, False)


def node(
    name: PolicyName = PolicyName.SINGLE_NUMA_NODE,
    *allocators: FakeAllocator,
    scope: Scope = Scope.CONTAINER,
    search: bool = False,
) -> Snapshot:
    """Two NUMA nodes with four CPUs each, and two GPUs on the first."""
    policy = Policy(name=name, search=search)
    return Snapshot(numa=TWO, policy=policy, scope=scope, allocators=allocators or (CPU, GPU))


def admitted(snapshot: Snapshot, *amounts: dict[str, int], key: str = "job") -> Placed:
    """The verdict, which has to be yes."""
    verdict = admit(snapshot, workload(key, *amounts))
    assert isinstance(verdict, Admitted)
    return verdict


def refused(snapshot: Snapshot, *amounts: dict[str, int], key: str = "job") -> Refusal:
    """The verdict, which has to be no."""
    verdict = admit(snapshot, workload(key, *amounts))
    assert isinstance(verdict, Refusal)
    return verdict


def test_policy_none_asks_nobody() -> None:
    """Everyone takes what it likes, on any node."""
    verdict = admitted(node(PolicyName.NONE), {"cpu": 3, "gpu": 1})
    assert verdict.affinity == {"app-0": ANY}


def test_each_container_goes_by_its_own_hint() -> None:
    """Scope `container`: the second container sees what the first one took."""
    verdict = admitted(node(), {"cpu": 3}, {"cpu": 3})
    assert [hint.affinity for hint in verdict.affinity.values()] == [1, 2]


def test_scope_pod_gives_all_containers_one_affinity() -> None:
    """The peak of the whole pod is placed once."""
    verdict = admitted(node(scope=Scope.POD), {"cpu": 2}, {"cpu": 2, "gpu": 1})
    assert [hint.affinity for hint in verdict.affinity.values()] == [1, 1]
    refused(node(scope=Scope.POD), {"cpu": 3}, {"cpu": 3})


def test_init_members_lend_what_they_held() -> None:
    """A main member reuses what an init member had."""
    asked = workload("job", {"cpu": 4}, init=[{"cpu": 4}])
    verdict = admit(node(PolicyName.RESTRICTED, FakeAllocator.of("cpu", {0: 4})), asked)
    assert isinstance(verdict, Admitted)


def test_a_pod_is_admitted_as_its_containers() -> None:
    """Affinities carry the containers' names."""
    amounts = {"cpu": Quantity.of(2), "memory": Quantity.of("1Gi")}
    pod = Pod(uid="u", containers=(Container(name="app", requests=amounts, limits=amounts),))
    verdict = admit(node(), pod)
    assert isinstance(verdict, Admitted)
    assert verdict.affinity == {"app": TopologyHint(1, True)}


def test_all_or_nothing() -> None:
    """A pod of which the second container fails leaves nothing behind."""
    snapshot = node()
    refused(snapshot, {"cpu": 4}, {"cpu": 5})
    assert snapshot == node()


def test_admitting_again_changes_nothing() -> None:
    """The same affinities, and the very same snapshot."""
    first = admitted(node(), {"cpu": 3})
    again = admit(first.snapshot, workload("job", {"cpu": 3}))
    assert again == attrs.evolve(first, repeated=True)


def test_one_member_can_be_released() -> None:
    """What the other holds stays; the last one takes the workload's entry along."""
    snapshot = admitted(node(), {"cpu": 1}, {"cpu": 1}).snapshot
    fewer = release(snapshot, "job", "app-0")
    assert list(fewer.admitted["job"]) == ["app-1"]
    none = release(fewer, "job", "app-1")
    assert (none.admitted, none.allocators) == ({}, node().allocators)
    assert release(none, "job") is none


def test_waiting_is_no_refusal() -> None:
    """A provider that is not ready makes the verdict "not yet", which says for what."""
    waiting = attrs.evolve(GPU, waiting_for="plugin example.com/gpu has not registered")
    for name in PolicyName:
        verdict = admit(node(name, CPU, waiting), workload("job", {"gpu": 1}))
        assert isinstance(verdict, NotYet)
        assert verdict.blocker == "gpu"
        assert "has not registered" in str(verdict)
    admitted(node(PolicyName.RESTRICTED, CPU, waiting), {"cpu": 1})


def test_the_search_keeps_a_node_for_a_later_container() -> None:
    """An early container moves aside; without the search the pod is refused, and says so."""
    amounts = {"cpu": 3}, {"cpu": 3, "gpu": 1}
    plain = refused(node(), *amounts)
    assert explain(plain).feasibility is Feasibility.UNLUCKY_ORDER
    found = admitted(node(search=True), *amounts)
    assert [hint.affinity for hint in found.affinity.values()] == [2, 1]


def test_the_search_stops_at_its_bound_and_says_so() -> None:
    """Steps are counted; an exhausted search is told from one that found nothing."""
    snapshot = node(search=True)
    refusal = refused(snapshot, {"cpu": 3}, {"cpu": 5})
    assert (refusal.steps, refusal.exhausted) == (2, False)
    short = attrs.evolve(snapshot, policy=attrs.evolve(snapshot.policy, search_steps=1))
    assert refused(short, {"cpu": 3}, {"cpu": 3, "gpu": 3}).exhausted


def test_equal_members_are_not_tried_in_every_order() -> None:
    """Nine equal members that need nine nodes of eight: subsets of nodes are tried, not orders."""
    eight = NumaTopology(nodes=tuple(range(8)))
    policy = Policy(name=PolicyName.SINGLE_NUMA_NODE, search=True)
    cpus = FakeAllocator.of("cpu", dict.fromkeys(range(8), 4))
    refusal = refused(Snapshot(numa=eight, policy=policy, allocators=(cpus,)), *[{"cpu": 3}] * 9)
    assert not refusal.exhausted
    assert refusal.steps <= 2**8


def test_the_search_avoids_masks_that_a_provider_refuses() -> None:
    """Under best-effort the merge may name a mask on which one provider cannot grant; another is tried."""
    split = FakeAllocator.of("memory", {0: 1, 1: 1})
    local = FakeAllocator.of("cpu", {0: 4})
    amounts = {"cpu": 1, "memory": 2}
    plain = refused(node(PolicyName.BEST_EFFORT, local, split), amounts)
    assert (plain.reason, plain.provider) == ("UnexpectedAdmissionError", "memory")
    assert plain.shortfall is not None
    found = admitted(node(PolicyName.BEST_EFFORT, local, split, search=True), amounts)
    assert found.affinity["app-0"].affinity == 3


@pytest.mark.parametrize(
    ("name", "held", "amounts", "feasibility"),
    [
        (PolicyName.SINGLE_NUMA_NODE, [], {"cpu": 9}, Feasibility.NEVER_FITS),
        (PolicyName.SINGLE_NUMA_NODE, [], {"cpu": 5}, Feasibility.NEVER_PREFERRED),
        (PolicyName.SINGLE_NUMA_NODE, [{"cpu": 3}, {"cpu": 3}], {"cpu": 3}, Feasibility.NO_ROOM),
        (PolicyName.RESTRICTED, [{"cpu": 3}, {"cpu": 3}], {"cpu": 2}, Feasibility.NOT_PREFERRED),
    ],
)
def test_a_refusal_tells_never_from_not_now(
    name: PolicyName, held: list[dict[str, int]], amounts: dict[str, int], feasibility: Feasibility
) -> None:
    """Whether the emptied node would do, and whether a weaker policy would now."""
    snapshot = admitted(node(name), *held, key="old").snapshot if held else node(name)
    assert explain(refused(snapshot, amounts)).feasibility is feasibility


def test_a_refusal_says_who_vetoed_what() -> None:
    """Asked, free, possible, vetoed, and what a weaker policy would do: as fields and text."""
    snapshot = admitted(node(), {"cpu": 3}, key="old").snapshot
    refusal = refused(snapshot, {"cpu": 2, "gpu": 1})
    story = explain(refusal)
    assert refusal.reason == "TopologyAffinityError"
    (cpu, gpu) = story.resources
    assert (cpu.wanted, cpu.free, cpu.possible) == (2, {0: 1, 1: 4}, (2,))
    assert (gpu.wanted, gpu.free, gpu.allocatable) == (1, {0: 2}, {0: 2})
    assert {(veto.mask, veto.provider) for veto in story.vetoes} == {(1, "cpu"), (2, "gpu")}
    assert (
        story.text.splitlines()[1]
        == "  cpu (cpu): 2 wanted; free: 1 on node 0, 4 on node 1; possible nodes: 1"
    )


def test_a_weaker_policy_that_would_do_is_named() -> None:
    """With the affinities that it would give."""
    snapshot = admitted(node(PolicyName.RESTRICTED, CPU), {"cpu": 3}, {"cpu": 3}, key="old").snapshot
    refusal = refused(snapshot, {"cpu": 2})
    story = explain(refusal)
    weaker = story.weaker
    assert weaker is not None
    assert (weaker.policy, weaker.affinity["app-0"].affinity) == (PolicyName.BEST_EFFORT, 3)
    assert story.text.endswith("would fit under best-effort: app-0 on nodes 0-1")


@pytest.mark.parametrize(("comparison", "mask"), [(MostAllocated(), 2), (LeastAllocated(), 4)])
@pytest.mark.parametrize("search", [False, True])
def test_admission_scores_by_what_allocators_report(
    comparison: Comparison, mask: int, *, search: bool
) -> None:
    """The fuller or the emptier node wins, worked out from what is free."""
    three = NumaTopology(nodes=(0, 1, 2))
    policy = Policy(name=PolicyName.RESTRICTED, comparison=comparison, search=search)
    cpus = FakeAllocator.of("cpu", dict.fromkeys(range(3), 4))
    node = Snapshot(numa=three, policy=policy, allocators=(cpus,))
    for key, taken, place in (("a", 1, 1), ("b", 2, 2)):
        claim = workload(key, {"cpu": taken}).claims[0]
        after = node.allocators[0].allocate(claim, TopologyHint(place, True))
        assert isinstance(after, FakeAllocator)
        node = attrs.evolve(node, allocators=(after,))
    verdict = admit(node, workload("job", {"cpu": 2}))
    assert isinstance(verdict, Admitted)
    assert verdict.affinity["app-0"].affinity == mask


def test_the_search_of_scope_pod_tries_every_common_place() -> None:
    """Together on the next candidate, or nowhere."""
    split = FakeAllocator.of("memory", {0: 1, 1: 1})
    local = FakeAllocator.of("cpu", {0: 4})
    node_of_both = node(PolicyName.BEST_EFFORT, local, split, scope=Scope.POD, search=True)
    found = admitted(node_of_both, {"cpu": 1}, {"memory": 2})
    assert {hint.affinity for hint in found.affinity.values()} == {3}
    assert refused(node_of_both, {"cpu": 1}, {"memory": 3}).steps > 0


@attrs.frozen(kw_only=True)
class Late(FakeAllocator):
    """Is no longer ready once something is held."""

    def hints(self, claims: Sequence[Claim], /) -> Hints | NotYet:
        """Wait, where somebody holds something."""
        if self.held and claims[0].owner.member != "app-0":
            return NotYet(blocker=self.name, message="a reset")
        return FakeAllocator.hints(self, claims)


def test_an_allocator_that_is_not_ready_half_way_makes_it_not_yet() -> None:
    """Also with the search on: nobody knows yet, so nobody searches."""
    late = Late(name="gpu", units={0: 3})
    verdict = admit(node(PolicyName.RESTRICTED, late, search=True), workload("job", {"gpu": 1}, {"gpu": 1}))
    assert isinstance(verdict, NotYet)
    assert (verdict.blocker, verdict.message) == ("gpu", "a reset")


def test_an_allocator_that_cannot_report_is_named() -> None:
    """When a refusal is explained."""
    refusal = refused(node(PolicyName.RESTRICTED, Mute(name="cpu", units={0: 1})), {"cpu": 2})
    with pytest.raises(ProviderError, match=r"cpu.availability for job/app-0 .cpu.: raised OSError"):
        explain(refusal)


@attrs.frozen(kw_only=True)
class Mute(FakeAllocator):
    """Cannot say what is free."""

    def availability(self, claims: Sequence[Claim], /) -> Sequence[Availability]:
        """Raise."""
        raise OSError("no counters")


@attrs.frozen(kw_only=True)
class Broken:
    """An allocator that misbehaves on one call."""

    call: str
    name: str = "broken"

    def hints(self, claims: Sequence[Claim], /) -> Hints:
        """Raise, or a mask outside the machine, or what is no hint."""
        if self.call == "hints":
            raise KeyError("node 7")
        return {"gpu": [TopologyHint(128, True)]} if self.call == "mask" else {}

    def allocate(self, claim: Claim, affinity: TopologyHint, /) -> Broken:
        """Raise, or answer with nonsense."""
        if self.call == "allocate":
            raise KeyError("node 7")
        return "granted" if self.call == "nonsense" else self  # type: ignore[return-value]

    def release(self, workload: str, member: str | None = None, /) -> Broken:
        """Raise."""
        raise KeyError("node 7")


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        ("hints", ProviderError, "broken.hints for job/app-0 (gpu): raised KeyError('node 7')"),
        ("mask", MaskOutsideError, "broken, resource gpu: hint for NUMA nodes 7, but 7 are not among 0-1"),
        ("allocate", ProviderError, "broken.allocate for job/app-0 (gpu): raised"),
        ("nonsense", ProviderError, "answered with a str where an allocator, Shortfall or NotYet belongs"),
    ],
)
def test_a_provider_at_fault_is_named(call: str, error: type[Exception], says: str) -> None:
    """With the call and the resource; the error survives pickling."""
    snapshot = Snapshot(numa=TWO, policy=Policy(name=PolicyName.RESTRICTED), allocators=(Broken(call=call),))
    with pytest.raises(error) as caught:
        admit(snapshot, workload("job", {"gpu": 1}))
    assert says in str(caught.value)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)  # noqa: S301
    with pytest.raises(ProviderError, match="release"):
        release(snapshot, "job")


def test_allocators_need_names_of_their_own() -> None:
    """Two of one name could not be told apart in a refusal."""
    with pytest.raises(ValueError, match="cpu, cpu"):
        node(PolicyName.NONE, CPU, CPU)


def test_a_workload_has_its_own_claims_and_each_once() -> None:
    """A claim of another workload would never be released, a second one of a member never granted."""
    claim = Claim(owner=Owner("job", "main"), amounts={})
    with pytest.raises(ValueError, match="'other' has a claim of job/main; give all claims"):
        Workload(key="other", claims=(claim,))
    with pytest.raises(ValueError, match="members main, main; each needs a name"):
        Workload(key="job", claims=(claim, claim))


@attrs.frozen
class Forgetful(FakeAllocator):
    """Grants nothing that it hinted."""

    def allocate(self, claim: Claim, affinity: TopologyHint, /) -> FakeAllocator | Shortfall:
        """Refuse whoever asks for some."""
        if self.name not in claim.amounts or not claim.amounts[self.name]:
            return self
        return Shortfall(resource=self.name, wanted=1, free=0)


def test_the_check_catches_hints_that_are_not_granted() -> None:
    """An allocator that hints what it refuses fails the check, unless that is allowed."""
    forgetful = Forgetful(name="cpu", units={0: 15})
    with pytest.raises(AssertionError, match="then refused it"):
        check_allocator(forgetful, workload("job", {"cpu": 1}), TWO)
    check_allocator(forgetful, workload("job", {"cpu": 1}), TWO, every_hint_grants=False)


@attrs.frozen
class Silent(FakeAllocator):
    """Must not be asked for hints."""

    def hints(self, claims: Sequence[Claim], /) -> Hints:
        """Fail."""
        raise AssertionError(f"asked about {len(claims)} claims")


@pytest.mark.parametrize("scope", list(Scope))
def test_under_policy_none_nobody_is_asked(scope: Scope) -> None:
    """Hints cost, and this policy has no use for them."""
    silent = Silent(name="cpu", units={0: 15})
    answer = admitted(node(PolicyName.NONE, silent, scope=scope), {"cpu": 2}, {"cpu": 1})
    assert set(answer.affinity.values()) == {ANY}
    with pytest.raises(ProviderError, match="asked about"):
        admit(node(PolicyName.RESTRICTED, silent, scope=scope), workload("job", {"cpu": 1}))


def test_a_pod_is_turned_into_claims_once() -> None:
    """Whoever asks about it on many nodes gets the same workload; an equal pod has an equal one."""
    pods = [Pod(name="p", uid="u", containers=(Container(name="c"),)) for _ in range(200)]
    workloads = [workload_of(pod) for pod in pods]
    assert len({id(one) for one in workloads}) == 200
    assert workload_of(pods[-1]) is workloads[-1]
    assert all(workload_of(pod) == workloads[0] for pod in pods)


def test_what_ended_members_lend_is_what_no_other_holds() -> None:
    """The claim's own member is neither a lender nor a keeper."""
    asked = Claim(owner=Owner("pod", "main"), amounts={}, reuse=("first", "second"))
    held = {"first": 1, "main": 2, "beside": 4, "second": 8}
    assert lent(asked, held.items()) == ([1, 8], [4])
    assert lent(attrs.evolve(asked, reuse=()), held.items()) == ([], [1, 4, 8])
