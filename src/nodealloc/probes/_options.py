"""Values only: how probing is bounded, and which prober asks in which way."""

from __future__ import annotations

from nodealloc import _attrs as attrs
from nodealloc._arguments import addresses, wrong
from nodealloc._typed import typed_fields
from nodealloc.errors import ConfigurationError
from nodealloc.podspec import ExecAction, HttpGetAction, TcpSocketAction
from nodealloc.probes._exec import ExecProber
from nodealloc.probes._http import HttpProber
from nodealloc.probes._ports import Action, Exec, Prober
from nodealloc.probes._tcp import TcpProber

__all__ = ["ProbeOptions", "Probers"]


@typed_fields
@attrs.frozen(kw_only=True)
class ProbeOptions:
    """How probing is bounded.

    Attributes:
        sockets: Questions over sockets that are under way at a time; more wait for their turn.
        workers: Questions under way at a time that take a worker: commands, gRPC, probers of your own.
        first_per_s: First questions to instances that are new to the agent, and questions
            that are due while the agent was late, a second; so no herd follows a start.
        late_s: A failure that came so much later than its time-out says nothing:
            the agent was late itself.
        kills: Most verdicts a window for which containers are killed; None for any
            number. One more is withheld: what stood stands, and it is asked on.
        kills_window_s: The window of `kills`, in seconds.
        node_ip: Where pods on the node's own network are asked.

    Raises:
        ConfigurationError: A bound below 1 (`kills` below 0), seconds that are not above 0, or no IP address.
    """

    sockets: int = 512
    workers: int = 64
    first_per_s: float = 500.0
    late_s: float = 0.5
    kills: int | None = None
    kills_window_s: float = 60.0
    node_ip: str = "127.0.0.1"

    def __attrs_post_init__(self) -> None:
        for name, count in (("sockets", self.sockets), ("workers", self.workers), ("kills", self.kills)):
            if count is not None and count < (0 if name == "kills" else 1):
                raise wrong(
                    f"ProbeOptions.{name}", count, f"a whole number, at least {0 if name == 'kills' else 1}"
                )
        for name, value in (
            ("first_per_s", self.first_per_s),
            ("late_s", self.late_s),
            ("kills_window_s", self.kills_window_s),
        ):
            if not value > 0:
                raise wrong(f"ProbeOptions.{name}", value, "a number above 0")
        addresses("ProbeOptions.node_ip", (self.node_ip,))


@typed_fields
@attrs.frozen(kw_only=True)
class Probers:
    """Which prober asks in which way; None where nobody can, so that nobody is asked.

    Attributes:
        http: For `httpGet`.
        tcp: For `tcpSocket`.
        exec: For `exec`.
        grpc: For `grpc`: a `GrpcProber` of `nodealloc.probes.health`, or yours.

    Raises:
        ConfigurationError: One of the library's own in the place of another.
    """

    http: Prober | None = None
    tcp: Prober | None = None
    exec: Prober | None = None
    grpc: Prober | None = None

    def __attrs_post_init__(self) -> None:
        places = {"http": self.http, "tcp": self.tcp, "exec": self.exec, "grpc": self.grpc}
        for name, prober in places.items():
            # Those of a program's own say nothing of themselves, and may ask in several ways.
            asks_by: str = getattr(prober, "asks_by", name)
            if asks_by != name:
                kind = type(prober).__name__
                raise ConfigurationError(f"Probers.{name}: a {kind} asks by {asks_by}; give it as {asks_by}")

    @classmethod
    def real(cls, *, commands: Exec | None = None, grpc: Prober | None = None) -> Probers:
        """HTTP and TCP of the standard library, commands by a runtime, and what you have for gRPC."""
        made = None if commands is None else ExecProber(commands)
        return cls(http=HttpProber(), tcp=TcpProber(), exec=made, grpc=grpc)

    def of(self, action: Action, /) -> Prober | None:
        """The one for an action."""
        if isinstance(action, HttpGetAction):
            return self.http
        if isinstance(action, TcpSocketAction):
            return self.tcp
        return self.exec if isinstance(action, ExecAction) else self.grpc
