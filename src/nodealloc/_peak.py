"""The most that a pod holds at one moment: one rule, whatever is added up."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

__all__ = ["peak"]

T = TypeVar("T")


def peak(
    before: Iterable[tuple[T, bool]],
    main: Iterable[T],
    /,
    *,
    nothing: T,
    add: Callable[[T, T], T],
    most: Callable[[T, T], T],
) -> T:
    """The largest total at one moment.

    Args:
        before: What each init member asks for, in order, and whether it goes on
            beside the others (a sidecar) instead of ending before the next starts.
        main: What each of the others asks for.
        nothing: The total of nobody.
        add: Of two totals, both together.
        most: Of two totals, the larger.

    Source: KEP-753, "Resources calculation for scheduling and pod admission":
    each init member runs beside the sidecars before it; all others run beside
    all sidecars.
    """
    started = largest = nothing
    for wanted, goes_on in before:
        together = add(started, wanted)
        if goes_on:
            started = together
        else:
            largest = most(largest, together)
    for wanted in main:
        started = add(started, wanted)
    return most(largest, started)
