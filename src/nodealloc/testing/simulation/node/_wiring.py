"""The agent that ships with the simulation: every package of a pod's life, wired in one function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import cast

from nodealloc.admission import Chain
from nodealloc.cpuset import CpuAllocator
from nodealloc.dsw_asw import Driven, World
from nodealloc.idset import CPUSet
from nodealloc.machine import Machine
from nodealloc.memblocks import MemoryAllocator
from nodealloc.podlife import Ending, EndingKind, LifeTold, LifeVerdicts, PodFacts, PodLives, Preparation
from nodealloc.podsources import PodSources
from nodealloc.podstatus import Part, StatusManager, Told, observed_of, with_runtime, with_verdicts
from nodealloc.probes import ExecProber, Probers, Probing
from nodealloc.runtime import PodKnown, RuntimeWatch
from nodealloc.testing.simulation.node._kept import Kept
from nodealloc.testing.simulation.node._parts import Admission, Agent, Configuring, Confining, Hooks, Volumes
from nodealloc.testing.simulation.node._ports import NodePorts
from nodealloc.topology import Allocator, Policy, Snapshot

__all__ = ["agent", "agent_with"]

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
        _wire,
        empty=lambda machine: Snapshot.of(
            machine, policy=policy or Policy.parse("none"), allocators=(allocators or _allocators)(machine)
        ),
        chain=chain,
        own=tuple(preparations),
    )


def _wire(
    ports: NodePorts,
    *,
    empty: Callable[[Machine], Snapshot],
    chain: Chain | None,
    own: tuple[Preparation, ...],
) -> Driven:
    executor, clock = ports.life.executor, ports.life.clock
    kept = Kept.of(ports, empty(ports.machine), chain)
    watch = RuntimeWatch(ports.runtime, journal=kept.store, known=kept.known, executor=executor, clock=clock)
    sources = PodSources(ports.sources, executor=executor, clock=clock)
    confining = Confining(ports, kept.node, watch)
    admission = Admission(kept.node, confining)
    volumes = Volumes(ports, lambda: lives)
    probing = _probing(ports, kept, watch)
    told: World[str, Told] = World("told")
    lives = PodLives(
        ports.runtime,
        watch=watch,
        configuring=Configuring(kept.node),
        hooks=Hooks(ports.runtime),
        preparations=(admission.part, volumes.part, *own),
        probes=cast("World[str, LifeVerdicts]", probing.verdicts),
        told=cast("World[str, LifeTold]", told),
        sources=sources,
        journal=kept.store,
        remembered=kept.lives,
        now=ports.now,
        executor=executor,
        clock=clock,
    )
    admission.end = lambda uid: lives.end(uid, _PREEMPTED)
    return Agent(
        sources,
        watch,
        confining.reconciler.engine,
        lives=lives,
        volumes=volumes.manager,
        probing=probing,
        status=_status(
            ports,
            kept,
            lives.facts,
            parts=(Part.of(watch.pods, with_runtime), Part.of(probing.verdicts, with_verdicts)),
            told=told,
        ),
    )


def _probing(ports: NodePorts, kept: Kept, watch: RuntimeWatch) -> Probing[PodKnown]:
    return Probing(
        Probers(exec=ExecProber(ports.runtime)),
        reports=watch.pods,
        journal=kept.store,
        remembered=kept.verdicts,
        executor=ports.life.executor,
        clock=ports.life.clock,
        unix_s=lambda: ports.now().unix_s,
    )


def _status(
    ports: NodePorts,
    kept: Kept,
    facts: World[str, PodFacts],
    *,
    parts: Sequence[Part],
    told: World[str, Told],
) -> StatusManager[PodFacts]:
    return StatusManager(
        ports.sink,
        facts,
        observed=observed_of,
        parts=parts,
        told=told,
        journal=kept.store,
        remembered=kept.told,
        unix_s=lambda: ports.now().unix_s,
        executor=ports.life.executor,
        clock=ports.life.clock,
    )


def _allocators(machine: Machine) -> Sequence[Allocator]:
    reserved = CPUSet.of(0)
    return (CpuAllocator.of(machine, reserved=reserved), MemoryAllocator.of(machine))
