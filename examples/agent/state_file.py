"""The file by which a kubelet's rules tell whether an agent is started as the one before it was."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from nodealloc.checkpoint import CPU_STATE, CorruptCheckpointError, read_cpu_manager_state
from nodealloc.cpuset import CpuAllocator, CPUSet, StaticPolicy
from nodealloc.errors import ConfigurationError, DecodeError

__all__ = ["check_state_file", "link_state_file"]

_KEPT: Final = Path("checkpoint") / CPU_STATE
"""Where a store of files has it."""


def check_state_file(root: Path, cpus: CpuAllocator, /) -> None:
    """Refuse to start with another policy, or other reserved CPUs, than the file says.

    It stands where a kubelet has it, so that who takes it away has the agent start anew.

    Args:
        root: The agent's folder.
        cpus: As the configuration has it, with nothing held.

    Raises:
        ConfigurationError: The agent is started otherwise than the one before it, or the file is damaged.

    Source: kubelet ``cm/cpumanager/state/state_checkpoint.go`` and ``policy_static.go``.
    """
    path, now = root / CPU_STATE, cpus.to_kubelet()
    try:
        before = read_cpu_manager_state(path.read_bytes())
    except FileNotFoundError:
        return
    except (CorruptCheckpointError, DecodeError) as error:
        raise ConfigurationError(f"{path}: {error}; take the file away") from error
    if before.policy_name != now.policy_name:
        what = f"{before.policy_name!r} before, and is {now.policy_name!r}"
        raise ConfigurationError(f"cpuManagerPolicy was {what}; bring it back, or take {path} away")
    if isinstance(cpus.policy, StaticPolicy):
        _check_reserved(path, before.default_cpuset, cpus.policy)


def _check_reserved(path: Path, shared: str, policy: StaticPolicy) -> None:
    """Those that the system keeps belong to all who have none of their own."""
    taken = policy.reserved - CPUSet.parse(shared)
    if shared and taken:
        what = f"CPUs {taken} are reserved, and were given out before"
        raise ConfigurationError(f"reservedSystemCPUs: {what}; bring back what it was, or take {path} away")


def link_state_file(root: Path, /) -> None:
    """Have it at its place; what stands there already stays."""
    path = root / CPU_STATE
    if (root / _KEPT).is_file() and not path.is_symlink() and not path.exists():
        path.symlink_to(_KEPT)
