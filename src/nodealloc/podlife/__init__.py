"""What a pod is doing, and what is next.

- A pod's *life* is how far it has come on its node: it waits for its predecessor,
  is kept in sync, terminates, has terminated, is finished.
- A *plan* of one pod says which sandbox, containers and init containers are
  started, left alone or killed, and why.

`Rules()` is what is right, `KUBELET` is as recorded.
"""

from nodealloc.podlife._actions import plan_pod, stops_of
from nodealloc.podlife._configuration import (
    LOG_LINES,
    LOG_TAIL_BYTES,
    MESSAGE_BYTES,
    ContainerConfigError,
    ContainerGift,
    EnvironmentSource,
    ImageFacts,
    NodeSettings,
    PodAddresses,
    PodDns,
    SandboxConfigError,
    container_config,
    expand,
    field_value,
    hostname_of,
    hosts_file,
    linux_resources,
    message_file,
    pod_dns,
    resource_value,
    sandbox_config,
    sub_paths_of,
    termination_message,
    variables_of,
)
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
    "LOG_LINES",
    "LOG_TAIL_BYTES",
    "MESSAGE_BYTES",
    "RESOURCES_ANNOTATION",
    "Asked",
    "ContainerConfigError",
    "ContainerGift",
    "ContainerPart",
    "ContainerStep",
    "Definitions",
    "EnvironmentSource",
    "ExitRule",
    "Held",
    "ImageFacts",
    "Known",
    "LifeEvent",
    "NodeSettings",
    "PodAddresses",
    "PodDns",
    "PodPlan",
    "PodSeen",
    "RestartAnswer",
    "RestartBackOff",
    "RestartEntry",
    "Restarts",
    "Resync",
    "Rules",
    "SandboxConfigError",
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
    "container_config",
    "effective_grace_s",
    "expand",
    "explain",
    "field_value",
    "hostname_of",
    "hosts_file",
    "kill_grace_s",
    "linux_resources",
    "message_file",
    "plan_pod",
    "pod_dns",
    "resource_value",
    "sandbox_config",
    "sandbox_need",
    "stop_timeout_s",
    "stops_after",
    "stops_of",
    "sub_paths_of",
    "termination_message",
    "variables_of",
]
