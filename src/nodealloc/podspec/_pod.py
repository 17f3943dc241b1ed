"""A pod: its fields, read from a manifest and written as one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, cast

from nodealloc import _attrs as attrs
from nodealloc._reading import MAX_DOCUMENT_BYTES, Json
from nodealloc._typed import typed, typed_fields
from nodealloc.errors import Fault
from nodealloc.podspec._fields import PodFields
from nodealloc.podspec._manifest import Maker, read_pod
from nodealloc.podspec._pod_reader import PodReader
from nodealloc.podspec._writing import manifest_of

__all__ = ["Pod", "pod_as_it_stands"]

_SOURCE: Final = 320
"""Characters of a pod's name in an error; a name and a name space that are right have fewer."""


@typed_fields
@attrs.frozen(kw_only=True)
class Pod(PodFields):
    """A pod.

    Attributes:
        uid: Unique for all time; a pod made anew under its old name has another.
        name: For people.
        namespace: For people.
        init_containers: Run before the containers, in this order.
        containers: Run together; at least one.
        ephemeral_containers: Added to look at a pod that runs; never restarted.
        volumes: What the pod's containers can mount.
        labels: As the manifest has them.
        annotations: As the manifest has them.
        restart_policy: Of its containers.
        termination_grace_period_seconds: From being told to end to being killed.
        active_deadline_seconds: How long it may be active; None for ever.
        security_context: Of all containers.
        image_pull_secrets: Names of secrets to pull with.
        node_name: The node that it is for; "" for any.
        node_selector: Labels that the node has to have.
        affinity: Which nodes, and near which pods.
        tolerations: Taints that do not matter.
        priority: The higher the more important; None where nobody resolved its class.
        priority_class_name: Its class, or "".
        preemption_policy: `PreemptLowerPriority`, `Never`, or "" where not said.
        overhead: What running it takes beside its containers.
        runtime_class_name: Which runtime; None for the node's own.
        host_network: It shares the node's network.
        host_pid: It sees the node's processes.
        host_ipc: It shares the node's IPC.
        host_users: False gives it a user name space of its own.
        share_process_namespace: Its containers see one another's processes.
        dns_policy: Whose name servers.
        dns_config: What is added to resolv.conf.
        host_aliases: Added to /etc/hosts.
        hostname: "" for the pod's name.
        subdomain: Behind the host name.
        set_hostname_as_fqdn: Whether the kernel's host name has the domain.
        enable_service_links: Whether services stand in the environment.
        service_account_name: As which it speaks to the API.
        automount_service_account_token: None follows the account.
        resource_claims: Claims that its containers use.
        readiness_gates: Conditions of others that being ready needs.
        scheduling_gates: Reasons not to schedule it yet.
        os: For which operating system; None for any.
        creation_timestamp: RFC 3339, or "".
        deletion_timestamp: RFC 3339 of when it has to be gone; "" while nobody asked for it.
        deletion_grace_period_seconds: Of the deletion; None where not said. 0 is a value.
        carried: What concerns others than the node, as it came, by its path
            (`metadata.ownerReferences`, `spec.schedulerName`).
        status: What was last told of it, as it came.
        requested_nanos: What it requests at its peak, by resource in billionths; computed.
        qos: Its class, see `qos_class`; computed.
    """

    @classmethod
    @typed
    def from_manifest(
        cls,
        manifest: object,
        /,
        *,
        source: str = "",
        max_bytes: int = MAX_DOCUMENT_BYTES,
        unread: Callable[[Fault], None] | None = None,
    ) -> Pod:
        """Read one Pod manifest, as YAML or JSON gives it.

        Every field of v1.32 is read, carried along where it concerns others than
        the node, or named. What is missing gets the default of the API: a request
        follows its limit, a manifest without `metadata.uid` gets one that depends
        on namespace and name alone.

        Args:
            manifest: A mapping with `metadata` and `spec`.
            source: What to call it in an error, such as a file name.
            max_bytes: A manifest that takes more is refused unread. Counted without
                blanks and quotes, and what a reference of YAML stands for each time.
            unread: Told of each field that is unknown or not supported, which is then
                left out: for manifests of a newer API. None refuses the manifest.

        Raises:
            DecodeError: Lists every wrong field with its path; of more than a
                hundred the first, and how many more there are.

        Source: Kubernetes API reference, Pod v1; the checks and defaults are those of
        ``pkg/apis/core/validation`` and ``pkg/apis/core/v1/defaults`` that concern a node.
        """
        reader = PodReader(source or "pod", unread=unread).start()
        if not reader.fits(manifest, max_bytes):
            reader.check()
        pod = read_pod(manifest, reader, cast("Maker[Pod]", cls))
        reader.check(source or (f"pod {pod.full_name[:_SOURCE]}" if pod.name else "pod"))
        return pod

    def to_manifest(self) -> dict[str, Json]:
        """The manifest of this pod; read again it is an equal pod.

        Fields that have the API's defaults are left out.
        """
        return manifest_of(self)


def pod_as_it_stands(manifest: object, /) -> Pod:
    """A pod of a manifest that an API server might have refused; what cannot be read has its default.

    For replaying recorded decisions alone: what was decided about such a pod is recorded all the same.
    """
    return read_pod(manifest, PodReader("recorded pod").start(), cast("Maker[Pod]", Pod))
