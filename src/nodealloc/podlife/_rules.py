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
        counts_zero_grace: A grace of 0 s is a grace: it ends at once. For the
            kubelet 0 means not set.
        keeps_deadline: Hooks, sidecars and their waiting fit into the grace. The
            kubelet counts whole seconds, gives each container 2 s at least, and all of
            the grace anew, for its hook as well, where the runtime did not take the stop.
        skips_stopped: A sidecar waits for all behind it that run. With the kubelet
            one that does not run breaks the chain.
        keeps_sandbox_id: A sandbox that has the wrong network is named, so that it
            is known what is taken away. The kubelet forgets it.
        keeps_probe_stop: The last container of a pod that failed a probe is stopped
            for that reason, with the probe's own grace. The kubelet loses both.
        spares_doomed: Nothing of a pod is started by the decision that ends it. The
            kubelet still starts ephemeral containers.
        keeps_init_progress: An init container that succeeded in a sandbox does not
            run again in it, whatever the runtime has forgotten since; what ran in
            another sandbox does not count. The kubelet infers both from records.
        leaves_deleted: A pod that is being deleted gets no sandbox and no init
            container any more. The kubelet goes on with it.
        one_instance: A container that the runtime does not know the state of is
            stopped, and so is an older instance that still runs; whether another one
            starts is decided once they are known to have ended. The kubelet starts
            it at once, also with policy Never.
        follows_edits: An edit that keeps the pod's uid takes effect: another
            command, environment, security or mount makes a container anew, what a sandbox
            is made from all of it (not of a pod that never starts again), other resources
            are given to it while it runs, one that was taken out is stopped, its probes are
            those that it has now, and the delay of a crash loop begins anew. Until its
            parts are ready the pod goes on in the form that runs. The
            kubelet compares name and image, and leaves all else as it is.
        tells_meanwhile: What happens to a pod is told as it happens, and what failed is
            tried again when it may be. The kubelet looks at a pod, tells of it and acts:
            meanwhile containers stay as they were, and one that is made and does not run
            yet is not there. What failed it tells, and tries again, with the next look. It
            looks for a container's image with each try, once those before it have started; each try
            counts for the delay of a crash loop, and a restart once the runtime has it. One whose post-start
            hook failed goes on where its stop failed. It stops
            one container after the other, and decides nothing else of the pod until all that
            a look led to is done: it takes no notice of an edit, an end or a shorter grace before.
            What it stops to start again starts, though it had ended by itself; here its policy decides then.
            Where that start fails or has to wait, its policy decides with the kubelet's next look.
        counts_stopped: A container that was stopped to start again has ended, and its
            delay counts from that. The kubelet looks at the end before that one, as it
            was when it decided to stop it.
        clears_away: What is left of a pod goes with it. The kubelet leaves dead
            containers and sandboxes to a collection, and forgets pods when it
            looks after them next.
        stays_ended: A pod that ends stays so, whatever comes under its uid meanwhile.
            With the kubelet that runs once the pod has finished.
        keeps_delays: How long a container waits before it starts again outlives the
            agent. With the kubelet a restart of it starts all that waits.
        keeps_starts: A container that was told to start has run, though no listing ever showed
            it: it ended in an unknown way; and one that was made and not started has not run, and is
            started. The kubelet takes a container without a record for one that never ran, and
            starts it again, also with policy Never, and a debug container that was made for one that ran.
            Of any other that was made and did not start it makes the next attempt with its next look.
        keeps_refusals: A pod that was refused stays refused. The kubelet asks again
            when it is started anew.
        remembers_pods: A pod that was ending as the agent ended, or whose manifest went
            meanwhile, ends with its own grace and hooks. For a kubelet only the runtime
            knows it: it has a second, no hook runs, and all of it is stopped at once; one
            that is still being deleted has its whole grace anew. A static pod whose manifest is
            there is active from then on, goes on though it was ending, and starts again if its policy
            says so though it had ended; stops and hooks that were under way are forgotten.
        knows_removed: A pod of an API server that is gone from there, as after a deletion
            without grace, ends with its own grace. For a kubelet it has a second.
        stops_ready: A sandbox that has ended is not stopped again when its pod ends. The
            kubelet stops all of them.
    """

    counts_zero_grace: bool = attrs.field(
        default=True, metadata=recorded(False, "pod_workers 110", "pod_workers 35", "pod_workers 238")
    )
    keeps_deadline: bool = attrs.field(
        default=True,
        metadata=recorded(False, "termination_order 0", "termination_order 2", "container_kill_grace 0"),
    )
    skips_stopped: bool = attrs.field(
        default=True, metadata=recorded(False, "termination_order 11", "termination_order 75")
    )
    keeps_sandbox_id: bool = attrs.field(
        default=True,
        metadata=recorded(False, "pod_actions 55", "pod_actions 90", "sandbox_changed 1"),
    )
    keeps_probe_stop: bool = attrs.field(
        default=True, metadata=recorded(False, "pod_actions 56", "pod_actions 86", "pod_actions 97")
    )
    spares_doomed: bool = attrs.field(
        default=True, metadata=recorded(False, "pod_actions 117", "pod_actions 125", "pod_actions 322")
    )
    keeps_init_progress: bool = attrs.field(
        default=True,
        metadata=recorded(
            False,
            "pod_actions 121",
            "pod_actions 211",
            "pod_actions 374",
            "pod_actions 52",
            "pod_actions 59",
            "pod_actions 155",
        ),
    )
    leaves_deleted: bool = attrs.field(
        default=True,
        metadata=recorded(
            False,
            "pod_actions 30",
            "pod_actions 58",
            "pod_actions 91",
            "pod_actions 149",
            "pod_actions 212",
            "pod_actions 271",
        ),
    )
    one_instance: bool = attrs.field(
        default=True, metadata=recorded(False, "pod_actions 3", "pod_actions 72", "pod_actions 133")
    )
    tells_meanwhile: bool = attrs.field(default=True, metadata=recorded(False, "kubelet_stories 52"))
    counts_stopped: bool = attrs.field(
        default=True, metadata=recorded(False, "kubelet_stories 21", "kubelet_stories 13")
    )
    clears_away: bool = attrs.field(
        default=True, metadata=recorded(False, "kubelet_stories 42", "kubelet_stories 46")
    )
    stays_ended: bool = attrs.field(
        default=True, metadata=recorded(False, "kubelet_stories 39", "kubelet_stories 94")
    )
    keeps_delays: bool = attrs.field(default=True, metadata=recorded(False, "kubelet_stories 27"))
    keeps_starts: bool = attrs.field(
        default=True, metadata=recorded(False, "pod_actions 28", "pod_actions 54")
    )
    keeps_refusals: bool = attrs.field(default=True, metadata=recorded(False, "kubelet_stories 74"))
    remembers_pods: bool = attrs.field(
        default=True,
        metadata=recorded(False, "kubelet_stories 24", "kubelet_stories 26", "kubelet_api_stories 2"),
    )
    knows_removed: bool = attrs.field(default=True, metadata=recorded(False, "kubelet_api_stories 1"))
    stops_ready: bool = attrs.field(default=True, metadata=recorded(False, "kubelet_api_stories 20"))
    follows_edits: bool = attrs.field(default=True, metadata=recorded(False, "kubelet_stories 38"))


RIGHT = Rules()
"""What a decision takes when it is told nothing."""

KUBELET = as_recorded(Rules)
"""As kubelet v1.32 does it, bug for bug."""
