"""Verdicts as JSON and back; dicts stop here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import cattrs

from nodealloc import _attrs as attrs
from nodealloc._frozen import freeze
from nodealloc._stored import Stored, row_converter
from nodealloc._typed import typed
from nodealloc.checkpoint import JsonCheckpoint
from nodealloc.podspec import Json
from nodealloc.probes._kinds import ProbeKind
from nodealloc.probes._verdicts import (
    NO_ANSWER,
    ContainerVerdicts,
    NoProbe,
    Passed,
    PodVerdicts,
    ProbeVerdict,
    Unwell,
)

__all__ = ["PROBE_ROWS", "verdicts_from_checkpoint", "verdicts_to_checkpoint"]

PROBE_ROWS: Final = "probes"
"""Kind of the rows of verdicts, for `row_key` and `rows_of` of `nodealloc.checkpoint`, by uid."""
_WELL: Final = "passed"
_NONE_YET: Final = "no answer"


@attrs.frozen(kw_only=True)
class _Row:
    uid: str
    containers: Mapping[str, Mapping[ProbeKind, ProbeVerdict]] = attrs.field(validator=freeze)


def verdicts_to_checkpoint(verdicts: PodVerdicts, /) -> JsonCheckpoint:
    """Every verdict, by container and kind; a probe that is not there is left out."""
    containers = {
        container_id: {kind: one[kind] for kind in ProbeKind if not isinstance(one[kind], NoProbe)}
        for container_id, one in verdicts.by_container.items()
    }
    return _STORED.written(_Row(uid=verdicts.uid, containers=containers))


@typed
def verdicts_from_checkpoint(checkpoint: JsonCheckpoint, /) -> PodVerdicts:
    """What stood when it was written.

    Raises:
        DecodeError: It is of another kind or version, or not of this shape.
    """
    row = _STORED.read(checkpoint)
    made: dict[str, ContainerVerdicts] = {}
    for container_id, by_kind in row.containers.items():
        verdicts = ContainerVerdicts()
        for kind, verdict in by_kind.items():
            verdicts = verdicts.with_verdict(kind, verdict)
        made[container_id] = verdicts
    return PodVerdicts(uid=row.uid, by_container=made)


def _verdict(value: object, _type: object) -> ProbeVerdict:
    match value:
        case "passed":
            return Passed()
        case "no answer":
            return NO_ANSWER
        case [str() as message, int() | float() | None as grace_s] if not isinstance(grace_s, bool):
            return Unwell(message=message, grace_s=grace_s)
        case _:
            raise ValueError(f"expected 'passed', 'no answer' or [message, seconds or null], found {value!r}")


def _written(verdict: ProbeVerdict) -> Json:
    if isinstance(verdict, Unwell):
        return [verdict.message, verdict.grace_s]
    return _WELL if isinstance(verdict, Passed) else _NONE_YET


def _converter() -> cattrs.Converter:
    converter = row_converter()
    converter.register_structure_hook_func(lambda kind: kind == ProbeVerdict, _verdict)
    converter.register_unstructure_hook_func(lambda kind: kind == ProbeVerdict, _written)
    return converter


_STORED: Final = Stored(_Row, kind="probe verdicts", converter=_converter())
