"""What outlives the agent: one store, in which every package has rows of its own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import attrs

from nodealloc.checkpoint import (
    FileStore,
    Formats,
    SqliteStore,
    Store,
    row_formats,
    row_key,
    rows_of,
    this_machine,
)
from nodealloc.dsw_asw import Moment
from nodealloc.node import FORMATS
from nodealloc.podlife import POD_ROWS, PodRecord, record_from_checkpoint
from nodealloc.podsources import Editions, editions_from_checkpoint, editions_to_checkpoint
from nodealloc.podstatus import STATUS_ROWS, Told, told_from_checkpoint
from nodealloc.probes import PROBE_ROWS, PodVerdicts, verdicts_from_checkpoint
from nodealloc.runtime import RUNTIME_ROWS, PodKnown, pod_from_checkpoint

__all__ = ["Kept", "Remembered", "open_store"]

_SOURCES = "sources"
_ALL: Formats = {**FORMATS, **row_formats(RUNTIME_ROWS, POD_ROWS, STATUS_ROWS, PROBE_ROWS, _SOURCES)}


def open_store(folder: Path, kind: str) -> FileStore | SqliteStore:
    """A store of `files` or of `sqlite`."""
    if kind == "sqlite":
        return SqliteStore(folder / "checkpoint.db", _ALL, identity=this_machine())
    return FileStore(folder / "checkpoint", _ALL, identity=this_machine())


@attrs.frozen(kw_only=True)
class Remembered:
    """What earlier agents left, by pod uid, and the editions by source."""

    known: Mapping[str, PodKnown]
    lives: Mapping[str, PodRecord]
    told: Mapping[str, Told]
    verdicts: Mapping[str, PodVerdicts]
    editions: Mapping[str, Editions]


class Kept:
    """What the packages do not do themselves with the one store.

    Attributes:
        store: Every package's `Journal`.
    """

    def __init__(self, store: Store) -> None:
        self.store = store

    def remember(self, source: str, editions: Editions, /) -> None:
        """Write which edition of a static pod is which."""
        self.store.commit({row_key(_SOURCES, source): editions_to_checkpoint(editions)})

    def read(self) -> Remembered:
        """Everything of the packages."""
        now, values = Moment.now(), self.store.read().values
        return Remembered(
            known=rows_of(RUNTIME_ROWS, values, pod_from_checkpoint),
            lives=rows_of(POD_ROWS, values, lambda row: record_from_checkpoint(row, now)),
            told=rows_of(STATUS_ROWS, values, told_from_checkpoint),
            verdicts=rows_of(PROBE_ROWS, values, verdicts_from_checkpoint),
            editions=rows_of(_SOURCES, values, editions_from_checkpoint),
        )
