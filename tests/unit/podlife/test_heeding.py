"""A runtime that says yes and does nothing is asked again after a back-off, and that is told."""

from __future__ import annotations

import pytest

from nodealloc.podfacts import LifeState
from nodealloc.podlife._heeding import NotHeededError
from nodealloc.podlife._record import Unheeded
from tests.unit.podlife_node import Node, pod

MOST_ASKS = 14
"""In ten minutes, with waits of 0.5 s, 1 s, 2 s and so on up to 122 s."""


ALSO = {"stop_container": ("stop_sandbox",), "remove_container": ("remove_sandbox",)}
"""Calls that would do the same: a sandbox takes its containers with it."""


def heed(node: Node, call: str) -> None:
    """From now on it does what it says."""
    for one in (call, *ALSO.get(call, ())):
        node.runtime.heed(one)
    node.after(130, step_s=0.5)


def asked(node: Node, call: str) -> int:
    """How often the runtime heard a call."""
    return sum(one.split()[0] == call for one in node.runtime.calls)


def lied_to(call: str, *, answer: object = None) -> tuple[Node, int]:
    """A pod runs and is to go, and one call does nothing; how often it was asked in ten minutes."""
    node = Node()
    if call not in {"start_container", "run_sandbox"}:
        node.lives.put(pod())
        node.after(1)
    for one in (call, *ALSO.get(call, ())):
        node.runtime.ignore(one, answer=answer)
    before = asked(node, call)
    node.lives.put(pod())
    node.lives.heard()
    if call not in {"start_container", "run_sandbox"}:
        node.lives.remove("u", grace_s=1.0)
    node.after(600, step_s=0.5)
    return node, asked(node, call) - before


def unheeded(node: Node) -> list[tuple[str, str, str]]:
    """What is told of it."""
    facts = node.lives.facts.get("u")
    assert facts is not None
    return [(one.verb, one.name, one.id) for one in facts.unheeded]


@pytest.mark.parametrize(
    ("call", "told"),
    [
        ("stop_sandbox", ("stop sandbox", "", "sandbox-1")),
        ("remove_container", ("remove", "", "container-2")),
        ("remove_sandbox", ("remove", "", "sandbox-1")),
        ("start_container", ("start", "app", "container-2")),
    ],
)
def test_what_is_not_done_is_asked_for_less_and_less_often_and_told(
    call: str, told: tuple[str, str, str], caplog: pytest.LogCaptureFixture
) -> None:
    """Which one, and since when; once it is done, nothing more is said of it and the pod goes on."""
    node, times = lied_to(call)
    assert sum(told[2] in line and "nothing came of it" in line for line in caplog.messages) == times - 1
    assert 3 < times <= MOST_ASKS
    assert told in unheeded(node)
    (failure,) = [one for one in node.lives.failures("u") if one.subject == told[2]]
    assert isinstance(failure.error, NotHeededError)
    assert failure.error.what.since_s < 1005.0
    assert told[2] in str(failure)
    heed(node, call)
    assert node.lives.failures("u") == ()
    if call == "start_container":
        assert (node.running(), unheeded(node)) == (["app#0"], [])
    else:
        assert node.lives.pods.get("u") is None


def test_a_container_that_is_said_to_have_ended_and_runs_is_stopped_and_killed_by_and_by() -> None:
    """Its signal comes in time, the second one too, and then neither without end."""
    node, times = lied_to("stop_container")
    assert 3 < times <= 2 * MOST_ASKS
    assert {("stop", "app", "container-2"), ("kill", "app", "container-2")} <= set(unheeded(node))
    first, second = node.stops[0][0], next(at for at, left_s in node.stops if left_s == 0.0)
    assert first == pytest.approx(1001.0, abs=1.0)
    assert second == pytest.approx(1002.5, abs=1.0)
    heed(node, "stop_container")
    assert node.lives.pods.get("u") is None


def test_a_sandbox_that_is_said_to_run_and_is_not_there_is_made_again_by_and_by() -> None:
    """Its number stays."""
    node, times = lied_to("run_sandbox", answer="nowhere")
    assert 3 < times <= MOST_ASKS
    assert unheeded(node) == [("run sandbox", "", "nowhere")]
    heed(node, "run_sandbox")
    assert (len(node.running()), node.record().sandbox_attempt, unheeded(node)) == (1, 0, [])


def test_a_shorter_grace_is_heard_at_once_though_the_longer_one_was_not() -> None:
    """Another deadline is another request: it waits for no back-off."""
    node = Node()
    node.lives.put(pod(grace_s=600))
    node.after(1)
    node.runtime.ignore("stop_container")
    node.runtime.ignore("stop_sandbox")
    node.lives.heard()
    node.lives.remove("u")
    node.after(200, step_s=0.5)
    before = len(node.stops)
    now_s = node.clock.monotonic_s()
    node.lives.remove("u", grace_s=1.0)
    node.after(1.0)
    assert len(node.stops) > before
    assert node.stops[before][0] <= now_s + 1.0


def test_nobody_else_waits_for_it() -> None:
    """A pod beside it starts, restarts and goes as ever."""
    node = Node()
    node.lives.put(pod())
    node.lives.put(pod("other"))
    node.after(1)
    ours, calls = node.id_of("app"), node.runtime
    stop, stop_sandbox = calls.stop_container, calls.stop_sandbox

    def only_others(container_id: str, grace_s: float, /) -> None:
        if container_id != ours:
            stop(container_id, grace_s)

    def only_their_sandboxes(sandbox_id: str, /) -> None:
        if sandbox_id not in [one.record.id for one in node.runtime.inspect("u").sandboxes]:
            stop_sandbox(sandbox_id)

    calls.stop_container = only_others  # type: ignore[method-assign]
    calls.stop_sandbox = only_their_sandboxes  # type: ignore[method-assign]
    node.lives.heard()
    node.lives.remove("u", grace_s=1.0)
    node.after(30)
    assert node.life() is LifeState.TERMINATING
    node.exit("app", 1, "other")
    node.after(2)
    assert node.running("other") == ["app#1"]
    node.lives.remove("other", grace_s=1.0)
    node.after(3)
    assert node.lives.pods.get("other") is None


def test_what_is_done_leaves_nothing_behind() -> None:
    """A pod that starts, restarts and runs has no request that waits for a listing."""
    node = Node()
    node.lives.put(pod())
    node.after(1)
    node.exit("app", 1)
    node.after(3)
    assert (dict(node.record().asked), node.lives.failures("u")) == ({}, ())


def test_what_is_told_names_the_container_and_the_moment() -> None:
    """In words for people."""
    said = str(NotHeededError(Unheeded(verb="stop", id="c-2", name="app", times=3, since_s=12.0)))
    assert said.startswith("stop of container app (c-2): the runtime said yes 3 times, first at 12 s")
