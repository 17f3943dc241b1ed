"""Bugs that are planted into an agent, at its ports."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from nodealloc.errors import ConfigurationError
from nodealloc.testing.simulation.node import _bugs as bugs
from nodealloc.testing.simulation.node._ports import NodePorts
from nodealloc.testing.simulation.node._simulation import Wiring

__all__ = ["PLANTS", "Plant", "spoiled"]


@attrs.frozen(kw_only=True)
class Plant:
    """A bug.

    Attributes:
        name: By which it is asked for.
        about: What the agent does wrong.
        spoil: The ports of an agent that has it. Is made anew for each node, so
            that it may remember from one life to the next.
    """

    name: str
    about: str
    spoil: Callable[[], Callable[[NodePorts], NodePorts]]


def spoiled(wiring: Wiring, name: str, /) -> Wiring:
    """The same agent with a bug; for one node.

    Raises:
        ConfigurationError: No bug is called so.
    """
    plant = next((one for one in PLANTS if one.name == name), None)
    if plant is None:
        raise ConfigurationError(f"no planted bug is called {name!r}; --plants lists them")
    spoil = plant.spoil()
    return lambda ports: wiring(spoil(ports))


PLANTS: tuple[Plant, ...] = (
    Plant(
        name="full-grace",
        about="every container gets 30 s to end, whatever is left",
        spoil=bugs.with_runtime(bugs.StopsWithFullGrace),
    ),
    Plant(
        name="grace-grows",
        about="asked again to end, a container gets more time",
        spoil=bugs.with_runtime(bugs.GraceGrows),
    ),
    Plant(
        name="lost-answer-made-again",
        about="a lost answer is a failure: the next attempt is made without a look",
        spoil=bugs.with_runtime(bugs.MakesAnother),
    ),
    Plant(
        name="doubled-start",
        about="after a start that timed out a second copy is started",
        spoil=bugs.with_runtime(bugs.StartsTwoCopies),
    ),
    Plant(
        name="unknown-is-zero",
        about="an exit that nobody knows is told as 0",
        spoil=bugs.with_runtime(bugs.UnknownIsZero),
    ),
    Plant(
        name="every-exit-is-137",
        about="exit codes are told as 137",
        spoil=bugs.with_runtime(bugs.CodesAreLost),
    ),
    Plant(
        name="failure-is-empty",
        about="a listing that fails counts as an empty one",
        spoil=bugs.with_runtime(bugs.FailureIsEmpty),
    ),
    Plant(
        name="forgotten-start",
        about="one start in ten is believed to have been done",
        spoil=bugs.with_runtime(bugs.ForgetsToStart),
    ),
    Plant(
        name="leaves-behind",
        about="some containers of an ending pod are never told to end",
        spoil=bugs.with_runtime(bugs.LeavesBehind),
    ),
    Plant(
        name="same-attempt",
        about="each instance of a container has number 0",
        spoil=bugs.with_runtime(bugs.SameAttempt),
    ),
    Plant(
        name="stops-all-at-start",
        about="a restarted agent begins by stopping what runs",
        spoil=bugs.with_runtime(bugs.NewSandboxes),
    ),
    Plant(
        name="swallows-failed-telling",
        about="what a sink did not take counts as told",
        spoil=bugs.with_sink(bugs.Swallows),
    ),
    Plant(
        name="always-ready",
        about="a pod is told to be ready while it ends",
        spoil=bugs.with_sink(bugs.AlwaysReady),
    ),
    Plant(
        name="readiness-reset",
        about="a restarted agent tells of each pod first that it is not ready",
        spoil=bugs.with_sink(bugs.ReadinessReset),
    ),
    Plant(
        name="counts-begin-anew",
        about="restart counts fall with a restart of the agent",
        spoil=bugs.with_sink(bugs.CountsPerLife),
    ),
    Plant(name="comes-back", about="an ended pod is told to run again", spoil=bugs.with_sink(bugs.ComesBack)),
    Plant(
        name="gone-too-early",
        about="a pod is told gone while it ends",
        spoil=bugs.with_sink(bugs.GoneTooEarly),
    ),
    Plant(
        name="ends-too-early",
        about="a pod is told to have ended when its first container has",
        spoil=bugs.with_sink(bugs.EndsTooEarly),
    ),
    Plant(
        name="no-reasons",
        about="refused pods are told to have failed, and not why",
        spoil=bugs.with_sink(bugs.NoReasons),
    ),
    Plant(
        name="believes-at-once",
        about="a source that does not answer counts as one without pods",
        spoil=lambda: bugs.believes,
    ),
    Plant(
        name="same-cpu",
        about="two containers get one CPU for themselves",
        spoil=bugs.with_cpusets(bugs.SameCpu),
    ),
    Plant(
        name="other-cpus",
        about="a restart of the agent moves running containers to other CPUs",
        spoil=bugs.with_cpusets(bugs.OtherCpus),
    ),
    Plant(
        name="remembers-nothing",
        about="nothing that was decided outlives the process",
        spoil=bugs.Amnesia,
    ),
)
"""All of them."""
