"""What a picture of a machine shows, before anyone draws it: boxes in boxes, and who holds what."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count, product
from string import ascii_lowercase, ascii_uppercase
from typing import TYPE_CHECKING, Literal, TypeAlias

from nodealloc import _attrs as attrs
from nodealloc._arguments import check, not_a_machine
from nodealloc.errors import ConfigurationError
from nodealloc.idset import CPUSet

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nodealloc.machine._model import Machine
    from nodealloc.machine._parts import NumaNode

__all__ = ["Box", "Legend", "Mark", "layout", "legend", "size_text", "summary"]

Role = Literal["holder", "several", "shared", "reserved", "free", "offline"]


@attrs.frozen(kw_only=True)
class Box:
    """A socket, node or cache with what is inside it.

    Attributes:
        title: `socket 0`, `NUMA node 1`, `L3 8`.
        detail: Memory and the like, or "".
        boxes: Smaller boxes inside; empty where `cores` is not.
        cores: CPUs of each core, ascending by smallest CPU.
    """

    title: str
    detail: str = ""
    boxes: tuple[Box, ...] = ()
    cores: tuple[tuple[int, ...], ...] = ()


@attrs.frozen(kw_only=True)
class Mark:
    """How CPUs of one holder, or of one role, are shown.

    Attributes:
        symbol: Shown beside the CPU in text: `A` to `Z`, `a` to `z`, `AA`, ...; a sign for roles.
        label: The holder's name, or the role in words.
        role: What kind of mark it is.
        cpus: The CPUs that carry it.
        rank: Number of the holder, from 0; picks its colour.
    """

    symbol: str
    label: str
    role: Role
    cpus: CPUSet
    rank: int = 0

    @property
    def explained(self) -> bool:
        """Whether it has a line in the legend; a bare CPU needs none."""
        return bool(self.symbol)


Holders: TypeAlias = Mapping[str, "CPUSet | str"]
"""Label to CPUs, or to their text."""


@attrs.frozen(kw_only=True)
class Legend:
    """All marks that a picture uses, and the one of each CPU."""

    marks: tuple[Mark, ...]
    of: Mapping[int, Mark]


def legend(machine: Machine, given: Holders | None, *, shared: CPUSet | None, reserved: CPUSet) -> Legend:
    """Who holds which CPU, with a symbol for each; refuses CPUs not on the machine."""
    if not hasattr(machine, "numa_nodes"):
        raise not_a_machine(machine)
    holders = None if given is None else _sets(given)
    known = holders or {}
    _check_known(machine, {**known, "reserved": reserved, "the shared pool": shared or CPUSet()})
    held = several = CPUSet()
    for cpus in known.values():
        several, held = several | (held & cpus), held | cpus
    if shared is None:
        shared = CPUSet() if holders is None else machine.online
    pool = shared - held - reserved
    nobody = machine.online - held - reserved - pool
    marks = [
        Mark(symbol=symbol, label=_plain(label), role="holder", cpus=known[label], rank=rank)
        for rank, (label, symbol) in enumerate(zip(known, _symbols(), strict=False))
    ]
    marks += [
        Mark(symbol="*", label="several of the above", role="several", cpus=several),
        Mark(symbol="#", label="reserved", role="reserved", cpus=reserved - held),
        Mark(symbol="·", label="shared pool", role="shared", cpus=pool),
        Mark(symbol="" if holders is None else "-", label="nobody", role="free", cpus=nobody),
        Mark(symbol="x", label="offline", role="offline", cpus=machine.offline),
    ]
    used = tuple(mark for mark in marks if mark.cpus or mark.role == "holder")
    return Legend(marks=used, of={cpu: mark for mark in used for cpu in mark.cpus})


def _sets(holders: Holders) -> Mapping[str, CPUSet]:
    expected = 'a mapping of label to CPUs, as {"web": "0-3"}'
    check("holders", holders, Mapping, expected)
    return {
        label: CPUSet.parse(cpus)
        if isinstance(cpus, str)
        else check(f"holders[{label!r}]", cpus, CPUSet, "a CPUSet or its text")
        for label, cpus in holders.items()
    }


def _check_known(machine: Machine, holders: Mapping[str, CPUSet]) -> None:
    everything = machine.online | machine.offline
    for label, cpus in holders.items():
        if stray := cpus - everything:
            named = f" {machine.name}" if machine.name else ""
            raise ConfigurationError(
                f"{label}: CPUs {stray} are not on the machine{named}, which has {everything}"
            )


def _symbols() -> Iterator[str]:
    letters = ascii_uppercase + ascii_lowercase
    for length in count(1):
        yield from map("".join, product(letters, repeat=length))


def size_text(size_bytes: int) -> str:
    """Bytes in the largest binary unit that leaves one digit before the point: `15.6 GiB`."""
    value = float(size_bytes)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if value < 1024 or unit == "TiB":
            break
        value /= 1024
    return f"{value:.0f} {unit}" if value == int(value) else f"{value:.1f} {unit}"


def summary(machine: Machine) -> str:
    """One line: how many of what."""
    parts = [_many(len(machine.cpus), "CPU"), _many(len(machine.groups("core")), "core")]
    parts.append(_many(len(machine.groups("socket")), "socket"))
    parts.append(_many(len(machine.numa_nodes), "NUMA node"))
    if caches := len(machine.groups("l3")):
        parts.append(_many(caches, "L3 cache"))
    if machine.memory_bytes:
        parts.append(size_text(machine.memory_bytes))
    return (f"{_plain(machine.name)}: " if machine.name else "") + " · ".join(parts)


def _plain(text: str) -> str:
    """Text that can disturb neither a terminal nor an XML reader; labels come from anywhere."""
    return text if text.isprintable() else "".join(c if c.isprintable() else "\ufffd" for c in text)


def _many(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def layout(machine: Machine) -> tuple[Box, ...]:
    """Sockets with NUMA nodes in them, or nodes with sockets where these are the smaller ones.

    Dies and L3 groups get a box where there are several in the box around
    them. A CPU of several nodes (fake NUMA) stands in the first; nodes that
    have no CPU of their own to show come last.
    """
    sockets = machine.groups("socket").values()
    nodes = [node.cpus for node in machine.numa_nodes]
    spanning = any(not any(cpus <= socket for socket in sockets) for cpus in nodes)
    nested = all(any(socket <= cpus for cpus in nodes) for socket in sockets)
    levels = ("numa", "socket", "l3") if spanning and nested else ("socket", "die", "numa", "l3")
    shown = {cpu.numa_nodes[0] for cpu in machine.cpus if cpu.numa_nodes}
    rest = (
        Box(title=f"NUMA node {node.id}", detail=_node_detail(node))
        for node in machine.numa_nodes
        if node.id not in shown
    )
    return (*_boxes(machine, machine.online, levels), *rest)


def _boxes(machine: Machine, cpus: CPUSet, levels: tuple[str, ...]) -> tuple[Box, ...]:
    level, *inner = levels
    groups = _split(machine, cpus, level)
    if level in {"die", "l3"} and len(groups) < 2:
        return _boxes(machine, cpus, tuple(inner)) if inner else ()
    boxes: list[Box] = []
    for group, own in groups.items():
        title, detail = _named(machine, level, group)
        inside = _boxes(machine, own, tuple(inner)) if inner else ()
        boxes.append(
            Box(title=title, detail=detail, boxes=inside, cores=() if inside else _cores(machine, own))
        )
    return tuple(boxes)


def _split(machine: Machine, cpus: CPUSet, level: str) -> Mapping[int, CPUSet]:
    """CPUs by their group of a level, ascending; group -1 has those that lie in none."""
    masks: dict[int, int] = {}
    for number in cpus:
        cpu = machine.cpu[number]
        group = {
            "socket": cpu.socket,
            "die": cpu.die,
            "l3": cpu.l3,
            "numa": cpu.numa_nodes[0] if cpu.numa_nodes else None,
        }[level]
        key = -1 if group is None else group
        masks[key] = masks.get(key, 0) | 1 << number
    return {key: CPUSet.from_mask(masks[key]) for key in sorted(masks)}


def _named(machine: Machine, level: str, group: int) -> tuple[str, str]:
    noun = {"socket": "socket", "die": "die", "l3": "L3", "numa": "NUMA node"}[level]
    if group < 0:
        return f"no {noun}", ""
    return f"{noun} {group}", _node_detail(machine.node[group]) if level == "numa" else ""


def _node_detail(node: NumaNode) -> str:
    parts = [size_text(node.memory_bytes) if node.memory_bytes else "no memory"]
    parts += [f"{count} × {size_text(size)}" for size, count in node.hugepages.items() if count]
    if not node.cpus:
        parts.append("no CPUs")
    return " · ".join(parts)


def _cores(machine: Machine, cpus: CPUSet) -> tuple[tuple[int, ...], ...]:
    cores: dict[int, list[int]] = {}
    for cpu in cpus:
        cores.setdefault(machine.cpu[cpu].core, []).append(cpu)
    return tuple(map(tuple, cores.values()))
