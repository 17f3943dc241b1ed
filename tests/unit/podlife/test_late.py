"""Calls that come back after their time, are asked to stop, or that nobody takes up: the pod goes on."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import ParamSpec, TypeVar

import pytest

from nodealloc.dsw_asw import Step
from nodealloc.podfacts import LifeState, PodIdentity
from nodealloc.podlife._images import FailedPulls
from nodealloc.podlife._stop_calls import StopCalls
from nodealloc.podspec import Container
from nodealloc.runtime import ContainerConfig, PullCredentials, RuntimeRefusedError, SandboxConfig
from nodealloc.testing.dsw_asw import ManualCancel
from tests.unit.podlife_node import HoldingExecutor, Node, pod

P = ParamSpec("P")
T = TypeVar("T")

PAST_ITS_TIME_S = 130.0
"""Longer than a call of the runtime may take."""


@pytest.mark.parametrize("verb", ["start", "run sandbox"])
def test_a_call_that_stopped_after_its_time_is_made_again(verb: str) -> None:
    """It was asked to stop when its time was over, and did: what it left behind is looked at, no more."""
    node = Node()
    node.executor.held.add(verb)
    node.lives.put(pod())
    node.after(PAST_ITS_TIME_S, step_s=5.0)
    assert (node.running(), node.record().doubt) == ([], None)
    node.executor.held.clear()
    node.executor.parked.pop()()
    node.after(60, step_s=1.0)
    assert node.running() == ["app#0"]


@pytest.mark.parametrize("verb", ["start", "run sandbox"])
def test_what_a_call_made_after_its_time_is_gone_on_with(verb: str) -> None:
    """It did not hear that it should stop: its sandbox, or container, is the pod's."""
    node = Node()
    node.executor.held.add(verb)
    node.lives.put(pod())
    node.after(PAST_ITS_TIME_S, step_s=5.0)
    node.executor.held.clear()
    node.executor.hanging[-1].cancel = ManualCancel()
    node.executor.parked.pop()()
    node.after(60, step_s=1.0)
    assert node.running() == ["app#0"]
    made = [one.split()[0] for one in node.calls()]
    assert [one for one in made if one in {"run_sandbox", "create_container"}] == made[:2]
    assert node.life() is LifeState.SYNCING


@pytest.mark.parametrize("verb", ["start", "run sandbox"])
def test_a_call_that_nobody_took_up_leaves_no_doubt(verb: str) -> None:
    """It did nothing, so nothing has to be looked at before it is made again."""
    node = Node()
    node.executor.forgotten.add(verb)
    node.lives.put(pod())
    node.after(PAST_ITS_TIME_S, step_s=5.0)
    assert (node.running(), node.record().doubt) == ([], 0)
    node.executor.forgotten.clear()
    node.after(300, step_s=5.0)
    assert node.running() == ["app#0"]


def test_a_container_that_never_ran_in_a_sandbox_that_died_holds_nothing_up() -> None:
    """It was made and not started when its sandbox ended: nothing is stopped, and the next one starts."""
    node = Node()
    node.executor.held.add("start")
    node.lives.put(pod())
    node.after(1)
    box = node.runtime.inspect("u").sandboxes[0].record.id
    node.runtime.create_container(
        box, ContainerConfig(name="app", image="busybox"), SandboxConfig(pod=PodIdentity.of(pod()))
    )
    node.runtime.stop_sandbox(box)
    node.watch.hurry()
    node.executor.held.clear()
    node.executor.parked.pop()()
    node.after(60, step_s=1.0)
    assert node.running() == ["app#1"]


def test_what_starts_once_its_pod_has_finished_is_ended() -> None:
    """A call of which nobody expected anything any more made it: it runs for nobody, and its sandbox ends."""
    node = Node()
    wanted = pod(active_deadline_seconds=60)
    node.lives.put(wanted)
    node.after(120, step_s=1.0)
    assert (node.running(), node.life()) == ([], LifeState.FINISHED)
    config = SandboxConfig(pod=PodIdentity.of(wanted), attempt=1)
    box = node.runtime.run_sandbox(config)
    node.runtime.start_container(
        node.runtime.create_container(box, ContainerConfig(name="app", image="busybox", attempt=1), config)
    )
    assert node.running() == ["app#1"]
    node.after(60, step_s=1.0)
    assert (node.running(), node.life()) == ([], LifeState.FINISHED)
    ready = [one.record.id for one in node.runtime.inspect("u").sandboxes if one.record.is_ready]
    assert ready == []


@pytest.mark.parametrize("grace_s", [0, 5])
def test_what_no_listing_has_shown_is_not_gone_when_a_call_to_end_it_hangs(grace_s: int) -> None:
    """It was made while the listing hung, and ended by a second call: its records are still to be removed."""
    node = Node()
    node.after(5)
    node.executor.held.add("list")
    node.after(5)
    wanted = pod(grace_s=grace_s)
    node.lives.put(wanted)
    node.after(5)
    assert node.running() == ["app#0"]
    node.executor.held.add("stop")
    node.lives.remove("u", grace_s=grace_s)
    node.after(PAST_ITS_TIME_S, step_s=1.0)
    assert node.running() == []
    node.after(PAST_ITS_TIME_S, step_s=1.0)
    assert node.record().pod is wanted
    node.executor.held.clear()
    while node.executor.parked:
        node.executor.parked.pop()()
    node.after(60, step_s=1.0)
    assert "u" not in node.lives.pods
    assert not node.runtime.inspect("u").sandboxes


class Hung:
    """Fetches of images and stops of containers that hang in the runtime, and fail in the end."""

    def __init__(self, node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun, self.goes_on = threading.Event(), threading.Event()
        self.thread = ThreadPoolExecutor(1)
        plain = HoldingExecutor.submit

        def submit(
            own: HoldingExecutor, call: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
        ) -> Future[T]:
            step: object = getattr(args[0], "step", None) if args else None
            if isinstance(step, Step) and step.verb in {"pull", "stop"}:
                return self.thread.submit(call, *args, **kwargs)
            return plain(own, call, *args, **kwargs)

        monkeypatch.setattr(HoldingExecutor, "submit", submit)
        monkeypatch.setattr(node.runtime, "pull_image", self.pull_image)
        monkeypatch.setattr(node.runtime, "stop_container", self.stop_container)

    def pull_image(self, name: str, credentials: PullCredentials | None = None, /) -> str:
        """See `Images.pull_image`."""
        raise self.refused(f"pull_image {name} {credentials}")

    def stop_container(self, container_id: str, grace_s: float, /) -> None:
        """See `Containers.stop_container`."""
        raise self.refused(f"stop_container {container_id} {grace_s}")

    def refused(self, call: str) -> Exception:
        """What it comes to, once it goes on."""
        self.begun.set()
        assert self.goes_on.wait(10)
        return RuntimeRefusedError(call, "UNKNOWN", "it was too long ago")


@pytest.mark.parametrize("call", ["pull", "stop"])
def test_a_call_that_fails_when_its_pod_was_forgotten_leaves_nothing_behind(
    call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody would ever take it away: each listing looked at what was kept of each such pod."""
    kept: list[object] = []
    for kind in (FailedPulls, StopCalls):
        made = kind.__init__

        def note(self: object, *args: object, made: Callable[..., None] = made, **named: object) -> None:
            kept.append(self)
            made(self, *args, **named)

        monkeypatch.setattr(kind, "__init__", note)
    node = Node()
    hung = Hung(node, monkeypatch)
    node.lives.put(pod(containers=[Container(name="app", image="far" if call == "pull" else "busybox")]))
    node.lives.heard()
    for _ in range(200):
        node.after(0.25)
        if hung.begun.wait(0.02):
            break
        if node.running():
            node.lives.remove("u")
    node.lives.remove("u")
    if call == "stop":
        node.exit("app")
    node.after(PAST_ITS_TIME_S, step_s=5.0)
    assert "u" not in node.lives.wanted
    hung.goes_on.set()
    hung.thread.shutdown()
    node.after(5)
    left = [value for one in kept for value in vars(one).values() if isinstance(value, dict) and value]
    listings = node.lives._listings
    assert (left, listings._awaited, "u" in listings.world) == ([], {}, False)
