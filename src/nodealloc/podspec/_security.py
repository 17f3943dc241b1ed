"""Values only: as whom a container runs, and what it may do."""

from __future__ import annotations

import enum
from typing import Literal

from nodealloc import _attrs as attrs
from nodealloc._typed import typed_fields
from nodealloc._wire import wire
from nodealloc.podspec._checks import at_least

__all__ = [
    "AppArmorProfile",
    "Capabilities",
    "PodSecurityContext",
    "ProfileType",
    "SeLinuxOptions",
    "SeccompProfile",
    "SecurityContext",
    "Sysctl",
]

_ID = wire(check=at_least(0))
_SWAPPED = str.maketrans("./", "/.")
_IPC_SETTINGS = frozenset(
    {
        *("kernel.sem", "kernel.shm", "kernel.shmall", "kernel.shmmax", "kernel.shmmni"),
        *("kernel.shm_rmid_forced", "kernel.msg", "kernel.msgmax", "kernel.msgmnb", "kernel.msgmni"),
    }
)


class ProfileType(enum.Enum):
    """Which profile of AppArmor or seccomp."""

    RUNTIME_DEFAULT = "RuntimeDefault"
    LOCALHOST = "Localhost"
    UNCONFINED = "Unconfined"


@typed_fields
@attrs.frozen(kw_only=True)
class AppArmorProfile:
    """Of AppArmor.

    Attributes:
        type: Which.
        localhost_profile: Its name on the node; for LOCALHOST alone.
    """

    type: ProfileType | None = attrs.field(default=None, metadata=wire(required=True))
    localhost_profile: str | None = None


@typed_fields
@attrs.frozen(kw_only=True)
class SeccompProfile:
    """Of seccomp.

    Attributes:
        type: Which.
        localhost_profile: Its file below the node's folder of profiles; for LOCALHOST alone.
    """

    type: ProfileType | None = attrs.field(default=None, metadata=wire(required=True))
    localhost_profile: str | None = None


@typed_fields
@attrs.frozen(kw_only=True)
class SeLinuxOptions:
    """The parts of an SELinux label.

    Attributes:
        user: Of the label.
        role: Of the label.
        type: Of the label.
        level: Of the label.
    """

    user: str = ""
    role: str = ""
    type: str = ""
    level: str = ""


@attrs.frozen(kw_only=True)
class Capabilities:
    """Of POSIX, without `CAP_`; `ALL` stands for all.

    Attributes:
        add: Given beyond the runtime's.
        drop: Taken away.
    """

    add: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()


@typed_fields
@attrs.frozen(kw_only=True)
class Sysctl:
    """A setting of the kernel, inside the pod's name spaces.

    Attributes:
        name: With dots or slashes.
        value: As it is written.
    """

    name: str = attrs.field(default="", metadata=wire(required=True))
    value: str = ""

    @property
    def dotted(self) -> str:
        """The name with dots between its parts; where slashes stand there, dots are in the parts' names.

        Source: sysctl.d(5).
        """
        first = next((one for one in self.name if one in "./"), ".")
        return self.name if first == "." else self.name.translate(_SWAPPED)

    @property
    def name_space(self) -> Literal["IPC", "Net"] | None:
        """Which name space of a pod has the setting; None where only the node has it.

        Source: ``ipc_namespaces(7)``, ``network_namespaces(7)``.
        """
        name = self.dotted
        if name in _IPC_SETTINGS or name.startswith("fs.mqueue."):
            return "IPC"
        return "Net" if name.startswith("net.") else None


@typed_fields
@attrs.frozen(kw_only=True)
class SecurityContext:
    """Of one container; what is None follows the pod.

    Attributes:
        run_as_user: Numeric user.
        run_as_group: Numeric group.
        run_as_non_root: Refuse to run as 0.
        privileged: Everything is allowed.
        allow_privilege_escalation: False sets `no_new_privs`.
        read_only_root_filesystem: Of its image.
        capabilities: Given and taken away.
        se_linux_options: Its label.
        seccomp_profile: Its profile.
        app_armor_profile: Its profile.
        proc_mount: `Default` or `Unmasked`.
    """

    run_as_user: int | None = attrs.field(default=None, metadata=_ID)
    run_as_group: int | None = attrs.field(default=None, metadata=_ID)
    run_as_non_root: bool | None = None
    privileged: bool | None = None
    allow_privilege_escalation: bool | None = None
    read_only_root_filesystem: bool | None = None
    capabilities: Capabilities | None = None
    se_linux_options: SeLinuxOptions | None = None
    seccomp_profile: SeccompProfile | None = None
    app_armor_profile: AppArmorProfile | None = None
    proc_mount: str | None = None


@typed_fields
@attrs.frozen(kw_only=True)
class PodSecurityContext:
    """Of all containers of a pod.

    Attributes:
        run_as_user: Numeric user.
        run_as_group: Numeric group.
        run_as_non_root: Refuse to run as 0.
        fs_group: Group that owns what its volumes hold.
        fs_group_change_policy: `OnRootMismatch` or `Always`.
        supplemental_groups: Groups of every process, beside its own.
        supplemental_groups_policy: `Merge` or `Strict`.
        se_linux_options: Label.
        se_linux_change_policy: `MountOption` or `Recursive`.
        seccomp_profile: Profile.
        app_armor_profile: Profile.
        sysctls: Kernel settings, in this order.
    """

    run_as_user: int | None = attrs.field(default=None, metadata=_ID)
    run_as_group: int | None = attrs.field(default=None, metadata=_ID)
    run_as_non_root: bool | None = None
    fs_group: int | None = attrs.field(default=None, metadata=_ID)
    fs_group_change_policy: str | None = None
    supplemental_groups: tuple[int, ...] = ()
    supplemental_groups_policy: str | None = None
    se_linux_options: SeLinuxOptions | None = None
    se_linux_change_policy: str | None = attrs.field(default=None, metadata=wire("seLinuxChangePolicy"))
    seccomp_profile: SeccompProfile | None = None
    app_armor_profile: AppArmorProfile | None = None
    sysctls: tuple[Sysctl, ...] = ()
