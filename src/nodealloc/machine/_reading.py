"""Outside values, checked: every fault is collected with its path, none hides the next."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias, Union, cast

from nodealloc.errors import DecodeError, Fault
from nodealloc.idset import MAX_ID, CPUSet, bits, parse_list

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Json", "Reader"]

Json: TypeAlias = Union[None, bool, int, float, str, "list[Json]", "dict[str, Json]"]
"""A value as `json.loads` gives it."""

_MAX_BYTES = 1 << 63
"""Sizes and counts beyond this are slips: no machine has 8 EiB."""


class Reader:
    """Takes values out of a document and remembers what does not fit. One document each."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._faults: list[Fault] = []

    def fault(self, path: str, reason: str) -> None:
        """Remember that something is wrong."""
        self._faults.append(Fault(path, reason))

    def finish(self) -> None:
        """Raise `DecodeError` with all faults; returns when there is none."""
        if self._faults:
            raise DecodeError(self._source, self._faults)

    def mapping(self, value: object, path: str) -> Mapping[str, object]:
        """A JSON object; empty after a fault."""
        if isinstance(value, dict):
            entries = cast("Mapping[object, object]", value)
            return {str(key): entry for key, entry in entries.items()}
        self.fault(path, f"expected an object, found {_kind(value)}")
        return {}

    def optional_mapping(self, value: object, path: str) -> Mapping[str, object]:
        """The same, where null and absence are an empty one."""
        return self.mapping({} if value is None else value, path)

    def items(self, value: object, path: str) -> Sequence[object]:
        """A JSON array; null and absence are an empty one, as Go writes it."""
        if value is None:
            return ()
        if isinstance(value, (list, tuple)):
            return cast("Sequence[object]", value)
        self.fault(path, f"expected an array, found {_kind(value)}")
        return ()

    def text(self, value: object, path: str) -> str:
        """A string; absence is the empty one."""
        if value is None or isinstance(value, str):
            return value or ""
        self.fault(path, f"expected a string, found {_kind(value)}")
        return ""

    def whole(self, value: object, path: str, *, at_most: int = _MAX_BYTES) -> int:
        """A whole number from 0; 0 after a fault."""
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= at_most:
            return value
        self.fault(path, f"expected a whole number from 0 to {at_most}, found {_kind(value)}")
        return 0

    def optional(self, value: object, path: str) -> int | None:
        """A group id or null."""
        return None if value is None else self.whole(value, path, at_most=_MAX_BYTES)

    def key(self, text: str, path: str, *, at_most: int = MAX_ID) -> int | None:
        """A number that stands as an object's key; None after a fault."""
        if text.isascii() and text.isdecimal() and len(text) <= len(str(at_most)) and int(text) <= at_most:
            return int(text)
        self.fault(path, f"expected a key that is a whole number from 0 to {at_most}, found {text!r}")
        return None

    def ids(self, value: object, path: str) -> tuple[int, ...]:
        """Ids as an array, or as a string in the Linux list format; ascending."""
        if isinstance(value, str):
            try:
                return tuple(bits(parse_list(value)))
            except DecodeError as error:
                self.fault(path, str(error.faults[0]))
                return ()
        found = [
            self.whole(item, f"{path}[{place}]", at_most=MAX_ID)
            for place, item in enumerate(self.items(value, path))
        ]
        return tuple(sorted(set(found)))

    def cpus(self, value: object, path: str) -> CPUSet:
        """The same as a CPU set."""
        return CPUSet(self.ids(value, path))


def _kind(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, (dict, list)):
        return "an object" if isinstance(value, dict) else "an array"
    shown = repr(value)
    return shown if len(shown) <= 40 else f"{shown[:40]}..."
