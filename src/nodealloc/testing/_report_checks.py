"""What an allocator reports, held against what is granted and given back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from nodealloc.testing._allocator_calls import (
    ANYWHERE,
    Promises,
    allocate,
    figures,
    pinned,
    released,
    stranger,
)
from nodealloc.testing._allocator_checks import check_accounts, check_hints
from nodealloc.testing._wording import has_fractions
from nodealloc.topology import ClaimKind, NotYet, Reports, Shortfall

if TYPE_CHECKING:
    from nodealloc.topology import Allocator, Availability, NumaTopology, Workload

__all__ = ["check_entry", "check_figures", "check_unused"]


def check_unused(allocator: Allocator, asked: Workload) -> None:
    """Of what nobody holds all is free."""
    for claim in () if has_fractions(asked) else asked.claims:
        for name, entry in figures(allocator, claim).items():
            assert entry.free == entry.allocatable, (
                f"{name}: nobody holds any, {dict(entry.free)} are free of {dict(entry.allocatable)}"
            )


def check_entry(entry: Availability, asked: Workload, numa: NumaTopology) -> None:
    """One resource as it is reported: whole figures, for what is wanted, on nodes that are there."""
    about = entry.resource
    named = {resource for claim in asked.claims for resource in claim.amounts}
    assert about in named, f"{about} was not asked for"
    assert entry.wanted > 0, f"{about}: an entry is for what is wanted, found {entry.wanted}"
    most = sum(claim.amounts[about].value for claim in asked.claims if about in claim.amounts)
    assert entry.wanted <= most, f"{about}: {entry.wanted} are said to be wanted, all claims ask for {most}"
    for node in {*entry.free, *entry.allocatable}:
        assert node == -1 or numa.mask >> node & 1, f"{about}: the machine has no NUMA node {node}"
        free, ever = entry.free.get(node, 0), entry.allocatable.get(node, 0)
        assert 0 <= free <= ever, f"{about}, node {node}: {free} free of {ever}"


def check_figures(allocator: Allocator, asked: Workload, numa: NumaTopology) -> None:
    """Figures that go down with every grant and come back with the release."""
    promises = Promises(
        numa=numa,
        every_hint_grants=False,
        exact_release=False,
        exact_hints=False,
        fractions=has_fractions(asked),
    )
    for claim in asked.claims:
        shown, much = figures(allocator, claim), figures(allocator, stranger(claim, 1 << 20))
        assert shown.keys() == much.keys(), (
            f"{allocator.name}: {', '.join(shown) or 'nothing'} is reported for a claim, and "
            f"{', '.join(much) or 'nothing'} where more is wanted than there is"
        )
        entries = allocator.availability(asked.claims) if isinstance(allocator, Reports) else ()
        whole = {one.resource: one.wanted for one in entries}
        for name, entry in shown.items():
            assert whole.get(name, 0) >= entry.wanted, (
                f"{name}: a claim wants {entry.wanted}, all together {whole.get(name, 0)}"
            )
    _check_sum(allocator, asked, promises)
    value = allocator
    for claim in (attrs.evolve(claim, reuse=()) for claim in asked.claims):
        hints = check_hints(value, (claim,), promises)
        answer = allocate(value, claim, ANYWHERE, f"{value.name}, claim {claim.owner.member}")
        if isinstance(answer, (Shortfall, NotYet)) or not pinned(hints):
            continue
        check_accounts(value, answer, claim, ("", ANYWHERE), promises)
        value = answer
    for claim in asked.claims:
        shown, left = figures(allocator, claim), figures(released(value, asked.key), claim)
        assert left == shown, (
            f"{allocator.name}: {asked.key} was granted and released, and the figures are others"
        )


def _check_sum(allocator: Allocator, asked: Workload, promises: Promises) -> None:
    """Main members run at the same time: all together want at least their sum."""
    if not isinstance(allocator, Reports):
        return
    whole = {one.resource: one.wanted for one in allocator.availability(asked.claims)}
    mains = [figures(allocator, claim) for claim in asked.claims if claim.kind is ClaimKind.MAIN]
    for resource, wanted in whole.items():
        single = [shown[resource].wanted for shown in mains if resource in shown]
        least = sum(single) - (len(single) if promises.fractions else 0)
        assert wanted >= least, (
            f"{resource}: {wanted} are said to be wanted by all together, the main members want {sum(single)}"
        )
