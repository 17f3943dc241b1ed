"""What a pod is, on one node: identity, status, life, events, and a node as whoever judges sees it.

- A *status* is what is told of a pod: its phase, its conditions, its containers.
- A *life state* is how far a pod has come on its node, whatever is told of it.
- An *event* is something that its owner may want to read.
- A *field* of a pod's metadata, or an amount that a container asks for, as a pod is told it.
- A *node view* is one moment of a node; a judge is a function
  `(Pod, NodeView) -> Verdict`.

Values only. No rule about pods stands here: who starts, ends, judges or tells
of pods speaks in these values and decides elsewhere. What may be absent says so
in its type: there is no exit code, time or id that stands for not knowing.

    >>> ended = ContainerTerminated(exit=ExitUnknown(), reason="ContainerStatusUnknown")
    >>> status = PodStatus(
    ...     phase=PodPhase.RUNNING,
    ...     containers=(ContainerStatus(name="app", state=ContainerRunning(), last_state=ended),),
    ... )
    >>> status.phase.is_terminal, status.container("app").last_state.exit
    (False, ExitUnknown())

A view grows by a pod at the same cost however many there are:

    >>> from nodealloc.podspec import Container, Pod, Quantity
    >>> web = Pod(uid="u", containers=(Container(name="app", requests={"cpu": Quantity.of(2)}),))
    >>> view = NodeView(name="n1").with_pod(PodOnNode.of(web))
    >>> str(view.pods.requested["cpu"]), view.pods["u"].state.is_ending
    ('2', False)
"""

from nodealloc.podfacts._containers import (
    ContainerRunning,
    ContainerState,
    ContainerStatus,
    ContainerTerminated,
    ContainerWaiting,
    Exited,
    ExitUnknown,
    ResourceHealth,
    ResourceHealthState,
    ResourceStatus,
)
from nodealloc.podfacts._events import EventKind, PodEvent
from nodealloc.podfacts._fields import metadata_field, resource_value
from nodealloc.podfacts._identity import PodIdentity
from nodealloc.podfacts._life import LifeState, PodLife, PodSighting
from nodealloc.podfacts._manifest import status_from_manifest, status_to_manifest
from nodealloc.podfacts._ports import PodSource
from nodealloc.podfacts._status import ConditionStatus, PodCondition, PodPhase, PodStatus
from nodealloc.podfacts._view import (
    HostPort,
    NodeView,
    PodOnNode,
    PodsOnNode,
    Pressure,
    Taint,
    TaintEffect,
    Transport,
    host_ports_of,
)

__all__ = [
    "ConditionStatus",
    "ContainerRunning",
    "ContainerState",
    "ContainerStatus",
    "ContainerTerminated",
    "ContainerWaiting",
    "EventKind",
    "ExitUnknown",
    "Exited",
    "HostPort",
    "LifeState",
    "NodeView",
    "PodCondition",
    "PodEvent",
    "PodIdentity",
    "PodLife",
    "PodOnNode",
    "PodPhase",
    "PodSighting",
    "PodSource",
    "PodStatus",
    "PodsOnNode",
    "Pressure",
    "ResourceHealth",
    "ResourceHealthState",
    "ResourceStatus",
    "Taint",
    "TaintEffect",
    "Transport",
    "host_ports_of",
    "metadata_field",
    "resource_value",
    "status_from_manifest",
    "status_to_manifest",
]
