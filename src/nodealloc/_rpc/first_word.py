"""Whether whoever listens on a socket says anything at all: a look that costs one descriptor, and no gRPC."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import threading
import time

from nodealloc import _sockets

__all__ = ["FirstWord"]

_LOOK_S = 0.02
"""Between two looks whether there is room in a queue of callers."""
_SETTINGS = b"\0\0\0\4\0\0\0\0\0"
_GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + _SETTINGS
"""How a client of HTTP/2 begins; a server answers with its settings before anybody asks for anything."""
_FAREWELL = b"\0\0\x08\7\0\0\0\0\0" + bytes(8)
"""GOAWAY, without an error."""


class FirstWord:
    """One wait for the first word on a socket.

    A connection of gRPC to somebody who keeps silent stays open for seconds
    after it was closed, and takes threads. This one ends when it is told to.

    Args:
        path: Of the socket.
    """

    def __init__(self, path: str, /) -> None:
        self._path = os.path.realpath(path)
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._caller: socket.socket | None = None

    def wait(self, limit_s: float, /) -> bool:
        """Whether it is worth calling: somebody spoke, or nobody listens, which a call says in its own words.

        False means silence, for so many seconds or until `end`.
        """
        ends_s = time.monotonic() + limit_s
        found = _sockets.pin(self._path)
        if found is None:
            return True
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK) as caller:
                return self._heard(caller, found.address, ends_s)
        finally:
            found.release()

    def end(self) -> None:
        """Have `wait` return, from any thread. May be repeated."""
        with self._lock:
            self._ended.set()
            if self._caller is not None:
                with contextlib.suppress(OSError):  # the other side is gone: it has returned already
                    self._caller.shutdown(socket.SHUT_RDWR)

    def _heard(self, caller: socket.socket, address: str, ends_s: float) -> bool:
        while True:
            try:
                caller.connect(address)
                break
            except BlockingIOError:  # more callers wait there than it takes at once
                if time.monotonic() >= ends_s or self._ended.wait(_LOOK_S):
                    return False
            except OSError:
                return True
        with self._lock:
            self._caller = caller
        try:
            with contextlib.suppress(OSError):
                caller.send(_GREETING)
            waiting = select.poll()
            waiting.register(caller, select.POLLIN)
            while not self._ended.is_set() and (left_s := ends_s - time.monotonic()) > 0:
                if waiting.poll(left_s * 1000):
                    break
            else:
                return False
            with contextlib.suppress(OSError):
                caller.send(_FAREWELL)
            return not self._ended.is_set()
        finally:
            with self._lock:
                self._caller = None
