"""What can be wrong with what is held back."""

from __future__ import annotations

from collections.abc import Sequence

from nodealloc.errors import ConfigurationError

__all__ = ["ReservationError"]


class ReservationError(ConfigurationError):
    """What is to be reserved does not fit the machine, or contradicts itself.

    Attributes:
        faults: Every fault in words, at least one.
    """

    def __init__(self, faults: Sequence[str]) -> None:
        super().__init__("reservation: " + "; ".join(faults))
        self.faults: tuple[str, ...] = tuple(faults)
