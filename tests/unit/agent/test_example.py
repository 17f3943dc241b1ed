"""What the example agent says by itself."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import pytest

from examples.agent.build import say_outages, say_waits
from examples.agent.simulated import agent
from examples.agent.wiring import Place
from nodealloc.dsw_asw import InlineExecutor, World
from nodealloc.podfacts import LifeState
from nodealloc.podlife import PodFacts, PodLives, SecretCredentials
from nodealloc.podspec import Pod
from nodealloc.runtime import RuntimeWatch
from nodealloc.testing.dsw_asw import VirtualClock
from nodealloc.testing.runtime import FakeContainerRuntime
from nodealloc.testing.simulation.node import NodeSimulation
from nodealloc.testing.volume_sources import FakeConfigSource
from nodealloc.verdicts import NotYet
from nodealloc.volumes.plugins import PodObjects


def test_an_outage_of_the_runtime_is_said_once_and_its_end_too() -> None:
    """Also one from the start: nothing else tells why no pod comes to run."""
    runtime, clock = FakeContainerRuntime(), VirtualClock()
    said: list[str] = []
    watch = RuntimeWatch(runtime, executor=InlineExecutor(), clock=clock)
    say_outages(watch, said.append)

    def listed_twice() -> None:
        for _ in range(2):
            clock.advance(60.0)
            watch.run_until_quiet()

    runtime.go_away("/run/x.sock: nothing is there")
    listed_twice()
    runtime.restart()
    listed_twice()
    runtime.go_away("/run/x.sock: nobody listens there")
    listed_twice()
    (first, back, again) = said
    assert first.startswith("runtime: ")
    assert "/run/x.sock: nothing is there; it is asked again until it answers" in first
    assert back == "runtime: it answers again"
    assert "/run/x.sock: nobody listens there" in again


def test_what_a_pod_waits_for_is_said_once_it_lasts() -> None:
    """A volume that cannot be mounted was told nowhere: its pod was Pending, without a reason."""
    facts: World[str, PodFacts] = World("facts")
    said: list[str] = []
    say_waits(facts, said.append, lasts_s=0.05)

    def waits(message: str | None, *, then_s: float) -> None:
        found = None if message is None else NotYet(blocker="volumes", message=message)
        pod = Pod(uid="u", name="web", namespace="shop")
        facts.put("u", PodFacts(pod=pod, life=LifeState.SYNCING, waits_for=found), by="test")
        time.sleep(then_s)

    waits("not mounted yet: moment", then_s=0.0)
    waits(None, then_s=0.2)
    assert said == []  # as at the start of most pods
    waits("not mounted yet: data (no such folder)", then_s=0.2)
    waits("not mounted yet: data (no such folder)", then_s=0.2)
    waits(None, then_s=0.0)
    assert said == [
        "pod shop/web waits for volumes: not mounted yet: data (no such folder)",
        "pod shop/web: it waits no more",
    ]
    waits("not mounted yet: data (no such folder)", then_s=0.2)
    facts.drop("u", by="test")
    assert len(said) == 3  # of a pod that is gone nothing is said


@pytest.mark.parametrize("has_secrets", [True, False])
def test_images_are_fetched_as_the_secrets_of_pods_say(
    monkeypatch: pytest.MonkeyPatch, *, has_secrets: bool
) -> None:
    """Where there are secrets to ask for: whoever joins the agent to an API server has them."""
    given: list[object] = []

    def lives(*args: Any, **options: Any) -> PodLives:
        given.append(options.get("credentials"))
        return PodLives(*args, **options)

    objects = PodObjects(secrets=FakeConfigSource() if has_secrets else None)
    monkeypatch.setattr("examples.agent.wiring.PodLives", lives)
    monkeypatch.setattr("examples.agent.simulated.Place", partial(Place, objects=objects))
    with NodeSimulation(0, agent) as node:
        node.built()
        assert [isinstance(one, SecretCredentials) for one in given] == [has_secrets]
