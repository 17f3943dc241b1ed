"""Records as JSON and back; dicts stop here."""

from __future__ import annotations

from typing import Final, get_args

import cattrs

from nodealloc._stored import Stored, row_converter
from nodealloc.checkpoint import JsonCheckpoint
from nodealloc.node._record import WorkloadRecord
from nodealloc.podspec import Json, Quantity
from nodealloc.topology import TopologyHint

__all__ = ["from_checkpoint", "to_checkpoint"]


def to_checkpoint(record: WorkloadRecord, /) -> JsonCheckpoint:
    """The record as something that a store takes."""
    return _STORED.written(record)


def from_checkpoint(checkpoint: JsonCheckpoint, /) -> WorkloadRecord:
    """The record in a checkpoint.

    Raises:
        DecodeError: It is of another kind or version, or not of this shape.
    """
    return _STORED.read(checkpoint)


def _quantity(value: object, _type: type[Quantity]) -> Quantity:
    if not isinstance(value, str):
        raise ValueError(f"expected a quantity, found {value!r}")  # noqa: TRY004  # its path is put to it
    return Quantity.parse(value)


def _hint(value: object, _type: type[TopologyHint]) -> TopologyHint:
    match value:
        case [int() | None as affinity, bool() as preferred] if affinity is None or affinity > 0:
            return TopologyHint(affinity, preferred)
        case _:
            raise ValueError(f"expected [nodes or null, preferred], found {value!r}")


def _json(value: Json, _type: object) -> Json:
    return value


def _converter() -> cattrs.Converter:
    converter = row_converter()
    converter.register_structure_hook(Quantity, _quantity)
    converter.register_unstructure_hook(Quantity, str)
    converter.register_structure_hook(TopologyHint, _hint)
    converter.register_unstructure_hook(TopologyHint, list)
    # `Json` is told by its parts: resolving its forward references makes another object of it.
    converter.register_structure_hook_func(lambda kind: {bool, float} <= set(get_args(kind)), _json)
    return converter


_STORED: Final = Stored(WorkloadRecord, kind="workload", converter=_converter())
