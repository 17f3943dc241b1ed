"""A checksummed, versioned record for whatever this library or its user remembers."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final, cast

from nodealloc import _attrs as attrs
from nodealloc._arguments import whole
from nodealloc._frozen import Frozen, PlainJson
from nodealloc._reading import NO_TEXT
from nodealloc._typed import typed_fields
from nodealloc.checkpoint._errors import CorruptCheckpointError
from nodealloc.checkpoint._json import Json, Shape, read_json, written
from nodealloc.errors import ConfigurationError, DecodeError, Fault

__all__ = ["JsonCheckpoint"]

DEEPEST: Final = 256
"""Levels of a value; the call stack of a thread of its own holds several times as many."""

_MAPPINGS: Final = (dict, Mapping)


class _UnusualError(Exception):
    """The quick way is not for this value."""


_SHALLOW: Final = 16
"""Levels that are copied by calls in calls; what is deeper is rare."""


def _plain(value: Json) -> Json:
    """A copy made of lists and dicts, so that what is read back is equal."""
    try:
        return _copied(value, _SHALLOW)
    except (_UnusualError, RecursionError):
        return _copied_from_any_depth(value)


def _copied(value: Json, levels: int) -> Json:
    """A copy of a value that is made of the very types of JSON, which nearly all are."""
    kind = type(value)
    if kind is str or kind is int or kind is bool or value is None or kind is PlainJson:
        return value
    if kind is float:
        return _finite(cast("float", value))
    if not levels:
        raise _UnusualError
    if kind is dict or kind is Frozen:
        made: dict[str, Json] = {}
        for key, part in cast("dict[str, Json]", value).items():
            if type(key) is not str:
                raise _UnusualError
            same = part is None or type(part) is str or type(part) is int
            made[key] = part if same else _copied(part, levels - 1)
        return made
    if kind is list or kind is tuple:
        return [_copied(part, levels - 1) for part in cast("Sequence[Json]", value)]
    raise _UnusualError


def _copied_from_any_depth(value: Json) -> Json:
    """Without calls in calls: how deep a value may be must not depend on how deep the caller is."""
    whole: dict[str, Json] = {}
    due: list[tuple[Json, Callable[[Json], None], int]] = [(value, partial(whole.__setitem__, ""), 0)]
    while due:
        one, put, level = due.pop()
        if level >= DEEPEST and not isinstance(one, float):
            raise ConfigurationError(f"nested more than {DEEPEST} levels deep: store a flatter value")
        if type(one) is PlainJson:
            put(cast("Json", one))
            continue
        # Nearly all are dicts, which costs less to see than whether something behaves like one.
        if isinstance(one, _MAPPINGS):
            fields: dict[str, Json] = {}
            for key, part in one.items():
                name = _text(key)
                if part is None or isinstance(part, str | int):
                    fields[name] = part
                else:
                    fields[name] = None
                    due.append((part, partial(fields.__setitem__, name), level + 1))
            put(fields)
        elif one is None or isinstance(one, str | int):
            put(one)
        elif isinstance(one, float):
            put(_finite(one))
        elif _is_sequence(one):
            parts = list(one)
            put(parts)
            for at, part in enumerate(parts):
                if not (part is None or isinstance(part, str | int)):
                    due.append((part, partial(parts.__setitem__, at), level + 1))
        else:
            raise ConfigurationError(
                f"{type(one).__name__} is not JSON: store numbers, strings, lists and dicts"
            )
    return whole[""]


def _finite(value: float) -> float:
    if math.isfinite(value):
        return value
    raise ConfigurationError(f"{value} is not JSON: store a string in its place")


def _text(key: object) -> str:
    if isinstance(key, str):
        return key
    raise ConfigurationError(f"JSON keys are strings, not {key!r}")


def _is_sequence(value: object) -> bool:
    if type(value) is list or type(value) is tuple:
        return True
    return isinstance(value, Sequence) and not isinstance(value, bytes | bytearray | memoryview)


def _canonical(value: Json) -> str:
    return written(value, sort_keys=True)


@typed_fields
@attrs.frozen(kw_only=True)
class JsonCheckpoint:
    """A JSON value with a kind, a version and a checksum.

    One line of JSON, keys sorted: readable with any tool, and any change of its
    meaning is detected.

    Attributes:
        kind: What it is, so that one record is never taken for another.
        version: Of the value's layout, 0 or more; the owner migrates older ones.
        value: Numbers, strings, lists and dicts with string keys. Copied; a tuple
            becomes a list. At most 256 levels deep; `ConfigurationError` for what is no
            JSON or deeper. A text that no UTF-8 can write is refused when it is stored.
        checksum: As it was read; None for a record made here.

    Source: ours.

        >>> JsonCheckpoint(kind="lease", version=1, value={"holder": "b"}).marshal()
        b'{"checksum":"f3614eca1264bb6c","kind":"lease","value":{"holder":"b"},"version":1}'
    """

    kind: str
    version: int = attrs.field(validator=whole(0))
    value: Json = attrs.field(converter=_plain)
    checksum: str | None = attrs.field(default=None, eq=False)
    _is_sound: bool = attrs.field(default=False, init=False, eq=False, repr=False)

    def marshal(self) -> bytes:
        """One line of JSON; raises `ConfigurationError` for text that cannot be written down."""
        body = _canonical(self.value)
        kind = _canonical(self.kind)
        try:
            return _line(_digest(kind, self.version, body), kind, body, self.version).encode()
        except UnicodeEncodeError as error:
            found = str(error.object)[max(0, error.start - 20) : error.end].rpartition("\n")[2]
            raise ConfigurationError(f"record of kind {self.kind!a}: {found!a} {NO_TEXT}") from None

    @classmethod
    def unmarshal(cls, data: bytes, /) -> JsonCheckpoint:
        """Read such a line; raises `DecodeError` for anything else. `verify` looks at the checksum."""
        shape = Shape("record")
        found = shape.fields(read_json("record", data), "$", ("checksum", "kind", "value", "version"))
        kind = shape.text(found.get("kind"), "$.kind")
        version = shape.number(found.get("version"), "$.version", bits=63)
        checksum = shape.text(found.get("checksum"), "$.checksum")
        shape.check()
        value = cast("Json", found.get("value"))
        try:
            made = cls(kind=kind, version=version, value=value, checksum=checksum)
        except ValueError as error:
            raise DecodeError("record", [Fault("$.value", str(error))]) from None
        if _is_as_written(data, checksum, _canonical(kind), version):
            object.__setattr__(made, "_is_sound", True)
        return made

    def verify(self) -> None:
        """Raise `CorruptCheckpointError` when content and checksum disagree."""
        if self.checksum is not None and not self._is_sound:
            computed = _digest(_canonical(self.kind), self.version, _canonical(self.value))
            if computed != self.checksum:
                raise CorruptCheckpointError(f"record of kind {self.kind}", self.checksum, computed)


def _line(checksum: str, kind: str, body: str, version: int) -> str:
    return f'{{"checksum":"{checksum}","kind":{kind},"value":{body},"version":{version}}}'


def _is_as_written(data: bytes, checksum: str, kind: str, version: int) -> bool:
    """Whether a line that was read is, to the letter, one that `marshal` wrote: nearly all are.

    The checksum is of the text, so that the value need not be written out anew for it.
    """
    before, _, after = _line(checksum, kind, "\n", version).encode().partition(b"\n")
    if not (data.startswith(before) and data.endswith(after)) or len(data) < len(before) + len(after):
        return False
    body = data[len(before) : len(data) - len(after)]
    return _digest(kind, version, body.decode()) == checksum


def _digest(kind: str, version: int, body: str) -> str:
    return hashlib.blake2b(f"{kind}\n{version}\n{body}".encode(), digest_size=8).hexdigest()
