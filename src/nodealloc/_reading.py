"""Outside values, checked: every fault is collected with its path, none hides the next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias, Union, cast

from nodealloc.errors import DecodeError, Fault

__all__ = ["Json", "Reader", "go_bool", "kind_of"]

Json: TypeAlias = Union[None, bool, int, float, str, Sequence["Json"], Mapping[str, "Json"]]
"""A value as JSON or YAML has it."""

_GO_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_GO_FALSE = frozenset({"0", "f", "F", "FALSE", "false", "False"})
_SHOWN = 40
"""Characters of a value that are shown; whoever wrote it may have written a megabyte."""


class Reader:
    """Takes values out of a document and remembers what does not fit. One document each.

    Every method answers with something to go on with after a fault: an empty
    mapping, list or text, a 0. `check` then raises what was found.

    Args:
        source: What to call the document in an error.
    """

    def __init__(self, source: str) -> None:
        self._source = source
        self.faults: list[Fault] = []

    def fault(self, path: str, reason: str) -> None:
        """Remember that something is wrong."""
        self.faults.append(Fault(path, reason))

    def check(self) -> None:
        """Raise `DecodeError` with all faults; returns when there is none."""
        if self.faults:
            raise DecodeError(self._source, self.faults)

    def expected(self, what: str, value: object, path: str) -> None:
        """Remember that another kind of value belongs here."""
        self.fault(path, f"expected {what}, found {kind_of(value)}")

    def mapping(self, value: object, path: str) -> Mapping[str, object]:
        """A mapping whose keys are texts."""
        if not isinstance(value, Mapping):
            self.expected("a mapping", value, path)
            return {}
        found = cast("Mapping[object, object]", value)
        odd = [key for key in found if not isinstance(key, str)]
        for key in odd:
            self.fault(path, f"the key {key!r} is no text; put it in quotes")
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
        self.fault(path, f"expected a text, found {kind_of(value)}{remedy}")
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


def kind_of(value: object) -> str:
    """A value as an error shows it."""
    if value is None:
        return "nothing"
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return "a list"
    if isinstance(value, int) and value.bit_length() > 128:
        return "an enormous number"
    shown = repr(value)
    return shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…"
