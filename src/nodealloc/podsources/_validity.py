"""Why a pod cannot be static: what an API server would not take, and what only it can give."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, cast

from nodealloc.errors import Fault
from nodealloc.podspec import api_faults

if TYPE_CHECKING:
    from nodealloc.podspec import Container, Pod

__all__ = ["faults_of"]

_VARIABLE: Final = re.compile(r"(?!\.\.)(?!\.\Z)[-._a-zA-Z][-._a-zA-Z0-9]*", re.ASCII)


def faults_of(pod: Pod, /, *, is_kubelets: bool = False) -> tuple[Fault, ...]:
    """Why a pod cannot be static, each with its path; none where it can.

    Args:
        pod: As it stands in its file, but on its node.
        is_kubelets: Whether all that a kubelet v1.32 refuses counts; some of that a later one takes.

    Source: Kubernetes ``pkg/apis/core/validation``; a kubelet asks the same of its manifests.
    """
    found: list[Fault] = []
    if pod.resource_claims:
        found.append(Fault("$.spec.resourceClaims", "claims are an API server's; a static pod has none"))
    if pod.ephemeral_containers:
        what = "they are added to a pod that runs, by an API server; leave them out"
        found.append(Fault("$.spec.ephemeralContainers", what))
    if is_kubelets:
        found.extend(_kubelets(pod))
    return (*found, *api_faults(pod))


def _kubelets(pod: Pod) -> Iterator[Fault]:
    if pod.host_users is False:
        for shared, field in (
            (pod.host_network, "hostNetwork"),
            (pod.host_pid, "hostPID"),
            (pod.host_ipc, "hostIPC"),
        ):
            if shared:
                yield Fault("$.spec.hostUsers", f"a pod with {field} has the node's users; leave one out")
    for kind, containers in (("initContainers", pod.init_containers), ("containers", pod.containers)):
        for index, one in enumerate(containers):
            where = f"$.spec.{kind}[{index}]"
            if one.resize_policy and kind == "initContainers":
                yield Fault(f"{where}.resizePolicy", "an init container has none; leave it out")
            yield from _names(where, one)
            context = one.security_context
            if context is not None and context.proc_mount == "Unmasked" and pod.host_users is not False:
                what = "Unmasked needs hostUsers: false; write both, or leave it out"
                yield Fault(f"{where}.securityContext.procMount", what)
    for index, volume in enumerate(pod.volumes):
        if volume.kind == "projected":
            where = f"$.spec.volumes[{index}].projected"
            yield from _projected(where, volume.spec, has_account=bool(pod.service_account_name))


def _names(where: str, one: Container) -> Iterator[Fault]:
    """Names of variables, which begin with no digit here."""
    remedy = "write letters, digits, '-', '_' and '.', no digit and no '..' first"
    for index, variable in enumerate(one.variables):
        if not _VARIABLE.fullmatch(variable.name):
            yield Fault(f"{where}.env[{index}].name", f"{variable.name[:80]!r} is no name; {remedy}")
    for index, all_of in enumerate(one.env_from):
        if all_of.prefix and not _VARIABLE.fullmatch(all_of.prefix):
            yield Fault(f"{where}.envFrom[{index}].prefix", f"{all_of.prefix[:80]!r} begins none; {remedy}")


def _projected(where: str, spec: object, *, has_account: bool) -> Iterator[Fault]:
    fields = cast("Mapping[str, object]", spec) if isinstance(spec, Mapping) else {}
    for index, source in enumerate(cast("Sequence[object]", fields.get("sources") or ())):
        kinds = cast("Mapping[str, object]", source) if isinstance(source, Mapping) else {}
        if "serviceAccountToken" in kinds and not has_account:
            what = "it needs serviceAccountName; name one, or leave it out"
            yield Fault(f"{where}.sources[{index}].serviceAccountToken", what)
        if "clusterTrustBundle" in kinds:
            what = "it is an API server's; a static pod has none"
            yield Fault(f"{where}.sources[{index}].clusterTrustBundle", what)
