"""Errors as values: with all their fields in another process, and as a copy."""

from __future__ import annotations

import copy
import pickle

import pytest

from nodealloc.allocatable import ReservationError
from nodealloc.cgroups import CgroupAbsentError, CgroupBusyError, CgroupName, LimitRefusedError
from nodealloc.cgroups._errors import Process
from nodealloc.errors import DecodeError, Fault, NodeallocError, RetryableError
from nodealloc.machine import NotAMachineError

NAME = CgroupName.of("a")


@pytest.mark.parametrize(
    "error",
    [
        RetryableError("busy", after_s=3.0),
        DecodeError("file", [Fault("$", "junk"), Fault("$.a", "absent")]),
        NotAMachineError("/x", "no directory", "give another"),
        CgroupAbsentError(NAME, "/c/a", wanted_by=NAME),
        CgroupBusyError(NAME, [Process(3, "sh", "D")], after_s=2.0),
        LimitRefusedError(NAME, "/c/a", "5", 22),
        ReservationError(["too much", "too little"]),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_is_the_same_in_another_process(error: NodeallocError) -> None:
    """Class, text and fields; a pool of processes would break on one that cannot be read."""
    for other in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):  # noqa: S301
        assert type(other) is type(error)
        assert (str(other), vars(other)) == (str(error), vars(error))
