"""Values only: what is known of one pod, with the ends of its containers kept for good."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from nodealloc import _attrs as attrs
from nodealloc._arguments import check
from nodealloc._frozen import Frozen, freeze
from nodealloc._typed import typed_fields
from nodealloc.errors import ConfigurationError
from nodealloc.podfacts import ExitUnknown
from nodealloc.runtime._listing import Marks, PodListing
from nodealloc.runtime._records import RunState
from nodealloc.runtime._reports import ContainerReport, Exit, PodReport

__all__ = ["ContainerEnd", "PodKnown"]

_ENDS: Final = 2
"""Of one container: how it is, and how it was before."""


@typed_fields
@attrs.frozen(kw_only=True)
class ContainerEnd:
    """How one instance of a container ended; kept when the runtime has forgotten it.

    Attributes:
        name: As the pod names the container.
        attempt: Of the instance.
        exit: How; `ExitUnknown` where its record went before anybody read it.
        reason: The runtime's word, or "".
        message: For people, or "".
        started_unix_s: When it began, in Unix seconds; None where nobody knows.
        finished_unix_s: When it ended, likewise.
        image: What it was made from, as it was named then; "" where nobody knows.
        image_id: The runtime's id of that; "" likewise.
    """

    name: str
    attempt: int = 0
    exit: Exit
    reason: str = ""
    message: str = ""
    started_unix_s: float | None = None
    finished_unix_s: float | None = None
    image: str = ""
    image_id: str = ""


@attrs.frozen(kw_only=True)
class PodKnown:
    """What is known of one pod.

    Attributes:
        uid: The pod's.
        report: Its last inspection; None before the first, and when nothing of it is left.
        marks: Ids and states that the report answers to: equal to those of the
            newest listing, it is up to date.
        fault: Why it is not known how the pod is, in words; "" for known.
        ends: Instances that have ended, by id: those that the runtime still has a record of,
            and of each container the two newest. The first word on each stays.
        live: Instances that had not ended when last looked at, by id: name and attempt.

    Raises:
        ConfigurationError: The report is of another pod.
    """

    uid: str
    report: PodReport | None = None
    marks: Marks = attrs.field(factory=Frozen[str, RunState], validator=freeze)
    fault: str = ""
    ends: Mapping[str, ContainerEnd] = attrs.field(factory=Frozen[str, ContainerEnd], validator=freeze)
    live: Mapping[str, tuple[str, int]] = attrs.field(factory=Frozen[str, tuple[str, int]], validator=freeze)

    def __attrs_post_init__(self) -> None:
        if self.report is None:
            return
        check("PodKnown.report", self.report, PodReport, "a PodReport, or None")
        if self.report.uid != self.uid:
            raise ConfigurationError(
                f"PodKnown is of pod {self.uid}, and the report is of pod {self.report.uid}; "
                "inspect the pod by its uid"
            )

    def is_current(self, listing: PodListing | None, /) -> bool:
        """Whether it speaks of what that listing shows, and nothing is in doubt."""
        return not self.fault and self.marks == ({} if listing is None else listing.marks)

    def inspected(self, report: PodReport, marks: Marks, /, *, asked: PodListing | None = None) -> PodKnown:
        """After an inspection that was made because of these marks.

        Args:
            report: All that is known of the pod now.
            marks: Those of the listing.
            asked: What the inspection was about. Who had begun by then and has no record any more
                is known to have ended all the same.
        """
        ends = dict(self.ends)
        ran = {**self.live, **_begun(asked)}
        live: dict[str, tuple[str, int]] = {}
        for one in report.containers:
            record = one.record
            if one.exit is not None:
                ends.setdefault(record.id, _end(one, one.exit))
            elif record.state is not RunState.CREATED:
                live[record.id] = (record.name, record.attempt)
        there = {one.record.id for one in report.containers}
        return attrs.evolve(
            self,
            report=report,
            marks=marks,
            fault="",
            ends=_kept({**ends, **_vanished(ran, there, ends)}, there),
            live=live,
        )

    def gone(self) -> PodKnown:
        """After a listing in which nothing of the pod is left."""
        ends = {**self.ends, **_vanished(self.live, set(), self.ends)}
        return PodKnown(uid=self.uid, ends=_kept(ends, set()))


def _begun(listing: PodListing | None) -> Mapping[str, tuple[str, int]]:
    """Instances that a listing shows to have begun, by id: name and attempt."""
    listed = () if listing is None else listing.containers
    return {one.id: (one.name, one.attempt) for one in listed if one.state is not RunState.CREATED}


def _kept(ends: Mapping[str, ContainerEnd], there: set[str]) -> Mapping[str, ContainerEnd]:
    """Without the oldest of those whose records are gone; what is told of a container goes back two."""
    if len(ends) <= _ENDS:
        return ends
    newest: dict[str, list[tuple[int, str]]] = {}
    for one, end in ends.items():
        newest.setdefault(end.name, []).append((end.attempt, one))
    kept = {one for those in newest.values() for _, one in sorted(those)[-_ENDS:]} | there
    return {one: end for one, end in ends.items() if one in kept}


def _end(one: ContainerReport, exit: Exit) -> ContainerEnd:  # noqa: A002 - the field's word
    return ContainerEnd(
        name=one.record.name,
        attempt=one.record.attempt,
        exit=exit,
        reason=one.reason,
        message=one.message,
        started_unix_s=one.started_unix_s,
        finished_unix_s=one.finished_unix_s,
        image=one.record.image,
        image_id=one.record.image_id,
    )


def _vanished(
    live: Mapping[str, tuple[str, int]], there: set[str], ends: Mapping[str, ContainerEnd]
) -> Mapping[str, ContainerEnd]:
    """Who ran, and is neither there nor known to have ended."""
    return {
        one: ContainerEnd(
            name=name,
            attempt=attempt,
            exit=ExitUnknown(),
            reason="ContainerStatusUnknown",
            message="its record was gone before anybody read how it ended",
        )
        for one, (name, attempt) in live.items()
        if one not in there and one not in ends
    }
