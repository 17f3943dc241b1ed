"""What is known of a pod as JSON and back; dicts stop here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import cattrs

from nodealloc import _attrs as attrs
from nodealloc._frozen import freeze
from nodealloc._stored import Stored, row_converter
from nodealloc._typed import typed
from nodealloc.checkpoint import JsonCheckpoint
from nodealloc.podfacts import Exited, ExitUnknown
from nodealloc.podspec import Json
from nodealloc.runtime._known import ContainerEnd, PodKnown
from nodealloc.runtime._reports import Exit

__all__ = ["RUNTIME_ROWS", "pod_from_checkpoint", "pod_to_checkpoint"]

RUNTIME_ROWS: Final = "runtime"
"""Rows of a journal are named by this and the pod's uid."""
_UNSEEN: Final = "it was remembered, and has not been looked at since the start"


@attrs.frozen(kw_only=True)
class _Row:
    uid: str
    ends: Mapping[str, ContainerEnd] = attrs.field(validator=freeze)
    live: Mapping[str, tuple[str, int]] = attrs.field(validator=freeze)


def pod_to_checkpoint(known: PodKnown, /) -> JsonCheckpoint:
    """Ends, and who had not ended; a report is asked for again."""
    return _STORED.written(_Row(uid=known.uid, ends=known.ends, live=known.live))


@typed
def pod_from_checkpoint(checkpoint: JsonCheckpoint, /) -> PodKnown:
    """What was known when it was written; to be inspected before it is believed.

    Raises:
        DecodeError: It is of another kind or version, or not of this shape.
    """
    row = _STORED.read(checkpoint)
    return PodKnown(uid=row.uid, ends=row.ends, live=row.live, fault=_UNSEEN)


def _exit(value: object, _type: object) -> Exit:
    match value:
        case "unknown":
            return ExitUnknown()
        case [int() as code, int() | None as signal] if not isinstance(code, bool):
            return Exited(code=code, signal=signal)
        case _:
            raise ValueError(f"expected [code, signal or null] or 'unknown', found {value!r}")


def _written(end: Exit) -> Json:
    return [end.code, end.signal] if isinstance(end, Exited) else "unknown"


def _converter() -> cattrs.Converter:
    converter = row_converter()
    converter.register_structure_hook_func(lambda kind: kind == Exit, _exit)
    converter.register_unstructure_hook_func(lambda kind: kind == Exit, _written)
    return converter


_STORED: Final = Stored(_Row, kind="pod ends", converter=_converter())
