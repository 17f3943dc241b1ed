"""The agent that ships with the simulation: every package of a pod's life, wired in one function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import cast

from nodealloc.admission import Chain
from nodealloc.checkpoint import FileStore, StoreFailedError, row_formats, rows_of
from nodealloc.cpuset import CpuAllocator
from nodealloc.dsw_asw import Driven, Group, World
from nodealloc.idset import CPUSet
from nodealloc.machine import Machine
from nodealloc.memblocks import MemoryAllocator
from nodealloc.node import FORMATS, NodeAllocator
from nodealloc.podlife import (
    POD_ROWS,
    Ending,
    EndingKind,
    LifeTold,
    LifeVerdicts,
    PodLives,
    Preparation,
    record_from_checkpoint,
)
from nodealloc.podsources import PodSources
from nodealloc.podstatus import (
    STATUS_ROWS,
    Part,
    StatusManager,
    Told,
    observed_of,
    told_from_checkpoint,
    with_runtime,
    with_verdicts,
)
from nodealloc.probes import PROBE_ROWS, ExecProber, Probers, Probing, verdicts_from_checkpoint
from nodealloc.runtime import (
    RUNTIME_ROWS,
    PodKnown,
    RuntimeWatch,
    pod_from_checkpoint,
)
from nodealloc.testing.simulation._executor import Killed
from nodealloc.testing.simulation.node._parts import Admission, Configuring, Confining, Hooks, Probed
from nodealloc.testing.simulation.node._ports import NodePorts
from nodealloc.topology import Allocator, Policy, Snapshot

__all__ = ["agent", "agent_with"]

_FORMATS = {**FORMATS, **row_formats(RUNTIME_ROWS, POD_ROWS, PROBE_ROWS, STATUS_ROWS)}

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
    confining = Confining(ports, node, watch)
    admission = Admission(node, confining)
    probing: Probing[PodKnown] = Probing(
        Probers(exec=ExecProber(ports.runtime)),
        reports=watch.pods,
        journal=store,
        remembered=rows_of(PROBE_ROWS, rows, verdicts_from_checkpoint),
        executor=executor,
        clock=clock,
        unix_s=lambda: ports.now().unix_s,
    )
    told: World[str, Told] = World("told")
    lives = PodLives(
        ports.runtime,
        watch=watch,
        configuring=Configuring(node),
        hooks=Hooks(ports.runtime),
        preparations=[
            Preparation(name="admission", why="nothing is made for a pod that may not come in", by=admission),
            *preparations,
        ],
        probes=cast("World[str, LifeVerdicts]", probing.verdicts),
        told=cast("World[str, LifeTold]", told),
        sources=sources,
        journal=store,
        remembered=rows_of(POD_ROWS, rows, lambda row: record_from_checkpoint(row, ports.now())),
        now=ports.now,
        executor=executor,
        clock=clock,
    )
    Probed(probing, lives)
    admission.end = lambda uid: lives.end(uid, _PREEMPTED)
    status = StatusManager(
        ports.sink,
        lives.facts,
        observed=observed_of,
        parts=(Part.of(watch.pods, with_runtime), Part.of(probing.verdicts, with_verdicts)),
        told=told,
        journal=store,
        remembered=rows_of(STATUS_ROWS, rows, told_from_checkpoint),
        unix_s=lambda: ports.now().unix_s,
        executor=executor,
        clock=clock,
    )
    return Group(sources, watch, confining.reconciler.engine, lives, probing, status, name="simulated agent")


def _allocators(machine: Machine) -> Sequence[Allocator]:
    reserved = CPUSet.of(0)
    return (CpuAllocator.of(machine, reserved=reserved), MemoryAllocator.of(machine))
