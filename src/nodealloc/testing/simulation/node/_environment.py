"""Everything of a simulated node that outlives the agent; who acts there stands in `_users`."""

from __future__ import annotations

import datetime as dt
import math
import random
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import attrs

from nodealloc.idset import CPUSet
from nodealloc.machine import Machine
from nodealloc.podfacts import PodStatus
from nodealloc.podsources import Reading
from nodealloc.podspec import Pod
from nodealloc.testing.simulation._clock import SimulatedClock
from nodealloc.testing.simulation.node._behaviour import Behaviour
from nodealloc.testing.simulation.node._cgroups import SimulatedCgroups
from nodealloc.testing.simulation.node._containers import SimulatedContainers
from nodealloc.testing.simulation.node._events import Deletion, Event, Events, What
from nodealloc.testing.simulation.node._forms import Forms
from nodealloc.testing.simulation.node._manifests import Manifests
from nodealloc.testing.simulation.node._outages import Outages
from nodealloc.testing.simulation.node._plugins import SimulatedPlugins
from nodealloc.testing.simulation.node._pods import behaviour
from nodealloc.testing.simulation.node._reads import Reads
from nodealloc.testing.simulation.node._sources import SinkCalls
from nodealloc.testing.simulation.node._volumes import SimulatedVolumes

if TYPE_CHECKING:
    from nodealloc.testing.simulation.node._sources import SimulatedSource

__all__ = ["API", "FILE", "FILL", "REST", "Environment"]

API, FILE = "api", "file"
FILL = "fill-"
"""How uids of pods begin that ask for the whole of an empty node."""
REST = "rest-"
"""How uids of pods begin that ask for what others leave of a quiet one."""
_LOOPS_S = 0.5
"""So long after each of its starts a container in a crash loop ends."""


class Environment:
    """The world around the agent: what is true, and what becomes of it.

    Attributes:
        events: Everything that happens.
        containers: The runtime.
        outages: When it is away, and what it has lost then.
        cgroups: Who is limited where.
        volumes: What is mounted.
        plugins: Who serves devices.
        pods: What each source has, by source and uid.
        known: Every pod that there ever was, by uid; the form that was last wanted.
        twins: Names that two static pods had at a time.
        over: Uids of pods that had ended before the agent came, as their source says.
        manifests: Under which uids static pods run.
        forms: All forms in which it was.
        deletions: Pods that somebody wants gone.
        reads: What the agent has read.
        read: When it had read that, on the clock of events, by uid.
        told: The newest status that the sink took, by uid.
        wanted_s: When each pod was first wanted, by uid: on the clock of events, and on one that goes on
            while the machine sleeps.
        only_hangs: Whether calls hang and are slow, and nothing else goes wrong.
        only_ends: Whether nothing goes wrong now but that the agent is killed and power goes.
        well_since_s: Since when that is so, on the clock of events.
        reads_once: Whether what the agent has read is remembered, and no reading comes after a later one.
        is_steady: Whether neither the machine sleeps nor anything stalls all of it.
        only_tells: Whether besides that alone whoever is told goes wrong.
        sink: Calls of the sink.
        strays: How many calls an executor has begun so far for which nobody waits.
        files: What is on the disk of the agent's store, by path.
        is_calm: From now on nothing ends by itself.
        looping: The uid of a pod and the name of its container that ends soon after each start all the same.
        machine: What the agent gives out.
        reserved: CPUs that it does not.
        is_aligned: Whether the agent says that what a container has for itself is of one NUMA node
            where that is possible.
        forgotten: Uids of pods that an agent has called no more; None where nobody is held to that.
    """

    def __init__(self, clock: SimulatedClock, rng: random.Random) -> None:
        self.events: Events = Events()
        self.pods: dict[str, dict[str, Pod]] = {API: {}, FILE: {}}
        self.known: dict[str, Pod] = {}
        self.manifests: Manifests = Manifests()
        self.forms: Forms = Forms()
        self.deletions: dict[str, Deletion] = {}
        self.told: dict[str, PodStatus] = {}
        self.gone: set[str] = set()
        self.forgotten: set[str] | None = None
        self.over: set[str] = set()
        self.twins: set[str] = set()
        self.is_calm: bool = False
        self.looping: tuple[str, str] | None = None
        self.only_hangs: bool = False
        self.only_ends: bool = False
        self.well_since_s: float = 0.0
        self.only_tells: bool = False
        self.reads_once: bool = False
        self.is_steady: bool = False
        self.sink: SinkCalls = SinkCalls()
        self.strays: Callable[[], int] = int
        self.files: Callable[[], Mapping[str, bytes]] = dict
        self.machine: Machine = Machine(cpus=())
        self.is_aligned: bool = False
        self.reserved: CPUSet = CPUSet()
        self.reads: Reads = Reads(clock, self.events)
        self.read: dict[str, float] = self.reads.ends_s
        self._clock = clock
        self._rng = rng
        self.wanted_s: dict[str, tuple[float, float]] = {}
        self._sources: dict[str, str] = {}
        self._serving: Mapping[str, SimulatedSource] = {}
        self.volumes: SimulatedVolumes = SimulatedVolumes(clock, self.events)
        self.plugins: SimulatedPlugins = SimulatedPlugins(clock, self.events)
        self.containers: SimulatedContainers = SimulatedContainers(clock, self.events, self._behave)
        self.cgroups: SimulatedCgroups = SimulatedCgroups(clock, self.events, self.containers)
        self.outages: Outages = Outages(clock, self.events, self.containers)

    @property
    def room(self) -> tuple[int, int]:
        """What the node has for pods: thousandths of CPUs, and bytes of memory."""
        memory_bytes = sum(one.memory_bytes for one in self.machine.numa_nodes)
        return 1000 * (len(self.machine.cpus) - len(self.reserved)), memory_bytes

    @property
    def awake_s(self) -> float:
        """The same without those that the machine slept or was switched off: the clock of events."""
        return self._clock.awake_s

    @property
    def passed_s(self) -> float:
        """Virtual seconds since the beginning, asleep and switched off included."""
        return self._clock.passed_s

    def staying(self) -> list[Pod]:
        """Pods that are to go on: nobody asked for their end, and they have not ended."""
        every = [one for pods in self.pods.values() for one in pods.values()]
        return [one for one in every if one.uid not in self.deletions and not self.is_over(one.uid)]

    def is_over(self, uid: str) -> bool:
        """Whether somebody was told that it has ended, for good or not."""
        told = self.told.get(uid)
        return told is not None and told.is_terminal

    def is_static(self, uid: str) -> bool:
        """Whether a pod came from a manifest of this node."""
        return self._sources.get(uid) == FILE

    def has_twin(self, uid: str) -> bool:
        """Whether another static pod that its source has has the same name."""
        return len(self._of_its_name(uid)) > 1

    def is_held_back(self, uid: str) -> bool:
        """Whether another static pod of its name was there before it, and still is: that one stays."""
        return next(iter(self._of_its_name(uid)), uid) != uid

    def _of_its_name(self, uid: str) -> list[str]:
        """Static pods of the same name that their source has, as they came; none where it is no such pod."""
        pods = self.pods[FILE]
        return [one for one, pod in pods.items() if pod.name == pods[uid].name] if uid in pods else []

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

    def begin_well(self) -> None:
        """No fault strikes any more but that the agent is killed, and things end by themselves again."""
        self.is_calm = False
        self.only_ends = True
        self.well_since_s = self.awake_s

    def saw_faults(self, uid: str) -> bool:
        """Whether a pod was wanted while faults struck: who listens since then knows it in part."""
        return self.wanted_s.get(uid, (0.0, 0.0))[0] < self.well_since_s

    # What ports ask.

    def say_aligned(self) -> None:
        """The agent says that it aligns; from now on it is held to that."""
        self.is_aligned = True

    def forgetting(self) -> Callable[[str], object]:
        """What to call with each pod that is no more; from now on the agent is held to that."""
        self.forgotten = set() if self.forgotten is None else self.forgotten
        return self.forgotten.add

    def reading(self, source: str) -> tuple[Reading, Callable[[], object]]:
        """What a source answers, and what to call when the agent has that answer."""
        is_followed = source in self._serving and self._serving[source].is_followed
        heard = self.reads.reading(source, is_followed=is_followed)
        return Reading(pods=self.manifests.said(self.pods[source].values())), heard

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
            self.let_go(uid)

    # What becomes of pods.

    def want(self, source: str, pod: Pod) -> None:
        """A source has a pod that it did not have; a static one runs as `manifests` says."""
        pod = self.manifests.runs_as(pod) if source == FILE else pod
        self.pods[source][pod.uid] = self.known[pod.uid] = pod
        self.forms.wanted(pod)
        self._sources[pod.uid] = source
        if self.has_twin(pod.uid):
            self.twins.add(pod.name)
            self._happen(What.HELD_BACK, pod.uid, value=pod)
        else:
            self._is_wanted(pod)
        self.changed(source)

    def _is_wanted(self, pod: Pod) -> None:
        """A pod is to be here from now on: of two of a name the second one only once the first is not."""
        self.wanted_s[pod.uid] = self._clock.awake_s, self._clock.passed_s
        self._happen(What.WANTED, pod.uid, value=pod)

    def edit(self, pod: Pod, what: str) -> None:
        """A pod is wanted in another form; what is other is said in words."""
        source = next(name for name, pods in self.pods.items() if pod.uid in pods)
        self.pods[source][pod.uid] = self.known[pod.uid] = pod
        self.forms.wanted(pod)
        self._happen(What.EDITED, pod.uid, value=what)
        self.changed(source)

    def changed(self, source: str) -> None:
        """Something of a source is to be read."""
        self.reads.changed(source)
        serving = self._serving.get(source)
        if serving is not None:
            serving.changed()

    def delete(self, uid: str, grace_s: float) -> None:
        """As an API server has it: a shorter grace counts from when the deletion was first asked for.

        What waits for its name has nothing to end.
        """
        if self.is_held_back(uid):
            return
        before = self.deletions.get(uid)
        self.deletions[uid] = (
            Deletion(at_s=self._clock.awake_s, passed_s=self._clock.passed_s, grace_s=grace_s)
            if before is None
            else attrs.evolve(before, grace_s=grace_s)
        )
        self.reads.to_end(self._sources[uid], uid, grace_s)
        self._happen(What.DELETED, uid, value=grace_s)

    def ask_to_end(self, uid: str, grace: int) -> None:
        """Somebody asks the API server for a pod's end, in so many seconds."""
        self.delete(uid, float(grace))
        self.mark(API, uid, grace)
        self.changed(API)

    def mark(self, source: str, uid: str, grace: int) -> None:
        """Its source says so from now on."""
        at = dt.datetime.fromtimestamp(self._clock.moment().unix_s + grace, tz=dt.UTC)
        self.pods[source][uid] = self.known[uid] = attrs.evolve(
            self.known[uid],
            deletion_timestamp=at.strftime("%Y-%m-%dT%H:%M:%SZ"),
            deletion_grace_period_seconds=grace,
        )
        self._let_go_of_ended(uid)

    def _let_go_of_ended(self, uid: str) -> None:
        """What an API server's client does: a pod that is to go, and was told to have ended, goes."""
        if uid in self.deletions and self.is_over(uid):
            self.let_go(uid)

    def let_go(self, uid: str) -> None:
        """No source has it any more; another static pod of its name is wanted in its place."""
        line = self._of_its_name(uid)
        for source, pods in self.pods.items():
            if pods.pop(uid, None) is not None:
                self.reads.let_go(source, uid, float(self.known[uid].termination_grace_period_seconds))
                self._happen(What.UNWANTED, uid)
                self.changed(source)
        if line[:1] == [uid] and len(line) > 1:
            self._is_wanted(self.known[line[1]])

    def power_cut(self) -> None:
        """Every process is gone."""
        self._happen(What.POWER, "")
        self.outages.power_cut()
        self.volumes.power_cut()
        self.cgroups.power_cut()
        self.plugins.power_cut()

    def _behave(self, uid: str, name: str, _attempt: int) -> Behaviour:
        pod = self.known.get(uid)
        if pod is None:
            return Behaviour(runs_s=float("inf"), code=0, leaves_s=0.0)
        does = behaviour(self._rng, pod, name, is_calm=self.is_calm)
        return attrs.evolve(does, runs_s=_LOOPS_S, code=1) if (uid, name) == self.looping else does

    def _happen(self, what: What, uid: str, *, value: object = None) -> None:
        self.events.happen(Event(what=what, at_s=self._clock.awake_s, uid=uid, value=value))
