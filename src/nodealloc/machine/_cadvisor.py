"""A machine as cAdvisor describes it to the kubelet (`/api/v1.3/machine`, `MachineInfo`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodealloc._reading import MAX_DOCUMENT_BYTES
from nodealloc._typed import typed
from nodealloc.errors import DecodeError, Fault
from nodealloc.idset import CPUSet
from nodealloc.machine._checks import MOST_NODES
from nodealloc.machine._model import Machine
from nodealloc.machine._parts import Cpu, NumaNode
from nodealloc.machine._reading import MachineReader

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["machine_from_cadvisor"]

_KIB = 1024


@typed
def machine_from_cadvisor(
    data: Mapping[str, object], /, *, name: str = "", max_bytes: int = MAX_DOCUMENT_BYTES
) -> Machine:
    """Read cAdvisor's machine description, as the kubelet does, from what `json.loads` gave.

    Groups go by the ids that the kubelet gives them, so that decisions are the
    same: a core by its smallest CPU, a socket by `socket_id`, an L3 by the
    first of the core's `uncore_caches`. Without one, `l3` is None; a cache
    that covers a whole NUMA node is no uncore cache there.

    Args:
        data: What cAdvisor answers at `/api/v1.3/machine`, or a kubelet at `/spec`.
        name: Of the machine, for messages and pictures.
        max_bytes: A description that takes more, without blanks and quotes, is refused unread.

    Raises:
        DecodeError: Every entry that does not fit, with its path; or what no
            machine can be, at `$.topology`.

    Source: kubelet v1.32 ``cm/cpumanager/topology/topology.go`` and cAdvisor
    ``utils/sysinfo``.
    """
    reader = MachineReader("cAdvisor machine description")
    if not reader.fits(data, max_bytes):
        reader.check()
    entries = reader.maybe_sequence(reader.mapping(data, "$").get("topology"), "$.topology")
    if len(entries) > MOST_NODES:
        reader.fault("$.topology", f"{len(entries)} NUMA nodes; Linux has at most {MOST_NODES}")
        reader.check()
    nodes: dict[int, NumaNode] = {}
    rows: dict[int, list[int]] = {}
    cpus: list[Cpu] = []
    taken: set[int] = set()
    for place, entry in enumerate(entries):
        path = f"$.topology[{place}]"
        fields = reader.mapping(entry, path)
        number = reader.number(fields.get("node_id"), f"{path}.node_id")
        if number in nodes:
            reader.fault(f"{path}.node_id", f"node {number} is described twice")
        own = _cores(reader, fields, path, number, taken)
        cpus += own
        nodes[number] = _node(reader, fields, path, number, own)
        rows[number] = _row(reader, fields, path)
    if not cpus:
        reader.fault("$.topology", "no node has a core; a machine has at least one CPU")
    distances = _distances(reader, rows)
    reader.check()
    try:
        return Machine(
            name=name,
            cpus=tuple(sorted(cpus, key=lambda cpu: cpu.id)),
            numa_nodes=tuple(nodes[number] for number in sorted(nodes)),
            distances=distances,
        )
    except ValueError as error:
        raise DecodeError("cAdvisor machine description", [Fault("$.topology", str(error))]) from error


def _node(
    reader: MachineReader, fields: Mapping[str, object], path: str, number: int, own: list[Cpu]
) -> NumaNode:
    return NumaNode(
        id=number,
        cpus=CPUSet(cpu.id for cpu in own),
        memory_bytes=reader.size(fields.get("memory", 0), f"{path}.memory"),
        hugepages=_pools(reader, fields, path),
    )


def _row(reader: MachineReader, fields: Mapping[str, object], path: str) -> list[int]:
    """The distances of a node, in the order of the nodes."""
    return [
        reader.size(far, f"{path}.distances[{column}]")
        for column, far in enumerate(reader.maybe_sequence(fields.get("distances"), f"{path}.distances"))
    ]


def _cores(
    reader: MachineReader, fields: Mapping[str, object], path: str, node: int, taken: set[int]
) -> list[Cpu]:
    """CPUs of a node; those of nodes before it are taken, and these then are, too."""
    cpus: list[Cpu] = []
    for place, entry in enumerate(reader.maybe_sequence(fields.get("cores"), f"{path}.cores")):
        where = f"{path}.cores[{place}]"
        core = reader.mapping(entry, where)
        threads = reader.ids(core.get("thread_ids"), f"{where}.thread_ids")
        if not threads:
            reader.fault(f"{where}.thread_ids", "a core without a CPU")
            continue
        if not taken.isdisjoint(threads):
            twice = next(cpu for cpu in threads if cpu in taken)
            reader.fault(f"{where}.thread_ids", f"CPU {twice} is described twice")
            continue
        taken.update(threads)
        socket = reader.size(core.get("socket_id"), f"{where}.socket_id")
        caches = reader.maybe_sequence(core.get("uncore_caches"), f"{where}.uncore_caches")
        l3 = None
        if caches:
            first = reader.mapping(caches[0], f"{where}.uncore_caches[0]")
            l3 = reader.size(first.get("id"), f"{where}.uncore_caches[0].id")
        cpus += [Cpu(id=cpu, core=threads[0], socket=socket, numa_nodes=(node,), l3=l3) for cpu in threads]
    return cpus


def _pools(reader: MachineReader, fields: Mapping[str, object], path: str) -> dict[int, int]:
    pools: dict[int, int] = {}
    for place, entry in enumerate(reader.maybe_sequence(fields.get("hugepages"), f"{path}.hugepages")):
        where = f"{path}.hugepages[{place}]"
        pool = reader.mapping(entry, where)
        size = reader.size(pool.get("page_size"), f"{where}.page_size")
        count = reader.size(pool.get("num_pages"), f"{where}.num_pages")
        if size:
            pools[size * _KIB] = count
        else:
            reader.fault(f"{where}.page_size", "a page of 0 KiB")
    return dict(sorted(pools.items()))


def _distances(reader: MachineReader, rows: Mapping[int, list[int]]) -> dict[int, dict[int, int]] | None:
    """Rows have a column for each node, ascending; a machine that gives none has no distances."""
    ids = sorted(rows)
    if not any(rows.values()):
        return None
    for node in ids:
        if len(rows[node]) != len(ids):
            reader.fault("$.topology", f"node {node} has {len(rows[node])} distances for {len(ids)} nodes")
    return {node: dict(zip(ids, rows[node], strict=False)) for node in ids}
