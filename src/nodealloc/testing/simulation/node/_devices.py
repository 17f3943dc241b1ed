"""Checkers of devices: each hears every deed of the node, and remembers what it needs."""

from __future__ import annotations

import math

from nodealloc.podspec import QosClass, qos_class
from nodealloc.testing.simulation.node._deeds import Deed, What
from nodealloc.testing.simulation.node._guarantee import Guarantee
from nodealloc.testing.simulation.node._outside import Outside
from nodealloc.testing.simulation.node._plugins import RESOURCES, node_of

__all__ = ["DevicesAligned", "DevicesAreWell", "DevicesOnce", "DevicesStand", "PluginsAsked"]


class DevicesOnce(Guarantee):
    """Ours: no device twice, and as many as were asked for."""

    words = "no device that one container has is another's, and each has as many as it asked for"

    def heard(self, deed: Deed, /) -> None:
        """Whoever starts has its devices alone."""
        container = self.container(deed) if deed.what is What.STARTED else None
        if container is None or not self.outside.plugins.are_asked:
            return
        devices = self.outside.containers.devices
        mine = devices.get(deed.id, {})
        for resource in RESOURCES:
            asked = container.requests[resource].value if resource in container.requests else 0
            had = len(mine.get(resource, ()))
            assert asked == had, f"{deed.uid}/{deed.name} asked for {asked} {resource} and was given {had}"
        if mine:
            for one in self.outside.containers.running:
                other = devices.get(one.record.id, {}) if one.record.id != deed.id else {}
                for resource, ids in mine.items():
                    both = sorted(set(ids) & set(other.get(resource, ())))
                    assert not both, f"{both[0]} is {one.record.id}'s and {deed.id}'s, each for itself"


class DevicesStand(Guarantee):
    """Guarantee 1."""

    words = "devices that a container has stay its own, also when it is started again"

    def __init__(self, outside: Outside) -> None:
        super().__init__(outside)
        self._had: dict[tuple[str, str], dict[str, tuple[str, ...]]] = {}

    def heard(self, deed: Deed, /) -> None:
        """A container is given what it had."""
        if deed.what is What.GIVEN:
            now = dict(self.outside.containers.devices[deed.id])
            before = self._had.setdefault((deed.uid, deed.name), now)
            assert all(before[one] == ids for one, ids in now.items() if one in before), (
                f"{deed.uid}/{deed.name} had {before} and is given {now}"
            )
            before |= now


class DevicesAreWell(Guarantee):
    """Ours: what health is told for."""

    words = "a device that was told to be ill before somebody wanted a pod is not given to it"

    def __init__(self, outside: Outside) -> None:
        super().__init__(outside)
        self._had: set[tuple[str, str]] = set()

    def heard(self, deed: Deed, /) -> None:
        """What a container has it keeps; what is new is well."""
        if deed.what is not What.GIVEN or not isinstance(deed.value, str):
            return
        wanted_s, ill_s = self.outside.wanted_s[deed.uid][0], self.outside.plugins.ill_s
        for one in deed.value.split(",") if (deed.uid, deed.value) not in self._had else ():
            assert ill_s.get(one, math.inf) >= wanted_s, (
                f"{deed.uid}/{deed.name} is given {one}, which was ill {wanted_s - ill_s[one]:.1f} s before "
                "somebody wanted the pod, and ever since"
            )
        self._had.add((deed.uid, deed.value))


class PluginsAsked(Guarantee):
    """Ours: a container is made after its plugins did their part."""

    words = (
        "plugins allocate what a container is given, and prepare it before each start where they want that"
    )

    def __init__(self, outside: Outside) -> None:
        super().__init__(outside)
        self._allocated: set[tuple[str, ...]] = set()
        self._prepared: set[tuple[str, ...]] = set()

    def heard(self, deed: Deed, /) -> None:
        """What is given was allocated; what wants to be prepared was, since it was given last."""
        ids = tuple(deed.value.split(",")) if isinstance(deed.value, str) else ()
        if deed.what is What.ALLOCATED:
            self._allocated.add(ids)
        if deed.what is What.PREPARED:
            self._prepared.add(ids)
        if deed.what is What.GIVEN:
            assert ids in self._allocated, f"{deed.uid}/{deed.name} is given {ids}, which nobody allocated"
            # As with a kubelet: after its start an agent knows what plugins want when they register again,
            # and a container that it had asked for by then is made without that.
            asked_s = deed.at_s if deed.asked_s is None else deed.asked_s
            heard_s = self.outside.plugins.heard_s
            if any(
                mine == ids
                and RESOURCES[resource].pre_start_required
                and heard_s.get(resource, math.inf) < asked_s
                for resource, mine in self.outside.containers.devices[deed.id].items()
            ):
                assert ids in self._prepared, f"{deed.uid}/{deed.name} is given {ids}, which nobody prepared"
                self._prepared.discard(ids)


class DevicesAligned(Guarantee):
    """Ours: alignment, of an agent that says that it aligns."""

    words = "devices are of the NUMA node of the CPUs that their container has for itself, where they fit"

    def heard(self, deed: Deed, /) -> None:
        """Who has CPUs of its own has its devices beside them."""
        if deed.what is not What.STARTED or not self.outside.is_aligned:
            return
        pod, container = self.pod(deed.uid), self.container(deed)
        mine = self.outside.containers.devices.get(deed.id)
        if pod is None or container is None or not mine or qos_class(pod) is not QosClass.GUARANTEED:
            return
        cpus = self.outside.containers.cpus(deed.id)
        nodes = {one.id for one in self.outside.machine.numa_nodes if not one.cpus.isdisjoint(cpus)}
        if len(cpus) * 1000 != container.requests["cpu"].milli_value or len(nodes) > 1:
            return
        for ids in mine.values():
            others = sorted(one for one in ids if node_of(one) not in nodes)
            assert not others, f"{deed.uid}/{deed.name} has CPUs of node {nodes} and {others[0]} of another"
