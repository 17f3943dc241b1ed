"""The shell: holds the current snapshot behind a lock, remembers before it answers."""

from __future__ import annotations

import contextlib
import enum
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final, TypeVar

import attrs

from nodealloc.checkpoint import KUBELET_FORMATS, Checkpoint, Formats, JsonCheckpoint, Store, row_key
from nodealloc.errors import RetryableError
from nodealloc.node._adoption import adopted
from nodealloc.node._confinement import confinement_of
from nodealloc.node._errors import NotAdmittedError
from nodealloc.node._held_allocator import HeldAllocator
from nodealloc.node._ledger import Ledger
from nodealloc.node._loading import ROW, SET_ASIDE, StartReport, load
from nodealloc.node._ports import Advisor, Running, Runtime
from nodealloc.node._record import WorkloadRecord
from nodealloc.podspec import Pod
from nodealloc.topology import (
    Admitted,
    Allocator,
    Confinement,
    NotYet,
    Owner,
    Placed,
    Refusal,
    Snapshot,
    Workload,
    admit,
    release,
    workload_of,
)

__all__ = ["FORMATS", "NodeAllocator"]

A = TypeVar("A", bound=Allocator)

FORMATS: Final[Formats] = {
    **KUBELET_FORMATS,
    f"{ROW}.*": JsonCheckpoint.unmarshal,
    f"{SET_ASIDE}.*": JsonCheckpoint.unmarshal,
}
"""What a store has to be opened with to serve a `NodeAllocator`."""


_ADVICE_ROUNDS: Final = 8
"""Questions that answers lead to are asked in turn, so often at the most."""


class _Until(enum.Enum):
    """What has to happen before anything new is admitted, as a caller reads it."""

    STARTED = "start() has not been called"
    ACCEPTED = "the start-up report has not been accepted"
    RUNNING_KNOWN = "the runtime has not said what runs"


class NodeAllocator:
    """What one node holds now: loads, admits, remembers, releases.

    Every method may be called from any thread; calls take turns. Nothing is
    answered before it is durable, and after any exception the node holds what
    it held before the call.

    ```text
       start() ─▶ StartReport ─▶ accept()? ─▶ the runtime answers ─▶ admit() · release()
                  clean: accepted by itself     until then: not yet
    ```

    Args:
        empty: The node with its allocators and nothing held; each of them
            `Remembers`.
        store: Where decisions are remembered; opened with `FORMATS`. The caller
            closes it.
        runtime: Whoever runs containers; None where nothing outlives this process.
        kubelet_files: Names of the allocators whose kubelet state file each
            commit writes as well, so that a kubelet can take the node over.
            Their size grows with what the node holds.

    Raises:
        NotRememberedError: An allocator could not be restored.
        NoKubeletFileError: `kubelet_files` is text, or names an allocator that
            is not there or keeps no such file.
    """

    def __init__(
        self,
        empty: Snapshot,
        store: Store,
        *,
        runtime: Runtime | None = None,
        kubelet_files: Collection[str] = (),
    ) -> None:
        self._lock = threading.RLock()
        self._snapshot = empty
        self._store = store
        self._ledger = Ledger.of(empty, kubelet_files)
        self._runtime = runtime
        self._advisor: Advisor | None = None
        self._records: dict[str, WorkloadRecord] = {}
        self._set_aside: Mapping[str, Checkpoint] = {}
        self._report: StartReport | None = None
        self._waits_for: _Until | None = _Until.STARTED

    @property
    def snapshot(self) -> Snapshot:
        """The node as it is remembered; an immutable value for dry runs and pictures."""
        return self._snapshot

    @property
    def records(self) -> Mapping[str, WorkloadRecord]:
        """What is remembered of each workload, in the order of admission; a copy."""
        with self._lock:
            return dict(self._records)

    def advise_with(self, advisor: Advisor | None, /) -> None:
        """Have admissions ask an advisor before they are final."""
        self._advisor = advisor

    def start(self) -> StartReport:
        """Load what was remembered, and say what does not fit any more.

        A clean start is accepted by itself, once the store can be written. After
        any other one, running workloads stay admitted and nothing new is, until
        `accept` is called.

        Raises:
            ValueError: It was started before.
        """
        with self._lock:
            if self._report is not None:
                raise ValueError("this node was started before: a restart is another NodeAllocator")
            loaded = load(self._snapshot, self._store.read())
            self._snapshot = loaded.snapshot
            self._records = dict(loaded.records)
            self._report = loaded.report
            self._set_aside = loaded.set_aside
            self._waits_for = _Until.ACCEPTED
            if loaded.report.is_clean:
                with contextlib.suppress(RetryableError):  # admissions try it again
                    self.accept()
            return loaded.report

    def accept(self) -> None:
        """Go on with what `start` reported: moves are remembered, evicted workloads forgotten.

        What made no sense is kept as `set-aside.<key>`.

        Raises:
            RetryableError: The store could not be written; nothing changed.
        """
        with self._lock:
            if self._report is None:
                raise ValueError("nothing was loaded yet: call start() first")
            records, changes = self._ledger.accepted(self._report, self._records, self._snapshot)
            self._store.commit({**changes, **self._set_aside})
            self._set_aside = {}
            self._records = records
            self._waits_for = _Until.RUNNING_KNOWN if self._runtime else None

    def admit(self, asked: Pod | Workload, /) -> Placed | Refusal | NotYet:
        """Whether a workload fits, all of it or nothing; remembered when it does.

        What was admitted before is admitted again with the same answer, whatever
        state the node, its runtime or its plugins are in. Until start-up is over,
        and while the store cannot be written, the answer for others is *not yet*.

        Raises:
            ProviderError: An allocator raised, or answered with nonsense.
        """
        workload = workload_of(asked) if isinstance(asked, Pod) else asked
        advisor = self._advisor
        for _ in range(_ADVICE_ROUNDS if advisor else 0):
            outcome = admit(self._snapshot, workload)
            if not isinstance(outcome, Admitted) or outcome.repeated or not advisor:
                break
            if not advisor.ask(outcome.snapshot):
                break
        with self._lock:
            if workload.key not in self._snapshot.admitted:
                waiting = self._not_ready()
                if waiting is not None:
                    return waiting
            verdict = admit(self._snapshot, workload)
            return self._remember(workload, verdict) if isinstance(verdict, Admitted) else verdict

    def adopt(self, asked: Pod | Workload, running: Mapping[str, Confinement], /) -> None:
        """Take over a workload that runs but is not remembered, where it runs.

        For rebuilding after damage: call it for what the runtime lists, then
        `accept`. One that is remembered already stays as it is.

        Args:
            asked: What was once asked.
            running: Member to where its container is confined now.

        Raises:
            AdoptionError: It runs on something that others hold, or that cannot be had.
            RetryableError: The store could not be written; nothing changed.
        """
        workload = workload_of(asked) if isinstance(asked, Pod) else asked
        with self._lock:
            if workload.key in self._snapshot.admitted:
                return
            snapshot = adopted(self._snapshot, workload, running)
            affinity = snapshot.admitted[workload.key]
            order = snapshot.generation
            self._commit(snapshot, [WorkloadRecord(workload=workload, order=order, affinity=affinity)])

    def release(self, workload: str, member: str | None = None, /) -> None:
        """Give back what a workload, or one member of it, holds; an unknown one holds nothing.

        Call it when the containers have ended: whatever they held may be granted
        to others before this returns.

        Raises:
            RetryableError: The store could not be written; nothing was released.
        """
        with self._lock:
            record = self._records.get(workload)
            snapshot = release(self._snapshot, workload, member)
            if record is None or snapshot is self._snapshot:
                return
            left = snapshot.admitted.get(workload)
            if left is None:
                self._commit(snapshot, forgotten=[workload])
                return
            bound = {name: one for name, one in record.bound.items() if name in left}
            self._commit(snapshot, [attrs.evolve(record, affinity=left, bound=bound)])

    def before_start(self, owner: Owner, container_id: str, /) -> Confinement:
        """Bind a container to its owner's grant; confine it to the answer before it runs.

        A container that starts in the place of an earlier one takes its place.

        Raises:
            NotAdmittedError: The owner holds nothing here.
            RetryableError: The store could not be written; nothing is bound.
        """
        with self._lock:
            record = self._records.get(owner.workload)
            if record is None or owner.member not in record.affinity:
                raise NotAdmittedError(owner)
            if record.bound.get(owner.member) != container_id:
                bound = {**record.bound, owner.member: container_id}
                self._commit(self._snapshot, [attrs.evolve(record, bound=bound)])
            return confinement_of(self._snapshot, owner)

    def after_stop(self, owner: Owner, container_id: str, /) -> bool:
        """A container has ended: unbind it, unless another one took its place since.

        The grant stays with its owner until `release`, so that a restarted
        container finds what it had.

        Returns:
            Whether this very container was bound.

        Raises:
            RetryableError: The store could not be written; it is still bound.
        """
        with self._lock:
            record = self._records.get(owner.workload)
            if record is None or record.bound.get(owner.member) != container_id:
                return False
            bound = {name: one for name, one in record.bound.items() if name != owner.member}
            self._commit(self._snapshot, [attrs.evolve(record, bound=bound)])
            return True

    def release_stale(self, wanted: Collection[str], /) -> tuple[str, ...]:
        """Release workloads that nobody wants and of which nothing runs any more.

        Args:
            wanted: Keys of all workloads that there should be. Leave the call
                out while their source cannot be reached.

        Returns:
            Keys of what was released.

        Raises:
            RetryableError: The runtime cannot tell what runs, or the store could
                not be written; what is not in the answer of a later call stays.
        """
        with self._lock:
            running = {one.owner.workload for one in self._running()}
            stale = [key for key in self._records if key not in wanted and key not in running]
            for workload in stale:
                self.release(workload)
            return tuple(stale)

    def allocator(self, kind: type[A], name: str | None = None, /) -> HeldAllocator[A]:
        """One allocator as whoever changes it sees it, such as `nodealloc.devices.DevicePlugins`.

        Args:
            kind: Its class.
            name: Of several of that class.

        Raises:
            UnknownAllocatorError: There is none; or there are several, and no
                name is given.
        """
        found = self.snapshot[kind] if name is None else self.snapshot[name]
        return HeldAllocator(node=self, kind=kind, name=found.name)

    def alter(self, name: str, change: Callable[[Allocator], Allocator], /) -> tuple[Allocator, Allocator]:
        """Replace one allocator by a function of it: its inventory or its answers changed.

        Workloads whose grants differ afterwards are remembered anew.

        Args:
            name: Of the allocator.
            change: A pure function; may be called more than once.

        Returns:
            The allocators before and after.

        Raises:
            UnknownAllocatorError: No allocator has that name.
            RetryableError: The store could not be written; nothing changed.
        """
        with self._lock:
            before = self._snapshot[name]
            after = change(before)
            if after is not before:
                allocators = tuple(after if one is before else one for one in self._snapshot.allocators)
                snapshot = attrs.evolve(
                    self._snapshot, allocators=allocators, generation=self._snapshot.generation + 1
                )
                self._commit(snapshot, self._ledger.regranted(before, after, self._records))
            return before, after

    def _remember(self, workload: Workload, verdict: Placed) -> Placed | NotYet:
        """The verdict, once it is durable; *not yet* where the store cannot be written."""
        if verdict.repeated:
            return self._with_claims(workload, verdict)
        if self._advisor is not None:
            verdict = attrs.evolve(verdict, snapshot=self._advisor.settled(verdict.snapshot))
        order = verdict.snapshot.generation
        record = WorkloadRecord(workload=workload, order=order, affinity=verdict.affinity)
        try:
            self._commit(verdict.snapshot, [record])
        except RetryableError as error:
            return _not_yet("store", str(error), error.after_s)
        return verdict

    def _with_claims(self, workload: Workload, verdict: Placed) -> Placed | NotYet:
        """A workload that was taken over without its claims gets them when it is met again."""
        record = self._records.get(workload.key)
        if record is not None and workload.claims and not record.workload.claims:
            try:
                self._commit(self._snapshot, [attrs.evolve(record, workload=workload)])
            except RetryableError as error:
                return _not_yet("store", str(error), error.after_s)
        return verdict

    def _running(self) -> Iterable[Running]:
        return self._runtime.running() if self._runtime else ()

    def _not_ready(self) -> NotYet | None:
        if self._waits_for is _Until.ACCEPTED and self._report and self._report.is_clean:
            try:
                self.accept()
            except RetryableError as error:
                return _not_yet("store", str(error), error.after_s)
        if self._waits_for is None:
            return None
        if self._waits_for is not _Until.RUNNING_KNOWN:
            return _not_yet("node", self._waits_for.value, 1.0)
        try:
            self._running()
        except RetryableError as error:
            return _not_yet("runtime", f"{self._waits_for.value}: {error}", error.after_s)
        self._waits_for = None
        return None

    def _commit(
        self,
        snapshot: Snapshot,
        records: Iterable[WorkloadRecord] = (),
        *,
        forgotten: Collection[str] = (),
    ) -> None:
        """Remember these records as the snapshot grants them, forget those workloads, then hold all that."""
        granted = [self._ledger.granted(record, snapshot) for record in records]
        changes: dict[str, Checkpoint | None] = {row_key(ROW, workload): None for workload in forgotten}
        changes |= self._ledger.rows(granted)
        changes |= self._ledger.files(snapshot, self._snapshot)
        if changes:
            self._store.commit({**changes, **self._set_aside})
            self._set_aside = {}
        for workload in forgotten:
            del self._records[workload]
        self._records.update((record.workload.key, record) for record in granted)
        self._snapshot = snapshot


def _not_yet(blocker: str, message: str, after_s: float) -> NotYet:
    return NotYet(blocker=blocker, message=message or f"the {blocker} is busy", after_s=after_s)
