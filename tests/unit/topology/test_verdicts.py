"""A refusal tells its short story for nothing; the long one is asked for by name."""

from __future__ import annotations

import copy
import json
import logging
import pickle
from collections import Counter
from collections.abc import Callable, Sequence
from typing import ClassVar, cast

import attrs
import pytest

from nodealloc.errors import ConfigurationError
from nodealloc.testing.topology import FakeAllocator, workload
from nodealloc.topology import (
    Admitted,
    Availability,
    Claim,
    Hints,
    NoEvidenceError,
    NotYet,
    NumaTopology,
    Placed,
    Policy,
    PolicyName,
    ProviderError,
    Refusal,
    Scope,
    Shortfall,
    Snapshot,
    TopologyHint,
    admit,
    explain,
)
from nodealloc.verdicts import Refused

TWO = NumaTopology(nodes=(0, 1))


@attrs.frozen(kw_only=True)
class Spy(FakeAllocator):
    """Counts what it is asked, also the copies of it that grants make."""

    asked: ClassVar[Counter[str]] = Counter()

    def hints(self, claims: Sequence[Claim], /) -> Hints | NotYet:
        """Counted."""
        self.asked["hints"] += 1
        return FakeAllocator.hints(self, claims)

    def allocate(self, claim: Claim, affinity: TopologyHint, /) -> FakeAllocator | Shortfall | NotYet:
        """Counted."""
        self.asked["allocate"] += 1
        return FakeAllocator.allocate(self, claim, affinity)

    def release(self, workload: str, member: str | None = None, /) -> FakeAllocator:
        """Counted."""
        self.asked["release"] += 1
        return FakeAllocator.release(self, workload, member)

    def availability(self, claims: Sequence[Claim], /) -> Sequence[Availability]:
        """Counted."""
        self.asked["availability"] += 1
        return FakeAllocator.availability(self, claims)

    def __reduce__(self) -> tuple[object, ...]:
        self.asked["pickle"] += 1
        return FakeAllocator, ()


def node(name: PolicyName, *, search: bool = False, scope: Scope = Scope.CONTAINER) -> Snapshot:
    """Four spied CPUs on each of two nodes, two spied GPUs on the first."""
    spies = tuple(
        Spy(name=one.name, units=one.units)
        for one in (FakeAllocator.of("cpu", {0: 4, 1: 4}), FakeAllocator.of("gpu", {0: 2}))
    )
    return Snapshot(numa=TWO, policy=Policy(name=name, search=search), scope=scope, allocators=spies)


def refused(snapshot: Snapshot, *amounts: dict[str, int]) -> Refusal:
    """The verdict, which has to be no."""
    verdict = admit(snapshot, workload("job", *amounts))
    assert isinstance(verdict, Refusal)
    return verdict


REFUSALS = {
    "by the merge": lambda: refused(node(PolicyName.RESTRICTED), {"cpu": 5, "gpu": 1}),
    "by one node": lambda: refused(node(PolicyName.SINGLE_NUMA_NODE), {"cpu": 5}),
    "by an allocator": lambda: refused(node(PolicyName.NONE), {"cpu": 9}),
    "after a search": lambda: refused(node(PolicyName.SINGLE_NUMA_NODE, search=True), {"cpu": 3}, {"cpu": 5}),
    "together": lambda: refused(node(PolicyName.RESTRICTED, scope=Scope.POD), {"cpu": 5}, {"gpu": 1}),
}
CHEAP: dict[str, Callable[[Refusal], object]] = {
    "str": str,
    "repr": repr,
    "hash": hash,
    "pickle": pickle.dumps,
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "as_dict": Refusal.as_dict,
    "equal": lambda refusal: refusal == attrs.evolve(refusal),
    "log": lambda refusal: logging.getLogger("test").error("refused: %s %r", refusal, refusal),
}


@pytest.mark.parametrize("how", CHEAP)
@pytest.mark.parametrize("kind", REFUSALS)
def test_telling_the_short_story_asks_no_allocator(kind: str, how: str) -> None:
    """Printing, logging, comparing, copying and pickling call nobody; explaining does."""
    refusal = REFUSALS[kind]()
    Spy.asked.clear()
    CHEAP[how](refusal)
    assert Spy.asked == {}
    explain(refusal)
    assert Spy.asked["availability"] > 0


MISFIT = "job/app-0: TopologyAffinityError:"
NODES = "NUMA nodes is preferred for all that was asked"
NODE = NODES.replace("nodes", "node")
NOWHERE = "none in particular"


@pytest.mark.parametrize(
    ("kind", "lines"),
    [
        (
            "by the merge",
            [
                f"{MISFIT} no set of {NODES}, the hints merge to node 0; policy restricted needs one",
                "  wanted: 5 cpu, 1 gpu; merged hint: node 0, not preferred",
            ],
        ),
        (
            "by one node",
            [
                f"{MISFIT} no single {NODE}, the hints merge to {NOWHERE}; policy single-numa-node needs one",
                "  wanted: 5 cpu; merged hint: any node, not preferred",
            ],
        ),
        (
            "by an allocator",
            [
                "job/app-0: UnexpectedAdmissionError by cpu: cpu: 9 wanted, 8 free on any node",
                "  policy none",
            ],
        ),
    ],
)
def test_the_short_story_says_who_what_where_and_how_much(kind: str, lines: list[str]) -> None:
    """Who was refused by whom, which amounts, the merged hint and the policy, in two lines."""
    assert str(REFUSALS[kind]()).splitlines() == lines


def test_the_short_story_of_a_search_says_how_far_it_went() -> None:
    """Steps, and whether the bound ended it."""
    assert str(REFUSALS["after a search"]()).endswith("; claims tried by a search: 2")
    few = attrs.evolve(node(PolicyName.SINGLE_NUMA_NODE), policy=Policy.parse("single-numa-node"))
    bounded = attrs.evolve(few, policy=attrs.evolve(few.policy, search=True, search_steps=1))
    assert str(refused(bounded, {"cpu": 3}, {"cpu": 3, "gpu": 3})).endswith(
        "; claims tried by a search: 1, up to its bound"
    )


def test_the_short_story_of_many_members_stays_short() -> None:
    """Four wishes are printed, the fields have all."""
    refusal = refused(node(PolicyName.RESTRICTED, scope=Scope.POD), *[{"cpu": 1}] * 9)
    assert "wanted: 1 cpu + 1 cpu + 1 cpu + 1 cpu and 5 members more;" in str(refusal)
    assert str(refusal).startswith("job: TopologyAffinityError")
    assert len(refusal.claims) == 9


def test_a_refusal_is_one_of_the_verdicts_of_everybody() -> None:
    """Reason, message and figures are there for whoever knows nothing of hints."""
    merged, lacking = REFUSALS["by the merge"](), REFUSALS["by an allocator"]()
    for refusal in (merged, lacking):
        assert isinstance(refusal, Refused)
        assert refusal.message in str(refusal)
    assert merged.figures == {"policy": "restricted", "nodes": "0"}
    assert lacking.figures == {
        "policy": "none",
        "provider": "cpu",
        "resource": "cpu",
        "wanted": 9,
        "free": 8,
        "nodes": "any",
    }


def test_a_shortfall_told_in_words_keeps_them() -> None:
    """The allocator's own sentence is the message; the numbers stay beside it."""

    @attrs.frozen(kw_only=True)
    class Wordy(FakeAllocator):
        def allocate(self, claim: Claim, affinity: TopologyHint, /) -> FakeAllocator | Shortfall:
            return Shortfall(resource=self.name, wanted=2, free=1, nodes=2, reason="SMT", detail="two wanted")

    wordy = Wordy(name="cpu", units={0: 1, 1: 1})
    refusal = refused(Snapshot(numa=TWO, allocators=(wordy,)), {"cpu": 2})
    assert str(refusal).splitlines() == [
        "job/app-0: SMT by cpu: two wanted",
        "  cpu: 2 wanted, 1 free on node 1; policy none",
    ]
    assert refusal.figures["nodes"] == "1"


@pytest.mark.parametrize(
    ("lack", "says"),
    [
        (lambda: Shortfall(resource="cpu", wanted=2, free=1, reason=""), "reason is ''"),
        (lambda: Shortfall(resource="cpu", wanted=cast("int", None), free=1), "wanted: expected a whole"),
        (lambda: Shortfall(resource="cpu", wanted=2, free=cast("int", [1])), "free: expected a whole"),
    ],
)
def test_a_shortfall_that_makes_no_sense_names_the_allocator(
    lack: Callable[[], Shortfall], says: str
) -> None:
    """No refusal can be made of it, so it is the provider's error."""

    @attrs.frozen(kw_only=True)
    class Odd(FakeAllocator):
        def allocate(self, claim: Claim, affinity: TopologyHint, /) -> FakeAllocator | Shortfall:
            return lack()

    odd = Odd(name="odd", units={0: 1})
    with pytest.raises(ProviderError, match=r"odd.allocate for job/app-0 \(cpu\): ") as caught:
        admit(Snapshot(numa=TWO, allocators=(odd,)), workload("job", {"cpu": 2}))
    assert says in str(caught.value)


def test_a_pickled_refusal_leaves_the_node_behind() -> None:
    """The short story travels; the long one has to be told before, and the error says so."""
    refusal = REFUSALS["by the merge"]()
    told = explain(refusal)
    assert pickle.loads(pickle.dumps(told)) == told  # noqa: S301
    arrived = pickle.loads(pickle.dumps(refusal))  # noqa: S301
    assert arrived == refusal
    assert arrived.evidence is None
    assert str(arrived) == str(refusal)
    with pytest.raises(NoEvidenceError, match="explain it before it is sent") as caught:
        explain(arrived)
    assert (caught.value.workload, caught.value.reason) == ("job", "TopologyAffinityError")
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)  # noqa: S301


def test_a_copied_refusal_can_still_be_explained() -> None:
    """Copies in the same process share the evidence."""
    refusal = REFUSALS["together"]()
    for other in (copy.copy(refusal), copy.deepcopy(refusal), attrs.evolve(refusal, steps=1)):
        assert other.evidence is refusal.evidence
        assert explain(other) == explain(refusal)


def test_the_short_story_is_json_as_well() -> None:
    """Sets of nodes are lists of ids, numbers stay numbers."""
    told = json.loads(json.dumps(REFUSALS["by an allocator"]().as_dict()))
    assert (told["workload"], told["members"], told["policy"]) == ("job", ["app-0"], "none")
    assert (told["shortfall"]["wanted"], told["shortfall"]["free"]) == (9, 8)
    merged = json.loads(json.dumps(REFUSALS["by the merge"]().as_dict()))
    assert merged["hint"] == {"nodes": [0], "preferred": False}
    assert merged["shortfall"] is None


def test_who_is_admitted_is_told_where_in_one_line() -> None:
    """Without the node, of which a log has no need."""
    verdict = admit(node(PolicyName.RESTRICTED), workload("job", {"cpu": 3}, {"cpu": 3}))
    assert isinstance(verdict, Placed)
    assert isinstance(verdict, Admitted)
    assert str(verdict) == "job: admitted, app-0 on node 0, app-1 on node 1"
    assert "generation 1" in repr(verdict)
    assert "Spy" not in repr(verdict)
    again = admit(verdict.snapshot, workload("job", {"cpu": 3}, {"cpu": 3}))
    assert str(again) == "job: admitted before, app-0 on node 0, app-1 on node 1"
    assert hash(again) != hash(verdict)
    assert str(admit(node(PolicyName.NONE), workload("idle", {}))) == "idle: admitted, app-0 on any node"


def test_another_kind_of_judge_needs_no_hint() -> None:
    """A handler that knows nothing of NUMA nodes refuses in the same chain."""

    def ports(_: Snapshot) -> Admitted | Refused:
        return Refused(reason="NodePorts", message="host port 80 is taken", figures={"port": 80})

    def resources(snapshot: Snapshot) -> Placed | Refusal | NotYet:
        return admit(snapshot, workload("job", {"cpu": 1}))

    answers = [judge(node(PolicyName.RESTRICTED)) for judge in (resources, ports)]
    first = next(answer for answer in answers if not isinstance(answer, Admitted))
    assert isinstance(first, Refused)
    assert (first.reason, dict(first.figures)) == ("NodePorts", {"port": 80})


def test_a_shortfall_finds_words_when_they_are_read() -> None:
    """Once, whoever reads them; it is equal to one that had them all along, and travels with them."""
    told: list[int] = []

    def tell() -> str:
        told.append(1)
        return "none left"

    lack = Shortfall.told_by(tell, resource="cpu", wanted=2, free=1, nodes=1)
    assert (lack.wanted, lack.reason, told) == (2, "UnexpectedAdmissionError", [])
    plain = Shortfall(resource="cpu", wanted=2, free=1, nodes=1, detail="none left")
    assert lack == plain
    assert hash(lack) == hash(plain)
    assert (lack.detail, repr(lack), told) == ("none left", repr(plain), [1])
    for other in (pickle.loads(pickle.dumps(lack)), copy.copy(lack), attrs.evolve(lack)):  # noqa: S301
        assert other == plain
    assert not hasattr(plain, "_tell")


def test_words_that_are_none_are_refused() -> None:
    """What tells them may be anybody's."""
    lack = Shortfall.told_by(lambda: cast("str", 3), resource="cpu", wanted=2, free=1)
    with pytest.raises(ConfigurationError, match=r"expected a text, found 3 \(int\)"):
        _ = lack.detail


def test_a_refusal_finds_words_when_they_are_read() -> None:
    """Of a fleet's refusals most are never read."""
    told: list[int] = []

    def tell() -> str:
        told.append(1)
        return "no"

    class Later(FakeAllocator):
        def allocate(self, claim: Claim, affinity: TopologyHint, /) -> FakeAllocator | Shortfall:
            return Shortfall.told_by(tell, resource="cpu", wanted=2, free=1)

    refusal = admit(
        Snapshot(numa=TWO, allocators=(Later(name="late", units={0: 1}),)), workload("job", {"cpu": 2})
    )
    assert isinstance(refusal, Refusal)
    assert (refusal.reason, refusal.member, told) == ("UnexpectedAdmissionError", "app-0", [])
    assert (refusal.message, refusal.figures["wanted"], told) == ("no", 2, [1])


@pytest.mark.parametrize("value", [Shortfall(resource="cpu", wanted=2, free=1), Refusal.__new__(Refusal)])
def test_what_no_refusal_has_is_no_attribute(value: object) -> None:
    """Only words are left for later."""
    for name in ("message", "remedy"):
        with pytest.raises(AttributeError, match=f"has no {name}"):
            getattr(value, name)
