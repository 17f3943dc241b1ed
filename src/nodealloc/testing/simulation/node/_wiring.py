"""The agent that ships with the simulation: every package of a pod's life, wired in one function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from nodealloc.admission import Chain, MakingRoom
from nodealloc.checkpoint import FileStore, StoreFailedError, row_formats, rows_of
from nodealloc.cpuset import CpuAllocator, StaticPolicy
from nodealloc.dsw_asw import Cancel, Driven, Group
from nodealloc.idset import CPUSet
from nodealloc.machine import Machine
from nodealloc.memblocks import memory_allocator
from nodealloc.node import FORMATS, NodeAllocator
from nodealloc.podlife import (
    POD_ROWS,
    ContainerGift,
    Ending,
    EndingKind,
    HookCall,
    ImageFacts,
    NodeSettings,
    PodFacts,
    PodLives,
    PodRecord,
    Preparation,
    container_config,
    record_from_checkpoint,
    sandbox_config,
)
from nodealloc.podsources import PodSources
from nodealloc.podspec import Container, Pod
from nodealloc.podstatus import (
    STATUS_ROWS,
    Observed,
    StartFailure,
    StatusManager,
    told_from_checkpoint,
    with_runtime,
)
from nodealloc.podstatus import Ending as ToldEnding
from nodealloc.runtime import (
    RUNTIME_ROWS,
    ContainerConfig,
    PodReport,
    RuntimeWatch,
    SandboxConfig,
    pod_from_checkpoint,
)
from nodealloc.testing.simulation._executor import Killed
from nodealloc.testing.simulation.node._ports import NodePorts
from nodealloc.topology import Allocator, Owner, Policy, Snapshot
from nodealloc.verdicts import Admitted, NotYet, Refused

__all__ = ["agent", "agent_with"]

_FORMATS = {**FORMATS, **row_formats(RUNTIME_ROWS, POD_ROWS, STATUS_ROWS)}

_NONE = Policy.parse("none")
_PREEMPTED = Ending(
    kind=EndingKind.EVICTED, reason="Preempting", message="It makes room.", disruption="PreemptionByScheduler"
)


def agent(ports: NodePorts) -> Driven:
    """The agent with nothing of one's own."""
    return agent_with()(ports)


def agent_with(
    *,
    policy: Policy | None = None,
    allocators: Callable[[Machine], Sequence[Allocator]] | None = None,
    chain: Chain | None = None,
    preparations: Sequence[Preparation] = (),
) -> Callable[[NodePorts], Driven]:
    """The same agent with parts of one's own.

    Args:
        policy: Aligns resources; None for `none`.
        allocators: From the machine to what gives out its resources; None for
            CPUs and memory with their static policies.
        chain: Judges pods; None for the node's own.
        preparations: Parts of a pod behind its admission.
    """
    return partial(
        _wire, policy=policy, allocators=allocators or _allocators, chain=chain, preparations=preparations
    )


def _wire(
    ports: NodePorts,
    *,
    policy: Policy | None,
    allocators: Callable[[Machine], Sequence[Allocator]],
    chain: Chain | None,
    preparations: Sequence[Preparation],
) -> Driven:
    executor, clock = ports.life.executor, ports.life.clock
    try:
        store = FileStore(ports.disk, _FORMATS, files=ports.files)
        rows = store.read().values
        node = NodeAllocator(
            Snapshot.of(ports.machine, policy=policy or _NONE, allocators=allocators(ports.machine)),
            store,
            chain=chain,
        )
        if not node.start().is_clean:
            node.accept()
    except StoreFailedError as error:  # a service manager would start it again
        ports.life.end()
        raise Killed from error
    watch = RuntimeWatch(
        ports.runtime,
        journal=store,
        known=rows_of(RUNTIME_ROWS, rows, pod_from_checkpoint),
        executor=executor,
        clock=clock,
    )
    sources = PodSources(ports.sources, executor=executor, clock=clock)
    admission = _Admission(node)
    lives = PodLives(
        ports.runtime,
        watch=watch,
        configuring=_Configuring(node),
        hooks=_NoHooks(),
        preparations=[
            Preparation(name="admission", why="nothing is made for a pod that may not come in", by=admission),
            *preparations,
        ],
        sources=sources,
        journal=store,
        remembered=rows_of(POD_ROWS, rows, lambda row: record_from_checkpoint(row, ports.now())),
        now=ports.now,
        executor=executor,
        clock=clock,
    )
    admission.end = lambda uid: lives.end(uid, _PREEMPTED)
    status = StatusManager(
        ports.sink,
        lives.facts,
        observed=_observed,
        journal=store,
        remembered=rows_of(STATUS_ROWS, rows, told_from_checkpoint),
        unix_s=lambda: ports.now().unix_s,
        executor=executor,
        clock=clock,
    )
    return Group(sources, watch, lives, status, name="simulated agent")


class _Admission:
    """A preparer: the chain of admission, and what the pod holds."""

    def __init__(self, node: NodeAllocator) -> None:
        self._node = node
        self.end: Callable[[str], object] = lambda _uid: None

    def make_ready(self, pod: Pod, _cancel: Cancel, /) -> Admitted | NotYet | Refused:
        """Whether it may come in; remembered when it may. Whoever has to make room for it is ended."""
        verdict = self._node.admit(pod)
        if isinstance(verdict, MakingRoom):
            for uid in verdict.victims:
                self.end(uid)
        return verdict

    def take_back(self, pod: Pod, _cancel: Cancel, /) -> NotYet | None:
        """Give back all that it held."""
        self._node.release(pod.uid)
        return None


class _Configuring:
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


class _NoHooks:
    """Simulated pods have no hooks."""

    def run_hook(self, call: HookCall, _cancel: Cancel, /) -> str:
        """It succeeds."""
        del call
        return ""


def _observed(facts: PodFacts) -> Observed | None:
    """What is told of a pod follows from this; nobody is told of one that only the runtime knew."""
    ending = facts.ending
    if ending is not None and ending.kind is EndingKind.ORPHANED:
        return None
    observed = Observed(
        pod=facts.pod,
        life=facts.life,
        start_failures={
            name: StartFailure(reason=one.waiting.reason, message=one.waiting.message)
            for name, one in facts.containers.items()
            if one.waiting is not None
        },
        counts={name: one.restart_count for name, one in facts.containers.items()},
        ending=(
            ToldEnding(reason=ending.reason, message=ending.message, disruption=ending.disruption)
            if ending is not None and ending.reason
            else None
        ),
        refused=ending is not None and ending.kind is EndingKind.REFUSED,
        noticed_unix_s=facts.noticed_unix_s,
    )
    return observed if facts.known is None else with_runtime(observed, facts.known)


def _allocators(machine: Machine) -> Sequence[Allocator]:
    reserved = CPUSet.of(0)
    return (CpuAllocator(policy=StaticPolicy.of(machine, reserved=reserved)), memory_allocator(machine))
