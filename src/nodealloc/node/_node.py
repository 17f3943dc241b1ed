"""The shell: what one node holds, remembered before it is answered."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping
from typing import Final, TypeVar

from nodealloc._arguments import check, wrong
from nodealloc._typed import typed, typed_but, typed_methods
from nodealloc.admission import Chain
from nodealloc.checkpoint import KUBELET_FORMATS, Formats, JsonCheckpoint, Store
from nodealloc.dsw_asw import Reconciler
from nodealloc.errors import ConfigurationError, RetryableError, UncertainError
from nodealloc.node._admission import NodeAdmission, view_of
from nodealloc.node._advice import Advice
from nodealloc.node._asked import Asked
from nodealloc.node._decisions import Decisions
from nodealloc.node._held_allocator import HeldAllocator
from nodealloc.node._holdings import Change, Held, Holdings
from nodealloc.node._ledger import Ledger
from nodealloc.node._life import NodeState
from nodealloc.node._loading import SET_ASIDE, StartReport, load
from nodealloc.node._ports import Advisor, Runtime
from nodealloc.node._record import ROW, WorkloadRecord
from nodealloc.node._start_up import StartUp, not_yet
from nodealloc.podfacts import NodeView
from nodealloc.podspec import Pod
from nodealloc.topology import Allocator, Confinement, NotYet, Owner, Placed, Snapshot, Workload
from nodealloc.verdicts import Refused

__all__ = ["FORMATS", "NodeAllocator"]

A = TypeVar("A", bound=Allocator)

FORMATS: Final[Formats] = {
    **KUBELET_FORMATS,
    **dict.fromkeys((f"{ROW}.*", f"{SET_ASIDE}.*"), JsonCheckpoint.unmarshal),
}
"""What a store has to be opened with to serve a `NodeAllocator`."""
_BRIEF_S: Final = 0.02
"""So long a change of the view alone waits for decisions begun before it: agents make it on the thread of
their passes, and an advisor that one of those asks may hang."""


@typed_methods
class NodeAllocator:
    """What one node holds now: loads, admits, remembers, releases.

    Every method may be called from any thread. Nothing is answered before it is
    durable, and after any exception the node holds what it held before the
    call. Decisions are made on a snapshot and committed where nothing that they
    rest on has changed since, else made again; reading never waits. The runtime
    and the advisor are called while nobody is kept out: an advisor that hangs holds
    up its own caller, and whoever changes something meanwhile for half a second.

    ```text
       start() ─▶ StartReport ─▶ accept()? ─▶ the runtime answers ─▶ admit() · release()
                  clean: accepted by itself     until then: not yet
    ```

    Args:
        empty: The node with its allocators and nothing held; each of them
            `Remembers`.
        store: Where decisions are remembered; opened with `FORMATS`. The caller
            closes it.
        view: The node as whoever judges a pod sees it: its labels, its taints, what
            it gives out. Where nobody says, the CPUs and the memory that the
            allocators know of, without taints or a greatest number of pods.
        chain: Judges pods (`nodealloc.admission.chain_of`, with handlers of your
            own); what is held is asked behind it, so it has no snapshot itself.
        runtime: Whoever runs containers; None where nothing outlives this process.
        kubelet_files: Names of the allocators whose kubelet state file each
            commit writes as well, so that a kubelet can take the node over.
            Their size grows with what the node holds.
        patience_s: How long the first admission waits for the runtime's first
            answer, in seconds; the next ones do not wait for it.
        admits_anew: Whether the chain judges pods that are remembered once more, each as `admit` is first
            called for it after the start, beside those that were judged before it. Who is admitted keeps
            what it was granted; a refusal changes nothing before `release`. A kubelet's way.

    Attributes:
        engine: Carries the start on. Admissions hurry it; started, or in a `Group`,
            it goes on without them.

    Raises:
        NotRememberedError: An allocator could not be restored.
        NoKubeletFileError: `kubelet_files` is text, or names an allocator that
            is not there or keeps no such file.
        ConfigurationError: `empty` holds something, the store was opened without
            `FORMATS`, the chain has a snapshot of its own, or lets pods in
            before their victims have ended.
    """

    @typed_but("empty", "store", "kubelet_files")
    def __init__(
        self,
        empty: Snapshot,
        store: Store,
        *,
        view: NodeView | None = None,
        chain: Chain | None = None,
        runtime: Runtime | None = None,
        kubelet_files: Collection[str] = (),
        patience_s: float = 1.0,
        admits_anew: bool = False,
    ) -> None:
        check("NodeAllocator, empty", empty, Snapshot, "a Snapshot; Snapshot.of(machine, ...) makes one")
        if not hasattr(store, "commit"):
            raise wrong("NodeAllocator, store", store, "a Store, such as FileStore(directory, FORMATS)")
        self._decisions = Decisions(Ledger.of(empty, kubelet_files, store), admits_anew)
        self._store = store
        self._admission = NodeAdmission.of(chain, admits_anew=admits_anew)
        self._holdings = Holdings(empty, view_of(empty) if view is None else view, store)
        self._advice = Advice(self._admission, self._decisions, self._holdings)
        self._runtime = runtime
        self._start = StartUp(self._write_start, runtime, patience_s=patience_s)
        self.engine: Reconciler[str, StartReport, NodeState] = self._start.engine
        self._lock = threading.Lock()
        self._starting = False
        self._report: StartReport | None = None

    @property
    def snapshot(self) -> Snapshot:
        """The node as it is remembered; an immutable value for dry runs and pictures."""
        return self._holdings.held.snapshot

    @property
    def view(self) -> NodeView:
        """The node as pods are judged by, with those that are in; an immutable value."""
        return self._holdings.held.view

    @property
    def records(self) -> Mapping[str, WorkloadRecord]:
        """What is remembered of each workload, in the order of admission; a copy."""
        return dict(self._holdings.held.records)

    def holds(self, workload: str, /) -> bool:
        """Whether a workload, such as a pod by its uid, was admitted and has not been released since."""
        return workload in self._holdings.held.records

    @typed
    def advise_with(self, advisor: Advisor | None, /) -> None:
        """Have admissions ask an advisor before they are final."""
        self._advice.advisor = advisor

    def start(self) -> StartReport:
        """Load what was remembered, and say what does not fit any more.

        A clean start is accepted by itself, once the store can be written. After
        any other one, running workloads stay admitted and nothing new is, until
        `accept` is called.

        Raises:
            ConfigurationError: It was started before.
        """
        with self._lock:
            if self._starting:
                raise ConfigurationError("this node was started before: a restart is another NodeAllocator")
            self._starting = True
        try:
            self._report = self._holdings.settle(self._loaded)
        except BaseException:
            self._starting = False
            raise
        self._start.begin(self._report)  # where the store cannot be written, admissions try it again
        return self._report

    def accept(self) -> None:
        """Go on with what `start` reported: moves are remembered, evicted workloads forgotten.

        What made no sense is kept as `set-aside.<key>`.

        Raises:
            RetryableError: The store could not be written; nothing changed.
        """
        self._write_start()
        self._start.written()

    def admit(self, asked: Pod | Workload, /) -> Placed | Refused | NotYet:
        """Whether a pod may come in and fits, all of it or nothing; remembered when it does.

        A pod is judged by the whole chain of admission over `view`, which has
        everybody in it who is in; claims that are no pod's are allocated, no more.
        What was admitted before is admitted again with the same answer, whatever state
        the node, its runtime or its plugins are in, but for what `admits_anew` says.
        Containers that came later under the same uid are judged as if the pod came anew, and
        granted what they ask for beside what the others keep; a refusal changes nothing.
        Until start-up is over, and while the store cannot be written, the answer for others is
        *not yet*; for a critical pod it may be `nodealloc.admission.MakingRoom`: end and release
        whom it names.

        Raises:
            ProviderError: An allocator raised, or answered with nonsense.
        """
        wanted = Asked.of(asked)
        if not (self._start.is_ready or wanted.is_in(self._holdings.held)):
            waiting = self._start.waiting()
            if waiting is not None:
                return waiting
        try:
            return self._advice.admit(wanted)
        except (RetryableError, UncertainError) as error:
            return not_yet("store", str(error), error.after_s)

    def is_edited(self, pod: Pod, /) -> bool:
        """Whether a pod that is in asks for other amounts, ports or containers than it was admitted with."""
        held = self._holdings.held
        record = held.records.get(pod.uid)
        return record is not None and Asked.of(pod).is_other_than(record, held.view.pods.get(pod.uid))

    def resize(self, pod: Pod, /, *, is_edit: bool = False) -> Placed | Refused | NotYet:
        """Whether a pod that is in may have other resources without a restart; remembered when it may.

        It is judged by the same chain as if it came anew, then what its containers
        hold grows or shrinks where it is (`nodealloc.admission.resized`). Confine
        them anew afterwards. A refusal changes nothing.

        Args:
            pod: As it is to be.
            is_edit: Whether containers of it may start anew where that is needed; then containers may
                come and go, too.

        Raises:
            ConfigurationError: It is not in.
            ProviderError: An allocator raised, or answered with nonsense.
        """
        waiting = self._start.waiting()
        if waiting is not None:
            return waiting
        wanted = Asked.of(pod)
        try:
            return self._holdings.settle(
                lambda held: self._decisions.resized(
                    held, wanted, self._admission.resized(held, pod, is_edit=is_edit)
                )
            )
        except (RetryableError, UncertainError) as error:
            return not_yet("store", str(error), error.after_s)

    def adopt(self, asked: Pod | Workload, running: Mapping[str, Confinement], /) -> None:
        """Take over a workload that runs but is not remembered, where it runs.

        For rebuilding after damage: call it for what the runtime lists, then `accept`. One that is
        remembered stays as it is. Members that do not run hold nothing until it is admitted again.

        Args:
            asked: What was once asked.
            running: Member to where its container is confined now.

        Raises:
            ConfigurationError: No claims, nothing that runs, or a member that it has not.
            AdoptionError: It runs on something that others hold, or that cannot be had.
            RetryableError: The store could not be written; nothing changed.
        """
        wanted = Asked.of(asked)
        self._holdings.settle(lambda held: self._decisions.adopted(held, wanted, running))

    def release(self, workload: str, member: str | None = None, /) -> None:
        """Give back what a workload, or one member of it, holds; an unknown one holds nothing.

        A pod that was never admitted here, and is in the view to end, is in it no more.

        Call it when the containers have ended: whatever they held may be granted
        to others before this returns.

        Raises:
            RetryableError: The store could not be written; nothing was released.
        """
        self._holdings.settle(lambda held: self._decisions.released(held, workload, member))

    def before_start(self, owner: Owner, container_id: str, /) -> Confinement:
        """Bind a container to its owner's grant; confine it to the answer before it runs.

        A container that starts in the place of an earlier one takes its place.

        Raises:
            NotAdmittedError: The owner holds nothing here.
            RetryableError: The store could not be written; nothing is bound.
        """
        check("before_start", owner, Owner, "an Owner(workload, member)")
        return self._holdings.settle(lambda held: self._decisions.bound(held, owner, container_id))

    def after_stop(self, owner: Owner, container_id: str, /) -> bool:
        """A container has ended: unbind it, unless another one took its place since.

        The grant stays with its owner until `release`, so that a restarted
        container finds what it had.

        Returns:
            Whether this very container was bound.

        Raises:
            RetryableError: The store could not be written; it is still bound.
        """
        return self._holdings.settle(lambda held: self._decisions.unbound(held, owner, container_id))

    @typed
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
        before = self._holdings.held.records
        running = {one.owner.workload for one in self._runtime.running()} if self._runtime else set[str]()
        stale = [record for key, record in before.items() if key not in wanted and key not in running]
        # What was admitted, bound or altered since may have been started after the runtime's answer.
        return tuple(record.workload.key for record in stale if self._gone_stale(record))

    def allocator(self, kind: type[A], name: str | None = None, /) -> HeldAllocator[A]:
        """One allocator as whoever changes it sees it, such as `nodealloc.devices.plugins.DevicePlugins`.

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
        return self._holdings.settle(lambda held: self._decisions.altered(held, name, change))

    def alter_view(self, change: Callable[[NodeView], NodeView], /) -> NodeView:
        """Replace the view by a function of it: labels, taints, pressure, what is given out, pods' states.

        It is not remembered: whoever sees the machine tells it again after a restart.

        Args:
            change: A pure function; may be called more than once. Pods come by
                `admit` and go by `release`, so it leaves them where they are.

        Returns:
            The view afterwards.

        Raises:
            ConfigurationError: It has other pods than before.
        """
        return self._holdings.settle(lambda held: self._decisions.viewed(held, change), line_s=_BRIEF_S)

    @typed
    def mark_ending(self, pod: Pod | str, /) -> None:
        """A pod has to end: whoever needs what it still holds waits for it, instead of being refused.

        As with `alter_view`, tell it again after a restart. It is in the view until `release`.

        Args:
            pod: Its uid; an unknown one changes nothing. The pod itself, if it may run without
                having been admitted here: it holds no grants, and what it requests counts.
        """
        self._holdings.settle(lambda held: self._decisions.ending(held, pod), line_s=_BRIEF_S)

    def _loaded(self, held: Held) -> tuple[StartReport, Change]:
        return self._decisions.loaded(held, load(held.snapshot, self._store.read()))

    def _write_start(self) -> None:
        report = self._report
        if report is None:
            raise ConfigurationError("nothing was loaded yet: call start() first")
        self._holdings.settle(lambda held: (None, self._decisions.ledger.accepted(report, held)))

    def _gone_stale(self, record: WorkloadRecord) -> bool:
        return self._holdings.settle(lambda held: self._decisions.released_as_it_was(held, record))
