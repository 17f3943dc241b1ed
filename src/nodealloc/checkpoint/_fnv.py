"""FNV-1a with 32 bits, the hash behind the kubelet's checksums."""

from __future__ import annotations

__all__ = ["fnv1a32"]

_OFFSET = 2166136261
_PRIME = 16777619


def fnv1a32(data: bytes, /) -> int:
    """The FNV-1a hash of some bytes, 32 bits.

    Source: draft-eastlake-fnv, as in Go's `hash/fnv`.

        >>> hex(fnv1a32(b"foobar"))
        '0xbf9cf968'
    """
    value = _OFFSET
    for byte in data:
        value = ((value ^ byte) * _PRIME) & 0xFFFFFFFF
    return value
