"""What is remembered of a pod as JSON and back; dicts stop here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

import attrs
import cattrs

from nodealloc._frozen import freeze
from nodealloc.checkpoint import JsonCheckpoint
from nodealloc.dsw_asw import Moment
from nodealloc.errors import DecodeError, Fault
from nodealloc.podfacts import LifeState
from nodealloc.podlife._record import Ending, HookState, PodRecord, Starting, Stopping
from nodealloc.podlife._restarts import RestartEntry, Restarts
from nodealloc.podspec import Json, Pod, pod_from_manifest

__all__ = ["KIND", "POD_ROWS", "VERSION", "record_from_checkpoint", "record_to_checkpoint"]

KIND: Final = "pod life"
VERSION: Final = 1
POD_ROWS: Final = "podlife"
"""Rows of a journal are of this kind, named by the pod's uid (`nodealloc.checkpoint.row_key`)."""


@attrs.frozen
class _Document:
    """A manifest, as it is."""

    manifest: Mapping[str, Json]


@attrs.frozen(kw_only=True)
class _Restart:
    name: str
    definition: str
    delay_s: float
    started: Moment


@attrs.frozen(kw_only=True)
class _Stop:
    stopping: Stopping
    deadline: Moment


@attrs.frozen(kw_only=True)
class _Row:
    """A record with each moment as it outlives a boot."""

    pod: _Document
    uid: str
    edition: int
    life: LifeState
    noticed: Moment
    noticed_unix_s: float
    ending: Ending | None
    grace_s: float | None
    deadline: Moment | None
    made: tuple[str, ...]
    sandbox_attempt: int
    starting: Mapping[str, Starting] = attrs.field(validator=freeze)
    attempts: Mapping[str, int] = attrs.field(validator=freeze)
    completed: Mapping[str, str] = attrs.field(validator=freeze)
    ended: Mapping[str, tuple[str, Moment]] = attrs.field(validator=freeze)
    restarts: tuple[_Restart, ...]
    stopping: Mapping[str, _Stop] = attrs.field(validator=freeze)
    post_start: Mapping[str, HookState] = attrs.field(validator=freeze)
    pre_stop: Mapping[str, HookState] = attrs.field(validator=freeze)
    resized: Mapping[str, str] = attrs.field(validator=freeze)
    pokes: Mapping[str, int] = attrs.field(validator=freeze)


_SAME: Final = (
    "edition",
    "life",
    "noticed_unix_s",
    "ending",
    "grace_s",
    "made",
    "sandbox_attempt",
    "starting",
    "attempts",
    "completed",
    "post_start",
    "pre_stop",
    "resized",
    "pokes",
)


def record_to_checkpoint(record: PodRecord, now: Moment, /) -> JsonCheckpoint:
    """What outlives the process.

    Args:
        record: What is remembered.
        now: This moment, on the clock of the record's.
    """
    row = _Row(
        pod=_Document(record.pod.to_manifest()),
        uid=record.pod.uid,
        noticed=now.at(record.noticed_s),
        deadline=None if record.deadline_s is None else now.at(record.deadline_s),
        ended={name: (cid, now.at(at_s)) for name, (cid, at_s) in record.ended.items()},
        restarts=tuple(
            _Restart(name=name, definition=definition, delay_s=one.delay_s, started=now.at(one.started_s))
            for (name, definition), one in record.restarts.entries.items()
        ),
        stopping={
            cid: _Stop(stopping=one, deadline=now.at(one.deadline_s)) for cid, one in record.stopping.items()
        },
        **{name: getattr(record, name) for name in _SAME},
    )
    return JsonCheckpoint(kind=KIND, version=VERSION, value=cast("Json", _CONVERTER.unstructure(row)))


def record_from_checkpoint(checkpoint: JsonCheckpoint, now: Moment, /) -> PodRecord:
    """What was remembered when it was written.

    Args:
        checkpoint: As `record_to_checkpoint` wrote it.
        now: This moment, on the clock that the record is to be read by. After
            another boot only Unix time counts.

    Raises:
        DecodeError: It is of another kind or version, or not of this shape.
    """
    if (checkpoint.kind, checkpoint.version) != (KIND, VERSION):
        found = f"{checkpoint.kind} version {checkpoint.version}"
        raise DecodeError(
            "the life of a pod", [Fault("$", f"expected {KIND} version {VERSION}, found {found}")]
        )
    if not isinstance(checkpoint.value, Mapping):
        raise DecodeError("the life of a pod", [Fault("$", "expected a mapping")])
    try:
        row = _CONVERTER.structure(checkpoint.value, _Row)
    except cattrs.BaseValidationError as error:
        faults = [Fault(*reversed(line.rsplit(" @ ", 1))) for line in cattrs.transform_error(error)]
        raise DecodeError("the life of a pod", faults) from error
    at = now.monotonic_of
    return PodRecord(
        pod=_pod(row),
        noticed_s=at(row.noticed),
        deadline_s=None if row.deadline is None else at(row.deadline),
        ended={name: (cid, at(moment)) for name, (cid, moment) in row.ended.items()},
        restarts=Restarts(
            entries={
                (one.name, one.definition): RestartEntry(delay_s=one.delay_s, started_s=at(one.started))
                for one in row.restarts
            }
        ),
        stopping={
            cid: attrs.evolve(one.stopping, deadline_s=at(one.deadline)) for cid, one in row.stopping.items()
        },
        **{name: getattr(row, name) for name in _SAME},
    )


def _pod(row: _Row) -> Pod:
    pod = pod_from_manifest(row.pod.manifest)
    return pod if pod.uid == row.uid else attrs.evolve(pod, uid=row.uid)


def _text(value: object, _type: type[str]) -> str:
    if not isinstance(value, str):
        raise ValueError(f"expected a text, found {value!r}")  # noqa: TRY004  # cattrs reports it with its path
    return value


def _document(value: object, _type: type[_Document]) -> _Document:
    if not isinstance(value, dict):
        raise ValueError(f"expected a manifest, found {value!r}")  # noqa: TRY004  # as above
    return _Document(cast("Mapping[str, Json]", value))


def _converter() -> cattrs.Converter:
    converter = cattrs.Converter(forbid_extra_keys=True)
    converter.register_structure_hook(str, _text)
    converter.register_structure_hook(_Document, _document)
    converter.register_unstructure_hook(_Document, lambda one: one.manifest)
    return converter


_CONVERTER = _converter()
