"""What a node has to give, for type checkers: amounts by resource."""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_type

from nodealloc.allocatable import Reservation, ReservationError, allocatable, usable_by_pods
from nodealloc.cgroups import Enforce, Enforcement, Limits, enforced_limits
from nodealloc.podspec import Quantity

capacity = {"cpu": Quantity.of(8), "memory": Quantity.of("16Gi")}
reservation = Reservation(kube_reserved={"cpu": Quantity.of(1)}, hard_eviction={"memory.available": "10%"})
try:
    assert_type(allocatable(capacity, reservation), Mapping[str, Quantity])
except ReservationError as error:
    assert_type(error.faults, tuple[str, ...])
assert_type(usable_by_pods(capacity, reservation)["cpu"], Quantity)
assert_type(enforced_limits(capacity, reservation, Enforcement()), Mapping[Enforce, Limits])
assert allocatable(capacity, reservation)["cpu"] == Quantity.of(7)
