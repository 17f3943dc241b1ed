"""State of one's own in a store, beside the kubelet's files."""

from __future__ import annotations

import tempfile
from typing import assert_type

from nodealloc.checkpoint import (
    Checkpoint,
    Contents,
    CpuManagerState,
    FileStore,
    Formats,
    JsonCheckpoint,
    SqliteStore,
    Store,
)

formats: Formats = {"job.*": JsonCheckpoint.unmarshal, "cpu_manager_state": CpuManagerState.unmarshal}
with tempfile.TemporaryDirectory() as folder:
    stores: list[Store] = [FileStore(f"{folder}/files", formats), SqliteStore(f"{folder}/base", formats)]
    for store in stores:
        one = JsonCheckpoint(kind="job", version=1, value={"ranks": [0, 1]})
        changes: dict[str, Checkpoint | None] = {"job.1": one, "job.2": None}
        store.commit(changes)
        contents = store.read()
        assert_type(contents, Contents)
        found = contents.values["job.1"]
        assert isinstance(found, JsonCheckpoint)
        assert found == one
        store.close()
