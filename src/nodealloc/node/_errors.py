"""Errors of the node's shell."""

from __future__ import annotations

from nodealloc import _attrs as attrs
from nodealloc.errors import ConfigurationError, PermanentError
from nodealloc.topology import Owner

__all__ = ["AdoptionError", "NoKubeletFileError", "NotAdmittedError", "NotRememberedError"]


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


@attrs.define
class NotRememberedError(PermanentError):
    """An allocator cannot say what it granted, so that all of it would be lost at a restart.

    Attributes:
        name: Of the allocator.
        kind: Its class.
    """

    name: str
    kind: str

    def __str__(self) -> str:
        """Which, and what it lacks."""
        return (
            f"allocator {self.name} ({self.kind}) cannot be remembered, so its grants would be lost; "
            "give it `remembered` and `restored` (nodealloc.topology.Remembers)"
        )


@attrs.define
class NoKubeletFileError(ConfigurationError):
    """The kubelet's file of an allocator was asked for that has none, or that is not there.

    Attributes:
        asked: What was asked for.
        known: Allocators that keep a file of the kubelet's.
    """

    asked: str
    known: tuple[str, ...]

    def __str__(self) -> str:
        """What was asked for, and the choices."""
        listed = ", ".join(self.known) or "none"
        return (
            f"kubelet_files has {self.asked}; give a list of names of allocators that keep a file of the "
            f"kubelet's, which are: {listed}"
        )
