"""What the example agent says by itself."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from examples.agent.__main__ import _runtime as runtime_of
from examples.agent.build import say_outages
from examples.agent.simulated import agent
from examples.agent.wiring import Place
from nodealloc.cgroups import Layout
from nodealloc.cri import CriRuntime
from nodealloc.dsw_asw import InlineExecutor
from nodealloc.kubeconfig import kubelet_config
from nodealloc.podlife import PodLives, SecretCredentials
from nodealloc.runtime import RuntimeWatch
from nodealloc.testing.dsw_asw import VirtualClock
from nodealloc.testing.runtime import FakeContainerRuntime
from nodealloc.testing.simulation.node import NodeSimulation
from nodealloc.testing.volume_sources import FakeConfigSource
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


def test_the_runtime_has_as_long_as_the_configuration_says(tmp_path: Path) -> None:
    """A call that takes five minutes where ten are given is not taken for lost after four."""
    config = kubelet_config({"runtimeRequestTimeout": "10m"})
    chosen = argparse.Namespace(runtime="containerd")
    made, _ = runtime_of(chosen, config, tmp_path, Layout(mounts=()))
    assert isinstance(made, CriRuntime)
    assert (made._deadlines.look_s, made._deadlines.change_s) == (600.0, 1200.0)
    made.close()
