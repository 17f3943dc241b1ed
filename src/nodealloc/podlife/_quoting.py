"""Bytes that somebody wrote, in one line between quotation marks, as kubelets show them."""

from __future__ import annotations

from typing import Final

__all__ = ["quoted"]

_NAMED: Final = {
    "\a": r"\a",
    "\b": r"\b",
    "\f": r"\f",
    "\n": r"\n",
    "\r": r"\r",
    "\t": r"\t",
    "\v": r"\v",
    '"': r"\"",
    "\\": r"\\",
}
_NO_TEXT: Final = range(0xDC80, 0xDD00)
"""What bytes become that are no UTF-8."""
_ASCII: Final = 0x80
_SHORT: Final = 0x10000


def quoted(written: bytes, /) -> str:
    """The text; what cannot be seen, and bytes that are no UTF-8, by their numbers.

    Source: ``strconv.Quote`` of Go, which kubelets show outputs with.
    """
    return f'"{"".join(map(_shown, written.decode("utf-8", "surrogateescape")))}"'


def _shown(one: str) -> str:
    if (name := _NAMED.get(one)) is not None:
        return name
    if one.isprintable():
        return one
    number = ord(one)
    if number in _NO_TEXT:
        return f"\\x{number - _NO_TEXT.start + _ASCII:02x}"
    if number < _ASCII:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < _SHORT else f"\\U{number:08x}"
