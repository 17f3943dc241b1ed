"""Protocols of what is remembered, and where."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, TypeAlias

from nodealloc.checkpoint._contents import Contents
from nodealloc.checkpoint._remembered import Checkpoint

__all__ = ["Checkpoint", "Formats", "Reader", "Store"]


Reader: TypeAlias = Callable[[bytes], Checkpoint]
"""From bytes to a checkpoint, raising `DecodeError`: a class's `unmarshal`, or a function over versions."""

Formats: TypeAlias = Mapping[str, Reader]
"""Key, or prefix and `*` (`pod.*`), to what reads it. The longest match wins; `*` alone is any key.

A store looks at keys that match and at nothing else, so that it can share a
directory with other files.
"""


class Store(Protocol):
    """Keys and their checkpoints, durable.

    One process at a time holds a store. After a crash at any instant a store
    opens with the content before or after the last commit, never between.
    A store may be called from several threads.
    """

    def read(self) -> Contents:
        """Everything that is stored, verified when the store was opened.

        Never raises for damaged bytes: they are moved aside and reported in
        `Contents.damaged` until their key is committed again.
        """
        ...

    def commit(self, changes: Mapping[str, Checkpoint | None], /) -> None:
        """Store all of these, or none; None forgets a key, an absent one included.

        Keys that are not named stay as they are, and cost nothing. Returns when
        the change would survive a power cut. Raises `RetryableError` when the
        medium is full, busy or failing: nothing has changed then. Only a crash
        before the next commit that succeeds can still bring up the failed one,
        whole.
        """
        ...

    def close(self) -> None:
        """Give the store back; a second call does nothing."""
        ...
