"""Who serves which resource, and who is about to take over from whom. Calls nobody but to let go of one."""

from __future__ import annotations

import enum
import logging
import threading
from collections.abc import Mapping
from typing import NamedTuple

from nodealloc import _attrs as attrs
from nodealloc._logged import logged
from nodealloc.devices._inventory import PluginOptions
from nodealloc.devices._ports import PluginConnection

__all__ = ["Endpoint", "Endpoints", "JoinOutcome", "Joined", "LeaveOutcome"]

_log = logging.getLogger("nodealloc.devices")


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
        newest: Of its registrations the last one.
    """

    resource: str
    generation: int
    socket: str
    path: str
    identity: tuple[int, int, bytes] | None
    connection: PluginConnection
    options: PluginOptions
    is_owed: bool = False
    newest: int = attrs.field(default=attrs.Factory(lambda self: self.generation, takes_self=True))

    def end(self) -> None:
        """Close its connection. What that raises is logged: all that hangs on its end goes on."""
        words = "device plugin %s: its connection did not close well"
        logged(_log, self.connection.close, words, self.resource)


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


class Joined(NamedTuple):
    """What became of a plugin that answered, and of others.

    Attributes:
        outcome: Of itself.
        known: As whom it is known, where it is the same.
        driven_out: Whom it drove out before he served.
    """

    outcome: JoinOutcome
    known: Endpoint | None = None
    driven_out: Endpoint | None = None


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

    def join(self, newcomer: Endpoint, /) -> Joined:
        """Take a plugin on; whoever registered last serves, or is about to."""
        resource = newcomer.resource
        with self._lock:
            if self._closed:
                return Joined(JoinOutcome.CLOSED)
            known = [one for one in (self._serving.get(resource), self._coming.get(resource)) if one]
            for one in known:
                if newcomer.identity is not None and one.identity == newcomer.identity:
                    one.is_owed, one.options = True, newcomer.options
                    one.newest = max(one.newest, newcomer.generation)
                    return Joined(JoinOutcome.SAME, one, self._driven_out_by(one))
            if any(one.newest > newcomer.generation for one in known):
                return Joined(JoinOutcome.LATE)
            if resource not in self._serving:
                self._serving[resource] = newcomer
                return Joined(JoinOutcome.SERVES)
            driven_out = self._coming.get(resource)
            self._coming[resource] = newcomer
            return Joined(JoinOutcome.SUCCEEDS, driven_out=driven_out)

    def _driven_out_by(self, again: Endpoint) -> Endpoint | None:
        """Who was about to take over from one that has registered again since."""
        resource, coming = again.resource, self._coming.get(again.resource)
        if coming is None or coming.newest >= again.newest:
            return None
        return self._coming.pop(resource)

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
