"""Which reservations the kernel enforces, and with which limits."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import TYPE_CHECKING

from nodealloc import _attrs as attrs
from nodealloc._typed import typed, typed_fields
from nodealloc.allocatable import Reservation, ReservationError, reservation_faults, usable_by_pods
from nodealloc.cgroups._convert import MIN_SHARES, PAGE_BYTES, milli_cpu_to_shares
from nodealloc.cgroups._errors import CgroupAbsentError
from nodealloc.cgroups._limits import Limits
from nodealloc.cgroups._name import CgroupName
from nodealloc.podspec import Resources, page_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nodealloc.cgroups._ports import CgroupDriver

__all__ = ["Enforce", "Enforcement", "enforce_reservation", "enforced_limits", "enforcement_faults"]


class Enforce(enum.Enum):
    """What is enforced by cgroup limits, by the kubelet's names (`enforceNodeAllocatable`)."""

    PODS = "pods"
    KUBE_RESERVED = "kube-reserved"
    SYSTEM_RESERVED = "system-reserved"
    KUBE_RESERVED_COMPRESSIBLE = "kube-reserved-compressible"
    SYSTEM_RESERVED_COMPRESSIBLE = "system-reserved-compressible"


@typed_fields
@attrs.frozen(kw_only=True)
class Enforcement:
    """How much of a reservation becomes cgroup limits.

    Attributes:
        levels: Levels that are enforced (`enforceNodeAllocatable`).
        kube_cgroup: Cgroup of the node agent (`kubeReservedCgroup`); needed to enforce its level.
        system_cgroup: The same for the system (`systemReservedCgroup`).
    """

    levels: frozenset[Enforce] = frozenset({Enforce.PODS})
    kube_cgroup: CgroupName | None = None
    system_cgroup: CgroupName | None = None


def enforcement_faults(reservation: Reservation, enforcement: Enforcement, /) -> tuple[str, ...]:
    """What contradicts itself between what is reserved and what is enforced; empty when nothing does."""
    return (*_cpu_faults(reservation, enforcement), *_level_faults(reservation, enforcement))


@typed
def enforced_limits(
    capacity: Resources, reservation: Reservation, enforcement: Enforcement | None = None, /
) -> Mapping[Enforce, Limits]:
    """Limits of the cgroups that are enforced; the pods' cgroup always has its entry.

    All pods together may use capacity less reservations; hard eviction stays
    usable, since it is eviction that keeps it free. Where `pods` is not
    enforced, they get the capacity, so that their shares do not starve them.

    Args:
        capacity: Of the machine, by resource.
        reservation: What is held back.
        enforcement: Which levels; the pods' alone if not given.

    Source: kubelet ``cm/node_container_manager_linux.go``.
    """
    levels = (enforcement or Enforcement()).levels
    compressible = {
        Enforce.KUBE_RESERVED_COMPRESSIBLE: reservation.kube,
        Enforce.SYSTEM_RESERVED_COMPRESSIBLE: reservation.system,
    }
    whole = {Enforce.KUBE_RESERVED: reservation.kube, Enforce.SYSTEM_RESERVED: reservation.system}
    pods = usable_by_pods(capacity, reservation) if Enforce.PODS in levels else capacity
    found = {Enforce.PODS: _as_limits(pods)}
    for level, resources in (whole | compressible).items():
        if level in levels:
            found[level] = _as_limits(
                {name: amount for name, amount in resources.items() if level in whole or name == "cpu"}
            )
    return found


@typed
def enforce_reservation(
    driver: CgroupDriver, capacity: Resources, reservation: Reservation, enforcement: Enforcement, /
) -> Mapping[CgroupName, Limits]:
    """Limit the node agent's and the system's cgroups; the pods' is the tree's own.

    Everything is checked before anything is written. May be repeated.

    Args:
        driver: Writes the limits.
        capacity: Of the machine, by resource.
        reservation: What is held back.
        enforcement: Which levels are enforced, and on which cgroups.

    Returns:
        What was written.

    Raises:
        ReservationError: The reservation is not sound, or its enforcement is not.
        CgroupAbsentError: A cgroup that is to be limited does not exist. It is
            not made: its processes are elsewhere then, and would not be limited.

    Source: kubelet ``cm/node_container_manager_linux.go``.
    """
    faults = (
        *reservation_faults(capacity, reservation),
        *enforcement_faults(reservation, enforcement),
    )
    if faults:
        raise ReservationError(faults)
    cgroups = {
        Enforce.KUBE_RESERVED: enforcement.kube_cgroup,
        Enforce.KUBE_RESERVED_COMPRESSIBLE: enforcement.kube_cgroup,
        Enforce.SYSTEM_RESERVED: enforcement.system_cgroup,
        Enforce.SYSTEM_RESERVED_COMPRESSIBLE: enforcement.system_cgroup,
    }
    levels = enforced_limits(capacity, reservation, enforcement)
    wanted = {name: levels[level] for level, name in cgroups.items() if level in levels and name is not None}
    for name in wanted:
        if driver.read(name) is None:
            raise CgroupAbsentError(name, str(name))
    for name, limits in wanted.items():
        driver.apply(name, limits)
    return wanted


def _cpu_faults(reservation: Reservation, enforcement: Enforcement) -> Iterator[str]:
    for level, cgroup in (
        ("kube-reserved", enforcement.kube_cgroup),
        ("system-reserved", enforcement.system_cgroup),
    ):
        if reservation.reserved_cpus and cgroup is not None:
            yield (
                f"reserved CPUs {reservation.reserved_cpus} together with the {level} cgroup {cgroup}: "
                "exact CPUs need no shares; name one of the two"
            )


def _level_faults(reservation: Reservation, enforcement: Enforcement) -> Iterator[str]:
    levels = enforcement.levels
    for whole, part, cgroup, resources in (
        (
            Enforce.KUBE_RESERVED,
            Enforce.KUBE_RESERVED_COMPRESSIBLE,
            enforcement.kube_cgroup,
            reservation.kube_reserved,
        ),
        (
            Enforce.SYSTEM_RESERVED,
            Enforce.SYSTEM_RESERVED_COMPRESSIBLE,
            enforcement.system_cgroup,
            reservation.system_reserved,
        ),
    ):
        if whole in levels and part in levels:
            yield f"{part.value} is a part of {whole.value}, and both are to be enforced; keep one"
        if levels & {whole, part} and cgroup is None:
            yield f"{whole.value} is to be enforced without a cgroup; name the one its processes are in"
        if levels & {whole, part} and not resources:
            yield f"{whole.value} is to be enforced, but nothing is reserved; reserve some or leave it out"


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
