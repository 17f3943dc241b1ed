"""Processes: who they are, how they are ended, and waiting until they are gone."""

from __future__ import annotations

import contextlib
import errno
import os
import select
import signal
import time
from typing import TYPE_CHECKING, Final

from nodealloc._procfs import stat_of
from nodealloc.cgroups._errors import Process

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable
    from typing import Self

__all__ = ["Held", "describe", "end"]

_AT_ONCE: Final = 256
"""Processes that are held at a time, each with a descriptor."""
_SPARE: Final = 8
"""Descriptors that are left for others where no more can be had."""
_TOO_MANY: Final = (errno.EMFILE, errno.ENFILE)


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
        pids: Who to hold, the lowest 256, or fewer where few files may be open: reading who
            is there takes descriptors as well. What is below 1, of another namespace, or
            has ended is left out.

    Attributes:
        looked: How many of the lowest were looked at: all others are not held.
    """

    def __init__(self, pids: Iterable[int]) -> None:
        self._descriptors: dict[int, int] = {}
        self.looked = 0
        lowest = sorted(pids)[:_AT_ONCE]
        for pid in lowest:
            if pid > 0:
                try:
                    self._descriptors[pid] = os.pidfd_open(pid)
                except OSError as error:
                    if error.errno in _TOO_MANY:
                        self._make_room(lowest)
                        return
            self.looked += 1

    def _make_room(self, lowest: list[int]) -> None:
        """Let go of half of them, and of a few at least, so that others may open files."""
        for _ in range(min(len(self._descriptors), max(len(self._descriptors) // 2, _SPARE))):
            pid, descriptor = self._descriptors.popitem()
            os.close(descriptor)
            self.looked = lowest.index(pid)

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
