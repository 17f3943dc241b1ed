"""What every pod of a node gets, as a configuration says."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Final

from nodealloc._plain_file import open_plain
from nodealloc._typed import typed
from nodealloc.errors import ConfigurationError
from nodealloc.kubeconfig._configuration import KubeletConfig
from nodealloc.kubeconfig._plan import NodePlan
from nodealloc.podlife import NodeSettings
from nodealloc.runtime import DnsConfig

__all__ = ["node_settings"]

_HOSTS: Final = "/etc/hosts"
_RESOLVER: Final = "/etc/resolv.conf"
"""Where nobody named one; a machine without it has no name servers."""


@typed
def node_settings(
    config: KubeletConfig, plan: NodePlan, /, *, root: Path, logs: Path | None = None
) -> NodeSettings:
    """What `NodeConfiguration` takes; reads this machine's name, hosts and resolver.

    Args:
        config: It.
        plan: What it comes to.
        root: Holds the pods' directories, profiles of seccomp, and logs where nobody says otherwise.
        logs: Folder of logs; None for the configuration's, and else one below `root`.

    Raises:
        ConfigurationError: `resolvConf` cannot be read. A kubelet makes no pod then.
    """
    resolver = _resolver(config.resolv_conf) if config.resolv_conf else None
    return NodeSettings(
        name=plan.view.name,
        hostname=socket.gethostname(),
        memory_capacity_bytes=plan.capacity["memory"].value,
        cluster_dns=config.cluster_dns,
        cluster_domain=config.cluster_domain,
        resolver=None if resolver is None else DnsConfig.of_resolv_conf(resolver),
        hosts=_text(_HOSTS),
        allocatable=plan.view.allocatable,
        pods_directory=str(root / "pods"),
        logs_directory=str(logs or config.pod_logs_dir or root / "logs"),
        seccomp_directory=str(root / "seccomp"),
        seccomp_default=config.seccomp_default,
        limits=plan.tree.pods,
    )


def _resolver(path: str) -> str:
    try:
        return _read(path)
    except (OSError, ValueError) as error:
        if isinstance(error, FileNotFoundError) and path == _RESOLVER:
            return ""
        why = error.strerror if isinstance(error, OSError) else error
        raise ConfigurationError(
            f'resolvConf: {path}: {why}; name a file such as {_RESOLVER}, or write "" for pods that '
            "find no names"
        ) from error


def _text(path: str) -> str:
    """A file that is not there says nothing."""
    try:
        return _read(path)
    except OSError:
        return ""


def _read(path: str) -> str:
    with os.fdopen(open_plain(path), encoding="utf-8", errors="replace") as file:
        return file.read()
