"""What happens to a simulated node one thing after the other: its life, its quiet time, and its end."""

from __future__ import annotations

from typing import Protocol

from nodealloc.testing.simulation._report import Report
from nodealloc.testing.simulation._simulation import Simulation
from nodealloc.testing.simulation.node._classes import SeedClass
from nodealloc.testing.simulation.node._editors import Editors
from nodealloc.testing.simulation.node._environment import Environment
from nodealloc.testing.simulation.node._room_users import RoomUsers
from nodealloc.testing.simulation.node._users import Users

__all__ = ["Course"]

_EMPTYING = 60
"""So much happens while the last pods go, with faults, before all is left to settle."""
_WELL = 1200
"""So many calls are made in which no fault strikes, once all has settled."""
_MENDED_S = 60.0
"""So long nothing else happens once a container was edited that is in a crash loop."""
_WAITING_S = 180.0
"""How long edits wait that cannot come in: what has to start again meanwhile does."""
_COMES_S = 20.0
"""So long after it is wanted a pod may take until its cgroup is made, where nothing goes wrong."""
_KNOWN_S = 5.0
"""So long nobody comes before a critical pod does: who makes room for it was there before."""
_CLASS_FAILS = "class cgroup write fails"


class _Settles(Protocol):
    def __call__(self, *, is_empty: bool = False) -> Report: ...


class Course:
    """The stages of one life.

    Args:
        simulation: Drives it.
        environment: Everything that is not the agent.
        seeds: Which faults there are, and for how long the node lives.
        users: Who wants pods.
        editors: Who edits them.
        settle: Lets no fault strike until all is as it was asked to be.
    """

    def __init__(
        self,
        simulation: Simulation,
        environment: Environment,
        *,
        seeds: SeedClass,
        users: Users,
        editors: Editors,
        settle: _Settles,
    ) -> None:
        self._simulation, self._environment, self._seeds = simulation, environment, seeds
        self._users, self._editors, self._settle = users, editors, settle
        self._room = RoomUsers(environment, users.next_number)

    def live(self) -> Report:
        """Live for as long as the class of seeds says, settle, let all pods go, and fill the empty node."""
        simulation, environment, users = self._simulation, self._environment, self._users
        simulation.run(self._seeds.operations)
        self._calm()
        if "second sandbox is ready" in self._seeds.odds:
            environment.outages.double_some(simulation.chance.rng)
        self._settle()
        environment.plugins.register_once()
        if self._seeds.rests_s:
            self._rest()
        if _CLASS_FAILS in self._seeds.odds:
            self._come_unweighed()
        goes_wrong = not environment.only_ends
        if goes_wrong:
            self._live_well()
        if environment.is_aligned:
            self._take_what_is_left()
        environment.only_ends = not goes_wrong
        users.empty()
        simulation.go_on(_EMPTYING)
        self._settle(is_empty=True)
        if environment.is_aligned:
            self._room.fill()
        return self._settle()

    def _calm(self) -> None:
        """From now on nothing ends by itself, and nobody acts."""
        self._users.revive(self._simulation.chance.rng)
        self._users.calm()
        self._editors.calm()

    def _live_well(self) -> None:
        """All goes on as before, and no fault strikes but kills: what is owed in time is owed now."""
        self._environment.begin_well()
        self._simulation.live_on(_WELL)
        self._calm()
        self._settle()
        self._environment.plugins.register_once()

    def _take_what_is_left(self) -> None:
        """Pods that run are to have more; others make room; then somebody wants all that nobody asks for."""
        self._editors.grow()
        self._settle()
        self._editors.calm()
        self._settle()
        self._room.crowd()
        self._settle()
        self._simulation.rest(_KNOWN_S)
        if self._room.nudge():
            self._settle()
            self._room.go()
            self._room.crowd()
            self._settle()
            self._simulation.rest(_KNOWN_S)
        if self._room.press():
            self._settle()
            self._room.demand()
            self._settle()
            self._room.go()
            self._settle()
        self._room.take_rest()
        self._settle()

    def _rest(self) -> None:
        """Little happens for long: one container is in a crash loop; then edits come that nobody can make."""
        users, editors, rest = self._users, self._editors, self._simulation.rest
        users.begin_loop()
        rest(self._seeds.rests_s)
        editors.mend()
        users.end_loop()
        rest(_MENDED_S)
        editors.ask_too_much()
        users.crash_all()
        rest(_WAITING_S)
        editors.calm()
        self._settle()
        users.crash_all()
        self._settle()
        editors.misdirect()
        users.crash_all()
        rest(_WAITING_S)
        editors.redirect()
        self._settle()
        self._room.come()
        self._settle()
        self._room.go()
        self._settle()

    def _come_unweighed(self) -> None:
        """One pod more comes, and the weight of its class cannot be written at first; nothing else does."""
        self._room.come()
        self._simulation.chance.arm(_CLASS_FAILS)
        self._simulation.rest(_COMES_S)
        self._settle()
        self._room.go()
        self._settle()
