"""Moments that outlive a process, and a boot."""

from __future__ import annotations

import functools
import time
from pathlib import Path
from typing import Final

from nodealloc import _attrs as attrs
from nodealloc._typed import typed_fields, typed_methods

__all__ = ["Moment"]

_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")


@functools.cache
def _boot_id() -> str:
    """That of this process's boot; read once, since no process outlives one."""
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        return f"unknown since {time.time() - time.monotonic():.0f}"


@typed_methods
@typed_fields
@attrs.frozen(kw_only=True)
class Moment:
    """A moment as it is stored: the monotonic clock counts within its boot, unix time beyond it.

    Attributes:
        boot_id: Which boot `monotonic_s` belongs to.
        monotonic_s: Seconds on that boot's monotonic clock, which stands still
            while the machine sleeps.
        unix_s: Seconds since 1970, as the wall clock had it then.

    Example:
        >>> now = Moment(boot_id="a", monotonic_s=100.0, unix_s=5000.0)
        >>> stored = now.at(130.0)
        >>> later = Moment(boot_id="a", monotonic_s=110.0, unix_s=9999.0)
        >>> later.monotonic_of(stored)  # same boot: the wall clock's jump does not count
        130.0
        >>> rebooted = Moment(boot_id="b", monotonic_s=7.0, unix_s=5020.0)
        >>> rebooted.monotonic_of(stored)  # another boot: 10 s of unix time are left
        17.0
    """

    boot_id: str
    monotonic_s: float
    unix_s: float

    @classmethod
    def now(cls) -> Moment:
        """This moment, on this machine; without a boot id, each process counts as a boot of its own."""
        return cls(boot_id=_boot_id(), monotonic_s=time.monotonic(), unix_s=time.time())

    def at(self, monotonic_s: float, /) -> Moment:
        """Another moment of this boot, by its monotonic clock."""
        unix_s = self.unix_s + monotonic_s - self.monotonic_s
        return Moment(boot_id=self.boot_id, monotonic_s=monotonic_s, unix_s=unix_s)

    def monotonic_of(self, stored: Moment, /) -> float:
        """A stored moment on this boot's monotonic clock; below 0 for one long before this boot."""
        if stored.boot_id == self.boot_id:
            return stored.monotonic_s
        return self.monotonic_s + stored.unix_s - self.unix_s
