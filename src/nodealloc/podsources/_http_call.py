"""An HTTP call that ends when its time is over, whatever the other side says meanwhile."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Generator
from http.client import HTTPConnection, HTTPResponse
from typing import Protocol, cast
from urllib.request import HTTPHandler, HTTPSHandler, OpenerDirector, ProxyHandler, Request, build_opener

from nodealloc.dsw_asw import Cancel

__all__ = ["HttpCall", "HttpCalls"]


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
    """Calls one after another, without a proxy.

    Attributes:
        opener: Makes them, each inside `begun`.
    """

    def __init__(self) -> None:
        self._call = HttpCall()
        self.opener: OpenerDirector = build_opener(
            ProxyHandler({}), _Plain(self._connection), _Secure(self._connection)
        )

    @contextlib.contextmanager
    def begun(self, limit_s: float, cancel: Cancel, /) -> Generator[HttpCall]:
        """A call that ends after so many seconds, or when it is cancelled."""
        call = self._call = HttpCall()
        timer = threading.Timer(limit_s, call.end)
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
        return super().do_open(self._made(http_class), req, **options)
