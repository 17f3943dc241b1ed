"""What follows a future, as a future."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from typing import TypeVar, cast

__all__ = ["then"]

T = TypeVar("T")
U = TypeVar("U")


def then(first: Future[T], after: Callable[[Future[T]], U | Future[U]], /) -> Future[U]:
    """What `after` makes of the first, which is done then; where that is a future, its result.

    Cancelling it cancels the first, if that is not done.
    """
    second = Future[U]()

    def stopped(future: Future[U]) -> None:
        if future.cancelled():
            first.cancel()

    def ended(future: Future[U]) -> None:
        try:
            second.set_result(future.result(timeout=0))
        except (Exception, CancelledError) as error:  # noqa: BLE001 - it belongs to the reader
            second.set_exception(error)

    def came(future: Future[T]) -> None:
        if not second.set_running_or_notify_cancel():
            return
        try:
            made = after(future)
        except (Exception, CancelledError) as error:  # noqa: BLE001 - it belongs to the reader
            second.set_exception(error)
            return
        if isinstance(made, Future):
            cast("Future[U]", made).add_done_callback(ended)
        else:
            second.set_result(made)

    second.add_done_callback(stopped)
    first.add_done_callback(came)
    return second
