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
        keeps_known: Of two pods with one full name, or one uid, from one source the
            one that is known stays; the other waits until the name is free. For
            the kubelet the first of each message counts, and ends the one that runs.
        keeps_deletion: Deletion that was asked for is not taken back, and its grace
            only shrinks. The kubelet takes whatever is said last.
        hears_reconcile: A status that a source sends by itself is told on. The
            kubelet drops it.
        keeps_uid: A static pod without a uid of its own keeps its uid when it is
            edited, or its file renamed. For the kubelet each edition is another pod, and
            the same manifest in another file.
        renews_uid: A pod that was taken away and put back, or that is edited after
            it ended, is a new one and runs. For the kubelet it has ended for good.
        keeps_unreadable: A manifest that cannot be read leaves its pod as it is. The
            kubelet ends the pod.
        waits_for_absent: A manifest that is away counts as gone after a time. For the
            kubelet it is gone at once.
    """

    keeps_known: bool = attrs.field(
        default=True,
        metadata=recorded(
            False,
            "pod_source_updates 4[1]",
            "pod_source_updates 6[3]",
            "kubelet_stories 43",
            "kubelet_stories 44",
        ),
    )
    keeps_deletion: bool = attrs.field(default=True, metadata=recorded(False, "pod_source_updates 2[5]"))
    hears_reconcile: bool = attrs.field(
        default=True, metadata=recorded(False, "pod_source_updates 42[5]", "pod_source_updates 90[8]")
    )
    keeps_uid: bool = attrs.field(
        default=True, metadata=recorded(False, "kubelet_stories 35", "kubelet_stories 40")
    )
    renews_uid: bool = attrs.field(
        default=True, metadata=recorded(False, "kubelet_stories 41", "kubelet_stories 42")
    )
    keeps_unreadable: bool = attrs.field(default=True, metadata=recorded(False, "kubelet_stories 46"))
    waits_for_absent: bool = attrs.field(
        default=True, metadata=recorded(False, "kubelet_stories 94", "kubelet_stories 95")
    )


RIGHT = Rules()
"""What a decision takes when it is told nothing."""

KUBELET = as_recorded(Rules)
"""As kubelet v1.32 does it, bug for bug."""
