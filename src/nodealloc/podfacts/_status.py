"""Values only: what is told of a pod."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Mapping
from typing import Final

from nodealloc import _attrs as attrs
from nodealloc._arguments import filled, unix_time
from nodealloc._frozen import Frozen, freeze_deeply
from nodealloc._reading import Json
from nodealloc._typed import typed_fields
from nodealloc.errors import ConfigurationError
from nodealloc.podfacts._checks import addresses
from nodealloc.podfacts._containers import ContainerStatus
from nodealloc.podspec import QosClass

__all__ = ["ConditionStatus", "PodCondition", "PodPhase", "PodStatus"]


class PodPhase(enum.Enum):
    """The shortest answer to how a pod is, by the names of the Kubernetes API."""

    PENDING = "Pending"
    """Known to the node; not all that it needs has begun."""
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    """All its containers ended with 0, and none will run again."""
    FAILED = "Failed"
    """It has ended for good, and not all of it well."""
    UNKNOWN = "Unknown"

    @property
    def is_terminal(self) -> bool:
        """Whether no other phase may follow."""
        return self in _TERMINAL


# A tuple: where a member stands in one is seen sooner than its hash is made.
_TERMINAL: Final = (PodPhase.SUCCEEDED, PodPhase.FAILED)


class ConditionStatus(enum.Enum):
    """Whether a condition holds."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


@typed_fields
@attrs.frozen(kw_only=True)
class PodCondition:
    """One thing that is true of a pod, is not, or cannot be told.

    Attributes:
        type: Which: `Ready`, `Initialized`, or somebody else's name for a readiness gate.
        status: Whether it holds.
        reason: One word for programs, or "".
        message: For people, or "".
        last_transition_unix_s: When `status` last changed, in Unix seconds; None where nobody knows.
        carried: What else its document had (`observedGeneration`), as it came.

    Raises:
        ConfigurationError: No type, or a time that is not finite.
    """

    type: str = attrs.field(validator=filled)
    status: ConditionStatus
    reason: str = ""
    message: str = ""
    last_transition_unix_s: float | None = attrs.field(default=None, validator=unix_time)
    carried: Mapping[str, Json] = attrs.field(factory=Frozen[str, Json], validator=freeze_deeply)


@typed_fields
@attrs.frozen(kw_only=True)
class PodStatus:
    """All that is told of a pod.

    Attributes:
        phase: How it is; None while nothing is told yet.
        reason: Why it is in that phase, one word for programs (`Evicted`), or "".
        message: The same for people, or "".
        conditions: In the order told. A list from outside may name a type twice;
            then the first one counts.
        init_containers: Statuses of init containers, sidecars included, in the pod's order.
        containers: Those of the main ones.
        ephemeral_containers: Those of containers that were added to look at it.
        qos: Its QoS class; None while it is not told.
        pod_ips: Its addresses, the first of each family first; empty while it has none.
        host_ips: Those of its node.
        started_unix_s: When the node took notice of it, in Unix seconds; None before.
        carried: What else its document had (`nominatedNodeName`), as it came.

    Raises:
        ConfigurationError: Two containers of one name, an address that is none or stands
            there twice, or a time that is not finite.

    Source: the pod status of the Kubernetes API, v1.32.
    """

    phase: PodPhase | None = None
    reason: str = ""
    message: str = ""
    conditions: tuple[PodCondition, ...] = ()
    init_containers: tuple[ContainerStatus, ...] = ()
    containers: tuple[ContainerStatus, ...] = ()
    ephemeral_containers: tuple[ContainerStatus, ...] = ()
    qos: QosClass | None = None
    pod_ips: tuple[str, ...] = attrs.field(default=(), validator=addresses)
    host_ips: tuple[str, ...] = attrs.field(default=(), validator=addresses)
    started_unix_s: float | None = attrs.field(default=None, validator=unix_time)
    carried: Mapping[str, Json] = attrs.field(factory=Frozen[str, Json], validator=freeze_deeply)

    def __attrs_post_init__(self) -> None:
        names = Counter(one.name for one in self.all_containers)
        if twice := sorted(name for name, times in names.items() if times > 1):
            raise ConfigurationError(
                f"containers {', '.join(twice)} are told of more than once; name each once"
            )

    @property
    def is_terminal(self) -> bool:
        """Whether its phase is told, and is one after which no other may follow."""
        return self.phase is not None and self.phase.is_terminal

    @property
    def all_containers(self) -> tuple[ContainerStatus, ...]:
        """Init containers, then main ones, then ephemeral ones."""
        return (*self.init_containers, *self.containers, *self.ephemeral_containers)

    def condition(self, type_: str, /) -> PodCondition | None:
        """The condition of a type; None where it is not told."""
        return next((one for one in self.conditions if one.type == type_), None)

    def container(self, name: str, /) -> ContainerStatus | None:
        """The status of a container, whichever kind it is of; None where it is not told."""
        return next((one for one in self.all_containers if one.name == name), None)
