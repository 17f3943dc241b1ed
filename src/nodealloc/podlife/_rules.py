"""Where this package does otherwise than the kubelet."""

from __future__ import annotations

import attrs

from nodealloc._rules import as_recorded, recorded

__all__ = ["KUBELET", "RIGHT", "Rules"]


@attrs.frozen(kw_only=True)
class Rules:
    """Where this package does otherwise than the kubelet.

    Attributes:
        counts_zero_grace: A grace of 0 s is a grace: it ends at once. For the
            kubelet 0 means not set.
        tells_finished: Who asks for the end of a pod that has finished hears that
            it has. The kubelet never answers.
        knows_grace: A pod that ends by itself has its own grace. With the kubelet
            nobody knows one.
        keeps_deadline: Hooks, sidecars and their waiting fit into the grace. The
            kubelet counts whole seconds and gives each container 2 s at least.
        skips_stopped: A sidecar waits for all behind it that run. With the kubelet
            one that does not run breaks the chain.
    """

    counts_zero_grace: bool = attrs.field(
        default=True, metadata=recorded(False, "pod_workers 110", "pod_workers 35", "pod_workers 238")
    )
    tells_finished: bool = attrs.field(
        default=True, metadata=recorded(False, "pod_workers 1", "pod_workers 2", "pod_workers 7")
    )
    knows_grace: bool = attrs.field(
        default=True, metadata=recorded(False, "pod_workers 2", "pod_workers 7", "pod_workers 10")
    )
    keeps_deadline: bool = attrs.field(
        default=True,
        metadata=recorded(False, "termination_order 0", "termination_order 2", "container_kill_grace 0"),
    )
    skips_stopped: bool = attrs.field(
        default=True, metadata=recorded(False, "termination_order 11", "termination_order 75")
    )


RIGHT = Rules()
"""What a decision takes when it is told nothing."""

KUBELET = as_recorded(Rules)
"""As kubelet v1.32 does it, bug for bug."""
