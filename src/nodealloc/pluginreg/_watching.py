"""Looks at the directory when there is a reason to: one operation of the engine after another."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from nodealloc._error_words import error_words
from nodealloc.dirwatch import Watcher
from nodealloc.dsw_asw import (
    BackOff,
    Cancel,
    Clock,
    Done,
    Outcome,
    Plan,
    Reconciler,
    Step,
    ThreadExecutor,
    View,
    World,
)

__all__ = ["watching"]

_log = logging.getLogger("nodealloc.pluginreg")
_BACK_OFF: Final = BackOff(initial_s=1.0, max_s=1.0)


class _Domain:
    """A `Domain`: wanted are directories that are watched, there is how often each was looked at."""

    def __init__(self, observe: Callable[[], object], watcher: Watcher, observe_s: float) -> None:
        self._observe = observe
        self._watcher = watcher
        self._observe_s = observe_s
        self._trouble = ""

    def plan(self, view: View[str, int, int, int], /) -> Plan[int, int]:
        """Look, and again."""
        if view.want is None:
            return Plan(have=None, cancel=True)
        return Plan(steps=[Step(scope=(view.key,), verb="observe", detail=view.have or 0)])

    def perform(self, step: Step[int], cancel: Cancel, /) -> None:
        """Look, then wait for a reason to look again."""
        leave = cancel.on_cancel(self._watcher.close)
        try:
            self._observe()
            self._watcher.wait(self._observe_s)
        except Exception as error:
            trouble = error_words(error)
            if trouble != self._trouble:
                _log.exception("%s: looking for sockets failed; again each second", *step.scope)
            self._trouble = trouble
            raise
        finally:
            leave()
        self._trouble = ""

    def settled(self, have: int | None, _step: Step[int], outcome: Outcome[None], /) -> int | None:
        """How often it was looked at."""
        return (have or 0) + 1 if isinstance(outcome, Done) else have


def watching(
    watched: World[str, int],
    observe: Callable[[], object],
    watcher: Watcher,
    /,
    *,
    observe_s: float,
    clock: Clock,
) -> Reconciler[str, int, int, int]:
    """What looks at the directories in `watched`; its wait reads the kernel's events.

    Args:
        watched: Empty until somebody starts.
        observe: Looks.
        watcher: Says when to look; closed when it ends.
        observe_s: Seconds after which it looks without a reason.
        clock: Time for back-off.
    """
    return Reconciler(
        _Domain(observe, watcher, observe_s),
        desired=watched,
        actual=World[str, int]("looks at directories"),
        executor=ThreadExecutor("plugin sockets"),
        clock=clock,
        back_off=_BACK_OFF,
        name="plugin sockets",
    )
