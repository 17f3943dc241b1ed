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
        running_is_ready: Only a container that runs is ready, and an init container
            that has succeeded. For the kubelet one that is lost, or that waits again,
            stays as it was.
        waits_unbegun: A container that never began is told as it is when its pod has
            ended, and what it waited for. For the kubelet it is lost, too.
        stays_running: A pod of which each container has begun once is never Pending
            again. For the kubelet it is, when one of them waits, and when all of them wait
            to start again beside a sidecar that runs.
        keeps_past: Restart counts never fall, and nobody guesses at them; how
            instances ended stands when the runtime has forgotten them. The kubelet
            adds one when a container is lost, and believes the runtime afterwards; what an
            agent before this one told it does not know.
        asks_spec: Whether a container has a probe is what the pod says. The kubelet
            asks who probes, so that one that nobody probes yet is ready.
        keeps_health: A verdict on an instance that was told stands until there is
            another. For the kubelet one without a verdict has failed.
        sidecars_restart: A sidecar that is to start again waits, whatever the pod's
            policy and its exit code. The kubelet goes by the pod's policy.
        ends_once_over: A phase is terminal once nothing of the pod can run, and then it
            always is. The kubelet decides while containers run, and holds it back on
            the way.
        keeps_end: A pod that has ended stays as it was told, with its reason. For the
            kubelet somebody may end it once more, for another one.
        tells_unknown: A pod that failed only because nobody knows how its containers
            ended says so. For the kubelet it failed, with the code that the runtime says then.
        keeps_addresses: While a pod ends, or nobody can ask, it has the addresses that
            it had. For the kubelet they go with its sandbox.
        names_node: A pod with the node's network has the node's addresses. A kubelet
            without an API server tells of none.
        ready_falls_first: A pod of which it was decided that it ends is not ready.
            For the kubelet it is, until its containers are not.
        ends_static: Static pods end in a terminal phase like others.
        knows_begun: Whether containers of a pod had begun when it went is what was
            told of it. The kubelet looks at what its source has heard of that.
        sees_dropped: A condition that is told no longer is a change. The kubelet keeps
            what it told.
        resolves_oddities: A container that has ended for good and is seen alive is
            told as unknown; one that was stopped to start again waits meanwhile, and so does
            an init container for which memory ran out. The kubelet drops the whole status, time and again.
    """

    running_is_ready: bool = attrs.field(
        default=True,
        metadata=recorded(False, "pod_phase_status 13", "pod_phase_status 88", "pod_phase_status 89"),
    )
    waits_unbegun: bool = attrs.field(default=True, metadata=recorded(False, "status_merge 215"))
    stays_running: bool = attrs.field(
        default=True,
        metadata=recorded(False, "pod_phase_status 49", "pod_phase_status 306", "pod_phase_status 448"),
    )
    keeps_past: bool = attrs.field(
        default=True, metadata=recorded(False, "pod_phase_status 109", "pod_phase_status 306")
    )
    asks_spec: bool = attrs.field(
        default=True, metadata=recorded(False, "pod_phase_status 203", "pod_phase_status 263")
    )
    keeps_health: bool = attrs.field(
        default=True, metadata=recorded(False, "pod_phase_status 94", "pod_phase_status 339")
    )
    sidecars_restart: bool = attrs.field(
        default=True, metadata=recorded(False, "pod_phase_status 238", "pod_phase_status 726")
    )
    ends_once_over: bool = attrs.field(
        default=True, metadata=recorded(False, "pod_phase_status 29", "pod_phase_status 238")
    )
    keeps_end: bool = attrs.field(default=True, metadata=recorded(False, "pod_phase_status 74"))
    tells_unknown: bool = attrs.field(
        default=True,
        metadata=recorded(False, "pod_phase_status 219", "pod_phase_status 309", "kubelet_stories 50"),
    )
    keeps_addresses: bool = attrs.field(
        default=True, metadata=recorded(False, "pod_phase_status 14", "pod_phase_status 16")
    )
    names_node: bool = attrs.field(
        default=True, metadata=recorded(False, "pod_phase_status 266", "pod_phase_status 374")
    )
    ready_falls_first: bool = attrs.field(
        default=True, metadata=recorded(False, "pod_phase_status 154", "pod_phase_status 284")
    )
    ends_static: bool = attrs.field(
        default=True, metadata=recorded(False, "status_merge 215", "status_merge 218")
    )
    knows_begun: bool = attrs.field(
        default=True, metadata=recorded(False, "status_merge 215", "status_merge 224")
    )
    sees_dropped: bool = attrs.field(default=True, metadata=recorded(False, "status_merge 208"))
    resolves_oddities: bool = attrs.field(
        default=True, metadata=recorded(False, "status_merge 211[2]", "status_merge 217")
    )


RIGHT = Rules()
"""What a decision takes when it is told nothing."""

KUBELET = as_recorded(Rules)
"""As kubelet v1.32 does it, bug for bug."""
