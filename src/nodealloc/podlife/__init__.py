"""What a pod is doing, and what is next.

- A pod's *life* is how far it has come on its node: it waits for its predecessor,
  is kept in sync, terminates, has terminated, is finished.
- A *plan* of one pod says which sandbox, containers and init containers are
  started, left alone or killed, and why.

`Rules()` is what is right, `KUBELET` is as recorded.
"""

from nodealloc.podlife._actions import plan_pod, stops_of
from nodealloc.podlife._codec import POD_ROWS, record_from_checkpoint, record_to_checkpoint
from nodealloc.podlife._configuration import (
    ContainerConfigError,
    ContainerGift,
    EnvironmentSource,
    ImageFacts,
    NodeConfiguration,
    NodeSettings,
    PodAddresses,
    PodDns,
    PodFiles,
    PodGift,
    SandboxConfigError,
    container_config,
    field_value,
    linux_resources,
    pod_dns,
    resource_value,
    sandbox_config,
    sub_paths_of,
    termination_message,
    variables_of,
)
from nodealloc.podlife._credentials import SecretCredentials
from nodealloc.podlife._definitions import RESOURCES_ANNOTATION, Definitions
from nodealloc.podlife._details import HookKind, LifePolicy
from nodealloc.podlife._explain import explain_plan
from nodealloc.podlife._facts import ContainerFacts, PodFacts, facts_of
from nodealloc.podlife._grace import effective_grace_s, kill_grace_s, stop_timeout_s, stops_after
from nodealloc.podlife._hooks import ContainerHooks
from nodealloc.podlife._housekeeping import (
    HeldRemnant,
    Housekeeping,
    Remnant,
    RemnantKind,
    plan_housekeeping,
)
from nodealloc.podlife._image_names import ImageName
from nodealloc.podlife._images import CredentialSource
from nodealloc.podlife._last_words import LastWords
from nodealloc.podlife._life import POD_LIFE, LifeEvent
from nodealloc.podlife._lives import PodLives
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
from nodealloc.podlife._pod_folders import MountInTheWayError, PodFolders
from nodealloc.podlife._ports import (
    Configures,
    HookCall,
    HookRunner,
    LifeTold,
    LifeVerdicts,
    PodRuntime,
    Preparation,
    Preparer,
    Provided,
)
from nodealloc.podlife._record import Ending, EndingKind, HookState, PodRecord, PodWanted, Starting, Stopping
from nodealloc.podlife._restarts import ExitRule, RestartAnswer, RestartBackOff, RestartEntry, Restarts
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
    "POD_LIFE",
    "POD_ROWS",
    "RESOURCES_ANNOTATION",
    "Asked",
    "Configures",
    "ContainerConfigError",
    "ContainerFacts",
    "ContainerGift",
    "ContainerHooks",
    "ContainerPart",
    "ContainerStep",
    "CredentialSource",
    "Definitions",
    "Ending",
    "EndingKind",
    "EnvironmentSource",
    "ExitRule",
    "Held",
    "HeldRemnant",
    "HookCall",
    "HookKind",
    "HookRunner",
    "HookState",
    "Housekeeping",
    "ImageFacts",
    "ImageName",
    "Known",
    "LastWords",
    "LifeEvent",
    "LifePolicy",
    "LifeTold",
    "LifeVerdicts",
    "MountInTheWayError",
    "NodeConfiguration",
    "NodeSettings",
    "PodAddresses",
    "PodDns",
    "PodFacts",
    "PodFiles",
    "PodFolders",
    "PodGift",
    "PodLives",
    "PodPlan",
    "PodRecord",
    "PodRuntime",
    "PodSeen",
    "PodWanted",
    "Preparation",
    "Preparer",
    "Provided",
    "Remnant",
    "RemnantKind",
    "RestartAnswer",
    "RestartBackOff",
    "RestartEntry",
    "Restarts",
    "Resync",
    "Rules",
    "SandboxConfigError",
    "SecretCredentials",
    "Starting",
    "Stop",
    "StopReason",
    "Stopping",
    "UpdateKind",
    "Why",
    "Work",
    "WorkEnd",
    "WorkKind",
    "Worker",
    "WorkerPod",
    "WorkerUpdate",
    "Workers",
    "container_config",
    "effective_grace_s",
    "explain_plan",
    "facts_of",
    "field_value",
    "kill_grace_s",
    "linux_resources",
    "plan_housekeeping",
    "plan_pod",
    "pod_dns",
    "record_from_checkpoint",
    "record_to_checkpoint",
    "resource_value",
    "sandbox_config",
    "stop_timeout_s",
    "stops_after",
    "stops_of",
    "sub_paths_of",
    "termination_message",
    "variables_of",
]
