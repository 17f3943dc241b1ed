"""Checkers of what containers hold: each hears every event of the node, and remembers what it needs."""

from __future__ import annotations

from collections.abc import Iterator

from nodealloc.idset import CPUSet
from nodealloc.podspec import Pod, QosClass, qos_class
from nodealloc.runtime import ContainerRecord
from nodealloc.testing.simulation.node._environment import Environment
from nodealloc.testing.simulation.node._events import Event, What
from nodealloc.testing.simulation.node._guarantee import Guarantee

__all__ = ["Aligned", "BytesOnce", "CpusOnce", "FitsTheNode", "OwnCpus", "PlacementStands"]


_SEEN_S = 10.0
"""By then a container that somebody else started was listed."""


class OwnCpus(Guarantee):
    """One that knows who has CPUs of its own, and who runs where."""

    def own(self, uid: str, name: str, cpus: CPUSet) -> bool:
        """Whether a container asked for CPUs of its own, and was given so many.

        Under a policy that gives nobody CPUs of its own it has all that there are.
        """
        return any(_owns(pod, name, cpus) for pod in self.environment.forms.of(uid))

    def confined(self) -> Iterator[tuple[ContainerRecord, CPUSet]]:
        """What runs, and where it may run: on no CPUs at all means on any."""
        containers = self.environment.containers
        for one in containers.running:
            yield one.record, containers.cpus(one.record.id)


def _owns(pod: Pod, name: str, cpus: CPUSet) -> bool:
    container = next((one for one in pod.all_containers if one.name == name), None)
    if container is None or qos_class(pod) is not QosClass.GUARANTEED:
        return False
    return container.requests["cpu"].milli_value == 1000 * len(cpus)


class FitsTheNode(Guarantee):
    """Ours: admission."""

    words = "what runs has not requested more than the node gives out"

    def heard(self, event: Event, /) -> None:
        """All that runs fits, with what just started, or was given more."""
        if event.what not in {What.STARTED, What.RESIZED}:
            return
        containers, forms = self.environment.containers, self.environment.forms
        asked: dict[str, int] = {"cpu": 0, "memory": 0}
        for one in containers.running:
            record = one.record
            if record.id not in containers.late:
                given = forms.given(record.pod.uid, record.name, containers.limits(record.id))
                asked["cpu"] += given["cpu"].milli_value if "cpu" in given else 0
                asked["memory"] += given["memory"].value if "memory" in given else 0
        there = {
            "cpu": 1000 * (len(self.environment.machine.cpus) - len(self.environment.reserved)),
            "memory": sum(one.memory_bytes for one in self.environment.machine.numa_nodes),
        }
        for name, amount in asked.items():
            assert amount <= there[name], f"what runs requests {amount} of {name}, and there is {there[name]}"


class CpusOnce(OwnCpus):
    """Ours: no CPU twice."""

    words = "no CPU that one container has for itself is another's"

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self._came_s: dict[str, float] = {}
        self._sandboxes_s: dict[str, float] = {}

    def heard(self, event: Event, /) -> None:
        """Whoever runs with CPUs of its own shares none of them with another one that has its own."""
        if event.what in {What.STARTED, What.INTRUDED}:
            self._came_s[event.id] = event.at_s
        if event.what is What.SANDBOX_MADE:
            self._sandboxes_s.setdefault(event.uid, event.at_s)
        if event.what not in {What.STARTED, What.CONFINED}:
            return
        taken: dict[int, str] = {}
        for record, cpus in self.confined():
            for cpu in cpus if self.own(record.pod.uid, record.name, cpus) else ():
                other = taken.setdefault(cpu, record.id)
                assert other == record.id, f"CPU {cpu} is {other}'s and {record.id}'s, each for itself"
        if event.what is What.STARTED:
            self._alone(event)

    def _alone(self, event: Event) -> None:
        """Nobody of another pod is on CPUs of its own when it starts, and it is not on those of another."""
        confined = list(self.confined())
        mine = next(cpus for record, cpus in confined if record.id == event.id)
        is_own = self.own(event.uid, event.name, mine)
        made_s = self._sandboxes_s.get(event.uid, 0.0)
        for record, cpus in confined:
            if record.pod.uid == event.uid:
                continue
            # One that came before the pod was let in, and runs anywhere, was to leave its CPUs first.
            was_there = self.environment.only_ends and self._came_s.get(record.id, made_s) < made_s - _SEEN_S
            assert cpus or not is_own or not was_there, (
                f"{event.uid}/{event.name} starts on CPUs {mine} of its own while {record.id} runs anywhere"
            )
            if cpus.isdisjoint(mine):
                continue
            assert not is_own, (
                f"{event.uid}/{event.name} starts while {record.id} runs on its CPUs {cpus & mine}"
            )
            assert not self.own(record.pod.uid, record.name, cpus), (
                f"{event.uid}/{event.name} starts on CPUs {cpus & mine} that {record.id} has for itself"
            )

    def settled(self) -> None:
        """By now everybody else has left them, too."""
        owners = {
            cpu: record.id
            for record, cpus in self.confined()
            if self.own(record.pod.uid, record.name, cpus)
            for cpu in cpus
        }
        for record, cpus in self.confined():
            assert cpus or not owners, f"{record.pod.uid}/{record.name} is confined to no CPUs at all"
            for cpu in cpus:
                owner = owners.get(cpu, record.id)
                assert owner == record.id, (
                    f"{record.pod.uid}/{record.name} runs on CPU {cpu}, which {owner} has for itself"
                )
        sharing = {
            cpus: record
            for record, cpus in self.confined()
            if cpus and not self.own(record.pod.uid, record.name, cpus)
        }
        assert len(sharing) < 2 or not self.environment.is_aligned, (
            "containers that share CPUs run on different ones: "
            + ", ".join(f"{one.pod.uid}/{one.name} on {cpus}" for cpus, one in sharing.items())
        )


class PlacementStands(OwnCpus):
    """Guarantee 1."""

    words = "CPUs that a container has for itself stay its own, also when it is started again"

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self._cpus: dict[tuple[str, str], CPUSet] = {}

    def heard(self, event: Event, /) -> None:
        """A container with CPUs of its own is never confined to others."""
        if event.what is not What.CONFINED or not isinstance(event.value, CPUSet):
            return
        before = self._cpus.get((event.uid, event.name))
        if self.own(event.uid, event.name, event.value):
            self._cpus.setdefault((event.uid, event.name), event.value)
        assert before is None or before == event.value or self._has_ended(event), (
            f"{event.uid}/{event.name} moves from CPUs {before} to {event.value}"
        )

    def _has_ended(self, event: Event) -> bool:
        """Whether it does not run any more, of which the agent may not have heard."""
        return any(
            one.record.id == event.id and one.exit is not None for one in self.environment.containers.reports
        )


class Aligned(OwnCpus):
    """Ours: alignment, of an agent that says that it aligns."""

    words = "CPUs and memory that a container has for itself are of one NUMA node where they fit"

    def heard(self, event: Event, /) -> None:
        """As many as a node has are of one."""
        if (
            event.what is not What.CONFINED
            or not isinstance(event.value, CPUSet)
            or not self.environment.is_aligned
        ):
            return
        if not self.own(event.uid, event.name, event.value):
            return
        nodes = self.environment.machine.numa_nodes
        mine = [one for one in nodes if not one.cpus.isdisjoint(event.value)]
        fits = any(len(event.value) <= len(one.cpus - self.environment.reserved) for one in nodes)
        assert len(mine) == 1 or not fits, (
            f"{event.uid}/{event.name} gets CPUs {event.value} of {len(mine)} nodes"
        )
        mems = self.environment.containers.limits(event.id).mems
        assert mems is None or not fits or set(mems) == {mine[0].id}, (
            f"{event.uid}/{event.name} gets CPUs of node {mine[0].id} and memory of {mems}"
        )


class BytesOnce(Guarantee):
    """Ours: no byte twice."""

    words = (
        "containers that have memory of some NUMA nodes for themselves start on it, and fit there together"
    )

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self._pins = False

    def heard(self, event: Event, /) -> None:
        """What runs with memory of its own is not more than there is; no other agent gives any."""
        if event.what is not What.STARTED:
            return
        self._is_pinned(event)
        held: dict[frozenset[int], int] = {}
        for one in self.environment.containers.running:
            pod = self.pod(one.record.pod.uid)
            mems = self.environment.containers.limits(one.record.id).mems
            if pod is None or not mems or qos_class(pod) is not QosClass.GUARANTEED:
                continue
            limits = self.environment.containers.limits(one.record.id)
            amount = self.environment.forms.given(pod.uid, one.record.name, limits)["memory"].value
            held[frozenset(mems)] = held.get(frozenset(mems), 0) + amount
        self._pins = self._pins or bool(held)
        sizes = {one.id: one.memory_bytes for one in self.environment.machine.numa_nodes}
        for nodes in held:
            asked = sum(amount for mine, amount in held.items() if mine <= nodes)
            there = sum(sizes[node] for node in nodes)
            assert asked <= there, f"{asked} bytes are granted of {sorted(nodes)}, which have {there}"

    def _is_pinned(self, event: Event) -> None:
        """Who has memory of its own does not start on all that there is."""
        pod, mems = self.pod(event.uid), self.environment.containers.limits(event.id).mems
        is_own = (
            pod is not None and qos_class(pod) is QosClass.GUARANTEED and self.container(event) is not None
        )
        assert mems or not (is_own and self._pins), (
            f"{event.uid}/{event.name} starts, and on no memory of its own"
        )
