"""One call of gRPC with one answer, over one connection, as bytes in and bytes out: no socket, no clock.

gRPC's own client holds a connection and threads for each channel, for seconds
after it was closed. A thousand plugins that never answer are asked by this instead.
"""

from __future__ import annotations

from urllib.parse import unquote_to_bytes

import attrs

from nodealloc._rpc.hpack import HeaderDecoder, Headers, HpackError, encoded

__all__ = ["AWAY", "GAVE_WAY", "Answer", "UnaryCall"]

_DATA, _HEADERS, _RST_STREAM, _SETTINGS, _PUSH, _PING, _GOAWAY = 0, 1, 3, 4, 5, 6, 7
_CONTINUATION = 9
_ACK = _END_STREAM = 0x1
_END_HEADERS, _PADDED, _PRIORITY = 0x4, 0x8, 0x20
_HEAD_BYTES, _PREFIX_BYTES, _PRIORITY_BYTES = 9, 5, 5
_FRAME_BYTES = 1 << 14
"""Largest frame that nobody asked to be larger."""
_WINDOW_BYTES = (1 << 16) - 1
"""What may be sent before the other side says how much it takes."""
_MOST_FRAMES = 10_000
"""Of one answer. Whoever sends more sends them to be read."""
_STREAM = 1

GAVE_WAY = "GAVE WAY"
"""Status of a call that had no turn in its time, for too many others do not answer."""
STATUSES = (
    *("OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS"),
    *("PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE"),
    *("UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED"),
)
"""Status by code."""
_RESETS = {7: "UNAVAILABLE", 8: "CANCELLED", 11: "RESOURCE_EXHAUSTED", 12: "PERMISSION_DENIED"}
"""Code of RST_STREAM to status; any other is INTERNAL. Source: gRPC over HTTP/2, "Errors"."""
_HTTP = {
    b"400": "INTERNAL",
    b"401": "UNAUTHENTICATED",
    b"403": "PERMISSION_DENIED",
    b"404": "UNIMPLEMENTED",
    b"429": "UNAVAILABLE",
    b"502": "UNAVAILABLE",
    b"503": "UNAVAILABLE",
    b"504": "UNAVAILABLE",
}
"""Status of HTTP to status. Source: gRPC's ``http-grpc-status-mapping``."""


AWAY = frozenset({"UNAVAILABLE", "DEADLINE_EXCEEDED", "CANCELLED", "ABORTED", GAVE_WAY})
"""Statuses after which it is worth asking again: nobody was there, or nobody answered in time."""


@attrs.frozen
class Answer:
    """How a call ended.

    Attributes:
        status: Of gRPC, in words; `OK` when there is an answer.
        data: The answer.
        detail: What the other side says, or what is wrong with what it sent.
    """

    status: str
    data: bytes = b""
    detail: str = ""


class UnaryCall:
    """A call on its way.

    Args:
        method: Its path, as `/package.Service/Method`.
        request: At most 60,000 bytes: so much may be sent unasked.
        limit_s: What the other side is told about the caller's patience.
        largest_bytes: Of an answer, and of headers.

    Attributes:
        greeting: What is sent first: all of the call.
        answer: How it ended; None while it goes on.
    """

    def __init__(self, method: str, request: bytes, /, *, limit_s: float, largest_bytes: int) -> None:
        self.answer: Answer | None = None
        self._largest_bytes = largest_bytes
        self._decoder = HeaderDecoder(most_bytes=largest_bytes)
        self._read = bytearray()
        self._body = bytearray()
        self._block: bytearray | None = None
        self._block_ends = False
        self._frames = 0
        self._has_begun = False
        headers = (
            (b":method", b"POST"),
            (b":scheme", b"http"),
            (b":path", method.encode()),
            (b":authority", b"localhost"),
            (b"te", b"trailers"),
            (b"content-type", b"application/grpc"),
            (b"user-agent", b"nodealloc"),
            (b"grpc-timeout", b"%dm" % max(1, min(int(limit_s * 1000), 99_999_999))),
        )
        body = b"\0" + len(request).to_bytes(4, "big") + request
        if len(body) > _WINDOW_BYTES:
            raise ValueError(
                f"a request of {len(request)} bytes, {_WINDOW_BYTES - _PREFIX_BYTES} may be sent"
            )
        window = min(largest_bytes + _FRAME_BYTES, (1 << 31) - 1)
        settings = b"\0\2\0\0\0\0" + b"\0\4" + window.to_bytes(4, "big")
        parts = [body[at : at + _FRAME_BYTES] for at in range(0, len(body), _FRAME_BYTES)]
        self.greeting = b"".join(
            [
                b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
                _frame(_SETTINGS, 0, 0, settings),
                _frame(8, 0, 0, max(window - _WINDOW_BYTES, 1).to_bytes(4, "big")),
                _frame(_HEADERS, _END_HEADERS, _STREAM, encoded(headers)),
                *(_frame(_DATA, _END_STREAM * (part is parts[-1]), _STREAM, part) for part in parts),
            ]
        )

    def received(self, data: bytes, /) -> bytes:
        """Read what came; what is to be sent because of it. No bytes mean that the other side hung up."""
        if not data:
            self._end("UNAVAILABLE", "the connection was closed before an answer came")
            return b""
        self._read += data
        out = bytearray()
        at = 0
        while self.answer is None and len(self._read) - at >= _HEAD_BYTES:
            length = int.from_bytes(self._read[at : at + 3], "big")
            kind, flags = self._read[at + 3], self._read[at + 4]
            stream = int.from_bytes(self._read[at + 5 : at + 9], "big") & 0x7FFFFFFF
            if not self._is_sound(kind, length):
                break
            if len(self._read) - at < _HEAD_BYTES + length:
                break
            self._frames += 1
            at += _HEAD_BYTES
            payload = bytes(self._read[at : at + length])
            at += length
            try:
                out += self._frame(kind, flags, stream, payload)
            except HpackError as error:
                self._end("INTERNAL", str(error))
        del self._read[:at]
        return bytes(out)

    def _is_sound(self, kind: int, length: int) -> bool:
        if not self._has_begun and kind != _SETTINGS:
            self._end("UNAVAILABLE", "whoever listens there does not speak HTTP/2")
        elif length > _FRAME_BYTES:
            self._end("INTERNAL", f"a frame of {length} bytes, {_FRAME_BYTES} are allowed")
        elif self._frames > _MOST_FRAMES:
            self._end("RESOURCE_EXHAUSTED", f"more than {_MOST_FRAMES} frames and no answer")
        elif self._block is not None and kind != _CONTINUATION:
            self._end("INTERNAL", "headers that are broken off")
        self._has_begun = True
        return self.answer is None

    def _frame(self, kind: int, flags: int, stream: int, payload: bytes) -> bytes:
        if kind == _SETTINGS:
            return b"" if flags & _ACK else _frame(_SETTINGS, _ACK, 0, b"")
        if kind == _PING:
            return b"" if flags & _ACK else _frame(_PING, _ACK, 0, payload)
        if kind == _GOAWAY:
            if int.from_bytes(payload[:4], "big") & 0x7FFFFFFF < _STREAM:
                self._end("UNAVAILABLE", _words(payload[8:]) or "it is going away")
        elif kind == _PUSH:
            self._end("INTERNAL", "it pushes what nobody asked for")
        elif stream == _STREAM:
            self._of_stream(kind, flags, payload)
        return b""

    def _of_stream(self, kind: int, flags: int, payload: bytes) -> None:
        if kind == _RST_STREAM:
            code = int.from_bytes(payload[:4], "big")
            self._end(_RESETS.get(code, "INTERNAL"), f"the call was reset (code {code})")
        elif kind == _DATA:
            self._body += _unpadded(flags, payload)
            if self._is_too_large():
                return
            if flags & _END_STREAM:
                self._end("INTERNAL", "the answer ends without a status")
        elif kind == _HEADERS:
            block = _unpadded(flags, payload)
            self._block = bytearray(block[_PRIORITY_BYTES if flags & _PRIORITY else 0 :])
            self._block_ends = bool(flags & _END_STREAM)
            self._headers_if_whole(flags)
        elif kind == _CONTINUATION and self._block is not None:
            self._block += payload
            if len(self._block) > self._largest_bytes:
                self._end("RESOURCE_EXHAUSTED", f"headers of more than {self._largest_bytes} bytes")
                return
            self._headers_if_whole(flags)

    def _is_too_large(self) -> bool:
        said = int.from_bytes(self._body[1:_PREFIX_BYTES], "big") if len(self._body) >= _PREFIX_BYTES else 0
        size = max(said, len(self._body) - _PREFIX_BYTES)
        if size > self._largest_bytes:
            words = f"an answer of {size} bytes, {self._largest_bytes} are allowed"
            self._end("RESOURCE_EXHAUSTED", words)
        return self.answer is not None

    def _headers_if_whole(self, flags: int) -> None:
        if not flags & _END_HEADERS or self._block is None:
            return
        block, self._block = bytes(self._block), None
        headers = self._decoder.decode(block)
        if self._block_ends:
            self._end_by(headers)
            return
        status = dict(headers).get(b":status", b"")
        if status != b"200" and not status.startswith(b"1"):
            self._end(_HTTP.get(status, "UNKNOWN"), f"HTTP status {_words(status) or 'missing'}")

    def _end_by(self, headers: Headers) -> None:
        """The last headers say what came of the call."""
        said = dict(headers)
        code = said.get(b"grpc-status")
        if code is None:
            status = said.get(b":status", b"")
            words = f"HTTP status {_words(status)} and none of gRPC" if status else "no status"
            self._end(_HTTP.get(status, "UNKNOWN"), words)
            return
        number = int(code) if code.isdigit() and len(code) <= 2 else len(STATUSES)
        status_word = STATUSES[number] if number < len(STATUSES) else "UNKNOWN"
        if status_word != "OK":
            self._end(status_word, unquote_to_bytes(said.get(b"grpc-message", b"")).decode(errors="replace"))
            return
        data = bytes(self._body[_PREFIX_BYTES:])
        if len(self._body) < _PREFIX_BYTES or int.from_bytes(self._body[1:_PREFIX_BYTES], "big") != len(data):
            self._end("INTERNAL", "not one whole answer")
        elif self._body[0]:
            self._end("INTERNAL", "a compressed answer, which nobody asked for")
        else:
            self.answer = Answer("OK", data)

    def _end(self, status: str, detail: str) -> None:
        if self.answer is None:
            self.answer = Answer(status, detail=detail)


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    head = len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big")
    return head + payload


def _unpadded(flags: int, payload: bytes) -> bytes:
    if not flags & _PADDED:
        return payload
    if not payload or payload[0] >= len(payload):
        raise HpackError("more padding than there is")
    return payload[1 : len(payload) - payload[0]]


def _words(data: bytes) -> str:
    return data[:200].decode("ascii", "replace")
