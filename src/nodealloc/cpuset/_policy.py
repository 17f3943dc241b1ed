"""Values only: how a node gives out CPUs, checked once at construction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias, Union

from nodealloc import _attrs as attrs
from nodealloc._arguments import check, choice, wrong
from nodealloc._derived import Derives
from nodealloc._typed import typed_fields
from nodealloc.cpuset._hints import HintTable
from nodealloc.cpuset._layout import CpuLayout
from nodealloc.cpuset._options import StaticOptions
from nodealloc.cpuset._pickers import SortStrategy
from nodealloc.cpuset._take import KubeletPicker, PickMode, picked
from nodealloc.errors import ConfigurationError
from nodealloc.idset import CPUSet
from nodealloc.topology import PolicyName

if TYPE_CHECKING:
    from nodealloc.cpuset._ports import Picker
    from nodealloc.machine import Machine

__all__ = ["CpuPolicy", "NonePolicy", "StaticPolicy"]


@attrs.frozen(kw_only=True)
class NonePolicy:
    """Nobody holds CPUs for itself: the kubelet's `none` policy.

    Attributes:
        layout: The machine.
    """

    layout: CpuLayout

    name = "none"

    @classmethod
    def of(cls, machine: Machine, /) -> NonePolicy:
        """The policy on a machine."""
        return cls(layout=CpuLayout.of(machine))

    @property
    def pool(self) -> int:
        """CPUs that are shared while nobody holds any, as a mask."""
        return self.layout.cpus


def _cores_of_reserved(policy: StaticPolicy) -> int:
    return policy.layout.siblings(policy.reserved.mask)


def _pool(policy: StaticPolicy) -> int:
    strict = policy.options.strict_cpu_reservation
    return policy.allocatable if strict else policy.layout.cpus


def _allocatable(policy: StaticPolicy) -> int:
    return policy.layout.cpus & ~policy.reserved.mask


def _hint_table(policy: StaticPolicy) -> HintTable:
    return _table(policy.layout, policy.options.align_by_socket)


@typed_fields
@attrs.frozen(kw_only=True)
class StaticPolicy(Derives):
    """Whole CPUs for those that qualify, a shared pool for the rest: `static`.

    Build it with `of`, which checks everything against the machine.

    Attributes:
        layout: The machine.
        options: The kubelet's options.
        reserved: CPUs that nobody gets for itself.
        picker: Which CPUs to take.
        per_container: Whether a claim's settings may ask for exclusive CPUs
            (see `exclusive_cpus_setting`); off in the kubelet.
        resizable: Whether what runs may be resized; off in the kubelet.
        only_whole_cores: Whether `full_pcpus_only` keeps what it promises: no
            half of a core whose other half is reserved is handed out, and cores
            that an init member lends count as free. The kubelet does neither.
            Always on where cores differ in size.
        reserved_cores: All CPUs of cores with a reserved CPU, as a mask.
        allocatable: CPUs that could ever be held, as a mask.
        pool: CPUs that are shared while nobody holds any, as a mask.
        hint_table: Masks of the machine's NUMA nodes, ready to be filtered.
    """

    layout: CpuLayout
    options: StaticOptions = StaticOptions()
    reserved: CPUSet = CPUSet()
    picker: Picker
    per_container: bool = False
    resizable: bool = False
    only_whole_cores: bool = False
    reserved_cores: int = attrs.field(init=False, default=attrs.Factory(_cores_of_reserved, takes_self=True))
    allocatable: int = attrs.field(
        init=False, eq=False, repr=False, default=attrs.Factory(_allocatable, takes_self=True)
    )
    pool: int = attrs.field(init=False, eq=False, repr=False, default=attrs.Factory(_pool, takes_self=True))
    hint_table: HintTable = attrs.field(
        init=False, eq=False, repr=False, default=attrs.Factory(_hint_table, takes_self=True)
    )

    name = "static"

    @classmethod
    def of(
        cls,
        machine: Machine,
        /,
        *,
        reserved: CPUSet | int | str | Iterable[int] = 0,
        options: StaticOptions | Mapping[str, str] | None = None,
        picker: Picker | None = None,
        per_container: bool = False,
        resizable: bool = False,
        only_whole_cores: bool = False,
        topology_policy: str = "",
    ) -> StaticPolicy:
        """The policy on a machine.

        Args:
            machine: Where CPUs are given out.
            reserved: CPUs that nobody gets for itself (a set, or its text such as
                `0-1`), or how many; a number is taken as the policy's picker takes
                it, which is low cores first for the kubelet's.
            options: The kubelet's options, or its own words for them
                (`{"full-pcpus-only": "true"}`); none by default.
            picker: Which CPUs to take; what the options say by default.
            per_container: See the attribute.
            resizable: See the attribute.
            only_whole_cores: See the attribute.
            topology_policy: The kubelet's name of the topology policy beside
                this one, where known: `align_by_socket` contradicts `single-numa-node`.

        Raises:
            ConfigurationError: Reserved CPUs that are not on the machine, more
                than it has, or options that do not fit it.
            PickerError: The picker reserved something else than it was asked for.
        """
        layout = CpuLayout.of(machine)
        chosen = _options(options)
        if picker is not None and (isinstance(picker, type) or not hasattr(picker, "pick")):
            raise wrong("StaticPolicy.of, picker", picker, "an object with a method pick")
        _check_fit(chosen, layout, topology_policy)
        taker = _picker(chosen, layout) if picker is None else picker
        return cls(
            layout=layout,
            options=chosen,
            reserved=_reserved(reserved, layout, taker),
            picker=taker,
            per_container=per_container,
            resizable=resizable,
            only_whole_cores=only_whole_cores or not layout.uniform,
        )


CpuPolicy: TypeAlias = Union[NonePolicy, StaticPolicy]
"""A policy of `CpuAllocator`."""


@lru_cache(maxsize=64)
def _table(layout: CpuLayout, align_by_socket: bool) -> HintTable:
    # Kept beside the policies, so that a snapshot that travels between
    # processes does not carry hundreds of ready-made hints along.
    return HintTable(layout, align_by_socket=align_by_socket)


def _options(options: StaticOptions | Mapping[str, str] | None) -> StaticOptions:
    if isinstance(options, Mapping):
        return StaticOptions.from_kubelet(options)
    expected = 'a StaticOptions, or the kubelet\'s words as {"full-pcpus-only": "true"}'
    return check("StaticPolicy.of, options", options or StaticOptions(), StaticOptions, expected)


def _check_fit(options: StaticOptions, layout: CpuLayout, topology_policy: str) -> None:
    beside = choice(PolicyName, topology_policy or PolicyName.NONE, "StaticPolicy.of, topology_policy")
    if not options.align_by_socket:
        return
    if beside is PolicyName.SINGLE_NUMA_NODE:
        raise ConfigurationError(
            "option align-by-socket contradicts topology policy single-numa-node: a socket may have "
            "several NUMA nodes; switch the option off or choose policy restricted"
        )
    if len(layout.sockets) > len(layout.nodes):
        raise ConfigurationError(
            f"option align-by-socket needs sockets of whole NUMA nodes; this machine has "
            f"{len(layout.sockets)} sockets on {len(layout.nodes)} NUMA nodes"
        )


def _picker(options: StaticOptions, layout: CpuLayout) -> KubeletPicker:
    """Source: kubelet ``cm/cpumanager/policy_static.go``, `takeByTopology`."""
    spread = options.distribute_cpus_across_cores
    return KubeletPicker(
        mode=PickMode.DISTRIBUTED if options.distribute_cpus_across_numa else PickMode.PACKED,
        strategy=SortStrategy.SPREAD if spread else SortStrategy.PACKED,
        group_size=layout.threads_per_core if options.full_pcpus_only else 1,
        align_caches=options.prefer_align_cpus_by_uncorecache,
    )


def _reserved(reserved: CPUSet | int | str | Iterable[int], layout: CpuLayout, picker: Picker) -> CPUSet:
    everything = CPUSet.from_mask(layout.cpus)
    if isinstance(reserved, (str, set, frozenset, list, tuple, range)):
        reserved = CPUSet.of(reserved)
    if isinstance(reserved, CPUSet):
        if not reserved <= everything:
            raise ConfigurationError(
                f"reserved CPUs {reserved - everything} are not online on this machine, "
                f"which has {everything}"
            )
        return reserved
    if type(reserved) is not int:
        raise wrong("reserved", reserved, "a CPUSet, a text such as 0-1, or a whole number of CPUs")
    taken = picked(picker, layout, layout.cpus, reserved) if reserved >= 0 else None
    if taken is None:
        raise ConfigurationError(
            f"reserved: {reserved} CPUs wanted, {len(everything)} available on this machine; "
            f"reserve from 0 to {len(everything)}"
        )
    return CPUSet.from_mask(taken)
