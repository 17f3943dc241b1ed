"""Where this package does otherwise than the kubelet."""

from __future__ import annotations

from nodealloc import _attrs as attrs
from nodealloc._rules import as_recorded, recorded
from nodealloc._typed import typed_fields

__all__ = ["KUBELET", "RIGHT", "Rules"]


@typed_fields
@attrs.frozen(kw_only=True)
class Rules:
    """Where this package does otherwise than the kubelet.

    Attributes:
        keeps_unstored: A container's record is not removed before its exit is
            stored; where it is not, the exit is lost for good.
        counts_stuck: A container that could not be removed still counts as there.
            For the kubelet it is gone once that was tried.
        ages_from_detection: The greatest age of an image that was never used
            counts from its first sighting. The kubelet counts from the year 1.
        starts_exactly: Images are collected when the disk is as full as the
            threshold says. The kubelet rounds up, and starts below it.
        keeps_named: An image that an admitted pod names is kept, also before its
            container is there.
    """

    keeps_unstored: bool = attrs.field(
        default=True, metadata=recorded(False, "container_gc cg-0", "pod_container_deletor cd-0")
    )
    counts_stuck: bool = attrs.field(default=True, metadata=recorded(False, "container_gc cg-2"))
    ages_from_detection: bool = attrs.field(
        default=True, metadata=recorded(False, "image_gc ig-38", "image_gc ig-90", "image_gc ig-193")
    )
    starts_exactly: bool = attrs.field(
        default=True, metadata=recorded(False, "image_gc ig-31", "image_gc ig-64")
    )
    keeps_named: bool = attrs.field(default=True, metadata=recorded(False, "image_gc ig-31"))


RIGHT = Rules()
"""What a decision takes when it is told nothing."""

KUBELET = as_recorded(Rules)
"""As kubelet v1.32 does it, bug for bug."""
