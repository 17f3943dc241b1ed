"""FNV-1a with 32 bits, the hash behind the kubelet's checksums, without a loop over bytes.

A step is ``hash = (hash ^ byte) * prime``, and the next one needs its result. But
the low bits of the result depend on the low bits before it alone, and all that
is above them only takes part in a multiplication. So a long text is cut into
*rows* of one length, which are then hashed side by side in the lanes of one
large integer:

1. bit 0 of each row's start is found, for the end of the row before says what
   it flips; with bit 0 known the same goes for bit 1, and so on up to bit 7;
2. with the low byte of each row's start known, all rows are hashed at once;
3. the rows are joined: what was missing at a row's start is a multiple of 256,
   and a multiple of 256 is only multiplied on its way to the row's end.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from itertools import accumulate

__all__ = ["fnv1a32", "joined"]

_OFFSET = 2166136261
_PRIME = 16777619
_MASK = 0xFFFFFFFF
_SHORT = 4096
"""Below this many bytes the plain loop is as fast."""


def fnv1a32(data: bytes, /, *, start: int = _OFFSET) -> int:
    """The FNV-1a hash of some bytes, 32 bits.

    Args:
        data: To hash.
        start: The hash of what stands before them.

    Source: draft-eastlake-fnv, as in Go's `hash/fnv`; the arrangement in rows is ours.

        >>> hex(fnv1a32(b"foobar"))
        '0xbf9cf968'
    """
    done, value = 0, start
    if len(data) >= _SHORT:
        rows, length = _shape(len(data))
        done = rows * length
        value = _hash_rows(data[:done], rows, length, start)
    for byte in data[done:]:
        value = ((value ^ byte) * _PRIME) & _MASK
    return value


def joined(before: int, low: int, end: int, length: int, /) -> int:
    """The hash after a text, from a hash of it that began elsewhere.

    Args:
        before: The hash before it.
        low: Where the other one began; its low byte is that of `before`.
        end: Where the other one ended.
        length: Of the text in bytes.
    """
    return (end + (before - low) * pow(_PRIME, length, _MASK + 1)) & _MASK


def _shape(size: int) -> tuple[int, int]:
    """How many rows of which length: a multiple of 8, about as long as there are rows, little left over."""
    middle = max(32, min(1024, int(size**0.5 * 1.1)))
    candidates = range(middle * 3 // 4, middle * 5 // 4)
    rows = max(candidates, key=lambda count: count * (size // count // 8 * 8))
    return rows, size // rows // 8 * 8


def _hash_rows(data: bytes, rows: int, length: int, start: int) -> int:
    columns = [data[at::length] for at in range(length)]
    starts = _low_bytes(columns, rows, start)
    lanes = _spread(starts, 8)
    keep = int.from_bytes(b"\xff\xff\xff\xff\0\0\0\0" * rows, "little")
    low = int.from_bytes(b"\xff\0\0\0\0\0\0\0" * rows, "little")
    words = memoryview(data).cast("Q")
    for at in range(length // 8):
        eight = int.from_bytes(words[at :: length // 8].tobytes(), "little")
        for shift in range(0, 64, 8):
            lanes = ((lanes ^ (eight >> shift & low)) * _PRIME) & keep
    ends = struct.unpack(f"<{rows}Q", lanes.to_bytes(8 * rows, "little"))
    value, power = start, pow(_PRIME, length, _MASK + 1)
    for low, end in zip(starts, ends, strict=True):
        value = (end + (value - low) * power) & _MASK
    return value


def _low_bytes(columns: Sequence[bytes], rows: int, start: int) -> bytes:
    """The low byte of the hash at the start of each row."""
    starts = bytes(rows)
    # A product of bits 0 to 3 fits into 8 bits, one of bits 0 to 7 into 16.
    for width, bits in ((1, range(4)), (2, range(4, 8))):
        lanes = [_spread(column, width) for column in columns]
        ones = _spread(b"\1" * rows, width)
        for bit in bits:
            kept = (2 << bit) - 1
            known = _spread(starts, width)
            mask, factor = ones * kept, _PRIME & kept
            ends = known
            for lane in lanes:
                ends = ((ends ^ lane) & mask) * factor
            flips = (ends >> bit & ones).to_bytes(width * rows, "little")[::width]
            found: Iterator[int] = accumulate(flips[:-1], int.__xor__, initial=start >> bit & 1)
            starts = (known | _spread(bytes(found), width) << bit).to_bytes(width * rows, "little")[::width]
    return starts


def _spread(column: bytes, width: int) -> int:
    """An integer with one lane of `width` bytes for each byte."""
    if width == 1:
        return int.from_bytes(column, "little")
    lanes = bytearray(width * len(column))
    lanes[::width] = column
    return int.from_bytes(lanes, "little")
