"""Everything of a simulated node that outlives the agent, and who acts there."""

from __future__ import annotations

import datetime as dt
import math
import random
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import attrs

from nodealloc.idset import CPUSet
from nodealloc.machine import Machine
from nodealloc.podfacts import PodIdentity, PodStatus
from nodealloc.podsources import Reading
from nodealloc.podspec import Pod
from nodealloc.runtime import ContainerConfig, SandboxConfig
from nodealloc.testing.simulation._clock import SimulatedClock
from nodealloc.testing.simulation.node._behaviour import IMAGE, Behaviour
from nodealloc.testing.simulation.node._containers import SimulatedContainers
from nodealloc.testing.simulation.node._deeds import Deed, Deeds, Deletion, What
from nodealloc.testing.simulation.node._plugins import OF_EACH_NODE, SimulatedPlugins
from nodealloc.testing.simulation.node._pods import (
    asked_again,
    behaviour,
    debugged,
    found_pod,
    random_pod,
    whole_pod,
)
from nodealloc.testing.simulation.node._reads import Reads
from nodealloc.testing.simulation.node._volumes import SimulatedVolumes

if TYPE_CHECKING:
    from nodealloc.testing.simulation.node._sources import SimulatedSource

__all__ = ["API", "FILE", "FILL", "Outside"]

_MOST_PODS = 8
API, FILE = "api", "file"
_CORRECTS_S = 10.0
FILL = "fill-"
"""How uids of pods begin that ask for the whole of an empty node."""


class Outside:
    """The world around the agent. It acts by lot, and keeps what is true.

    Attributes:
        deeds: Everything that happens.
        containers: The runtime.
        volumes: What is mounted.
        plugins: Who serves devices.
        pods: What each source has, by source and uid.
        known: Every pod that there ever was, by uid; the edition that was last wanted.
        deletions: Pods that somebody wants gone.
        reads: What the agent has read.
        read: When it had read that, on the clock of deeds, by uid.
        told: The newest status that the sink took, by uid.
        wanted_s: When each pod was first wanted, by uid: on the clock of deeds, and on one that goes on
            while the machine sleeps.
        device_pods: Of the pods so many ask for devices, from 0 to 1.
        hooks: Of main containers so many have a hook, from 0 to 1.
        only_hangs: Whether calls hang and are slow, and nothing else goes wrong.
        only_ends: Whether the agent is killed and power goes, and nothing else goes wrong.
        files: What is on the disk of the agent's store, by path.
        is_calm: From now on nothing ends by itself.
        machine: What the agent gives out.
        reserved: CPUs that it does not.
        is_aligned: Whether the agent says that what a container has for itself is of one NUMA node
            where that is possible.
    """

    def __init__(self, clock: SimulatedClock, rng: random.Random) -> None:
        self.deeds: Deeds = Deeds()
        self.pods: dict[str, dict[str, Pod]] = {API: {}, FILE: {}}
        self.known: dict[str, Pod] = {}
        self.deletions: dict[str, Deletion] = {}
        self.told: dict[str, PodStatus] = {}
        self.gone: set[str] = set()
        self.is_calm: bool = False
        self.device_pods: float = 0.0
        self.hooks: float = 0.3
        self.only_hangs: bool = False
        self.only_ends: bool = False
        self.files: Callable[[], Mapping[str, bytes]] = dict
        self.machine: Machine = Machine(cpus=())
        self.is_aligned: bool = False
        self.reserved: CPUSet = CPUSet()
        self.reads: Reads = Reads(clock, self.deeds)
        self.read: dict[str, float] = self.reads.ends_s
        self._clock = clock
        self._rng = rng
        self._number = 0
        self._images = 0
        self._edited = "", 0, 0.0
        self.wanted_s: dict[str, tuple[float, float]] = {}
        self._sources: dict[str, str] = {}
        self._found: set[str] = set()
        self._serving: Mapping[str, SimulatedSource] = {}
        self.volumes: SimulatedVolumes = SimulatedVolumes(clock, self.deeds)
        self.plugins: SimulatedPlugins = SimulatedPlugins(clock, self.deeds)
        self.containers: SimulatedContainers = SimulatedContainers(clock, self.deeds, self._behave)

    @property
    def awake_s(self) -> float:
        """The same without those that the machine slept or was switched off: the clock of deeds."""
        return self._clock.awake_s

    @property
    def passed_s(self) -> float:
        """Virtual seconds since the beginning, asleep and switched off included."""
        return self._clock.passed_s

    def overdue_s(self, uid: str, *, is_awake: bool = False) -> float:
        """For how long a pod has been there for longer than it may; negative before that.

        Args:
            uid: Which.
            is_awake: Without the time that the machine slept, which an agent may count or not.
        """
        pod, since_s = self.known.get(uid), self.wanted_s.get(uid)
        if pod is None or since_s is None or pod.active_deadline_seconds is None:
            return -math.inf
        passed_s = self.awake_s - since_s[0] if is_awake else self.passed_s - since_s[1]
        return passed_s - pod.active_deadline_seconds

    # What ports ask.

    def say_aligned(self) -> None:
        """The agent says that it aligns; from now on it is held to that."""
        self.is_aligned = True

    def reading(self, source: str) -> tuple[Reading, Callable[[], object]]:
        """What a source answers, and what to call when the agent has that answer."""
        is_followed = source in self._serving and self._serving[source].is_followed
        heard = self.reads.reading(source, is_followed=is_followed)
        return Reading(pods=tuple(self.pods[source].values())), heard

    def serve(self, sources: Mapping[str, SimulatedSource]) -> Mapping[str, SimulatedSource]:
        """From now on these tell of changes."""
        self._serving = sources
        return sources

    def hung(self, uid: str = "") -> None:
        """A call about a pod hangs or is slow; "" for one about all of them."""
        self._happen(What.HUNG, uid)

    def tell(self, uid: str, status: PodStatus) -> None:
        """The sink takes a status; an API server lets go of a deleted pod that has ended."""
        self.told[uid] = status
        self._happen(What.TOLD, uid, value=status)
        self._let_go_of_ended(uid)

    def say_gone(self, uid: str) -> None:
        """The sink is told that nothing is left of a pod."""
        self.gone.add(uid)
        self._happen(What.GONE, uid)
        if uid in self.deletions:
            self._let_go(uid)

    # What the outside does, by lot.

    def begin(self) -> None:
        """Before the agent's first life somebody else had pods here: they are wanted, and run."""
        for source in (API, FILE):
            self._number += 1
            uid = f"uid-{self._number}"
            pod = found_pod(uid)
            self._want(source, pod)
            self._found.add(uid)
            config = SandboxConfig(pod=PodIdentity.of(pod), hostname=pod.name)
            made = self.containers.run_sandbox(config)
            one = ContainerConfig(name=pod.containers[0].name, image=pod.containers[0].image)
            self.containers.start_container(self.containers.create_container(made, one, config))
        self.intrude(self._rng)

    def add(self, rng: random.Random) -> None:
        """Somebody wants another pod."""
        if sum(map(len, self.pods.values())) >= _MOST_PODS:
            return
        source = FILE if rng.random() < 0.3 else API
        self._want(source, self._random(rng, source))

    def delete(self, rng: random.Random) -> None:
        """Somebody asks for a pod to end; asked again, perhaps with a shorter grace."""
        uids = [(source, uid) for source, pods in self.pods.items() for uid in pods]
        if not uids:
            return
        again = [one for one in uids if one[1] in self.deletions]
        source, uid = rng.choice(again if again and rng.random() < 0.5 else uids)
        pod = self.pods[source][uid]
        if source == FILE:
            grace_s = float(pod.termination_grace_period_seconds)
            self._delete(uid, grace_s)
            self._let_go(uid)
            return
        before = self.deletions.get(uid)
        own = pod.termination_grace_period_seconds
        grace = rng.choice((1, 3, 10, 20, own, own))
        if before is not None and grace >= before.grace_s:
            return
        self._ask(source, uid, grace)

    def _ask(self, source: str, uid: str, grace: int) -> None:
        self._delete(uid, float(grace))
        self._mark(source, uid, grace)
        self._changed(source)

    def shorten(self, rng: random.Random) -> None:
        """Somebody is impatient: a pod that ends is to end sooner."""
        ending = [uid for uid in self.pods[API] if uid in self.deletions and self.deletions[uid].grace_s > 2]
        if ending:
            uid = rng.choice(ending)
            before_s = self.deletions[uid].grace_s
            self._ask(API, uid, int(rng.choice((1, before_s // 2, before_s - 1))))

    def force(self, rng: random.Random) -> None:
        """Somebody takes a pod out of the API without waiting for its end."""
        if uids := list(self.pods[API]):
            uid = rng.choice(uids)
            pod = self.known[uid]
            if uid not in self.deletions:
                self._delete(uid, float(pod.termination_grace_period_seconds))
            self._let_go(uid)

    def replace(self, rng: random.Random) -> None:
        """A static pod is edited: another pod under the same name."""
        # Of one that somebody else ran before, and that was never told of, nobody knows that it is static.
        uids = [uid for uid in self.pods[FILE] if uid not in self._found or uid in self.told]
        if uids:
            uid = rng.choice(uids)
            pod = self.known[uid]
            self._delete(uid, float(pod.termination_grace_period_seconds))
            self._let_go(uid)
            self._want(FILE, self._random(rng, FILE, pod.name))

    def edit(self, rng: random.Random) -> None:
        """A container of a pod is to run from another image."""
        if uid := self._to_edit(rng):
            self._edit(uid, rng.randrange(len(self.known[uid].containers)))

    def debug(self, rng: random.Random) -> None:
        """Somebody adds a container to a pod, to look at it from within."""
        if uid := self._to_edit(rng):
            self._number += 1
            self._put(debugged(self.known[uid], name := f"debug-{self._number}"), name)

    def _to_edit(self, rng: random.Random) -> str:
        uids = [uid for uid in self.pods[API] if uid not in self.deletions and uid not in self._found]
        return rng.choice(uids) if uids else ""

    def correct(self, _rng: random.Random) -> None:
        """What was edited a moment ago is edited once more."""
        uid, place, at_s = self._edited
        if uid in self.pods[API] and uid not in self.deletions and self.awake_s - at_s < _CORRECTS_S:
            self._edit(uid, place)

    def _edit(self, uid: str, place: int) -> None:
        self._edited = uid, place, self.awake_s
        pod = self.known[uid]
        self._images += 1
        other = attrs.evolve(pod.containers[place], image=f"{IMAGE.partition(':')[0]}:{self._images}")
        containers = (*pod.containers[:place], other, *pod.containers[place + 1 :])
        self.reads.edited(API, uid, other.name, other.image)
        self._put(attrs.evolve(pod, containers=containers), f"{other.name} from {other.image}")

    def _random(self, rng: random.Random, source: str, name: str = "") -> Pod:
        self._number += 1
        name, uid = name or f"pod-{self._number}", f"uid-{self._number}"
        return random_pod(
            rng, name, uid, device_pods=self.device_pods, hooks=self.hooks, is_critical=source == FILE
        )

    def _put(self, pod: Pod, what: str) -> None:
        self.pods[API][pod.uid] = self.known[pod.uid] = pod
        self._happen(What.EDITED, pod.uid, value=what)
        self._changed(API)

    def intrude(self, rng: random.Random) -> None:
        """Somebody starts a container by hand: in a pod that runs, or of a pod that nobody wants."""
        uids = [uid for uid in self.known if uid not in self.deletions and self.containers.running_of(uid)]
        self._number += 1
        if uids and rng.random() < 0.5:
            pod = PodIdentity.of(self.known[rng.choice(uids)])
        else:
            uid = f"stray-{self._number}"
            pod = PodIdentity(uid=uid, name=uid, namespace="sim")
        self.containers.intrude(pod, f"strange-{self._number}")

    def sicken(self, rng: random.Random) -> None:
        """A container is unwell: it does not get ready, or is not alive; or one gets well again."""
        probed = self._probed()
        if not probed:
            return
        container_id, command = rng.choice(probed)
        unwell = self.containers.unwell.get(container_id)
        if unwell:
            unwell.clear()
        else:
            self.containers.sicken(container_id, command)

    def power_cut(self) -> None:
        """Every process is gone."""
        self._happen(What.POWER, "")
        self.containers.power_cut()
        self.volumes.power_cut()
        self.plugins.power_cut()

    def calm(self) -> None:
        """From now on nothing ends by itself, but init containers; who is unwell stays so."""
        self.is_calm = True
        self.plugins.calm()
        for place, (container_id, command) in enumerate(self._probed()):
            if place % 2 == 0:
                self.containers.sicken(container_id, command)

    def empty(self) -> None:
        """Nobody wants any pod any more."""
        for source, pods in self.pods.items():
            for uid, pod in [one for one in pods.items() if one[0] not in self.deletions]:
                grace = pod.termination_grace_period_seconds
                self._delete(uid, float(grace))
                if source == FILE:
                    self._let_go(uid)
                    continue
                self._mark(source, uid, grace)
            self._changed(source)

    def fill(self) -> None:
        """Somebody wants, of each NUMA node, all the CPUs that are given out, and most of its memory."""
        for node in self.machine.numa_nodes:
            whole = whole_pod(
                f"{FILL}{node.id}",
                cpus=len(node.cpus - self.reserved),
                memory_bytes=node.memory_bytes // 4 * 3,
                devices=OF_EACH_NODE if self.plugins.are_asked else 0,
            )
            self._want(API, whole)

    def _probed(self) -> list[tuple[str, str]]:
        """Containers that run, with what they are asked again and again."""
        return [
            (one.record.id, command)
            for one in self.containers.running
            if one.record.pod.uid in self.known
            for command in asked_again(self.known[one.record.pod.uid], one.record.name)
        ]

    def _want(self, source: str, pod: Pod) -> None:
        self.pods[source][pod.uid] = self.known[pod.uid] = pod
        self.wanted_s[pod.uid] = self._clock.awake_s, self._clock.passed_s
        self._sources[pod.uid] = source
        self._happen(What.WANTED, pod.uid, value=pod)
        self._changed(source)

    def _changed(self, source: str) -> None:
        self.reads.changed(source)
        serving = self._serving.get(source)
        if serving is not None:
            serving.changed()

    def _delete(self, uid: str, grace_s: float) -> None:
        """As an API server has it: a shorter grace counts from when the deletion was first asked for."""
        before = self.deletions.get(uid)
        self.deletions[uid] = (
            Deletion(at_s=self._clock.awake_s, passed_s=self._clock.passed_s, grace_s=grace_s)
            if before is None
            else attrs.evolve(before, grace_s=grace_s)
        )
        self.reads.to_end(self._sources[uid], uid, grace_s)
        self._happen(What.DELETED, uid, value=grace_s)

    def _mark(self, source: str, uid: str, grace: int) -> None:
        at = dt.datetime.fromtimestamp(self._clock.moment().unix_s + grace, tz=dt.UTC)
        self.pods[source][uid] = self.known[uid] = attrs.evolve(
            self.known[uid],
            deletion_timestamp=at.strftime("%Y-%m-%dT%H:%M:%SZ"),
            deletion_grace_period_seconds=grace,
        )
        self._let_go_of_ended(uid)

    def _let_go_of_ended(self, uid: str) -> None:
        """What an API server's client does: a pod that is to go, and was told to have ended, goes."""
        phase = self.told[uid].phase if uid in self.told else None
        if uid in self.deletions and phase is not None and phase.is_terminal:
            self._let_go(uid)

    def _let_go(self, uid: str) -> None:
        for source, pods in self.pods.items():
            if pods.pop(uid, None) is not None:
                self.reads.let_go(source, uid, float(self.known[uid].termination_grace_period_seconds))
                self._happen(What.UNWANTED, uid)
                self._changed(source)

    def _behave(self, uid: str, name: str, _attempt: int) -> Behaviour:
        pod = self.known.get(uid)
        if pod is None:
            return Behaviour(runs_s=float("inf"), code=0, leaves_s=0.0)
        return behaviour(self._rng, pod, name, is_calm=self.is_calm)

    def _happen(self, what: What, uid: str, *, value: object = None) -> None:
        self.deeds.happen(Deed(what=what, at_s=self._clock.awake_s, uid=uid, value=value))
