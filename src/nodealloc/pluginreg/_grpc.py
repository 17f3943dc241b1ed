"""gRPC: the client of registration sockets. The only file here that knows it."""

from __future__ import annotations

import time

from google.protobuf.message import DecodeError as ProtobufError

from nodealloc import _sockets
from nodealloc._proto import pluginregistration_v1_pb2 as wire
from nodealloc._rpc.caller import Caller
from nodealloc._rpc.first_word import FirstWord
from nodealloc._rpc.turns import Turn, Turns
from nodealloc._typed import typed
from nodealloc.pluginreg._errors import RegistrationBrokenError, RegistrationUnavailableError
from nodealloc.pluginreg._ports import PluginInfo

__all__ = ["GrpcRegistration"]

_LARGEST_BYTES = 1 << 20
"""An introduction has no business being large."""
_FIRST_WORD_S = 0.05
"""How long a silent socket may keep others waiting. A server speaks before it is asked for anything."""
_ANSWER_S = 0.4
"""How long a call may keep others waiting. So 1,024 sockets that answer none have had their turns, 48 at
once, within the 10 s that one may take when nobody waits."""
_LEAST_S = 0.1
"""For the answer of one who took nearly all of its time for the first word."""


class GrpcRegistration:
    """Talks to `pluginregistration.Registration` over Unix sockets; a `Registration`. Thread-safe.

    Every call has a connection of its own and leaves none behind, so that a
    removed socket is never dialled again. Whoever is asked who it is has to have
    said a word first, as every server does at once: hundreds that keep silent
    cost a descriptor each for as long as nobody waits, and no connection of gRPC.

    Args:
        info_s: Seconds for the plugin to be there and say who it is.
        notify_s: Seconds for it to take the news.
        at_once: Sockets that are listened to at most, and as many connections.
            Where more are wanted, whoever has kept silent longest gives way, and is
            tried again in its turn.

    Source: kubelet ``pluginmanager/operationexecutor``, with its 10 s and 5 s.
    """

    @typed
    def __init__(self, *, info_s: float = 10.0, notify_s: float = 5.0, at_once: int = 48) -> None:
        self._info_s = info_s
        self._notify_s = notify_s
        self._listening = Turns(at_once, patience_s=_FIRST_WORD_S)
        self._turns = Turns(at_once, patience_s=_ANSWER_S)

    def info(self, socket: str, /) -> PluginInfo:
        """See `Registration`."""
        silence_s = self._silence(socket)
        data = self._call(socket, "GetInfo", b"", max(self._info_s - silence_s, _LEAST_S))
        try:
            said = wire.PluginInfo.FromString(data)
        except (ProtobufError, UnicodeDecodeError) as error:
            raise RegistrationBrokenError(socket, "GetInfo", "BAD ANSWER", str(error)) from error
        return PluginInfo(
            type=said.type,
            name=said.name,
            endpoint=said.endpoint or socket,
            versions=tuple(said.supported_versions),
        )

    def notify(self, socket: str, error: str, /) -> None:
        """See `Registration`."""
        # A path in the text may be no UTF-8, which a message has to be.
        text = error.encode("utf-8", "backslashreplace").decode()
        status = wire.RegistrationStatus(plugin_registered=not error, error=text)
        self._call(socket, "NotifyRegistrationStatus", status.SerializeToString(), self._notify_s)

    def _silence(self, socket: str) -> float:
        """For how many seconds it said nothing, when it has said something."""
        first = FirstWord(socket)
        with self._listening.take(first.end) as turn:
            began_s = time.monotonic()
            if not first.wait(self._info_s):
                raise _silent(socket, turn, "GetInfo")
            return time.monotonic() - began_s

    def _call(self, socket: str, name: str, request: bytes, limit_s: float) -> bytes:
        if fault := _sockets.too_long(socket):
            raise RegistrationBrokenError(socket, name, "TOO LONG", fault)
        caller = Caller(
            socket,
            wire.DESCRIPTOR,
            "Registration",
            largest_bytes=_LARGEST_BYTES,
            unavailable=RegistrationUnavailableError,
            refused=RegistrationBrokenError,
        )
        with self._turns.take(caller.close) as turn:
            try:
                return caller.call(name, request, limit_s)
            except RegistrationUnavailableError as error:
                if not turn.gave_way:
                    raise
                raise _silent(socket, turn, name) from error
            finally:
                caller.close()


def _silent(socket: str, turn: Turn, name: str) -> RegistrationUnavailableError:
    if turn.gave_way:
        why = "it kept silent while others waited for their turn; tried again later"
        return RegistrationUnavailableError(socket, name, "GAVE WAY", why)
    why = "somebody listens there and does not answer in gRPC"
    return RegistrationUnavailableError(socket, name, "DEADLINE_EXCEEDED", why)
