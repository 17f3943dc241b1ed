"""Discovery: a sysfs root in, a machine and what could not be known of it out."""

from __future__ import annotations

import os

from nodealloc import _attrs as attrs
from nodealloc._arguments import check
from nodealloc.idset import CPUSet, bits
from nodealloc.machine._cpus import CpuFiles, read_presence
from nodealloc.machine._errors import NotAMachineError
from nodealloc.machine._model import Machine
from nodealloc.machine._nodes import read_distances, read_nodes
from nodealloc.machine._parts import Cpu, NumaNode
from nodealloc.machine._sysfs import Note, Notes, Tree, check_now

__all__ = ["Discovery", "discover"]

_CPUS = "devices/system/cpu"
_NODES = "devices/system/node"


@attrs.frozen(kw_only=True)
class Discovery:
    """What a sysfs tree says.

    Attributes:
        machine: What could be known; stand-ins where something could not.
        notes: What could not be known, one remark each; empty for a whole tree.
        no_core: CPUs whose core nothing tells; each is a core of its own.
        no_socket: CPUs whose package nothing tells; they share one socket.
    """

    machine: Machine
    notes: tuple[Note, ...] = ()
    no_core: CPUSet = CPUSet()
    no_socket: CPUSet = CPUSet()


def discover(root: str | os.PathLike[str] = "/sys", *, name: str = "") -> Discovery:
    """Read a machine from a sysfs tree; what is missing is noted, not raised.

    Reads only below `root`, and `../proc/meminfo` where the kernel has no NUMA
    nodes. Links are followed; a CPU or a node that lies outside `root` is
    noted. Nothing is kept open, nothing is written; it may be called from
    several threads.

    Args:
        root: A mounted sysfs, or a captured one.
        name: For people; goes into the machine.

    Raises:
        NotAMachineError: No directory, or one without CPUs below
            `devices/system/cpu`.
        MachineUnreadableError: A file was not given (EIO, too many open files, a file server that is
            gone): what is missing for that is not noted, since the machine has it.

    >>> found = discover("/sys")
    >>> found.machine.online == CPUSet(cpu.id for cpu in found.machine.cpus)
    True
    """
    path = os.fspath(check("discover", root, (str, os.PathLike), "the path of a sysfs, such as /sys"))
    notes = Notes()
    with _opened(path) as tree, _opened_cpus(path) as cpu_tree:
        presence = read_presence(cpu_tree, notes)
        if not presence.online:
            raise NotAMachineError(path, f"no online CPU below {_CPUS}", "give a sysfs mount such as /sys")
        _remark_on_links(tree, notes)
        grouped = CpuFiles(cpu_tree, notes, presence.online).grouped()
        online, offline = presence.online & ~grouped.silent, presence.offline | grouped.silent
        nodes = read_nodes(tree, notes, online, offline)
        node_ids = sum(1 << node.id for node in nodes)
        distances = read_distances(tree, notes, node_ids) if tree.ids(_NODES, "node") else None
        kinds = _kinds(tree, cpu_tree, online)
    machine = Machine(
        name=name,
        cpus=_placed(grouped.cpus, nodes, kinds),
        numa_nodes=nodes,
        distances=distances,
        offline=CPUSet.from_mask(offline),
        isolated=CPUSet.from_mask(presence.isolated & online),
    )
    return Discovery(
        machine=machine,
        notes=notes.listed(),
        no_core=CPUSet.from_mask(grouped.no_core),
        no_socket=CPUSet.from_mask(grouped.no_socket),
    )


def _opened(path: str) -> Tree:
    try:
        return Tree(path)
    except OSError as error:
        check_now(error, path)
        reason = f"cannot be opened as a directory ({error.strerror})"
        raise NotAMachineError(path, reason, "give a sysfs mount such as /sys") from error


def _opened_cpus(path: str) -> Tree:
    try:
        return Tree(f"{path}/{_CPUS}")
    except OSError as error:
        check_now(error, f"{path}/{_CPUS}")
        inside = f"{path.rstrip('/')}/sys"
        found = os.path.isdir(f"{inside}/{_CPUS}")  # noqa: PTH112 - Path raises where it may not look
        remedy = f"did you mean {inside}?" if found else "give a sysfs mount such as /sys"
        raise NotAMachineError(path, f"no directory {_CPUS} to read ({error.strerror})", remedy) from error


def _remark_on_links(tree: Tree, notes: Notes) -> None:
    """What a link brings in from outside may be of another machine: of this one, into a capture of that."""
    what = "a link out of the tree; what it leads to was read"
    for here, prefix in ((_CPUS, "cpu"), (_NODES, "node")):
        if tree.leads_out(here):
            notes.add(here, what)
        elif stray := tree.strays(here, prefix):
            notes.add(f"{here}/{prefix}{{}}", what, ids=stray)


def _placed(cpus: tuple[Cpu, ...], nodes: tuple[NumaNode, ...], kinds: dict[int, str]) -> tuple[Cpu, ...]:
    local: dict[int, tuple[int, ...]] = {}
    for node in nodes:
        for cpu in node.cpus:
            local[cpu] = (*local.get(cpu, ()), node.id)
    return tuple(
        attrs.evolve(cpu, numa_nodes=local.get(cpu.id, ()), kind=kinds.get(cpu.id, "")) for cpu in cpus
    )


def _kinds(tree: Tree, cpu_tree: Tree, online: int) -> dict[int, str]:
    """Kinds of cores on a hybrid machine: the kernel's PMU names, else its relative capacities.

    Source: ``Documentation/ABI/testing/sysfs-devices-system-cpu`` (cpu_capacity)
    and the hybrid PMUs ``cpu_core``, ``cpu_atom``, ``cpu_lowpower``.
    """
    kinds: dict[int, str] = {}
    for name in sorted(tree.names("devices")):
        if name.startswith("cpu_"):
            mask = tree.list(f"devices/{name}/cpus") or 0
            kinds |= {cpu: name.removeprefix("cpu_") for cpu in bits(mask & online)}
    first = (online & -online).bit_length() - 1
    if kinds or cpu_tree.number(f"cpu{first}/cpu_capacity") is None:
        return kinds
    capacities = {cpu: cpu_tree.number(f"cpu{cpu}/cpu_capacity") for cpu in bits(online)}
    if len(set(capacities.values())) == 1:
        return {}
    return {cpu: f"capacity-{value}" for cpu, value in capacities.items() if value is not None}
