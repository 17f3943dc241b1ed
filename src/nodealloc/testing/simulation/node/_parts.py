"""What the shipped agent does between the packages: admits, confines and configures."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from nodealloc.admission import MakingRoom
from nodealloc.cpuset import CpuAllocator, CpusetReconciler, NonePolicy, StaticPolicy
from nodealloc.dsw_asw import Cancel
from nodealloc.errors import NodeallocError
from nodealloc.node import NodeAllocator
from nodealloc.podlife import (
    ContainerGift,
    HookCall,
    ImageFacts,
    NodeSettings,
    PodLives,
    PodRecord,
    container_config,
    sandbox_config,
)
from nodealloc.podspec import Container, Pod
from nodealloc.probes import Probing
from nodealloc.runtime import (
    CommandRunner,
    ContainerConfig,
    PodKnown,
    PodReport,
    RunState,
    RuntimeWatch,
    SandboxConfig,
)
from nodealloc.testing.simulation.node._ports import NodePorts
from nodealloc.topology import Owner
from nodealloc.verdicts import Admitted, NotYet, Refused

__all__ = ["Admission", "Configuring", "Confining", "Hooks", "Probed"]


class Admission:
    """A preparer: the chain of admission, and what the pod holds."""

    def __init__(self, node: NodeAllocator, confining: Confining) -> None:
        self._node = node
        self._confining = confining
        self.end: Callable[[str], object] = lambda _uid: None

    def make_ready(self, pod: Pod, _cancel: Cancel, /) -> Admitted | NotYet | Refused:
        """Whether it may come in; remembered when it may. Whoever has to make room for it is ended."""
        verdict = self._node.admit(pod)
        if isinstance(verdict, MakingRoom):
            for uid in verdict.victims:
                self.end(uid)
        self._confining.follow_grants()
        return verdict

    def take_back(self, pod: Pod, _cancel: Cancel, /) -> NotYet | None:
        """Give back all that it held."""
        self._node.release(pod.uid)
        self._confining.follow_grants()
        return None


class Confining:
    """Keeps running containers on the CPUs that they were granted; those without their own share the rest.

    Where nobody is granted CPUs it confines nobody.

    Attributes:
        reconciler: What does it, for a group.
    """

    def __init__(self, ports: NodePorts, node: NodeAllocator, watch: RuntimeWatch) -> None:
        self._node = node
        self._pods = watch.pods
        self._targets: dict[str, set[str]] = {}
        granted = self._granted()
        self._confines = granted is not None and isinstance(granted.policy, StaticPolicy)
        self.reconciler = CpusetReconciler(
            ports.cpusets,
            executor=ports.life.executor,
            allocator=granted or CpuAllocator(policy=NonePolicy.of(ports.machine)),
            clock=ports.life.clock,
        )
        self._changes = watch.pods.watch(self._follow_pods)
        self._follow_pods()

    def follow_grants(self) -> None:
        """Somebody was granted something, or gave it back."""
        granted = self._granted()
        if granted is not None:
            self.reconciler.follow(granted)

    def _granted(self) -> CpuAllocator | None:
        found = (one for one in self._node.snapshot.allocators if isinstance(one, CpuAllocator))
        return next(found, None)

    def _follow_pods(self) -> None:
        for uid in self._changes.take() if self._confines else ():
            known = self._pods.get(uid)
            if known is not None and known.report is None:
                continue  # nobody could ask, from which nothing follows
            containers = () if known is None or known.report is None else known.report.containers
            records = (one.record for one in containers)
            runs = {one.id: one.name for one in records if one.state is RunState.RUNNING}
            for ended in self._targets.pop(uid, set()) - runs.keys():
                self.reconciler.remove(ended)
            for target, name in runs.items():
                self.reconciler.add(target, Owner(uid, name))
            if runs:
                self._targets[uid] = set(runs)


class Configuring:
    """What sandboxes and containers are made from: the pod, and its own CPUs."""

    def __init__(self, node: NodeAllocator) -> None:
        self._node = node
        self._settings = NodeSettings(name="simulated", memory_capacity_bytes=64 << 30)

    def sandbox(self, pod: Pod, attempt: int, _provided: Mapping[str, object], /) -> SandboxConfig:
        """See `Configures.sandbox`."""
        return sandbox_config(pod, attempt=attempt, node=self._settings)

    def container(
        self, record: PodRecord, container: Container, attempt: int, image_id: str, _report: PodReport, /
    ) -> ContainerConfig:
        """See `Configures.container`."""
        owner = Owner(record.pod.uid, container.name)
        held = self._node.before_start(owner, f"{container.name}-{attempt}")
        return container_config(
            record.pod,
            container,
            attempt=attempt,
            image=ImageFacts(id=image_id),
            node=self._settings,
            gift=ContainerGift(cpus=held.cpus, mems=held.mems),
            definitions=record.definitions,
        )


class Hooks:
    """Runs hooks that are commands."""

    def __init__(self, commands: CommandRunner) -> None:
        self._commands = commands

    def run_hook(self, call: HookCall, _cancel: Cancel, /) -> str:
        """See `HookRunner.run_hook`."""
        if call.handler.exec is None:
            return "only commands are run here"
        try:
            left = self._commands.run_command(call.container_id, call.handler.exec.command, call.timeout_s)
        except NodeallocError as error:
            return str(error)
        return "" if left.code == 0 else f"the command left with {left.code}"


class Probed:
    """Has pods probed while they live."""

    def __init__(self, probing: Probing[PodKnown], lives: PodLives) -> None:
        self._probing = probing
        self._lives = lives
        self._changes = lives.facts.watch(self._follow)
        self._follow()

    def _follow(self) -> None:
        for uid in self._changes.take():
            facts = self._lives.facts.get(uid)
            if facts is None:
                self._probing.remove(uid)
            else:
                self._probing.put(facts.pod, facts.life)
