"""How long to wait after failures: one policy for every package that tries again."""

from __future__ import annotations

import attrs

__all__ = ["BackOff"]


@attrs.frozen(kw_only=True)
class BackOff:
    """Exponential waits: `initial_s`, twice that, and so on up to `max_s`.

    Attributes:
        initial_s: Wait after the first failure, in seconds.
        factor: From one wait to the next; 1 or more.
        max_s: Longest wait, in seconds.

    Source: kubelet ``goroutinemap/exponentialbackoff`` (0.5 s, 2 min 2 s).
    """

    initial_s: float = attrs.field(default=0.5, validator=attrs.validators.ge(0))
    factor: float = attrs.field(default=2.0, validator=attrs.validators.ge(1))
    max_s: float = attrs.field(default=122.0, validator=attrs.validators.ge(0))

    def after(self, tries: int, /) -> float:
        """Seconds to wait after `tries` failures in a row, at least 1."""
        # The exponent is capped because a float overflows long before a node gives up.
        return min(self.max_s, self.initial_s * self.factor ** min(tries - 1, 64))
