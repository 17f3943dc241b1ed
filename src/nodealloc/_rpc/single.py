"""One call of gRPC over a connection of its own, on an event loop; and the loop on which all of them are."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import socket
import threading
from collections.abc import Callable
from typing import cast

import grpc
import grpc.aio

from nodealloc import _attrs as attrs
from nodealloc import _sockets
from nodealloc._rpc import channels

__all__ = ["Answer", "calls_loop", "single_call"]

_QUEUE_S = 0.02
"""Between two looks whether there is room in a queue of callers."""
_GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0"
"""How a client of HTTP/2 begins; a server answers with its settings before anybody asks for anything."""
_FAREWELL = b"\0\0\x08\7\0\0\0\0\0" + bytes(8)
"""GOAWAY, without an error."""


@attrs.frozen
class Answer:
    """How a call ended.

    Attributes:
        status: Of gRPC, in words; `OK` when there is an answer.
        data: The answer.
        detail: What the other side says, or what stands at the path.
        is_away: Nobody was there or nobody answered in time; otherwise
            somebody said no.
    """

    status: str
    data: bytes = b""
    detail: str = ""
    is_away: bool = False


def calls_loop() -> asyncio.AbstractEventLoop:
    """The event loop of all calls, on a thread of its own, which begins with the first and never ends.

    gRPC keeps every loop that it has seen; and to give back what it has for
    loops, with the last channel, may never end (seen with grpcio 1.60).
    """
    with _starting:
        return _started()


_starting = threading.Lock()


@functools.cache
def _started() -> asyncio.AbstractEventLoop:
    loop = asyncio.SelectorEventLoop()
    # Public, and unknown to the stubs that type checkers know.
    keep = cast("Callable[[], None]", vars(grpc.aio)["init_grpc_aio"])
    loop.call_soon(keep)
    threading.Thread(target=loop.run_forever, name="calls", daemon=True).start()
    return loop


async def single_call(
    path: str, method: str, request: bytes, /, *, limit_s: float, largest_bytes: int, address: str = ""
) -> Answer:
    """How a call ends; cancelling it leaves no connection behind.

    A connection of gRPC to somebody who keeps silent stays open for a second
    after it was closed. So a plain one waits for the first word, and gRPC talks
    only to who has said one.

    Args:
        path: The socket, without symbolic links on its way.
        method: Path of the method.
        request: What is sent.
        limit_s: Seconds for all.
        largest_bytes: Of a message, either way.
        address: Where the socket is dialled when that is not `path`, until this ends.
    """
    found = None if address else _sockets.pin(path)
    address = address if found is None else found.address
    try:
        async with asyncio.timeout(limit_s):
            if not address or not await _listens(address):
                return _away(path, "UNAVAILABLE")
            return await _called(address, method, request, limit_s, largest_bytes)
    except TimeoutError:
        return _away(path, "DEADLINE_EXCEEDED")
    finally:
        if found is not None:
            found.release()


def _away(path: str, status: str) -> Answer:
    return Answer(status, detail=_sockets.seen_at(path), is_away=True)


async def _listens(address: str) -> bool:
    """Whether somebody does, who has said a word then or hung up, which a call says in its own words."""
    loop = asyncio.get_running_loop()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK) as caller:
        while True:
            try:
                caller.connect(address)
                break
            except BlockingIOError:  # more callers wait there than it takes at once
                await asyncio.sleep(_QUEUE_S)
            except OSError:
                return False
        with contextlib.suppress(OSError):  # the other side is gone already
            await loop.sock_sendall(caller, _GREETING)
            await loop.sock_recv(caller, 1)
            await loop.sock_sendall(caller, _FAREWELL)
    return True


async def _called(address: str, method: str, request: bytes, limit_s: float, largest_bytes: int) -> Answer:
    channel = channels.dial_async(address, largest_bytes=largest_bytes)
    try:
        return Answer("OK", await channel.unary_unary(method)(request, timeout=limit_s))
    except grpc.RpcError as error:
        status, detail, is_away = channels.failure(error)
        return Answer(status, detail=detail, is_away=is_away)
    finally:
        await channel.close()
