"""What the shipped agent remembered, read at its start."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

import attrs

from nodealloc.admission import Chain
from nodealloc.checkpoint import FileStore, StoreFailedError, row_formats, rows_of
from nodealloc.node import FORMATS, NodeAllocator
from nodealloc.podlife import POD_ROWS, PodRecord, record_from_checkpoint
from nodealloc.podstatus import STATUS_ROWS, Told, told_from_checkpoint
from nodealloc.probes import PROBE_ROWS, PodVerdicts, verdicts_from_checkpoint
from nodealloc.runtime import RUNTIME_ROWS, PodKnown, pod_from_checkpoint
from nodealloc.testing.simulation._executor import Killed
from nodealloc.testing.simulation.node._ports import NodePorts
from nodealloc.topology import Snapshot

__all__ = ["Kept"]

_FORMATS = {**FORMATS, **row_formats(RUNTIME_ROWS, POD_ROWS, PROBE_ROWS, STATUS_ROWS)}


@attrs.frozen(kw_only=True)
class Kept:
    """One store for all, and what is in it.

    Attributes:
        store: Where everything is remembered.
        node: Who holds what.
        known: What the runtime was known to have, by uid.
        lives: How far pods had come.
        verdicts: What probes had said.
        told: What had been told.
    """

    store: FileStore
    node: NodeAllocator
    known: Mapping[str, PodKnown]
    lives: Mapping[str, PodRecord]
    verdicts: Mapping[str, PodVerdicts]
    told: Mapping[str, Told]

    @classmethod
    def of(cls, ports: NodePorts, empty: Snapshot, chain: Chain | None) -> Self:
        """Read it; a disk that fails ends the process, which a service manager starts again."""
        try:
            store = FileStore(ports.disk, _FORMATS, files=ports.files)
            rows = store.read().values
            node = NodeAllocator(empty, store, chain=chain)
            if not node.start().is_clean:
                node.accept()
        except StoreFailedError as error:
            ports.life.end()
            raise Killed from error
        return cls(
            store=store,
            node=node,
            known=rows_of(RUNTIME_ROWS, rows, pod_from_checkpoint),
            lives=rows_of(POD_ROWS, rows, lambda row: record_from_checkpoint(row, ports.now())),
            verdicts=rows_of(PROBE_ROWS, rows, verdicts_from_checkpoint),
            told=rows_of(STATUS_ROWS, rows, told_from_checkpoint),
        )
