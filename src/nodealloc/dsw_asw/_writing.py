"""What a pass writes down, and what is done where the journal refuses it."""

from __future__ import annotations

import logging
from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

from nodealloc.dsw_asw._bookkeeping import Bookkeeping
from nodealloc.dsw_asw._records import Records
from nodealloc.dsw_asw._remembering import Rows, remembering
from nodealloc.dsw_asw._steps import Failure
from nodealloc.dsw_asw._turn import Turn

__all__ = ["Writing"]

K = TypeVar("K", bound=Hashable)
H = TypeVar("H")
S = TypeVar("S")

_log = logging.getLogger("nodealloc.dsw_asw")


class Writing(Generic[K, H]):
    """Intents and results of passes on their way into the journal; used by one thread at a time.

    A journal that refused is left alone for a back-off: what came meanwhile is
    planned again after it.

    Args:
        records: Where results wait until they are committed.
        bookkeeping: Holds keys off.
        name: Of the engine, for messages.
        plans_once: Whether what a plan writes is no reason for another one.
    """

    def __init__(
        self, records: Records[K, H], bookkeeping: Bookkeeping[K], name: str, *, plans_once: bool = False
    ) -> None:
        self._records = records
        self._bookkeeping = bookkeeping
        self._name = name
        self._plans_once = plans_once
        self._refused_until_s: float | None = None
        self._unwritten: dict[K, None] = {}

    def close(self) -> None:
        """Try whatever a last pass has, however lately the journal refused."""
        self._refused_until_s = None

    def rows(self, turn: Turn[K, H, S], /) -> Rows | None:
        """What this pass has to write down; nothing while the journal is being left alone."""
        if not turn.intents and not self._records.waiting:
            return None

        def fault(key: K, error: Exception) -> None:
            turn.intents.pop(key, None)
            self._hold(key, turn, error)

        waits = self._refused_until_s is not None and turn.now_s < self._refused_until_s
        if waits:
            turn.held.update(turn.intents, self._records.waiting)
            self._unwritten.update(dict.fromkeys(turn.intents))
            turn.intents.clear()
            return None
        return self._records.rows(dict(turn.intents), fault)

    def ended(self, turn: Turn[K, H, S], error: Exception | None, /) -> None:
        """The pass was written down, or could not be: publish what is, hold what is not."""
        if error is not None:
            self._not_remembered(turn, error)
        elif not turn.held:
            self._refused_until_s = None
        intents = turn.intents if error is None else {}
        waiting = tuple(self._records.waiting)
        if turn.intents or waiting:
            self._forget_failures(waiting, turn)
            seen = self._seen(turn)
            turn.held |= self._records.publish(intents, turn.held)
            with self._bookkeeping.lock:
                self._bookkeeping.due_keys.planned = seen
        self._forget_failures(intents, turn)

    def _seen(self, turn: Turn[K, H, S]) -> dict[K, tuple[str, ...]]:
        """Key to whose change of it this pass has planned with, and left as it is."""
        waiting = self._records.waiting
        own: dict[K, tuple[str, ...]] = {}
        if self._plans_once:
            own = dict.fromkeys(turn.intents, ("plan",))
        if not waiting:
            return own
        return own | {
            key: (waiting[key][1],)
            for key, _ in turn.plans
            if key in waiting and key not in turn.intents and key not in turn.held
        }

    def _forget_failures(self, keys: Iterable[K], turn: Turn[K, H, S]) -> None:
        for key in keys:
            if key not in turn.held and self._bookkeeping.has_failures(key):
                self._bookkeeping.forget_step(key, remembering(key))

    def _not_remembered(self, turn: Turn[K, H, S], error: Exception) -> None:
        """The journal refused: intents are dropped, results wait, and nothing starts on either."""
        _log.error("%s: could not be remembered, tried again after a back-off: %s", self._name, error)
        due_s = turn.now_s
        for key in {**dict.fromkeys(turn.intents), **dict.fromkeys(self._records.waiting)}:
            due_s = self._hold(key, turn, error).due_s
            self._unwritten[key] = None
        self._refused_until_s = due_s
        with self._bookkeeping.lock:
            self._bookkeeping.timers.add(due_s, self._write_again)

    def _write_again(self) -> None:
        """The journal was left alone for long enough: plan what could not be written meanwhile."""
        keys, self._unwritten = self._unwritten, {}
        self._bookkeeping.due_keys.add(keys)

    def _hold(self, key: K, turn: Turn[K, H, S], error: Exception) -> Failure:
        turn.held.add(key)
        turn.count("failed")
        return self._bookkeeping.hold_off(key, remembering(key), error, turn.now_s)
