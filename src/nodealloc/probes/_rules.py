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
        resets_run: A new instance of a container begins with a run of its own. The
            kubelet goes on counting the answers of the one before, so that one is
            killed at its first failure, or ready at its first success.
        tells_answers_alone: A verdict comes of answers and of nothing else. The
            kubelet makes one up for an instance that nobody has asked (alive, not
            ready), for one that ended (failed) and for a pod that is deleted (well); after
            its start nobody has been asked, so that what has a startup probe has to pass it
            again, and is not ready until then.
        spares_unknown: An answer that says nothing counts for nothing. For the
            kubelet it is a failure.
        follows_sidecars: A sidecar that ended is asked again once it runs again,
            whatever the pod's restart policy. The kubelet never asks it again
            where that is Never.
        fails_what_cannot_run: A command that is not in the container, or cannot be
            started in it, is a failure. For the kubelet it says nothing for ever.
        asks_at_once: An instance is asked as soon as it may be. The kubelet asks for
            liveness and startup at whole periods from when it took the pod up, and counts
            a delay from the second of the wall clock in which the container started.
    """

    resets_run: bool = attrs.field(
        default=True,
        metadata=recorded(
            False,
            "probe_worker 190",
            "probe_worker 217",
            "probe_worker 252",
            "probe_worker 25",
            "probe_worker 175",
            "probe_worker 343",
        ),
    )
    tells_answers_alone: bool = attrs.field(
        default=True,
        metadata=recorded(False, "probe_worker 0[0]", "probe_worker 40[3]", "probe_worker 15[0]"),
    )
    spares_unknown: bool = attrs.field(default=True, metadata=recorded(False, "probe_worker 1[2]"))
    follows_sidecars: bool = attrs.field(
        default=True, metadata=recorded(False, "probe_worker 104", "probe_worker 168", "probe_worker 220")
    )
    fails_what_cannot_run: bool = attrs.field(default=True, metadata=recorded(False, "kubelet_stories 20"))
    asks_at_once: bool = attrs.field(
        default=True, metadata=recorded(False, "kubelet_stories 13", "kubelet_stories 21")
    )


RIGHT = Rules()
"""What a decision takes when it is told nothing."""

KUBELET = as_recorded(Rules)
"""As kubelet v1.32 does it, bug for bug."""
