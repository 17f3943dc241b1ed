"""From what a node holds to an answer and a change; decides, writes nothing, waits for nobody."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias, TypeVar, Union

from nodealloc import _attrs as attrs
from nodealloc._arguments import check, is_other, wrong
from nodealloc.errors import ConfigurationError
from nodealloc.node._adoption import adopted, left_out
from nodealloc.node._asked import Asked, known_pods, with_ending
from nodealloc.node._confinement import confinement_of
from nodealloc.node._errors import NotAdmittedError
from nodealloc.node._holdings import Change, Held
from nodealloc.node._ledger import Ledger
from nodealloc.node._loading import Loaded, StartReport
from nodealloc.node._record import WorkloadRecord
from nodealloc.node._views import holdings
from nodealloc.podfacts import NodeView, PodsOnNode
from nodealloc.podspec import Pod
from nodealloc.topology import (
    Allocator,
    Confinement,
    NotYet,
    Owner,
    Placed,
    release,
)
from nodealloc.verdicts import Refused

__all__ = ["Decisions", "Verdict"]

T = TypeVar("T")
Verdict: TypeAlias = Union[Placed, Refused, NotYet]
Decision: TypeAlias = tuple[T, Union[Change, None]]
"""An answer, and what it makes of what is held; None for no change."""


@attrs.frozen
class Decisions:
    """What a node decides, each decision a pure function.

    Attributes:
        ledger: In whose words changes are written.
        admits_anew: Whether pods that are remembered are seen only once they were admitted again.
    """

    ledger: Ledger
    admits_anew: bool = False

    def loaded(self, held: Held, found: Loaded) -> tuple[StartReport, Change]:
        """What a start reports, and the node with all that was remembered."""
        pods, unreadable = known_pods(found.records.values(), holdings(found.snapshot))
        records = tuple(
            attrs.evolve(one, manifest=None) if one.workload.key in unreadable else one
            for one in found.records.values()
        )
        notes = (f"the pod in record {key} cannot be read: {why}" for key, why in unreadable.items())
        report = attrs.evolve(found.report, notes=(*found.report.notes, *notes))
        if self.admits_anew:
            asked_again = {one.workload.key for one in records if one.manifest is not None}
            pods = [one for one in pods if one.pod.uid not in asked_again]
        there = attrs.evolve(held.view, pods=PodsOnNode([*held.view.pods.values(), *pods]))
        return report, Change(snapshot=found.snapshot, records=records, set_aside=found.set_aside, view=there)

    def placed(self, held: Held, asked: Asked, verdict: Verdict) -> Decision[Verdict]:
        """What an admission's verdict changes."""
        if not isinstance(verdict, Placed):
            return verdict, None
        workload, after = asked.workload, verdict.snapshot
        if not verdict.repeated:
            known = held.records.get(workload.key)
            if known is None:
                record = asked.record(order=after.generation, affinity=verdict.affinity)
            else:
                joined = attrs.evolve(known.workload, claims=asked.joined_to(known))
                affinity = verdict.affinity
                record = attrs.evolve(known, workload=joined, affinity=affinity, manifest=asked.manifest())
            return verdict, self.ledger.change(held.snapshot, after, [record], view=asked.seen_in(held.view))
        known = held.records.get(workload.key)
        if known is None:
            return verdict, None
        # What was taken over without its claims, or without its pod, gets them when it is met again.
        claims = known.workload if known.workload.claims else workload
        manifest = asked.manifest() if known.manifest is None else known.manifest
        if claims is known.workload and manifest is known.manifest:
            if not self.admits_anew or workload.key in held.view.pods:
                return verdict, None
            return verdict, Change(snapshot=held.snapshot, view=asked.seen_in(held.view))
        record = attrs.evolve(known, workload=claims, manifest=manifest)
        return verdict, self.ledger.change(held.snapshot, after, [record], view=asked.seen_in(held.view))

    def resized(self, held: Held, asked: Asked, verdict: Verdict) -> Decision[Verdict]:
        """What it changes that a pod has other resources."""
        known = held.records.get(asked.workload.key)
        if not isinstance(verdict, Placed) or known is None:
            return verdict, None
        claims = (*asked.workload.claims, *asked.gone_from(known))
        workload = attrs.evolve(asked.workload, claims=claims)
        record = attrs.evolve(known, workload=workload, affinity=verdict.affinity, manifest=asked.manifest())
        view = asked.seen_in(held.view)
        return verdict, self.ledger.change(held.snapshot, verdict.snapshot, [record], view=view)

    def adopted(self, held: Held, asked: Asked, running: Mapping[str, Confinement]) -> Decision[None]:
        """A workload taken over where it runs; one that is known stays as it is.

        Raises:
            AdoptionError: It runs on something that others hold, or that cannot be had.
            ConfigurationError: No claims, nothing that runs, or a member that it has not.
        """
        workload = asked.workload
        if workload.key in held.snapshot.admitted:
            return None, None
        after = adopted(held.snapshot, workload, running)
        record = asked.record(order=after.generation, affinity=after.admitted[workload.key])
        # Who does not run is granted when the workload is admitted again, and could not start else.
        told = tuple(claim for claim in workload.claims if not left_out(claim, running))
        record = attrs.evolve(record, workload=attrs.evolve(workload, claims=told))
        return None, self.ledger.change(held.snapshot, after, [record], view=asked.seen_in(held.view))

    def viewed(self, held: Held, change: Callable[[NodeView], NodeView]) -> Decision[NodeView]:
        """The view after a function of it, which leaves pods where they are.

        Raises:
            ConfigurationError: It does not.
        """
        view = check("alter_view, what the function answered", change(held.view), NodeView, "a NodeView")
        if view.pods is not held.view.pods and view.pods.keys() != held.view.pods.keys():
            raise ConfigurationError(
                f"the view of {view.name} would have other pods; they come by `admit`, and go by `release`"
            )
        return view, None if view is held.view else Change(snapshot=held.snapshot, view=view)

    def ending(self, held: Held, pod: Pod | str) -> Decision[None]:
        """The view in which a pod has to end."""
        view = with_ending(held.view, pod)
        return None, None if view is held.view else Change(snapshot=held.snapshot, view=view)

    def released(self, held: Held, workload: str, member: str | None) -> Decision[bool]:
        """Whether anything was held, and the node without it."""
        record = held.records.get(workload)
        seen = held.view.pods.get(workload)
        if record is None and member is None and seen is not None and seen.state.is_ending:
            # It was never admitted here: it stood in the view alone, and nothing of it is remembered.
            return False, Change(snapshot=held.snapshot, view=held.view.without(workload))
        after = release(held.snapshot, workload, member)
        if record is None or after is held.snapshot:
            return False, None
        left = after.admitted.get(workload)
        if left is None:
            view = held.view.without(workload)
            return True, self.ledger.change(held.snapshot, after, forgotten=(workload,), view=view)
        bound = {name: one for name, one in record.bound.items() if name in left}
        record = attrs.evolve(record, affinity=left, bound=bound)
        return True, self.ledger.change(held.snapshot, after, [record])

    def released_as_it_was(self, held: Held, record: WorkloadRecord) -> Decision[bool]:
        """The same for a whole workload, unless anything about it has changed since."""
        key = record.workload.key
        return self.released(held, key, None) if held.records.get(key) is record else (False, None)

    def bound(self, held: Held, owner: Owner, container_id: str) -> Decision[Confinement]:
        """Where a container may run, and its owner bound to it.

        Raises:
            NotAdmittedError: The owner holds nothing here.
        """
        if is_other(container_id, str) or not container_id:
            raise wrong("before_start: container_id", container_id, "the runtime's id of the container")
        record = held.records.get(owner.workload)
        if record is None or owner.member not in record.affinity:
            raise NotAdmittedError(owner)
        where = confinement_of(held.snapshot, owner)
        if record.bound.get(owner.member) == container_id:
            return where, None
        bound = {**record.bound, owner.member: container_id}
        return where, self._rewritten(held, attrs.evolve(record, bound=bound))

    def unbound(self, held: Held, owner: Owner, container_id: str) -> Decision[bool]:
        """Whether this very container was bound, and its owner without it."""
        record = held.records.get(owner.workload)
        if record is None or record.bound.get(owner.member) != container_id:
            return False, None
        bound = {name: one for name, one in record.bound.items() if name != owner.member}
        return True, self._rewritten(held, attrs.evolve(record, bound=bound))

    def altered(
        self, held: Held, name: str, change: Callable[[Allocator], Allocator]
    ) -> Decision[tuple[Allocator, Allocator]]:
        """One allocator before and after a function of it.

        Raises:
            UnknownAllocatorError: No allocator has that name.
        """
        before = held.snapshot[name]
        after = change(before)
        if after is before:
            return (before, after), None
        if getattr(after, "name", None) != name:
            expected = f"an allocator named {name!r}, which takes the place of the former one"
            raise wrong(f"alter {name!r}, what the function answered", after, expected)
        allocators = tuple(after if one is before else one for one in held.snapshot.allocators)
        generation = held.snapshot.generation + 1
        snapshot = attrs.evolve(held.snapshot, allocators=allocators, generation=generation)
        regranted = self.ledger.regranted(before, after, held)
        return (before, after), self.ledger.change(held.snapshot, snapshot, regranted)

    def _rewritten(self, held: Held, record: WorkloadRecord) -> Change:
        return self.ledger.change(held.snapshot, held.snapshot, [record])
