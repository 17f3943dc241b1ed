"""Which processes register sockets and keep silent on them: no more of theirs are called for a while."""

from __future__ import annotations

import threading

from nodealloc._rpc.errors import GAVE_WAY
from nodealloc._sockets import NOBODY
from nodealloc.devices._errors import PluginUnavailableError
from nodealloc.dsw_asw import Clock

__all__ = ["SilentProcessError", "SilentProcesses"]

_MOST_SILENT = 16
"""Sockets of one process without an answer from any, until it is left alone."""
_LASTS_S = 5.0
"""How long it is left alone after the last of them."""
_MOST_KNOWN = 1 << 10
"""Processes that are remembered; those that were met first are forgotten."""


class SilentProcessError(PluginUnavailableError):
    """Nobody was called: too many other sockets of that process give no answer."""


class SilentProcesses:
    """Counts calls without an answer by the process that listens. Thread-safe.

    A thousand registrations of one process that answers none would keep all
    threads of the service, and half a core, from those who do answer.

    Args:
        clock: Time.
    """

    def __init__(self, clock: Clock, /) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._silent: dict[int, tuple[int, float]] = {}

    def check(self, process: int, path: str, call: str, /) -> None:
        """Whether somebody may be called; of a process 0 nothing is known, and `NOBODY` counts as one.

        Raises:
            SilentProcessError: Too many of its sockets keep silent.
        """
        with self._lock:
            count, last_s = self._silent.get(process, (0, 0.0))
            if count < _MOST_SILENT:
                return
            if self._clock.monotonic_s() - last_s > _LASTS_S:
                del self._silent[process]
                return
        if process == NOBODY:
            why = f"nobody takes calls on {count} others that registered; listen first, then register again"
        else:
            why = f"process {process} keeps silent on {count} others; have it answer, and register again"
        raise SilentProcessError(path, call, GAVE_WAY, why)

    def kept(self, process: int, /) -> None:
        """One of its sockets gave no answer."""
        if not process:
            return
        with self._lock:
            count, _ = self._silent.pop(process, (0, 0.0))
            self._silent[process] = count + 1, self._clock.monotonic_s()
            if len(self._silent) > _MOST_KNOWN:
                del self._silent[next(iter(self._silent))]

    def broken(self, process: int, /) -> None:
        """One of its sockets answered."""
        with self._lock:
            self._silent.pop(process, None)
