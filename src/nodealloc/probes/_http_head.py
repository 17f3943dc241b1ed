"""The head of an HTTP answer, and whether its body is whole. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

from nodealloc import _attrs as attrs
from nodealloc.errors import PermanentError

__all__ = ["Head", "HttpNonsenseError", "head_in", "is_whole"]

_STATUS: Final = re.compile(rb"HTTP/1\.[01] (\d{3})(?=[ \r\n]|$)")
_END: Final = re.compile(rb"\n\r?\n")
"""Of a head: an empty line. Lines may end without a carriage return, as scripts write them."""
_NO_BODY: Final = frozenset({204, 304})
_SIZE: Final = re.compile(rb"[0-9a-fA-F]{1,16}")
"""Of a chunk; `int` takes a sign as well, with which a chunk would end where it began, for ever."""
_BEGINS: Final = b"HTTP/1."
_FIELD: Final = re.compile(
    rb"\n(content-length|transfer-encoding|location)[ \t]*:[ \t]*([^\r\n]*)", re.IGNORECASE
)
"""Whatever else an answer says of itself changes nothing."""


class HttpNonsenseError(PermanentError):
    """What came is no answer in HTTP/1, or breaks off."""


@attrs.frozen
class Head:
    """The head of an answer.

    Attributes:
        status: Three digits.
        fields: Headers that say how long the answer is, or where another one is, by their names
            in small letters; of one that is there twice, the last.
        length_bytes: Of the head, with what came before it and the empty line.
    """

    status: int
    fields: Mapping[str, str]
    length_bytes: int


def head_in(data: bytes, /) -> Head | None:
    """The head of the final answer; None while it has not come whole.

    Raises:
        HttpNonsenseError: What came is no HTTP/1.
    """
    begin = 0
    while True:
        ends = _END.search(data, begin)
        if ends is None:
            if not data.startswith(_BEGINS, begin) and not _BEGINS.startswith(data[begin : begin + 7]):
                raise HttpNonsenseError(f"the answer is no HTTP/1: {data[begin:][:40]!r}")
            return None
        end = ends.start()
        found = _STATUS.match(data, begin, end)
        if found is None:
            line = data[begin:end].partition(b"\n")[0].rstrip(b"\r")
            raise HttpNonsenseError(f"the answer is no HTTP/1: {line[:40]!r}")
        status = int(found[1])
        if not _goes_on(status):
            fields = {
                name.lower().decode(): value.rstrip().decode(errors="surrogateescape")
                for name, value in _FIELD.findall(data, begin, end)
            }
            return Head(status, fields, ends.end())
        begin = ends.end()


def _goes_on(status: int) -> bool:
    """Whether another answer follows; after 101 none does."""
    return 100 <= status < 200 and status != HTTPStatus.SWITCHING_PROTOCOLS


def is_whole(head: Head, body: bytes, /, *, has_ended: bool = False) -> bool:
    """Whether the body is all there; `has_ended` where the other side has said its last word."""
    if head.status in _NO_BODY:
        return True
    if "chunked" in head.fields.get("transfer-encoding", "").lower():
        return _chunks_end(body)
    length = head.fields.get("content-length", "")
    if length.isascii() and length.isdigit():
        return len(body) >= int(length)
    return has_ended


def _chunks_end(body: bytes) -> bool:
    """Whether the last chunk has come, which is empty."""
    at = 0
    while (line := body.find(b"\r\n", at)) >= 0:
        word = body[at:line].partition(b";")[0].strip()
        if not _SIZE.fullmatch(word):
            raise HttpNonsenseError(f"a chunk of {word[:20]!r} bytes")
        size = int(word, 16)
        if size == 0:
            return body.find(b"\r\n", line + 2) >= 0
        at = line + 2 + size + 2
    return False
