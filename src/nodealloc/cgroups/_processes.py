"""Processes: who they are, how they are ended, and waiting until they are gone."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

from nodealloc.cgroups._errors import Process

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["describe", "end", "wait_for_end"]


def describe(pid: int, /) -> Process:
    """A process with its name and state, as far as `/proc` shows them."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace") if pid else ""
    except OSError:
        text = ""
    # The name stands in parentheses and may hold any character, parentheses too.
    before, _, after = text.rpartition(")")
    return Process(pid, before.partition("(")[2], after.split()[0] if after else "")


def end(pids: Iterable[int], /) -> None:
    """Send SIGKILL to each that can be seen; 0 would mean the caller's own group and is skipped."""
    for pid in pids:
        if pid > 0:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)


def wait_for_end(pids: Iterable[int], wait_s: float, /) -> None:
    """Return when all have ended, or after `wait_s` seconds; polls nothing."""
    poller = select.poll()
    waiting: dict[int, int] = {}
    try:
        for pid in pids:
            with contextlib.suppress(OSError):
                descriptor = os.pidfd_open(pid)
                waiting[descriptor] = pid
                poller.register(descriptor, select.POLLIN)
        until = time.monotonic() + wait_s
        pending = set(waiting)
        while pending and (left := until - time.monotonic()) > 0:
            for descriptor, _ in poller.poll(left * 1000):
                poller.unregister(descriptor)
                pending.discard(descriptor)
    finally:
        for descriptor in waiting:
            os.close(descriptor)
