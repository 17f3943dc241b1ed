"""The Protocol that the status manager calls; `nodealloc.testing.podstatus` has one that remembers."""

from __future__ import annotations

from typing import Protocol

from nodealloc.podfacts import PodStatus

__all__ = ["Sink"]


class Sink(Protocol):
    """Who is told of pods: a file, an API server's client, a message bus.

    Called on workers: for several pods at a time, never twice at a time for one.
    May be slow, and may raise: it is asked again after a back-off, with what is
    true then. Any call may be repeated, after a crash of the agent above all. A
    call that never returns keeps a worker for good: give it a time-out.
    """

    def told(self, uid: str, status: PodStatus, /) -> None:
        """This is true of the pod now, instead of what was said before.

        When it returns it was taken: that status is not said again.
        """
        ...

    def gone(self, uid: str, /) -> None:
        """The pod is no more, its end was told; an unknown one is no error."""
        ...
