"""Rows of a store as attrs values and back: one reader, one set of words, for all packages.

A row is read strictly: no field is missing or unknown, no text stands for a
number, and every fault is named with its path.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Generic, TypeVar, cast

import cattrs
from cattrs.v import format_exception

from nodealloc._frozen import PlainJson
from nodealloc.checkpoint import JsonCheckpoint
from nodealloc.errors import DecodeError, Fault
from nodealloc.podspec import Json

__all__ = ["Stored", "count", "faults_of", "row_converter", "shared"]

T = TypeVar("T")
_VERSION: Final = 1
_AT: Final = " @ $"
_REMEDY: Final = "start the version that wrote it"


class Stored(Generic[T]):
    """Rows of one kind.

    Args:
        shape: The attrs class that a row is read as.
        kind: Names the rows in the store, and in what an error says.
        converter: Made by `row_converter`, with hooks for what the shape alone does not tell.
    """

    def __init__(self, shape: type[T], /, *, kind: str, converter: cattrs.Converter) -> None:
        self._shape = shape
        self._kind = kind
        self._converter = converter

    def written(self, value: T, /) -> JsonCheckpoint:
        """The value as something that a store takes."""
        row = cast("Json", self._converter.unstructure(value))
        return JsonCheckpoint(kind=self._kind, version=_VERSION, value=row)

    def read(self, row: JsonCheckpoint, /) -> T:
        """The value in a row.

        Raises:
            DecodeError: It is of another kind or version, or not of this shape.
        """
        if (row.kind, row.version) != (self._kind, _VERSION):
            found = f"{row.kind} version {row.version}"
            reason = f"expected {self._kind} version {_VERSION}, found {found}; {_REMEDY}"
            raise self._refusal([Fault("$", reason)])
        if not isinstance(row.value, Mapping):
            raise self._refusal([Fault("$", "expected a mapping")])
        try:
            return self._converter.structure(row.value, self._shape)
        except cattrs.BaseValidationError as error:
            raise self._refusal(faults_of(error)) from error

    def _refusal(self, faults: list[Fault]) -> DecodeError:
        return DecodeError(f"row of {self._kind}", faults)


def shared(value: Mapping[str, Json], /) -> PlainJson:
    """A copy of a mapping that stands in many rows; `ConfigurationError` for what is no JSON."""
    plain = JsonCheckpoint(kind="part", version=_VERSION, value=value).value
    return PlainJson(cast("Mapping[str, object]", plain))


def row_converter() -> cattrs.Converter:
    """Reads classes without unknown fields; texts, lists of them, numbers and flags only as what they are."""
    converter = cattrs.Converter(forbid_extra_keys=True)
    converter.register_structure_hook(str, _text)
    converter.register_structure_hook(bool, _flag)
    converter.register_structure_hook(int, _whole)
    converter.register_structure_hook(float, _number)
    converter.register_structure_hook_func(lambda kind: kind == tuple[str, ...], _texts)
    return converter


def count(value: object, _type: type[int], /) -> int:
    """A hook for rows whose whole numbers are all 0 or more."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(f"expected a whole number, 0 or more, found {value!r}")
    return value


def faults_of(error: cattrs.BaseValidationError, /) -> list[Fault]:
    """What is wrong, and where."""
    found: list[Fault] = []
    for line in cattrs.transform_error(error, format_exception=_said):
        reason, _, path = line.rpartition(_AT)
        found.append(Fault(f"${path}", reason))
    return found


def _said(error: BaseException, kind: type | None) -> str:
    if isinstance(error, ValueError):
        return str(error)
    said = format_exception(error, kind)
    return f"{said}; {_REMEDY}" if isinstance(error, cattrs.ForbiddenExtraKeysError) else said


# What hooks raise is a `ValueError` also where the type is wrong: cattrs puts the path to it.
def _text(value: object, _type: type[str]) -> str:
    if not isinstance(value, str):
        raise ValueError(f"expected a text, found {value!r}")  # noqa: TRY004  # see above
    return value


def _texts(value: object, _type: type[tuple[str, ...]]) -> tuple[str, ...]:
    if isinstance(value, list):
        texts = cast("list[object]", value)
        if all(isinstance(one, str) for one in texts):
            return tuple(cast("list[str]", texts))
    raise ValueError(f"expected a list of texts, found {value!r}")  # a text is a sequence of texts, too


def _flag(value: object, _type: type[bool]) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"expected true or false, found {value!r}")  # noqa: TRY004  # see above
    return value


def _whole(value: object, _type: type[int]) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"expected a whole number, found {value!r}")  # noqa: TRY004  # see above
    return value


def _number(value: object, _type: type[float]) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise ValueError(f"expected a number, found {value!r}")  # noqa: TRY004  # see above
    return value
