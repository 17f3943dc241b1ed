"""One seed: a node with an agent, everything around it, and a checker for each guarantee."""

from __future__ import annotations

import inspect
import re
from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from random import Random
from typing import Self, cast

from nodealloc import _attrs as attrs
from nodealloc._arguments import check, wrong
from nodealloc._typed import typed_but
from nodealloc.dsw_asw import Driven, Reconciler
from nodealloc.idset import CPUSet
from nodealloc.machine import Machine, machine_from_text
from nodealloc.testing.simulation._chance import ORDINARY, FaultOccurrence
from nodealloc.testing.simulation._executor import STRAY
from nodealloc.testing.simulation._life import Life
from nodealloc.testing.simulation._report import Report, ViolationError
from nodealloc.testing.simulation._silence import silence
from nodealloc.testing.simulation._simulation import Simulation
from nodealloc.testing.simulation._storage import MachineDisk
from nodealloc.testing.simulation.node._classes import SeedClass, class_of
from nodealloc.testing.simulation.node._course import Course
from nodealloc.testing.simulation.node._editors import Editors
from nodealloc.testing.simulation.node._environment import API, FILE, Environment
from nodealloc.testing.simulation.node._events import Event, What
from nodealloc.testing.simulation.node._guarantee import Guarantee
from nodealloc.testing.simulation.node._guarantees import GUARANTEES
from nodealloc.testing.simulation.node._kill_moments import KillMoments
from nodealloc.testing.simulation.node._manifest_users import ManifestUsers
from nodealloc.testing.simulation.node._ports import NodePorts, SimulatedRuntime
from nodealloc.testing.simulation.node._sources import SimulatedSink, SimulatedSource
from nodealloc.testing.simulation.node._users import Users

__all__ = ["Line", "NodeSimulation", "Wiring"]

Wiring = Callable[[NodePorts], Driven]
"""From ports to the agent: a group of reconcilers, built anew for each life."""

_MACHINE = machine_from_text("2 sockets × 4 cores")
_RESERVED = CPUSet.of(0)
_PASS_AFTER_S = 0.05
_AWAY_S = (0.0, 0.0, 0.0, 1.0, 8.0, 60.0)
"""So long an agent that was killed may be away."""
_QUIET_S = 900.0
"""Virtual seconds after the last fault within which a node has to be as it was asked to be."""
_HANGS = re.compile(r" (hangs|is slow)$")
_ENDS = frozenset({"killed", "killed before a call", "killed after a call", "power lost"})
_STALLS = frozenset({"machine sleeps", "clock jumps"})
_FORGETS = frozenset({"disk fails", "disk is full", "executor doubles"})
_WORDS = re.compile(r"[\w-]+")
_TOLD = 60
"""Lines of a story that a violation tells."""
_KEPT = 4000
"""Lines of a story that are kept."""


_DRIVEN = "something that the engine drives, such as a Group"


def _checkers(guarantees: object) -> tuple[type[Guarantee], ...]:
    several = isinstance(guarantees, Iterable)
    found = tuple(cast("Iterable[object]", guarantees)) if several else (guarantees,)
    for one in found:
        if not inspect.isclass(one) or not issubclass(one, Guarantee):
            raise wrong("NodeSimulation: guarantees", one, "several classes that derive from Guarantee")
    return cast("tuple[type[Guarantee], ...]", found)


@attrs.frozen(kw_only=True)
class Line:
    """One line of a node's story.

    Attributes:
        at_s: Virtual seconds since the beginning.
        text: What happened.
        uid: The pod that it is about; "" for the whole node.
        is_fault: Whether it is a fault that struck.
    """

    at_s: float
    text: str
    uid: str = ""
    is_fault: bool = False

    def __str__(self) -> str:
        return f"{self.at_s:10.3f} s  {self.text}"


class NodeSimulation:
    """The life of one node, drawn from a seed; the same each time.

    Args:
        seed: What all is drawn from; also says which faults there are.
        wiring: Builds the agent; called again after each kill.
        seeds: Another class than the seed's own.
        guarantees: Which checkers listen.
        machine: What the agent gives out.
        only: No others than these faults strike; None for as the odds have it.

    Raises:
        ConfigurationError: An argument is of another kind.

    Attributes:
        environment: Everything that is not the agent.
        broken: The class of the guarantee that was broken; "" for none.
        about: The uid of the pod that broke it, or that is not as it should be; "" for none.
        simulation: Drives it.
        story: What happened, the newest last.
    """

    @typed_but("guarantees")
    def __init__(
        self,
        seed: int,
        wiring: Wiring,
        *,
        seeds: SeedClass | None = None,
        guarantees: Sequence[type[Guarantee]] = GUARANTEES,
        machine: Machine = _MACHINE,
        only: Collection[FaultOccurrence] | None = None,
    ) -> None:
        checkers = _checkers(guarantees)
        self.seeds: SeedClass = class_of(seed) if seeds is None else seeds
        self.story: deque[Line] = deque(maxlen=_KEPT)
        self.on_line: Callable[[Line], object] = lambda _line: None
        self._wiring = wiring
        self._machine = machine
        self._found: AssertionError | None = None
        self._unmet = ""
        self.broken: str = ""
        self.about: str = ""
        self.simulation: Simulation = Simulation(
            seed,
            self._build,
            odds=self.seeds.odds,
            only=only,
            pass_after_s=_PASS_AFTER_S,
            away_s=_AWAY_S,
        )
        chance, clock = self.simulation.chance, self.simulation.clock
        self.environment: Environment = Environment(clock, chance.rng)
        self.environment.machine = machine
        self.environment.reserved = _RESERVED
        self._users = Users(
            self.environment, chance.rng, device_pods=self.seeds.device_pods, hooks=self.seeds.hooks
        )
        self._manifests = ManifestUsers(self.environment, self._users)
        self._editors = Editors(self.environment, self._users.found)
        self.environment.only_hangs = all(_HANGS.search(one) or one in ORDINARY for one in self.seeds.odds)
        self.environment.only_ends = all(one in _ENDS or one in ORDINARY for one in self.seeds.odds)
        self.environment.only_tells = all(
            one in _ENDS or one in ORDINARY or one.startswith("sink ") for one in self.seeds.odds
        )
        self.environment.is_steady = _STALLS.isdisjoint(self.seeds.odds)
        self.environment.reads_once = _FORGETS.isdisjoint(self.seeds.odds)
        self.environment.strays = lambda: sum(chance.struck[one] for one in STRAY)
        self._kill_moments = KillMoments(self.environment)
        self._disk = MachineDisk(chance)
        self.environment.files = lambda: self._disk.disk.files()  # noqa: PLW0108 - it is replaced
        self._checkers = [guarantee(self.environment) for guarantee in checkers]
        self.environment.events.listen(self._heard)
        self.simulation.on_end(self._ended)
        self.simulation.check(self._check)
        for checker in self._checkers:
            self.simulation.check_settled(checker.settled)
        chance.on_strike = self._tell
        self._course = Course(
            self.simulation,
            self.environment,
            seeds=self.seeds,
            users=self._users,
            editors=self._editors,
            settle=self._settle,
        )
        self._users.begin()
        self._act()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.simulation.close()

    def run(self, *, at_most: int | None = None) -> Report:
        """Live for as long as the class of seeds says, settle, let all pods go, and fill the empty node.

        Args:
            at_most: End after so many operations, and do not settle; None for all of it.

        Raises:
            ViolationError: With the lines of the story that concern the pod in question.
        """
        try:
            with silence():
                if at_most is not None and at_most < self.seeds.operations:
                    return self.simulation.run(at_most)
                return self._course.live()
        except ViolationError as error:
            raise self._told(error) from None

    def built(self) -> object:
        """What the wiring returns at the beginning of a life; nothing of it runs yet."""
        return self._wiring(self._ports(self.simulation.life))

    def _settle(self, *, is_empty: bool = False) -> Report:
        until = partial(self._is_as_asked, is_empty=is_empty)
        return self.simulation.settle(within_s=_QUIET_S, until=until)

    def report(self) -> Report:
        """What happened so far."""
        return self.simulation.report()

    def _act(self) -> None:
        environment, users, editors = self.environment, self._users, self._editors
        manifests = self._manifests

        def act(every_s: float, call: Callable[[Random], object]) -> None:
            self.simulation.act(every_s, lambda rng: None if environment.is_calm else call(rng))

        act(6.0, users.add)
        act(8.0, users.load)
        if self.seeds.deletes:
            act(10.0, users.delete)
            act(4.0, users.shorten)
            act(3.0, users.roll)
            act(1.0, users.hasten)
            act(120.0, users.force)
            act(60.0, manifests.replace)
            act(15.0, manifests.put_back)
            act(25.0, manifests.twin)
            act(20.0, manifests.part)
            act(30.0, editors.edit)
            act(6.0, editors.correct)
            act(40.0, editors.part_with)
            act(60.0, editors.debug)
            act(40.0, editors.alter)
            act(25.0, editors.resize)
        if self.seeds.crashes:
            act(20.0, users.crash_one)
            act(25.0, users.sicken)
            act(90.0, users.intrude)
            if environment.only_ends:
                act(2.0, self._end_in_hook)
            act(60.0, users.revive)
        if "killed" in self.seeds.odds:
            act(4.0, self._kill_at_work)
            act(1.0, self._kill_in_hook)
        if "power lost" in self.seeds.odds:
            act(10.0, self._cut_at_work)
        every_s = self.seeds.plugins_act_s
        act(every_s, environment.plugins.act)
        act(4 * every_s, environment.plugins.replace)
        act(2 * every_s, environment.plugins.register_twice)

    def _end_in_hook(self, rng: Random) -> None:
        """A container ends while its hook runs, or somebody asks its pod to end."""
        if one := self._kill_moments.in_long_hook():
            self._users.end_in_hook(rng, one)

    def _kill_at_work(self, _rng: Random) -> None:
        """The agent is killed while what it remembers counts."""
        if self._kill_moments.is_now:
            self.simulation.chance.arm("killed")

    def _kill_in_hook(self, _rng: Random) -> None:
        """The agent is killed while a hook runs, so that nobody hears how it ended."""
        if self._kill_moments.is_in_hook:
            self.simulation.chance.arm("killed")

    def _cut_at_work(self, _rng: Random) -> None:
        """The power goes while it counts who was done before."""
        if self._kill_moments.is_half_done:
            self.simulation.chance.arm("power lost")

    def _build(self, life: Life) -> Driven:
        driven = check("a wiring's answer", self._wiring(self._ports(life)), Driven, _DRIVEN)
        if not self.seeds.resyncs:
            for one in driven.reconcilers():
                if isinstance(one, Reconciler):
                    one.forgo_resync()
        return driven

    def _ports(self, life: Life) -> NodePorts:
        environment, clock = self.environment, self.simulation.clock
        return NodePorts(
            life=life,
            now=clock.moment,
            machine=self._machine,
            reserved=_RESERVED,
            runtime=SimulatedRuntime(life, environment.containers, environment.outages),
            sources=environment.serve(
                {
                    name: SimulatedSource(life, partial(environment.reading, name), environment.hung)
                    for name in (API, FILE)
                }
            ),
            sink=SimulatedSink(
                life, environment.tell, environment.say_gone, environment.hung, environment.sink
            ),
            cgroups=environment.cgroups.serve(life),
            volumes=environment.volumes.serve(life),
            plugins=environment.plugins.serve(life),
            disk=self._disk.disk.path,
            files=self._disk.files(life),
            say_aligned=environment.say_aligned,
            forgetting=environment.forgetting,
        )

    def _ended(self, power_lost: bool) -> None:
        self._disk.ended(power_lost=power_lost, rng=self.simulation.chance.rng)
        self.environment.reads.began_anew(self.simulation.ended_s)
        if power_lost:
            self.environment.power_cut()
        self.environment.events.happen(Event(what=What.KILLED, at_s=self.simulation.clock.awake_s))

    def _heard(self, event: Event) -> None:
        self._kill_moments.heard(event)
        self._say(str(event), event.uid)
        for checker in self._checkers:
            try:
                checker.heard(event)
            except AssertionError as error:
                # Raised here it would be an error of the port; it is told at the next check.
                if self._found is None:
                    self._found, self.about = error, event.uid
                    self.broken = type(checker).__name__

    def _check(self) -> None:
        self.environment.containers.catch_up()
        if self._found is not None:
            raise self._found

    def _is_as_asked(self, *, is_empty: bool) -> bool:
        for checker in self._checkers:
            try:
                checker.settled()
                if is_empty:
                    checker.emptied()
            except AssertionError as error:
                self._unmet = str(error)
                if self._found is None:
                    words = set(_WORDS.findall(self._unmet))
                    self.broken = type(checker).__name__
                    self.about = next((uid for uid in self.environment.known if uid in words), "")
                return False
        self._unmet = ""
        if self._found is None:
            self.broken = self.about = ""
        return True

    def _tell(self, fault: str) -> None:
        self.simulation.tell(fault)
        self._say(fault, is_fault=True)

    def _say(self, text: str, uid: str = "", *, is_fault: bool = False) -> None:
        line = Line(at_s=self.simulation.clock.passed_s, text=text, uid=uid, is_fault=is_fault)
        self.story.append(line)
        self.on_line(line)

    def _told(self, error: ViolationError) -> ViolationError:
        """The same violation with the story of the pod that it is about, and of the whole node at its end."""
        ours = [str(line) for line in self.story if not line.uid or line.uid == self.about]
        what = f"{error.what}; {self._unmet}" if self._unmet else error.what
        return ViolationError(what, error.seed, error.at_s, tuple(ours[-_TOLD:]))
