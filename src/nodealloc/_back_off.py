"""How long to wait after failures: one policy for every package that tries again."""

from __future__ import annotations

from nodealloc import _attrs as attrs
from nodealloc._arguments import within
from nodealloc._typed import typed_fields, typed_methods
from nodealloc.errors import ConfigurationError

__all__ = ["BackOff"]


@typed_methods
@typed_fields
@attrs.frozen(kw_only=True)
class BackOff:
    """Exponential waits: `initial_s`, twice that, and so on up to `max_s`.

    Attributes:
        initial_s: Wait after the first failure, in seconds.
        factor: From one wait to the next; 1 or more.
        max_s: Longest wait, in seconds.

    Source: kubelet ``goroutinemap/exponentialbackoff`` (0.5 s, 2 min 2 s).
    """

    initial_s: float = attrs.field(default=0.5, validator=within(0))
    factor: float = attrs.field(default=2.0, validator=within(1))
    max_s: float = attrs.field(default=122.0, validator=within(0))

    def __attrs_post_init__(self) -> None:
        if self.max_s < self.initial_s:
            raise ConfigurationError(
                f"BackOff: max_s {self.max_s:g} is below initial_s {self.initial_s:g}; "
                "the longest wait is at least the first"
            )

    def after(self, tries: int, /) -> float:
        """Seconds to wait after `tries` failures in a row, at least 1."""
        # The exponent is capped because a float overflows long before a node gives up.
        try:
            return min(self.max_s, self.initial_s * self.factor ** min(tries - 1, 64))
        except OverflowError:  # a very large factor
            return self.max_s
