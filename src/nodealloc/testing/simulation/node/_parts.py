"""What the shipped agent does between the packages: admits, confines and configures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import attrs
from typing_extensions import override

from nodealloc.admission import MakingRoom
from nodealloc.cpuset import CpuAllocator, CpusetReconciler, NonePolicy, StaticPolicy
from nodealloc.dsw_asw import Cancel, Driven, Group, Summary, World
from nodealloc.errors import NodeallocError
from nodealloc.node import NodeAllocator
from nodealloc.podfacts import PodSighting
from nodealloc.podlife import (
    ContainerGift,
    HookCall,
    NodeConfiguration,
    NodeSettings,
    PodFacts,
    PodGift,
    PodLives,
    PodRecord,
    Preparation,
    Provided,
)
from nodealloc.podspec import Container, Pod
from nodealloc.podstatus import StatusManager
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
from nodealloc.volumes import VolumeManager

__all__ = ["Admission", "Agent", "Configuring", "Confining", "Hooks", "Volumes"]


class Admission:
    """A preparer: the chain of admission, and what the pod holds.

    Attributes:
        end: Ends a pod that has to make room.
        part: What it is to a pod.
    """

    def __init__(self, node: NodeAllocator, confining: Confining) -> None:
        self._node = node
        self._confining = confining
        self.end: Callable[[str], object] = lambda _uid: None
        why = "nothing is made for a pod that may not come in"
        self.part: Preparation = Preparation(name="admission", why=why, by=self)

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
    """What sandboxes and containers are made from: the pod, its own CPUs, and what preparations gave."""

    def __init__(self, node: NodeAllocator) -> None:
        self._node = node
        self._whole = NodeConfiguration(NodeSettings(name="simulated", memory_capacity_bytes=64 << 30))

    def sandbox(self, pod: Pod, attempt: int, provided: Mapping[str, object], /) -> SandboxConfig:
        """See `Configures.sandbox`."""
        return self._whole.sandbox(pod, attempt, provided)

    def container(
        self, record: PodRecord, container: Container, attempt: int, image_id: str, report: PodReport, /
    ) -> ContainerConfig:
        """See `Configures.container`."""
        owner = Owner(record.pod.uid, container.name)
        held = self._node.before_start(owner, f"{container.name}-{attempt}")
        granted = PodGift(containers={container.name: ContainerGift(cpus=held.cpus, mems=held.mems)})
        given = attrs.evolve(record, provided={**record.provided, "granted": granted})
        return self._whole.container(given, container, attempt, image_id, report)


class Volumes:
    """Has the volumes of pods mounted, and taken away.

    Attributes:
        manager: What does it, for a group.
        part: What it is to a pod.
    """

    def __init__(self, ports: NodePorts, pods: Callable[[], PodLives]) -> None:
        self.manager = VolumeManager(
            [ports.volumes],
            pods=_Begun(pods),
            executor=ports.life.executor,
            leftovers=ports.volumes,
            clock=ports.life.clock,
        )
        self.manager.reconstruct()
        self._mounted: World[str, object] = World("changes of mounts")
        why = "containers are made with their mounts"
        # Whenever something of a pod was mounted it is asked again at once.
        self.part: Preparation = Preparation(name="volumes", why=why, by=self, wakes=self._mounted)
        self._changes = self.manager.actual.watch(self._changed)

    def make_ready(self, pod: Pod, _cancel: Cancel, /) -> Provided | NotYet:
        """All of them are there, or some are not yet."""
        self.manager.pod_changed(pod.uid)
        used = {use.name for one in pod.all_containers for use in one.volumes}
        found = {one.name: one.path for one in self.manager.volumes_of(pod.uid) if one.mounted}
        missing = sorted(used - found.keys())
        if missing:
            return NotYet(blocker="volumes", message=f"not mounted yet: {', '.join(missing)}", after_s=5.0)
        return Provided(value=PodGift(everywhere=ContainerGift(volumes=found)))

    def take_back(self, pod: Pod, _cancel: Cancel, /) -> NotYet | None:
        """None is there, nor may be."""
        self.manager.pod_changed(pod.uid)
        held = self.manager.holds(pod.uid)
        return NotYet(blocker="volumes", message="still mounted", after_s=1.0) if held else None

    def _changed(self) -> None:
        for key in self._changes.take():
            record = self.manager.actual.get(key)
            for uid in record.mounts if record is not None else ():
                self._mounted.put(uid, object(), by="mounts")


@attrs.frozen
class _Begun:
    """A `PodSource`: pods whose volumes were begun, of which no refused one is."""

    lives: Callable[[], PodLives]

    def uids(self) -> Iterable[str]:
        """See `PodSource.uids`."""
        return [uid for uid in self.lives().pod_source().uids() if self._is_begun(uid)]

    def get(self, uid: str, /) -> PodSighting | None:
        """See `PodSource.get`."""
        return self.lives().pod_source().get(uid) if self._is_begun(uid) else None

    def is_ready(self) -> bool:
        """See `PodSource.is_ready`."""
        return self.lives().is_ready()

    def _is_begun(self, uid: str) -> bool:
        record = self.lives().pods.get(uid)
        return record is not None and "volumes" in record.made


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


class Agent(Group):
    """All of it. Pods that live are probed; once it is known which there are, what is left of others goes."""

    def __init__(
        self,
        *members: Driven,
        lives: PodLives,
        volumes: VolumeManager,
        probing: Probing[PodKnown],
        status: StatusManager[PodFacts],
    ) -> None:
        self._lives, self._volumes, self._probing, self._status = lives, volumes, probing, status
        self._knows = False
        self._changes = lives.facts.watch(self._follow)
        self._follow()
        super().__init__(*members, volumes, lives, probing, status, name="simulated agent")

    @override
    def reconcile(self) -> Summary:
        """Make a pass."""
        if not self._knows and self._lives.is_ready():
            self._knows = True
            pods = self._lives.wanted.snapshot()
            self._volumes.pods_changed()
            self._probing.keep_only(pods)
            self._status.heard(pods)
        return super().reconcile()

    def _follow(self) -> None:
        for uid in self._changes.take():
            facts = self._lives.facts.get(uid)
            if facts is None:
                self._probing.remove(uid)
            else:
                self._probing.put(facts.pod, facts.life)
