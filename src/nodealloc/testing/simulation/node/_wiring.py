"""The agent that ships with the simulation: every package of a pod's life, wired in one function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import cast

from nodealloc._typed import typed_but
from nodealloc.admission import Chain
from nodealloc.agent import (
    AdmissionPreparer,
    Agent,
    ConfinedRuntime,
    GrantedConfiguration,
    Remembered,
    remembering_editions,
)
from nodealloc.checkpoint import FileStore
from nodealloc.cpuset import CpuAllocator
from nodealloc.devices import DeviceAllocator
from nodealloc.dsw_asw import Driven, World
from nodealloc.idset import CPUSet
from nodealloc.machine import Machine
from nodealloc.memblocks import MemoryAllocator
from nodealloc.podlife import (
    NodeConfiguration,
    NodeSettings,
    PodFacts,
    PodLives,
    Preparation,
)
from nodealloc.podlife.preparers import BegunPods
from nodealloc.podsources import PodSources
from nodealloc.podspec import Pod
from nodealloc.podstatus import Part, StatusManager, Told, observed_of, with_source, with_verdicts
from nodealloc.probes import ExecProber, PodVerdicts, Probers, Probing
from nodealloc.runtime import RuntimeWatch
from nodealloc.testing.simulation.node._kept import opened
from nodealloc.testing.simulation.node._parts import AgentParts
from nodealloc.testing.simulation.node._ports import NodePorts
from nodealloc.topology import Allocator, Policy, Snapshot

__all__ = ["agent", "agent_with"]

_SETTINGS = NodeSettings(name="simulated", memory_capacity_bytes=64 << 30)


def agent(ports: NodePorts) -> Driven:
    """The agent with nothing of one's own."""
    return agent_with()(ports)


@typed_but("policy")
def agent_with(
    *,
    policy: Policy | None = None,
    allocators: Callable[[Machine], Sequence[Allocator]] | None = None,
    chain: Chain | None = None,
    preparations: Sequence[Preparation] = (),
) -> Callable[[NodePorts], Driven]:
    """The same agent with parts of one's own.

    Args:
        policy: Aligns resources; None for `restricted`.
        allocators: From the machine to what gives out its resources; None for
            CPUs and memory with their static policies, and devices of plugins.
        chain: Judges pods; None for the node's own.
        preparations: Parts of a pod behind its admission.

    Raises:
        ConfigurationError: An argument is of another kind, or names no policy.
    """
    chosen = _policy(policy)
    return partial(
        _wire,
        empty=lambda machine: Snapshot.of(
            machine,
            policy=chosen,
            allocators=(_allocators if allocators is None else allocators)(machine),
        ),
        chain=chain,
        own=tuple(preparations),
        is_aligned=policy is None and allocators is None,
    )


def _policy(given: object) -> Policy:
    """One, or its word."""
    if isinstance(given, Policy):
        return given
    return Policy.parse("restricted" if given is None else cast("str", given))


def _wire(
    ports: NodePorts,
    *,
    empty: Callable[[Machine], Snapshot],
    chain: Chain | None,
    own: tuple[Preparation, ...],
    is_aligned: bool,
) -> Driven:
    on = AgentParts(ports, is_aligned=is_aligned)
    store, node, was = opened(ports, empty(ports.machine), chain)
    watch = RuntimeWatch(ports.runtime, journal=store, known=was.known, executor=on.executor, clock=on.clock)
    sources = PodSources(
        ports.sources,
        editions=was.editions,
        remember=remembering_editions(store),
        known=was.pods,
        executor=on.executor,
        clock=on.clock,
    )
    on.hurries(sources)
    facts: World[str, PodFacts] = World("facts of pods")
    told: World[str, Told] = World("told")
    probing = _probing(ports, on, facts, store, was)
    cpusets, begun = on.cpusets(node), BegunPods(is_let_in=node.holds)
    plugins, drives_plugins = on.plugins(node)
    with_devices = () if plugins is None else (on.preparing(plugins),)
    volumes, cgroups = on.volumes(begun), on.cgroups(was, watch)
    why = "nothing is made for a pod that may not come in"
    confined = (
        None if cpusets is None else ConfinedRuntime(ports.runtime, node=node, cpusets=cpusets, watch=watch)
    )
    by = AdmissionPreparer(node, confined=confined, end=lambda uid, why: lives.end(uid, why))  # noqa: PLW0108
    admitting = Preparation(name=by.NAME, why=why, by=by, wakes=by.room)
    lives = PodLives(
        confined or ports.runtime,
        watch=watch,
        configuring=GrantedConfiguration(
            whole=NodeConfiguration(_SETTINGS), node=node, plugins=plugins, confines=cpusets is not None
        ),
        hooks=on.hooks(),
        preparations=(admitting, on.limiting(cgroups), on.mounting(volumes), *with_devices, *own),
        probes=probing.verdicts,
        told=told,
        sources=sources,
        journal=store,
        remembered=was.lives,
        facts=facts,
        now=ports.now,
        executor=on.executor,
        clock=on.clock,
    )
    begun.follow(lives)
    return Agent(
        sources,
        watch,
        probing,
        *drives_plugins,
        on.rounds(cgroups),
        lives=lives,
        probing=probing,
        status=_status(ports, on, facts, store, was, parts=(probing.verdicts, sources.pods), told=told),
        node=node,
        cpusets=cpusets,
        volumes=volumes,
        once_known={"cgroups": cgroups.settle},
        gone=ports.forgetting(),
        executor=on.executor,
        clock=on.clock,
    )


def _probing(
    ports: NodePorts, on: AgentParts, facts: World[str, PodFacts], store: FileStore, was: Remembered
) -> Probing[PodFacts]:
    """Asks containers by commands."""
    return Probing(
        Probers(exec=ExecProber(ports.runtime)),
        reports=facts,
        journal=store,
        remembered=was.verdicts,
        unix_s=on.unix_s,
        executor=on.executor,
        clock=on.clock,
    )


def _status(
    ports: NodePorts,
    on: AgentParts,
    facts: World[str, PodFacts],
    store: FileStore,
    was: Remembered,
    *,
    parts: tuple[World[str, PodVerdicts], World[str, Pod]],
    told: World[str, Told],
) -> StatusManager[PodFacts]:
    """Tells the sink of pods, with what their probes say, and what their source has of them."""
    verdicts, pods = parts
    return StatusManager(
        ports.sink,
        facts,
        observed=observed_of,
        parts=(Part.of(verdicts, with_verdicts), Part.of(pods, with_source)),
        told=told,
        journal=store,
        remembered=was.told,
        unix_s=on.unix_s,
        executor=on.executor,
        clock=on.clock,
    )


def _allocators(machine: Machine) -> Sequence[Allocator]:
    return (
        CpuAllocator.of(machine, reserved=CPUSet.of(0)),
        MemoryAllocator.of(machine),
        DeviceAllocator.of(machine),
    )
