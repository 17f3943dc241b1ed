"""What is kept of a pod's status as JSON and back; dicts stop here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, cast

from nodealloc.checkpoint import JsonCheckpoint
from nodealloc.errors import DecodeError, Fault
from nodealloc.podfacts import PodPhase, status_from_manifest, status_to_manifest
from nodealloc.podspec import Json
from nodealloc.podstatus._merge import StatusOddity
from nodealloc.podstatus._taking import Told

__all__ = ["KIND", "STATUS_ROWS", "VERSION", "told_from_checkpoint", "told_to_checkpoint"]

KIND: Final = "pod status"
VERSION: Final = 1
STATUS_ROWS: Final = "podstatus"
"""Rows of a journal are named by this and the pod's uid."""
_KEYS: Final = frozenset(
    {"status", "version", "told_version", "told_phase", "is_over", "is_leaving", "sidecars", "oddities"}
)
_WHAT: Final = "a pod's status"


def told_to_checkpoint(told: Told, /) -> JsonCheckpoint:
    """All of it, the status as the API's JSON has it."""
    value: dict[str, Json] = {
        "status": status_to_manifest(told.status),
        "version": told.version,
        "told_version": told.told_version,
        "told_phase": told.told_phase.value if told.told_phase else None,
        "is_over": told.is_over,
        "is_leaving": told.is_leaving,
        "sidecars": sorted(told.sidecars),
        "oddities": [[one.container, one.message, one.revived] for one in told.oddities],
    }
    return JsonCheckpoint(kind=KIND, version=VERSION, value=value)


def told_from_checkpoint(checkpoint: JsonCheckpoint, /) -> Told:
    """What was kept when it was written.

    Raises:
        DecodeError: It is of another kind or version, or not of this shape.
    """
    if (checkpoint.kind, checkpoint.version) != (KIND, VERSION):
        found = f"{checkpoint.kind} version {checkpoint.version}"
        raise DecodeError(_WHAT, [Fault("$", f"expected {KIND} version {VERSION}, found {found}")])
    row = checkpoint.value
    if not isinstance(row, Mapping) or sorted(row) != sorted(_KEYS):
        raise DecodeError(_WHAT, [Fault("$", f"expected exactly {', '.join(sorted(_KEYS))}")])
    faults: list[Fault] = []

    def take(key: str, is_right: Callable[[Json], bool], what: str) -> Json:
        value = row[key]
        if not is_right(value):
            faults.append(Fault(f"$.{key}", f"expected {what}, found {value!r}"))
        return value

    version = take("version", _is_count, "a whole number, 0 or more")
    told_version = take("told_version", _is_count, "a whole number, 0 or more")
    phase = take("told_phase", _is_phase, "a phase or null")
    over = take("is_over", _is_flag, "true or false")
    leaving = take("is_leaving", _is_flag, "true or false")
    sidecars = take("sidecars", _are_texts, "a list of names")
    oddities = take("oddities", _are_oddities, "a list of [container, message, revived]")
    if faults:
        raise DecodeError(_WHAT, faults)
    return Told(
        status=status_from_manifest(row["status"], source=_WHAT),
        version=cast("int", version),
        told_version=cast("int", told_version),
        told_phase=PodPhase(phase) if phase else None,
        is_over=bool(over),
        is_leaving=bool(leaving),
        sidecars=frozenset(cast("Sequence[str]", sidecars)),
        oddities=tuple(
            StatusOddity(container=container, message=message, revived=revived)
            for container, message, revived in cast("Sequence[tuple[str, str, bool]]", oddities)
        ),
    )


def _is_count(value: Json) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_flag(value: Json) -> bool:
    return isinstance(value, bool)


def _is_phase(value: Json) -> bool:
    return value is None or value in {one.value for one in PodPhase}


def _is_list(value: Json) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _are_texts(value: Json) -> bool:
    return _is_list(value) and all(isinstance(one, str) for one in cast("Sequence[Json]", value))


def _are_oddities(value: Json) -> bool:
    if not _is_list(value):
        return False
    for one in cast("Sequence[Json]", value):
        if not isinstance(one, Sequence) or [type(part) for part in one] != [str, str, bool]:
            return False
    return True
