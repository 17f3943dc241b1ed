"""The memory manager's state file, `memory_manager_state`, in the three layouts that kubelets write."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from functools import partial

from nodealloc import _attrs as attrs
from nodealloc._frozen import freeze
from nodealloc._reading import short
from nodealloc._typed import typed_fields
from nodealloc.checkpoint._fnv import fnv1a32
from nodealloc.checkpoint._framing import Framed, check, frame, print_entries, read_entries, unframe
from nodealloc.checkpoint._json import Json, Shape, go_json
from nodealloc.errors import ConfigurationError

__all__ = [
    "MEMORY_STATE",
    "MemoryBlock",
    "MemoryLayout",
    "MemoryManagerState",
    "MemoryNode",
    "MemoryTable",
]

MEMORY_STATE = "memory_manager_state"
"""Name of the file, and its key in a store."""


class MemoryLayout(enum.Enum):
    """How the file is laid out; a file is written back as it was read."""

    V1 = 1
    """Kubelet 1.21 to 1.34."""
    V2 = 2
    """Beside the containers `podEntries`, for memory that belongs to a whole pod."""
    V3 = 3
    """The same once more as text in `data`, whose checksum alone counts."""


@attrs.frozen(kw_only=True)
class MemoryTable:
    """One kind of memory on one NUMA node, in bytes.

    Attributes:
        total: All there is.
        system_reserved: Kept for the system.
        allocatable: May be granted.
        reserved: Is granted.
        free: May still be granted.
    """

    total: int
    system_reserved: int
    allocatable: int
    reserved: int
    free: int


@attrs.frozen(kw_only=True)
class MemoryNode:
    """One NUMA node.

    Attributes:
        number_of_assignments: Containers that hold memory here.
        memory_map: `memory` or `hugepages-…` to its table; None is the kubelet's nil.
        cells: NUMA nodes that are granted together with this one, this one included.
    """

    number_of_assignments: int
    memory_map: Mapping[str, MemoryTable] | None = attrs.field(
        factory=dict[str, MemoryTable], validator=freeze
    )
    cells: tuple[int, ...] | None = ()


@typed_fields
@attrs.frozen(kw_only=True)
class MemoryBlock:
    """Memory that a container was granted.

    Attributes:
        numa_affinity: NUMA nodes that it comes from.
        type: `memory` or `hugepages-…`.
        size: Bytes.
    """

    numa_affinity: tuple[int, ...] | None
    type: str
    size: int


_Blocks = tuple[MemoryBlock, ...] | None
_Entries = Mapping[str, Mapping[str, _Blocks]]


@typed_fields
@attrs.frozen(kw_only=True)
class MemoryManagerState:
    """What the memory manager remembers. None in place of a list is the kubelet's nil: nothing.

    Attributes:
        policy_name: `None` or `Static`.
        machine_state: NUMA node id to its tables.
        entries: Pod uid to container name to blocks.
        pod_entries: Pod uid to the blocks of the pod as a whole; needs `MemoryLayout.V2` or later.
        layout: Which layout `marshal` writes.
        checksum: As it was read; None for a state made here.

    Source: kubelet v1.32 ``cm/memorymanager/state/checkpoint.go``; V2 and V3 as
    on its main branch in 2026.
    """

    policy_name: str
    machine_state: Mapping[int, MemoryNode] | None = attrs.field(
        factory=dict[int, MemoryNode], validator=freeze
    )
    entries: _Entries = attrs.field(factory=dict[str, Mapping[str, _Blocks]], validator=freeze)
    pod_entries: Mapping[str, _Blocks] = attrs.field(factory=dict[str, _Blocks], validator=freeze)
    layout: MemoryLayout = MemoryLayout.V1
    checksum: int | None = attrs.field(default=None, eq=False)
    _data: str | None = attrs.field(default=None, eq=False, repr=False, alias="data")

    def __attrs_post_init__(self) -> None:
        """Refuse pod entries that the layout could not carry."""
        if self.pod_entries and self.layout is MemoryLayout.V1:
            raise ConfigurationError("pod_entries do not fit into MemoryLayout.V1: choose V2 or V3")

    def marshal(self) -> bytes:
        """The file as the kubelet writes it."""
        body = self._body()
        if self.layout is MemoryLayout.V3:
            outer = {name: part for name, part in body.items() if name != "podEntries"}
            return frame(outer, body)
        return go_json({**body, "checksum": fnv1a32(self._printed("MemoryManagerCheckpoint"))}).encode()

    @classmethod
    def unmarshal(cls, data: bytes, /) -> MemoryManagerState:
        """Read a file of any layout."""
        shape = Shape(MEMORY_STATE)
        framed = unframe(shape, MEMORY_STATE, data, ("policyName", "machineState"))
        layout = MemoryLayout.V2 if "podEntries" in framed.body else MemoryLayout.V1
        return cls._from_body(shape, framed, MemoryLayout.V3 if framed.data is not None else layout)

    def verify(self) -> None:
        """Raise `CorruptCheckpointError` when content and checksum disagree."""
        if self.checksum is not None:
            names = ("MemoryManagerCheckpoint", f"MemoryManagerCheckpoint{self.layout.name}")
            check(MEMORY_STATE, self.checksum, self._data, map(self._printed, names))

    @classmethod
    def _from_body(cls, shape: Shape, framed: Framed, layout: MemoryLayout) -> MemoryManagerState:
        body = framed.body
        machine: dict[int, MemoryNode] | None = None
        if body.get("machineState") is not None:
            nodes = shape.mapping(body["machineState"], "$.machineState")
            machine = {
                shape.number_key(key, "$.machineState"): _read_node(
                    shape, node, f"$.machineState[{key[:20]}]"
                )
                for key, node in nodes.items()
            }
        entries = read_entries(shape, body, partial(_read_blocks, shape))
        pods: dict[str, _Blocks] = {}
        for pod, entry in shape.mapping(body.get("podEntries", {}), "$.podEntries").items():
            path = f"$.podEntries[{short(pod)}]"
            blocks = shape.fields(entry, path, (), ("memoryBlocks",)).get("memoryBlocks")
            pods[pod] = _read_blocks(shape, blocks, path)
        policy = shape.text(body.get("policyName"), "$.policyName")
        number = shape.number(framed.checksum, "$.checksum", bits=64)
        shape.check()
        return cls(
            policy_name=policy,
            machine_state=machine,
            entries=entries,
            pod_entries=pods,
            layout=layout,
            checksum=number,
            data=framed.data,
        )

    def _body(self) -> dict[str, Json]:
        machine: Json = None
        if self.machine_state is not None:
            nodes = {str(key): _node_json(node) for key, node in self.machine_state.items()}
            machine = dict(sorted(nodes.items()))
        body: dict[str, Json] = {"policyName": self.policy_name, "machineState": machine}
        if self.entries:
            body["entries"] = {
                pod: {name: _blocks_json(blocks) for name, blocks in sorted(held.items())}
                for pod, held in sorted(self.entries.items())
            }
        if self.pod_entries:
            body["podEntries"] = {
                pod: {"memoryBlocks": _blocks_json(blocks)}
                for pod, blocks in sorted(self.pod_entries.items())
            }
        return body

    def _printed(self, type_name: str) -> bytes:
        machine = "<nil>"
        if self.machine_state is not None:
            nodes = [f"{key}:<*>{_print_node(node)}" for key, node in sorted(self.machine_state.items())]
            machine = f"map[{' '.join(nodes)}]"
        whole_pods = ""
        if self.layout is not MemoryLayout.V1:
            listed = " ".join(
                f"{pod}:{{MemoryBlocks:([]state.Block){_print_blocks(blocks)}}}"
                for pod, blocks in sorted(self.pod_entries.items())
            )
            whole_pods = f" PodEntries:(state.PodMemoryAssignments)map[{listed}]"
        entries = print_entries(self.entries, _print_blocks)
        return (
            f"(*state.{type_name}){{PolicyName:(string){self.policy_name} "
            f"MachineState:(state.NUMANodeMap){machine} "
            f"Entries:(state.ContainerMemoryAssignments){entries}{whole_pods} "
            "Checksum:(checksum.Checksum)0}"
        ).encode()


_TABLE = ("total", "systemReserved", "allocatable", "reserved", "free")


def _read_node(shape: Shape, value: object, path: str) -> MemoryNode:
    found = shape.fields(value, path, ("numberOfAssignments", "memoryMap", "cells"))
    tables: dict[str, MemoryTable] | None = None
    if found.get("memoryMap") is not None:
        tables = {
            kind: _read_table(shape, table, f"{path}.memoryMap[{short(kind)}]")
            for kind, table in shape.mapping(found["memoryMap"], f"{path}.memoryMap").items()
        }
    count = found.get("numberOfAssignments")
    return MemoryNode(
        number_of_assignments=shape.number(count, f"{path}.numberOfAssignments", bits=64, signed=True),
        memory_map=tables,
        cells=_read_ids(shape, found.get("cells"), f"{path}.cells"),
    )


def _read_table(shape: Shape, value: object, path: str) -> MemoryTable:
    found = shape.fields(value, path, _TABLE)
    total, system, allocatable, reserved, free = (
        shape.number(found.get(name), f"{path}.{name}", bits=64) for name in _TABLE
    )
    return MemoryTable(
        total=total, system_reserved=system, allocatable=allocatable, reserved=reserved, free=free
    )


def _read_ids(shape: Shape, value: object, path: str) -> tuple[int, ...] | None:
    if value is None:
        return None
    return tuple(shape.number(number, path, bits=64, signed=True) for number in shape.sequence(value, path))


def _read_blocks(shape: Shape, value: object, path: str) -> _Blocks:
    if value is None:
        return None
    blocks: list[MemoryBlock] = []
    for index, block in enumerate(shape.sequence(value, path)):
        here = f"{path}[{index}]"
        found = shape.fields(block, here, ("numaAffinity", "type", "size"))
        blocks.append(
            MemoryBlock(
                numa_affinity=_read_ids(shape, found.get("numaAffinity"), f"{here}.numaAffinity"),
                type=shape.text(found.get("type"), f"{here}.type"),
                size=shape.number(found.get("size"), f"{here}.size", bits=64),
            )
        )
    return tuple(blocks)


def _node_json(node: MemoryNode) -> Json:
    tables: Json = None
    if node.memory_map is not None:
        tables = {
            kind: {
                "total": table.total,
                "systemReserved": table.system_reserved,
                "allocatable": table.allocatable,
                "reserved": table.reserved,
                "free": table.free,
            }
            for kind, table in sorted(node.memory_map.items())
        }
    return {"numberOfAssignments": node.number_of_assignments, "memoryMap": tables, "cells": node.cells}


def _blocks_json(blocks: _Blocks) -> Json:
    if blocks is None:
        return None
    return [{"numaAffinity": block.numa_affinity, "type": block.type, "size": block.size} for block in blocks]


def _print_node(node: MemoryNode) -> str:
    tables = "<nil>"
    if node.memory_map is not None:
        listed = [
            f"{kind}:<*>{{TotalMemSize:(uint64){table.total} SystemReserved:(uint64){table.system_reserved} "
            f"Allocatable:(uint64){table.allocatable} Reserved:(uint64){table.reserved} "
            f"Free:(uint64){table.free}}}"
            for kind, table in sorted(node.memory_map.items())
        ]
        tables = f"map[{' '.join(listed)}]"
    return (
        f"{{NumberOfAssignments:(int){node.number_of_assignments} "
        f"MemoryMap:(map[v1.ResourceName]*state.MemoryTable){tables} Cells:([]int){_print_ids(node.cells)}}}"
    )


def _print_ids(ids: tuple[int, ...] | None) -> str:
    return "<nil>" if ids is None else f"[{' '.join(map(str, ids))}]"


def _print_blocks(blocks: _Blocks) -> str:
    if blocks is None:
        return "<nil>"
    listed = [
        f"{{NUMAAffinity:([]int){_print_ids(block.numa_affinity)} "
        f"Type:(v1.ResourceName){block.type} Size:(uint64){block.size}}}"
        for block in blocks
    ]
    return f"[{' '.join(listed)}]"
