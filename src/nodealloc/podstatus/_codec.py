"""What is kept of a pod's status as JSON and back; dicts stop here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

import cattrs

from nodealloc import _attrs as attrs
from nodealloc._frozen import PlainJson
from nodealloc._stored import Stored, count, row_converter, shared
from nodealloc._typed import typed
from nodealloc.checkpoint import JsonCheckpoint
from nodealloc.podfacts import PodPhase, PodStatus, status_from_manifest, status_to_manifest
from nodealloc.podstatus._merge import StatusOddity
from nodealloc.podstatus._taking import Told

__all__ = ["STATUS_ROWS", "manifest_of", "told_from_checkpoint", "told_to_checkpoint"]

STATUS_ROWS: Final = "podstatus"
"""Rows of a journal are named by this and the pod's uid."""


@attrs.frozen
class _Document:
    """A status, as the API's JSON has it."""

    manifest: Mapping[str, object]


@attrs.frozen(kw_only=True)
class _Row:
    status: _Document
    version: int
    told_version: int
    told_phase: PodPhase | None
    is_over: bool
    is_leaving: bool
    sidecars: tuple[str, ...]
    oddities: tuple[StatusOddity, ...]


def told_to_checkpoint(told: Told, /, *, manifest: PlainJson | None = None) -> JsonCheckpoint:
    """All of it, the status as the API's JSON has it.

    Args:
        told: What is kept.
        manifest: `manifest_of` its status, to be shared by the rows of one status; made where it is None.
    """
    return _STORED.written(
        _Row(
            status=_Document(manifest_of(told.status) if manifest is None else manifest),
            version=told.version,
            told_version=told.told_version,
            told_phase=told.told_phase,
            is_over=told.is_over,
            is_leaving=told.is_leaving,
            sidecars=tuple(sorted(told.sidecars)),
            oddities=told.oddities,
        )
    )


def manifest_of(status: PodStatus, /) -> PlainJson:
    """A status as it stands in rows."""
    return shared(status_to_manifest(status))


@typed
def told_from_checkpoint(checkpoint: JsonCheckpoint, /) -> Told:
    """What was kept when it was written.

    Raises:
        DecodeError: It is of another kind or version, or not of this shape.
    """
    row = _STORED.read(checkpoint)
    return Told(
        status=status_from_manifest(row.status.manifest, source="a pod's status"),
        version=row.version,
        told_version=row.told_version,
        told_phase=row.told_phase,
        is_over=row.is_over,
        is_leaving=row.is_leaving,
        sidecars=frozenset(row.sidecars),
        oddities=row.oddities,
    )


def _document(value: object, _type: type[_Document]) -> _Document:
    return _Document(cast("Mapping[str, object]", value))  # its reader says what is wrong with it


def _oddity(value: object, _type: type[StatusOddity]) -> StatusOddity:
    match value:
        case [str() as container, str() as message, bool() as revived]:
            return StatusOddity(container=container, message=message, revived=revived)
        case _:
            raise ValueError(f"expected [container, message, revived], found {value!r}")


def _converter() -> cattrs.Converter:
    converter = row_converter()
    converter.register_structure_hook(int, count)
    converter.register_structure_hook(_Document, _document)
    converter.register_unstructure_hook(_Document, lambda one: one.manifest)
    converter.register_structure_hook(StatusOddity, _oddity)
    converter.register_unstructure_hook(StatusOddity, lambda one: [one.container, one.message, one.revived])
    return converter


_STORED: Final = Stored(_Row, kind="pod status", converter=_converter())
