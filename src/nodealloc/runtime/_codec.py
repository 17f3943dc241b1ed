"""What is known of a pod as JSON and back; dicts stop here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

import attrs
import cattrs

from nodealloc._frozen import freeze
from nodealloc.checkpoint import JsonCheckpoint
from nodealloc.errors import DecodeError, Fault
from nodealloc.podfacts import Exited, ExitUnknown
from nodealloc.podspec import Json
from nodealloc.runtime._known import ContainerEnd, PodKnown
from nodealloc.runtime._reports import Exit

__all__ = ["KIND", "RUNTIME_ROWS", "VERSION", "pod_from_checkpoint", "pod_to_checkpoint"]

KIND: Final = "pod ends"
VERSION: Final = 1
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
    row = _Row(uid=known.uid, ends=known.ends, live=known.live)
    return JsonCheckpoint(kind=KIND, version=VERSION, value=cast("Json", _CONVERTER.unstructure(row)))


def pod_from_checkpoint(checkpoint: JsonCheckpoint, /) -> PodKnown:
    """What was known when it was written; to be inspected before it is believed.

    Raises:
        DecodeError: It is of another kind or version, or not of this shape.
    """
    if (checkpoint.kind, checkpoint.version) != (KIND, VERSION):
        found = f"{checkpoint.kind} version {checkpoint.version}"
        raise DecodeError("ends of a pod", [Fault("$", f"expected {KIND} version {VERSION}, found {found}")])
    if not isinstance(checkpoint.value, Mapping):
        raise DecodeError("ends of a pod", [Fault("$", "expected a mapping")])
    try:
        row = _CONVERTER.structure(checkpoint.value, _Row)
    except cattrs.BaseValidationError as error:
        faults = [Fault(*reversed(line.rsplit(" @ ", 1))) for line in cattrs.transform_error(error)]
        raise DecodeError("ends of a pod", faults) from error
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


def _text(value: object, _type: type[str]) -> str:
    if not isinstance(value, str):
        raise ValueError(f"expected a text, found {value!r}")  # noqa: TRY004  # cattrs reports it with its path
    return value


def _converter() -> cattrs.Converter:
    converter = cattrs.Converter(forbid_extra_keys=True)
    converter.register_structure_hook(str, _text)
    converter.register_structure_hook_func(lambda kind: kind == Exit, _exit)
    converter.register_unstructure_hook(Exited, _written)
    converter.register_unstructure_hook(ExitUnknown, _written)
    converter.register_unstructure_hook_func(lambda kind: kind == Exit, _written)
    return converter


_CONVERTER = _converter()
