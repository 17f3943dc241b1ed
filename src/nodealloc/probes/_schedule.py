"""Values only: how often a probe is asked, and how many answers count."""

from __future__ import annotations

import math
from typing import Self

from nodealloc import _attrs as attrs
from nodealloc._arguments import wrong
from nodealloc._typed import typed, typed_fields
from nodealloc.podspec import Probe

__all__ = ["Schedule"]


@typed_fields
@attrs.frozen(kw_only=True)
class Schedule:
    """When a probe is asked, in seconds that need not be whole, and how many answers in a row count.

    Attributes:
        period_s: From one time to the next.
        timeout_s: Of one time.
        initial_delay_s: From the container's start to the first time.
        success_threshold: Successes in a row that count.
        failure_threshold: Failures in a row that count.

    Raises:
        ConfigurationError: A period or time-out that is not above 0, a delay below 0, a threshold below 1.
    """

    period_s: float = 10.0
    timeout_s: float = 1.0
    initial_delay_s: float = 0.0
    success_threshold: int = 1
    failure_threshold: int = 3

    def __attrs_post_init__(self) -> None:
        for name, value in (("period_s", self.period_s), ("timeout_s", self.timeout_s)):
            if not (value > 0 and math.isfinite(value)):
                raise wrong(f"Schedule.{name}", value, "seconds above 0")
        if not (self.initial_delay_s >= 0 and math.isfinite(self.initial_delay_s)):
            raise wrong("Schedule.initial_delay_s", self.initial_delay_s, "seconds, 0 or more")
        for name, count in (
            ("success_threshold", self.success_threshold),
            ("failure_threshold", self.failure_threshold),
        ):
            if count < 1:
                raise wrong(f"Schedule.{name}", count, "a whole number, at least 1")

    @classmethod
    @typed
    def of(cls, probe: Probe, /) -> Self:
        """That of a pod's probe."""
        return cls(
            period_s=float(probe.period_seconds),
            timeout_s=float(probe.timeout_seconds),
            initial_delay_s=float(probe.initial_delay_seconds),
            success_threshold=probe.success_threshold,
            failure_threshold=probe.failure_threshold,
        )
