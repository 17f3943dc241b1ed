"""What is reserved, which thresholds hold, and what is left to give.

- *Capacity* is what a machine has, by resource.
- A *reservation* is what the node keeps from its pods: for the system, for the
  node agent, and the amounts that hard eviction keeps free.
- *Allocatable* is the rest: what a scheduler may give away.

::

    capacity ── system ── kube ── hard eviction ──▶ allocatable()
            └── system ── kube ───────────────────▶ usable_by_pods()

All of it is arithmetic on values; the cgroup limits that follow from it are in
`nodealloc.cgroups`.

    >>> from nodealloc.podspec import Quantity
    >>> kept = {"memory": Quantity.of("1Gi")}
    >>> reservation = Reservation(kube_reserved=kept, hard_eviction={"memory.available": "10%"})
    >>> allocatable({"memory": Quantity.of("16Gi")}, reservation)["memory"].value >> 20
    13721
"""

from nodealloc.allocatable._amounts import allocatable, usable_by_pods
from nodealloc.allocatable._errors import ReservationError
from nodealloc.allocatable._reservation import Reservation, reservation_faults

__all__ = [
    "Reservation",
    "ReservationError",
    "allocatable",
    "reservation_faults",
    "usable_by_pods",
]
