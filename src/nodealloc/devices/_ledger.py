"""Keeping the current allocator where there is no node's shell: a lock and a store."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Final

import attrs

from nodealloc._arguments import check
from nodealloc._typed import typed, typed_methods
from nodealloc.checkpoint import DEVICE_STATE, DeviceManagerState, Store, require_formats
from nodealloc.devices._allocator import DeviceAllocator
from nodealloc.devices._grants import NO_NODE, Grant
from nodealloc.devices._state import read_alike, remembered, restored
from nodealloc.errors import ConfigurationError, PermanentError, RetryableError, UncertainError
from nodealloc.podspec import Pod
from nodealloc.topology import (
    Affinities,
    Placed,
    Refusal,
    Snapshot,
    TopologyHint,
    Workload,
    admit,
    workload_of,
)
from nodealloc.verdicts import NotYet

__all__ = ["DeviceLedger"]

_FREE_TRIES: Final = 5
"""Decisions that others may overtake before one is made while they wait."""
_ADVICE_ROUNDS: Final = 8
"""Questions that answers lead to are asked in turn, so often at the most."""


@typed_methods
class DeviceLedger:
    """The current allocator, remembered in a store; an `AllocatorKeeper`. Thread-safe.

    For a program that hands out devices and nothing else. One that also hands
    out CPUs or memory has a `nodealloc.node.NodeAllocator`, which keeps all of
    them together.

    Health is not remembered: only a change of grants, or of which resources
    are known, is a commit.

    Args:
        allocator: To begin with.
        store: Where to remember it; None keeps it in memory alone.
    """

    @typed
    def __init__(self, allocator: DeviceAllocator, /, *, store: Store | None = None) -> None:
        require_formats(store, (DEVICE_STATE,), "DeviceLedger, store (KUBELET_FORMATS has it)")
        self._lock = threading.RLock()
        self._allocator = allocator
        self._store = store
        self._affinities: dict[str, Affinities] = {}

    @classmethod
    @typed
    def load(cls, allocator: DeviceAllocator, store: Store, /, *, now_s: float) -> DeviceLedger:
        """Begin with what the store remembers; an empty store remembers nothing.

        Args:
            allocator: Its NUMA nodes and settings count.
            store: Opened with `nodealloc.checkpoint.KUBELET_FORMATS`.
            now_s: Monotonic seconds, on the clock of whoever ages the grace
                periods; `DevicePlugins.start` begins them anew by its own.

        Raises:
            PermanentError: The record was damaged. Who holds what is not known
                then, so nothing may be granted before it was found out.
        """
        contents = store.read()
        for damaged in contents.damaged:
            if damaged.key in (DEVICE_STATE, "*"):
                raise PermanentError(
                    f"{damaged.key}: {damaged.reason}; kept as {damaged.kept_as}. Find out which devices "
                    "running containers hold, commit that, and load again"
                )
        state = contents.get(DEVICE_STATE, DeviceManagerState)
        if state is not None:
            allocator = restored(allocator, state, now_s=now_s)
        return cls(allocator, store=store)

    def current(self) -> DeviceAllocator:
        """See `AllocatorKeeper`."""
        return self._allocator

    def alter(
        self, change: Callable[[DeviceAllocator], DeviceAllocator], /
    ) -> tuple[DeviceAllocator, DeviceAllocator]:
        """See `AllocatorKeeper`."""
        with self._lock:
            before = self._allocator
            after = change(before)
            check(
                "DeviceLedger.alter, what the function answered", after, DeviceAllocator, "a DeviceAllocator"
            )
            if self._store is not None and not read_alike(before, after):
                self._store.commit({DEVICE_STATE: remembered(after)})
            self._allocator = after
        return before, after

    def snapshot(self, node: Snapshot, /) -> Snapshot:
        """A node with the devices as they are now, and everybody who holds some as admitted.

        Args:
            node: Its NUMA nodes, policy and scope count; it holds nothing.

        Raises:
            ConfigurationError: It has allocators for something else, which nobody would remember here.
        """
        others = [one.name for one in node.allocators if not isinstance(one, DeviceAllocator)]
        if others:
            raise ConfigurationError(
                f"a ledger keeps devices alone, and {', '.join(others)} would be lost: "
                "use nodealloc.node.NodeAllocator"
            )
        with self._lock:
            allocator = self._allocator
            admitted = self._admitted(allocator)
        return attrs.evolve(node, allocators=(allocator,), admitted=admitted)

    def admit(
        self,
        node: Snapshot,
        asked: Pod | Workload,
        /,
        *,
        ask: Callable[[DeviceAllocator], bool] | None = None,
    ) -> Placed | Refusal | NotYet:
        """Whether a workload fits, all of it or nothing; remembered when it does.

        It is decided, and a large grant written out, while others go on. A decision
        counts where nothing has changed since what it was made from, else it is made
        again, at last while nobody else can change anything: whatever plugins,
        releases and other admissions changed meanwhile stands.

        Args:
            node: As in `snapshot`.
            asked: What is wanted.
            ask: Has plugins say which devices go well together
                (`DevicePlugins.ask`); None decides without.

        Raises:
            ConfigurationError: As in `snapshot`.
            ProviderError: The devices' hints made no sense.
        """
        workload = workload_of(asked) if isinstance(asked, Pod) else asked
        for _ in range(0 if ask is None else _ADVICE_ROUNDS):
            advised = admit(self.snapshot(node), workload)
            if not isinstance(advised, Placed) or advised.repeated or ask is None:
                break
            if not ask(advised.snapshot[DeviceAllocator]):
                break
        tried = DeviceAllocator()
        for _ in range(_FREE_TRIES):
            read = self.snapshot(node)
            verdict = admit(read, workload)
            if not isinstance(verdict, Placed) or verdict.repeated:
                return verdict
            tried = self._written_out(_outcome(verdict, tried, workload.key), workload.key)
            with self._lock:
                if self._allocator is read[DeviceAllocator]:
                    return self._granted(verdict, tried, workload.key)
        with self._lock:
            verdict = admit(self.snapshot(node), workload)
            if not isinstance(verdict, Placed) or verdict.repeated:
                return verdict
            return self._granted(verdict, _outcome(verdict, tried, workload.key), workload.key)

    def _written_out(self, outcome: DeviceAllocator, workload: str) -> DeviceAllocator:
        """The same, with what a large grant is written as worked out; it is kept for the commit."""
        if self._store is not None:
            granted = outcome.grants.get(workload, {})
            if any(one.entry(workload, *whose).is_large for whose, one in granted.items()):
                remembered(outcome).marshal()
        return outcome

    def _granted(self, verdict: Placed, outcome: DeviceAllocator, workload: str) -> Placed | NotYet:
        try:
            self.alter(lambda _: outcome)
        except (RetryableError, UncertainError) as error:
            return NotYet(blocker="store", message=str(error), after_s=error.after_s)
        self._affinities[workload] = verdict.affinity
        return attrs.evolve(verdict, snapshot=attrs.evolve(verdict.snapshot, allocators=(outcome,)))

    @typed
    def release(self, workload: str, member: str | None = None, /) -> None:
        """Give back what a workload, or one member of it, holds; an unknown one holds nothing.

        Raises:
            RetryableError: The store could not be written; nothing was released.
        """
        self.alter(lambda allocator: allocator.release(workload, member))

    def _admitted(self, allocator: DeviceAllocator) -> dict[str, Affinities]:
        """Everybody who holds devices; of those from before a restart, their grants tell where they are."""
        for gone in [key for key in self._affinities if key not in allocator.grants]:
            del self._affinities[gone]
        return {
            workload: self._affinities.get(workload) or _affinities(held)
            for workload, held in allocator.grants.items()
        }


def _outcome(verdict: Placed, tried: DeviceAllocator, workload: str) -> DeviceAllocator:
    """What is to be held, with the grants of the try before where they are alike: they are written out."""
    outcome = verdict.snapshot[DeviceAllocator].without_answers()
    before = tried.grants.get(workload)
    if before is None or before != outcome.grants.get(workload):
        return outcome
    return attrs.evolve(outcome, grants={**outcome.grants, workload: before})


def _affinities(held: Mapping[tuple[str, str], Grant]) -> Affinities:
    """Member to the NUMA nodes of what it holds."""
    masks: dict[str, int] = {}
    for (member, _), grant in held.items():
        mask = sum(1 << node for node in grant.places if node != NO_NODE)
        masks[member] = masks.get(member, 0) | mask
    return {member: TopologyHint(affinity=mask or None, preferred=True) for member, mask in masks.items()}
