"""Pure arithmetic between milli-CPU, shares, weights, quotas and page sizes."""

from __future__ import annotations

from typing import Final

from nodealloc._typed import typed_on_error
from nodealloc.errors import ConfigurationError

__all__ = [
    "MAX_SHARES",
    "MIN_QUOTA_US",
    "MIN_SHARES",
    "PAGE_BYTES",
    "PERIOD_US",
    "hugepage_name",
    "milli_cpu_to_quota_us",
    "milli_cpu_to_shares",
    "shares_to_weight",
    "weight_to_shares",
]

MIN_SHARES: Final = 2
"""Least that the kernel keeps: 1 reads back as 2."""
MAX_SHARES: Final = 262144
MIN_QUOTA_US: Final = 1000
"""Least quota in microseconds that the kernel accepts."""
PAGE_BYTES: Final = 4096
"""Smallest page of any kernel; some have pages of 16 or 64 KiB."""
PERIOD_US: Final = 100_000
"""Period over which a quota counts unless asked otherwise, in microseconds."""

_SHARES_PER_CPU: Final = 1024
_WEIGHTS: Final = 9999
_SHARES: Final = MAX_SHARES - MIN_SHARES


def _not_negative(milli_cpu: int) -> None:
    if milli_cpu < 0:
        raise ConfigurationError(f"{milli_cpu} milli-CPU: an amount of CPU is 0 or more")


def milli_cpu_to_shares(milli_cpu: int, /) -> int:
    """Shares for a CPU request, from 2 to 262144; 1024 for one CPU.

    Source: kubelet ``cm/helpers_linux.go``.
    """
    _not_negative(milli_cpu)
    return min(max(milli_cpu * _SHARES_PER_CPU // 1000, MIN_SHARES), MAX_SHARES)


def milli_cpu_to_quota_us(milli_cpu: int, /, *, period_us: int = PERIOD_US) -> int:
    """Quota for a CPU limit in microseconds a period, at least 1000; 0 for no limit.

    Source: kubelet ``cm/helpers_linux.go``.
    """
    _not_negative(milli_cpu)
    if not milli_cpu:
        return 0
    return max(milli_cpu * period_us // 1000, MIN_QUOTA_US)


def shares_to_weight(shares: int, /) -> int:
    """Weight (cgroup v2, 1 to 10000) that stands for shares (v1, 2 to 262144).

    Source: kubelet ``cm/cgroup_manager_linux.go``; KEP-2254.
    """
    within = min(max(shares, MIN_SHARES), MAX_SHARES)
    return (within - MIN_SHARES) * _WEIGHTS // _SHARES + 1


def weight_to_shares(weight: int, /) -> int:
    """Fewest shares that have this weight, so that converting back gives it again.

    Source: ours; the kubelet rounds down, and loses one weight in most round trips.
    """
    within = min(max(weight, 1), _WEIGHTS + 1)
    return -(-(within - 1) * _SHARES // _WEIGHTS) + MIN_SHARES


@typed_on_error
def hugepage_name(size_bytes: int, /) -> str:
    """A page size as the kernel's file names have it: `64KB`, `2MB`, `1GB`.

    Raises:
        ConfigurationError: No huge page has that size.
    """
    for shift, unit in ((30, "GB"), (20, "MB"), (10, "KB")):
        if size_bytes >= 1 << shift:
            if size_bytes & ((1 << shift) - 1):
                break
            return f"{size_bytes >> shift}{unit}"
    raise ConfigurationError(f"{size_bytes} bytes is no huge page size; a power of two such as {2 << 20} is")
