"""What a pod is doing, and what is next.

- A pod's *life* is how far it has come on its node: it waits for its predecessor,
  is kept in sync, terminates, has terminated, is finished.
- A *plan* of one pod says which sandbox, containers and init containers are
  started, left alone or killed, and why.

`Rules()` is what is right, `KUBELET` is as recorded.
"""

from nodealloc.podlife._actions import plan_pod, stops_of
from nodealloc.podlife._definitions import RESOURCES_ANNOTATION, Definitions
from nodealloc.podlife._explain import explain
from nodealloc.podlife._grace import effective_grace_s, kill_grace_s, stop_timeout_s, stops_after
from nodealloc.podlife._life import LIFE, LifeEvent
from nodealloc.podlife._plan import (
    ContainerPart,
    ContainerStep,
    Held,
    PodPlan,
    PodSeen,
    Stop,
    StopReason,
    Why,
)
from nodealloc.podlife._restarts import (
    ExitRule,
    RestartAnswer,
    RestartBackOff,
    RestartEntry,
    Restarts,
    back_off_event,
    back_off_held,
)
from nodealloc.podlife._rules import KUBELET, Rules
from nodealloc.podlife._sandbox import SandboxNeed, sandbox_need
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
    "RESOURCES_ANNOTATION",
    "Asked",
    "ContainerPart",
    "ContainerStep",
    "Definitions",
    "ExitRule",
    "Held",
    "Known",
    "LifeEvent",
    "PodPlan",
    "PodSeen",
    "RestartAnswer",
    "RestartBackOff",
    "RestartEntry",
    "Restarts",
    "Resync",
    "Rules",
    "SandboxNeed",
    "Stop",
    "StopReason",
    "UpdateKind",
    "Why",
    "Work",
    "WorkEnd",
    "WorkKind",
    "Worker",
    "WorkerPod",
    "WorkerUpdate",
    "Workers",
    "back_off_event",
    "back_off_held",
    "effective_grace_s",
    "explain",
    "kill_grace_s",
    "plan_pod",
    "sandbox_need",
    "stop_timeout_s",
    "stops_after",
    "stops_of",
]
