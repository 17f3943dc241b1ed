"""What lists of who holds what are made of, and what is left."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

from nodealloc.testing._wording import in_words
from nodealloc.topology import (
    Accounts,
    Allocator,
    Claim,
    Holding,
    NotYet,
    NumaTopology,
    Shortfall,
    TopologyHint,
    Workload,
)

__all__ = ["check_accounts", "check_apart", "filled"]

_ANY = TopologyHint(affinity=None, preferred=False)


def filled(allocator: Allocator, asked: Iterable[Workload], /) -> Allocator:
    """The allocator with these workloads granted, each claim by the first of its preferred hints.

    Raises:
        AssertionError: They do not fit together.
    """
    for workload in asked:
        for claim in workload.claims:
            hints = allocator.hints((claim,))
            assert not isinstance(hints, NotYet), f"give an allocator that can answer: {hints}"
            offered = [hint for some in hints.values() for hint in some or ()]
            hint = next((one for one in offered if one.preferred), offered[0] if offered else _ANY)
            answer = allocator.allocate(claim, hint)
            assert not isinstance(answer, Shortfall | NotYet), f"give workloads that fit together: {answer}"
            allocator = answer
    return allocator


@in_words
def check_accounts(allocator: Allocator, asked: Sequence[Workload], numa: NumaTopology, /) -> None:
    """Hold an allocator to what lists of who holds what are made of.

    Args:
        allocator: Holds nothing, and has `Accounts`.
        asked: Workloads that fit it together, and of which one holds something.
        numa: The machine that it speaks of.

    Raises:
        AssertionError: Says which promise is broken.
    """
    empty = _accounts(allocator)
    assert not empty.holdings(), f"it holds nothing, and says {empty.holdings()}"
    before = _capacity(empty, numa)
    for (resource, node), (there, free) in before.items():
        assert free == there, f"{resource}, node {node}: {free} of {there} are left, and nobody holds any"
    full = allocator
    for workload in asked:
        full = filled(full, [workload])
        check_apart(_accounts(full).holdings())
        _check_used(_accounts(full), before, _capacity(_accounts(full), numa))
        for claim in workload.claims:
            key, member = claim.owner.workload, claim.owner.member
            listed = any(one.owner == claim.owner for one in _accounts(full).holdings())
            holds = full.release(key, member) != full
            assert listed or not holds or not _counts(before, claim), f"{key}/{member} is not listed"
            assert holds or not listed, f"{key}/{member} holds nothing and is listed"
    assert _accounts(full).holdings(), "give a workload that holds something"
    for workload in asked:
        for claim in workload.claims:
            _check_nodes(allocator, claim, numa)
    _check_amounts(full, asked)
    for workload in asked:
        full = full.release(workload.key)
    assert not _accounts(full).holdings(), "all is released, and somebody is still listed"
    assert _capacity(_accounts(full), numa) == before, "all is released, and not all is left again"


def _check_nodes(empty: Allocator, claim: Claim, numa: NumaTopology) -> None:
    """What is held is listed on each node on which less is left, wherever it was granted."""
    before = _capacity(_accounts(empty), numa)
    for node in numa.nodes:
        after = empty.allocate(claim, TopologyHint(1 << node, preferred=False))
        if isinstance(after, Shortfall | NotYet):
            continue
        now = _capacity(_accounts(after), numa)
        for resource in {one.resource for one in _accounts(after).holdings()}:
            gone = {
                place
                for (name, place), (_, left) in before.items()
                if name == resource and place is not None and now[name, place][1] < left
            }
            listed = {n for one in _accounts(after).holdings() if one.resource == resource for n in one.nodes}
            assert gone <= listed, (
                f"{claim.owner}: less {resource} is left on nodes {sorted(gone)}, and what it holds is "
                f"listed on nodes {sorted(listed)}"
            )


def _check_amounts(full: Allocator, asked: Sequence[Workload]) -> None:
    """As much is left again as is listed, once a member that nobody shares with has gone."""
    for workload in asked:
        shared = {
            name for claim in workload.claims for name in (*claim.reuse, claim.owner.member) if claim.reuse
        }
        for claim in workload.claims:
            if claim.owner.member in shared:
                continue
            without = full.release(claim.owner.workload, claim.owner.member)
            for resource in sorted({one.resource for one in _accounts(full).capacity()}):
                mine = [one for one in _accounts(full).holdings() if one.owner == claim.owner]
                listed = sum(one.amount for one in mine if one.resource == resource)
                freed = _left(without, resource) - _left(full, resource)
                assert listed <= freed, (
                    f"{claim.owner} is listed with {listed} {resource}, and {freed} more are left without it"
                )


def _left(allocator: Allocator, resource: str) -> int:
    return sum(one.available for one in _accounts(allocator).capacity() if one.resource == resource)


def _counts(capacity: Mapping[tuple[str, int | None], object], claim: Claim) -> bool:
    """Whether a claim asks for one unit or more of something that is counted."""
    return any(claim.amounts[name].milli_value >= 1000 for name, _ in capacity if name in claim.amounts)


def _check_used(
    able: Accounts,
    before: Mapping[tuple[str, int | None], tuple[int, int]],
    now: Mapping[tuple[str, int | None], tuple[int, int]],
) -> None:
    """Whether what is left has fallen by what is held, on the nodes where it is."""
    assert {key: there for key, (there, _) in now.items()} == {
        key: one for key, (one, _) in before.items()
    }, "what could be held depends on what is held"
    held = able.holdings()
    for resource in sorted({resource for resource, _ in before}):
        of_it = [one for one in held if one.resource == resource]
        wanted = _distinct(of_it)
        fallen = {node: there - free for (name, node), (there, free) in now.items() if name == resource}
        used = sum(fallen.values())
        most = wanted * max([len(one.nodes) for one in of_it], default=1)
        assert wanted <= used <= max(most, wanted), f"{wanted} {resource} are held, {used} less are left"
        nodes = {node for one in of_it for node in one.nodes}
        odd = [node for node, less in fallen.items() if less and node is not None and node not in nodes]
        assert not odd, f"{resource}: less is left on nodes {odd}, where nobody holds any"


def _distinct(held: Sequence[Holding]) -> int:
    """How much is held, counting once what members of one workload lend each other."""
    named = [one for one in held if one.cpus or len(one.ids) == one.amount]
    names = {(one.resource, name) for one in named for name in (*one.cpus, *one.ids)}
    return len(names) + sum(one.amount for one in held if one not in named)


def check_apart(held: Sequence[Holding]) -> None:
    for one, other in combinations(held, 2):
        if one.owner.workload == other.owner.workload or one.resource != other.resource:
            continue
        both = one.cpus & other.cpus
        assert not both, f"CPUs {both} are accounted to {one.owner} and to {other.owner}"
        if len(one.ids) == one.amount and len(other.ids) == other.amount:
            same = sorted({*one.ids} & {*other.ids})
            assert not same, f"{', '.join(same)} accounted to {one.owner} and to {other.owner}"


def _accounts(allocator: Allocator) -> Accounts:
    assert isinstance(allocator, Accounts), f"{allocator.name} has no `holdings` and `capacity`"
    return allocator


def _capacity(able: Accounts, numa: NumaTopology) -> dict[tuple[str, int | None], tuple[int, int]]:
    rows = able.capacity()
    found = {(one.resource, one.node): (one.allocatable, one.available) for one in rows}
    assert len(found) == len(rows), "a resource of a node is counted twice"
    for (resource, node), (there, free) in found.items():
        assert node is None or numa.mask >> node & 1, f"{resource}: the machine has no NUMA node {node}"
        assert 0 <= free <= there, f"{resource}, node {node}: {free} of {there} are left"
    return found
