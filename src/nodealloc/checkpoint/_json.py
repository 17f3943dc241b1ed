"""JSON: read strictly, and write as Go's encoder does."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import NoReturn, cast

from nodealloc._arguments import is_other
from nodealloc._reading import Json, Reader
from nodealloc.checkpoint._stack import TooDeepError, on_a_stack
from nodealloc.errors import DecodeError, Fault

__all__ = ["Json", "Shape", "go_json", "read_json", "written"]

_GO_ESCAPES = (
    ("<", "\\u003c"),
    (">", "\\u003e"),
    ("&", "\\u0026"),
    ("\u2028", "\\u2028"),
    ("\u2029", "\\u2029"),
)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _refuse_twins(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    found = dict(pairs)
    if len(found) != len(pairs):
        twin, _ = max(Counter(name for name, _ in pairs).items(), key=itemgetter(1))
        raise ValueError(f"the key {twin[:80]!r} stands twice in one object")
    return found


def _read(text: str) -> Json:
    return cast("Json", json.loads(text, object_pairs_hook=_refuse_twins, parse_constant=_refuse_constant))


def read_json(source: str, data: bytes, /) -> Json:
    """The document in some bytes, which have to be one JSON value and nothing else.

    Stricter than Go's decoder: UTF-8 without faults, no key twice, no halves of
    surrogate pairs, no NaN. How deep the caller's own calls are makes no difference.

    Raises:
        DecodeError: It is no such document.
    """
    if is_other(data, bytes):
        found = f"a {type(data).__name__}; a text is to be encoded"
        raise DecodeError(source, [Fault("$", f"expected the bytes of a file, found {found}")])
    try:
        text = data.decode("utf-8")
        value = on_a_stack(_read, text)
        if "\\u" in text:
            written(value).encode()
    except UnicodeDecodeError as error:
        raise DecodeError(source, [Fault(f"byte {error.start}", "not UTF-8")]) from None
    except UnicodeEncodeError:
        raise DecodeError(source, [Fault("$", "half of a surrogate pair")]) from None
    except json.JSONDecodeError as error:
        expecting = error.msg == "Expecting value"  # the words of Python's own reader
        told = (
            "no JSON; expected an object, a list, a text, a number, true, false or null"
            if expecting
            else error.msg
        )
        reason = "nothing is stored" if not data else told
        raise DecodeError(source, [Fault(f"character {error.pos}", reason)]) from None
    except TooDeepError:
        raise DecodeError(source, [Fault("$", "nested too deeply")]) from None
    except ValueError as error:
        raise DecodeError(source, [Fault("$", str(error)[:200])]) from None
    return value


def written(document: Json, /, *, sort_keys: bool = False) -> str:
    """Compact JSON, from however deep in the caller's own calls."""
    return on_a_stack(_sorted_encoder.encode if sort_keys else _encoder.encode, document)


_encoder = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
_sorted_encoder = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False, sort_keys=True)


def go_json(document: Json, /) -> str:
    """Compact JSON as Go's `encoding/json` writes it: in the given order, ``< > &`` escaped.

    Maps have to be sorted by the caller; the fields of a structure stand in
    their own order.
    """
    text = written(document)
    for plain, escaped in _GO_ESCAPES:
        if plain in text:
            text = text.replace(plain, escaped)
    return text


class Shape(Reader):
    """Holds a document to its shape: no key may be missing, and none be unknown."""

    def number(self, value: object, path: str, *, bits: int, signed: bool = False) -> int:
        """A whole number that fits into `bits`."""
        least, most = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
        return self.whole(value, path, least=least, most=most)

    def fields(
        self, value: object, path: str, required: Sequence[str], optional: Sequence[str] = ()
    ) -> Mapping[str, object]:
        """An object with these keys; what is missing or unknown is a fault."""
        found = self.mapping(value, path)
        if isinstance(value, Mapping):
            for name in required:
                if name not in found:
                    self.fault(path, f"the key {name!r} is missing")
            for name in found:
                if name not in required and name not in optional:
                    self.fault(path, f"the key {name[:80]!r} is unknown")
        return found

    def number_key(self, key: str, path: str) -> int:
        """A map key that is a whole number of 64 bits, written the one way Go writes it."""
        if len(key) <= 20 and key.lstrip("-").isdecimal() and key.isascii():
            number = int(key)
            if str(number) == key and -(1 << 63) <= number < 1 << 63:
                return number
        self.expected("a whole number as key", key, path)
        return 0
