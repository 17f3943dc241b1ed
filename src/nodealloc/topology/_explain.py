"""Why a workload was refused, as fields, as a few lines, and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs

from nodealloc._typed import typed
from nodealloc.topology._admission import admit
from nodealloc.topology._asking import hints_of, released, reports_of
from nodealloc.topology._claims import Claim, Workload
from nodealloc.topology._errors import NoEvidenceError, WorkLimitError
from nodealloc.topology._evidence import Evidence
from nodealloc.topology._explanation import Explanation, Feasibility, ResourceView, Veto, WeakerFit
from nodealloc.topology._hints import Hints, NumaMask
from nodealloc.topology._options import Options, narrowed, options_of
from nodealloc.topology._policy import PolicyName
from nodealloc.topology._ports import Availability
from nodealloc.topology._snapshot import Affinities, Snapshot
from nodealloc.topology._verdicts import TOPOLOGY_WORK_LIMIT, Placed, Refusal
from nodealloc.verdicts import NotYet

__all__ = ["explain"]

_WORK_UNITS = 100_000
"""Work that may be spent on each question to a node that is not the one that was asked."""

_SEARCH_STEPS = 1000
"""Claims that are tried to tell whether a search would help; more would make explaining slow."""


@typed
def explain(refusal: Refusal, /) -> Explanation:
    """The long story of a refusal: what was free, who vetoed what, and what would help.

    It asks the allocators and `admit` again, about other policies and about the
    emptied node: the work of ten to some hundred admissions, each time that it
    is called. Nothing changes by it.

    Raises:
        NoEvidenceError: The refusal was pickled, or made by hand.
        ProviderError: An allocator raised, or answered with nonsense.
    """
    evidence = refusal.evidence
    if evidence is None:
        raise NoEvidenceError(refusal.workload, refusal.reason)
    snapshot = evidence.snapshot
    names = [allocator.name for allocator in evidence.allocators]
    options = options_of(_hints(evidence, refusal.claims), snapshot.numa.mask, names)
    if snapshot.policy.name is PolicyName.SINGLE_NUMA_NODE:
        options = [narrowed(one) for one in options]
    weaker = _weaker(evidence)
    return Explanation(
        workload=refusal.workload,
        members=tuple(claim.owner.member for claim in refusal.claims),
        reason=refusal.reason,
        policy=snapshot.policy.name,
        feasibility=_feasibility(evidence, refusal.reason, weaker),
        hint=refusal.hint,
        resources=_resources(reports_of(evidence.allocators, refusal.claims), options),
        vetoes=_vetoes(options, snapshot.numa.mask),
        weaker=weaker,
        shortfall=refusal.shortfall,
    )


def _hints(evidence: Evidence, claims: Sequence[Claim]) -> Sequence[Hints]:
    """What the allocators answered; they are pure, so they answer it again."""
    if evidence.snapshot.policy.name is PolicyName.NONE:
        return ()
    answers = hints_of(evidence.allocators, claims)
    return () if isinstance(answers, NotYet) else answers


def _weaker(evidence: Evidence) -> WeakerFit | None:
    snapshot = evidence.snapshot
    for name in snapshot.policy.name.weaker:
        affinity = _known_to_fit(_under(snapshot, name), evidence.workload)
        if affinity is not None:
            return WeakerFit(policy=name, affinity=affinity)
    return None


def _fits(snapshot: Snapshot, workload: Workload) -> Affinities | None:
    """Where a node would place it, or None; raises `WorkLimitError` where that is not known."""
    verdict = admit(snapshot, workload)
    if isinstance(verdict, Refusal) and verdict.exhausted:
        raise WorkLimitError(snapshot.policy.work_units)
    return verdict.affinity if isinstance(verdict, Placed) else None


def _known_to_fit(snapshot: Snapshot, workload: Workload) -> Affinities | None:
    """Where a node would place it; None when nowhere, or when nobody knows."""
    try:
        return _fits(snapshot, workload)
    except WorkLimitError:
        return None


def _under(snapshot: Snapshot, name: PolicyName) -> Snapshot:
    units = min(_WORK_UNITS, snapshot.policy.work_units)
    return attrs.evolve(snapshot, policy=attrs.evolve(snapshot.policy, name=name, work_units=units))


def _feasibility(evidence: Evidence, reason: str, weaker: WeakerFit | None) -> Feasibility:
    if reason == TOPOLOGY_WORK_LIMIT:
        return Feasibility.UNDECIDED
    try:
        return _decided(evidence, weaker)
    except WorkLimitError:
        return Feasibility.UNDECIDED


def _decided(evidence: Evidence, weaker: WeakerFit | None) -> Feasibility:
    snapshot, workload = evidence.snapshot, evidence.workload
    steps = min(_SEARCH_STEPS, snapshot.policy.search_steps)
    units = min(_WORK_UNITS, snapshot.policy.work_units)
    searching = attrs.evolve(
        snapshot, policy=attrs.evolve(snapshot.policy, search=True, search_steps=steps, work_units=units)
    )
    if not snapshot.policy.search and _known_to_fit(searching, workload) is not None:
        return Feasibility.UNLUCKY_ORDER
    emptied = _emptied(snapshot)
    if _fits(emptied, workload) is not None:
        return Feasibility.NOT_PREFERRED if weaker else Feasibility.NO_ROOM
    if weaker or any(_fits(_under(emptied, name), workload) for name in snapshot.policy.name.weaker):
        return Feasibility.NEVER_PREFERRED
    return Feasibility.NEVER_FITS


def _emptied(snapshot: Snapshot) -> Snapshot:
    allocators = snapshot.allocators
    for workload in snapshot.admitted:
        allocators = released(allocators, workload, None)
    return attrs.evolve(snapshot, allocators=allocators, admitted={})


def _resources(
    reports: Sequence[tuple[str, Availability]], options: Sequence[Options]
) -> tuple[ResourceView, ...]:
    views: dict[tuple[str, str], ResourceView] = {
        (one.provider, one.resource): ResourceView(
            provider=one.provider,
            resource=one.resource,
            possible=_shown(one.masks, any_node=one.any_node),
            preferred=_shown(one.good, any_node=one.any_good),
        )
        for one in options
    }
    for provider, report in reports:
        view = views.get((provider, report.resource)) or ResourceView(
            provider=provider, resource=report.resource, possible=(None,), preferred=(None,)
        )
        views[provider, report.resource] = attrs.evolve(
            view, wanted=report.wanted, free=dict(report.free), allocatable=dict(report.allocatable)
        )
    return tuple(views.values())


def _shown(masks: frozenset[NumaMask], *, any_node: bool) -> tuple[NumaMask | None, ...]:
    ordered = tuple(by_width(masks))
    return (*ordered, None) if any_node and not masks else ordered


def by_width(masks: Iterable[NumaMask]) -> list[NumaMask]:
    """Narrow masks first, then low ones."""
    return sorted(sorted(masks), key=int.bit_count)


def _vetoes(options: Sequence[Options], machine: NumaMask) -> tuple[Veto, ...]:
    wished: set[NumaMask] = set()
    for one in options:
        wished |= one.good
    return tuple(
        Veto(
            mask=mask,
            provider=one.provider,
            resource=one.resource,
            possible=one.allows(mask) or (one.any_node and mask & machine != 0 and bool(one.masks)),
        )
        for mask in by_width(wished)
        for one in options
        if not one.prefers(mask) and not one.any_good
    )
