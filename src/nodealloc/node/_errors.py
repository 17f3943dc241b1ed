"""Errors of the node's shell."""

from __future__ import annotations

import attrs

from nodealloc.errors import PermanentError
from nodealloc.topology import Owner

__all__ = ["AdoptionError", "NotAdmittedError"]


@attrs.define
class NotAdmittedError(PermanentError):
    """A container was to start whose owner was never admitted, or has been released.

    Attributes:
        owner: Workload and member.
    """

    owner: Owner

    def __str__(self) -> str:
        """Who, and what to do."""
        who = f"{self.owner.workload}/{self.owner.member}"
        return f"{who} holds nothing on this node; admit its workload before its containers start"


@attrs.define
class AdoptionError(PermanentError):
    """Something runs where it cannot be left.

    Attributes:
        owner: Whose container it is.
        reason: What stands against it.
    """

    owner: Owner
    reason: str

    def __str__(self) -> str:
        """Who, why, and what to do."""
        who = f"{self.owner.workload}/{self.owner.member}"
        return f"{who} runs where it cannot stay: {self.reason}; end it, then admit it anew"
