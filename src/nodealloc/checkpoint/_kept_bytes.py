"""Bytes that keep what was worked out of them: one large answer costs its own commit, and no later one."""

from __future__ import annotations

import base64
from typing import Final

from nodealloc._typed import typed
from nodealloc.checkpoint._fnv import fnv1a32, joined

__all__ = ["LARGE_BYTES", "KeptBytes", "as_base64", "printed"]

LARGE_BYTES: Final = 4096
"""Below this working it out again costs less than keeping it."""
_LAST: Final = 4
"""Hashes that are kept of one value, by the low byte of what stands before it."""

_NUMBERS: Final = tuple(str(number).encode() for number in range(256))


class KeptBytes(bytes):
    """A large answer of a plugin that keeps what a checkpoint needs of it, as long as it lives itself.

    Equal to plain bytes; copied and pickled as such.
    """

    _base64: str | None = None
    _print_length: int = 0
    _ends: dict[int, int] | None = None

    @classmethod
    @typed
    def of(cls, data: bytes | None, /) -> bytes | None:
        """The same bytes; large ones keep what is worked out of them."""
        if data is None or len(data) < LARGE_BYTES or isinstance(data, cls):
            return data
        return cls(data)

    @property
    def base64(self) -> str:
        """As JSON has it."""
        if self._base64 is None:
            self._base64 = base64.b64encode(self).decode()
        return self._base64

    def hashed(self, before: int, /) -> int:
        """The hash after Go's print of these bytes, from the hash before it.

        What is kept is the end for a low byte; all above it is only multiplied
        on its way, so that the same end serves every hash with that low byte.
        """
        low = before & 0xFF
        ends = {} if self._ends is None else self._ends
        if low not in ends:
            text = printed(self)
            self._print_length = len(text)
            self._ends = {**dict(list(ends.items())[1 - _LAST :]), low: fnv1a32(text, start=low)}
            ends = self._ends
        return joined(before, low, ends[low], self._print_length)

    def __reduce__(self) -> tuple[type[bytes], tuple[bytes]]:
        return bytes, (bytes(self),)


def as_base64(data: bytes, /) -> str:
    """As JSON has it."""
    return data.base64 if isinstance(data, KeptBytes) else base64.b64encode(data).decode()


def printed(data: bytes, /) -> bytes:
    """As Go prints them: `[1 2 255]`."""
    return b"[%b]" % b" ".join([_NUMBERS[byte] for byte in data])
