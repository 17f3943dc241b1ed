"""May a pod set these kernel settings: safe ones, and what the node's owner allows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from nodealloc import _attrs as attrs
from nodealloc._typed import typed, typed_fields
from nodealloc.admission._verdicts import ADMITTED
from nodealloc.errors import ConfigurationError
from nodealloc.podfacts import NodeView
from nodealloc.podspec import Pod, Sysctl
from nodealloc.verdicts import Admitted, Refused

__all__ = ["SysctlAllowList", "safe_sysctls"]

_SAFE: Final[tuple[tuple[str, tuple[int, int]], ...]] = (
    ("kernel.shm_rmid_forced", (0, 0)),
    ("net.ipv4.ip_local_port_range", (0, 0)),
    ("net.ipv4.tcp_syncookies", (0, 0)),
    ("net.ipv4.ping_group_range", (0, 0)),
    ("net.ipv4.ip_unprivileged_port_start", (0, 0)),
    ("net.ipv4.ip_local_reserved_ports", (3, 16)),
    ("net.ipv4.tcp_keepalive_time", (4, 5)),
    ("net.ipv4.tcp_fin_timeout", (4, 6)),
    ("net.ipv4.tcp_keepalive_intvl", (4, 5)),
    ("net.ipv4.tcp_keepalive_probes", (4, 5)),
    ("net.ipv4.tcp_rmem", (4, 15)),
    ("net.ipv4.tcp_wmem", (4, 15)),
)
"""Name, and the kernel from which on it stands in a name space."""
_SEGMENT: Final = "[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_PATTERN: Final = re.compile(rf"({_SEGMENT}[./])*([a-z0-9][-_a-z0-9]*)?[a-z0-9*]", re.ASCII)
_LONGEST: Final = 253
_VERSION: Final = re.compile(r"([0-9]+)\.([0-9]+)")


@typed
def safe_sysctls(kernel_version: str, /) -> tuple[str, ...]:
    """Settings that one pod may change without another one noticing, on a kernel such as `5.15.0-91`.

    Raises:
        ConfigurationError: The text has no version in front.

    Source: kubelet ``sysctl/safe_sysctls.go``.
    """
    found = _VERSION.match(kernel_version)
    if found is None:
        raise ConfigurationError(f"kernel version {kernel_version!r} begins with no MAJOR.MINOR")
    version = int(found[1]), int(found[2])
    return tuple(name for name, since in _SAFE if version >= since)


@typed_fields
@attrs.frozen
class SysctlAllowList:
    """A handler: which kernel settings pods may have.

    Attributes:
        names: Settings by name, with the name space that has them.
        prefixes: What allowed names begin with, the same way.
    """

    names: Mapping[str, str]
    prefixes: Mapping[str, str]

    @classmethod
    @typed
    def of(cls, patterns: Iterable[str], /) -> SysctlAllowList:
        """From names, and patterns that end in `*`; safe ones have to be among them (`safe_sysctls`).

        Raises:
            ConfigurationError: A pattern that is none, or of settings in no name space of a pod.
        """
        names: dict[str, str] = {}
        prefixes: dict[str, str] = {}
        for pattern in patterns:
            if len(pattern) > _LONGEST or not _PATTERN.fullmatch(pattern):
                raise ConfigurationError(
                    f"sysctl pattern {pattern!r} is none; write net.ipv4.tcp_* or a name"
                )
            setting = Sysctl(name=pattern.removesuffix("*"))
            prefix, space = setting.dotted, setting.name_space
            if space is None:
                raise ConfigurationError(
                    f"sysctl {pattern!r} stands in no name space of a pod; it would be set for the node"
                )
            (prefixes if pattern.endswith("*") else names)[prefix] = space
        return cls(names, prefixes)

    def __call__(self, pod: Pod, view: NodeView, /) -> Admitted | Refused:
        """Whether each setting of the pod is allowed, and is not the node's own."""
        del view
        if pod.security_context is None:
            return ADMITTED
        for one in pod.security_context.sysctls:
            fault = self._fault(one.dotted, host_network=pod.host_network, host_ipc=pod.host_ipc)
            if fault:
                return Refused(
                    reason="SysctlForbidden",
                    message=f"forbidden sysctl: {fault}",
                    figures={"sysctl": one.name or "none"},
                )
        return ADMITTED

    def _fault(self, name: str, *, host_network: bool, host_ipc: bool) -> str:
        space = self.names.get(name)
        if space is None:
            space = next((its for prefix, its in self.prefixes.items() if name.startswith(prefix)), None)
        if space is None:
            return f'"{name}" not allowlisted'
        if (space == "IPC" and host_ipc) or (space == "Net" and host_network):
            return f'"{name}" not allowed with host {space} enabled'
        return ""
