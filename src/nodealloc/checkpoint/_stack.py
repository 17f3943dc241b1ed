"""A call that finds room on the stack, however much of it the caller has used."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import ParamSpec, TypeVar

__all__ = ["on_a_stack"]

P = ParamSpec("P")
T = TypeVar("T")


def on_a_stack(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """What the function answers; when the stack is too short, on that of a new thread.

    Python counts all calls of a thread against one limit, so that what a
    function can do depends on who calls it. In a thread of its own it does not.

    Args:
        function: Without effects: it may be called twice.
        args: For it.
        kwargs: For it.

    Raises:
        RecursionError: A thread of its own is too short as well.
    """
    try:
        return function(*args, **kwargs)
    except RecursionError:
        pass
    answers: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            answers.append(function(*args, **kwargs))
        except BaseException as error:  # noqa: BLE001  # raised again below, in the caller's thread
            errors.append(error)

    thread = threading.Thread(target=run, name="nodealloc-stack")
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return answers[0]
