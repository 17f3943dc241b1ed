"""What an API server checks of a pod's operating system, and of how its scheduler is to spread it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, cast

from nodealloc._wire import camel
from nodealloc.errors import Fault
from nodealloc.podspec._fields import PodFields
from nodealloc.podspec._names import is_qualified

__all__ = ["spread_faults", "system_faults"]

_OF_PODS: Final = (
    "app_armor_profile",
    "se_linux_options",
    "seccomp_profile",
    "fs_group",
    "fs_group_change_policy",
    "sysctls",
    "run_as_user",
    "run_as_group",
    "supplemental_groups",
    "supplemental_groups_policy",
)
_OF_CONTAINERS: Final = (
    "app_armor_profile",
    "se_linux_options",
    "seccomp_profile",
    "capabilities",
    "read_only_root_filesystem",
    "privileged",
    "allow_privilege_escalation",
    "proc_mount",
    "run_as_user",
    "run_as_group",
)
"""Fields of security contexts that mean nothing on Windows."""
_SPREAD: Final = "spec.topologySpreadConstraints"
_OTHERWISE: Final = ("DoNotSchedule", "ScheduleAnyway")


def system_faults(pod: PodFields, /) -> Iterator[Fault]:
    """Fields of Linux in a pod for Windows.

    Source: Kubernetes v1.32 ``pkg/apis/core/validation``.
    """
    if pod.os is None or pod.os.name != "windows":
        return
    given = {
        "hostPID": pod.host_pid,
        "hostIPC": pod.host_ipc,
        "hostUsers": pod.host_users is not None,
        "shareProcessNamespace": pod.share_process_namespace,
    }
    for name, is_given in given.items():
        if is_given:
            yield _not_there(f"$.spec.{name}")
    yield from _of_context("$.spec.securityContext", pod.security_context, _OF_PODS)
    groups = (("initContainers", pod.init_containers), ("containers", pod.containers))
    for group, containers in groups:
        for index, one in enumerate(containers):
            where = f"$.spec.{group}[{index}].securityContext"
            yield from _of_context(where, one.security_context, _OF_CONTAINERS)


def _of_context(where: str, context: object, names: Sequence[str]) -> Iterator[Fault]:
    for name in names:
        if context is not None and getattr(context, name) not in (None, ()):
            yield _not_there(f"{where}.{camel(name)}")


def _not_there(path: str) -> Fault:
    return Fault(path, "there is no such thing on windows; leave it out, or write linux in os.name")


def spread_faults(pod: PodFields, /) -> Iterator[Fault]:
    """What is wrong with the constraints on how a scheduler spreads pods; a node carries them along.

    Source: Kubernetes v1.32 ``pkg/apis/core/validation``.
    """
    found = pod.carried.get(_SPREAD)
    if not isinstance(found, list | tuple):
        if found is not None:
            yield Fault(f"$.{_SPREAD}", "is no list")
        return
    pairs: Counter[tuple[object, object]] = Counter()
    for index, one in enumerate(cast("Sequence[object]", found)):
        where = f"$.{_SPREAD}[{index}]"
        if not isinstance(one, Mapping):
            yield Fault(where, "is no mapping")
            continue
        fields = cast("Mapping[str, object]", one)
        yield from _of_constraint(where, fields)
        pairs[str(fields.get("topologyKey")), str(fields.get("whenUnsatisfiable"))] += 1
    for (key, otherwise), count in pairs.items():
        if count > 1:
            yield Fault(f"$.{_SPREAD}", f"{key} with {otherwise} is there {count} times")


def _of_constraint(where: str, fields: Mapping[str, object]) -> Iterator[Fault]:
    if not _is_positive(fields.get("maxSkew")):
        yield Fault(f"{where}.maxSkew", "a whole number of at least 1 is needed")
    key, otherwise = fields.get("topologyKey"), fields.get("whenUnsatisfiable")
    if not isinstance(key, str) or not is_qualified(key):
        yield Fault(f"{where}.topologyKey", "a key of a label is needed: name or domain/name")
    if otherwise not in _OTHERWISE:
        yield Fault(f"{where}.whenUnsatisfiable", f"expected one of {', '.join(_OTHERWISE)}")
    least = fields.get("minDomains")
    if least is not None and not (_is_positive(least) and otherwise == _OTHERWISE[0]):
        yield Fault(f"{where}.minDomains", f"a whole number of at least 1, and only with {_OTHERWISE[0]}")
    for name in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        if fields.get(name) not in (None, "Honor", "Ignore"):
            yield Fault(f"{where}.{name}", "expected one of Honor, Ignore")


def _is_positive(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1
