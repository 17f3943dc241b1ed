"""As whom a container runs and with which rights: its own settings over its pod's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nodealloc.podlife._configuration._errors import RootForbiddenError
from nodealloc.podspec import PodSecurityContext, ProfileType, app_armor_profile
from nodealloc.podspec import SecurityContext as Asked
from nodealloc.runtime import Security, SecurityProfile

if TYPE_CHECKING:
    from nodealloc.podlife._configuration._node import ImageFacts, NodeSettings
    from nodealloc.podspec import AppArmorProfile, Container, Pod, SeccompProfile

__all__ = ["pod_groups", "seccomp_of", "security_of"]

_MASKED: Final = (
    "/proc/asound",
    "/proc/acpi",
    "/proc/interrupts",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/sys/firmware",
    "/sys/devices/virtual/powercap",
)
"""As every container of a kubelet has them; recorded."""
_READONLY: Final = ("/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger")
_UNMASKED: Final = "Unmasked"
_ROOT: Final = 0
_NOTHING: Final = Asked()
_NO_POD: Final = PodSecurityContext()
_UNCONFINED: Final = SecurityProfile(type=ProfileType.UNCONFINED)
_DEFAULT: Final = SecurityProfile(type=ProfileType.RUNTIME_DEFAULT)


def security_of(
    pod: Pod, container: Container, image: ImageFacts, node: NodeSettings, groups: tuple[int, ...], /
) -> Security:
    """Rights of a container.

    Args:
        pod: Its pod, which speaks where the container does not.
        container: Which.
        image: Says who runs it where neither does.
        node: Where profiles lie, and what one gets who says nothing.
        groups: Further groups, of its volumes.

    Raises:
        RootForbiddenError: It must not run as root, and would, or nobody can tell; an image that
            names no user runs as root.

    Source: kubelet ``kuberuntime/security_context.go`` and ``pkg/securitycontext``.
    """
    own, of_pod = container.security_context or _NOTHING, pod.security_context or _NO_POD
    user = of_pod.run_as_user if own.run_as_user is None else own.run_as_user
    group = of_pod.run_as_group if own.run_as_group is None else own.run_as_group
    _check_root(pod, container, user, image)
    unmasked = own.proc_mount == _UNMASKED
    capabilities = own.capabilities
    runs_as, username = (user, "") if user is not None else _of_image(image)
    return Security(
        user=runs_as,
        username=username,
        group=group,
        groups=(*pod_groups(pod), *groups),
        privileged=bool(own.privileged),
        read_only_root=bool(own.read_only_root_filesystem),
        no_new_privileges=own.allow_privilege_escalation is False,
        add_capabilities=capabilities.add if capabilities else (),
        drop_capabilities=capabilities.drop if capabilities else (),
        masked_paths=() if unmasked else _MASKED,
        readonly_paths=() if unmasked else _READONLY,
        seccomp=seccomp_of(own.seccomp_profile or of_pod.seccomp_profile, node),
        apparmor=_apparmor(app_armor_profile(pod, container)),
        selinux=own.se_linux_options or of_pod.se_linux_options,
    )


def _of_image(image: ImageFacts) -> tuple[int | None, str]:
    """Root where the image is known and names nobody: a group alone is refused by runtimes."""
    if image.user is None and not image.username and image.is_listed:
        return _ROOT, ""
    return image.user, image.username if image.user is None else ""


def pod_groups(pod: Pod, /) -> tuple[int, ...]:
    """Further groups of every process of a pod: the one that owns its volumes, then those it names."""
    asked = pod.security_context or _NO_POD
    return (*(() if asked.fs_group is None else (asked.fs_group,)), *asked.supplemental_groups)


def seccomp_of(asked: SeccompProfile | None, node: NodeSettings, /) -> SecurityProfile:
    """The seccomp profile that is asked for, or that one gets who asks for none."""
    if asked is None or asked.type is None:
        return _DEFAULT if node.seccomp_default else _UNCONFINED
    if asked.type is ProfileType.LOCALHOST:
        file = f"{node.seccomp_directory}/{asked.localhost_profile or ''}"
        return SecurityProfile(type=ProfileType.LOCALHOST, localhost=file)
    return SecurityProfile(type=asked.type)


def _apparmor(asked: AppArmorProfile | None) -> SecurityProfile | None:
    if asked is None or asked.type is None:
        return None
    name = asked.localhost_profile or "" if asked.type is ProfileType.LOCALHOST else ""
    return SecurityProfile(type=asked.type, localhost=name)


def _check_root(pod: Pod, container: Container, user: int | None, image: ImageFacts) -> None:
    own, of_pod = container.security_context or _NOTHING, pod.security_context or _NO_POD
    forbidden = of_pod.run_as_non_root if own.run_as_non_root is None else own.run_as_non_root
    if not forbidden:
        return
    where = f'(pod: "{pod.name}_{pod.namespace}({pod.uid})", container: {container.name})'
    if user is None and image.user is None and image.username:
        fault = (
            f"container has runAsNonRoot and image has non-numeric user ({image.username}), "
            "cannot verify user is non-root"
        )
    elif user == _ROOT:
        fault = "container's runAsUser breaks non-root policy"
    elif user is None and not image.user and not image.username:
        fault = "container has runAsNonRoot and image will run as root"
    else:
        return
    raise RootForbiddenError(container.name, f"{fault} {where}")
