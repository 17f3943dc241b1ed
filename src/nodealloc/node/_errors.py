"""Errors of the node's shell."""

from __future__ import annotations

import attrs

from nodealloc.errors import PermanentError
from nodealloc.topology import Owner

__all__ = ["NotAdmittedError"]


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
