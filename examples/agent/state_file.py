"""The files by which a kubelet's rules tell whether an agent is started as the one before it was."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from nodealloc.checkpoint import (
    CPU_STATE,
    MEMORY_STATE,
    CorruptCheckpointError,
    MemoryManagerState,
    read_cpu_manager_state,
)
from nodealloc.cpuset import CpuAllocator, CPUSet, StaticPolicy
from nodealloc.errors import ConfigurationError, DecodeError
from nodealloc.node import KubeletFile
from nodealloc.topology import Snapshot

__all__ = ["check_state_files", "link_state_files"]

_KEPT: Final = Path("checkpoint")
"""Where a store of files has them."""
_Sizes = Mapping[int, Mapping[str, tuple[int, int, int]]]


def check_state_files(root: Path, empty: Snapshot, /) -> None:
    """Refuse to start with other policies, or with something else reserved, than the files say.

    They stand where a kubelet has them, so that who takes one away has the agent start anew.

    Args:
        root: The agent's folder.
        empty: As the configuration has it, with nothing held.

    Raises:
        ConfigurationError: The agent is started otherwise than the one before it, or a file is damaged.

    Source: kubelet ``cm/cpumanager/state/state_checkpoint.go`` and ``policy_static.go``, and those of
    ``cm/memorymanager``.
    """
    _check_cpus(root / CPU_STATE, empty[CpuAllocator])
    for one in empty.allocators:
        now = one.to_kubelet() if isinstance(one, KubeletFile) else None
        if isinstance(now, MemoryManagerState):
            _check_memory(root / MEMORY_STATE, now)


def _check_cpus(path: Path, cpus: CpuAllocator) -> None:
    try:
        before = read_cpu_manager_state(path.read_bytes())
    except FileNotFoundError:
        return
    except (CorruptCheckpointError, DecodeError) as error:
        raise _damaged(path, error) from error
    _check_policy(path, "cpuManagerPolicy", before.policy_name, cpus.to_kubelet().policy_name)
    if not isinstance(cpus.policy, StaticPolicy) or not before.default_cpuset:
        return
    # Those that the system keeps belong to all who have none of their own.
    taken = cpus.policy.reserved - CPUSet.parse(before.default_cpuset)
    if taken:
        what = f"CPUs {taken} are reserved, and were given out before"
        raise ConfigurationError(f"reservedSystemCPUs: {what}; bring back what it was, or take {path} away")


def _check_memory(path: Path, now: MemoryManagerState) -> None:
    try:
        before = MemoryManagerState.unmarshal(path.read_bytes())
        before.verify()
    except FileNotFoundError:
        return
    except (CorruptCheckpointError, DecodeError) as error:
        raise _damaged(path, error) from error
    _check_policy(path, "memoryManagerPolicy", before.policy_name, now.policy_name)
    if before.machine_state and _sizes(before) != _sizes(now):
        what = "the memory of the machine, or what is kept of it, is other than before"
        raise ConfigurationError(f"reservedMemory: {what}; bring back what it was, or take {path} away")


def _sizes(state: MemoryManagerState) -> _Sizes:
    """What there is, is kept, and may be granted, by node and kind; what is granted does not matter."""
    return {
        node: {
            kind: (table.total, table.system_reserved, table.allocatable)
            for kind, table in (one.memory_map or {}).items()
        }
        for node, one in (state.machine_state or {}).items()
    }


def _check_policy(path: Path, field: str, before: str, now: str) -> None:
    if before != now:
        what = f"{before!r} before, and is {now!r}"
        raise ConfigurationError(f"{field} was {what}; bring it back, or take {path} away")


def _damaged(path: Path, error: Exception) -> ConfigurationError:
    return ConfigurationError(f"{path}: {error}; take the file away")


def link_state_files(root: Path, /) -> None:
    """Have them at their places; what stands there already stays."""
    for name in (CPU_STATE, MEMORY_STATE):
        path = root / name
        if (root / _KEPT / name).is_file() and not path.is_symlink() and not path.exists():
            path.symlink_to(_KEPT / name)
