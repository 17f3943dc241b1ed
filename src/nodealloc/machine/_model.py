"""Values only: the machine that CPUs and NUMA nodes make up. No I/O."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, TypeAlias

from nodealloc import _attrs as attrs
from nodealloc._lazy import lazy
from nodealloc._typed import typed_fields, typed_methods
from nodealloc.idset import CPUSet, NodeSet
from nodealloc.machine import _checks as checks
from nodealloc.machine._parts import Cpu, NumaNode

__all__ = ["LEVELS", "Level", "Machine"]

Level: TypeAlias = Literal["core", "cluster", "l3", "die", "socket"]
"""A kind of group that a CPU lies in, by the name of its field in `Cpu`."""

LEVELS: tuple[Level, ...] = ("socket", "die", "l3", "cluster", "core")
"""All levels, from the outermost."""

_DECIMAL_BITS = 14_000
"""Longest mask that a fingerprint names in decimal digits; Python refuses to write 4300 of them."""


@typed_methods
@typed_fields
@attrs.frozen(kw_only=True, slots=False)
class Machine:
    """What a node has, as far as allocation is concerned.

    Construction raises `ConfigurationError` for what no machine can be: an id that
    stands twice or out of order, a node and its CPUs that do not name each
    other, a core in two sockets, a CPU online and offline at once, distances
    that lack a pair or go below 0.

    Attributes:
        name: For people; "" when unknown.
        cpus: Online CPUs, ascending by id.
        numa_nodes: Ascending by id; at least one where the machine has memory.
        distances: `distances[a][b]` from node a to node b, for every pair of
            ids in `numa_nodes`; None when the kernel gives none.
        offline: CPUs that exist but are not online.
        isolated: Online CPUs that the kernel's scheduler leaves alone.
    """

    name: str = ""
    cpus: tuple[Cpu, ...]
    numa_nodes: tuple[NumaNode, ...] = ()
    distances: Mapping[int, Mapping[int, int]] | None = attrs.field(default=None, hash=False)
    offline: CPUSet = CPUSet()
    isolated: CPUSet = CPUSet()

    def __attrs_post_init__(self) -> None:
        checks.check_cpus(self.cpus)
        checks.check_nodes(self.cpus, self.numa_nodes)
        checks.check_offline(self.online, self.offline, self.isolated)
        checks.check_distances((node.id for node in self.numa_nodes), self.distances)

    def __getstate__(self) -> Mapping[str, object]:
        """The fields alone: what was worked out from them is worked out again."""
        return {field.name: getattr(self, field.name) for field in attrs.fields(Machine)}

    @lazy
    def online(self) -> CPUSet:
        """All online CPUs."""
        return CPUSet(cpu.id for cpu in self.cpus)

    @property
    def nodes(self) -> NodeSet:
        """All NUMA node ids."""
        return self._nodes

    @lazy
    def _nodes(self) -> NodeSet:
        # A property in front of it, because type checkers match no other descriptor with a Protocol.
        return NodeSet(node.id for node in self.numa_nodes)

    @lazy
    def cpu(self) -> Mapping[int, Cpu]:
        """CPUs by id."""
        return MappingProxyType({cpu.id: cpu for cpu in self.cpus})

    @lazy
    def node(self) -> Mapping[int, NumaNode]:
        """NUMA nodes by id."""
        return MappingProxyType({node.id: node for node in self.numa_nodes})

    @lazy
    def _groups(self) -> Mapping[Level, Mapping[int, CPUSet]]:
        return {level: self._groups_of(level) for level in LEVELS}

    def _groups_of(self, level: Level) -> Mapping[int, CPUSet]:
        masks: dict[int, int] = {}
        for cpu in self.cpus:
            group: int | None = getattr(cpu, level)
            if group is not None:
                masks[group] = masks.get(group, 0) | 1 << cpu.id
        return MappingProxyType({group: CPUSet.from_mask(masks[group]) for group in sorted(masks)})

    def groups(self, level: Level, /) -> Mapping[int, CPUSet]:
        """Groups of one level by id, ascending; CPUs without such a group are in none.

        >>> from nodealloc.machine import machine_from_text
        >>> dict(machine_from_text("1 socket x 2 cores x 2 threads").groups("core"))
        {0: CPUSet('0,2'), 1: CPUSet('1,3')}
        """
        return self._groups[level]

    @lazy
    def memory_bytes(self) -> int:
        """Memory of all NUMA nodes together, in bytes."""
        return sum(node.memory_bytes for node in self.numa_nodes)

    def fingerprint(self) -> str:
        """Name of what remembered allocations rest on: 32 hexadecimal digits.

        Two machines have the same fingerprint when they have the same online
        CPUs in the same groups, the same kinds, NUMA nodes and distances. Left
        out is what changes from boot to boot without moving a CPU: bytes of
        memory, huge page pools, names, offline and isolated CPUs. The value is
        the same in every process and on every version of Python.
        """
        shape = (
            [(c.id, c.core, c.socket, c.numa_nodes, c.l3, c.die, c.cluster, c.kind) for c in self.cpus],
            [(node.id, _named(node.cpus.mask)) for node in self.numa_nodes],
            self.distances and [(a, sorted(row.items())) for a, row in sorted(self.distances.items())],
        )
        return hashlib.blake2b(repr(shape).encode(), digest_size=16).hexdigest()


def _named(mask: int) -> int | str:
    return mask if mask.bit_length() <= _DECIMAL_BITS else hex(mask)
