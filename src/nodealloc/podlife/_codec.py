"""What is remembered of a pod as JSON and back; dicts stop here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, cast

import cattrs

from nodealloc import _attrs as attrs
from nodealloc._frozen import Frozen, PlainJson, freeze
from nodealloc._stored import Stored, row_converter, shared
from nodealloc._typed import typed, typed_on_error
from nodealloc.checkpoint import JsonCheckpoint
from nodealloc.dsw_asw import Moment
from nodealloc.podfacts import LifeState
from nodealloc.podlife._record import Begun, Ending, HookState, PodRecord, Starting, Stopping
from nodealloc.podlife._restarts import RestartEntry, Restarts
from nodealloc.podspec import Container, Json, Pod

__all__ = ["POD_ROWS", "manifest_of", "record_from_checkpoint", "record_to_checkpoint"]

POD_ROWS: Final = "podlife"
"""Rows of a journal are of this kind, named by the pod's uid (`nodealloc.checkpoint.row_key`)."""


@attrs.frozen
class _Document:
    """A manifest, as it is."""

    manifest: Mapping[str, object]


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
    begun: Mapping[str, Begun] = attrs.field(factory=Frozen[str, Begun], validator=freeze)
    owed: Mapping[str, str] = attrs.field(factory=Frozen[str, str], validator=freeze)


_SAME: Final = (
    "edition",
    "life",
    "noticed_unix_s",
    "ending",
    "grace_s",
    "made",
    "sandbox_attempt",
    "starting",
    "begun",
    "attempts",
    "completed",
    "post_start",
    "pre_stop",
    "owed",
    "resized",
    "pokes",
)


@typed_on_error
def record_to_checkpoint(
    record: PodRecord, now: Moment, /, *, manifest: PlainJson | None = None
) -> JsonCheckpoint:
    """What outlives the process.

    Args:
        record: What is remembered.
        now: This moment, on the clock of the record's.
        manifest: `manifest_of` its pod, to be shared by the rows of one form; made where it is None.
    """
    row = _Row(
        pod=_Document(record.pod.to_manifest() if manifest is None else manifest),
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
    return _STORED.written(row)


def manifest_of(pod: Pod, /) -> PlainJson:
    """A pod as it stands in rows."""
    return shared(pod.to_manifest())


@typed
def record_from_checkpoint(checkpoint: JsonCheckpoint, now: Moment, /) -> PodRecord:
    """What was remembered when it was written.

    Args:
        checkpoint: As `record_to_checkpoint` wrote it.
        now: This moment, on the clock that the record is to be read by. After
            another boot only Unix time counts; where that has gone back meanwhile,
            the newest moment of the record is taken for this one.

    Raises:
        DecodeError: It is of another kind or version, or not of this shape.
    """
    row = _STORED.read(checkpoint)
    at = _clock_of(row, now)
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


def _clock_of(row: _Row, now: Moment) -> Callable[[Moment], float]:
    """From a stored moment to this boot's clock.

    A machine without a clock of its own begins a boot in the past, until it asks for the time: waits from
    moments that have been would last for years.
    """
    been = [row.noticed, *(one for _, one in row.ended.values()), *(one.started for one in row.restarts)]
    earlier = [now.monotonic_of(one) for one in been if one.boot_id != now.boot_id]
    ahead_s = max(0.0, max(earlier, default=0.0) - now.monotonic_s)

    def at(moment: Moment) -> float:
        return now.monotonic_of(moment) - (ahead_s if moment.boot_id != now.boot_id else 0.0)

    return at


def _pod(row: _Row) -> Pod:
    manifest = cast("Mapping[str, Json]", row.pod.manifest)
    spec = manifest.get("spec")
    if isinstance(spec, dict) and not spec.get("containers"):
        # Only a sandbox is left of a pod that nobody wanted: no manifest is without containers.
        named = {**manifest, "spec": {**spec, "containers": [{"name": "none", "image": "none"}]}}
        pod = attrs.evolve(Pod.from_manifest(named), containers=())
    else:
        pod = Pod.from_manifest(manifest)
    pod = _as_said(pod, spec)
    return pod if pod.uid == row.uid else attrs.evolve(pod, uid=row.uid)


def _as_said(pod: Pod, spec: Json) -> Pod:
    """Without when images are fetched, where only its reader says so: one made in Python may say nothing."""
    if not isinstance(spec, dict):
        return pod

    def without(containers: tuple[Container, ...], listed: Json) -> tuple[Container, ...]:
        if not isinstance(listed, list):
            return containers
        silent = [one.get("name") for one in listed if isinstance(one, dict) and "imagePullPolicy" not in one]
        if not silent:
            return containers
        return tuple(
            [attrs.evolve(one, image_pull_policy=None) if one.name in silent else one for one in containers]
        )

    return attrs.evolve(
        pod,
        init_containers=without(pod.init_containers, spec.get("initContainers")),
        containers=without(pod.containers, spec.get("containers")),
        ephemeral_containers=without(pod.ephemeral_containers, spec.get("ephemeralContainers")),
    )


def _document(value: object, _type: type[_Document]) -> _Document:
    if not isinstance(value, dict):
        raise ValueError(f"expected a manifest, found {value!r}")  # noqa: TRY004  # its path is put to it
    return _Document(cast("Mapping[str, Json]", value))


def _converter() -> cattrs.Converter:
    converter = row_converter()
    converter.register_structure_hook(_Document, _document)
    converter.register_unstructure_hook(_Document, lambda one: one.manifest)
    return converter


_STORED: Final = Stored(_Row, kind="pod life", converter=_converter())
