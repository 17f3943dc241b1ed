"""Outages of a simulated runtime: when it is away, and what it tells once it is back."""

from __future__ import annotations

import random
from typing import Any

import pytest

from nodealloc.podfacts import Exited, ExitUnknown
from nodealloc.runtime import RunState
from nodealloc.testing.simulation import Chance
from nodealloc.testing.simulation.node import Event, What
from tests.unit.node.simulated_scene import Scene


class Chooses(random.Random):
    """Draws, and chooses one and the same thing."""

    def __init__(self, code: int | None) -> None:
        super().__init__(1)
        self._code = code

    def choice(self, _seq: object, /) -> Any:
        """What was given."""
        return self._code


class Outage(Scene):
    """A node with a pod that runs, and a runtime that goes away once."""

    def __init__(self, fault: str = "", code: int | None = None) -> None:
        super().__init__()
        self.heard: list[Event] = []
        self.chance = Chance(Chooses(code))
        self.wants()
        self.made = self.runs()
        self.environment.events.listen(self.heard.append)
        self.chance.arm("runtime goes away")
        assert self.environment.outages.is_away(self.chance)
        if fault:
            self.chance.arm(fault)
        self.clock.advance(4.9)
        assert self.environment.outages.is_away(self.chance)
        self.clock.advance(115.2)
        assert not self.environment.outages.is_away(self.chance)

    @property
    def whats(self) -> list[What]:
        """What was heard since the runtime went away, and how long that was."""
        return [one.what for one in self.heard]

    def state(self) -> RunState | None:
        """As it is listed and inspected."""
        (listed,) = self.environment.outages.listing().pods["u"].containers
        (seen,) = self.environment.outages.inspect("u", None).containers
        assert listed.state is seen.record.state
        return listed.state


def test_a_runtime_that_was_away_is_back_within_two_minutes() -> None:
    """Where nothing else strikes, all is as before."""
    scene = Outage()
    assert scene.whats == [What.AWAY, What.RESTARTED]
    assert scene.state() is RunState.RUNNING
    assert not scene.environment.outages.is_excused(scene.made)


@pytest.mark.parametrize(("code", "end"), [(3, Exited(code=3)), (None, ExitUnknown())])
def test_a_container_may_have_ended_meanwhile(code: int | None, end: Exited | ExitUnknown) -> None:
    """With a status, or with one that nobody knows."""
    scene = Outage("container ends meanwhile", code)
    assert [one.value for one in scene.heard if one.what is What.ENDED] == [end]
    assert scene.state() is RunState.EXITED


def test_a_sandbox_may_have_ended_meanwhile() -> None:
    """All that ran in it has ended; what is asked to end in it is excused."""
    scene = Outage("sandbox ends meanwhile")
    assert scene.whats == [What.AWAY, What.RESTARTED, What.ENDED, What.SANDBOX_ENDED]
    assert [one.record.is_ready for one in scene.environment.containers.sandboxes] == [False]
    assert scene.environment.outages.is_excused(scene.made)


def test_what_was_lost_is_forgotten() -> None:
    """A container that ran has ended, and nothing is left of it."""
    scene = Outage("container is lost meanwhile")
    assert scene.whats == [What.AWAY, What.RESTARTED, What.ENDED, What.FORGOT]
    assert not scene.environment.containers.reports


def test_a_record_of_what_ended_before_may_be_lost() -> None:
    """That of a container that runs stays."""
    scene = Outage("record is lost meanwhile")
    assert len(scene.environment.containers.reports) == 1
    scene.crashes(scene.made)
    scene.environment.outages.restart()
    assert not scene.environment.containers.reports


def test_a_state_is_unknown_for_a_while() -> None:
    """It is listed and inspected so, and runs all the same."""
    scene = Outage("state is unknown")
    assert scene.state() is RunState.UNKNOWN
    assert [one.record.id for one in scene.environment.containers.running] == [scene.made]
    assert scene.environment.outages.is_excused(scene.made)
    scene.clock.advance(60.1)
    assert scene.state() is RunState.RUNNING


def test_what_ends_while_its_state_is_unknown_has_ended() -> None:
    """Whoever looks then sees that."""
    scene = Outage("state is unknown")
    scene.crashes(scene.made)
    assert scene.state() is RunState.EXITED


def test_a_pod_may_have_two_sandboxes() -> None:
    """Both are ready; containers of both are excused."""
    scene = Outage("second sandbox is ready")
    boxes = [one.record for one in scene.environment.containers.sandboxes]
    assert [(one.attempt, one.is_ready) for one in boxes] == [(0, True), (1, True)]
    assert scene.environment.outages.is_excused(scene.made)


def test_what_somebody_else_started_is_left_alone() -> None:
    """Of it nothing is told."""
    scene = Scene()
    scene.wants()
    made = scene.runs()
    scene.environment.containers.strange.add(made)
    chance = Chance(random.Random(1), {"runtime goes away": 1.0, "container ends meanwhile": 1.0})
    assert scene.environment.outages.is_away(chance)
    scene.clock.advance(121.0)
    chance.stop()
    assert not scene.environment.outages.is_away(chance)
    assert len(scene.environment.containers.running) == 1


def test_a_runtime_refuses_for_a_spell() -> None:
    """It does so from when the fault strikes, for two minutes at most."""
    scene, chance = Scene(), Chance(random.Random(1))
    outages = scene.environment.outages
    assert not outages.refuses(chance)
    chance.arm("runtime refuses for a spell")
    assert outages.refuses(chance)
    scene.clock.advance(4.9)
    assert outages.refuses(chance)
    scene.clock.advance(115.2)
    assert not outages.refuses(chance)
