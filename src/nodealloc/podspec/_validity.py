"""What an API server checks of a pod beyond the single fields that are checked when it is read."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from nodealloc._arguments import check
from nodealloc.errors import Fault
from nodealloc.podspec._affinity_validity import affinity_faults, toleration_faults
from nodealloc.podspec._checks import label_key, label_value, maybe, one_of, subdomain
from nodealloc.podspec._fields import PodFields
from nodealloc.podspec._metadata_validity import metadata_faults
from nodealloc.podspec._mount_validity import mount_faults
from nodealloc.podspec._network_validity import network_faults, port_faults
from nodealloc.podspec._profile_annotations import profile_annotation_faults
from nodealloc.podspec._reference_validity import variable_faults
from nodealloc.podspec._resources import HUGEPAGES
from nodealloc.podspec._spread_validity import spread_faults
from nodealloc.podspec._system_validity import system_faults
from nodealloc.podspec._volume_validity import volume_faults

if TYPE_CHECKING:
    from collections.abc import Callable

    from nodealloc.podspec._model import Container
    from nodealloc.podspec._probes import LifecycleHandler, Probe
    from nodealloc.podspec._security import PodSecurityContext, SecurityContext

__all__ = ["api_faults"]

_SYSCTL: Final = re.compile(r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?[./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?", re.ASCII)
_LONGEST_SETTING: Final = 253
_HEADER: Final = re.compile(r"[-A-Za-z0-9]+", re.ASCII)
_SHARED: Final = (
    (attrgetter("host_network"), "hostNetwork", "Net"),
    (attrgetter("host_ipc"), "hostIPC", "IPC"),
)
"""Name spaces that a pod may share with its node, as kernel settings name theirs."""
_LONGEST_PROFILE: Final = 4095
_BESIDE_PAGES: Final = frozenset({"cpu", "memory"})
_MOST: Final = 2**31 - 1
_TOLD: Final = 100
"""Faults; whoever mends these knows what the others are."""

_Found = Iterator[Fault]


def api_faults(pod: PodFields, /) -> tuple[Fault, ...]:
    """Why an API server would not take a pod that could be read, each with its path; none where it would.

    The first hundred; behind them stands that there are more.

    Who has pods of an API server needs no such look: they were taken. Manifests
    of one's own were seen by nobody; `podsources` asks this of each.

    Source: Kubernetes v1.32 ``pkg/apis/core/validation``; what depends on feature gates
    that are off by default, and what only an admission plugin refuses, is left out.
    """
    check("api_faults: pod", pod, PodFields, "a Pod; Pod.from_manifest makes one")
    found = chain(
        metadata_faults(pod),
        profile_annotation_faults(pod),
        _of_pod(pod),
        network_faults(pod),
        _of_security(pod),
        system_faults(pod),
        affinity_faults(pod),
        toleration_faults(pod),
        spread_faults(pod),
        volume_faults(pod),
        (fault for one in _named(pod) for fault in _of_container(pod, *one)),
        _of_ephemeral(pod),
    )
    told = tuple(islice(found, _TOLD))
    return told if next(found, None) is None else (*told, Fault("$", "and more faults"))


def _named(pod: PodFields) -> Iterator[tuple[str, Container, bool]]:
    """Each container with its path, and whether it runs once before the others."""
    for index, one in enumerate(pod.init_containers):
        yield f"$.spec.initContainers[{index}]", one, not one.restartable
    for index, one in enumerate(pod.containers):
        yield f"$.spec.containers[{index}]", one, False


def _bad(path: str, check: Callable[[str], str], text: str) -> _Found:
    if what := check(text):
        yield Fault(path, what)


def _more_than_once(path: str, noun: str, names: Iterable[object]) -> _Found:
    for name, count in Counter(names).items():
        if count > 1:
            yield Fault(path, f"{noun} {name} stands here {count} times; once is enough")


def _of_pod(pod: PodFields) -> _Found:
    yield from _bad("$.spec.nodeName", maybe(subdomain), pod.node_name)
    yield from _bad("$.spec.serviceAccountName", maybe(subdomain), pod.service_account_name)
    yield from _bad("$.spec.priorityClassName", maybe(subdomain), pod.priority_class_name)
    for key, value in pod.node_selector.items():
        yield from _bad(f"$.spec.nodeSelector.{key}", label_key, key)
        yield from _bad(f"$.spec.nodeSelector.{key}", label_value, value)
    if pod.active_deadline_seconds is not None and pod.active_deadline_seconds > _MOST:
        yield Fault("$.spec.activeDeadlineSeconds", f"more than {_MOST}")
    for index, gate in enumerate(pod.readiness_gates):
        yield from _bad(f"$.spec.readinessGates[{index}].conditionType", label_key, gate.condition_type)
    for index, one in enumerate(pod.scheduling_gates):
        yield from _bad(f"$.spec.schedulingGates[{index}].name", label_key, one.name)
    yield from _more_than_once("$.spec.schedulingGates", "gate", [one.name for one in pod.scheduling_gates])
    if pod.scheduling_gates and pod.node_name:
        yield Fault("$.spec.nodeName", "it has a node only when no scheduling gate is left")
    for index, claim in enumerate(pod.resource_claims):
        if (claim.resource_claim_name is None) == (claim.resource_claim_template_name is None):
            what = "exactly one of resourceClaimName, resourceClaimTemplateName is needed"
            yield Fault(f"$.spec.resourceClaims[{index}]", what)
    if any(name.startswith(HUGEPAGES) for name in pod.overhead) and not pod.overhead.keys() & _BESIDE_PAGES:
        yield Fault("$.spec.overhead", "huge pages need cpu or memory beside them; write one")
    if pod.os is not None:
        yield from _bad("$.spec.os.name", one_of("linux", "windows"), pod.os.name)


def _of_security(pod: PodFields) -> _Found:
    where, found = "$.spec.securityContext", pod.security_context
    if found is None:
        return
    for index, one in enumerate(found.sysctls):
        path = f"{where}.sysctls[{index}].name"
        if not _SYSCTL.fullmatch(one.name) or len(one.name) > _LONGEST_SETTING:
            yield Fault(path, f"{one.name!r} is no kernel setting")
        for is_shared, key, space in _SHARED:
            if one.name_space == space and is_shared(pod):
                yield Fault(path, f"{one.name} would be set for the node, whose name space {key} gives it")
    names = [one.name for one in found.sysctls]
    yield from _more_than_once(f"{where}.sysctls", "kernel setting", names)
    for key, word, words in (
        ("fsGroupChangePolicy", found.fs_group_change_policy, ("Always", "OnRootMismatch")),
        ("supplementalGroupsPolicy", found.supplemental_groups_policy, ("Merge", "Strict")),
        ("seLinuxChangePolicy", found.se_linux_change_policy, ("MountOption", "Recursive")),
    ):
        if word is not None:
            yield from _bad(f"{where}.{key}", one_of(*words), word)
    ids = (found.run_as_user, found.run_as_group, found.fs_group, *found.supplemental_groups)
    yield from _ids(where, ids)
    yield from _of_profiles(where, found)


def _ids(path: str, ids: Iterable[int | None]) -> _Found:
    for number in ids:
        if number is not None and not 0 <= number <= _MOST:
            yield Fault(path, f"{number} is no id of a user or group; 0 to {_MOST} are")


def _of_profiles(path: str, found: PodSecurityContext | SecurityContext) -> _Found:
    seccomp = (found.seccomp_profile and found.seccomp_profile.localhost_profile) or ""
    if seccomp.startswith("/") or ".." in seccomp.split("/"):
        what = f"{seccomp[:80]!r} leads out of the folder of profiles"
        yield Fault(f"{path}.seccompProfile.localhostProfile", what)
    armor = (found.app_armor_profile and found.app_armor_profile.localhost_profile) or ""
    if armor != armor.strip() or len(armor) > _LONGEST_PROFILE:
        what = (
            f"{armor[:80]!r} is no name; up to {_LONGEST_PROFILE} characters without blanks around them are"
        )
        yield Fault(f"{path}.appArmorProfile.localhostProfile", what)


def _of_container(pod: PodFields, where: str, one: Container, runs_once: bool) -> _Found:
    if not one.image.strip():
        yield Fault(f"{where}.image", "an image is needed; name it")
    elif one.image != one.image.strip():
        yield Fault(f"{where}.image", "blanks stand around it; leave them out")
    yield from port_faults(where, one)
    yield from _of_probes(where, one, runs_once)
    yield from _of_hooks(pod, where, one, runs_once)
    yield from variable_faults(where, one)
    yield from mount_faults(pod, where, one)
    yield from _of_resizing(pod, where, one)
    claims = {claim.name for claim in pod.resource_claims}
    for index, claim in enumerate(one.claims):
        if claim.name not in claims:
            yield Fault(
                f"{where}.resources.claims[{index}].name", f"the pod has no claim {claim.name[:80]!r}"
            )
    found = one.security_context
    if found is None:
        return
    yield from _ids(f"{where}.securityContext", (found.run_as_user, found.run_as_group))
    if found.proc_mount is not None:
        yield from _bad(f"{where}.securityContext.procMount", one_of("Default", "Unmasked"), found.proc_mount)
    yield from _of_profiles(f"{where}.securityContext", found)
    added = found.capabilities.add if found.capabilities else ()
    if found.allow_privilege_escalation is False and "CAP_SYS_ADMIN" in added:
        what = "a container with CAP_SYS_ADMIN cannot be kept from it"
        yield Fault(f"{where}.securityContext.allowPrivilegeEscalation", what)


def _of_probes(where: str, one: Container, runs_once: bool) -> _Found:
    probes = {
        "livenessProbe": one.liveness_probe,
        "readinessProbe": one.readiness_probe,
        "startupProbe": one.startup_probe,
    }
    for name, probe in probes.items():
        if probe is None:
            continue
        if runs_once:
            what = "nobody probes what runs once; only restartPolicy Always has probes"
            yield Fault(f"{where}.{name}", what)
        yield from _of_action(f"{where}.{name}", probe)


def _of_action(where: str, action: Probe | LifecycleHandler) -> _Found:
    if action.exec is not None and not action.exec.command:
        yield Fault(f"{where}.exec.command", "a command is needed; write it")
    for index, header in enumerate(action.http_get.http_headers if action.http_get else ()):
        if not _HEADER.fullmatch(header.name):
            what = f"{header.name[:80]!r} is no name of a header; write letters, digits and '-'"
            yield Fault(f"{where}.httpGet.httpHeaders[{index}].name", what)


def _of_hooks(pod: PodFields, where: str, one: Container, runs_once: bool) -> _Found:
    if one.lifecycle is None:
        return
    if runs_once:
        what = "what runs once has no hooks; only restartPolicy Always has"
        yield Fault(f"{where}.lifecycle", what)
    grace = pod.termination_grace_period_seconds
    for name, hook in (("postStart", one.lifecycle.post_start), ("preStop", one.lifecycle.pre_stop)):
        if hook is None:
            continue
        yield from _of_action(f"{where}.lifecycle.{name}", hook)
        if hook.sleep is not None and not 1 <= hook.sleep.seconds <= grace:
            what = f"{hook.sleep.seconds} is not between 1 and the grace period of {grace} seconds"
            yield Fault(f"{where}.lifecycle.{name}.sleep.seconds", what)


def _of_resizing(pod: PodFields, where: str, one: Container) -> _Found:
    path = f"{where}.resizePolicy"
    yield from _more_than_once(path, "resource", [policy.resource_name for policy in one.resize_policy])
    for policy in one.resize_policy:
        yield from _bad(path, one_of("cpu", "memory"), policy.resource_name)
        yield from _bad(path, one_of("NotRequired", "RestartContainer"), policy.restart_policy)
        if pod.restart_policy.value == "Never" and policy.restart_policy == "RestartContainer":
            yield Fault(path, "nothing of a pod that is never restarted is; write NotRequired")


def _of_ephemeral(pod: PodFields) -> _Found:
    names = {one.name for one in pod.all_containers}
    for index, one in enumerate(pod.ephemeral_containers):
        where = f"$.spec.ephemeralContainers[{index}]"
        if one.target_container_name and one.target_container_name not in names:
            what = f"the pod has no container {one.target_container_name[:80]!r}"
            yield Fault(f"{where}.targetContainerName", what)
        given = {
            "ports": one.ports,
            "livenessProbe": one.liveness_probe,
            "readinessProbe": one.readiness_probe,
            "startupProbe": one.startup_probe,
            "lifecycle": one.lifecycle,
            "resources": one.requests or one.limits or one.claims,
            "resizePolicy": one.resize_policy,
        }
        for name, value in given.items():
            if value:
                yield Fault(f"{where}.{name}", "an ephemeral container has none; leave it out")
        if any(use.sub_path or use.sub_path_expr for use in one.volumes):
            yield Fault(f"{where}.volumeMounts", "an ephemeral container mounts whole volumes; no subPath")
        yield from variable_faults(where, one)
        yield from mount_faults(pod, where, one)
