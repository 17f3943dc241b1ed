"""Values: what a pass over the tree did, what others changed, and how removals go."""

from __future__ import annotations

import enum
from collections.abc import Mapping

from nodealloc import _attrs as attrs
from nodealloc._frozen import freeze
from nodealloc.cgroups._errors import Process
from nodealloc.cgroups._limits import Limits
from nodealloc.cgroups._name import CgroupName

__all__ = ["Drift", "Removal", "RemovalState", "TreeReport"]


@attrs.frozen(kw_only=True)
class Drift:
    """A limit that somebody else changed.

    Attributes:
        name: The cgroup.
        limit: Field of `Limits`; `cgroup` if the whole cgroup is gone.
        asked: What was asked for.
        found: What is there.
    """

    name: CgroupName
    limit: str
    asked: object
    found: object

    def __str__(self) -> str:
        """`/kubepods/burstable: cpu_shares is 7, asked for 300`."""
        return f"{self.name}: {self.limit} is {self.found}, asked for {self.asked}"


class RemovalState(enum.Enum):
    """How the removal of a cgroup goes."""

    REMOVED = "removed"
    STUCK = "stuck"
    BACKING_OFF = "backing off"
    IN_FLIGHT = "in flight"


@attrs.frozen(kw_only=True)
class Removal:
    """How the removal of one cgroup goes.

    Attributes:
        name: The cgroup.
        state: How it goes; stuck when it was tried since the last report.
        after_s: When it is tried again, in seconds from now; 0 once it is removed.
        failures: Attempts in a row that failed.
        stuck: Processes that SIGKILL did not end; state `D` waits for a device or a file server.
        reason: Why the last attempt failed, or "".
    """

    name: CgroupName
    state: RemovalState
    after_s: float = 0.0
    failures: int = 0
    stuck: tuple[Process, ...] = ()
    reason: str = ""

    def __str__(self) -> str:
        """One line for a log."""
        if self.state is RemovalState.REMOVED:
            return f"cgroup {self.name}: removed"
        if self.state is RemovalState.IN_FLIGHT:
            return f"cgroup {self.name}: {self.state.value}"
        return f"cgroup {self.name}: {self.state.value}, again in {self.after_s:g} s ({self.reason})"


@attrs.frozen(kw_only=True)
class TreeReport:
    """What was done to the tree since the last report, and what is still to do.

    Attributes:
        applied: Cgroup to what was written into it.
        removals: Cgroups that went, and those that are to go, sorted.
        failed: Cgroup to why it is not as it should be; it is tried again.
        refused: Uid of a pod to why it can have no cgroup as it is, such as a name
            or a limit that no kernel takes. What it had before stays as it was.
        waiting: Cgroups that are still to be written, failed ones among them.
    """

    applied: Mapping[CgroupName, Limits] = attrs.field(validator=freeze)
    removals: tuple[Removal, ...]
    failed: Mapping[CgroupName, Exception] = attrs.field(validator=freeze)
    refused: Mapping[str, ValueError] = attrs.field(factory=dict[str, ValueError], validator=freeze)
    waiting: frozenset[CgroupName] = frozenset()

    @property
    def is_settled(self) -> bool:
        """Whether the tree is as it should be."""
        removed = all(removal.state is RemovalState.REMOVED for removal in self.removals)
        return removed and not (self.failed or self.refused or self.waiting)
