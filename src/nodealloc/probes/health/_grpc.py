"""The gRPC health service as a way of asking."""

from __future__ import annotations

from typing import Final

import grpc
from google.protobuf.message import DecodeError

from nodealloc import _attrs as attrs
from nodealloc._arguments import wrong
from nodealloc._proto import health_v1_pb2 as wire
from nodealloc._rpc import channels
from nodealloc._typed import typed, typed_fields, typed_methods
from nodealloc.podspec import GrpcAction
from nodealloc.probes import Question, Reply, ReplyKind
from nodealloc.probes._http import USER_AGENT
from nodealloc.probes.health._roots import check_roots

__all__ = ["GrpcProber", "Tls"]

_ANSWER_BYTES: Final = 64 * 1024
_SHOWN: Final = 200


@typed_fields
@attrs.frozen(kw_only=True)
class Tls:
    """TLS of a gRPC probe. Certificates are always verified.

    Attributes:
        roots: Certificates that are trusted, in PEM; None for gRPC's own.
        server_name: Name in the certificate; "" for the address that is asked.

    Raises:
        ConfigurationError: There is no certificate in `roots`, or one that cannot be read.
    """

    roots: bytes | None = attrs.field(default=None, validator=check_roots)
    server_name: str = ""


@typed_methods
class GrpcProber:
    """A `Prober`: whose health service says SERVING is well.

    Every question has a connection of its own, without a proxy and without
    tries of gRPC's own.

    Args:
        tls: How to talk TLS; None for plain text, as for a kubelet.

    Source: kubelet ``pkg/probe/grpc``.
    """

    asks_by: Final = "grpc"

    @typed
    def __init__(self, *, tls: Tls | None = None) -> None:
        self._tls = tls

    def probe(self, question: Question, /) -> Reply:
        """See `Prober.probe`."""
        action = question.action
        if not isinstance(action, GrpcAction):
            raise wrong("a gRPC prober's question", action, "a GrpcAction")
        request = wire.HealthCheckRequest(service=action.service).SerializeToString()
        channel = self._dialled(question)
        try:
            method = channels.method(wire.DESCRIPTOR, "Health", "Check")
            answer = channel.unary_unary(method)(request, timeout=question.timeout_s)
            status = wire.HealthCheckResponse.FromString(answer).status
        except grpc.RpcError as error:
            return _failed(question, *channels.failure(error)[:2])
        except DecodeError as error:
            return _failed(question, "BAD ANSWER", str(error))
        finally:
            channel.close()
        if status == wire.HealthCheckResponse.SERVING:
            return Reply(ReplyKind.SUCCESS)
        names = wire.HealthCheckResponse.ServingStatus
        name = names.Name(status) if status in names.values() else str(status)
        return Reply(ReplyKind.FAILURE, f"the health service says {name}")

    def _dialled(self, question: Question) -> channels.Channel:
        host = f"[{question.address}]" if ":" in question.address else question.address
        where = f"{host}:{question.port}"
        if self._tls is None:
            return channels.dial_host(where, largest_bytes=_ANSWER_BYTES, user_agent=USER_AGENT)
        return channels.dial_host(
            where,
            largest_bytes=_ANSWER_BYTES,
            user_agent=USER_AGENT,
            roots=self._tls.roots,
            server_name=self._tls.server_name,
            tls=True,
        )


def _failed(question: Question, status: str, detail: str) -> Reply:
    if status == grpc.StatusCode.UNIMPLEMENTED.name:
        return Reply(ReplyKind.FAILURE, "the server has no grpc.health.v1.Health; add it, or probe otherwise")
    if status == grpc.StatusCode.DEADLINE_EXCEEDED.name:
        return Reply(
            ReplyKind.FAILURE,
            f"no answer of the health service within {question.timeout_s:g} s",
            timed_out=True,
        )
    return Reply(ReplyKind.FAILURE, f"{status}: {detail[:_SHOWN]}")
