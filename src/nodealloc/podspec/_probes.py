"""Values only: what is done to a container to see whether it is well, and when it starts and stops."""

from __future__ import annotations

from typing import ClassVar, Final

from nodealloc import _attrs as attrs
from nodealloc._typed import typed_fields
from nodealloc._wire import wire
from nodealloc.podspec._checks import at_least, between, one_of, port_or_name, whole_port

__all__ = [
    "ExecAction",
    "GrpcAction",
    "HttpGetAction",
    "HttpHeader",
    "Lifecycle",
    "LifecycleHandler",
    "Probe",
    "SleepAction",
    "TcpSocketAction",
]

_MOST: Final = 2**31 - 1
"""Of the numbers of a probe: 32 bits for the API, and 68 years for whoever waits."""


@typed_fields
@attrs.frozen(kw_only=True)
class ExecAction:
    """Run a command in the container; 0 is success.

    Attributes:
        command: Program and arguments; no shell.
    """

    command: tuple[str, ...] = ()


@typed_fields
@attrs.frozen(kw_only=True)
class HttpHeader:
    """One header of a request.

    Attributes:
        name: As it is sent.
        value: As it is sent.
    """

    name: str = attrs.field(default="", metadata=wire(required=True))
    value: str = ""


@typed_fields
@attrs.frozen(kw_only=True)
class HttpGetAction:
    """Ask over HTTP; 200 to 399 is success.

    Attributes:
        port: Number, or the name of a port of the container.
        path: Of the request.
        host: Whom to ask; "" for the pod's address.
        scheme: `HTTP` or `HTTPS`.
        http_headers: Sent with it, in this order.
    """

    port: int | str = attrs.field(default=0, metadata=wire(required=True, check=port_or_name))
    path: str = attrs.field(default="/", metadata=wire(unset=""))
    host: str = ""
    scheme: str = attrs.field(
        default="HTTP",
        metadata=wire(check=one_of("HTTP", "HTTPS"), unset=""),
    )
    http_headers: tuple[HttpHeader, ...] = ()


@typed_fields
@attrs.frozen(kw_only=True)
class TcpSocketAction:
    """Connect over TCP; a connection is success.

    Attributes:
        port: Number, or the name of a port of the container.
        host: Whom to ask; "" for the pod's address.
    """

    port: int | str = attrs.field(default=0, metadata=wire(required=True, check=port_or_name))
    host: str = ""


@typed_fields
@attrs.frozen(kw_only=True)
class GrpcAction:
    """Ask the gRPC health service; SERVING is success.

    Attributes:
        port: Number.
        service: Named in the request.
    """

    port: int = attrs.field(default=0, metadata=wire(required=True, check=whole_port))
    service: str = ""


@typed_fields
@attrs.frozen(kw_only=True)
class SleepAction:
    """Wait.

    Attributes:
        seconds: How long, 0 or more.
    """

    seconds: int = attrs.field(default=0, metadata=wire(check=at_least(0)))


@typed_fields
@attrs.frozen(kw_only=True)
class Probe:
    """Asked again and again of a running container. Exactly one of the four actions is given.

    Attributes:
        exec: Run a command.
        http_get: Ask over HTTP.
        tcp_socket: Connect.
        grpc: Ask the health service.
        initial_delay_seconds: From the container's start to the first time.
        timeout_seconds: Of one time, at least 1.
        period_seconds: From one time to the next, at least 1.
        success_threshold: Successes in a row that count; 1 for liveness and startup.
        failure_threshold: Failures in a row that count.
        termination_grace_period_seconds: Of the kill that follows a failure; None for the pod's own.
    """

    exec: ExecAction | None = None
    http_get: HttpGetAction | None = None
    tcp_socket: TcpSocketAction | None = None
    grpc: GrpcAction | None = None
    initial_delay_seconds: int = attrs.field(default=0, metadata=wire(check=between(0, _MOST)))
    timeout_seconds: int = attrs.field(default=1, metadata=wire(check=between(1, _MOST), unset=0))
    period_seconds: int = attrs.field(default=10, metadata=wire(check=between(1, _MOST), unset=0))
    success_threshold: int = attrs.field(default=1, metadata=wire(check=between(1, _MOST), unset=0))
    failure_threshold: int = attrs.field(default=3, metadata=wire(check=between(1, _MOST), unset=0))
    termination_grace_period_seconds: int | None = attrs.field(
        default=None, metadata=wire(check=between(1, _MOST))
    )

    ACTIONS: ClassVar[tuple[str, ...]] = ("exec", "httpGet", "tcpSocket", "grpc")

    @property
    def actions(self) -> tuple[ExecAction | HttpGetAction | TcpSocketAction | GrpcAction, ...]:
        """What is done; one in a pod that was read."""
        return tuple(one for one in (self.exec, self.http_get, self.tcp_socket, self.grpc) if one is not None)


@typed_fields
@attrs.frozen(kw_only=True)
class LifecycleHandler:
    """What is done once. Exactly one of them is given.

    Attributes:
        exec: Run a command.
        http_get: Ask over HTTP.
        sleep: Wait.
        tcp_socket: Taken and never done, as the API keeps it for old manifests.
    """

    exec: ExecAction | None = None
    http_get: HttpGetAction | None = None
    sleep: SleepAction | None = None
    tcp_socket: TcpSocketAction | None = None

    ACTIONS: ClassVar[tuple[str, ...]] = ("exec", "httpGet", "sleep", "tcpSocket")

    @property
    def actions(self) -> tuple[ExecAction | HttpGetAction | SleepAction | TcpSocketAction, ...]:
        """What is done; one in a pod that was read."""
        return tuple(
            one for one in (self.exec, self.http_get, self.sleep, self.tcp_socket) if one is not None
        )


@typed_fields
@attrs.frozen(kw_only=True)
class Lifecycle:
    """What is done when a container starts and before it stops.

    Attributes:
        post_start: Right after its start.
        pre_stop: Before it is told to stop; counts against the grace period.
    """

    post_start: LifecycleHandler | None = None
    pre_stop: LifecycleHandler | None = None
