"""Questions over sockets that do not block: connecting, sending, receiving; and one that is waited for."""

from __future__ import annotations

import errno
import functools
import ipaddress
import os
import selectors
import socket
import ssl
import time
from collections.abc import Callable, Generator, Sequence
from typing import Final, TypeAlias

from nodealloc.probes._ports import Exchange, Question
from nodealloc.probes._replies import Reply, ReplyKind

__all__ = [
    "LONGEST_S",
    "answered",
    "asked",
    "connected",
    "is_address",
    "opened",
    "reached",
    "received",
    "secured",
    "sent",
]

Waits: TypeAlias = Generator[tuple[socket.socket, int], None, None]
LONGEST_S: Final = 86_400.0
"""Of one wait for the kernel, which counts milliseconds in 32 bits."""
_READ: Final = selectors.EVENT_READ
_WRITE: Final = selectors.EVENT_WRITE
_LEAVE_NO_PORT: Final = -1
"""Forget a closed connection once the other side has seen its end, instead of holding the port for a minute:
with thousands of probes ports would run out. One that is reset at once is told of in logs of servers."""


@functools.lru_cache(maxsize=4096)
def is_address(host: str, /) -> bool:
    """Whether it is an IP address, so that nobody has to be asked for one."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _resolved(host: str, port: int, /) -> tuple[str, ...]:
    """The addresses of a host; blocks while a name server is asked.

    Raises:
        OSError: It has none.
    """
    if is_address(host):
        return (host,)
    return tuple(str(one[4][0]) for one in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))


def reached(addresses: Sequence[str], port: int, /) -> Generator[tuple[socket.socket, int], None, str]:
    """The first address that takes connections, by connecting to each where there are several.

    A name such as `localhost` has addresses at which nobody may listen. Where none takes any, the
    first one is given, so that whoever asks it hears why.
    """
    for address in addresses if len(addresses) > 1 else ():
        one = opened(address)
        try:
            yield from connected(one, address, port)
        except TimeoutError:
            raise
        except OSError:
            continue
        else:
            return address
        finally:
            one.close()
    return addresses[0]


def opened(address: str) -> socket.socket:
    """A TCP socket that does not block, and leaves no port behind where it is closed first."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_LINGER2, _LEAVE_NO_PORT)
    return made


def connected(one: socket.socket, address: str, port: int, /) -> Waits:
    """Connect.

    Raises:
        OSError: Nobody listens there.
    """
    code = one.connect_ex((address, port))
    if code == errno.EINPROGRESS:
        yield one, _WRITE
        code = one.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    if code:
        raise OSError(code, os.strerror(code))


def asked(one: socket.socket, address: str, port: int, data: bytes, /) -> Waits:
    """Connect, send all of it, and wait until something comes.

    A connection to a near host stands by the time that one can look: what is sent at once
    needs no wait for it.

    Raises:
        OSError: Nobody listens there, or it went away.
    """
    code = one.connect_ex((address, port))
    if code == errno.EINPROGRESS:
        try:
            data = data[one.send(data) :]
        except BlockingIOError:
            yield one, _WRITE
            code = one.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        else:
            code = 0
    if code:
        raise OSError(code, os.strerror(code))
    yield from sent(one, data)
    yield one, _READ


def secured(one: ssl.SSLSocket, /) -> Waits:
    """Shake hands."""
    while True:
        try:
            one.do_handshake()
        except ssl.SSLWantReadError:
            yield one, _READ
        except ssl.SSLWantWriteError:
            yield one, _WRITE
        else:
            return


def sent(one: socket.socket, data: bytes, /) -> Waits:
    """Send all of it."""
    while data:
        try:
            data = data[one.send(data) :]
        except (BlockingIOError, ssl.SSLWantWriteError):
            yield one, _WRITE
        except ssl.SSLWantReadError:
            yield one, _READ


def received(one: socket.socket, most_bytes: int, /) -> Generator[tuple[socket.socket, int], None, bytes]:
    """What comes next; b"" when the other side has ended."""
    while True:
        try:
            return one.recv(most_bytes)
        except (BlockingIOError, ssl.SSLWantReadError):
            yield one, _READ
        except ssl.SSLWantWriteError:
            yield one, _WRITE


def answered(exchange: Callable[[Question, Sequence[str]], Exchange], question: Question, /) -> Reply:
    """Look up the addresses of a question's host, ask there, and wait for the answer on this thread.

    Args:
        exchange: From a question and the addresses to ask at to the exchange.
        question: Its host may be a name.
    """
    try:
        addresses = _resolved(question.address, question.port)
    except OSError as error:
        return Reply(ReplyKind.FAILURE, f"{question.address}: no such host: {error}")
    return _waited_for(exchange(question, addresses), question.timeout_s)


def _waited_for(exchange: Exchange, timeout_s: float) -> Reply:
    """The reply of one exchange, a day at most."""
    until_s = time.monotonic() + min(timeout_s, LONGEST_S)
    with selectors.DefaultSelector() as selector:
        try:
            one, events = next(exchange)
            while True:
                selector.register(one, events)
                # Looked at once more after the time is over: an answer that has come is an answer.
                ready = selector.select(max(0.0, until_s - time.monotonic()))
                selector.unregister(one)
                one, events = next(exchange) if ready else exchange.throw(TimeoutError())
        except StopIteration as done:
            reply: Reply = done.value
            return reply
        finally:
            exchange.close()
