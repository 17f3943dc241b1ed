"""HTTP and HTTPS as a way of asking; the standard library alone."""

from __future__ import annotations

import functools
import socket
import ssl
from collections.abc import Generator, Sequence
from typing import Final

from nodealloc._arguments import wrong
from nodealloc._redirects import FOLLOWED, MOST_REQUESTS, Target, is_whole_url
from nodealloc._request_paths import path_of
from nodealloc._typed import typed, typed_methods
from nodealloc.podspec import HttpGetAction
from nodealloc.probes._exchange import (
    answered,
    asked,
    connected,
    is_address,
    opened,
    reached,
    received,
    secured,
    sent,
)
from nodealloc.probes._http_head import Head, HttpNonsenseError, content_of, head_in, is_whole
from nodealloc.probes._ports import Exchange, Question
from nodealloc.probes._replies import Reply, ReplyKind

__all__ = ["USER_AGENT", "HttpProber", "unverified"]

USER_AGENT: Final = "kube-probe/1.32"
"""Who asks, over gRPC too: servers leave probes out of their logs by it."""
_BODY_BYTES: Final = 10 * 1024
"""Of a body that are read; the rest says nothing that a person would read in an event."""
_HEAD_BYTES: Final = 64 * 1024
_SHOWN: Final = 1024
_NEVER_SENT: Final = frozenset({"Content-Length", "Transfer-Encoding", "Trailer"})
"""What a pod says of a body; there is none."""


def unverified() -> ssl.SSLContext:
    """TLS that takes any certificate: a container is asked whether it is well, not who it is."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.check_hostname = False
    made.verify_mode = ssl.CERT_NONE
    return made


@typed_methods
class HttpProber:
    """A `Prober`: 200 to 399 is well. Redirects within the host are followed.

    One that leaves the host, or leads nowhere, is a warning, and a success.

    A name is asked at the first of its addresses that takes connections. A body is
    read up to 10 KiB; an answer that breaks off before, or makes no sense, is a
    failure. Connections are not kept.

    Args:
        tls: For `HTTPS`; by default any certificate will do, as for a kubelet.
            Give a context that verifies where containers have certificates.

    Source: kubelet ``pkg/probe/http``.
    """

    asks_by: Final = "http"

    @typed
    def __init__(self, *, tls: ssl.SSLContext | None = None) -> None:
        self._tls = unverified() if tls is None else tls

    def probe(self, question: Question, /) -> Reply:
        """See `Prober.probe`."""
        return answered(self._exchange, question)

    def exchange(self, question: Question, /) -> Exchange | None:
        """See `Exchanges.exchange`; None where a name has to be resolved."""
        return self._exchange(question, (question.address,)) if is_address(question.address) else None

    def _exchange(self, question: Question, addresses: Sequence[str]) -> Exchange:
        target, request = _first(question)
        address = addresses[0]
        try:
            address = yield from reached(addresses, target.port)
            with_host = True
            for _ in range(MOST_REQUESTS):
                head, body = yield from self._fetched(target, address, request)
                location = head.fields.get("location", "") if head.status in FOLLOWED else ""
                onward = target.at(location) if location else target
                if not location or onward.host != target.host:
                    return _reply(head, body)
                with_host = with_host and not is_whole_url(location)
                target, request = onward, _request(onward, _action(question), with_host=with_host)
        except TimeoutError:
            late = f"{target.url}: no whole answer within {question.timeout_s:g} s"
            return Reply(ReplyKind.FAILURE, late, timed_out=True)
        except OSError as error:
            return Reply(ReplyKind.FAILURE, f"{target.url}: {error.strerror or error}")
        except (ValueError, HttpNonsenseError) as error:
            return Reply(ReplyKind.FAILURE, f"{target.url}: {error}")
        return Reply(ReplyKind.FAILURE, f"{target.url}: {MOST_REQUESTS} requests, and redirected again")

    def _fetched(
        self, target: Target, address: str, request: bytes
    ) -> Generator[tuple[socket.socket, int], None, tuple[Head, bytes]]:
        one = opened(address)
        try:
            if target.scheme == "https":
                yield from connected(one, address, target.port)
                name = None if is_address(target.host) and not self._tls.check_hostname else target.host
                one = wrapped = self._tls.wrap_socket(
                    one, server_hostname=name, do_handshake_on_connect=False
                )
                yield from secured(wrapped)
                yield from sent(one, request)
            else:
                yield from asked(one, address, target.port, request)
            data = b""
            head: Head | None = None
            while True:
                if head is None and (head := head_in(data)) is None and len(data) > _HEAD_BYTES:
                    raise HttpNonsenseError(f"no end of the headers in {_HEAD_BYTES} bytes")
                if head is not None:
                    body = data[head.length_bytes :]
                    if len(body) >= _BODY_BYTES or is_whole(head, body):
                        return head, body[:_BODY_BYTES]
                more = yield from received(one, 1 << 14)
                if not more:
                    return _ended(head, data)
                data += more
        finally:
            one.close()


def _action(question: Question) -> HttpGetAction:
    action = question.action
    if not isinstance(action, HttpGetAction):
        raise wrong("an HTTP prober's question", action, "an HttpGetAction")
    return action


@functools.lru_cache(maxsize=4096)
def _first(question: Question) -> tuple[Target, bytes]:
    """The first request, which is the same each time."""
    action = _action(question)
    target = Target.of(action.scheme.lower(), question.address, question.port, path_of(action.path))
    return target, _request(target, action)


def _ended(head: Head | None, data: bytes) -> tuple[Head, bytes]:
    """The other side has ended; raises where it had not said all."""
    if head is None or not is_whole(head, data[head.length_bytes :], has_ended=True):
        raise HttpNonsenseError("the answer breaks off" if data else "no answer: the connection was closed")
    return head, data[head.length_bytes :]


def _reply(head: Head, body: bytes) -> Reply:
    """What an answer means, in a kubelet's words.

    Those of a failure are without its body, which is not for everyone who reads events.
    """
    if 200 <= head.status < 300:
        return Reply(ReplyKind.SUCCESS)
    if 300 <= head.status < 400:
        said = content_of(head, body)[:_SHOWN].decode("utf-8", "replace").strip()
        return Reply(ReplyKind.WARNING, f"Probe terminated redirects, Response body: {said}")
    return Reply(ReplyKind.FAILURE, f"HTTP probe failed with statuscode: {head.status}")


def _request(target: Target, action: HttpGetAction, *, with_host: bool = True) -> bytes:
    """The request; what the pod says of a header stands in place of our own, "" takes it away.

    Args:
        target: Where to.
        action: What the pod says.
        with_host: Whether a host that the pod names is told, which goes until a redirect is a whole URL.
    """
    own = {"User-Agent": USER_AGENT, "Accept": "*/*", "Connection": "close"}
    given = [(_canonical(one.name), one.value) for one in action.http_headers]
    host = next((value for name, value in given if name == "Host"), "") if with_host else ""
    lines = [f"GET {target.path} HTTP/1.1", f"Host: {host or target.netloc}"]
    lines += [f"{name}: {value}" for name, value in own.items() if name not in dict(given)]
    lines += [
        f"{name}: {value}"
        for name, value in given
        if name != "Host" and name not in _NEVER_SENT and (value or name not in own)
    ]
    return "\r\n".join([*map(_line, lines), "", ""]).encode("utf-8")


def _canonical(name: str) -> str:
    """A header's name as it is sent, whatever case it was written in."""
    return "-".join(part.capitalize() for part in name.split("-"))


def _line(text: str) -> str:
    """One line, whatever a manifest holds."""
    return text.replace("\r", " ").replace("\n", " ")
