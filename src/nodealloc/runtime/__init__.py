"""What runs: sandboxes, containers, images and exits, as any container runtime reports them.

```text
   a runtime ─▶ Listing ─▶ whom has it changed ─▶ inspect ─▶ PodReport ─▶ PodKnown, remembered, then told
                once a period, or when an event hurries                    keeps every end
                └────────────────────── RuntimeWatch ─────────────────────────────┘
```

| noun             | what it is                                                               |
|------------------|--------------------------------------------------------------------------|
| `WholeRuntime`   | all Protocols that a runtime is asked through: `Looks`, `Sandboxes`, `Containers`, … |
| `RuntimeLayer`   | a runtime over another one, to derive from                               |
| `RuntimeWatch`   | the shell that looks; `seen`, `pods` and `answers` are its worlds        |
| `ContainerConfig`, `SandboxConfig` | what a runtime is asked to make                        |
| `ContainerEnd`   | how a container ended; where nobody knows, `ExitUnknown` and never a code |
| `plan_container_gc` and others | what may go of dead containers, sandboxes, logs and images |

`Rules()` is what is right, `KUBELET` is as recorded.
"""

from nodealloc.runtime._codec import RUNTIME_ROWS, pod_from_checkpoint
from nodealloc.runtime._container_gc import (
    ContainerGcPolicy,
    containers_to_drop,
    plan_container_gc,
    plan_log_gc,
    plan_sandbox_gc,
)
from nodealloc.runtime._errors import (
    AnswerLostError,
    CommandTimedOutError,
    NameReservedError,
    NoSuchRecordError,
    RuntimeRefusedError,
    RuntimeUnavailableError,
)
from nodealloc.runtime._health import CgroupDriverKind, Heard, RuntimeCondition, RuntimeHealth, may_start
from nodealloc.runtime._image_gc import (
    Disk,
    ImageGcPolicy,
    ImageUse,
    plan_image_gc,
    plan_unused_images,
    sweep,
)
from nodealloc.runtime._known import ContainerEnd, PodKnown
from nodealloc.runtime._layer import RuntimeLayer, WholeRuntime
from nodealloc.runtime._listing import Listing, Oddity, PodListing
from nodealloc.runtime._mounts import HostDevice, HostMount, Propagation
from nodealloc.runtime._ports import (
    CommandResult,
    CommandRunner,
    Containers,
    Images,
    Looks,
    Sandboxes,
)
from nodealloc.runtime._records import ContainerRecord, ImageRecord, RunState, SandboxRecord
from nodealloc.runtime._relist import Answered, Pace
from nodealloc.runtime._reports import OOM_KILLED, ContainerReport, Exit, PodReport, SandboxReport
from nodealloc.runtime._rules import KUBELET, Rules
from nodealloc.runtime._wanted import (
    ContainerConfig,
    DnsConfig,
    LinuxResources,
    PortMapping,
    PullCredentials,
    SandboxConfig,
    Security,
    SecurityProfile,
)
from nodealloc.runtime._watch import RuntimeWatch

__all__ = [
    "KUBELET",
    "OOM_KILLED",
    "RUNTIME_ROWS",
    "AnswerLostError",
    "Answered",
    "CgroupDriverKind",
    "CommandResult",
    "CommandRunner",
    "CommandTimedOutError",
    "ContainerConfig",
    "ContainerEnd",
    "ContainerGcPolicy",
    "ContainerRecord",
    "ContainerReport",
    "Containers",
    "Disk",
    "DnsConfig",
    "Exit",
    "Heard",
    "HostDevice",
    "HostMount",
    "ImageGcPolicy",
    "ImageRecord",
    "ImageUse",
    "Images",
    "LinuxResources",
    "Listing",
    "Looks",
    "NameReservedError",
    "NoSuchRecordError",
    "Oddity",
    "Pace",
    "PodKnown",
    "PodListing",
    "PodReport",
    "PortMapping",
    "Propagation",
    "PullCredentials",
    "Rules",
    "RunState",
    "RuntimeCondition",
    "RuntimeHealth",
    "RuntimeLayer",
    "RuntimeRefusedError",
    "RuntimeUnavailableError",
    "RuntimeWatch",
    "SandboxConfig",
    "SandboxRecord",
    "SandboxReport",
    "Sandboxes",
    "Security",
    "SecurityProfile",
    "WholeRuntime",
    "containers_to_drop",
    "may_start",
    "plan_container_gc",
    "plan_image_gc",
    "plan_log_gc",
    "plan_sandbox_gc",
    "plan_unused_images",
    "pod_from_checkpoint",
    "sweep",
]
