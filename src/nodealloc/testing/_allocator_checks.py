"""What any allocator, and what it reports, can be held to: one workload, step by step."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from nodealloc.testing._allocator_calls import (
    ANYWHERE,
    Offer,
    Promises,
    allocate,
    check_copy,
    figures,
    pinned,
    pure,
    released,
)
from nodealloc.testing._wording import amounts_of, is_listed, told, width
from nodealloc.topology import (
    Allocator,
    Claim,
    CountedHints,
    Hints,
    NotYet,
    Policy,
    PolicyName,
    Shortfall,
    TopologyHint,
    merge,
)

__all__ = [
    "check_accounts",
    "check_claim",
    "check_elsewhere",
    "check_figures_of",
    "check_hints",
    "check_no_node_is_missing",
    "check_offers",
    "check_shortfall",
]

_TRIED = 64
"""Hints of a counted answer that are tried."""
_NODES = 4
"""Nodes on which a claim that is held is asked for once more."""


def check_hints(allocator: Allocator, claims: Sequence[Claim], promises: Promises) -> Hints | NotYet:
    """Hints that the merge takes, the same each time, preferred where they are narrowest."""
    where = f"{allocator.name}, hints"
    given = list(claims)

    def call() -> Hints | NotYet:
        answer = allocator.hints(given)
        for name, options in () if isinstance(answer, NotYet) else answer.items():
            kind = type(options).__name__
            right = options is None or is_listed(options) or isinstance(options, CountedHints)
            assert right, f"{where} for {name}: answered a {kind} where a list or CountedHints belongs"
        return answer

    hints = pure(allocator, where, call)
    assert given == list(claims), f"{where}: changed the list of claims that it was given"
    if isinstance(hints, NotYet):
        return hints
    # The merge refuses masks outside the machine and answers that are no hints.
    merge(Policy(name=PolicyName.BEST_EFFORT), [hints], promises.numa, names=[allocator.name])
    if promises.exact_hints:
        for resource, options in hints.items():
            _check_preferred(f"{where} for {resource}", _listed(options))
    unasked = [resource for resource in hints if all(resource not in claim.amounts for claim in claims)]
    assert not unasked, f"{where}: hints for {unasked[0]}, which no claim asks for"
    return hints


def _listed(options: Sequence[TopologyHint] | CountedHints | None) -> Sequence[TopologyHint]:
    """The hints; of those that are counted some of the narrowest."""
    return options.some(_TRIED) if isinstance(options, CountedHints) else options or ()


def _check_preferred(where: str, options: Sequence[TopologyHint]) -> None:
    named = [hint for hint in options if hint.affinity is not None]
    said = {hint.affinity: hint for hint in named}
    assert len(set(named)) == len(named), f"{where}: one hint is listed twice among {len(named)}"
    for hint in named:
        assert said[hint.affinity] == hint, (
            f"{where}: {told(hint)} is listed as preferred and as not preferred"
        )
    for hint in named:
        assert hint.preferred or width(hint) > 1, (
            f"{where}: {told(hint)} is not preferred, and nothing is narrower than one node"
        )
    good = sorted((hint for hint in named if hint.preferred), key=width)
    if not good:
        return
    assert width(good[0]) == width(good[-1]), (
        f"{where}: {told(good[-1])} is preferred, and so is the narrower {told(good[0])}"
    )
    for hint in named:
        assert hint.preferred or width(hint) > width(good[0]), (
            f"{where}: {told(hint)} is not preferred, and {told(good[0])}, no narrower, is"
        )


def check_claim(before: Allocator, claim: Claim, promises: Promises) -> Allocator:
    """Every hint for a claim in turn; the value with the claim granted on the last that could."""
    where = f"{before.name}, claim {claim.owner.member}"
    hints = check_hints(before, (claim,), promises)
    check_no_node_is_missing(before, claim, hints, promises)
    tried = [("", ANYWHERE)]
    if not isinstance(hints, NotYet):
        tried += [(resource, hint) for resource, options in hints.items() for hint in _listed(options)]
    after, nowhere = before, None
    for resource, hint in tried:
        answer = allocate(before, claim, hint, where)
        if isinstance(answer, Shortfall):
            check_shortfall(answer, claim, hint, where, promises)
            check_figures_of(before, answer, claim, hint, promises)
            nowhere = answer if hint.affinity is None else nowhere
        if isinstance(answer, (Shortfall, NotYet)):
            offered = hint.affinity is not None and not isinstance(answer, NotYet)
            refused = offered and promises.every_hint_grants
            assert not refused, f"{where}: hinted {told(hint)}, then refused it: {answer}"
            continue
        if answer == before:
            assert not pinned(hints), f"{where}: granted nothing, though it hinted at nodes for it"
            continue
        _check_possible(hints, hint, where, promises)
        _check_granted(before, answer, claim, where, promises)
        check_accounts(before, answer, claim, (resource, hint), promises)
        _check_held(answer, claim, hint, where, promises)
        after = answer
    check_elsewhere(before, claim, {hint.affinity for _, hint in tried}, promises)
    assert nowhere is None or not pinned(hints) or not promises.exact, (
        f"{where}: hinted at nodes, and refuses it on any node: {nowhere}"
    )
    return after


def _check_possible(hints: Hints | NotYet, granted: TopologyHint, where: str, promises: Promises) -> None:
    """What is granted on any node is not impossible on each set of them."""
    if isinstance(hints, NotYet):
        return
    for resource, options in hints.items():
        nowhere = isinstance(options, Sequence) and not options
        assert not nowhere or granted.affinity is not None or not promises.exact, (
            f"{where}: an empty list says that {resource} is possible nowhere, and on any node it was granted"
        )


def _check_held(
    after: Allocator, claim: Claim, granted: TopologyHint, where: str, promises: Promises
) -> None:
    """What is held stays where it is, whatever nodes are named, and is hinted at there."""
    for node in promises.numa.nodes[:_NODES]:
        hint = TopologyHint(1 << node, preferred=False)
        same = allocate(after, claim, hint, where) == after
        assert same, f"{where}: a claim that is held was granted anew when it was asked for on {told(hint)}"
    hints = after.hints((claim,))
    if isinstance(hints, NotYet) or granted.affinity is None or not promises.exact:
        return
    for resource, options in hints.items():
        for hint in _listed(options):
            apart = hint.affinity is not None and not hint.affinity & granted.affinity
            assert not apart, f"{where}: {resource} is held on {told(granted)}, and hinted at on {told(hint)}"


def check_figures_of(
    allocator: Allocator, short: Shortfall, claim: Claim, hint: TopologyHint, promises: Promises
) -> None:
    """A refusal has the figures that are reported at that moment."""
    if claim.reuse or promises.fractions or not promises.exact:
        return
    entry = figures(allocator, claim).get(short.resource)
    if entry is None:
        return
    where = f"{allocator.name}, claim {claim.owner.member}"
    assert short.wanted == entry.wanted, (
        f"{where}: refused for {short.wanted} {short.resource} wanted, and reports {entry.wanted}"
    )
    there = [
        free
        for node, free in entry.free.items()
        if node < 0 or short.nodes is None or short.nodes >> node & 1
    ]
    about = told(TopologyHint(short.nodes or None, preferred=False))
    assert short.free <= sum(there), (
        f"{where}: asked on {told(hint)}, refused on {about} with {short.free} {short.resource} free, "
        f"and reports {sum(there)} there"
    )


def check_elsewhere(
    before: Allocator, claim: Claim, hinted: Collection[int | None], promises: Promises
) -> None:
    """On a node that is not among the hints a claim is refused in true words, or granted in full."""
    for node in promises.numa.nodes:
        hint = TopologyHint(1 << node, preferred=False)
        if hint.affinity in hinted:
            continue
        where = f"{before.name}, claim {claim.owner.member} where it hints at nothing"
        answer = allocate(before, claim, hint, where)
        if isinstance(answer, Shortfall):
            check_shortfall(answer, claim, hint, where, promises)
            check_figures_of(before, answer, claim, hint, promises)
        elif not isinstance(answer, NotYet) and answer != before:
            check_accounts(before, answer, claim, ("", hint), promises)


def check_no_node_is_missing(
    allocator: Allocator, claim: Claim, hints: Hints | NotYet, promises: Promises
) -> None:
    """A node that has enough by itself is hinted at."""
    if isinstance(hints, NotYet) or claim.reuse or not promises.exact:
        return
    shown = figures(allocator, claim)
    for name, entry in shown.items() if len(shown) == 1 else ():  # of two, a node may lack the other
        options = hints.get(name, ())
        if options is None:
            continue
        there = {hint.affinity for hint in _listed(options)}
        if None in there:
            continue
        wide = [mask or 0 for mask in there]
        is_used = entry.free != entry.allocatable
        for node, free in entry.free.items():
            # Of a machine in use a node may be promised to a group of nodes.
            told_of = 1 << node in there or (is_used and any(mask >> node & 1 for mask in wide))
            assert node < 0 or free < entry.wanted or told_of, (
                f"{allocator.name}, hints for {name}: node {node} has {free} free of {entry.wanted} "
                "wanted, and there is no hint for it"
            )


def check_offers(allocator: Allocator, claim: Claim, promises: Promises) -> None:
    """What is hinted for a claim is granted there."""
    hints = check_hints(allocator, (claim,), promises)
    if isinstance(hints, NotYet) or not promises.every_hint_grants:
        return
    where = f"{allocator.name}, claim of {amounts_of(claim)}"
    for hint in (hint for options in hints.values() for hint in options or ()):
        answer = allocate(allocator, claim, hint, where)
        assert not isinstance(answer, Shortfall), f"{where}: hinted {told(hint)}, then refused it: {answer}"


def check_shortfall(
    short: Shortfall,
    claim: Claim,
    hint: TopologyHint,
    where: str,
    promises: Promises,
    *,
    counted: bool = True,
) -> None:
    """It speaks of something that was asked for, of too little of it, and of the nodes it was asked on."""
    assert short.resource in claim.amounts, (
        f"{where}: refused for {short.resource}, which was not asked for; name one of {amounts_of(claim)}"
    )
    asked = claim.amounts[short.resource].value
    assert short.wanted <= asked, (
        f"{where}: refused for {short.wanted} {short.resource}, and {asked} were asked for"
    )
    allowed = promises.numa.mask if hint.affinity is None else hint.affinity
    assert not (short.nodes or 0) & ~allowed, (
        f"{where}: asked on {told(hint)}, and refused in the name of "
        f"{told(TopologyHint(short.nodes, preferred=False))}"
    )
    if promises.exact and counted:
        assert short.free < short.wanted, (
            f"{where}: refused, and {short.free} are said to be free of {short.wanted} wanted"
        )


def check_accounts(
    before: Allocator, after: Allocator, claim: Claim, offer: Offer, promises: Promises
) -> None:
    """What was granted is no longer free: as much as was wanted, on the nodes of the hint.

    A device at several nodes counts at each of them, so that more may be gone.
    Figures of fractions are rounded: of each node one unit less may be gone.
    """
    if claim.reuse:  # part of it may have been lent, and was not free before
        return
    shown, left = figures(before, claim), figures(after, claim)
    for name, entry in shown.items():
        where = f"{before.name}, claim {claim.owner.member}, {name}"
        assert name in left, f"{where}: was reported before it was granted, and is not afterwards"
        assert left[name].allocatable == entry.allocatable, (
            f"{where}: what is allocatable was {dict(entry.allocatable)}, and is "
            f"{dict(left[name].allocatable)} once some is held"
        )
        gone = {node: free - left[name].free.get(node, 0) for node, free in entry.free.items()}
        rounded = len(gone) if promises.fractions else 0
        wanted = entry.wanted - rounded
        total = sum(gone.values())
        assert total >= wanted, (
            f"{where}: {entry.wanted} were granted and {total} fewer are free: the rest is granted twice"
        )
        resource, hint = offer
        if resource != name or hint.affinity is None or not promises.exact:
            continue
        alone = hint.affinity.bit_count() == 1 and not promises.fractions
        most = gone.get(hint.affinity.bit_length() - 1, 0) if alone else 0
        assert most <= entry.wanted, (
            f"{where}: {entry.wanted} were asked for on {told(hint)}, and {most} fewer are free there"
        )
        inside = sum(count for node, count in gone.items() if node >= 0 and hint.affinity >> node & 1)
        assert inside >= wanted, (
            f"{where}: granted on {told(hint)}, and only {inside} of {entry.wanted} came from there"
        )


def _check_granted(before: Allocator, after: Allocator, claim: Claim, where: str, promises: Promises) -> None:
    key, member = claim.owner.workload, claim.owner.member
    again = allocate(after, claim, ANYWHERE, where)
    assert again == after, f"{where}: a claim that is held was granted anew"
    check_copy(after)
    if promises.exact_release and not claim.reuse:  # what was lent may have changed hands for good
        same = released(after, key, member) == before
        assert same, f"{where}: releasing it did not restore the value"
    same = released(after, key, "no such") == after
    assert same, f"{where}: releasing an unknown member changed something"
