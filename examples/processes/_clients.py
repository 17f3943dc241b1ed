"""Who is connected to the keeper: none of them is waited for, and none takes much memory."""

from __future__ import annotations

import selectors
import socket
from collections.abc import Callable
from typing import Final

import attrs

__all__ = ["Clients"]

_MOST_HEARD: Final = 1 << 16
"""Bytes of a line that does not end; the longest that means anything has some forty."""
_MOST_UNSENT: Final = 1 << 20
"""Bytes that wait for one who does not read: the ends of some 25 000 containers."""


@attrs.define
class _Rest:
    """What is not done yet for one.

    Attributes:
        heard: Of a line that did not end yet.
        unsent: What its connection does not take yet.
    """

    heard: bytes = b""
    unsent: bytes = b""


class Clients:
    """All connections, in lines. Whoever does not listen, or writes a line without an end, is let go.

    Args:
        events: Everything that is waited for; what it has of a connection is to be called.
        answer: What a line is answered with, "" for nothing.
        note: Is told why one is let go.
    """

    def __init__(
        self, events: selectors.BaseSelector, answer: Callable[[str], str], note: Callable[[str], None]
    ) -> None:
        self._events, self._answer, self._note = events, answer, note
        self._open: dict[socket.socket, _Rest] = {}

    def __len__(self) -> int:
        """How many are connected."""
        return len(self._open)

    def welcome(self, client: socket.socket) -> None:
        """Somebody has connected."""
        client.settimeout(0)
        self._open[client] = _Rest()
        self._events.register(client, selectors.EVENT_READ, lambda: self._serve(client))
        self._say(client, "here")  # from now on it is told of each end

    def tell(self, line: str) -> None:
        """A line to everybody."""
        for client in list(self._open):
            self._say(client, line)

    def _say(self, client: socket.socket, line: str) -> None:
        if (rest := self._open.get(client)) is not None:
            waited = bool(rest.unsent)
            rest.unsent += f"{line}\n".encode()
            if not waited:
                self._send(client, rest)
            if len(rest.unsent) > _MOST_UNSENT:
                self._leave(client, f"somebody does not listen, and is let go with {len(rest.unsent)} bytes")

    def _send(self, client: socket.socket, rest: _Rest) -> None:
        """What the connection takes now; the rest once it takes more."""
        try:
            rest.unsent = rest.unsent[client.send(rest.unsent) :]
        except BlockingIOError:
            pass
        except OSError:
            self._leave(client)
            return
        wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if rest.unsent else 0)
        key = self._events.get_key(client)
        if key.events != wanted:
            self._events.modify(client, wanted, key.data)

    def _serve(self, client: socket.socket) -> None:
        """It takes more, or asks."""
        rest = self._open.get(client)
        if rest is not None and rest.unsent:
            self._send(client, rest)
        if rest is None or client not in self._open:  # let go meanwhile
            return
        try:
            data = client.recv(65536)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._leave(client)
            return
        *lines, rest.heard = (rest.heard + data).split(b"\n")
        for line in lines:
            if answer := self._answer(line.decode(errors="replace")):
                self._say(client, answer)
        if len(rest.heard) > _MOST_HEARD:
            self._leave(client, f"somebody is let go whose line has {len(rest.heard)} bytes and no end")

    def _leave(self, client: socket.socket, why: str = "") -> None:
        """Somebody is connected no more."""
        if self._open.pop(client, None) is not None:
            self._events.unregister(client)
            client.close()
        if why:
            self._note(why)
