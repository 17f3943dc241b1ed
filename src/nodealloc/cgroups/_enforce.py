"""Applying what is held back for the system to cgroups that exist already."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodealloc.cgroups._allocatable import Enforce, Reservation, enforced_limits, reservation_faults
from nodealloc.cgroups._errors import CgroupAbsentError, ReservationError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nodealloc.cgroups._limits import Limits
    from nodealloc.cgroups._name import CgroupName
    from nodealloc.cgroups._ports import CgroupDriver
    from nodealloc.podspec import Resources

__all__ = ["enforce_reservation"]


def enforce_reservation(
    driver: CgroupDriver, capacity: Resources, reservation: Reservation, /
) -> Mapping[CgroupName, Limits]:
    """Limit the node agent's and the system's cgroups; the pods' is the tree's own.

    Everything is checked before anything is written. May be repeated.

    Args:
        driver: Writes the limits.
        capacity: Of the machine, by resource.
        reservation: What is held back, and which levels are enforced.

    Returns:
        What was written.

    Raises:
        ReservationError: The reservation is not sound.
        CgroupAbsentError: A cgroup that is to be limited does not exist. It is
            not made: its processes are elsewhere then, and would not be limited.

    Source: kubelet ``cm/node_container_manager_linux.go``.
    """
    if faults := reservation_faults(capacity, reservation):
        raise ReservationError(faults)
    cgroups = {
        Enforce.KUBE_RESERVED: reservation.kube_reserved_cgroup,
        Enforce.KUBE_RESERVED_COMPRESSIBLE: reservation.kube_reserved_cgroup,
        Enforce.SYSTEM_RESERVED: reservation.system_reserved_cgroup,
        Enforce.SYSTEM_RESERVED_COMPRESSIBLE: reservation.system_reserved_cgroup,
    }
    levels = enforced_limits(capacity, reservation)
    wanted = {name: levels[level] for level, name in cgroups.items() if level in levels and name is not None}
    for name in wanted:
        if driver.read(name) is None:
            raise CgroupAbsentError(name, str(name))
    for name, limits in wanted.items():
        driver.apply(name, limits)
    return wanted
