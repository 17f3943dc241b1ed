"""What holds while nodes are simulated: no log, and little looking for garbage."""

from __future__ import annotations

import gc
import logging
from collections.abc import Generator
from contextlib import contextmanager

__all__ = ["silence"]

_YOUNG = 300_000
"""Objects more than before until garbage is collected that reference counts do not free: 100 MB at most."""


@contextmanager
def silence() -> Generator[None, None, None]:
    """Faults are meant here, so nothing is logged. Cycles of garbage are few, and rarely looked for.

    One around several others counts for all of them, and looks for garbage once, at its end.
    """
    logger = logging.getLogger("nodealloc")
    before, (young, *older) = logger.level, gc.get_threshold()
    logger.setLevel(logging.CRITICAL + 1)
    if young:  # 0 is somebody's wish to have none collected
        gc.set_threshold(max(young, _YOUNG), *older)
    try:
        yield
    finally:
        gc.set_threshold(young, *older)
        logger.setLevel(before)
