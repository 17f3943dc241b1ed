"""What the status manager calls and reads; `nodealloc.testing.podstatus` has a sink that remembers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from nodealloc.podfacts import LifeState, PodStatus
from nodealloc.podspec import Pod
from nodealloc.runtime import PodKnown

__all__ = ["LifeFacts", "ProbeResults", "Sink"]


class Sink(Protocol):
    """Who is told of pods: a file, an API server's client, a message bus.

    Called on workers: for several pods at a time, never twice at a time for one.
    May be slow, and may raise: it is asked again after a back-off, with what is
    true then. Any call may be repeated, after a crash of the agent above all. A
    call that never returns keeps a worker for good: give it a time-out.
    """

    def told(self, uid: str, status: PodStatus, /) -> None:
        """This is true of the pod now, instead of what was said before.

        When it returns it was taken: that status is not said again. An `async` one has not told.
        """
        ...

    def gone(self, uid: str, /) -> None:
        """The pod is no more, its end was told; an unknown one is no error."""
        ...


class _Why(Protocol):
    """A word for programs, and a text for people; either may be ""."""

    @property
    def reason(self) -> str: ...
    @property
    def message(self) -> str: ...


class _Ending(_Why, Protocol):
    """Why a pod ends, and what disturbed it; "" for nothing."""

    @property
    def disruption(self) -> str: ...


class _Waiting(_Why, Protocol):
    """Why a container does not run yet; until when, on the engine's clock, where it waits for that."""

    @property
    def until_s(self) -> float | None: ...


class _ContainerFacts(Protocol):
    """Why a container does not run (again) yet, if anything, and how often it was started again.

    And the id of an instance that was stopped to start again, or "".
    """

    @property
    def waiting(self) -> _Waiting | None: ...
    @property
    def restart_count(self) -> int: ...
    @property
    def owed(self) -> str: ...


class LifeFacts(Protocol):
    """What is known of the life of a pod; `podlife.PodFacts` is one. A value: it never changes."""

    @property
    def pod(self) -> Pod:
        """The form of it that is acted upon."""
        ...

    @property
    def life(self) -> LifeState:
        """How far it has come."""
        ...

    @property
    def known(self) -> PodKnown | None:
        """What the runtime says; None before anything of it was seen."""
        ...

    @property
    def ending(self) -> _Ending | None:
        """Why it ends; None while it has not to. Without a reason it ends by itself, or is deleted."""
        ...

    @property
    def is_orphan(self) -> bool:
        """Whether only the runtime knew it."""
        ...

    @property
    def is_refused(self) -> bool:
        """Whether it was never let in, so that nothing of it was made."""
        ...

    @property
    def noticed_unix_s(self) -> float:
        """When this node took it up, in Unix seconds."""
        ...

    @property
    def containers(self) -> Mapping[str, _ContainerFacts]:
        """By the container's name."""
        ...


class ProbeResults(Protocol):
    """What the probes of a pod have said, by the runtime's id of a container; `probes.PodVerdicts` is one.

    Whoever has no result, or no probe, is absent.
    """

    @property
    def started(self) -> Mapping[str, bool]:
        """Whether startup probes have succeeded."""
        ...

    @property
    def ready(self) -> Mapping[str, bool]:
        """Whether readiness probes succeed."""
        ...
