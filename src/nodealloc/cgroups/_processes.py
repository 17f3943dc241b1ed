"""Processes: who they are, how they are ended, and waiting until they are gone."""

from __future__ import annotations

import contextlib
import errno
import os
import select
import signal
import time
from typing import TYPE_CHECKING, Final, ParamSpec, TypeVar

from nodealloc._procfs import stat_of
from nodealloc.cgroups._errors import Process

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable
    from typing import Self

__all__ = ["Held", "describe", "end"]

_AT_ONCE: Final = 256
"""Processes that are held at a time, each with a descriptor."""
_SPARE: Final = 8
_TOO_MANY: Final = (errno.EMFILE, errno.ENFILE)

_P = ParamSpec("_P")
_T = TypeVar("_T")


def describe(pid: int, /) -> Process:
    """A process with its name and state, as far as `/proc` shows them."""
    if pid:
        with contextlib.suppress(OSError):
            found = stat_of(pid)
            return Process(pid, found.name, found.state)
    return Process(pid)


class Held:
    """Processes held by descriptor, so that a number which is another's by now means nobody.

    A descriptor stands for the process that had the number when it was opened.
    Whoever is read from the same cgroup after that, and still runs, is that
    process: the number was not given away meanwhile.

    Args:
        pids: Who to hold, the lowest 256, or fewer where few files may be open. What is
            below 1, of another namespace, or has ended is left out.
        spare: Descriptors to leave for others: reading who is there takes some as well.

    Attributes:
        looked: How many of the lowest were looked at: all others are not held.
    """

    def __init__(self, pids: Iterable[int], *, spare: int = _SPARE) -> None:
        self._descriptors: dict[int, int] = {}
        self.looked = 0
        with contextlib.ExitStack() as kept, contextlib.suppress(_FewFilesError):
            for _ in range(spare // 2):
                for descriptor in _opened(os.pipe):
                    kept.callback(os.close, descriptor)
            for pid in sorted(pids)[:_AT_ONCE]:
                if pid > 0:
                    with contextlib.suppress(OSError):
                        self._descriptors[pid] = _opened(os.pidfd_open, pid)
                self.looked += 1

    def __enter__(self) -> Self:
        """The processes, held until the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Let go of them."""
        for descriptor in self._descriptors.values():
            os.close(descriptor)
        self._descriptors.clear()

    def end(self, present: Container[int], /) -> None:
        """Send SIGKILL to those that `present`, read after they were held, still names."""
        for pid, descriptor in self._descriptors.items():
            if pid in present and pid != os.getpid():
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    signal.pidfd_send_signal(descriptor, signal.SIGKILL)

    def wait(self, wait_s: float, /) -> None:
        """Return when all have ended, or after `wait_s` seconds; polls nothing."""
        poller = select.poll()
        for descriptor in self._descriptors.values():
            poller.register(descriptor, select.POLLIN)
        until = time.monotonic() + wait_s
        pending = set(self._descriptors.values())
        while pending and (left := until - time.monotonic()) > 0:
            for descriptor, _ in poller.poll(left * 1000):
                poller.unregister(descriptor)
                pending.discard(descriptor)


class _FewFilesError(Exception):
    """No more files may be open."""


def _opened(call: Callable[_P, _T], *args: _P.args, **words: _P.kwargs) -> _T:
    try:
        return call(*args, **words)
    except OSError as error:
        if error.errno in _TOO_MANY:
            raise _FewFilesError from error
        raise


def end(read: Callable[[], frozenset[int]], /) -> None:
    """Send SIGKILL to all that `read`, who is in a cgroup now, names before and after they are held.

    Raises:
        OSError: None of them can be held, as where too many files are open.
    """
    rest = sorted(read())
    while rest:
        with Held(rest) as held:
            if not held.looked:
                raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
            held.end(read())
            rest = rest[held.looked :]
