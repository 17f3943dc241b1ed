"""Pure: what is left for pods."""

from __future__ import annotations

from typing import Final

from nodealloc._typed import typed
from nodealloc.allocatable._errors import ReservationError
from nodealloc.allocatable._reservation import (
    Reservation,
    held_for_eviction,
    negative_faults,
    reservation_faults,
)
from nodealloc.idset import CPUSet
from nodealloc.podspec import Quantity, Resources, page_bytes

__all__ = ["allocatable", "usable_by_pods"]

_ZERO: Final = Quantity()


@typed
def allocatable(
    capacity: Resources, reservation: Reservation, /, *, online: CPUSet | None = None
) -> Resources:
    """What a scheduler may give to pods: capacity less reservations and hard eviction.

    Huge pages are taken from memory, reserved ones too, because they are gone for everything else.

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
    evicted = held_for_eviction(capacity, reservation)
    return _less(capacity, (reservation.system, reservation.kube, evicted))


@typed
def usable_by_pods(capacity: Resources, reservation: Reservation, /) -> Resources:
    """What all pods together can come to use: capacity less reservations.

    Hard eviction stays in it, since it is eviction that keeps that free, not a
    limit. What is held back may be more than there is: no amount falls below 0.

    Raises:
        ReservationError: An amount below 0 is held back.

    Source: kubelet ``cm/node_container_manager_linux.go``.
    """
    if faults := tuple(negative_faults(reservation)):
        raise ReservationError(faults)
    return _less(capacity, (reservation.system, reservation.kube))


def _less(capacity: Resources, held_back: tuple[Resources, ...]) -> Resources:
    left: dict[str, Quantity] = {}
    for name, amount in capacity.items():
        for resources in held_back:
            amount = amount - resources.get(name, _ZERO)  # noqa: PLW2901 - each holds back from what is left
        left[name] = max(amount, _ZERO)
    for name, amount in capacity.items():
        # Reserved pages too: they lie in the pool, whoever may have them.
        if page_bytes(name) is not None and "memory" in left:
            left["memory"] = max(left["memory"] - amount, _ZERO)
    return left
