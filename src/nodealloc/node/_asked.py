"""What a node is asked for: claims, and the pod that they are of, if it is one; values only."""

from __future__ import annotations

from collections.abc import Iterable

from nodealloc import _attrs as attrs
from nodealloc.errors import DecodeError
from nodealloc.node._holdings import Held
from nodealloc.node._record import WorkloadRecord
from nodealloc.podfacts import LifeState, NodeView, PodOnNode
from nodealloc.podspec import Json, Pod, Quantity
from nodealloc.topology import Affinities, Claim, ClaimKind, Holding, Workload, peak, workload_of

__all__ = ["Asked", "known_pods", "with_ending"]


@attrs.frozen
class Asked:
    """A workload that is asked for.

    Attributes:
        workload: Its claims.
        pod: Whose they are; None for claims that are no pod's.
    """

    workload: Workload
    pod: Pod | None = None

    @classmethod
    def of(cls, asked: Pod | Workload, /) -> Asked:
        """From either.

        Raises:
            ConfigurationError: A pod without containers.
        """
        return cls(workload_of(asked), asked) if isinstance(asked, Pod) else cls(asked)

    def later_than(self, record: WorkloadRecord | None, /) -> tuple[Claim, ...]:
        """Claims of members that were not there when the workload was admitted, or lent what is not lent now.

        An init container that an edit makes a sidecar or a main container, or moves
        behind one that it lent to, runs beside whoever reuses what it held. None of a
        workload that was taken over without its claims: nobody knows who was there.
        """
        if record is None or not record.workload.claims:
            return ()
        there = {claim.owner: claim for claim in record.workload.claims}
        lent: set[str] = set()
        for claim in self.workload.claims:
            had = there.get(claim.owner)
            if had is not None and had.reuse != claim.reuse:
                lent.update(set(had.reuse) - set(claim.reuse))
        return tuple(
            claim for claim in self.workload.claims if claim.owner not in there or claim.owner.member in lent
        )

    def joined_to(self, record: WorkloadRecord, /) -> tuple[Claim, ...]:
        """Its claims, and those of members that went, once those that came later are in.

        Who was there is remembered with the amounts that it holds.
        """
        if not record.workload.claims:
            return ()
        later = {claim.owner for claim in self.later_than(record)}
        there = {claim.owner: claim for claim in record.workload.claims}
        now = [
            claim if claim.owner in later else attrs.evolve(claim, amounts=there[claim.owner].amounts)
            for claim in self.workload.claims
        ]
        return (*now, *self.gone_from(record))

    def gone_from(self, record: WorkloadRecord, /) -> tuple[Claim, ...]:
        """Claims of members that an edit took out: they hold what they have until the workload is released.

        An init container is not among them. Others may reuse what it held, so that it
        comes later where it comes again.
        """
        stay = {claim.owner for claim in self.workload.claims}
        return tuple(
            claim
            for claim in record.workload.claims
            if claim.owner not in stay and claim.kind is not ClaimKind.INIT
        )

    def is_other_than(self, record: WorkloadRecord, seen: PodOnNode | None, /) -> bool:
        """Whether it asks for something else than what was admitted: a member, amounts of one, or ports.

        Of a workload that was taken over without its claims nobody knows; then it does not.
        """
        if self.later_than(record):
            return True
        had = {claim.owner: claim.amounts for claim in record.workload.claims}
        if any(claim.amounts != had.get(claim.owner, claim.amounts) for claim in self.workload.claims):
            return True
        if self.pod is None or seen is None or record.manifest is None:
            return False
        return seen.host_ports != self.on_node(seen.state).host_ports

    def is_in(self, held: Held) -> bool:
        """Whether all of it was admitted before."""
        key = self.workload.key
        return key in held.snapshot.admitted and not self.later_than(held.records.get(key))

    def manifest(self) -> Json:
        """What is remembered of the pod."""
        return None if self.pod is None else self.pod.to_manifest()

    def record(self, *, order: int, affinity: Affinities) -> WorkloadRecord:
        """What is remembered of it."""
        return WorkloadRecord(
            workload=self.workload, order=order, affinity=affinity, manifest=self.manifest()
        )

    def seen_in(self, view: NodeView, /) -> NodeView:
        """The view with it in; in the state in which it was before."""
        before = view.pods.get(self.workload.key)
        return view.with_pod(self.on_node(LifeState.SYNCING if before is None else before.state))

    def on_node(self, state: LifeState, /) -> PodOnNode:
        """As others who are judged see it."""
        if self.pod is None:
            return _without_pod(self.workload, state)
        return PodOnNode.of(self.pod, state=state)


def known_pods(
    records: Iterable[WorkloadRecord], held: Iterable[Holding], /
) -> tuple[list[PodOnNode], dict[str, str]]:
    """What is in already, as far as it is remembered, and by workload why a manifest could not be read.

    Args:
        records: What is remembered.
        held: What is held, which is all that is known where the claims are not.
    """
    amounts: dict[str, dict[str, Quantity]] = {}
    for one in held:
        of_workload = amounts.setdefault(one.owner.workload, {})
        of_workload[one.resource] = of_workload.get(one.resource, Quantity()) + Quantity.of(one.amount)
    pods: list[PodOnNode] = []
    unreadable: dict[str, str] = {}
    for record in records:
        key = record.workload.key
        try:
            pod = (
                None
                if record.manifest is None
                else Pod.from_manifest(record.manifest, source=f"record {key}")
            )
        except DecodeError as error:
            pod, unreadable[key] = None, str(error)
        if pod is not None:
            pods.append(PodOnNode.of(pod))
        elif record.workload.claims:
            pods.append(_without_pod(record.workload, LifeState.SYNCING))
        else:
            pods.append(PodOnNode(pod=Pod(uid=key), requests=amounts.get(key, {})))
    return pods, unreadable


def _without_pod(workload: Workload, state: LifeState) -> PodOnNode:
    names = dict.fromkeys(name for claim in workload.claims for name in claim.amounts)
    requests = {name: Quantity(nanos=_peak_nanos(workload, name)) for name in names}
    return PodOnNode(pod=Pod(uid=workload.key), requests=requests, state=state)


def _peak_nanos(workload: Workload, resource: str) -> int:
    def nanos(claim: Claim) -> int:
        amount = claim.amounts.get(resource)
        return 0 if amount is None else amount.nanos

    return peak(workload.claims, nanos)


def with_ending(view: NodeView, pod: Pod | str, /) -> NodeView:
    """A view in which a pod has to end, as it was there before; the same one where it ends already.

    Args:
        view: Of the node.
        pod: By its uid it changes nothing where it is not there; as a pod it is there afterwards.
    """
    there = view.pods.get(pod if isinstance(pod, str) else pod.uid)
    if there is None:
        return view if isinstance(pod, str) else view.with_pod(Asked.of(pod).on_node(LifeState.TERMINATING))
    if there.state.is_ending:
        return view
    return view.with_pod(attrs.evolve(there, state=LifeState.TERMINATING))
