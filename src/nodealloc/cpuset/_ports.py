"""Protocols that this package calls: a choice of CPUs, and whoever confines a container to them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from nodealloc.cpuset._layout import CpuLayout
    from nodealloc.idset import CPUSet, NodeSet

__all__ = ["CpusetWriter", "Picker"]


class Picker(Protocol):
    """A choice of CPUs; `KubeletPicker` is the kubelet's."""

    def pick(self, layout: CpuLayout, available: int, count: int, /) -> int | None:
        """Exactly `count` of the available CPUs, or None where these cannot serve.

        A pure function of its arguments and of the (immutable, picklable)
        picker. Both sets are masks; the answer is a subset of `available`, and
        what is anything else is refused where it would be granted.
        """
        ...


class CpusetWriter(Protocol):
    """Confines what runs in a container to CPUs and memory nodes.

    `target` names the container in the writer's own words: a cgroup, a process.
    Calls may come from several threads, but never two at a time for one target.
    All may be repeated. Raise `RetryableError` for "not now", anything else of
    `NodeallocError` for "not as asked"; a target that is gone is a
    `TargetGoneError`.
    """

    def read(self, target: str, /) -> tuple[CPUSet, NodeSet | None]:
        """What the target is confined to now; None for memory nodes that cannot be told."""
        ...

    def write(self, target: str, cpus: CPUSet, mems: NodeSet | None, /) -> None:
        """Confine the target to these CPUs, never an empty set, and memory nodes.

        None leaves the memory nodes as they are. After a return `read` answers
        the same sets; after an exception it answers the old or the new ones.
        """
        ...
