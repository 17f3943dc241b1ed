"""Values only: a machine's sockets, NUMA nodes, caches and cores as masks."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import TYPE_CHECKING, TypeVar

from nodealloc import _attrs as attrs
from nodealloc._arguments import not_a_machine
from nodealloc.errors import ConfigurationError

if TYPE_CHECKING:
    from nodealloc.machine import Cpu, Machine

__all__ = ["CpuLayout"]

K = TypeVar("K", bound=Hashable)


@attrs.frozen(kw_only=True, cache_hash=True)
class CpuLayout:
    """What a picker asks of a machine, counted once.

    Each group of CPUs is a mask; groups of one sort stand in order of their
    ids, so that an index into a tuple is a rank as well. Build it with `of`,
    once for each machine.

    Attributes:
        cpus: All online CPUs.
        sockets: CPUs of each socket.
        nodes: CPUs of each NUMA node that has CPUs.
        node_ids: Ids of these nodes, in the same order.
        caches: CPUs of each last-level (uncore) cache; where the kernel names
            none, those of the socket.
        cores: CPUs of each core.
        smallest_part: CPUs of the smallest socket or NUMA node.
        cache_share: CPUs of a cache on the average, rounded down.
        threads_per_core: CPUs of the largest core.
        numa_first: Whether NUMA nodes are at least as large as sockets.
        uniform: Whether all cores are of one size.
        node_sockets: For each node the sockets on it, as indexes.
        socket_nodes: For each socket its nodes, as indexes.
        node_caches: For each node the caches on it, as indexes.
        node_cores: For each node its cores as masks, by id.
        socket_cores: For each socket its cores, by id.
        cache_cores: For each cache its cores, by id.
    """

    cpus: int
    sockets: tuple[int, ...]
    nodes: tuple[int, ...]
    node_ids: tuple[int, ...]
    caches: tuple[int, ...]
    cores: tuple[int, ...]
    smallest_part: int
    cache_share: int
    threads_per_core: int
    numa_first: bool
    uniform: bool
    node_sockets: tuple[tuple[int, ...], ...]
    socket_nodes: tuple[tuple[int, ...], ...]
    node_caches: tuple[tuple[int, ...], ...]
    node_cores: tuple[tuple[int, ...], ...]
    socket_cores: tuple[tuple[int, ...], ...]
    cache_cores: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, machine: Machine, /) -> CpuLayout:
        """The layout of a machine; raises `ConfigurationError` for one without online CPUs.

        A CPU that is local to several NUMA nodes counts for the lowest; one
        that is local to none counts for the machine's lowest node.

        Source: kubelet ``cm/cpumanager/topology/topology.go``, where sizes are
        divided out of totals; here every group is counted by itself, so that
        offline siblings and cores of different sizes come out right.
        """
        if not hasattr(machine, "numa_nodes"):
            raise not_a_machine(machine)
        if not machine.cpus:
            raise ConfigurationError(
                f"machine {machine.name!r} has no online CPU: nothing could be allocated"
            )
        lowest = machine.numa_nodes[0].id if machine.numa_nodes else 0
        nodes = _groups(machine.cpus, lambda cpu: cpu.numa_nodes[0] if cpu.numa_nodes else lowest)
        sockets = tuple(_groups(machine.cpus, lambda cpu: cpu.socket).values())
        caches = tuple(_groups(machine.cpus, _cache).values())
        cores = tuple(_groups(machine.cpus, lambda cpu: cpu.core).values())
        node_masks = tuple(nodes.values())
        sizes = {core.bit_count() for core in cores}
        return cls(
            cpus=machine.online.mask,
            sockets=sockets,
            nodes=node_masks,
            node_ids=tuple(nodes),
            caches=caches,
            cores=cores,
            smallest_part=min(part.bit_count() for part in (*sockets, *node_masks)),
            cache_share=len(machine.cpus) // len(caches),
            threads_per_core=max(sizes),
            numa_first=len(sockets) >= len(node_masks),
            uniform=len(sizes) == 1,
            node_sockets=_indexes(node_masks, sockets),
            socket_nodes=_indexes(sockets, node_masks),
            node_caches=_indexes(node_masks, caches),
            node_cores=_members(node_masks, cores),
            socket_cores=_members(sockets, cores),
            cache_cores=_members(caches, cores),
        )

    def whole_cores(self, cpus: int, /) -> int:
        """Those CPUs of the mask whose whole core is in it."""
        whole = 0
        for core in self.cores:
            if core & cpus == core:
                whole |= core
        return whole

    def siblings(self, cpus: int, /) -> int:
        """All CPUs of the cores that the mask touches."""
        touched = 0
        for core in self.cores:
            if core & cpus:
                touched |= core
        return touched

    def on_nodes(self, node_mask: int, /) -> int:
        """CPUs of the NUMA nodes in a mask; nodes without CPUs add nothing."""
        found, nodes = 0, self.nodes
        for index, node in enumerate(self.node_ids):
            if node_mask >> node & 1:
                found |= nodes[index]
        return found

    def nodes_of(self, cpus: int, /) -> int:
        """NUMA nodes that the CPUs stand on, as a mask of node ids."""
        found = 0
        for node, members in zip(self.node_ids, self.nodes, strict=True):
            if members & cpus:
                found |= 1 << node
        return found

    def sockets_on(self, node_mask: int, /) -> int:
        """CPUs of all sockets that have a CPU on the NUMA nodes in a mask."""
        local = self.on_nodes(node_mask)
        found = 0
        for socket in self.sockets:
            if socket & local:
                found |= socket
        return found


def _cache(cpu: Cpu) -> tuple[int, int]:
    """Caches by id first; CPUs without one form a group a socket, behind them."""
    return (0, cpu.l3) if cpu.l3 is not None else (1, cpu.socket)


def _groups(cpus: Iterable[Cpu], key: Callable[[Cpu], K]) -> dict[K, int]:
    masks: dict[K, int] = {}
    for cpu in cpus:
        group = key(cpu)
        masks[group] = masks.get(group, 0) | 1 << cpu.id
    return dict(sorted(masks.items(), key=_first))


def _first(item: tuple[K, int]) -> tuple[K]:
    return (item[0],)


def _indexes(outer: Iterable[int], inner: Iterable[int]) -> tuple[tuple[int, ...], ...]:
    listed = list(inner)
    return tuple(tuple(i for i, mask in enumerate(listed) if mask & group) for group in outer)


def _members(outer: Iterable[int], cores: Iterable[int]) -> tuple[tuple[int, ...], ...]:
    listed = list(cores)
    return tuple(tuple(core for core in listed if core & group) for group in outer)
