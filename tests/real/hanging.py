"""Sockets that take callers and never answer a call, in this process or in one of their own.

Run with a directory and their number it prints a line once they listen, and ends with
its input.
"""

from __future__ import annotations

import contextlib
import select
import socket
import subprocess
import sys
import threading
from collections.abc import Generator
from pathlib import Path
from typing import Self

__all__ = ["HELLO", "Hanging", "elsewhere"]

HELLO = b"\0\0\0\4\0\0\0\0\0"
"""Settings of HTTP/2, without any."""


class Hanging:
    """So many sockets that take callers and never answer a call; they say hello, or not even that."""

    def __init__(self, directory: Path, count: int, *, says_hello: bool) -> None:
        directory.mkdir(exist_ok=True)
        self._hello = HELLO if says_hello else b""
        self._listening = [socket.socket(socket.AF_UNIX) for _ in range(count)]
        self._there: dict[int, socket.socket] = {}
        self._poll = select.epoll()
        self._stop, stop = socket.socketpair()
        self._stopped = stop
        self._poll.register(stop, select.EPOLLIN)
        for number, one in enumerate(self._listening):
            one.bind(str(directory / f"s{number:04}.sock"))
            one.listen()
            one.setblocking(False)
            self._poll.register(one, select.EPOLLIN)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.close()
        self._thread.join()
        self._poll.close()
        for one in [*self._listening, *self._there.values(), self._stopped]:
            one.close()

    @property
    def calls(self) -> int:
        """How many are under way."""
        return len(self._there)

    def _serve(self) -> None:
        listening = {one.fileno(): one for one in self._listening}
        while True:
            for number, _ in self._poll.poll():
                if number == self._stopped.fileno():
                    return
                with contextlib.suppress(OSError):
                    self._go_on(number, listening)

    def _go_on(self, number: int, listening: dict[int, socket.socket]) -> None:
        if number in listening:
            caller, _ = listening[number].accept()
            self._there[caller.fileno()] = caller
            self._poll.register(caller, select.EPOLLIN)
            caller.send(self._hello)
            return
        try:
            there = bool(self._there[number].recv(1 << 16))
        except OSError:
            there = False
        if not there:
            self._there.pop(number).close()


@contextlib.contextmanager
def elsewhere(directory: Path, count: int) -> Generator[int]:
    """So many that say hello, in a process of their own, whose number this is."""
    words = [sys.executable, __file__, str(directory), str(count)]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()
        yield process.pid
        process.stdin.close()


if __name__ == "__main__":
    with Hanging(Path(sys.argv[1]), int(sys.argv[2]), says_hello=True):
        print("ready", flush=True)
        sys.stdin.read()
