"""Containers that start on the CPUs which are theirs at that moment, and who is still on somebody's own."""

from __future__ import annotations

import threading
from typing import Final

from typing_extensions import override

from nodealloc import _attrs as attrs
from nodealloc._typed import typed
from nodealloc.cpuset import CpuAllocator, CpusetReconciler
from nodealloc.idset import CPUSet
from nodealloc.node import NodeAllocator, confinement_of
from nodealloc.podspec import Pod
from nodealloc.runtime import (
    ContainerConfig,
    LinuxResources,
    RuntimeLayer,
    RuntimeWatch,
    SandboxConfig,
    WholeRuntime,
)
from nodealloc.topology import Owner
from nodealloc.verdicts import NotYet

__all__ = ["ConfinedRuntime"]

_SOON_S: Final = 0.1


@attrs.frozen(kw_only=True)
class _Start:
    """A container that is being started, or was and no listing shows it yet.

    Attributes:
        owner: Whose; None where nobody knows.
        cpus: Where it will run; None for anywhere.
        shown: Number of the listing that shows what the call did; None while it is made.
    """

    owner: Owner | None
    cpus: CPUSet | None = None
    shown: int | None = None


class ConfinedRuntime(RuntimeLayer):
    """A runtime over another one, which starts containers where they may run at that moment.

    Between the moment at which a container's configuration is computed and its start
    others may be granted CPUs. So where the CPUs that it was made with are not its own
    any more, it is changed before it is started; and as long as nobody knows what a start
    did, `not_free` counts it among those that run.

    Args:
        runtime: Who does it.
        node: Knows who was granted what.
        cpusets: Moves containers off CPUs that become somebody's own.
        watch: Looks at the same runtime.

    Source: ours; a kubelet starts such a container, and moves others within 10 s.
    """

    @typed
    def __init__(
        self, runtime: WholeRuntime, *, node: NodeAllocator, cpusets: CpusetReconciler, watch: RuntimeWatch
    ) -> None:
        super().__init__(runtime)
        self._node, self._cpusets, self._watch = node, cpusets, watch
        self._lock = threading.Lock()
        # What is granted and listed is read and passed on in one step: what another thread read before
        # would else be the last word.
        self._following = threading.Lock()
        self._made: dict[str, tuple[Owner, CPUSet | None]] = {}
        self._starts: dict[str, _Start] = {}
        self._found: set[str] = set()

    def not_free(self, pod: Pod, /) -> NotYet | None:
        """Why CPUs that a pod holds for itself are not free of others yet; None when they are.

        Everything that the runtime lists counts, inspected or not, and nothing is free
        before the first listing.
        """
        self.follow_grants()
        cpus = self._node.snapshot[CpuAllocator]
        owners = [Owner(pod.uid, one.name) for one in pod.all_containers]
        own = CPUSet(cpu for one in owners for cpu in cpus.exclusive_of(one))
        if not own:
            return None
        if not self._watch.heard().listing:
            return NotYet(blocker="runtime", message="containers have not been listed yet", after_s=_SOON_S)
        starting = self._starting_on(own, pod.uid)  # before the listing is read that shows what they did
        self._add_listed()
        self._cpusets.reconcile()
        others = sorted({*starting, *(one for owner in owners for one in self._cpusets.intruders_of(owner))})
        if not others:
            return None
        words = f"containers that still run on its CPUs: {', '.join(others)}"
        return NotYet(blocker="cpusets", message=words, after_s=_SOON_S)

    def follow_grants(self) -> None:
        """Have containers confined to what is granted now."""
        with self._following:
            self._drop_ended()
            self._cpusets.follow(self._node.snapshot[CpuAllocator])
        self._cpusets.reconcile()

    @override
    def create_container(self, sandbox_id: str, config: ContainerConfig, sandbox: SandboxConfig, /) -> str:
        """See `Containers.create_container`."""
        made = self.below.create_container(sandbox_id, config, sandbox)
        with self._lock:
            self._made[made] = Owner(sandbox.pod.uid, config.name), config.resources.cpus
        return made

    @override
    def start_container(self, container_id: str, /) -> None:
        """See `Containers.start_container`: on the CPUs that it may run on now."""
        with self._lock:
            owner, cpus = self._made.pop(container_id, (None, None))
            owner = owner or self._owner_of(container_id)
            # Stands there before grants are read: whoever is granted CPUs later finds it.
            self._starts[container_id] = _Start(owner=owner)
        try:
            cpus = self._updated(container_id, owner, cpus)
            with self._lock:
                self._starts[container_id] = _Start(owner=owner, cpus=cpus)
            self.below.start_container(container_id)
        finally:
            shown = self._watch.hurry()
            with self._lock:
                self._starts[container_id] = _Start(owner=owner, cpus=cpus, shown=shown)
                self._forget_shown()

    @override
    def remove_container(self, container_id: str, /) -> None:
        """See `Containers.remove_container`."""
        self.below.remove_container(container_id)
        with self._lock:
            self._made.pop(container_id, None)
        with self._following:
            if container_id in self._found:
                self._found.remove(container_id)
                self._cpusets.remove(container_id)

    def _updated(self, container_id: str, owner: Owner | None, made_with: CPUSet | None) -> CPUSet | None:
        """Where a container will run: it is changed first if it may not run any more where it was made to."""
        if owner is None:
            return made_with
        snapshot = self._node.snapshot
        now = confinement_of(snapshot, owner)
        is_fine = made_with <= now.cpus if made_with and now.cpus else not snapshot[CpuAllocator].state.held
        if is_fine or now.cpus is None:
            return made_with
        self.below.update_container(container_id, LinuxResources(cpus=now.cpus, mems=now.mems))
        return now.cpus

    def _owner_of(self, container_id: str) -> Owner | None:
        for uid, listing in self._watch.seen.snapshot().items():
            for one in listing.value.containers:
                if one.id == container_id:
                    return Owner(uid, one.name)
        return None

    def _starting_on(self, own: CPUSet, uid: str) -> list[str]:
        with self._lock:
            self._forget_shown()
            return [
                target
                for target, one in self._starts.items()
                if (one.owner is None or one.owner.workload != uid)
                and (one.cpus is None or not one.cpus.isdisjoint(own))
            ]

    def _forget_shown(self) -> None:
        newest = self._watch.listed().shown
        self._starts = {
            target: one for target, one in self._starts.items() if one.shown is None or one.shown > newest
        }

    def _add_listed(self) -> None:
        """Confine containers that are listed and were not inspected yet, too."""
        with self._following:
            for target, owner in self._listed().items():
                if not self._cpusets.has(target):
                    self._found.add(target)
                    self._cpusets.add(target, owner, mems=confinement_of(self._node.snapshot, owner).mems)

    def _drop_ended(self) -> None:
        """Let go of those again that are not listed as running any more: nobody else does."""
        for one in sorted(self._found - self._listed().keys()):
            self._found.remove(one)
            self._cpusets.remove(one)

    def _listed(self) -> dict[str, Owner]:
        return {
            one.id: Owner(uid, one.name)
            for uid, listing in self._watch.seen.snapshot().items()
            for one in listing.value.containers
            if one.state.may_run
        }
