"""Laws of what is left to give."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nodealloc.allocatable import Reservation, ReservationError, allocatable, usable_by_pods
from nodealloc.podspec import Quantity


@given(
    have=st.integers(0, 1 << 40),
    system=st.integers(0, 1 << 40),
    kube=st.integers(0, 1 << 40),
    percent=st.integers(0, 100),
)
def test_nothing_is_lost_or_invented(have: int, system: int, kube: int, percent: int) -> None:
    """Allocatable and what is held back make up the capacity; what does not fit is refused.

    A percentage is a number of single precision: what is held for it is near the exact part. All of it
    is none.
    """
    reservation = Reservation(
        system_reserved={"memory": Quantity.of(system)},
        kube_reserved={"memory": Quantity.of(kube)},
        hard_eviction={"memory.available": f"{percent}%"},
    )
    held, near = system + kube + have * (percent % 100) // 100, 1 + have // 2**23
    try:
        left = allocatable({"memory": Quantity.of(have)}, reservation)["memory"].value
    except ReservationError:
        assert held > have - near
    else:
        assert abs(have - held - left) <= near
        usable = usable_by_pods({"memory": Quantity.of(have)}, reservation)["memory"].value
        assert usable == have - system - kube
