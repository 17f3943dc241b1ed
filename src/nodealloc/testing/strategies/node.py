"""Hypothesis strategies for whole nodes, and for what happens to them: pods, releases, restarts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from hypothesis import strategies as st

from nodealloc import _attrs as attrs
from nodealloc.cpuset import CpuAllocator, StaticPolicy
from nodealloc.devices import Device, DeviceAllocator, DeviceList, Inventory, PluginOptions
from nodealloc.errors import NodeallocError
from nodealloc.idset import CPUSet
from nodealloc.machine import Machine
from nodealloc.memblocks import (
    MemoryAllocator,
    MemoryOptions,
)
from nodealloc.podspec import Container, Pod, Quantity
from nodealloc.testing.strategies.cpuset import cpu_machines, static_options
from nodealloc.testing.strategies.podspec import pods
from nodealloc.testing.strategies.topology import policies
from nodealloc.topology import NumaTopology, Scope, Snapshot

__all__ = [
    "GPU",
    "Admit",
    "Edit",
    "EmptyNode",
    "NodeStep",
    "Release",
    "Restart",
    "edited_pods",
    "empty_nodes",
    "node_histories",
]

GPU = "example.com/gpu"
"""The device resource of these nodes."""
_NATIVE = ("cpu", "memory")
_HALF = st.booleans()


@attrs.frozen(kw_only=True)
class EmptyNode:
    """A node on which nothing is held.

    Attributes:
        machine: What there is.
        inventory: The devices of `GPU`, as their plugin lists them.
        snapshot: CPUs and memory with the static policy, and devices.
    """

    machine: Machine
    inventory: Inventory
    snapshot: Snapshot


@attrs.frozen
class Admit:
    """A step of a history: a pod comes, or comes again."""

    pod: Pod


@attrs.frozen
class Release:
    """A step of a history: a pod ends, or one container of it.

    Attributes:
        key: The pod's uid.
        member: Which container, counted modulo their number; None for all.
    """

    key: str
    member: int | None = None


@attrs.frozen
class Restart:
    """A step of a history: the agent ends without a word and begins again.

    Attributes:
        plugin_returns: Whether the device plugin registers again.
    """

    plugin_returns: bool = True


@attrs.frozen
class Edit:
    """A step of a history: a pod that is in is edited where it is.

    Attributes:
        pod: As it is to be.
    """

    pod: Pod


NodeStep: TypeAlias = Admit | Edit | Release | Restart
"""One thing that happens to a node."""


@st.composite
def empty_nodes(draw: st.DrawFn) -> EmptyNode:
    """Machines of every kind with legal options, some reserved CPUs, devices well and ill, any policy."""
    machine = draw(cpu_machines())
    nodes = tuple(machine.nodes)
    inventory = draw(_serving(nodes))
    devices = DeviceAllocator(nodes=nodes).with_inventory(inventory)
    policy = draw(policies(search=None))
    if not machine.distances:
        policy = attrs.evolve(policy, prefer_closest=False)
    snapshot = Snapshot(
        numa=NumaTopology(nodes=nodes, distances=machine.distances or {}),
        policy=policy,
        scope=draw(st.sampled_from(Scope)),
        allocators=(
            CpuAllocator(policy=draw(_cpu_policies(machine))),
            MemoryAllocator.of(
                machine, options=MemoryOptions(strict=draw(st.booleans()), fall_back=draw(st.booleans()))
            ),
            devices,
        ),
    )
    return EmptyNode(machine=machine, inventory=inventory, snapshot=snapshot)


@st.composite
def _serving(draw: st.DrawFn, nodes: tuple[int, ...]) -> Inventory:
    """A plugin that serves up to eight devices: at one node, at several, at none; some are ill."""
    places = st.none() | st.sets(st.sampled_from(nodes), min_size=1).map(lambda at: sum(1 << n for n in at))
    health = st.sampled_from(["Healthy", "Healthy", "Healthy", "Unhealthy"])
    listed = [
        Device(f"gpu-{number}", draw(health), draw(places)) for number in range(draw(st.integers(1, 8)))
    ]
    blank = Inventory(resource=GPU).registered(1, now_s=0.0)
    return blank.listed(1, DeviceList.of(listed, nodes=nodes), PluginOptions(), now_s=0.0)


@st.composite
def _cpu_policies(draw: st.DrawFn, machine: Machine) -> StaticPolicy:
    reserved = CPUSet(draw(st.sets(st.sampled_from(tuple(machine.online)), max_size=3)))
    resizable = draw(st.booleans())
    try:
        options = draw(static_options())
        return StaticPolicy.of(machine, reserved=reserved, options=options, resizable=resizable)
    except (NodeallocError, ValueError):  # options that this machine does not bear
        return StaticPolicy.of(machine, reserved=reserved, resizable=resizable)


@st.composite
def edited_pods(draw: st.DrawFn, pod: Pod) -> Pod:
    """A pod of which containers ask for other amounts of CPU and memory, come, go, or are of another kind."""
    other = draw(pods(name=pod.name, extended=()))

    def changed(one: Container) -> Container:
        if not draw(_HALF):
            return one
        like = draw(st.sampled_from(other.all_containers))
        requests = {**_without_native(one.requests), **_native_of(like.requests)}
        limits = {**_without_native(one.limits), **_native_of(like.limits)}
        return attrs.evolve(one, requests=requests, limits=limits)

    init = [changed(one) for one in pod.init_containers if draw(st.integers(0, 5))]
    main = [changed(one) for one in pod.containers if draw(st.integers(0, 5))] or [*pod.containers]
    names = {one.name for one in (*init, *main)}
    more = [one for one in other.all_containers if one.name not in names and not one.restartable]
    if draw(_HALF) and more:
        main.append(attrs.evolve(draw(st.sampled_from(more)), volumes=()))
    if draw(_HALF) and init:
        init = draw(st.permutations(init))
        turned = init.pop(draw(st.integers(0, len(init) - 1)))
        where, lasts = draw(st.sampled_from(((init, True), (init, False), (main, False))))
        where.append(attrs.evolve(turned, restartable=lasts))
    return attrs.evolve(pod, init_containers=tuple(init), containers=tuple(main))


def _native_of(amounts: Mapping[str, Quantity]) -> dict[str, Quantity]:
    return {name: amount for name, amount in amounts.items() if name in _NATIVE}


def _without_native(amounts: Mapping[str, Quantity]) -> dict[str, Quantity]:
    return {name: amount for name, amount in amounts.items() if name not in _NATIVE}


def node_histories(*, max_steps: int = 12, max_pods: int = 5) -> st.SearchStrategy[list[NodeStep]]:
    """What happens to a node; pods are `pod-0` and on, and one that comes again is the same."""
    names = [f"pod-{number}" for number in range(max_pods)]

    def steps(known: tuple[Pod, ...]) -> st.SearchStrategy[list[NodeStep]]:
        comes = st.sampled_from(known).map(Admit)
        ends = st.builds(Release, st.sampled_from(names), st.none() | st.integers(0, 3))
        again = st.builds(Restart, st.booleans())
        edited = st.sampled_from(known).flatmap(edited_pods).map(Edit)
        return st.lists(st.one_of(comes, comes, edited, ends, again), min_size=1, max_size=max_steps)

    return st.tuples(*(pods(name=name, extended=(GPU,)) for name in names)).flatmap(steps)
