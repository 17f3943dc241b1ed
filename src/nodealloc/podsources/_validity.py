"""Why a pod cannot be static: what an API server would not take, and what only it can give."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Final

from nodealloc._raw_parts import fields_of, items_of
from nodealloc.errors import Fault
from nodealloc.podspec import NodeSelectorOperator, api_faults

if TYPE_CHECKING:
    from nodealloc.podspec import Container, Pod

__all__ = ["faults_of"]

_TERMS: Final = (
    "$.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
)
_COMPARED: Final = frozenset({NodeSelectorOperator.GT, NodeSelectorOperator.LT})
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,19}", re.ASCII)
_BEGIN_IPC: Final = ("kernel.shm", "kernel.msg")
_VARIABLE: Final = re.compile(r"(?!\.\.)(?!\.\Z)[-._a-zA-Z][-._a-zA-Z0-9]*", re.ASCII)


def faults_of(pod: Pod, /, *, is_kubelets: bool = False) -> tuple[Fault, ...]:
    """Why a pod cannot be static, each with its path; none where it can.

    Args:
        pod: As it stands in its file, but on its node, with its name there.
        is_kubelets: Whether all that a kubelet v1.32 refuses counts; some of that a later one takes.

    Source: Kubernetes ``pkg/apis/core/validation``; a kubelet asks the same of its manifests.
    """
    found: list[Fault] = []
    if pod.resource_claims:
        found.append(Fault("$.spec.resourceClaims", "claims are an API server's; a static pod has none"))
    if pod.ephemeral_containers:
        what = "they are added to a pod that runs, by an API server; leave them out"
        found.append(Fault("$.spec.ephemeralContainers", what))
    found.extend(_kubelets(pod) if is_kubelets else _numbers(pod))
    return (*found, *api_faults(pod))


def _numbers(pod: Pod) -> Iterator[Fault]:
    """Labels that are compared with what is no number: no node ever matches, and nothing says why."""
    affinity = pod.affinity.node_affinity if pod.affinity is not None else None
    required = affinity.required if affinity is not None else None
    for index, term in enumerate(required.node_selector_terms if required is not None else ()):
        for number, one in enumerate(term.match_expressions):
            for value in one.values if one.operator in _COMPARED else ():
                if not _NUMBER.fullmatch(value):
                    what = f"{value[:80]!r} is no whole number, so that no node matches; write one"
                    yield Fault(f"{_TERMS}[{index}].matchExpressions[{number}].values", what)


def _kubelets(pod: Pod) -> Iterator[Fault]:
    yield from _settings(pod)
    yield from _searches(pod)
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
    images = {volume.name for volume in pod.volumes if volume.kind == "image"}
    if images:
        yield from _parts_of_images(pod, images)
    for index, volume in enumerate(pod.volumes):
        if volume.kind == "projected":
            where = f"$.spec.volumes[{index}].projected"
            yield from _projected(where, volume.spec, has_account=bool(pod.service_account_name))


def _settings(pod: Pod) -> Iterator[Fault]:
    """Whatever begins as a setting of IPC counts as one here."""
    found = pod.security_context
    for index, one in enumerate(found.sysctls if found is not None and pod.host_ipc else ()):
        if one.name_space is None and one.dotted.startswith(_BEGIN_IPC):
            what = f"{one.name} would be set for the node, whose name space hostIPC gives it; leave one out"
            yield Fault(f"$.spec.securityContext.sysctls[{index}].name", what)


def _searches(pod: Pod) -> Iterator[Fault]:
    for index, domain in enumerate(pod.dns_config.searches if pod.dns_config is not None else ()):
        if "_" in domain or domain == ".":
            what = f"{domain[:80]!r} is no domain here; write letters, digits and '-', '.' between parts"
            yield Fault(f"$.spec.dnsConfig.searches[{index}]", what)


def _parts_of_images(pod: Pod, images: Collection[str]) -> Iterator[Fault]:
    for kind, containers in (("initContainers", pod.init_containers), ("containers", pod.containers)):
        for index, one in enumerate(containers):
            mounts = [use for use in one.volumes if not use.block]
            for number, use in enumerate(mounts):
                if use.name in images and (use.sub_path or use.sub_path_expr):
                    name = "subPath" if use.sub_path else "subPathExpr"
                    path = f"$.spec.{kind}[{index}].volumeMounts[{number}].{name}"
                    yield Fault(path, "an image is mounted whole; leave it out")


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
    for index, source in enumerate(items_of(fields_of(spec).get("sources"))):
        kinds = fields_of(source)
        if kinds.get("serviceAccountToken") is not None and not has_account:
            what = "it needs serviceAccountName; name one, or leave it out"
            yield Fault(f"{where}.sources[{index}].serviceAccountToken", what)
        if kinds.get("clusterTrustBundle") is not None:
            what = "it is an API server's; a static pod has none"
            yield Fault(f"{where}.sources[{index}].clusterTrustBundle", what)
