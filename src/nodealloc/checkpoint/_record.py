"""A checksummed, versioned record for whatever this library or its user remembers."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from typing import cast

import attrs

from nodealloc.checkpoint._errors import CorruptCheckpointError
from nodealloc.checkpoint._json import Json, Shape, read_json

__all__ = ["JsonCheckpoint"]


def _plain(value: Json) -> Json:
    """A copy made of lists and dicts, so that what is read back is equal."""
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{value} is not JSON: store a string in its place")
        return value
    if isinstance(value, Mapping):
        return {_text(key): _plain(part) for key, part in value.items()}
    if _is_sequence(value):
        return [_plain(part) for part in value]
    raise ValueError(f"{type(value).__name__} is not JSON: store numbers, strings, lists and dicts")


def _text(key: object) -> str:
    if isinstance(key, str):
        return key
    raise ValueError(f"JSON keys are strings, not {key!r}")


def _is_sequence(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, bytes | bytearray | memoryview)


def _canonical(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)


@attrs.frozen(kw_only=True)
class JsonCheckpoint:
    """A JSON value with a kind, a version and a checksum.

    One line of JSON, keys sorted: readable with any tool, and any change of its
    meaning is detected.

    Attributes:
        kind: What it is, so that one record is never taken for another.
        version: Of the value's layout, 0 or more; the owner migrates older ones.
        value: Numbers, strings, lists and dicts with string keys. Copied; a tuple
            becomes a list.
        checksum: As it was read; None for a record made here.

    Source: ours.

        >>> JsonCheckpoint(kind="lease", version=1, value={"holder": "b"}).marshal()
        b'{"checksum":"f3614eca1264bb6c","kind":"lease","value":{"holder":"b"},"version":1}'
    """

    kind: str
    version: int = attrs.field(validator=attrs.validators.ge(0))
    value: Json = attrs.field(converter=_plain)
    checksum: str | None = attrs.field(default=None, eq=False)

    def marshal(self) -> bytes:
        """One line of JSON."""
        body = _canonical(self.value)
        kind = _canonical(self.kind)
        digest = _digest(kind, self.version, body)
        return f'{{"checksum":"{digest}","kind":{kind},"value":{body},"version":{self.version}}}'.encode()

    @classmethod
    def unmarshal(cls, data: bytes, /) -> JsonCheckpoint:
        """Read such a line."""
        shape = Shape("record")
        found = shape.fields(read_json("record", data), "$", ("checksum", "kind", "value", "version"))
        kind = shape.text(found.get("kind"), "$.kind")
        version = shape.number(found.get("version"), "$.version", bits=63)
        checksum = shape.text(found.get("checksum"), "$.checksum")
        value = cast("Json", found.get("value"))
        if _has_infinity(value):
            shape.fault("$.value", "a number is too large for a float")
        shape.check()
        return cls(kind=kind, version=version, value=value, checksum=checksum)

    def verify(self) -> None:
        """Raise `CorruptCheckpointError` when content and checksum disagree."""
        if self.checksum is not None:
            computed = _digest(_canonical(self.kind), self.version, _canonical(self.value))
            if computed != self.checksum:
                raise CorruptCheckpointError(f"record of kind {self.kind}", self.checksum, computed)


def _digest(kind: str, version: int, body: str) -> str:
    return hashlib.blake2b(f"{kind}\n{version}\n{body}".encode(), digest_size=8).hexdigest()


def _has_infinity(value: Json) -> bool:
    if isinstance(value, float):
        return math.isinf(value)
    if isinstance(value, Mapping):
        return any(_has_infinity(part) for part in value.values())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return any(_has_infinity(part) for part in value)
    return False
