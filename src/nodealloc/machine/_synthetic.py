"""Machines from a short text: what a laptop cannot be, in one line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from nodealloc import _attrs as attrs
from nodealloc._arguments import is_other
from nodealloc._reading import MAX_DOCUMENT_BYTES, NO_TEXT, is_larger, is_text
from nodealloc._typed import typed
from nodealloc.errors import DecodeError, Fault
from nodealloc.idset import MAX_ID, CPUSet
from nodealloc.machine._checks import MOST_NODES, cpus_by_node
from nodealloc.machine._model import Machine
from nodealloc.machine._parts import Cpu, NumaNode
from nodealloc.machine._synthetic_options import Options, read_options
from nodealloc.machine._synthetic_text import Core, parse_cores

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = ["machine_from_text"]

_MOST_CPUS = 8192
"""CPUs for which Linux can be built."""


@typed
def machine_from_text(
    text: str, /, *, name: str = "", max_bytes: int = MAX_DOCUMENT_BYTES, max_cpus: int = _MOST_CPUS
) -> Machine:
    """A synthetic machine from a line such as `2 sockets x 2 numa x 8 cores x 2 threads`.

    Levels nest from left to right, in any order: `socket`, `die`, `numa`,
    `l3`, `cluster`, `core`, `thread`, singular or plural. What is not named
    there is one of: one socket, a NUMA node a socket, an L3 a node and socket,
    one thread a core; dies and clusters are only there when named. `x`, `×`
    and `*` mean the same. `+` puts unlike parts side by side and parentheses
    group them; a word before `cores` names their kind; a node of 0 cores has
    memory alone. There are at most 1024 NUMA nodes.

    Options follow after a comma, each `name=value`:

    - `memory=16Gi` of each NUMA node (the default), or `memory=16Gi/8Gi` in turn;
    - `hugepages=2Mi:512` or `hugepages=2Mi:512/1Gi:4`, in the pool of each node;
    - `distances=10/12/32` inside a node, inside a socket, beyond (the default),
      or a whole matrix, `distances=10 12/12 10`;
    - `numbering=kernel`: the first thread of every core, socket by socket, then
      all second threads, as kernels on x86 do; `adjacent`: the threads of a
      core in a row; `interleaved`: as `kernel`, but round over the sockets;
    - `offline=3,7-9` and `isolated=2-3`: CPU lists.

    A core goes by its smallest CPU, other groups count from 0.

    Args:
        text: The line.
        name: For people.
        max_bytes: A longer text is refused unread.
        max_cpus: Machines of more CPUs are refused; 65535 at most. As many as
            Linux can be built for, unless you say otherwise.

    Raises:
        DecodeError: A word, a count or an option that does not fit; its path
            is the 0-based character where the fault starts.

    Source: ours.

    >>> machine = machine_from_text("1 socket x (2 cores x 2 threads + 4 atom cores), offline=7")
    >>> machine.online, machine.offline, machine.cpu[3].kind
    (CPUSet('0-6'), CPUSet('7'), 'atom')
    """
    if is_other(text, str):
        raise DecodeError(
            "machine", [Fault("$", f"expected a text such as 2 sockets x 4 cores, found {text!r:.40}")]
        )
    if not is_text(text):
        raise DecodeError("machine text", [Fault("character 0", f"{text[:40]!a} {NO_TEXT}")])
    if is_larger(text, max_bytes):
        reason = f"longer than {max_bytes} bytes; describe less, or allow more with `max_bytes`"
        raise DecodeError("machine text", [Fault("character 0", reason)])
    options, end = read_options(text)
    cores = parse_cores(text[:end], min(max_cpus, MAX_ID))
    threads = _number(cores, options.numbering)
    every = [cpu for cpus in threads for cpu in cpus]
    stray = {cpu for cpu in (*options.offline, *options.isolated) if cpu >= len(every)}
    if stray or len(options.offline) == len(every):
        what = f"CPUs {CPUSet(stray)} are named" if stray else "every CPU is offline"
        reason = f"{what}; the machine has CPUs 0 to {len(every) - 1} and needs one online"
        raise DecodeError("machine text", [Fault(f"character {end}", reason)])
    named = _Named.of(cores)
    if (number := len(set(named.numa))) > MOST_NODES:
        reason = f"{number} NUMA nodes, one a socket unless named; Linux has at most {MOST_NODES}"
        raise DecodeError("machine text", [Fault("character 0", reason)])
    cpus = _cpus(cores, threads, named, options.offline)
    nodes = _nodes(cpus, named, options)
    return Machine(
        name=name,
        cpus=cpus,
        numa_nodes=nodes,
        distances=_distances(cpus, [node.id for node in nodes], options),
        offline=options.offline,
        isolated=options.isolated - options.offline,
    )


def _number(
    cores: Sequence[Core], numbering: Literal["kernel", "adjacent", "interleaved"]
) -> list[list[int]]:
    """CPU numbers of each core's threads."""
    threads: list[list[int]] = [[] for _ in cores]
    places = list(range(len(cores)))
    if numbering == "adjacent":
        order = ((place, thread) for place in places for thread in range(cores[place].threads))
    else:
        if numbering == "interleaved":
            seen: dict[int | None, int] = {}
            rank = {place: _next(seen, cores[place].groups.get("socket")) for place in places}
            places.sort(key=lambda place: rank[place])
        most = max((core.threads for core in cores), default=0)
        order = (
            (place, thread) for thread in range(most) for place in places if thread < cores[place].threads
        )
    for cpu, (place, _) in enumerate(order):
        threads[place].append(cpu)
    return threads


def _next(counts: dict[int | None, int], key: int | None) -> int:
    counts[key] = counts.get(key, -1) + 1
    return counts[key]


@attrs.frozen(kw_only=True)
class _Named:
    """Group ids of each core, with those that the text leaves out."""

    socket: tuple[int, ...]
    numa: tuple[int, ...]
    l3: tuple[int, ...]

    @classmethod
    def of(cls, cores: Sequence[Core]) -> _Named:
        socket = _count_from_0(("socket", core.groups.get("socket")) for core in cores)
        numa = _count_from_0(
            ("numa", core.groups["numa"]) if "numa" in core.groups else ("socket", home)
            for core, home in zip(cores, socket, strict=True)
        )
        l3 = _count_from_0(
            ("l3", core.groups["l3"], 0) if "l3" in core.groups else ("numa", node, home)
            for core, node, home in zip(cores, numa, socket, strict=True)
        )
        return cls(socket=socket, numa=numa, l3=l3)


def _count_from_0(keys: Iterable[object]) -> tuple[int, ...]:
    numbers: dict[object, int] = {}
    return tuple(numbers.setdefault(key, len(numbers)) for key in keys)


def _cpus(
    cores: Sequence[Core], threads: Sequence[Sequence[int]], named: _Named, offline: CPUSet
) -> tuple[Cpu, ...]:
    cpus: list[Cpu] = []
    for place, core in enumerate(cores):
        online = [cpu for cpu in threads[place] if cpu not in offline]
        first = min(online, default=0)
        cpus += [
            Cpu(
                id=cpu,
                core=first,
                socket=named.socket[place],
                numa_nodes=(named.numa[place],),
                l3=named.l3[place],
                die=core.groups.get("die"),
                cluster=core.groups.get("cluster"),
                kind=core.kind,
            )
            for cpu in online
        ]
    return tuple(sorted(cpus, key=lambda cpu: cpu.id))


def _nodes(cpus: Sequence[Cpu], named: _Named, options: Options) -> tuple[NumaNode, ...]:
    ids = sorted(set(named.numa))
    memory = options.memory * len(ids) if len(options.memory) == 1 else options.memory
    if len(memory) != len(ids):
        raise options.fault("memory", f"{len(memory)} sizes for {len(ids)} NUMA nodes; give one, or one each")
    pages = sum(size * count for size, count in options.hugepages.items())
    if pages > min(memory):
        raise options.fault(
            "hugepages", f"pools of {pages} bytes in a node of {min(memory)} bytes; give less"
        )
    local = cpus_by_node(cpus)
    return tuple(
        NumaNode(
            id=node,
            cpus=local.get(node, CPUSet()),
            memory_bytes=memory[node],
            hugepages=options.hugepages,
        )
        for node in ids
    )


def _distances(
    cpus: Sequence[Cpu], nodes: Sequence[int], options: Options
) -> Mapping[int, Mapping[int, int]]:
    return _by_socket(cpus, nodes, options) if options.matrix is None else _by_matrix(nodes, options)


def _by_socket(
    cpus: Sequence[Cpu], nodes: Sequence[int], options: Options
) -> Mapping[int, Mapping[int, int]]:
    sockets: dict[int, set[int]] = {}
    for cpu in cpus:
        for node in cpu.numa_nodes:
            sockets.setdefault(node, set()).add(cpu.socket)

    here, near, beyond = options.steps
    homes = {node: frozenset(sockets.get(node, ())) for node in nodes}
    # Nodes of the same sockets differ in the distance to themselves alone; a thousand have a million pairs.
    rows = {
        home: {node: near if home & there else beyond for node, there in homes.items()}
        for home in set(homes.values())
    }
    return {node: {**rows[home], node: here} for node, home in homes.items()}


def _by_matrix(nodes: Sequence[int], options: Options) -> Mapping[int, Mapping[int, int]]:
    matrix = options.matrix or ()
    if len(matrix) != len(nodes) or any(len(row) != len(nodes) for row in matrix):
        raise options.fault("distances", f"expected {len(nodes)} rows of {len(nodes)} distances")
    return {a: dict(zip(nodes, matrix[a], strict=True)) for a in nodes}
