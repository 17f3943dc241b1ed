"""Protocols of what is remembered, and where."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, Self

__all__ = ["Checkpoint", "Store"]


class Checkpoint(Protocol):
    """Something remembered under a key, as bytes that can be told from damaged ones.

    `unmarshal(x.marshal())` equals `x`.
    """

    def marshal(self) -> bytes:
        """The bytes to store, checksum included."""
        ...

    @classmethod
    def unmarshal(cls, data: bytes, /) -> Self:
        """Read bytes; raises `DecodeError` for bytes of another shape."""
        ...

    def verify(self) -> None:
        """Raise `CorruptCheckpointError` when content and checksum disagree."""
        ...


class Store(Protocol):
    """Keys and their bytes, durable.

    One process at a time holds a store. After a crash at any instant a store
    opens with the content before or after the last commit, never between.
    """

    def read(self) -> Mapping[str, bytes]:
        """Everything that is stored, by key."""
        ...

    def commit(self, changes: Mapping[str, Checkpoint | None], /) -> None:
        """Store all of these, or none; None forgets a key, an absent one included.

        Returns when the change would survive a power cut. Raises
        `RetryableError` when the medium is full or busy; nothing has changed then.
        """
        ...

    def close(self) -> None:
        """Give the store back; a second call does nothing."""
        ...
