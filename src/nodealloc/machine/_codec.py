"""A machine as JSON, and back; written by hand, so that looking at a machine loads no codec library."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodealloc._reading import MAX_DOCUMENT_BYTES, Json, under
from nodealloc._typed import typed
from nodealloc.errors import DecodeError, Fault
from nodealloc.idset import CPUSet
from nodealloc.machine._checks import MOST_NODES, cpus_by_node
from nodealloc.machine._model import LEVELS, Machine
from nodealloc.machine._parts import Cpu, NumaNode
from nodealloc.machine._reading import MachineReader

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["machine_from_json", "machine_to_json"]

_SOURCE = "machine JSON"


@typed
def machine_to_json(machine: Machine, /) -> dict[str, Json]:
    """A machine as values that `json.dumps` takes; `machine_from_json` gives it back.

    The shape is that of `python -m nodealloc topology --format json`, with
    `name`, `kind` and the machine's own group ids kept.

    Source: ours.
    """
    return {
        "name": machine.name,
        "cpus": {str(cpu.id): _cpu_to_json(cpu) for cpu in machine.cpus},
        "numa_nodes": {
            str(node.id): {
                "cpus": [*node.cpus],
                "memory_bytes": node.memory_bytes,
                "hugepages": {str(size): count for size, count in sorted(node.hugepages.items())},
            }
            for node in machine.numa_nodes
        },
        "distances": _distances_to_json(machine),
        "offline_cpus": [*machine.offline],
        "isolated_cpus": [*machine.isolated],
    }


def _cpu_to_json(cpu: Cpu) -> dict[str, Json]:
    return {
        "socket": cpu.socket,
        "core": cpu.core,
        "l3": cpu.l3,
        "die": cpu.die,
        "cluster": cpu.cluster,
        "numa_nodes": [*cpu.numa_nodes],
        **({"kind": cpu.kind} if cpu.kind else {}),
    }


def _distances_to_json(machine: Machine) -> dict[str, Json] | None:
    if machine.distances is None:
        return None
    nodes = [*machine.nodes]
    matrix: list[Json] = [[machine.distances[a][b] for b in nodes] for a in nodes]
    return {"nodes": [*nodes], "matrix": matrix}


@typed
def machine_from_json(
    data: Mapping[str, object], /, *, source: str = _SOURCE, max_bytes: int = MAX_DOCUMENT_BYTES
) -> Machine:
    """Read a machine from what `json.loads` gave.

    Reads what `machine_to_json` and `python -m nodealloc topology` write. Lists
    of ids may be arrays or strings in the Linux list format. A core that is
    null is a core of its own, sockets that are null are one. CPUs may leave
    out `numa_nodes`, or nodes their `cpus`: either follows from the other.

    Args:
        data: As `machine_to_json` writes it.
        source: What to call it in an error, such as a file name.
        max_bytes: A description that takes more, without blanks and quotes, is
            refused unread; one of 2,000 CPUs takes half of it.

    Raises:
        DecodeError: Every entry that does not fit, with its path; or what no
            machine can be, at `$`.
    """
    reader = MachineReader(source)
    if not reader.fits(data, max_bytes):
        reader.check()
    whole = reader.mapping(data, "$")
    homes, nodes = _nodes_from_json(reader, whole.get("numa_nodes"))
    cpus = _cpus_from_json(reader, reader.mapping(whole.get("cpus"), "$.cpus"), homes)
    distances = _distances_from_json(reader, whole.get("distances"))
    name = reader.maybe_text(whole.get("name"), "$.name")
    offline = reader.cpus(whole.get("offline_cpus"), "$.offline_cpus")
    isolated = reader.cpus(whole.get("isolated_cpus"), "$.isolated_cpus")
    if not cpus:
        reader.fault("$.cpus", "a machine has at least one CPU")
    reader.check()
    local = cpus_by_node(cpus)
    try:
        return Machine(
            name=name,
            cpus=cpus,
            numa_nodes=tuple(_with_cpus(node, local.get(node.id, CPUSet())) for node in nodes),
            distances=distances,
            offline=offline,
            isolated=isolated,
        )
    except ValueError as error:
        raise DecodeError(source, [Fault("$", str(error))]) from error


def _with_cpus(node: NumaNode, naming: CPUSet) -> NumaNode:
    return NumaNode(
        id=node.id, cpus=node.cpus or naming, memory_bytes=node.memory_bytes, hugepages=node.hugepages
    )


def _nodes_from_json(reader: MachineReader, value: object) -> tuple[dict[int, list[int]], list[NumaNode]]:
    """Nodes by ascending id, and each CPU's nodes as the nodes name them."""
    homes: dict[int, list[int]] = {}
    nodes: list[NumaNode] = []
    entries = reader.maybe_mapping(value, "$.numa_nodes")
    if len(entries) > MOST_NODES:
        reader.fault("$.numa_nodes", f"{len(entries)} NUMA nodes; Linux has at most {MOST_NODES}")
        return homes, nodes
    for key, entry in entries.items():
        path = under("$.numa_nodes", key)
        number = reader.key(key, path)
        fields = reader.mapping(entry, path)
        cpus = reader.cpus(fields.get("cpus"), f"{path}.cpus")
        memory = reader.size(fields.get("memory_bytes", 0), f"{path}.memory_bytes")
        pools = _pools_from_json(reader, fields.get("hugepages"), f"{path}.hugepages")
        if number is not None:
            nodes.append(NumaNode(id=number, cpus=cpus, memory_bytes=memory, hugepages=pools))
    nodes.sort(key=lambda node: node.id)
    for node in nodes:
        for cpu in node.cpus:
            homes.setdefault(cpu, []).append(node.id)
    return homes, nodes


def _pools_from_json(reader: MachineReader, value: object, path: str) -> dict[int, int]:
    pools: dict[int, int] = {}
    for key, count in reader.maybe_mapping(value, path).items():
        here = under(path, key)
        size = reader.key(key, here, at_most=1 << 62)
        number = reader.size(count, here)
        if size == 0:
            reader.fault(here, "a page of 0 bytes")
        elif size:
            pools[size] = number
    return dict(sorted(pools.items()))


def _cpus_from_json(
    reader: MachineReader, entries: Mapping[str, object], homes: Mapping[int, Sequence[int]]
) -> tuple[Cpu, ...]:
    cpus: list[Cpu] = []
    # Sockets that are null are one: the group of the smallest such CPU.
    no_socket: int | None = None
    numbered = ((reader.key(key, under("$.cpus", key)), key, entry) for key, entry in entries.items())
    for cpu, key, entry in sorted(
        ((cpu, key, entry) for cpu, key, entry in numbered if cpu is not None), key=lambda row: row[0]
    ):
        path = under("$.cpus", key)
        fields = reader.mapping(entry, path)
        ids = {level: reader.optional(fields.get(level), f"{path}.{level}") for level in LEVELS}
        named = fields.get("numa_nodes")
        socket = ids["socket"]
        if socket is None:
            no_socket = socket = cpu if no_socket is None else no_socket
        core = ids["core"]
        cpus.append(
            Cpu(
                id=cpu,
                core=cpu if core is None else core,
                socket=socket,
                numa_nodes=(
                    tuple(homes.get(cpu, ())) if named is None else reader.ids(named, f"{path}.numa_nodes")
                ),
                l3=ids["l3"],
                die=ids["die"],
                cluster=ids["cluster"],
                kind=reader.maybe_text(fields.get("kind"), f"{path}.kind"),
            )
        )
    return tuple(cpus)


def _distances_from_json(reader: MachineReader, value: object) -> dict[int, dict[int, int]] | None:
    if value is None:
        return None
    fields = reader.mapping(value, "$.distances")
    nodes = [
        reader.size(node, f"$.distances.nodes[{place}]")
        for place, node in enumerate(reader.maybe_sequence(fields.get("nodes"), "$.distances.nodes"))
    ]
    rows = reader.maybe_sequence(fields.get("matrix"), "$.distances.matrix")
    if len(rows) != len(nodes):
        reader.fault("$.distances.matrix", f"{len(rows)} rows for {len(nodes)} nodes")
        return None
    distances: dict[int, dict[int, int]] = {}
    for place, (node, row) in enumerate(zip(nodes, rows, strict=True)):
        path = f"$.distances.matrix[{place}]"
        columns = reader.maybe_sequence(row, path)
        if len(columns) != len(nodes):
            reader.fault(path, f"{len(columns)} distances for {len(nodes)} nodes")
            continue
        distances[node] = {
            other: reader.size(far, f"{path}[{column}]")
            for column, (other, far) in enumerate(zip(nodes, columns, strict=True))
        }
    return distances
