"""Calls to parts of others whose errors are theirs alone."""

from __future__ import annotations

import logging
from collections.abc import Callable

__all__ = ["logged"]


def logged(log: logging.Logger, call: Callable[[], object], words: str, /, *given: object) -> None:
    """Call it, as to end it; what it raises is logged with these words, and whoever calls goes on."""
    try:
        call()
    except Exception:
        log.exception(words, *given)
