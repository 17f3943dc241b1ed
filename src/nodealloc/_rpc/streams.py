"""Answers of a call as they come, read on the loop of all calls: whoever waits for the next one sleeps."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError

import grpc

from nodealloc._rpc import channels
from nodealloc._rpc.single import calls_loop

__all__ = ["Stream"]

_STOP_S = 5.0
"""How long an end is waited for."""


class Stream:
    """A call with many answers, on a connection of its own that ends with it.

    Iterated on one thread; gRPC's own iterator would wake that thread, and another one, several times
    a second while nothing comes. The next answer is read when it is asked for: who floods waits.

    Args:
        address: Where the socket is dialled.
        method: Path of the method.
        largest_bytes: Of a message.
        failed: What is raised for an error of gRPC.
        cancelled: What is raised when `cancel` ended it.
        counts: Whether an answer is handed on; quick, and asked on the loop. None for all.

    Attributes:
        is_over: Whether it has ended.
    """

    def __init__(
        self,
        address: str,
        method: str,
        /,
        *,
        largest_bytes: int,
        failed: Callable[[grpc.RpcError], Exception],
        cancelled: Callable[[], Exception],
        counts: Callable[[bytes], bool] | None = None,
    ) -> None:
        self._counts = counts
        self._failed, self._cancelled = failed, cancelled
        self._lock = threading.Lock()
        self.is_over = False
        self._loop = calls_loop()
        opened = asyncio.run_coroutine_threadsafe(self._opened(address, method, largest_bytes), self._loop)
        self._channel, self._call = opened.result()

    def __iter__(self) -> Iterator[bytes]:
        while True:
            reading = asyncio.run_coroutine_threadsafe(self._next(), self._loop)
            try:
                message = reading.result()
            except grpc.RpcError as error:
                self.cancel()
                raise self._failed(error) from error
            except CancelledError:
                self.cancel()
                raise self._cancelled() from None
            if message is None:
                self.cancel()
                return
            yield message

    def cancel(self) -> None:
        """End it, from any thread but the loop's. May be repeated."""
        with self._lock:
            was_over, self.is_over = self.is_over, True
        if was_over:
            return
        ended = asyncio.run_coroutine_threadsafe(self._ended(), self._loop)
        with contextlib.suppress(TimeoutError):
            ended.result(_STOP_S)

    # What follows runs on the loop's thread.

    @staticmethod
    async def _opened(
        address: str, method: str, largest_bytes: int
    ) -> tuple[channels.AsyncChannel, channels.AsyncStream]:
        channel = channels.dial_async(address, largest_bytes=largest_bytes, first_word_ms=2000)
        return channel, channel.unary_stream(method)(b"")

    async def _next(self) -> bytes | None:
        """The next answer that counts; None at the end."""
        while True:
            message = await self._call.read()
            if not isinstance(message, bytes):
                return None
            if self._counts is None or self._counts(message):
                return message

    async def _ended(self) -> None:
        self._call.cancel()
        await self._channel.close()
