"""Values only: what a node keeps from its pods, and what is wrong with that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from nodealloc import _attrs as attrs
from nodealloc._arguments import check
from nodealloc._frozen import Frozen, freeze
from nodealloc._typed import typed, typed_fields
from nodealloc.allocatable._thresholds import EVICTION_SIGNALS, SIGNALS, threshold_amount
from nodealloc.idset import CPUSet
from nodealloc.podspec import Quantity, Resources

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Reservation", "held_for_eviction", "negative_faults", "reservation_faults"]

_ZERO: Final = Quantity()


def _amounts(amounts: Mapping[str, Quantity | str | float]) -> Resources:
    # What is negative is one of the faults of a reservation, told with the others.
    check("Reservation", amounts, Mapping, "a mapping of resource name to amount")
    return Frozen({name: Quantity.of(amount) for name, amount in amounts.items()})


@typed_fields
@attrs.frozen(kw_only=True)
class Reservation:
    """What the node keeps from its pods.

    Which of it the kernel enforces, and on which cgroups, is
    `nodealloc.cgroups.Enforcement`.

    Attributes:
        kube_reserved: For the node agent and its like (`kubeReserved`).
        system_reserved: For everything else outside pods (`systemReserved`).
        hard_eviction: Signal to an amount or a percentage of capacity
            (`evictionHard`): `{"memory.available": "100Mi", "nodefs.available": "10%"}`. `0%` and
            `100%` keep nothing free.
        reserved_cpus: Exact CPUs for the system (`reservedSystemCPUs`); they stand
            in for the CPU amounts above.
    """

    kube_reserved: Resources = attrs.field(factory=dict[str, Quantity], converter=_amounts)
    system_reserved: Resources = attrs.field(factory=dict[str, Quantity], converter=_amounts)
    hard_eviction: Mapping[str, str] = attrs.field(factory=Frozen[str, str], validator=freeze)
    reserved_cpus: CPUSet = CPUSet()

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


@typed
def reservation_faults(
    capacity: Resources, reservation: Reservation, /, *, online: CPUSet | None = None
) -> tuple[str, ...]:
    """Everything that is wrong with a reservation, in words; empty when it is sound.

    Args:
        capacity: Of the machine, by resource.
        reservation: What is held back.
        online: CPUs of the machine, to check exact reserved CPUs against.
    """
    return (
        *_reserved_faults(capacity, reservation),
        *_eviction_faults(reservation),
        *_sum_faults(capacity, reservation),
        *_cpu_faults(reservation, online),
    )


def held_for_eviction(capacity: Resources, reservation: Reservation, /) -> Resources:
    """What hard eviction keeps free, by resource."""
    held: dict[str, Quantity] = {}
    for signal, text in reservation.hard_eviction.items():
        resource = EVICTION_SIGNALS.get(signal, "")
        amount = threshold_amount(text, capacity[resource]) if resource in capacity else None
        if amount is not None:
            held[resource] = amount
    return held


def negative_faults(reservation: Reservation, /) -> Iterator[str]:
    """Amounts below 0: whoever holds such a one back would give more than there is."""
    for where, name, amount in _reserved(reservation):
        if amount.nanos < 0:
            yield f"{where} {name} {amount} is negative; reserve 0 or more"


def _reserved(reservation: Reservation) -> Iterator[tuple[str, str, Quantity]]:
    for where, amounts in (
        ("kube-reserved", reservation.kube_reserved),
        ("system-reserved", reservation.system_reserved),
    ):
        for name, amount in amounts.items():
            yield where, name, amount


def _reserved_faults(capacity: Resources, reservation: Reservation) -> Iterator[str]:
    yield from negative_faults(reservation)
    for where, name, amount in _reserved(reservation):
        if amount.nanos >= 0 and name not in capacity:
            yield f"{where} names {name}, which this machine does not have; leave it out"


def _eviction_faults(reservation: Reservation) -> Iterator[str]:
    for signal, text in reservation.hard_eviction.items():
        if signal not in SIGNALS:
            yield f"hard eviction {signal} is no signal; known are {', '.join(sorted(SIGNALS))}"
        if threshold_amount(text, _ZERO) is None:
            remedy = "write 100Mi, 10%, or 0%"
            yield f"hard eviction {signal} {text!r} is no amount above 0 and no percentage; {remedy}"


def _sum_faults(capacity: Resources, reservation: Reservation) -> Iterator[str]:
    evicted = held_for_eviction(capacity, reservation)
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
