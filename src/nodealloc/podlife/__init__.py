"""What a pod is doing, and what is next.

- A pod's *life* is how far it has come on its node: it waits for its predecessor,
  is kept in sync, terminates, has terminated, is finished.
- A *plan* of one pod says which sandbox, containers and init containers are
  started, left alone or killed, and why.

`Rules()` is what is right, `KUBELET` is as recorded.
"""

from nodealloc.podlife._grace import effective_grace_s, kill_grace_s, stop_timeout_s, stops_after
from nodealloc.podlife._life import LIFE, LifeEvent
from nodealloc.podlife._rules import KUBELET, Rules
from nodealloc.podlife._worker import (
    Asked,
    Resync,
    UpdateKind,
    Work,
    WorkEnd,
    Worker,
    WorkerPod,
    WorkerUpdate,
    WorkKind,
)
from nodealloc.podlife._workers import Known, Workers

__all__ = [
    "KUBELET",
    "LIFE",
    "Asked",
    "Known",
    "LifeEvent",
    "Resync",
    "Rules",
    "UpdateKind",
    "Work",
    "WorkEnd",
    "WorkKind",
    "Worker",
    "WorkerPod",
    "WorkerUpdate",
    "Workers",
    "effective_grace_s",
    "kill_grace_s",
    "stop_timeout_s",
    "stops_after",
]
