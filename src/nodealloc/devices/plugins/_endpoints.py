"""Who serves which resource, and who is about to take over from whom. Calls nobody."""

from __future__ import annotations

import enum
import threading
from collections.abc import Mapping
from typing import NamedTuple

from nodealloc import _attrs as attrs
from nodealloc.devices._inventory import PluginOptions
from nodealloc.devices._ports import PluginConnection

__all__ = ["Endpoint", "Endpoints", "JoinOutcome", "LeaveOutcome"]


@attrs.define(kw_only=True, eq=False)
class Endpoint:
    """A plugin that answered after one registration, and its stream.

    Attributes:
        resource: What it serves.
        generation: Of the registration.
        socket: Where it listens, in its own words.
        path: The same, resolved.
        identity: What tells that socket from another on its path; None for unknown.
        connection: To it.
        options: What it wants to be asked.
        is_owed: Whether it registered again meanwhile, so that another stream is
            opened should this one end.
    """

    resource: str
    generation: int
    socket: str
    path: str
    identity: tuple[int, int, bytes] | None
    connection: PluginConnection
    options: PluginOptions
    is_owed: bool = False


class JoinOutcome(enum.Enum):
    """What became of a plugin that answered."""

    SERVES = "serves"
    """Nobody served its resource: it does."""
    SUCCEEDS = "succeeds"
    """Somebody does; it takes over with its first list."""
    SAME = "same"
    """It is the very plugin that serves or is about to; the stream that it has goes on."""
    LATE = "late"
    """Somebody who registered later was quicker."""
    CLOSED = "closed"
    """Nobody is taken on any more."""


class LeaveOutcome(NamedTuple):
    """What the end of a stream means.

    Attributes:
        served: Whether its plugin served the resource.
        was_coming: Whether it was about to.
        successor: Who serves in its place.
    """

    served: bool
    was_coming: bool
    successor: Endpoint | None


class Endpoints:
    """The plugins of all resources: one that serves, one that may take over. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._serving: dict[str, Endpoint] = {}
        self._coming: dict[str, Endpoint] = {}
        self._generation = 0
        self._closed = False

    def next_generation(self, at_least: int = 0, /) -> int:
        """A number that no registration had before, and greater than `at_least`."""
        with self._lock:
            self._generation = max(self._generation, at_least) + 1
            return self._generation

    def serving(self, resource: str, /) -> Endpoint | None:
        """Who serves it now."""
        with self._lock:
            return self._serving.get(resource)

    def sockets(self) -> Mapping[str, str]:
        """Resource to where its plugin listens."""
        with self._lock:
            return {resource: endpoint.socket for resource, endpoint in self._serving.items()}

    def join(self, newcomer: Endpoint, /) -> tuple[JoinOutcome, Endpoint | None]:
        """Take a plugin on, and say whom it drove out before he served, or as whom it is known."""
        resource = newcomer.resource
        with self._lock:
            if self._closed:
                return JoinOutcome.CLOSED, None
            known = [one for one in (self._serving.get(resource), self._coming.get(resource)) if one]
            for one in known:
                if newcomer.identity is not None and one.identity == newcomer.identity:
                    one.is_owed, one.options = True, newcomer.options
                    return JoinOutcome.SAME, one
            if any(one.generation > newcomer.generation for one in known):
                return JoinOutcome.LATE, None
            if resource not in self._serving:
                self._serving[resource] = newcomer
                return JoinOutcome.SERVES, None
            driven_out = self._coming.get(resource)
            self._coming[resource] = newcomer
            return JoinOutcome.SUCCEEDS, driven_out

    def listed(self, endpoint: Endpoint, /) -> tuple[bool, Endpoint | None]:
        """Its list came: whether it counts, and whose place it has taken with it."""
        resource = endpoint.resource
        with self._lock:
            if self._coming.get(resource) is endpoint:
                del self._coming[resource]
                older = self._serving.get(resource)
                self._serving[resource] = endpoint
                return True, older
            return self._serving.get(resource) is endpoint, None

    def left(self, endpoint: Endpoint, /) -> LeaveOutcome:
        """Its stream ended."""
        resource = endpoint.resource
        with self._lock:
            was_coming = self._coming.get(resource) is endpoint
            if was_coming:
                del self._coming[resource]
            if self._serving.get(resource) is not endpoint:
                return LeaveOutcome(served=False, was_coming=was_coming, successor=None)
            successor = self._coming.pop(resource, None)
            if successor is None:
                del self._serving[resource]
            else:
                self._serving[resource] = successor
            return LeaveOutcome(served=True, was_coming=False, successor=successor)

    def at(self, resource: str, socket: str, /) -> tuple[Endpoint, ...]:
        """Those of a resource that listen there, who no longer owe a stream: they are let go."""
        with self._lock:
            found = [
                one
                for one in (self._serving.get(resource), self._coming.get(resource))
                if one is not None and one.socket == socket
            ]
            for one in found:
                one.is_owed = False
        return tuple(found)

    def close(self) -> tuple[Endpoint, ...]:
        """Take nobody on any more; who was there."""
        with self._lock:
            self._closed = True
            everybody = (*self._serving.values(), *self._coming.values())
            self._serving, self._coming = {}, {}
        return everybody
