"""Checkers of devices: each hears every event of the node, and remembers what it needs."""

from __future__ import annotations

import math

from nodealloc.podspec import QosClass, qos_class
from nodealloc.testing.simulation.node._environment import Environment
from nodealloc.testing.simulation.node._events import Event, What
from nodealloc.testing.simulation.node._guarantee import Guarantee
from nodealloc.testing.simulation.node._resources import (
    NODES,
    OF_EACH_NODE,
    RESOURCES,
    file_of,
    library_of,
    node_of,
)

__all__ = [
    "DevicesAligned",
    "DevicesAreWell",
    "DevicesComeWhole",
    "DevicesOnce",
    "DevicesReported",
    "DevicesStand",
    "PluginsAsked",
]


class DevicesOnce(Guarantee):
    """Ours: no device twice, and as many as were asked for."""

    words = "no device that one container has is another's, and each has as many as it asked for"

    def heard(self, event: Event, /) -> None:
        """Whoever starts has its devices alone, and no plugin is asked to give away what runs."""
        if event.what is What.ALLOCATED and self.environment.only_ends:
            self._is_free(event)
        container = self.container(event) if event.what is What.STARTED else None
        if container is None or not self.environment.plugins.are_asked:
            return
        devices = self.environment.containers.devices
        mine = devices.get(event.id, {})
        for resource in RESOURCES:
            asked = container.requests[resource].value if resource in container.requests else 0
            had = len(mine.get(resource, ()))
            assert asked == had, f"{event.uid}/{event.name} asked for {asked} {resource} and was given {had}"
        if mine:
            for one in self.environment.containers.running:
                other = devices.get(one.record.id, {}) if one.record.id != event.id else {}
                for resource, ids in mine.items():
                    both = sorted(set(ids) & set(other.get(resource, ())))
                    assert not both, f"{both[0]} is {one.record.id}'s and {event.id}'s, each for itself"

    def _is_free(self, allocated: Event) -> None:
        """A plugin is asked once for what a container has, before that runs."""
        containers, ids = self.environment.containers, set(str(allocated.value).split(","))
        for one in containers.running:
            had = {each for mine in containers.devices.get(one.record.id, {}).values() for each in mine}
            both = sorted(ids & had) if one.record.id not in containers.late | containers.strange else ()
            assert not both, (
                f"{allocated.id} is asked to allocate {both[0]}, and {one.record.pod.uid}/{one.record.name} "
                "runs with it"
            )


class DevicesStand(Guarantee):
    """Guarantee 1."""

    words = "devices that a container has stay its own, also when it is started again"

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self._had: dict[tuple[str, str], dict[str, tuple[str, ...]]] = {}

    def heard(self, event: Event, /) -> None:
        """A container is given what it had."""
        if event.what is What.GIVEN:
            now = dict(self.environment.containers.devices[event.id])
            before = self._had.setdefault((event.uid, event.name), now)
            assert all(before[one] == ids for one, ids in now.items() if one in before), (
                f"{event.uid}/{event.name} had {before} and is given {now}"
            )
            before |= now


class DevicesAreWell(Guarantee):
    """Ours: what health is told for."""

    words = "a device that was told to be ill before somebody wanted a pod is not given to it"

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self._had: set[tuple[str, str]] = set()

    def heard(self, event: Event, /) -> None:
        """What a container has it keeps; what is new is well."""
        if event.what is not What.GIVEN or not isinstance(event.value, str):
            return
        wanted_s, ill_s = self.environment.wanted_s[event.uid][0], self.environment.plugins.ill_s
        for one in event.value.split(",") if (event.uid, event.value) not in self._had else ():
            assert ill_s.get(one, math.inf) >= wanted_s, (
                f"{event.uid}/{event.name} is given {one}, which was ill {wanted_s - ill_s[one]:.1f} s "
                "before somebody wanted the pod, and ever since"
            )
        self._had.add((event.uid, event.value))


class PluginsAsked(Guarantee):
    """Ours: a container is made after its plugins did their part."""

    words = (
        "plugins allocate what a container is given, and prepare it before each start where they want that"
    )

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self._allocated: set[tuple[str, ...]] = set()
        self._prepared: set[tuple[str, ...]] = set()

    def heard(self, event: Event, /) -> None:
        """What is given was allocated; what wants to be prepared was, since it was given last."""
        ids = tuple(event.value.split(",")) if isinstance(event.value, str) else ()
        if event.what is What.ALLOCATED:
            self._allocated.add(ids)
        if event.what is What.PREPARED:
            self._prepared.add(ids)
        if event.what is What.GIVEN:
            assert ids in self._allocated, f"{event.uid}/{event.name} is given {ids}, which nobody allocated"
            # As with a kubelet: after its start an agent knows what plugins want when they register again,
            # and a container that it had asked for by then is made without that.
            asked_s = event.at_s if event.asked_s is None else event.asked_s
            heard_s = self.environment.plugins.heard_s
            if any(
                mine == ids
                and RESOURCES[resource].pre_start_required
                and heard_s.get(resource, math.inf) < asked_s
                for resource, mine in self.environment.containers.devices[event.id].items()
            ):
                assert ids in self._prepared, (
                    f"{event.uid}/{event.name} is given {ids}, which nobody prepared"
                )
                self._prepared.discard(ids)


class DevicesComeWhole(Guarantee):
    """Ours: what plugins answer is what a container gets."""

    words = "with its devices a container gets their files, no others, and what else its plugins give"

    def heard(self, event: Event, /) -> None:
        """They are there when it starts."""
        containers = self.environment.containers
        mine, config = containers.devices.get(event.id), containers.made_with.get(event.id)
        if event.what is not What.STARTED or config is None or not (mine or config.devices):
            return
        files = {file_of(one) for ids in (mine or {}).values() for one in ids}
        given = {one.host_path for one in config.devices}
        assert files == given, (
            f"{event.uid}/{event.name} starts with the files {sorted(given)}, "
            f"and {sorted(files)} go with its devices"
        )
        read = {one.host_path for one in config.mounts if one.read_only}
        lacks = [library_of(one) for one in mine or () if library_of(one) not in read]
        assert not lacks, f"{event.uid}/{event.name} starts, and {lacks[0]} is not mounted for reading"


class DevicesAligned(Guarantee):
    """Ours: alignment, of an agent that says that it aligns."""

    words = "devices are of the NUMA node of the CPUs that their container has for itself, where they fit"

    def heard(self, event: Event, /) -> None:
        """Who has CPUs of its own has its devices beside them."""
        if event.what is not What.STARTED or not self.environment.is_aligned:
            return
        pod, container = self.pod(event.uid), self.container(event)
        mine = self.environment.containers.devices.get(event.id)
        if pod is None or container is None or not mine or qos_class(pod) is not QosClass.GUARANTEED:
            return
        cpus = self.environment.containers.cpus(event.id)
        nodes = {one.id for one in self.environment.machine.numa_nodes if not one.cpus.isdisjoint(cpus)}
        if len(cpus) * 1000 != container.requests["cpu"].milli_value or len(nodes) > 1:
            return
        for ids in mine.values():
            others = sorted(one for one in ids if node_of(one) not in nodes)
            assert not others, f"{event.uid}/{event.name} has CPUs of node {nodes} and {others[0]} of another"


class DevicesReported(Guarantee):
    """Ours: what a node reports of devices, of an agent that says what it reports."""

    words = "devices are reported as their plugin lists them, and as ill, all of them, while none serves"

    def heard(self, _event: Event, /) -> None:
        """Looked at whenever something happens."""
        if not self.environment.only_ends:
            return
        plugins = self.environment.plugins
        for resource, (there, well) in plugins.reported.items():
            away_s = plugins.away_s(resource)
            is_known = resource in plugins.heard_s and away_s < _STAY_S
            assert there >= _ALL or not is_known, (
                f"{there} {resource} are reported, of {_ALL}, and its plugin is away for {away_s:.0f} s"
            )
            assert not well or away_s < _ILL_S, (
                f"{well} {resource} are reported to be well, and no plugin has served them for {away_s:.0f} s"
            )

    def settled(self) -> None:
        """As many are well as the plugin that is followed says."""
        plugins = self.environment.plugins
        for resource, (there, well) in plugins.reported.items():
            is_served = resource in plugins.heard_s and not plugins.away_s(resource)
            said = plugins.well(resource)
            assert not is_served or (there >= _ALL and well == said), (
                f"{well} of {there} {resource} are reported to be well, and its plugin says so of {said}"
            )


_ALL = NODES * OF_EACH_NODE
"""Devices of each resource."""
_ILL_S, _STAY_S = 5.0, 200.0
"""So long after its plugin left they are ill, at the latest; so long they are reported, at least."""
