"""What was decided before the crash: stores, transactions, the kubelet's formats.

- A *checkpoint* is a value that can be told from a damaged one: bytes with a checksum.
- A *store* holds checkpoints under *keys*; one commit changes any number of
  them, all or none, and returns when they would survive a power cut.
- *Formats* say which key is read by what, so that all keys are verified at start.
- A *damaged* key is moved aside and reported; whoever owns it rebuilds it from
  what runs, and grants nothing until then.
- *Since* tells a restart from a reboot from other hardware.

```text
decide ─▶ commit({key: checkpoint, …}) ─▶ durable, or an error and nothing changed ─▶ only now: do it
                                             crash anywhere
open ─▶ finish or drop what was cut off ─▶ verify each key ─▶ Contents(values, damaged, since)
```

    >>> store = MemoryStore({"pod.*": JsonCheckpoint.unmarshal})
    >>> store.commit({"pod.8f1c": JsonCheckpoint(kind="pod", version=1, value={"cpus": "2-3"})})
    >>> store.read().get("pod.8f1c", JsonCheckpoint).value
    {'cpus': '2-3'}
"""

from typing import TYPE_CHECKING

from nodealloc.checkpoint._contents import Contents, Damaged, Identity, Since
from nodealloc.checkpoint._cpu_state import (
    CPU_STATE,
    CpuManagerState,
    CpuManagerStateV1,
    read_cpu_manager_state,
)
from nodealloc.checkpoint._device_state import DEVICE_STATE, DeviceManagerState
from nodealloc.checkpoint._errors import (
    CorruptCheckpointError,
    StoreBusyError,
    StoreClosedError,
    StoreFailedError,
)
from nodealloc.checkpoint._file_store import FileStore
from nodealloc.checkpoint._files import Files
from nodealloc.checkpoint._identity import this_machine
from nodealloc.checkpoint._inspect import Finding, inspect, stored_identity
from nodealloc.checkpoint._json import Json
from nodealloc.checkpoint._keys import require_formats, row_formats, row_key, rows_of
from nodealloc.checkpoint._kubelet import KUBELET_FORMATS
from nodealloc.checkpoint._memory_state import (
    MEMORY_STATE,
    MemoryBlock,
    MemoryManagerState,
    MemoryNode,
    MemoryTable,
)
from nodealloc.checkpoint._memory_store import MemoryStore
from nodealloc.checkpoint._pod_devices import PodDevices
from nodealloc.checkpoint._ports import Checkpoint, Formats, Store
from nodealloc.checkpoint._record import JsonCheckpoint

if TYPE_CHECKING:
    from nodealloc.checkpoint._sqlite_store import SqliteStore
else:

    def __getattr__(name: str) -> object:
        """SQLite takes a MiB, which agents with stores of files spare."""
        if name == "SqliteStore":
            from nodealloc.checkpoint._sqlite_store import SqliteStore  # noqa: PLC0415

            return SqliteStore
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})


__all__ = [
    "CPU_STATE",
    "DEVICE_STATE",
    "KUBELET_FORMATS",
    "MEMORY_STATE",
    "Checkpoint",
    "Contents",
    "CorruptCheckpointError",
    "CpuManagerState",
    "CpuManagerStateV1",
    "Damaged",
    "DeviceManagerState",
    "FileStore",
    "Files",
    "Finding",
    "Formats",
    "Identity",
    "Json",
    "JsonCheckpoint",
    "MemoryBlock",
    "MemoryManagerState",
    "MemoryNode",
    "MemoryStore",
    "MemoryTable",
    "PodDevices",
    "Since",
    "SqliteStore",
    "Store",
    "StoreBusyError",
    "StoreClosedError",
    "StoreFailedError",
    "inspect",
    "read_cpu_manager_state",
    "require_formats",
    "row_formats",
    "row_key",
    "rows_of",
    "stored_identity",
    "this_machine",
]
