"""Pure functions: what of a listing is known without an inspection, and what has to be asked."""

from __future__ import annotations

from typing import NamedTuple

from nodealloc.runtime._listing import PodListing
from nodealloc.runtime._records import RunState
from nodealloc.runtime._reports import ContainerReport, PodReport, SandboxReport

__all__ = ["Unasked", "unasked"]


class Unasked(NamedTuple):
    """What a listing says of a pod, for those who have the report that was made before it.

    Attributes:
        report: What is known of it without asking.
        due: What has to be asked; None where nothing has.
    """

    report: PodReport
    due: PodListing | None

    def with_told(self, told: PodReport, /) -> PodReport:
        """This with what an inspection told: its records count."""
        boxes = {one.record.id: one for one in (*self.report.sandboxes, *told.sandboxes)}
        runs = {one.record.id: one for one in (*self.report.containers, *told.containers)}
        return PodReport.of(self.report.uid, boxes.values(), runs.values())


def unasked(listing: PodListing, before: PodReport | None, /) -> Unasked:
    """What is known of a pod by its listing and its last report.

    Of a sandbox or container in the state in which it was inspected nothing changes any more:
    not its addresses, once it has some, nor when it began, nor how it ended. Of one that was made
    and has not begun a listing says all there is.

    Source: ours; a kubelet asks for all of a pod each time.
    """
    boxes = {one.record.id: one for one in (() if before is None else before.sandboxes)}
    runs = {one.record.id: one for one in (() if before is None else before.containers)}
    known_boxes = [boxes[one.id] for one in listing.sandboxes if _stays(boxes.get(one.id), one.is_ready)]
    known_runs = [
        ContainerReport(record=one) if one.state is RunState.CREATED else runs[one.id]
        for one in listing.containers
        if one.state is RunState.CREATED or _is_settled(runs.get(one.id), one.state)
    ]
    known = PodReport.of(listing.uid, known_boxes, known_runs)
    there_boxes = {one.record.id for one in known_boxes}
    there_runs = {one.record.id for one in known_runs}
    due_boxes = tuple(one for one in listing.sandboxes if one.id not in there_boxes)
    due_runs = tuple(one for one in listing.containers if one.id not in there_runs)
    if not (due_boxes or due_runs):
        return Unasked(known, None)
    return Unasked(known, PodListing(uid=listing.uid, sandboxes=due_boxes, containers=due_runs))


def _stays(before: SandboxReport | None, is_ready: bool) -> bool:
    """Whether a sandbox is as it was, with nothing of it still to come."""
    if before is None or before.record.is_ready is not is_ready:
        return False
    return before.uses_host_network or bool(before.ips) or not is_ready


def _is_settled(before: ContainerReport | None, state: RunState) -> bool:
    """Whether a container is as it was; of one whose state nobody knows that cannot be said."""
    return before is not None and before.record.state is state and state is not RunState.UNKNOWN
