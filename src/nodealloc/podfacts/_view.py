"""Values only: a node as whoever judges a pod sees it."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Mapping

from nodealloc import _attrs as attrs
from nodealloc._arguments import filled
from nodealloc._entries import with_entry, without_entry
from nodealloc._frozen import freeze
from nodealloc._typed import typed, typed_fields, typed_methods
from nodealloc.errors import ConfigurationError
from nodealloc.podfacts._checks import address
from nodealloc.podfacts._life import LifeState
from nodealloc.podspec import ContainerPort, Pod, Quantity, Resources, effective_requests

__all__ = [
    "HostPort",
    "NodeView",
    "PodOnNode",
    "PodsOnNode",
    "Pressure",
    "Taint",
    "TaintEffect",
    "Transport",
    "host_ports_of",
]

_MAX_PORT = 65535
_ALL = "0.0.0.0"  # noqa: S104 - how a manifest says every address; nothing is bound


class Transport(enum.Enum):
    """What a port speaks."""

    TCP = "TCP"
    UDP = "UDP"
    SCTP = "SCTP"


@typed_fields
@attrs.frozen(kw_only=True)
class HostPort:
    """A port of the node that a pod takes for itself.

    Attributes:
        port: 1 to 65535.
        transport: The same number may be taken once for each.
        address: One of the node's IP addresses; None takes the port on all of them.

    Raises:
        ConfigurationError: No port, or no address.
    """

    port: int = attrs.field()
    transport: Transport = Transport.TCP
    address: str | None = attrs.field(default=None, validator=address)

    def __attrs_post_init__(self) -> None:
        if not 1 <= self.port <= _MAX_PORT:
            raise ConfigurationError(
                f"host port {self.port} is outside 1 to {_MAX_PORT}; leave out what is not asked for"
            )


@typed
def host_ports_of(pod: Pod, /, *, sidecars: bool = True) -> frozenset[HostPort]:
    """Ports of the node that a pod takes for as long as it runs.

    Args:
        pod: Its ports with a `host_port`; a manifest on the node's network is read with one for each.
        sidecars: Whether those of sidecars count; what other init containers
            listen on is free again before the pod is up, and never counts.
    """
    return frozenset(map(host_port_of, host_ports_wanted(pod, sidecars=sidecars)))


def host_ports_wanted(pod: Pod, *, sidecars: bool) -> list[ContainerPort]:
    """The same as its containers have them."""
    # Plain loops: nodes are asked about pods all day, and most of these take no port.
    wanted: list[ContainerPort] = []
    if sidecars:
        for one in pod.init_containers:
            if one.restartable and one.ports:
                wanted += [port for port in one.ports if port.host_port]
    for one in pod.containers:
        if one.ports:
            wanted += [port for port in one.ports if port.host_port]
    return wanted


def host_port_of(port: ContainerPort) -> HostPort:
    return HostPort(
        port=port.host_port,
        transport=Transport(port.protocol),
        address=None if port.host_ip in {"", _ALL} else port.host_ip,
    )


class TaintEffect(enum.Enum):
    """What a taint does to pods that do not tolerate it."""

    NO_SCHEDULE = "NoSchedule"
    PREFER_NO_SCHEDULE = "PreferNoSchedule"
    NO_EXECUTE = "NoExecute"


@typed_fields
@attrs.frozen(kw_only=True)
class Taint:
    """What keeps pods off a node unless they tolerate it.

    Attributes:
        key: Its name.
        value: "" where it has none.
        effect: What it does.
    """

    key: str = attrs.field(validator=filled)
    value: str = ""
    effect: TaintEffect


class Pressure(enum.Enum):
    """What a node is running short of, by the names of its conditions."""

    MEMORY = "MemoryPressure"
    DISK = "DiskPressure"
    PID = "PIDPressure"


@typed_fields
@attrs.frozen(kw_only=True)
class PodOnNode:
    """A pod that is there, with what of it counts when another one is judged.

    Attributes:
        pod: What it asks for.
        requests: What it takes of the node, by resource.
        host_ports: Ports of the node that it takes.
        state: How far it has come. One that is ending still holds what it takes.
    """

    pod: Pod
    requests: Resources = attrs.field(validator=freeze)
    host_ports: frozenset[HostPort] = frozenset()
    state: LifeState = LifeState.SYNCING

    @classmethod
    @typed
    def of(
        cls,
        pod: Pod,
        /,
        *,
        host_ports: Iterable[HostPort] | None = None,
        state: LifeState = LifeState.SYNCING,
    ) -> PodOnNode:
        """A pod with what it requests at its peak, and with its own host ports unless given."""
        return cls(
            pod=pod,
            requests=effective_requests(pod),
            host_ports=host_ports_of(pod) if host_ports is None else frozenset(host_ports),
            state=state,
        )


@typed_methods
class PodsOnNode(Mapping[str, PodOnNode]):
    """The pods of a node by uid, and what they request together. Immutable.

    A changed copy shares what has not changed, so that one change costs the
    same however many pods there are.
    """

    __slots__ = ("_pods", "_requested")

    @typed
    def __init__(self, pods: Iterable[PodOnNode] = (), /) -> None:
        """Of these pods; of two with one uid the later counts."""
        self._pods: Mapping[str, PodOnNode] = {one.pod.uid: one for one in pods}
        self._requested: Mapping[str, Quantity] = _sum(self._pods.values())

    @property
    def requested(self) -> Resources:
        """What all of them take of the node, the ending ones included; what nobody asks for is left out."""
        return self._requested

    def with_pod(self, pod: PodOnNode, /) -> PodsOnNode:
        """With one more pod, or with another state of one that is there."""
        before = self._pods.get(pod.pod.uid)
        taken = _less(self._requested, before.requests) if before else self._requested
        return _made(with_entry(self._pods, pod.pod.uid, pod), _more(taken, pod.requests))

    def without(self, uid: str, /) -> PodsOnNode:
        """Without a pod; one that is not there changes nothing."""
        before = self._pods.get(uid)
        if before is None:
            return self
        return _made(without_entry(self._pods, uid), _less(self._requested, before.requests))

    def __getitem__(self, uid: str, /) -> PodOnNode:
        return self._pods[uid]

    def __iter__(self) -> Iterator[str]:
        return iter(self._pods)

    def __len__(self) -> int:
        return len(self._pods)

    def __repr__(self) -> str:
        return f"PodsOnNode({[*self._pods.values()]!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return PodsOnNode, (tuple(self._pods.values()),)


def _made(pods: Mapping[str, PodOnNode], requested: Mapping[str, Quantity]) -> PodsOnNode:
    made = PodsOnNode.__new__(PodsOnNode)
    made._pods = pods  # noqa: SLF001 - a copy that nobody has seen yet
    made._requested = requested  # noqa: SLF001 - the same
    return made


def _sum(pods: Iterable[PodOnNode]) -> Mapping[str, Quantity]:
    total: Mapping[str, Quantity] = {}
    for one in pods:
        total = _more(total, one.requests)
    return total


def _more(total: Resources, requests: Resources) -> Mapping[str, Quantity]:
    added = {name: total[name] + amount if name in total else amount for name, amount in requests.items()}
    return {name: amount for name, amount in {**total, **added}.items() if amount}


def _less(total: Resources, requests: Resources) -> Mapping[str, Quantity]:
    left = {name: total[name] - amount for name, amount in requests.items() if name in total}
    return {name: amount for name, amount in {**total, **left}.items() if amount}


@typed_methods
@typed_fields
@attrs.frozen(kw_only=True)
class NodeView:
    """A node as whoever judges a pod sees it: at one moment, and not to be changed.

    A judge is a function `(Pod, NodeView) -> Verdict`. Another moment is another
    view, made by `attrs.evolve`, or by `with_pod` and `without`.

    Attributes:
        name: Of the node.
        labels: As it carries them.
        taints: As it carries them.
        allocatable: What pods may take of it, by resource; `pods` counts pods. Of
            what is not named there is nothing.
        elsewhere: Resources that somebody else answers for, or nobody has counted;
            whether there is enough of them is not judged by this view.
            `hugepages-*` stands for pages of every size.
        pods: The pods that are there by uid, with what they take together.
        pressure: What it is running short of.
        shutting_down: Whether the machine is going down.
        is_named: Whether the node is called `name`. Where nobody has said what it is called, its name
            is not judged, and pods for any node may come in.

    Raises:
        ConfigurationError: The node has no name.
    """

    name: str = attrs.field(validator=filled)
    labels: Mapping[str, str] = attrs.field(factory=dict[str, str], validator=freeze)
    taints: tuple[Taint, ...] = ()
    allocatable: Resources = attrs.field(factory=dict[str, Quantity])
    elsewhere: frozenset[str] = frozenset()
    pods: PodsOnNode = attrs.field(factory=PodsOnNode)
    pressure: frozenset[Pressure] = frozenset()
    shutting_down: bool = False
    is_named: bool = True

    def with_pod(self, pod: PodOnNode, /) -> NodeView:
        """The same node with one more pod, or with another state of one that is there."""
        return attrs.evolve(self, pods=self.pods.with_pod(pod))

    def without(self, uid: str, /) -> NodeView:
        """The same node without a pod; one that is not there changes nothing."""
        return attrs.evolve(self, pods=self.pods.without(uid))
