"""What runs: sandboxes, containers, images and exits, as any container runtime reports them."""

from nodealloc.runtime._errors import (
    AnswerLostError,
    CommandTimedOutError,
    NameReservedError,
    NoSuchRecordError,
    RuntimeRefusedError,
    RuntimeUnavailableError,
)
from nodealloc.runtime._health import CgroupDriverKind, Heard, RuntimeCondition, RuntimeHealth, may_start
from nodealloc.runtime._listing import Listing, Oddity, PodListing
from nodealloc.runtime._ports import (
    CommandResult,
    CommandRunner,
    ContainerKeeper,
    Containers,
    EventFeed,
    Images,
    Looks,
    Sandboxes,
)
from nodealloc.runtime._records import ContainerRecord, ImageRecord, RunState, SandboxRecord
from nodealloc.runtime._reports import ContainerReport, Exit, PodReport, SandboxReport
from nodealloc.runtime._wanted import (
    ContainerConfig,
    DeviceNode,
    DnsConfig,
    HostMount,
    LinuxResources,
    Propagation,
    SandboxConfig,
    Security,
)

__all__ = [
    "AnswerLostError",
    "CgroupDriverKind",
    "CommandResult",
    "CommandRunner",
    "CommandTimedOutError",
    "ContainerConfig",
    "ContainerKeeper",
    "ContainerRecord",
    "ContainerReport",
    "Containers",
    "DeviceNode",
    "DnsConfig",
    "EventFeed",
    "Exit",
    "Heard",
    "HostMount",
    "ImageRecord",
    "Images",
    "LinuxResources",
    "Listing",
    "Looks",
    "NameReservedError",
    "NoSuchRecordError",
    "Oddity",
    "PodListing",
    "PodReport",
    "Propagation",
    "RunState",
    "RuntimeCondition",
    "RuntimeHealth",
    "RuntimeRefusedError",
    "RuntimeUnavailableError",
    "SandboxConfig",
    "SandboxRecord",
    "SandboxReport",
    "Sandboxes",
    "Security",
    "may_start",
]
