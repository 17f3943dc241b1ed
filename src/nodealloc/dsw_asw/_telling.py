"""Telling an observer, whose faults are its own."""

from __future__ import annotations

import logging
from collections.abc import Callable

from nodealloc.dsw_asw._ports import Observer

__all__ = ["tell"]

_log = logging.getLogger("nodealloc.dsw_asw")


def tell(observer: Observer | None, what: Callable[[Observer], None], /) -> None:
    """Call an observer, if there is one; what it raises is logged and dropped."""
    if observer is None:
        return
    try:
        what(observer)
    except Exception:  # noqa: BLE001 - an onlooker must not stop the work
        _log.exception("an observer raised; it is told of the next event all the same")
