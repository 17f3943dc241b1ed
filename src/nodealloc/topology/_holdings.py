"""Values only: what is held, what is left, and where a container may run."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

from nodealloc import _attrs as attrs
from nodealloc._arguments import whole
from nodealloc._frozen import Frozen, freeze
from nodealloc._typed import typed_fields, typed_fields_on_error, typed_on_error
from nodealloc.errors import ConfigurationError
from nodealloc.idset import CPUSet, NodeSet
from nodealloc.topology._claims import Owner

__all__ = ["Confinement", "Holding", "ResourceUse"]


@typed_fields_on_error
@attrs.frozen(kw_only=True)
class Holding:
    """What one owner holds of one resource.

    Attributes:
        owner: Workload and member.
        resource: `cpu`, `memory`, `hugepages-2Mi`, `example.com/gpu`.
        amount: In the resource's unit: whole CPUs, bytes, devices.
        nodes: NUMA nodes that it comes from; empty where that is not known.
        cpus: Which, where the resource is CPUs; else empty.
        ids: Which, where they have names: devices, cards; ascending.

    Raises:
        ConfigurationError: Less than nothing, or another number of CPUs than `amount`.
    """

    owner: Owner
    resource: str
    amount: int = attrs.field(validator=whole(0))
    nodes: NodeSet = NodeSet()
    cpus: CPUSet = CPUSet()
    ids: tuple[str, ...] = ()

    def __attrs_post_init__(self) -> None:
        if self.cpus and len(self.cpus) != self.amount:
            raise ConfigurationError(
                f"{self.amount} {self.resource} are held, and CPUs {self.cpus} are named"
            )

    @property
    def what(self) -> str:
        """Which, in words: `2-3,18-19`, `gpu-0, gpu-1`; "" where they have no names."""
        return str(self.cpus) if self.cpus else ", ".join(self.ids)


@typed_fields
@attrs.frozen(kw_only=True)
class ResourceUse:
    """One resource on one NUMA node, in whole CPUs, bytes or devices.

    Attributes:
        resource: Its name.
        node: NUMA node id; None for what has no node.
        allocatable: What could be held were the node empty.
        available: What nobody holds now.
    """

    resource: str
    node: int | None
    allocatable: int
    available: int


@typed_fields
@attrs.frozen(kw_only=True)
class Confinement:
    """Where one container may run, and what is its own.

    Attributes:
        cpus: Where it runs: its own CPUs, or the shared pool. None where nobody
            gives out CPUs.
        exclusive: Those of `cpus` that are its own.
        mems: NUMA nodes that it takes memory from; None for all.
        devices: Resource to the ids that it uses; a resource that is not named
            here is one of which nobody has said.
    """

    cpus: CPUSet | None = None
    exclusive: CPUSet = CPUSet()
    mems: NodeSet | None = None
    devices: Mapping[str, tuple[str, ...]] = attrs.field(
        factory=Frozen[str, tuple[str, ...]], validator=freeze
    )

    @classmethod
    @typed_on_error
    def of(cls, *parts: Confinement) -> Confinement:
        """What several allocators say, as one: where two speak of the same, only where both allow."""
        return reduce(_both, parts, cls())


def _both(one: Confinement, other: Confinement, /) -> Confinement:
    return Confinement(
        cpus=other.cpus if one.cpus is None else one.cpus if other.cpus is None else one.cpus & other.cpus,
        exclusive=one.exclusive | other.exclusive,
        mems=other.mems if one.mems is None else one.mems if other.mems is None else one.mems & other.mems,
        devices={**one.devices, **other.devices},
    )
