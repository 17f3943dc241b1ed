"""Records as JSON and back; dicts stop here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast, get_args

import cattrs

from nodealloc.checkpoint import JsonCheckpoint
from nodealloc.errors import DecodeError, Fault
from nodealloc.node._record import WorkloadRecord
from nodealloc.podspec import Json, Quantity
from nodealloc.topology import TopologyHint

__all__ = ["KIND", "VERSION", "from_checkpoint", "to_checkpoint"]

KIND: Final = "workload"
VERSION: Final = 1


def to_checkpoint(record: WorkloadRecord, /) -> JsonCheckpoint:
    """The record as something that a store takes."""
    value = cast("Json", _CONVERTER.unstructure(record))
    return JsonCheckpoint(kind=KIND, version=VERSION, value=value)


def from_checkpoint(checkpoint: JsonCheckpoint, /) -> WorkloadRecord:
    """The record in a checkpoint.

    Raises:
        DecodeError: It is of another kind or version, or not of this shape.
    """
    if (checkpoint.kind, checkpoint.version) != (KIND, VERSION):
        found = f"{checkpoint.kind} version {checkpoint.version}"
        reason = f"expected {KIND} version {VERSION}, found {found}; start the version that wrote it"
        raise DecodeError("record", [Fault("$", reason)])
    if not isinstance(checkpoint.value, Mapping):
        raise DecodeError("record of a workload", [Fault("$", "expected a mapping")])
    try:
        return _CONVERTER.structure(checkpoint.value, WorkloadRecord)
    except cattrs.BaseValidationError as error:
        faults = [Fault(*reversed(line.rsplit(" @ ", 1))) for line in cattrs.transform_error(error)]
        raise DecodeError("record of a workload", faults) from error


def _text(value: object, _type: type[str]) -> str:
    if not isinstance(value, str):
        raise ValueError(f"expected a text, found {value!r}")  # noqa: TRY004  # cattrs reports it with its path
    return value


def _quantity(value: object, _type: type[Quantity]) -> Quantity:
    return Quantity.parse(_text(value, str))


def _hint(value: object, _type: type[TopologyHint]) -> TopologyHint:
    match value:
        case [int() | None as affinity, bool() as preferred] if affinity is None or affinity > 0:
            return TopologyHint(affinity, preferred)
        case _:
            raise ValueError(f"expected [nodes or null, preferred], found {value!r}")


def _json(value: Json, _type: object) -> Json:
    return value


def _converter() -> cattrs.Converter:
    converter = cattrs.Converter(forbid_extra_keys=True)
    converter.register_structure_hook(str, _text)
    converter.register_structure_hook(Quantity, _quantity)
    converter.register_unstructure_hook(Quantity, str)
    converter.register_structure_hook(TopologyHint, _hint)
    converter.register_unstructure_hook(TopologyHint, list)
    # `Json` is told by its parts: resolving its forward references makes another object of it.
    converter.register_structure_hook_func(lambda kind: {bool, float} <= set(get_args(kind)), _json)
    return converter


_CONVERTER = _converter()
