"""The head of an HTTP answer, and whether its body is whole. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Final

from nodealloc import _attrs as attrs
from nodealloc.errors import PermanentError

__all__ = ["Head", "HttpNonsenseError", "content_of", "head_in", "is_whole"]

_STATUS: Final = re.compile(rb"HTTP/1\.[01] (\d{3})(?=[ \r\n]|$)")
_END: Final = re.compile(rb"\n\r?\n")
"""Of a head: an empty line. Lines may end without a carriage return, as scripts write them."""
_NO_BODY: Final = frozenset({204, 304})
_SIZE: Final = re.compile(rb"[0-9a-fA-F]{1,16}")
"""Of a chunk; `int` takes a sign as well, with which a chunk would end where it began, for ever."""
_BEGINS: Final = b"HTTP/1."
_OLD: Final = b"HTTP/1.0"
"""Without chunks, whatever it says of them."""
_FIELD: Final = re.compile(rb"\n(content-length|transfer-encoding|location):[ \t]*([^\r\n]*)", re.IGNORECASE)
"""Whatever else an answer says of itself changes nothing."""
_LINES: Final = re.compile(
    rb"[^\n]*(?:\n[!#-'*+.0-9A-Z^_`a-z|~-][ !#-'*+.0-9A-Z^_`a-z|~-]*:[\t -~\x80-\xff]*\r?"
    rb"(?:\n[ \t][\t -~\x80-\xff]*\r?)*)*"
)
"""A head as far as it makes sense: its status, then names with their values, which may go on in lines that
begin with a blank. A name may have blanks in it; it is none that counts then."""
_LENGTH: Final = re.compile(r"0*[0-9]{1,19}")
_LARGEST: Final = (1 << 63) - 1


class HttpNonsenseError(PermanentError):
    """What came is no answer in HTTP/1, or breaks off."""


@attrs.frozen
class Head:
    """The head of an answer.

    Attributes:
        status: Three digits.
        fields: Headers that say how long the answer is, or where another one is, by their names
            in small letters; of one that is there twice, the first.
        length_bytes: Of the head, with what came before it and the empty line.
    """

    status: int
    fields: Mapping[str, str]
    length_bytes: int


def head_in(data: bytes, /) -> Head | None:
    """The head of the final answer; None while it has not come whole.

    Raises:
        HttpNonsenseError: What came is no HTTP/1.

    Source: Go ``net/http`` and ``net/textproto``, by which kubelets read.
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
            return Head(status, _fields(data, begin, end), ends.end())
        begin = ends.end()


def _fields(data: bytes, begin: int, end: int) -> Mapping[str, str]:
    """The headers that count; raises where they, or any other line of the head, make no sense."""
    right = _LINES.match(data, begin, end)
    sense = begin if right is None else right.end()
    if sense < end:
        line = data[data.rfind(b"\n", begin, sense + 1) + 1 : end].partition(b"\n")[0].rstrip(b"\r")
        raise HttpNonsenseError(f"a header that is none: {line[:40]!r}")
    found: dict[str, list[str]] = {}
    for name, value in _FIELD.findall(data, begin, end):
        text: str = value.rstrip().decode(errors="surrogateescape")
        found.setdefault(name.lower().decode(), []).append(text)
    if data.startswith(_OLD, begin):
        found.pop("transfer-encoding", None)
    lengths, codings = found.get("content-length", []), found.get("transfer-encoding", ["chunked"])
    if len(set(lengths)) > 1:
        raise HttpNonsenseError(f"Content-Length: {', '.join(lengths)[:40]!r}")
    if [one.lower() for one in codings] != ["chunked"]:
        raise HttpNonsenseError(f"Transfer-Encoding: {', '.join(codings)[:40]!r}; chunked alone is read")
    return {name: values[0] for name, values in found.items()}


def _goes_on(status: int) -> bool:
    """Whether another answer follows; after 101 none does."""
    return 100 <= status < 200 and status != HTTPStatus.SWITCHING_PROTOCOLS


def is_whole(head: Head, body: bytes, /, *, has_ended: bool = False) -> bool:
    """Whether the body is all there; `has_ended` where the other side has said its last word.

    Raises:
        HttpNonsenseError: How long it is makes no sense.
    """
    if head.status in _NO_BODY:
        return True
    if "transfer-encoding" in head.fields:
        return any(size == 0 for size, _ in _chunks(body))
    length = head.fields.get("content-length")
    if length is None:
        return has_ended
    if not _LENGTH.fullmatch(length) or int(length) > _LARGEST:
        raise HttpNonsenseError(f"Content-Length: {length[:40]!r}")
    return len(body) >= int(length)


def content_of(head: Head, body: bytes, /) -> bytes:
    """What a body says, as far as it has come: without sizes of chunks, and what is behind its end."""
    if head.status in _NO_BODY:
        return b""
    if "transfer-encoding" in head.fields:
        return b"".join(chunk for _, chunk in _chunks(body))
    return body[: int(head.fields.get("content-length", len(body)))]


def _chunks(body: bytes) -> Iterator[tuple[int, bytes]]:
    """The size of each chunk, and what of it has come; of the last one, which is empty, once its end has."""
    at = 0
    while (line := body.find(b"\r\n", at)) >= 0:
        word = body[at:line].partition(b";")[0].strip()
        if not _SIZE.fullmatch(word):
            raise HttpNonsenseError(f"a chunk of {word[:20]!r} bytes")
        size, begin = int(word, 16), line + 2
        if size == 0:
            if body.find(b"\r\n", begin) >= 0:
                yield 0, b""
            return
        yield size, body[begin : begin + size]
        at = begin + size + 2
