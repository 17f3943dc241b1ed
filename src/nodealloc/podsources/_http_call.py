"""An HTTP call that ends when its time is over, whatever the other side says meanwhile."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Generator, Mapping
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPMessage, HTTPResponse
from typing import IO, Final, Protocol, cast
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import (
    HTTPHandler,
    HTTPRedirectHandler,
    HTTPSHandler,
    OpenerDirector,
    ProxyHandler,
    Request,
    build_opener,
)

from nodealloc._redirects import FOLLOWED
from nodealloc.dsw_asw import Cancel
from nodealloc.errors import RetryableError

__all__ = ["HttpCalls"]

_CHUNK_BYTES: Final = 1 << 16
_MOST_WORDS: Final = 200
"""Characters of what is wrong with an answer."""


class HttpCall:
    """One call. A timeout of a socket is for each word; headers that dribble in renew it for ever.

    Attributes:
        is_over: Whether it was ended.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sockets: list[socket.socket] = []
        self.is_over = False

    def connect(
        self, address: tuple[str, int], timeout: float | None, source: tuple[str, int] | None
    ) -> socket.socket:
        """As `socket.create_connection`."""
        made = socket.create_connection(address, timeout, source)
        with self._lock:
            # TLS takes the socket itself over; what is shut down is the connection behind both.
            self._sockets.append(made.dup())
        if self.is_over:
            self.end()
        return made

    def end(self) -> None:
        """Whoever waits for the other side hears its end."""
        with self._lock:
            self.is_over = True
            for one in self._sockets:
                with contextlib.suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Give back what was kept of it."""
        with self._lock:
            for one in self._sockets:
                one.close()
            self._sockets.clear()


class HttpCalls:
    """Calls of one address, one after another, without a proxy.

    Args:
        url: The address.
        headers: Sent with each call, by name.
        deadline_s: For a whole answer, in real seconds.
        max_bytes: Longer answers are refused.
    """

    def __init__(self, url: str, headers: Mapping[str, str], *, deadline_s: float, max_bytes: int) -> None:
        # The library takes a character for each byte; they are sent as UTF-8.
        self._url, self._headers = url, {k: v.encode().decode("latin-1") for k, v in headers.items()}
        self._deadline_s, self._max_bytes = deadline_s, max_bytes
        self._call = HttpCall()
        self._opener: OpenerDirector = build_opener(
            ProxyHandler({}), _Plain(self._connection), _Secure(self._connection), _Onward()
        )

    def body(self, cancel: Cancel, /) -> bytes:
        """The whole answer.

        Raises:
            RetryableError: There was none in time, another status, or more than is taken.
        """
        with self._begun(cancel) as call:
            try:
                asked = Request(self._url, headers=dict(self._headers))  # noqa: S310 - checked at first
                with self._opener.open(asked, timeout=self._deadline_s) as opened:
                    return self._read(cast("HTTPResponse", opened), call)
            except HTTPError as error:
                error.close()
                onward = ", and it leads on to no answer" if error.code in FOLLOWED else ""
                raise RetryableError(
                    f"{self._url}: status {error.code}{onward}; the last answer stays"
                ) from error
            except (OSError, HTTPException, ValueError) as error:  # a redirect may lead to nonsense
                # What came in the place of an answer is some of its words, as long as a line may be.
                words = str(error) if len(str(error)) <= _MOST_WORDS else f"{str(error)[:_MOST_WORDS]}…"
                raise RetryableError(f"{self._url}: no whole answer ({words}); the last one stays") from error

    def _read(self, answer: HTTPResponse, call: HttpCall) -> bytes:
        if answer.status != HTTPStatus.OK:  # without a body, or with a part of one: not what pods there are
            raise RetryableError(f"{self._url}: status {answer.status}; the last answer stays")
        expected = answer.length
        data = bytearray()
        while more := answer.read1(_CHUNK_BYTES):
            data += more
            if len(data) > self._max_bytes:
                raise RetryableError(f"{self._url}: more than {self._max_bytes} bytes; the last answer stays")
        if call.is_over:  # where no length was said, its end would be taken for the answer's
            raise RetryableError(
                f"{self._url}: {len(data)} bytes in {self._deadline_s} s, not all; the last answer stays"
            )
        if expected is not None and len(data) < expected:
            raise RetryableError(f"{self._url}: {len(data)} of {expected} bytes; the last answer stays")
        return bytes(data)

    @contextlib.contextmanager
    def _begun(self, cancel: Cancel) -> Generator[HttpCall]:
        """A call that ends when its time is over, or when it is cancelled."""
        call = self._call = HttpCall()
        timer = threading.Timer(self._deadline_s, call.end)
        timer.daemon = True
        timer.start()
        leave = cancel.on_cancel(call.end)
        try:
            yield call
        finally:
            leave()
            timer.cancel()
            call.close()

    def _connection(self, kind: _Kind) -> _Kind:
        def made(host: str, /, **options: object) -> HTTPConnection:
            connection = cast("_Made", kind)(host, **options)
            vars(connection)["_create_connection"] = self._call.connect  # the standard library's own seam
            return connection

        return made


class _Onward(HTTPRedirectHandler):
    """Follows as far as HTTP goes; headers are for the host that they were given for."""

    def redirect_request(  # noqa: PLR0917 - as the standard library calls it
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> Request | None:
        before, onward = urlsplit(req.full_url), urlsplit(newurl)
        if onward.scheme not in {"http", "https"}:
            return None
        made = super().redirect_request(req, fp, code, msg, headers, newurl)
        is_open = (before.scheme, onward.scheme) == ("https", "http")
        if made is not None:
            fp.close()  # the library reads what stands beside a redirect to its end, however long that is
        if made is not None and (is_open or onward.hostname != before.hostname):
            made.headers.clear()
        return made


class _Kind(Protocol):
    """A class of connections, as openers take it."""

    def __call__(
        self,
        host: str,
        /,
        *,
        port: int | None = ...,
        timeout: float = ...,
        source_address: tuple[str, int] | None = ...,
        blocksize: int = ...,
    ) -> HTTPConnection: ...


class _Made(Protocol):
    """The same, with whatever else it is given."""

    def __call__(self, host: str, /, **options: object) -> HTTPConnection: ...


class _Plain(HTTPHandler):
    def __init__(self, made: Callable[[_Kind], _Kind]) -> None:
        super().__init__()
        self._made = made

    def do_open(self, http_class: _Kind, req: Request, **options: object) -> HTTPResponse:
        return super().do_open(self._made(http_class), req, **options)


class _Secure(HTTPSHandler):
    def __init__(self, made: Callable[[_Kind], _Kind]) -> None:
        super().__init__()
        self._made = made

    def do_open(self, http_class: _Kind, req: Request, **options: object) -> HTTPResponse:
        # From Python 3.12 on it would be whom the machine trusted when this was made.
        options.pop("context", None)
        return super().do_open(self._made(http_class), req, **options)
