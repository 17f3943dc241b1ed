"""HTTP and HTTPS as a way of asking; the standard library alone."""

from __future__ import annotations

import functools
import socket
import ssl
import string
from collections.abc import Generator
from typing import Final
from urllib.parse import quote, urljoin, urlsplit

import attrs

from nodealloc._arguments import wrong
from nodealloc._typed import typed, typed_methods
from nodealloc.podspec import HttpGetAction
from nodealloc.probes._exchange import (
    answered,
    asked,
    connected,
    is_address,
    opened,
    received,
    resolved,
    secured,
    sent,
)
from nodealloc.probes._http_head import Head, HttpNonsenseError, head_in, is_whole
from nodealloc.probes._ports import Exchange, Question
from nodealloc.probes._replies import Reply, ReplyKind

__all__ = ["HttpProber", "unverified"]

_BODY_BYTES: Final = 10 * 1024
"""Of a body that are read; the rest says nothing that a person would read in an event."""
_HEAD_BYTES: Final = 64 * 1024
_HOPS: Final = 10
_SHOWN: Final = 200
_AS_WRITTEN: Final = string.punctuation
_FOLLOWED: Final = frozenset({301, 302, 303, 307, 308})


def unverified() -> ssl.SSLContext:
    """TLS that takes any certificate: a container is asked whether it is well, not who it is."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.check_hostname = False
    made.verify_mode = ssl.CERT_NONE
    return made


@attrs.frozen(kw_only=True)
class _Target:
    """One request: where it goes, and what is asked for."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def netloc(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.scheme == "https" else 80) else f"{host}:{self.port}"

    def at(self, location: str, /) -> _Target | None:
        """Where a redirect leads; None for nowhere that can be asked."""
        parts = urlsplit(urljoin(f"{self.scheme}://{self.netloc}{self.path}", location))
        try:
            port = parts.port
        except ValueError:
            return None
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            return None
        path = f"{parts.path or '/'}{'?' + parts.query if parts.query else ''}"
        default = 443 if parts.scheme == "https" else 80
        return _Target(scheme=parts.scheme, host=parts.hostname, port=port or default, path=path)


@typed_methods
class HttpProber:
    """A `Prober`: 200 to 399 is well. Redirects within the host are followed.

    One that leaves the host is a warning, and a success.

    A body is read up to 10 KiB; an answer that breaks off before, or makes no
    sense, is a failure. Connections are not kept.

    Args:
        tls: For `HTTPS`; by default any certificate will do, as for a kubelet.
            Give a context that verifies where containers have certificates.

    Source: kubelet ``pkg/probe/http``.
    """

    @typed
    def __init__(self, *, tls: ssl.SSLContext | None = None) -> None:
        self._tls = unverified() if tls is None else tls

    def probe(self, question: Question, /) -> Reply:
        """See `Prober.probe`."""
        try:
            address = resolved(question.address, question.port)
        except OSError as error:
            return Reply(ReplyKind.FAILURE, f"{question.address}: no such host: {error}")
        return answered(self._exchange(question, address), question.timeout_s)

    def exchange(self, question: Question, /) -> Exchange | None:
        """See `Exchanges.exchange`; None where a name has to be resolved."""
        return self._exchange(question, question.address) if is_address(question.address) else None

    def _exchange(self, question: Question, address: str) -> Exchange:
        target, request = _first(question)
        try:
            for _ in range(_HOPS + 1):
                head, body = yield from self._fetched(target, address, request)
                location = head.fields.get("location", "") if head.status in _FOLLOWED else ""
                if not location:
                    return _reply(head, body)
                onward = target.at(location)
                if onward is None or onward.host != target.host:
                    return Reply(ReplyKind.WARNING, f"not followed to {location[:_SHOWN]}")
                target, request = onward, _request(onward, _action(question))
        except TimeoutError:
            return Reply(
                ReplyKind.FAILURE,
                f"{target.netloc}: no whole answer within {question.timeout_s:g} s",
                timed_out=True,
            )
        except (OSError, HttpNonsenseError) as error:
            return Reply(ReplyKind.FAILURE, f"{target.netloc}: {getattr(error, 'strerror', None) or error}")
        return Reply(ReplyKind.FAILURE, f"{target.netloc}: more than {_HOPS} redirects")

    def _fetched(
        self, target: _Target, address: str, request: bytes
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
def _first(question: Question) -> tuple[_Target, bytes]:
    """The first request, which is the same each time."""
    action = _action(question)
    path = quote(action.path, safe=_AS_WRITTEN).partition("#")[0]
    path = path if path.startswith("/") else f"/{path}"
    target = _Target(scheme=action.scheme.lower(), host=question.address, port=question.port, path=path)
    return target, _request(target, action)


def _ended(head: Head | None, data: bytes) -> tuple[Head, bytes]:
    """The other side has ended; raises where it had not said all."""
    if head is None or not is_whole(head, data[head.length_bytes :], has_ended=True):
        raise HttpNonsenseError("the answer breaks off" if data else "no answer: the connection was closed")
    return head, data[head.length_bytes :]


def _reply(head: Head, body: bytes) -> Reply:
    if 200 <= head.status < 400:
        return Reply(ReplyKind.SUCCESS)
    said = body[:_SHOWN].decode("utf-8", "replace").strip()
    return Reply(
        ReplyKind.FAILURE, f"HTTP probe failed with statuscode: {head.status}{': ' + said if said else ''}"
    )


def _request(target: _Target, action: HttpGetAction) -> bytes:
    """The request; what the pod says of a header stands in place of our own."""
    own = {"host": target.netloc, "user-agent": "kube-probe/1.32", "accept": "*/*", "connection": "close"}
    given = {one.name.lower() for one in action.http_headers}
    lines = [f"GET {target.path} HTTP/1.1"]
    lines += [f"{name}: {value}" for name, value in own.items() if name not in given]
    # An empty value takes a header of ours away.
    lines += [
        f"{one.name}: {one.value}" for one in action.http_headers if one.value or one.name.lower() not in own
    ]
    return "\r\n".join([*map(_line, lines), "", ""]).encode("utf-8")


def _line(text: str) -> str:
    """One line, whatever a manifest holds."""
    return text.replace("\r", " ").replace("\n", " ")
