"""Admission as a pure function: a snapshot and a workload in, a verdict out."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from nodealloc._arguments import check, wrong
from nodealloc._entries import with_entry, without_entry
from nodealloc._frozen import frozen
from nodealloc._typed import trusting
from nodealloc.podspec import Pod
from nodealloc.topology._asking import allocated, hints_of, nonsense, released
from nodealloc.topology._claims import Claim, Workload, with_claims
from nodealloc.topology._errors import HintError, WorkLimitError
from nodealloc.topology._evidence import Evidence
from nodealloc.topology._hints import TopologyHint
from nodealloc.topology._merge import merge
from nodealloc.topology._pods import workload_of
from nodealloc.topology._policy import PolicyName, Scope
from nodealloc.topology._ports import Allocator
from nodealloc.topology._search import Found, search
from nodealloc.topology._serving import unserved
from nodealloc.topology._snapshot import Affinities, Snapshot
from nodealloc.topology._utilization import allocated_shares
from nodealloc.topology._verdicts import Placed, Refusal, misfit, short, undecided
from nodealloc.topology._work import Work
from nodealloc.verdicts import NotYet

__all__ = ["admit", "release"]

# Members of an enumeration are slow to look up before Python 3.12.
_POD, _NONE = Scope.POD, PolicyName.NONE

_placed, _snapshot, _evidence = trusting(Placed), trusting(Snapshot), trusting(Evidence)
_ANY_NODE = TopologyHint(affinity=None, preferred=False)


def admit(snapshot: Snapshot, asked: Pod | Workload, /) -> Placed | Refusal | NotYet:
    """Whether a workload fits the node, all of it or nothing.

    A pure function: the snapshot stays as it is, and the same arguments have
    the same answer in any process. A workload that has been admitted is let in
    again with the affinities that it has, and the snapshot stays the same: members that
    hold nothing there, as they were released or came later, get nothing
    (`NodeAllocator`, which knows who was there, admits those that came later). A
    resource that nobody on the node serves is refused by its name, see
    `Snapshot.elsewhere`.

    Raises:
        ProviderError: An allocator raised, or answered with nonsense.
        HintError: An allocator's hints are none, or name absent nodes.
        ConfigurationError: Something else than a snapshot and a pod or workload
            came, a workload has no claims or no key, or a pod made by hand has no
            container, two of one name, or no uid: the next one without would be
            taken for it.

    Source: kubelet v1.32 ``cm/topologymanager/scope_*.go``.
    """
    if snapshot.__class__ is not Snapshot:
        raise wrong("admit, first argument", snapshot, "a Snapshot")
    workload = workload_of(asked) if isinstance(asked, Pod) else with_claims(asked)
    known = snapshot.admitted.get(workload.key)
    if known is not None:
        return Placed(workload=workload.key, snapshot=snapshot, affinity=known, repeated=True)
    lacking = unserved(snapshot.allocators, snapshot.elsewhere, workload.claims)
    if lacking is not None:
        context = Evidence(snapshot=snapshot, workload=workload, allocators=snapshot.allocators)
        return short(context, lacking[0], _ANY_NODE, "", lacking[1])
    work = Work(snapshot.policy.work_units)
    verdict = _settle(snapshot, workload, work)
    if not (snapshot.policy.search and isinstance(verdict, Refusal)):
        return verdict
    found = search(snapshot, workload, work)
    if isinstance(found, Found):
        return _admitted(snapshot, workload, found.allocators, found.affinity)
    return attrs.evolve(verdict, steps=found.steps, exhausted=found.exhausted)


def release(snapshot: Snapshot, workload: str, member: str | None = None, /) -> Snapshot:
    """The node without what a member, or the whole workload, holds.

    What another member still holds stays held. Releasing what is not there is
    answered with the same snapshot.

    Raises:
        ProviderError: An allocator raised, or answered with nonsense.
    """
    check("release, first argument", snapshot, Snapshot, "a Snapshot")
    if workload.__class__ is not str or member is not None:
        check("release", workload, str, "a workload's key (owner.workload, pod.uid)")
        check("release", member or "", str, "a member's name (owner.member), or None for all")
    allocators = released(snapshot.allocators, workload, member)
    admitted = snapshot.admitted
    held = admitted.get(workload)
    if held is not None:
        left = {} if member is None else {name: hint for name, hint in held.items() if name != member}
        if not left or left != held:
            admitted = without_entry(admitted, workload)
        if left and left != held:
            admitted = with_entry(admitted, workload, left)
    if admitted is snapshot.admitted and allocators == snapshot.allocators:
        return snapshot
    return _next(snapshot, allocators, admitted)


def _settle(snapshot: Snapshot, workload: Workload, work: Work) -> Placed | Refusal | NotYet:
    """Claim by claim as the kubelet does it: what is settled once stays."""
    together = snapshot.scope is _POD and snapshot.policy.name is not _NONE
    allocators = snapshot.allocators
    affinity: dict[str, TopologyHint] = {}
    hint = _ANY_NODE
    if together:
        placed = _place(snapshot, workload, workload.claims, allocators, work)
        if not isinstance(placed, TopologyHint):
            return placed
        hint = placed
    for claim in workload.claims:
        if not together:
            placed = _place(snapshot, workload, (claim,), allocators, work)
            if not isinstance(placed, TopologyHint):
                return placed
            hint = placed
        try:
            granted = allocated(allocators, claim, hint)
        except WorkLimitError as limit:
            context = Evidence(snapshot=snapshot, workload=workload, allocators=allocators)
            return undecided(context, (claim,), limit)
        if not isinstance(granted, tuple):
            if isinstance(granted.answer, NotYet):
                return granted.answer
            context = _evidence(snapshot=snapshot, workload=workload, allocators=allocators)
            try:
                return short(context, claim, hint, granted.provider, granted.answer)
            except (TypeError, ValueError) as error:
                raise nonsense(granted.provider, claim, granted.answer, error) from error
        allocators = granted
        affinity[claim.owner.member] = hint
    return _admitted(snapshot, workload, allocators, affinity)


def _place(
    snapshot: Snapshot,
    workload: Workload,
    claims: tuple[Claim, ...],
    allocators: tuple[Allocator, ...],
    work: Work,
) -> TopologyHint | Refusal | NotYet:
    """Where claims should go together; under policy `none` nobody is asked."""
    policy = snapshot.policy
    if policy.name is _NONE:
        return _ANY_NODE
    try:
        hints = hints_of(allocators, claims)
        if not isinstance(hints, list):
            return hints
        shares = allocated_shares(allocators, claims) if policy.comparison is not None else None
        try:
            found = merge(policy, hints, snapshot.numa, (), shares, work)
        except HintError:  # asked again with names, for a message that says whose hints are wrong
            merge(policy, hints, snapshot.numa, [allocator.name for allocator in allocators])
            raise
    except WorkLimitError as limit:
        return undecided(Evidence(snapshot=snapshot, workload=workload, allocators=allocators), claims, limit)
    if found.admit:
        return found.hint
    context = _evidence(snapshot=snapshot, workload=workload, allocators=allocators)
    return misfit(context, claims, found.hint)


def _admitted(
    snapshot: Snapshot, workload: Workload, allocators: tuple[Allocator, ...], affinity: Affinities
) -> Placed:
    key, held = workload.key, frozen(affinity)
    after = _next(snapshot, allocators, with_entry(snapshot.admitted, key, held))
    return _placed(workload=key, snapshot=after, affinity=held)


def _next(
    snapshot: Snapshot, allocators: tuple[Allocator, ...], admitted: Mapping[str, Affinities]
) -> Snapshot:
    return _snapshot(
        numa=snapshot.numa,
        policy=snapshot.policy,
        scope=snapshot.scope,
        allocators=allocators,
        admitted=admitted,
        generation=snapshot.generation + 1,
        elsewhere=snapshot.elsewhere,
    )
