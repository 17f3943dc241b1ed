"""Errors of this package; refusals of a claim are values (`Shortfall`), not errors."""

from __future__ import annotations

from nodealloc import _attrs as attrs
from nodealloc.errors import ConfigurationError

__all__ = ["ReservationMismatchError"]


@attrs.frozen(auto_exc=True)
class ReservationMismatchError(ConfigurationError):
    """Memory reserved per NUMA node is not what the node keeps as a whole.

    Attributes:
        resource: `memory` or `hugepages-<size>`.
        reserved_bytes: Sum over all NUMA nodes.
        expected_bytes: kube-reserved + system-reserved + hard eviction
            threshold; None when that is nothing although something has to be kept.
    """

    resource: str
    reserved_bytes: int
    expected_bytes: int | None

    def __str__(self) -> str:
        """Both sums, and which to mend."""
        if self.expected_bytes is None:
            return f"no {self.resource} is reserved on any NUMA node; the system needs some"
        return (
            f"{self.resource}: {self.reserved_bytes} bytes are reserved over all NUMA nodes; kube-reserved, "
            f"system-reserved and the hard eviction threshold make {self.expected_bytes}; make the two equal"
        )
