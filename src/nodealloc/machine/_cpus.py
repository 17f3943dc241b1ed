"""CPUs of a sysfs tree: which are online, and which groups they lie in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodealloc import _attrs as attrs
from nodealloc.idset import bits, format_list
from nodealloc.machine._groups import by_ids, by_masks, named
from nodealloc.machine._parts import Cpu

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from nodealloc.machine._groups import Partition
    from nodealloc.machine._sysfs import Notes, Tree

__all__ = ["CpuFiles", "Grouped", "Presence", "read_presence"]

_HERE = "devices/system/cpu"
_L3 = 3


@attrs.frozen(kw_only=True)
class Presence:
    """Masks of the CPUs that exist: online, offline, and the isolated ones of the online."""

    online: int
    offline: int
    isolated: int


def read_presence(tree: Tree, notes: Notes) -> Presence:
    """Which CPUs are there; the kernel's list counts before what each CPU's own file says."""
    there = tree.ids(".", "cpu")
    online = tree.list("online")
    if online:
        if stray := online & ~there:
            notes.add(f"{_HERE}/online", f"CPUs {format_list(stray)} have no directory; they are left out")
        online &= there
    else:
        notes.add(f"{_HERE}/online", "absent or unreadable; each CPU's own state was asked")
        online = _online_by_files(tree, notes, there)
    isolated = tree.list("isolated")
    if isolated is None:
        isolated = 0
        if tree.holds("isolated"):
            notes.add(f"{_HERE}/isolated", "unreadable; no CPU was taken as isolated")
    return Presence(online=online, offline=there & ~online, isolated=isolated & online)


def _online_by_files(tree: Tree, notes: Notes, there: int) -> int:
    online = undecided = described = 0
    for cpu in bits(there):
        state = tree.number(f"cpu{cpu}/online")
        if state == 0:
            continue
        if tree.holds(f"cpu{cpu}/topology"):
            described |= 1 << cpu
        if state is None:
            undecided |= 1 << cpu
        else:
            online |= 1 << cpu
    # CPU 0 often has no `online` file, since it cannot go; a CPU that has
    # neither that file nor a topology, while others have one, is not running.
    silent = undecided & ~described if described else 0
    if silent:
        notes.add(f"{_HERE}/cpu{{}}", "neither a state nor a topology; taken as offline", ids=silent)
    return online | undecided & ~silent


@attrs.frozen(kw_only=True)
class Grouped:
    """Each online CPU's groups, and the CPUs for which a stand-in had to do.

    Attributes:
        cpus: Online CPUs, without NUMA nodes and kinds.
        no_core: Mask of CPUs whose core nothing tells; each is a core of its own.
        no_socket: Mask of CPUs whose package nothing tells; they share one.
        silent: Mask of CPUs of which nothing tells that they are online; they are not in `cpus`.
    """

    cpus: tuple[Cpu, ...]
    no_core: int
    no_socket: int
    silent: int


class CpuFiles:
    """Reads the groups of the online CPUs from `devices/system/cpu`.

    Masks count before ids: core ids repeat between packages and between dies,
    package ids are -1 on some POWER machines, lists were edited in captures.

    Source: the kernel's ``Documentation/admin-guide/cputopology.rst`` and
    ``Documentation/ABI/stable/sysfs-devices-system-cpu``.
    """

    def __init__(self, tree: Tree, notes: Notes, online: int) -> None:
        self._tree = tree
        self._notes = notes
        self._online = online
        self._l3_index: dict[int, int] = {}
        self._usual_index = 3

    def grouped(self) -> Grouped:
        """All groups of all online CPUs."""
        by_core = self._masks("core_cpus", "thread_siblings")
        by_package = self._masks("package_cpus", "core_siblings")
        silent = self._silent(by_core.unknown & by_package.unknown)
        cores, no_core = self._cores(by_core.groups, by_core.unknown & ~silent)
        packages, no_socket = self._packages(by_package.groups, by_package.unknown & ~silent)
        package_ids = named(packages, lambda cpu: self._tree.number(_topology(cpu, "physical_package_id")))
        sockets = _spread({package_ids[first]: mask for first, mask in packages.items()})
        dies = self._dies(packages)
        clusters = self._clusters(cores)
        caches = self._caches()
        cpus: list[Cpu] = []
        for core, mask in cores.items():
            # One core, one answer: what its first CPU says holds for all.
            cpus += [
                Cpu(
                    id=cpu,
                    core=core,
                    socket=sockets[core],
                    l3=caches.get(core),
                    die=dies.get(core),
                    cluster=clusters.get(core),
                )
                for cpu in bits(mask)
            ]
            self._remark_if_split(mask, packages=sockets, dies=dies, clusters=clusters, caches=caches)
        cpus.sort(key=lambda cpu: cpu.id)
        return Grouped(cpus=tuple(cpus), no_core=no_core, no_socket=no_socket, silent=silent)

    def _silent(self, unnamed: int) -> int:
        """CPUs that no mask names and that have no topology of their own, while others have one.

        A kernel takes the topology of a CPU away when it goes offline, so the
        list of online CPUs is older than that.
        """
        silent = sum(1 << cpu for cpu in bits(unnamed) if not self._tree.holds(f"cpu{cpu}/topology"))
        if silent == self._online:
            return 0
        if silent:
            self._notes.add(
                f"{_HERE}/cpu{{}}", "no topology, and no other CPU names it; taken as offline", ids=silent
            )
            self._online &= ~silent
        return silent

    def _remark_if_split(self, mask: int, **groups: Mapping[int, int]) -> None:
        for noun, group_of in groups.items():
            if len({group_of.get(cpu) for cpu in bits(mask)}) > 1:
                what = f"one core in two {noun}; that of its first CPU was taken"
                self._notes.add(f"{_HERE}/cpu{{}}", what, ids=mask)

    def _remark_unknown(self, noun: str, unknown: int, known: Mapping[int, int], *, otherwise: str) -> None:
        """CPUs whose file says nothing of a group; ids told it, or something stands in for it."""
        if unknown:
            taken = f"no siblings told; {noun}s were taken from the ids"
            what = taken if known else f"no {noun} told; {otherwise}"
            self._notes.add(f"{_HERE}/cpu{{}}/topology/{noun}_cpus", what, ids=unknown)

    def _cores(self, groups: Mapping[int, int], unknown: int) -> tuple[Mapping[int, int], int]:
        known, alone = by_ids(unknown, self._core_key)
        self._remark_unknown("core", unknown, known, otherwise="each stands alone")
        groups = {**groups, **known, **{cpu: 1 << cpu for cpu in bits(alone)}}
        return dict(sorted(groups.items())), alone

    def _core_key(self, cpu: int) -> object | None:
        core = self._tree.number(_topology(cpu, "core_id"))
        package = self._tree.number(_topology(cpu, "physical_package_id"))
        if core is None or core < 0 or package is None:
            return None
        return package, self._tree.number(_topology(cpu, "die_id")), core

    def _packages(self, groups: Mapping[int, int], unknown: int) -> tuple[Mapping[int, int], int]:
        known, alone = by_ids(unknown, self._package_key)
        self._remark_unknown("package", unknown, known, otherwise="one is assumed")
        groups = {**groups, **known}
        if alone:
            groups[(alone & -alone).bit_length() - 1] = alone
        return dict(sorted(groups.items())), alone

    def _package_key(self, cpu: int) -> object | None:
        package = self._tree.number(_topology(cpu, "physical_package_id"))
        return None if package is None or package < 0 else package

    def _dies(self, packages: Mapping[int, int]) -> Mapping[int, int]:
        """CPU to die; a lone CPU in a larger package is what architectures without dies print."""
        if not self._has("die_cpus"):
            return {}
        package_of = {cpu: mask for mask in packages.values() for cpu in bits(mask)}
        groups = self._masks("die_cpus").groups
        return _spread(
            {
                first: mask
                for first, mask in groups.items()
                if mask.bit_count() > 1 or package_of[first].bit_count() == 1
            }
        )

    def _clusters(self, cores: Mapping[int, int]) -> Mapping[int, int]:
        """CPU to cluster; one that is no larger than a core says nothing."""
        if not self._has("cluster_cpus"):
            return {}
        core_of = {cpu: mask for mask in cores.values() for cpu in bits(mask)}
        groups = self._masks("cluster_cpus").groups
        return _spread({first: mask for first, mask in groups.items() if mask & ~core_of[first]})

    def _caches(self) -> Mapping[int, int]:
        part = self._remarked(by_masks(self._online, self._l3_mask), "cache")
        if lost := part.unknown & sum(1 << cpu for cpu in self._l3_index):
            self._notes.add(f"{_HERE}/cpu{{}}/cache", "an L3 is there, but not who shares it", ids=lost)
        ids = named(part.groups, self._l3_id)
        return _spread({ids[first]: mask for first, mask in part.groups.items()})

    def _l3_mask(self, cpu: int) -> int | None:
        index = self._find_l3(cpu)
        if index is None:
            return None
        self._l3_index[cpu] = index
        where = f"cpu{cpu}/cache/index{index}"
        return self._tree.mask(f"{where}/shared_cpu_map") or self._tree.list(f"{where}/shared_cpu_list")

    def _find_l3(self, cpu: int) -> int | None:
        """Number of the `index` directory of a CPU's L3: by level, since the numbers differ."""
        if self._is_l3(cpu, self._usual_index):
            return self._usual_index
        for index in bits(self._tree.ids(f"cpu{cpu}/cache", "index") & ~(1 << self._usual_index)):
            if self._is_l3(cpu, index):
                self._usual_index = index
                return index
        return None

    def _is_l3(self, cpu: int, index: int) -> bool:
        where = f"cpu{cpu}/cache/index{index}"
        return (
            self._tree.number(f"{where}/level") == _L3 and self._tree.text(f"{where}/type") != "Instruction"
        )

    def _l3_id(self, cpu: int) -> int | None:
        index = self._l3_index.get(cpu)
        return None if index is None else self._tree.number(f"cpu{cpu}/cache/index{index}/id")

    def _has(self, name: str) -> bool:
        """Whether this kernel prints an attribute: it does so for all CPUs or for none."""
        ends = (self._online & -self._online).bit_length() - 1, self._online.bit_length() - 1
        return any(name in seen or f"{name}_list" in seen for seen in map(self._topology_names, ends))

    def _topology_names(self, cpu: int) -> list[str]:
        return self._tree.names(f"cpu{cpu}/topology")

    def _masks(self, *names: str) -> Partition:
        return self._remarked(by_masks(self._online, self._reader(names)), f"topology/{names[0]}")

    def _reader(self, names: tuple[str, ...]) -> Callable[[int], int | None]:
        """A mask of a CPU from the first of these files that has one; masks first, then lists."""

        def mask_of(cpu: int) -> int | None:
            for name in names:
                if mask := self._tree.mask(_topology(cpu, name)):
                    return mask
            for name in names:
                if mask := self._tree.list(_topology(cpu, f"{name}_list")):
                    return mask
            return None

        return mask_of

    def _remarked(self, part: Partition, name: str) -> Partition:
        if part.disputed:
            where = f"{_HERE}/cpu{{}}/{name}"
            self._notes.add(where, "masks disagree; most members decided", ids=part.disputed)
        return part


def _topology(cpu: int, name: str) -> str:
    return f"cpu{cpu}/topology/{name}"


def _spread(groups: Mapping[int, int]) -> Mapping[int, int]:
    """From group to mask, to CPU to group."""
    return {cpu: group for group, mask in groups.items() for cpu in bits(mask)}
