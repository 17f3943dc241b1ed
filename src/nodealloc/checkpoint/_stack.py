"""Calls that find room on the stack, however much of it the caller has used."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final, ParamSpec, TypeVar

__all__ = ["TooDeepError", "on_a_stack", "with_room"]

P = ParamSpec("P")
T = TypeVar("T")

_ROOM: Final = 64
"""Calls in each other that an operation of a store may need, twice over; making a thread needs fewer."""


class TooDeepError(Exception):
    """A whole stack is too short for a call: what it works on is nested too deeply."""


def on_a_stack(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """What the function answers; when the stack is too short, on that of a new thread.

    Python counts all calls of a thread against one limit, so that what a
    function can do depends on who calls it. In a thread of its own it does not.

    Args:
        function: Without effects: it may be called twice.
        args: For it.
        kwargs: For it.

    Raises:
        TooDeepError: A thread of its own is too short as well.
        RecursionError: The caller's stack has no room to make a thread.
    """
    try:
        return function(*args, **kwargs)
    except RecursionError:
        pass
    return _alone(function, *args, **kwargs)


def with_room(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """The same for a function with effects, which must not be cut off in the middle: it is called once.

    Raises:
        RecursionError: The caller's stack has no room to make a thread; the function was not called.
    """
    try:
        _descend(_ROOM)
    except RecursionError:
        return _alone(function, *args, **kwargs)
    return function(*args, **kwargs)


def _descend(calls: int) -> None:
    if calls:
        _descend(calls - 1)


def _alone(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    answers: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            answers.append(function(*args, **kwargs))
        except RecursionError:
            errors.append(TooDeepError())
        except BaseException as error:  # noqa: BLE001  # raised again below, in the caller's thread
            errors.append(error)

    thread = threading.Thread(target=run, name="nodealloc-stack")
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return answers[0]
