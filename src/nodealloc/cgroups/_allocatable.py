"""Pure: what is left for pods, and what is held back for the system."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import attrs

from nodealloc.cgroups._convert import MIN_SHARES, PAGE_BYTES, milli_cpu_to_shares
from nodealloc.cgroups._errors import ReservationError
from nodealloc.cgroups._limits import Limits
from nodealloc.cgroups._name import CgroupName
from nodealloc.idset import CPUSet
from nodealloc.podspec import Quantity, Resources, page_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "EVICTION_SIGNALS",
    "Enforce",
    "Reservation",
    "allocatable",
    "enforced_limits",
    "reservation_faults",
]

EVICTION_SIGNALS: Final = {"memory.available": "memory", "nodefs.available": "ephemeral-storage"}
"""Hard eviction thresholds that are held back, and from which resource."""

_OTHER_SIGNALS: Final = frozenset(
    {"nodefs.inodesFree", "imagefs.available", "imagefs.inodesFree", "containerfs.available"}
    | {"containerfs.inodesFree", "allocatableMemory.available", "pid.available"}
)
"""Signals of the kubelet for which nothing is held back."""

_ZERO: Final = Quantity(0)


class Enforce(enum.Enum):
    """What is enforced by cgroup limits, by the kubelet's names (`enforceNodeAllocatable`)."""

    PODS = "pods"
    KUBE_RESERVED = "kube-reserved"
    SYSTEM_RESERVED = "system-reserved"
    KUBE_RESERVED_COMPRESSIBLE = "kube-reserved-compressible"
    SYSTEM_RESERVED_COMPRESSIBLE = "system-reserved-compressible"


@attrs.frozen(kw_only=True)
class Reservation:
    """What the node keeps from its pods.

    Attributes:
        kube_reserved: For the node agent and its like (`kubeReserved`).
        system_reserved: For everything else outside pods (`systemReserved`).
        hard_eviction: Signal to an amount or a percentage of capacity
            (`evictionHard`): `{"memory.available": "100Mi", "nodefs.available": "10%"}`.
        reserved_cpus: Exact CPUs for the system (`reservedSystemCPUs`); they stand
            in for the CPU amounts above.
        enforce: Levels that are enforced with cgroup limits.
        kube_reserved_cgroup: Cgroup of the node agent; needed to enforce its level.
        system_reserved_cgroup: The same for the system.
    """

    kube_reserved: Resources = attrs.field(factory=dict[str, Quantity])
    system_reserved: Resources = attrs.field(factory=dict[str, Quantity])
    hard_eviction: Mapping[str, str] = attrs.field(factory=dict[str, str])
    reserved_cpus: CPUSet = CPUSet()
    enforce: frozenset[Enforce] = frozenset({Enforce.PODS})
    kube_reserved_cgroup: CgroupName | None = None
    system_reserved_cgroup: CgroupName | None = None

    @property
    def system(self) -> Resources:
        """What the system keeps; exact CPUs stand in for an amount."""
        if not self.reserved_cpus:
            return self.system_reserved
        return {**self.system_reserved, "cpu": Quantity.of(len(self.reserved_cpus))}

    @property
    def kube(self) -> Resources:
        """What the node agent keeps; nothing of the CPUs where exact ones are named."""
        if not self.reserved_cpus:
            return self.kube_reserved
        return {name: amount for name, amount in self.kube_reserved.items() if name != "cpu"}


def allocatable(
    capacity: Resources, reservation: Reservation, /, *, online: CPUSet | None = None
) -> Resources:
    """What a scheduler may give to pods: capacity less reservations and hard eviction.

    Huge pages are taken from memory, because they are gone for everything else.

    Args:
        capacity: Of the machine, by resource; `pid` counts processes.
        reservation: What is held back.
        online: CPUs of the machine, to check exact reserved CPUs against.

    Raises:
        ReservationError: It does not fit, or contradicts itself; lists every fault.

    Source: kubelet ``cm/node_container_manager_linux.go``.
    """
    if faults := reservation_faults(capacity, reservation, online=online):
        raise ReservationError(faults)
    evicted = _eviction(capacity, reservation)
    return _less(capacity, (reservation.system, reservation.kube, evicted))


def enforced_limits(capacity: Resources, reservation: Reservation, /) -> Mapping[Enforce, Limits]:
    """Limits of the cgroups that are enforced; the pods' cgroup always has its entry.

    All pods together may use capacity less reservations; hard eviction stays
    usable, since it is eviction that keeps it free. Where `pods` is not
    enforced, they get the capacity, so that their shares do not starve them.
    """
    compressible = {
        Enforce.KUBE_RESERVED_COMPRESSIBLE: reservation.kube,
        Enforce.SYSTEM_RESERVED_COMPRESSIBLE: reservation.system,
    }
    whole = {Enforce.KUBE_RESERVED: reservation.kube, Enforce.SYSTEM_RESERVED: reservation.system}
    pods = capacity
    if Enforce.PODS in reservation.enforce:
        pods = _less(capacity, (reservation.system, reservation.kube))
    found = {Enforce.PODS: _as_limits(pods)}
    for level, resources in (whole | compressible).items():
        if level in reservation.enforce:
            found[level] = _as_limits(
                {name: amount for name, amount in resources.items() if level in whole or name == "cpu"}
            )
    return found


def reservation_faults(
    capacity: Resources, reservation: Reservation, /, *, online: CPUSet | None = None
) -> tuple[str, ...]:
    """Everything that is wrong with a reservation, in words; empty when it is sound."""
    return (
        *_amount_faults(capacity, reservation),
        *_cpu_faults(reservation, online),
        *_enforce_faults(reservation),
    )


def _amount_faults(capacity: Resources, reservation: Reservation) -> Iterator[str]:
    for where, resources in (
        ("kube-reserved", reservation.kube_reserved),
        ("system-reserved", reservation.system_reserved),
    ):
        for name, amount in resources.items():
            if amount.nanos < 0:
                yield f"{where} {name} {amount} is negative; reserve 0 or more"
            elif name not in capacity:
                yield f"{where} names {name}, which this machine does not have; leave it out"
    for signal, text in reservation.hard_eviction.items():
        if signal not in EVICTION_SIGNALS and signal not in _OTHER_SIGNALS:
            known = ", ".join(sorted({*EVICTION_SIGNALS, *_OTHER_SIGNALS}))
            yield f"hard eviction {signal} is no signal; known are {known}"
        if _threshold(text, Quantity(0)) is None:
            yield f"hard eviction {signal} {text!r} is no amount and no percentage; write 100Mi or 10%"
    evicted = _eviction(capacity, reservation)
    for name, have in capacity.items():
        held = [resources.get(name, _ZERO) for resources in (reservation.system, reservation.kube, evicted)]
        total = held[0] + held[1] + held[2]
        if total > have:
            yield (
                f"{name}: {total} held back (system {held[0]}, kube {held[1]}, hard eviction {held[2]}) "
                f"of {have}; hold back at most that"
            )


def _cpu_faults(reservation: Reservation, online: CPUSet | None) -> Iterator[str]:
    if online is not None and not reservation.reserved_cpus <= online:
        missing = reservation.reserved_cpus - online
        yield f"reserved CPUs {missing} are not online; the machine has {online}"
    for level, cgroup in (
        ("kube-reserved", reservation.kube_reserved_cgroup),
        ("system-reserved", reservation.system_reserved_cgroup),
    ):
        if reservation.reserved_cpus and cgroup is not None:
            yield (
                f"reserved CPUs {reservation.reserved_cpus} together with the {level} cgroup {cgroup}: "
                "exact CPUs need no shares; name one of the two"
            )


def _enforce_faults(reservation: Reservation) -> Iterator[str]:
    levels = reservation.enforce
    for whole, part, cgroup, resources in (
        (
            Enforce.KUBE_RESERVED,
            Enforce.KUBE_RESERVED_COMPRESSIBLE,
            reservation.kube_reserved_cgroup,
            reservation.kube_reserved,
        ),
        (
            Enforce.SYSTEM_RESERVED,
            Enforce.SYSTEM_RESERVED_COMPRESSIBLE,
            reservation.system_reserved_cgroup,
            reservation.system_reserved,
        ),
    ):
        if whole in levels and part in levels:
            yield f"{part.value} is a part of {whole.value}, and both are to be enforced; keep one"
        if levels & {whole, part} and cgroup is None:
            yield f"{whole.value} is to be enforced without a cgroup; name the one its processes are in"
        if levels & {whole, part} and not resources:
            yield f"{whole.value} is to be enforced, but nothing is reserved; reserve some or leave it out"


def _threshold(text: str, capacity: Quantity) -> Quantity | None:
    """Amount of a hard eviction threshold, or None if it is neither amount nor percentage."""
    try:
        if not text.endswith("%"):
            amount = Quantity.parse(text)
            return amount if amount.nanos >= 0 else None
        part = Quantity.parse(text.removesuffix("%"))
    except ValueError:
        return None
    if not 0 <= part.nanos <= 100 * 10**9:
        return None
    # Whole units, as everything that is evicted for is counted in them.
    return Quantity(capacity.nanos * part.nanos // (100 * 10**18) * 10**9, capacity.format)


def _eviction(capacity: Resources, reservation: Reservation) -> Resources:
    held: dict[str, Quantity] = {}
    for signal, text in reservation.hard_eviction.items():
        resource = EVICTION_SIGNALS.get(signal, "")
        amount = _threshold(text, capacity[resource]) if resource in capacity else None
        if amount is not None:
            held[resource] = amount
    return held


def _less(capacity: Resources, held_back: tuple[Resources, ...]) -> Resources:
    left: dict[str, Quantity] = {}
    for name, amount in capacity.items():
        for resources in held_back:
            amount = amount - resources.get(name, _ZERO)  # noqa: PLW2901 - each holds back from what is left
        left[name] = max(amount, _ZERO)
    for name, amount in left.items():
        if page_bytes(name) is not None and "memory" in left:
            left["memory"] = max(left["memory"] - amount, _ZERO)
    return left


def _as_limits(resources: Resources) -> Limits:
    """Shares, memory, tasks and huge pages; an amount of 0 of memory or tasks is not enforced."""
    cpu, memory, pids = (resources.get(name) for name in ("cpu", "memory", "pid"))
    pages = {page_bytes(name): amount.value for name, amount in resources.items()}
    return Limits(
        cpu_shares=None if cpu is None else max(milli_cpu_to_shares(max(cpu.milli_value, 0)), MIN_SHARES),
        memory_bytes=memory.value if memory is not None and memory.value >= PAGE_BYTES else None,
        pids=pids.value if pids is not None and pids.value > 0 else None,
        hugepage_bytes={size: amount for size, amount in pages.items() if size is not None},
    )
