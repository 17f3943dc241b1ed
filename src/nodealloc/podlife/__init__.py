"""What a pod is doing, and what is next.

```text
   pods that are put ───┐
   listings of a runtime├─▶ plan_pod ─▶ steps ─▶ your preparers, a runtime, hooks
   verdicts of probes ──┘     pure                       │
                               ▲                         ▼
                               └──────────────────── PodRecord ─▶ PodFacts, for whoever tells of pods
                                                  remembered before anything is done
```

| noun                    | what it is                                                              |
|-------------------------|-------------------------------------------------------------------------|
| `PodLives`              | the shell: `put` and `remove` pods, `start` it                          |
| `POD_LIFE`              | how far a pod has come: waiting, syncing, terminating, terminated, finished |
| `PodPlan`               | what is started, left alone or stopped next; `explain_plan` says why    |
| `Preparation`           | a part that is ready before anything of its pod runs, and is taken back last |
| `Configures`            | says what is made; `NodeConfiguration` says what a kubelet would        |
| `PodRecord`, `PodFacts` | what is remembered of a pod; what others need to know of it             |
| `LifePolicy`            | how patient a node is; `RestartBackOff` says how long a restart waits   |
| `LoggedRuntime`, `TerminationMessages` | layers over a runtime: logs, and messages of ended containers |
| `Remnant`               | what is left of pods that nobody knows; `plan_housekeeping` says what may go |

`Rules()` is what is right, `KUBELET` is as recorded.
"""

from nodealloc.podlife._actions import plan_pod
from nodealloc.podlife._codec import (
    POD_ROWS,
    record_from_checkpoint,
)
from nodealloc.podlife._configuration import (
    ContainerConfigError,
    ContainerRunOptions,
    EnvironmentSource,
    ImageFacts,
    NodeConfiguration,
    NodeSettings,
    PodAddresses,
    PodDns,
    PodFiles,
    PodRunOptions,
    SandboxConfigError,
    container_config,
    pod_dns,
    sandbox_config,
)
from nodealloc.podlife._credentials import SecretCredentials
from nodealloc.podlife._details import LifePolicy
from nodealloc.podlife._explain import explain_plan
from nodealloc.podlife._facts import PodFacts
from nodealloc.podlife._grace import stop_timeout_s
from nodealloc.podlife._hooks import ContainerHooks
from nodealloc.podlife._housekeeping import Remnant, RemnantKind, plan_housekeeping
from nodealloc.podlife._image_names import ImageName
from nodealloc.podlife._images import CredentialSource
from nodealloc.podlife._life import POD_LIFE
from nodealloc.podlife._lives import PodLives
from nodealloc.podlife._logs import LoggedRuntime
from nodealloc.podlife._plan import Held, PodPlan, PodSeen, Stop, Why
from nodealloc.podlife._pod_folders import MountInTheWayError, PodFolders
from nodealloc.podlife._ports import (
    CanStopConfiguring,
    Configures,
    HookCall,
    HookRunner,
    PodRuntime,
    Preparation,
    Preparer,
    Provided,
)
from nodealloc.podlife._record import Ending, EndingKind, PodRecord
from nodealloc.podlife._restarts import (
    ExitRule,
    RestartBackOff,
    Restarts,
)
from nodealloc.podlife._rules import KUBELET, Rules
from nodealloc.podlife._termination_messages import TerminationMessages

__all__ = [
    "KUBELET",
    "POD_LIFE",
    "POD_ROWS",
    "CanStopConfiguring",
    "Configures",
    "ContainerConfigError",
    "ContainerHooks",
    "ContainerRunOptions",
    "CredentialSource",
    "Ending",
    "EndingKind",
    "EnvironmentSource",
    "ExitRule",
    "Held",
    "HookCall",
    "HookRunner",
    "ImageFacts",
    "ImageName",
    "LifePolicy",
    "LoggedRuntime",
    "MountInTheWayError",
    "NodeConfiguration",
    "NodeSettings",
    "PodAddresses",
    "PodDns",
    "PodFacts",
    "PodFiles",
    "PodFolders",
    "PodLives",
    "PodPlan",
    "PodRecord",
    "PodRunOptions",
    "PodRuntime",
    "PodSeen",
    "Preparation",
    "Preparer",
    "Provided",
    "Remnant",
    "RemnantKind",
    "RestartBackOff",
    "Restarts",
    "Rules",
    "SandboxConfigError",
    "SecretCredentials",
    "Stop",
    "TerminationMessages",
    "Why",
    "container_config",
    "explain_plan",
    "plan_housekeeping",
    "plan_pod",
    "pod_dns",
    "record_from_checkpoint",
    "sandbox_config",
    "stop_timeout_s",
]
