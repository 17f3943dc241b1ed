"""The only caller of `CpusetWriter`: keeps what is written equal to what was granted."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from nodealloc import _attrs as attrs
from nodealloc._typed import typed, typed_methods
from nodealloc.cpuset._confinement import (
    Applied,
    CpusetStep,
    Wanted,
    doubted,
    is_in_line,
    plan_confinement,
    settled_confinement,
)
from nodealloc.cpuset._errors import TargetGoneError
from nodealloc.dsw_asw import (
    BackOff,
    Cancel,
    Clock,
    Executor,
    Failure,
    Observer,
    Outcome,
    Plan,
    Reconciler,
    Summary,
    View,
    World,
)
from nodealloc.errors import ConfigurationError
from nodealloc.idset import CPUSet, NodeSet
from nodealloc.topology import Owner

if TYPE_CHECKING:
    from nodealloc.cpuset._allocator import CpuAllocator
    from nodealloc.cpuset._ports import CpusetWriter

__all__ = ["CpusetReconciler"]

_TOLD: Final = 10
"""Containers that an error names."""


@typed_methods
class CpusetReconciler:
    """Writes cpusets of containers as an allocator grants them; may be called from any thread.

    Tell it which containers there are (`add`, `remove`) and what was granted
    (`follow`), and make passes (`reconcile`, `engine.start()`, or put `engine`
    into a `dsw_asw.Group`). Containers that hold nothing follow the shared pool.
    A pass with nothing to do makes no call; each container is written by
    itself, so that one that hangs delays no other.

    Args:
        writer: Confines containers.
        executor: Runs the writer; with an `InlineExecutor` a pass has written
            everything when it returns.
        allocator: What is granted at the beginning.
        clock: Time for back-off and deadlines.
        back_off: How long a failed write waits.
        deadline_s: After so long a call counts as hung: what it did is then
            unknown, and read before anything else is done to that container.
        recheck_s: A container is read again so long after it was last read or
            written; None leaves that to `observe`.
        observer: Is told of progress.
    """

    @typed
    def __init__(
        self,
        writer: CpusetWriter,
        *,
        executor: Executor,
        allocator: CpuAllocator,
        clock: Clock | None = None,
        back_off: BackOff | None = None,
        deadline_s: float = 10.0,
        recheck_s: float | None = None,
        observer: Observer | None = None,
    ) -> None:
        self._desired: World[str, Wanted] = World("granted cpusets")
        self._actual: World[str, Applied] = World("applied cpusets")
        self._allocator = allocator
        self._targets: dict[Owner, dict[str, None]] = {}
        self._lock = threading.Lock()
        domain = _Domain(writer, deadline_s, recheck_s)
        self.engine: Reconciler[str, Wanted, Applied, Wanted, Applied] = Reconciler(
            domain,
            desired=self._desired,
            actual=self._actual,
            executor=executor,
            clock=clock,
            back_off=back_off,
            observer=observer,
            name="cpusets",
        )

    @typed
    def add(self, target: str, owner: Owner, /, *, mems: NodeSet | None = None) -> None:
        """A container is there, or about to start; said again it changes nothing but `mems`."""
        with self._lock:
            before = self._desired.get(target)
            if before is None:
                # What an operation that outlived `remove` wrote down is not believed.
                self._actual.drop(target, by="add")
            elif before.owner != owner:
                self._forget(target, before.owner)
            self._targets.setdefault(owner, {})[target] = None
            self._want(target, owner, mems)

    @typed
    def remove(self, target: str, /) -> None:
        """A container has ended; nothing is written for it any more. Unknown ones are no error."""
        with self._lock:
            before = self._desired.get(target)
            if before is not None:
                self._forget(target, before.owner)
                self._desired.drop(target, by="remove")
                self._actual.drop(target, by="remove")

    @typed
    def follow(self, allocator: CpuAllocator, /) -> None:
        """Take over what is granted now; containers whose set is another are written in the next pass.

        Raises:
            ConfigurationError: It is of a machine with other CPUs; nothing changed.
        """
        with self._lock:
            before = self._allocator
            if before is allocator:
                return
            _check_machine(before, allocator)
            self._allocator = allocator
            for owner in self._changed_owners(before, allocator):
                for target in self._targets.get(owner, ()):
                    wanted = self._desired.get(target)
                    if wanted is not None:
                        self._want(target, owner, wanted.mems)

    @typed
    def observe(self, targets: Sequence[str] | None = None, /) -> None:
        """Have containers read again in the next pass, all by default: somebody else may have written.

        Source: kubelet ``cm/cpumanager/cpu_manager.go``, which rewrites every 10 s
        without looking.
        """
        for target in sorted(self._actual.snapshot()) if targets is None else targets:
            self._actual.alter(target, doubted, by="observe")

    def reconcile(self) -> Summary:
        """Make passes until nothing is left that could be started now."""
        return self.engine.run_until_quiet()

    def applied(self, target: str, /) -> Applied | None:
        """What a container is known to be confined to; None before anybody looked."""
        return self._actual.get(target)

    def has(self, target: str, /) -> bool:
        """Whether a container was added and not removed."""
        return target in self._desired

    def is_in_line(self, target: str, /) -> bool:
        """Whether a container is known to be where it should; True for an unknown one."""
        wanted = self._desired.get(target)
        return wanted is None or is_in_line(wanted, self._actual.get(target))

    def starved(self) -> tuple[str, ...]:
        """Containers that have no CPU at all to go to: they keep what they had."""
        wanted = self._desired.snapshot()
        return tuple(sorted(target for target, record in wanted.items() if not record.value.cpus))

    def intruders(self, target: str, /) -> tuple[str, ...]:
        """Other owners' containers that still are, or may be, on CPUs that this one holds for itself.

        Empty is the moment to start an exclusive container; `wait_exclusive`
        blocks until then. Looks at all
        containers; meant for once a start, not for every pass.

        Raises:
            ConfigurationError: Nobody added it, or it was removed.
        """
        return self.intruders_of(self._known(target).owner)

    def intruders_of(self, owner: Owner, /) -> tuple[str, ...]:
        """The same by whose CPUs they are, before anything of that owner runs.

        Empty is the moment to make an exclusive container. Who was granted nothing has no intruders.
        What a write that is under way sends onto these CPUs may be there already: it counts.
        """
        own = self._allocator.exclusive_of(owner)
        if not own:
            return ()
        wanted = self._desired.snapshot().items()
        others = [one for one, record in wanted if record.value.owner.workload != owner.workload]
        return tuple(sorted(one for one in others if self._why_on(one, own)))

    @typed
    def wait_exclusive(self, target: str, /, *, timeout_s: float = 10.0) -> None:
        """Block until a container is confined and nobody intrudes; somebody else makes the passes.

        Raises:
            WaitTimeoutError: Names who is still where, and why.
            ShutDownError: The reconciler was closed meanwhile.
            ConfigurationError: Nobody added it, or it was removed before the call.
        """
        owner = self._known(target).owner
        own = self._allocator.exclusive_of(owner)

        def lacks(key: str, desired: Wanted | None, applied: Applied | None) -> str:
            if desired is None:
                return ""
            if key == target:
                return "" if is_in_line(desired, applied) else f"is not confined to {desired.cpus} yet"
            return self._why_on(key, own)

        self.engine.wait_until((target, *self.intruders_of(owner)), lacks, timeout_s=timeout_s)

    def failures(self, target: str, /) -> tuple[Failure, ...]:
        """The last error of each step of a container that failed and was not made good."""
        return self.engine.failures(target)

    def close(self, timeout_s: float = 0.0, /) -> None:
        """Start nothing more; wait so long for what is running."""
        self.engine.stop(timeout_s)

    def _known(self, target: str) -> Wanted:
        wanted = self._desired.get(target)
        if wanted is None:
            there = ", ".join(sorted(self._desired.snapshot())[:_TOLD]) or "none"
            raise ConfigurationError(
                f"container {target!r} was not added, or was removed: add(target, owner) first; "
                f"there are: {there}"
            )
        return wanted

    def _why_on(self, target: str, own: CPUSet) -> str:
        """Why a container counts as one that is on these CPUs; "" where it is not."""
        # Asked before its record: a write that ends meanwhile stands in what is read afterwards.
        writes = [one.detail.cpus & own for one in self.engine.unsettled(target) if one.verb == "write"]
        applied = self._actual.get(target)
        if applied is None and not self._is_gone(target):
            return "nobody knows where it runs"
        if applied is not None and (still_on := applied.cpus & own):
            return f"still runs on {still_on}"
        return next((f"may be moved to {one} just now" for one in writes if one), "")

    def _is_gone(self, target: str) -> bool:
        return any(isinstance(failure.error, TargetGoneError) for failure in self.engine.failures(target))

    def _want(self, target: str, owner: Owner, mems: NodeSet | None) -> None:
        cpus = self._allocator.cpus_of(owner)
        self._desired.put(target, Wanted(target=target, owner=owner, cpus=cpus, mems=mems), by="grant")

    def _forget(self, target: str, owner: Owner) -> None:
        siblings = self._targets[owner]
        del siblings[target]
        if not siblings:
            del self._targets[owner]

    def _changed_owners(self, before: CpuAllocator, after: CpuAllocator) -> Sequence[Owner]:
        if before.shared != after.shared:
            return tuple(self._targets)
        old, new = dict(before.state.items()), dict(after.state.items())
        return [owner for owner in {**old, **new} if old.get(owner) != new.get(owner)]


def _check_machine(before: CpuAllocator, after: CpuAllocator) -> None:
    """What follows is of the same machine: containers would be sent to CPUs that it has not."""
    had, has = before.policy.layout.cpus, after.policy.layout.cpus
    if had != has:
        raise ConfigurationError(
            f"follow: this allocator is of a machine with CPUs {CPUSet.from_mask(has)}, and the reconciler "
            f"began with CPUs {CPUSet.from_mask(had)}; hand over allocators of one machine, or make another "
            "reconciler"
        )


@attrs.frozen
class _Domain:
    """The rules of cpusets, for the engine."""

    writer: CpusetWriter
    deadline_s: float
    recheck_s: float | None

    def plan(self, view: View[str, Wanted, Applied, Wanted], /) -> Plan[Applied, Wanted]:
        return plan_confinement(view, deadline_s=self.deadline_s, recheck_s=self.recheck_s)

    def perform(self, step: CpusetStep, _cancel: Cancel, /) -> Applied:
        wanted = step.detail
        if step.verb == "read":
            cpus, mems = self.writer.read(wanted.target)
            return Applied(cpus=cpus, mems=mems)
        self.writer.write(wanted.target, wanted.cpus, wanted.mems)
        return Applied(cpus=wanted.cpus, mems=wanted.mems)

    def settled(self, have: Applied | None, step: CpusetStep, outcome: Outcome[Applied], /) -> Applied | None:
        return settled_confinement(have, step, outcome)
