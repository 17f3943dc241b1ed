"""Protocols that probes call: ways of asking, commands in containers, what a runtime reports."""

from __future__ import annotations

import enum
import socket
from collections.abc import Generator, Sequence
from typing import Protocol, TypeAlias, Union, runtime_checkable

from nodealloc import _attrs as attrs
from nodealloc._arguments import whole, within
from nodealloc._typed import typed_fields
from nodealloc.podspec import ExecAction, GrpcAction, HttpGetAction, TcpSocketAction
from nodealloc.probes._replies import Reply

__all__ = [
    "Action",
    "ContainerSeen",
    "Exchange",
    "Exchanges",
    "Exec",
    "ExecResult",
    "Prober",
    "Question",
    "RecordSeen",
    "ReportSeen",
    "ReportedPod",
]

Action: TypeAlias = Union[ExecAction, HttpGetAction, TcpSocketAction, GrpcAction]
"""What a pod's probe does."""


@typed_fields
@attrs.frozen(kw_only=True, cache_hash=True)
class Question:
    """One time that somebody is asked.

    Attributes:
        action: How, as the pod says it.
        container_id: The runtime's id of the container.
        address: Whom: an IP address or a host's name; "" for a command.
        port: At which port, 1 to 65535; 0 for a command.
        timeout_s: How long an answer may take, in seconds.
    """

    action: Action
    container_id: str = ""
    address: str = ""
    port: int = attrs.field(default=0, validator=whole(0, 65535))
    timeout_s: float = attrs.field(default=1.0, validator=within(0, above=True))


class Prober(Protocol):
    """One way of asking. May be called from any thread, for many containers at a time."""

    def probe(self, question: Question, /) -> Reply:
        """Ask once, and return within the question's time-out.

        Who does not answer in time has failed, and `Reply.timed_out` says so where the
        prober itself measured it; who answers nonsense has failed, too. What is raised
        means that nobody could be asked, which is nobody's failure.
        """
        ...


Exchange: TypeAlias = Generator[tuple[socket.socket, int], None, Reply]
"""A question on its way over sockets that do not block: it yields a socket and
what it waits for (`selectors.EVENT_READ` or `EVENT_WRITE`), and returns the reply.
When its time is over, `TimeoutError` is thrown into it; `close` ends it."""


@runtime_checkable
class Exchanges(Prober, Protocol):
    """A prober that takes no thread: many of its questions share one."""

    def exchange(self, question: Question, /) -> Exchange | None:
        """The question, not begun; None for one that would block, which `probe` is asked instead."""
        ...


class ExecResult(Protocol):
    """What a command left."""

    @property
    def code(self) -> int:
        """Its exit status."""
        ...

    @property
    def output(self) -> bytes:
        """What it wrote."""
        ...

    @property
    def errors(self) -> bytes:
        """What it wrote to its standard error."""
        ...


class Exec(Protocol):
    """Commands in containers; a `CommandRunner` of `nodealloc.runtime` is one."""

    def run_command(self, container_id: str, command: Sequence[str], timeout_s: float, /) -> ExecResult:
        """Run a command to its end.

        Raises:
            UncertainError: With a field `timeout_s`: it took longer, and whatever of it
                can be ended has been. Without: nobody knows.
            PermanentError: There is no such program, or the container does not run.
        """
        ...


class RecordSeen(Protocol):
    """A container as a listing has it."""

    @property
    def id(self) -> str:
        """The runtime's id."""
        ...

    @property
    def name(self) -> str:
        """As the pod names it."""
        ...

    @property
    def state(self) -> enum.Enum:
        """`running`, `exited` or something else, as its value."""
        ...


class ContainerSeen(Protocol):
    """A container as an inspection has it."""

    @property
    def record(self) -> RecordSeen:
        """What a listing says of it."""
        ...

    @property
    def started_unix_s(self) -> float | None:
        """When it began, in Unix seconds; None where nobody knows."""
        ...


class ReportSeen(Protocol):
    """A pod as an inspection has it."""

    @property
    def containers(self) -> Sequence[ContainerSeen]:
        """Its containers, the newest first."""
        ...

    @property
    def ips(self) -> Sequence[str]:
        """Its addresses, the first is the pod's; none where it has none of its own."""
        ...


class ReportedPod(Protocol):
    """What is known of a pod; a `PodKnown` of `nodealloc.runtime` is one."""

    @property
    def report(self) -> ReportSeen | None:
        """Its last inspection; None where nobody has inspected it."""
        ...
