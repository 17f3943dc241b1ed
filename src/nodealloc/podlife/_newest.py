"""The newest instance of each container of a pod, as decisions look at it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from nodealloc.podfacts import Exited
from nodealloc.runtime import OOM_KILLED, RunState

if TYPE_CHECKING:
    from collections.abc import Container, Mapping, Sequence

    from nodealloc.podlife._plan import PodSeen
    from nodealloc.runtime import ContainerEnd, ContainerReport, Exit

__all__ = ["Latest", "Looked", "look"]

# A member of an enum costs a call at each use before Python 3.12, and these are used for every container.
_EXITED: Final = RunState.EXITED
_RUNNING: Final = RunState.RUNNING
_UNKNOWN: Final = RunState.UNKNOWN


class Latest(NamedTuple):
    """The newest instance of one container; its report is None where only its end is kept, by its id."""

    state: RunState
    exit: Exit | None
    reason: str
    report: ContainerReport | None
    kept_id: str = ""

    @property
    def id(self) -> str:
        """The runtime's id; "" where it has no record of it any more."""
        return "" if self.report is None else self.report.record.id

    @property
    def succeeded(self) -> bool:
        """Whether it ended with 0."""
        return type(self.exit) is Exited and self.exit.code == 0

    @property
    def failed_init(self) -> bool:
        """Whether an init container has to be tried again.

        Also with exit status 0 where memory ran out: it may have lost a child.
        """
        if self.state is _EXITED:
            return self.reason == OOM_KILLED or not self.succeeded
        return self.reason == OOM_KILLED or self.state is _UNKNOWN


class Looked(NamedTuple):
    """All that a decision looks at: newest instances by name, and older ones that still run."""

    newest: Mapping[str, Latest]
    older: Sequence[ContainerReport]


def look(seen: PodSeen, names: Container[str], /, *, keeps_ends: bool) -> Looked:
    """Take the first report of each name; kept ends stand in for records that are gone, newer ones as well.

    Args:
        seen: What is known of the pod.
        names: Of all its containers; of others only those that live are told, as older ones.
        keeps_ends: Whether kept ends count.
    """
    newest: dict[str, Latest] = {}
    older: list[ContainerReport] = []
    for one in seen.report.containers:
        record = one.record
        name = record.name
        if name not in newest:
            newest[name] = Latest(record.state, one.exit, one.reason, one)
            if name in names:
                continue
        if record.state is _RUNNING or record.state is _UNKNOWN:
            older.append(one)
    if keeps_ends:
        for name, end in seen.ends.items():
            known = newest.get(name)
            if known is None or _is_before(known, end):
                newest[name] = Latest(_EXITED, end.exit, end.reason, None, seen.end_ids.get(name, ""))
    return Looked(newest, older)


def _is_before(known: Latest, end: ContainerEnd) -> bool:
    """Whether an instance has ended that was followed by one of which no more than its end is kept."""
    if known.state is not _EXITED or known.report is None:
        return False
    return known.report.record.attempt < end.attempt
