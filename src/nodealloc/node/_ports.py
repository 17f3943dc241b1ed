"""Protocols that the node calls: whoever runs containers, advisors, and what allocators can do."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol, runtime_checkable

from nodealloc import _attrs as attrs
from nodealloc._typed import typed_fields
from nodealloc.checkpoint import Checkpoint
from nodealloc.topology import Allocator, Owner, Recalled, Snapshot

__all__ = ["Advisor", "KubeletFile", "RunningContainer", "Runtime", "TellsRegranted"]


@typed_fields
@attrs.frozen(kw_only=True)
class RunningContainer:
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

    def running(self) -> Collection[RunningContainer]:
        """Every container that has not ended for certain.

        May be called at any time, from any thread. Raises `RetryableError` when
        the runtime cannot tell: an empty answer would be taken for "none".
        """
        ...


@runtime_checkable
class KubeletFile(Protocol):
    """Ability of an `Allocator`: to keep a state file of the kubelet's, so that either can go on.

    An allocator that has it also `Remembers`.
    """

    def kubelet_key(self) -> str:
        """Key of the file in a store: `cpu_manager_state`."""
        ...

    def to_kubelet(self, before: Allocator | None = None, /) -> Checkpoint | None:
        """The file as a kubelet would write it of this allocator.

        May be None where a kubelet would read the same from the file of `before`.
        """
        ...

    def from_kubelet(self, file: Checkpoint, /) -> Mapping[str, Recalled]:
        """What the file says of each workload; nothing for a file of another kind.

        Raises:
            DecodeError: The file is sound and makes no sense.
        """
        ...


@runtime_checkable
class TellsRegranted(Protocol):
    """Ability of an `Allocator`: to say whose grants changed, without a look at all of them."""

    def regranted(self, before: Allocator, /) -> Collection[str]:
        """Workloads that hold something else than in `before`; a few too many do no harm."""
        ...


class Advisor(Protocol):
    """Whoever has to be asked before a decision is final, such as device plugins."""

    def ask(self, outcome: Snapshot, /) -> bool:
        """Get answers that the decision lacked; True when deciding again makes sense.

        May be slow: others wait for half a second at most. Puts the answers into
        the node through `NodeAllocator.alter`. Raises nothing: who does not
        answer has no opinion.
        """
        ...

    def settled(self, outcome: Snapshot, /) -> Snapshot:
        """The outcome as it is to be kept; pure and quick."""
        ...
