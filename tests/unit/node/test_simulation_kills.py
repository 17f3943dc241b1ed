"""When a simulated agent is killed, and what a checker asks of hooks that a kill cut short."""

from __future__ import annotations

import contextlib

import attrs
import pytest

from nodealloc.podspec import ExecAction, Lifecycle, LifecycleHandler, RestartPolicy
from nodealloc.testing.simulation.node import Event, Ran, What
from nodealloc.testing.simulation.node._behaviour import Behaviour
from nodealloc.testing.simulation.node._duties import HooksAreRun
from nodealloc.testing.simulation.node._kill_moments import KillMoments
from nodealloc.testing.simulation.node._pods import POST_START
from tests.unit.node.simulated_scene import APP, Scene

ASKED_TO_END = Event(what=What.SIGNALLED, at_s=0.0, uid="u", name="app", id="c", value=0.0)


def test_an_agent_is_killed_while_it_counts_what_it_remembers() -> None:
    """While something ends, waits for its next start, or has just had its hook run."""
    moments = KillMoments(Scene().environment)
    assert not moments.is_now
    moments.heard(ASKED_TO_END)
    assert moments.is_now
    moments.heard(attrs.evolve(ASKED_TO_END, what=What.ENDED))
    assert moments.is_now
    moments.heard(attrs.evolve(ASKED_TO_END, what=What.STARTED))
    assert not moments.is_now
    moments.heard(attrs.evolve(ASKED_TO_END, what=What.RAN, value=Ran(POST_START, "0")))
    assert moments.is_now


def test_whoever_asks_what_is_half_done_may_be_the_first_to_see_an_end() -> None:
    """A container ends as it is asked what else runs: seed-drawn lives stopped with an error of Python's."""
    scene = Scene()
    moments = KillMoments(scene.environment)
    scene.environment.events.listen(moments.heard)
    ends: dict[str, str] = {}
    for uid in ("u", "v"):
        scene.wants(uid, restart_policy=RestartPolicy.ON_FAILURE)
        ends[uid] = scene.runs(uid)
    scene.crashes(ends.pop("u"), 0)

    def running_of(uid: str) -> list[str]:
        while ends:
            scene.crashes(ends.popitem()[1], 0)
        return []

    scene.environment.containers.running_of = running_of  # type: ignore[method-assign]
    assert not moments.is_half_done
    assert not ends


def test_a_hook_that_failed_and_did_well_when_it_was_run_again_ends_nothing() -> None:
    """The agent was killed in it, and nobody had heard of its failure: seed 1934087 found it."""
    scene = Scene()
    scene.environment.only_ends = True
    hook = Lifecycle(post_start=LifecycleHandler(exec=ExecAction(command=(POST_START,))))
    scene.wants(container=attrs.evolve(APP, lifecycle=hook))
    for came_of_it, late in (("0", contextlib.nullcontext()), ("1", pytest.raises(AssertionError))):
        checker = HooksAreRun(scene.environment)
        ran = attrs.evolve(ASKED_TO_END, what=What.RAN, value=Ran(POST_START, "1"))
        checker.heard(ran)
        checker.heard(attrs.evolve(ran, at_s=10.0, value=Ran(POST_START, came_of_it)))
        with late:
            checker.heard(attrs.evolve(ASKED_TO_END, what=What.HUNG, at_s=100.0))


@pytest.mark.parametrize(("takes_s", "answers"), [(0.0, False), (12.0, False), (12.0, True)])
def test_a_hook_that_the_agent_was_killed_in_is_run_again(takes_s: float, *, answers: bool) -> None:
    """One that had ended before is not asked for, also where the call took no time (seed 1166579272)."""
    scene = Scene()
    scene.environment.only_ends = True
    hook = Lifecycle(post_start=LifecycleHandler(exec=ExecAction(command=(POST_START,))))
    scene.wants(container=attrs.evolve(APP, lifecycle=hook))
    scene.environment.events.listen(HooksAreRun(scene.environment).heard)
    made = scene.runs()
    scene.environment.containers._behaviours[made] = Behaviour(
        runs_s=100.0, code=0, leaves_s=1.0, hooks_s=((POST_START, takes_s),)
    )
    scene.happens(What.RAN, uid="u", name="app", id=made, value=Ran(POST_START, "0"))
    if answers:
        scene.environment.containers.answered.add((made, POST_START))
    scene.environment.reads.began_anew(1.0)
    scene.happens(What.KILLED)
    scene.clock.advance(100.0)
    is_owed = takes_s and not answers
    with pytest.raises(AssertionError, match="was not run") if is_owed else contextlib.nullcontext():
        scene.wants("v")
