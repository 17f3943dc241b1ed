"""One allocator of a node, typed, for whoever changes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from nodealloc import _attrs as attrs
from nodealloc._typed import typed_fields, typed_on_error
from nodealloc.errors import ConfigurationError
from nodealloc.topology import Allocator, Snapshot

__all__ = ["HeldAllocator"]

A = TypeVar("A", bound=Allocator)


class Holder(Protocol):
    """Whoever holds the snapshot and remembers its changes: a `NodeAllocator`."""

    @property
    def snapshot(self) -> Snapshot:
        """The node as it is remembered."""
        ...

    def alter(self, name: str, change: Callable[[Allocator], Allocator], /) -> tuple[Allocator, Allocator]:
        """Replace one allocator by a function of it; the allocators before and after."""
        ...


@typed_fields
@attrs.frozen(kw_only=True)
class HeldAllocator(Generic[A]):
    """One allocator of a node as it is now; `NodeAllocator.allocator` makes it.

    It is what `nodealloc.devices` calls an `AllocatorKeeper`.

    Attributes:
        node: Holds the snapshot.
        kind: The allocator's class.
        name: Its name.
    """

    node: Holder
    kind: type[A]
    name: str

    def current(self) -> A:
        """The allocator as it is now."""
        return self._typed(self.node.snapshot[self.name])

    @typed_on_error
    def alter(self, change: Callable[[A], A], /) -> tuple[A, A]:
        """Replace it by what a pure function makes of it; the values before and after.

        Workloads whose grants became others are remembered anew.

        Raises:
            RetryableError: The store could not be written; nothing changed.
        """
        before, after = self.node.alter(self.name, lambda one: change(self._typed(one)))
        return self._typed(before), self._typed(after)

    def _typed(self, allocator: Allocator) -> A:
        if not isinstance(allocator, self.kind):
            found = type(allocator).__name__
            raise ConfigurationError(f"allocator {self.name} is a {found}, no {self.kind.__name__}")
        return allocator
