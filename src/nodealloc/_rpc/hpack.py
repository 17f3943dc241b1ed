"""Headers of HTTP/2 as bytes: HPACK, RFC 7541. Written without any state, read with all of it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import TypeAlias

__all__ = ["HeaderDecoder", "Headers", "HpackError", "encoded"]

Headers: TypeAlias = list[tuple[bytes, bytes]]

_TABLE_BYTES = 4096
"""Of the table of headers that were said before, where nobody says otherwise (RFC 9113, 6.5.2)."""
_ENTRY_BYTES = 32
"""That the RFC counts for each entry beside its name and value (RFC 7541, 4.1)."""
_LARGEST_INTEGER_BYTES = 5

_STATIC = """
:authority|:method=GET|:method=POST|:path=/|:path=/index.html|:scheme=http|:scheme=https|:status=200
:status=204|:status=206|:status=304|:status=400|:status=404|:status=500|accept-charset
accept-encoding=gzip, deflate|accept-language|accept-ranges|accept|access-control-allow-origin|age|allow
authorization|cache-control|content-disposition|content-encoding|content-language|content-length
content-location|content-range|content-type|cookie|date|etag|expect|expires|from|host|if-match
if-modified-since|if-none-match|if-range|if-unmodified-since|last-modified|link|location|max-forwards
proxy-authenticate|proxy-authorization|range|referer|refresh|retry-after|server|set-cookie
strict-transport-security|transfer-encoding|user-agent|vary|via|www-authenticate
"""
"""RFC 7541, appendix A, in its order."""

_CODE_LENGTHS = bytes.fromhex(
    "0d171c1c1c1c1c1c1c181e1c1c1e1c1c1c1c1c1c1c1c1e1c1c1c1c1c1c1c1c1c060a0a0c0d06080b0a0a080b08060606"
    "0505050606060606060607080f060c0a0d06070707070707070707070707070707070707070707070807080d130d0e06"
    "0f05060506050606060507070606060506070605050607070707070f0b0e0d1c14161414161616171617171717171817"
    "181816171817171717151617161717181615141616171715171616181516171715151615171617171416161617161617"
    "1a1a1413161716191a1a1a1b1b1a181913151a1b1b1a1b1815151a1a1c1b1b1b14181415161515171616191918181a17"
    "1a1b1a1a1b1b1b1b1b1c1b1b1b1b1b1a1e"
)
"""Bits of each byte's Huffman code, and of the end's (RFC 7541, appendix B). The codes follow from them:
they ascend by length, and by byte within a length."""


class HpackError(ValueError):
    """These bytes are no headers."""


def encoded(headers: Iterable[tuple[bytes, bytes]], /) -> bytes:
    """Headers as literals that nobody has to remember."""
    out = bytearray()
    for name, value in headers:
        out += b"\0"
        for text in (name, value):
            out += _integer(len(text), 7) + text
    return bytes(out)


class HeaderDecoder:
    """Reads the headers of one connection, in their order.

    Args:
        most_bytes: Of one block's names and values together; a reference of one
            byte may stand for thousands.
    """

    def __init__(self, *, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._said: deque[tuple[bytes, bytes]] = deque()
        self._said_bytes = 0
        self._table_bytes = _TABLE_BYTES

    def decode(self, block: bytes, /) -> Headers:
        """The headers of a block.

        Raises:
            HpackError: It is none, or stands for more than `most_bytes`.
        """
        headers: Headers = []
        size = at = 0
        while at < len(block):
            first = block[at]
            if first & 0x80:
                index, at = _read_integer(block, at, 7)
                header = self._entry(index)
            elif first & 0xE0 == 0x20:
                self._resize(block, at)
                _, at = _read_integer(block, at, 5)
                continue
            else:
                header, at = self._literal(block, at, bits=6 if first & 0x40 else 4)
                if first & 0x40:
                    self._remember(header)
            size += len(header[0]) + len(header[1]) + _ENTRY_BYTES
            if size > self._most_bytes:
                raise HpackError(f"headers of more than {self._most_bytes} bytes")
            headers.append(header)
        return headers

    def _literal(self, block: bytes, at: int, *, bits: int) -> tuple[tuple[bytes, bytes], int]:
        index, at = _read_integer(block, at, bits)
        if index:
            name = self._entry(index)[0]
        else:
            name, at = _read_text(block, at)
        value, at = _read_text(block, at)
        return (name, value), at

    def _entry(self, index: int) -> tuple[bytes, bytes]:
        if 1 <= index <= len(_STATIC_TABLE):
            return _STATIC_TABLE[index - 1]
        try:
            return self._said[index - len(_STATIC_TABLE) - 1]
        except IndexError:
            raise HpackError(f"header {index} was never said") from None

    def _remember(self, header: tuple[bytes, bytes]) -> None:
        self._said.appendleft(header)
        self._said_bytes += len(header[0]) + len(header[1]) + _ENTRY_BYTES
        self._shrink()

    def _resize(self, block: bytes, at: int) -> None:
        size, _ = _read_integer(block, at, 5)
        if size > _TABLE_BYTES:
            raise HpackError(f"a table of {size} bytes, {_TABLE_BYTES} are allowed")
        self._table_bytes = size
        self._shrink()

    def _shrink(self) -> None:
        while self._said_bytes > self._table_bytes:
            name, value = self._said.pop()
            self._said_bytes -= len(name) + len(value) + _ENTRY_BYTES


def _integer(number: int, bits: int) -> bytes:
    most = (1 << bits) - 1
    if number < most:
        return bytes([number])
    out = bytearray([most])
    number -= most
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _read_integer(block: bytes, at: int, bits: int) -> tuple[int, int]:
    """A number whose first byte has so many bits for it, and where the next thing begins."""
    most = (1 << bits) - 1
    number = _byte(block, at) & most
    at += 1
    if number < most:
        return number, at
    for place in range(_LARGEST_INTEGER_BYTES):
        byte = _byte(block, at)
        at += 1
        number += (byte & 0x7F) << 7 * place
        if not byte & 0x80:
            return number, at
    raise HpackError("a number that does not end")


def _read_text(block: bytes, at: int) -> tuple[bytes, int]:
    is_huffman = bool(_byte(block, at) & 0x80)
    length, at = _read_integer(block, at, 7)
    text = block[at : at + length]
    if len(text) < length:
        raise HpackError("a text that is cut short")
    return (_huffman(text) if is_huffman else text), at + length


def _byte(block: bytes, at: int) -> int:
    try:
        return block[at]
    except IndexError:
        raise HpackError("headers that are cut short") from None


def _huffman(coded: bytes) -> bytes:
    out = bytearray()
    code = length = 0
    for byte in coded:
        for place in range(7, -1, -1):
            code = code << 1 | byte >> place & 1
            length += 1
            symbol = _CODES.get((length, code))
            if symbol is not None:
                if symbol == len(_CODE_LENGTHS) - 1:
                    raise HpackError("a text that says it ended")
                out.append(symbol)
                code = length = 0
    # What is left of the last byte is filled up with the first bits of the end, which are ones.
    if length > 7 or code != (1 << length) - 1:
        raise HpackError("a text that ends within a letter")
    return bytes(out)


def _static_table() -> tuple[tuple[bytes, bytes], ...]:
    rows = _STATIC.strip().encode().replace(b"\n", b"|").split(b"|")
    return tuple((name, value) for name, _, value in (row.partition(b"=") for row in rows))


def _codes() -> dict[tuple[int, int], int]:
    codes: dict[tuple[int, int], int] = {}
    code = before = 0
    for length, symbol in sorted((length, symbol) for symbol, length in enumerate(_CODE_LENGTHS)):
        code = code + 1 << length - before if codes else 0
        before = length
        codes[length, code] = symbol
    return codes


_STATIC_TABLE = _static_table()
_CODES = _codes()
