"""What a node holds, and the only place where that changes: commit first, then hold."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping
from typing import Final, TypeVar

from nodealloc import _attrs as attrs
from nodealloc._entries import with_entry, without_entry
from nodealloc.checkpoint import Checkpoint, Store
from nodealloc.node._line import Line
from nodealloc.node._record import WorkloadRecord
from nodealloc.podfacts import NodeView
from nodealloc.topology import Snapshot

__all__ = ["Change", "Held", "Holdings"]

T = TypeVar("T")

_FREE_TRIES: Final = 3
"""How often a decision is made without keeping others out, before it is made alone."""
_LINE_S: Final = 0.5
"""Longest that a decision waits for one begun before it. Made beside others it would have to be made anew for
each that is remembered meanwhile."""
_FEW: Final = 8
"""Up to so many records are put in one by one; more are put in with a copy of all."""


@attrs.frozen(kw_only=True)
class Held:
    """What a node holds, as one value.

    Attributes:
        snapshot: Who holds what.
        view: The node as whoever judges a pod sees it.
        records: What is remembered of each workload, in the order of admission.
    """

    snapshot: Snapshot
    view: NodeView
    records: Mapping[str, WorkloadRecord] = attrs.field(factory=dict[str, WorkloadRecord])


@attrs.frozen(kw_only=True)
class Change:
    """What a decision makes of what is held.

    Attributes:
        snapshot: After it.
        records: Those that are new, or other than before, as `snapshot` grants them.
        forgotten: Workloads whose records go.
        rows: What the store has to learn and to forget.
        proves: Whether the store is written even where there are no rows, to
            learn that it can be.
        set_aside: Rows that the next commit writes besides.
        view: The view after it; None where it neither rests on the view nor changes it.
    """

    snapshot: Snapshot
    records: tuple[WorkloadRecord, ...] = ()
    forgotten: tuple[str, ...] = ()
    rows: Mapping[str, Checkpoint | None] = attrs.field(factory=dict[str, "Checkpoint | None"])
    proves: bool = False
    set_aside: Mapping[str, Checkpoint] = attrs.field(factory=dict[str, Checkpoint])
    view: NodeView | None = None

    @property
    def touched(self) -> tuple[str, ...]:
        """Workloads whose records it was made from."""
        return (*(record.workload.key for record in self.records), *self.forgotten)


class Holdings:
    """What is held now. Thread-safe.

    Reading takes no lock. Who changes something decides on a value, and commits
    when nothing that it read has changed since; else it decides again, at last
    while nobody else can change anything. So the store hears of changes in the
    order in which they are held, and a decision that takes long keeps nobody.

    Args:
        empty: Nothing held.
        view: The same as a judge sees it.
        store: Where changes are remembered.
    """

    def __init__(self, empty: Snapshot, view: NodeView, store: Store) -> None:
        self._turn = threading.Lock()
        self._line = Line(_LINE_S)  # an advisor changes the node while a decision asks it
        self._store = store
        self._held = Held(snapshot=empty, view=view)
        self._set_aside: Mapping[str, Checkpoint] = {}

    @property
    def held(self) -> Held:
        """What is held now."""
        return self._held

    def settle(
        self,
        decide: Callable[[Held], tuple[T, Change | None]],
        alone: Callable[[Held], tuple[T, Change | None]] | None = None,
        *,
        line_s: float = math.inf,
    ) -> T:
        """Decide, remember, hold; the decision's answer.

        Args:
            decide: From what is held to an answer and a change, or None for no
                change; called more than once where others change something.
            alone: The same where nobody else can change anything meanwhile; it
                must not wait for anybody. `decide` where it is None.
            line_s: How long it waits at most for decisions begun before it; half a second for each alone.

        Raises:
            RetryableError: The store could not be written; what is held is as before.
        """
        with self._line.place(line_s):
            return self._settled(decide, alone)

    def _settled(
        self,
        decide: Callable[[Held], tuple[T, Change | None]],
        alone: Callable[[Held], tuple[T, Change | None]] | None,
    ) -> T:
        for _ in range(_FREE_TRIES):
            read = self._held
            answer, change = decide(read)
            if change is None:
                return answer
            with self._turn:
                if self._stands(read, change):
                    self._commit(change)
                    return answer
        with self._turn:
            answer, change = (alone or decide)(self._held)
            if change is not None:
                self._commit(change)
            return answer

    def _stands(self, read: Held, change: Change) -> bool:
        """Whether nothing has changed of what the change was made from."""
        now = self._held
        return now is read or (
            now.snapshot is read.snapshot
            and (change.view is None or now.view is read.view)
            and all(now.records.get(key) is read.records.get(key) for key in change.touched)
        )

    def _commit(self, change: Change) -> None:
        if change.rows or change.proves:
            self._store.commit({**change.rows, **self._set_aside})
            self._set_aside = {}
        if change.set_aside:
            self._set_aside = change.set_aside
        before = self._held
        self._held = Held(
            snapshot=change.snapshot, view=change.view or before.view, records=_with(before.records, change)
        )


def _with(records: Mapping[str, WorkloadRecord], change: Change) -> Mapping[str, WorkloadRecord]:
    if len(change.records) > _FEW:
        records = {**records, **{record.workload.key: record for record in change.records}}
    else:
        for record in change.records:
            records = with_entry(records, record.workload.key, record)
    for key in change.forgotten:
        if key in records:
            records = without_entry(records, key)
    return records
