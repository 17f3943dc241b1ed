"""What an API server checks of a pod's operating system."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from nodealloc._wire import camel
from nodealloc.errors import Fault
from nodealloc.podspec._fields import PodFields

__all__ = ["system_faults"]

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
