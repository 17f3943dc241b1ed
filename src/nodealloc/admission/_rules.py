"""Where admission does otherwise than the kubelet."""

from __future__ import annotations

from typing import Final

from nodealloc import _attrs as attrs
from nodealloc._rules import as_recorded, recorded
from nodealloc._typed import typed_fields

__all__ = ["KUBELET", "Rules"]


@typed_fields
@attrs.frozen(kw_only=True)
class Rules:
    """Where this package does otherwise than the kubelet.

    Attributes:
        os_by_field: The operating system that a pod is for stands in `spec.os` alone;
            the kubelet also looks for it among the pod's labels.
        knows_own_os: A node has the label of its operating system even where it
            carries no other; on the kubelet only where there is another label.
        compares_any_number: `Gt` and `Lt` compare negative numbers and those beyond 64 bits, and
            `In` any text; for the kubelet such a number, and a value that could be no label, never matches.
        counts_sidecar_ports: Host ports of sidecars are taken and looked for.
        needs_every_resource: An extended resource that the node does not have is a
            reason to refuse; the kubelet forgets what containers ask of it.
        victims_by_rank: Room is made by the least important pods, and by no more than
            are needed; the kubelet goes by QoS class and by distance, with requests
            that leave sidecars out, and takes pods of higher priority for a static one.
        waits_for_victims: A pod comes in when its victims have ended; the kubelet lets
            it in at once, whether they could be killed or not.
        names_what_is_short: Where no pod may make room, the refusal names the resource;
            the kubelet calls it unexpected.
        waits_for_node: Without a view of the node nobody can say yet; the kubelet refuses.
        allocates_last: CPUs, memory and devices are given out to a pod that passes all else; the
            kubelet gives them out first, so that a pod which lacks both is refused in their words.
        asks_every_annotation: AppArmor is needed where any container asks for it; the
            kubelet looks at one annotation, by lot.
    """

    os_by_field: bool = attrs.field(default=True, metadata=recorded(False, "admit_predicates ap-4"))
    knows_own_os: bool = attrs.field(default=True, metadata=recorded(False, "admit_predicates ap-67"))
    compares_any_number: bool = attrs.field(default=True, metadata=recorded(False, "admit_predicates ap-611"))
    counts_sidecar_ports: bool = attrs.field(
        default=True, metadata=recorded(False, "admit_predicates ap-280", "admit_predicates ap-735")
    )
    needs_every_resource: bool = attrs.field(default=True, metadata=recorded(False, "admit_predicates ap-10"))
    victims_by_rank: bool = attrs.field(
        default=True,
        metadata=recorded(
            False, "critical_preemption cp-5", "critical_preemption cp-15", "critical_preemption cp-23"
        ),
    )
    waits_for_victims: bool = attrs.field(
        default=True,
        metadata=recorded(
            False, "critical_preemption cp-11", "critical_preemption cp-37", "critical_preemption cp-40"
        ),
    )
    names_what_is_short: bool = attrs.field(
        default=True, metadata=recorded(False, "admit_predicates ap-35", "critical_preemption cp-8")
    )
    waits_for_node: bool = attrs.field(
        default=True, metadata=recorded(False, "admit_predicates ap-189", "critical_preemption cp-129")
    )
    allocates_last: bool = attrs.field(default=True, metadata=recorded(False, "kubelet_stories 67"))
    asks_every_annotation: bool = attrs.field(
        default=True, metadata=recorded(False, "apparmor_admit aa-51", "apparmor_admit aa-122")
    )


KUBELET: Final = as_recorded(Rules)
"""As recorded, bug for bug."""
