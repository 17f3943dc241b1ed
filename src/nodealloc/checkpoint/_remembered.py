"""Protocol of what is remembered under a key; stores and what they hold are written in terms of it."""

from __future__ import annotations

from typing import Protocol, Self

__all__ = ["Checkpoint"]


class Checkpoint(Protocol):
    """Something remembered under a key, as bytes that can be told from damaged ones.

    `unmarshal(x.marshal())` equals `x`.
    """

    def marshal(self) -> bytes:
        """The bytes to store, checksum included; the same value gives the same bytes."""
        ...

    @classmethod
    def unmarshal(cls, data: bytes, /) -> Self:
        """Read bytes; raises `DecodeError` for bytes of another shape, and nothing else."""
        ...

    def verify(self) -> None:
        """Raise `CorruptCheckpointError` when content and checksum disagree."""
        ...
