"""Outside values, checked: every fault is collected with its path, none hides the next."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final, TypeAlias, Union, cast

from nodealloc.errors import DecodeError, Fault

__all__ = [
    "MAX_DOCUMENT_BYTES",
    "NO_TEXT",
    "Json",
    "Reader",
    "alike",
    "as_shown",
    "go_bool",
    "is_larger",
    "is_text",
    "short",
    "under",
]

Json: TypeAlias = Union[None, bool, int, float, str, Sequence["Json"], Mapping[str, "Json"]]
"""A value as JSON or YAML has it."""

_GO_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_GO_FALSE = frozenset({"0", "f", "F", "FALSE", "false", "False"})
MAX_DOCUMENT_BYTES = 1 << 18
"""What a document may take unless an option says more."""
_SHOWN = 40
"""Characters of a value that are shown; whoever wrote it may have written a megabyte."""
_MOST_FAULTS = 100
"""Faults that are told; whoever mends these knows what the others are."""
_HOPELESS = 5_000
"""Faults after which nothing more is read."""
_MOST_KEY = 80
"""Characters of a key in a path; every value below it repeats them."""
_OTHER_BYTES = 8
"""What a number, a truth value or a moment counts for; only texts and containers grow."""


class Reader:
    """Takes values out of a document and remembers what does not fit. One document each.

    Every method answers with something to go on with after a fault: an empty
    mapping, list or text, a 0. `check` then raises what was found. Behind the
    first hundred, faults are counted and no longer told; after five thousand
    more, reading ends.

    Args:
        source: What to call the document in an error.
        unread: Told of each field that is unknown or not supported, instead of
            a fault; None makes a fault of each.
    """

    def __init__(self, source: str, *, unread: Callable[[Fault], None] | None = None) -> None:
        self._source = source
        self._unread = unread
        self._untold = 0
        self.faults: list[Fault] = []

    @property
    def count(self) -> int:
        """How many faults there are, told and untold."""
        return len(self.faults) + self._untold

    def not_read(self, path: str, reason: str) -> None:
        """Remember a field that means nothing here: a fault, unless somebody wants to be told instead."""
        if self._unread is None:
            self.fault(path, reason)
        else:
            self._unread(Fault(path, reason))

    def fault(self, path: str, reason: str) -> None:
        """Remember that something is wrong; raises as `check` does when nothing seems to be right."""
        if len(self.faults) < _MOST_FAULTS:
            self.faults.append(Fault(path, reason))
            return
        self._untold += 1
        if self._untold > _HOPELESS:
            self.check()

    def fits(self, value: object, max_bytes: int) -> bool:
        """Whether a document is small enough to be looked at; a larger one is a fault."""
        try:
            if not is_larger(value, max_bytes):
                return True
        except UnicodeEncodeError as error:
            self.fault("$", f"{str(error.object)[:_SHOWN]!a} {NO_TEXT}")
            return False
        self.fault(
            "$",
            f"larger than {max_bytes} bytes, with every reference written out; "
            "make it smaller, or allow more with `max_bytes`",
        )
        return False

    def check(self, source: str = "") -> None:
        """Raise `DecodeError` with what is wrong; returns when nothing is. `source` replaces the first."""
        if self.faults:
            least = "at least " if self._untold > _HOPELESS else ""
            more = [Fault("$", f"and {least}{self._untold} more faults")] if self._untold else []
            raise DecodeError(source or self._source, [*self.faults, *more])

    def expected(self, what: str, value: object, path: str) -> None:
        """Remember that another kind of value belongs here."""
        self.fault(path, f"expected {what}, found {as_shown(value)}")

    def mapping(self, value: object, path: str) -> Mapping[str, object]:
        """A mapping whose keys are texts."""
        if type(value) is not dict and not isinstance(value, Mapping):
            self.expected("a mapping", value, path)
            return {}
        found = cast("Mapping[object, object]", value)
        odd = [key for key in found if type(key) is not str and not isinstance(key, str)]
        for key in odd:
            self.fault(path, f"the key {as_shown(key)} is no text; put it in quotes")
        if odd:
            return {key: one for key, one in found.items() if isinstance(key, str)}
        return cast("Mapping[str, object]", found)

    def sequence(self, value: object, path: str) -> Sequence[object]:
        """A list."""
        if isinstance(value, Sequence) and not isinstance(value, str | bytes):
            return cast("Sequence[object]", value)
        self.expected("a list", value, path)
        return ()

    def text(self, value: object, path: str) -> str:
        """A text."""
        if isinstance(value, str):
            return value
        remedy = "; put it in quotes" if isinstance(value, int | float) else ""
        self.fault(path, f"expected a text, found {as_shown(value)}{remedy}")
        return ""

    def whole(self, value: object, path: str, *, least: int = 0, most: int) -> int:
        """A whole number within bounds."""
        if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
            return value
        self.expected(f"a whole number from {least} to {most}", value, path)
        return 0

    # The same where null and absence stand for nothing, as Go and YAML write it.

    def maybe_mapping(self, value: object, path: str) -> Mapping[str, object]:
        """A mapping, or nothing."""
        return {} if value is None else self.mapping(value, path)

    def maybe_sequence(self, value: object, path: str) -> Sequence[object]:
        """A list, or nothing."""
        return () if value is None else self.sequence(value, path)

    def maybe_text(self, value: object, path: str) -> str:
        """A text, or nothing."""
        return "" if value is None else self.text(value, path)


def go_bool(text: str, /) -> bool | None:
    """A truth value as an option of a kubelet spells it; None for another word.

    Source: Go ``strconv.ParseBool``.
    """
    return True if text in _GO_TRUE else False if text in _GO_FALSE else None


def alike(word: str, known: Iterable[str], /) -> str:
    """Of known words the one that is spelled most alike; "" for none."""
    # Imported late: it takes long, and few words are not known.
    from difflib import get_close_matches  # noqa: PLC0415

    return next(iter(get_close_matches(word, tuple(known), n=1)), "")


def as_shown(value: object) -> str:
    """A value as an error shows it."""
    if value is None:
        return "nothing"
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return "a list"
    if isinstance(value, int) and value.bit_length() > 128:
        return "an enormous number"
    if isinstance(value, str | bytes):
        # Cut first: what is thrown away is not worth escaping.
        value = value[: _SHOWN + 1]
    shown = repr(value)
    return shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…"


def short(text: str, length: int = _MOST_KEY, /) -> str:
    """A text as an error quotes it: its first characters."""
    return repr(text) if len(text) <= length else f"{text[:length]!r}…"


def under(path: str, key: str, /) -> str:
    """The path of what stands under a key."""
    return f"{path}.{key}" if len(key) <= _MOST_KEY else f"{path}.{key[:_MOST_KEY]}…"


_NESTED: Final = (dict, list)
"""What nearly everything is that holds more."""


def is_larger(value: object, max_bytes: int, /) -> bool:
    """Whether a document takes more bytes than that, written without blanks and quotes.

    What a reference of YAML stands for counts each time that it is referred to,
    so that nothing which this lets pass is long to read, and nothing endless
    passes. Looks at no more than `max_bytes` values.
    """
    room = max_bytes
    due: list[object] = [value]
    while due and room >= 0:
        one = due.pop()
        kind = type(one)
        if kind is dict or (kind is not list and isinstance(one, Mapping)):
            fields = cast("Mapping[object, object]", one)
            room -= 1 + 2 * len(fields)
            if room < 0:
                break
            items: Collection[object] = fields.values()
            try:
                # All keys in one go, as nearly always.
                room -= _text_bytes("".join(cast("Mapping[str, object]", fields)))
            except TypeError:
                room += len(fields)
                due += fields.keys()
        elif kind is list or (isinstance(one, Collection) and not isinstance(one, str | bytes)):
            # A set is a document's too: YAML has them.
            items = cast("Collection[object]", one)
            room -= 1 + len(items)
            if room < 0:
                break
        else:
            items = (one,)
        for item in items:
            # Nearly all values are texts: each is counted where it stands.
            if type(item) is str:
                room -= 1 + len(item) if item.isascii() else 1 + _text_bytes(item)
            elif type(item) in _NESTED or (
                isinstance(item, Collection) and not isinstance(item, str | bytes)
            ):
                due.append(cast("Collection[object]", item))
            else:
                room -= _plain_bytes(item)
    return room < 0


def _plain_bytes(item: object) -> int:
    if item is None:
        return 0
    if isinstance(item, str | bytes):
        return 1 + _text_bytes(item)
    return 1 + item.bit_length() // 4 if isinstance(item, int) else _OTHER_BYTES


def _text_bytes(text: str | bytes) -> int:
    if isinstance(text, bytes) or text.isascii():
        return len(text)
    return len(text.encode("utf-8"))


NO_TEXT: Final = "has half of a pair of surrogates, which no UTF-8 can write; write the character itself"


def is_text(text: str, /) -> bool:
    """Whether a text can be written down: not where it has half of a pair of surrogates."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
