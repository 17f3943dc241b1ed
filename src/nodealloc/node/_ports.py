"""Protocols that the node calls: whoever runs containers, and how an allocator is remembered."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol

import attrs

from nodealloc.checkpoint import Checkpoint
from nodealloc.podspec import Json
from nodealloc.topology import Allocator, Owner, Snapshot

__all__ = ["Advisor", "Keeper", "Restored", "Running", "Runtime"]


@attrs.frozen(kw_only=True)
class Running:
    """A container that may still use what its owner was granted.

    Attributes:
        owner: Workload and member.
        container_id: Unique for all time, so that an old container is told from
            its successor: not a bare process id.
    """

    owner: Owner
    container_id: str


class Runtime(Protocol):
    """What runs containers, as far as the node has to ask."""

    def running(self) -> Collection[Running]:
        """Every container that has not ended for certain.

        May be called at any time, from any thread. Raises `RetryableError` when
        the runtime cannot tell: an empty answer would be taken for "none".
        """
        ...


@attrs.frozen(kw_only=True)
class Restored:
    """An allocator with remembered grants in it, as far as they still fit the machine.

    Attributes:
        allocator: Holds every grant but the evicted ones.
        moved: What is on other CPUs or nodes than before, a line each.
        evicted: Workload to the reason why what it held can no longer be had.
        notes: What else changed, in words.
    """

    allocator: Allocator
    moved: tuple[str, ...] = ()
    evicted: Mapping[str, str] = attrs.field(factory=dict[str, str])
    notes: tuple[str, ...] = ()


class Keeper(Protocol):
    """How the grants of one kind of allocator are remembered. Pure functions."""

    def grants(self, allocator: Allocator, workload: str, /) -> Json:
        """What a workload holds, in words of this keeper's choosing; None where that is nothing."""
        ...

    def restore(self, allocator: Allocator, grants: Mapping[str, Json], /) -> Restored:
        """A fresh allocator with these grants; workloads in the order of their admission.

        Raises:
            DecodeError: Something that `grants` never answered.
        """
        ...

    def files(self, allocator: Allocator, before: Allocator | None = None, /) -> Mapping[str, Checkpoint]:
        """The kubelet's own state file of this allocator by key, so that a kubelet can take over.

        May leave out files from which a kubelet would read the same as from
        those of `before`.
        """
        ...


class Advisor(Protocol):
    """Whoever has to be asked before a decision is final, such as device plugins."""

    def ask(self, outcome: Snapshot, /) -> bool:
        """Get answers that the decision lacked; True when deciding again makes sense.

        May be slow: it is called without the node's lock. Puts the answers into
        the node through `NodeAllocator.alter`. Raises nothing: who does not
        answer has no opinion.
        """
        ...

    def settled(self, outcome: Snapshot, /) -> Snapshot:
        """The outcome as it is to be kept; pure and quick."""
        ...
