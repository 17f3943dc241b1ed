"""Editions of one source as JSON and back; dicts stop here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

import cattrs

from nodealloc.checkpoint import JsonCheckpoint
from nodealloc.errors import DecodeError, Fault
from nodealloc.podsources._editions import Editions
from nodealloc.podspec import Json

__all__ = ["KIND", "VERSION", "editions_from_checkpoint", "editions_to_checkpoint"]

KIND: Final = "pod editions"
VERSION: Final = 1


def editions_to_checkpoint(editions: Editions, /) -> JsonCheckpoint:
    """What a store takes of them, such as under the key `podsources.<source>`."""
    return JsonCheckpoint(kind=KIND, version=VERSION, value=cast("Json", _CONVERTER.unstructure(editions)))


def editions_from_checkpoint(checkpoint: JsonCheckpoint, /) -> Editions:
    """What was written.

    Raises:
        DecodeError: It is of another kind or version, or not of this shape.
    """
    if (checkpoint.kind, checkpoint.version) != (KIND, VERSION):
        found = f"{checkpoint.kind} version {checkpoint.version}"
        reason = f"expected {KIND} version {VERSION}, found {found}; start the version that wrote it"
        raise DecodeError("editions", [Fault("$", reason)])
    if not isinstance(checkpoint.value, Mapping):
        raise DecodeError("editions of a source", [Fault("$", "expected a mapping")])
    try:
        return _CONVERTER.structure(checkpoint.value, Editions)
    except cattrs.BaseValidationError as error:
        faults = [Fault(*reversed(line.rsplit(" @ ", 1))) for line in cattrs.transform_error(error)]
        raise DecodeError("editions of a source", faults) from error


def _text(value: object, _type: type[str]) -> str:
    if not isinstance(value, str):
        raise ValueError(f"expected a text, found {value!r}")  # noqa: TRY004  # cattrs reports it with its path
    return value


def _flag(value: object, _type: type[bool]) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"expected true or false, found {value!r}")  # noqa: TRY004  # as above
    return value


def _number(value: object, _type: type[int]) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(f"expected a number from 0 on, found {value!r}")
    return value


def _converter() -> cattrs.Converter:
    converter = cattrs.Converter(forbid_extra_keys=True)
    converter.register_structure_hook(str, _text)
    converter.register_structure_hook(bool, _flag)
    converter.register_structure_hook(int, _number)
    return converter


_CONVERTER: Final = _converter()
