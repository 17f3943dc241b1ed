"""Errors as values: with all their fields in another process, and as a copy."""

from __future__ import annotations

import copy
import pickle

import pytest

from nodealloc._error_words import error_words
from nodealloc.allocatable import ReservationError
from nodealloc.cgroups import CgroupAbsentError, CgroupBusyError, CgroupName, LimitRefusedError
from nodealloc.cgroups._errors import Process
from nodealloc.errors import (
    DecodeError,
    Fault,
    NodeallocError,
    PermanentError,
    RetryableError,
    UncertainError,
)
from nodealloc.machine import NotAMachineError
from nodealloc.runtime import AnswerLostError
from nodealloc.topology import UnknownAllocatorError

NAME = CgroupName.of("a")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (RetryableError("busy", after_s=3.0), "busy"),
        (OSError(2, "No such file"), "[Errno 2] No such file"),
        (RuntimeError(), "RuntimeError"),
        (KeyError("uid"), "KeyError: 'uid'"),
        (KeyError(), "KeyError"),
        (LookupError("config map web is not there"), "config map web is not there"),
        (IndexError("list index out of range"), "IndexError: list index out of range"),
        (ZeroDivisionError("division by zero"), "ZeroDivisionError: division by zero"),
        (UnknownAllocatorError("cpu", 0, ()), "no allocator cpu; there are: none"),
    ],
)
def test_what_an_error_says_where_that_is_all_that_is_told(error: Exception, words: str) -> None:
    """Those that are for whoever has the traceback say their kind as well."""
    assert error_words(error) == words


def test_what_may_have_been_done_is_caught_by_its_own_name_alone() -> None:
    """Whoever catches what changed nothing does not take it for that."""
    kinds = (RetryableError, UncertainError, PermanentError)
    assert [[issubclass(one, other) for other in kinds] for one in kinds] == [
        [True, False, False],
        [False, True, False],
        [False, False, True],
    ]
    error = AnswerLostError("stop_container", "deadline exceeded")
    assert isinstance(error, UncertainError)
    assert error.after_s >= 0


@pytest.mark.parametrize(
    "error",
    [
        RetryableError("busy", after_s=3.0),
        UncertainError("perhaps", after_s=3.0),
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
