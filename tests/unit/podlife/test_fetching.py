"""Images of several pods: looked for side by side, fetched in the node's turn, and for one form of a pod."""

from __future__ import annotations

from collections.abc import Mapping

import attrs
import pytest

from nodealloc.cri import CriDeadlines
from nodealloc.podlife import LifePolicy, SandboxConfigError
from nodealloc.podspec import Container, Pod, PullPolicy
from nodealloc.runtime import (
    PullCredentials,
    RuntimeRefusedError,
    RuntimeUnavailableError,
    SandboxConfig,
)
from tests.unit.podlife_node import Node, pod

APP = Container(name="app", image="busybox")


def let_go(node: Node) -> None:
    """What hangs goes on, and what follows from it happens."""
    parked, node.executor.parked = node.executor.parked, []
    for call in parked:
        call()
    node.after(1)


def pulls(node: Node) -> list[str]:
    """What was asked of the registry."""
    return [one for one in node.runtime.calls if one.startswith("pull_image")]


def wants(node: Node, *images: str, policy: PullPolicy | None = None) -> None:
    """One pod for each image; their fetching hangs."""
    node.executor.held = {"pull"}
    for place, image in enumerate(images):
        app = attrs.evolve(APP, image=image, image_pull_policy=policy)
        node.lives.put(pod(f"u{place}", containers=[app]))
    node.after(1)


@pytest.mark.parametrize("at_once", [1, 2, None])
def test_one_image_is_fetched_for_one_pod_and_nobody_waits_in_a_thread(at_once: int | None) -> None:
    """Both look for it; while one fetches it the other has no call under way, and finds it then."""
    node = Node(policy=LifePolicy(pulls_at_once=at_once))
    wants(node, "other:1", "other:1")
    assert len(node.executor.parked) == 2
    let_go(node)
    assert len(node.executor.parked) == 1
    let_go(node)
    let_go(node)
    assert pulls(node) == ["pull_image other:1"]
    assert [node.running(uid) for uid in ("u0", "u1")] == [["app#0"], ["app#0"]]


@pytest.mark.parametrize(("at_once", "side_by_side"), [(1, 1), (None, 2)])
def test_images_are_fetched_as_many_at_a_time_as_the_policy_says(
    at_once: int | None, side_by_side: int
) -> None:
    """The others wait in no thread; one whose image is there waits for nobody."""
    node = Node(policy=LifePolicy(pulls_at_once=at_once))
    wants(node, "one:1", "two:1", "busybox")
    let_go(node)
    assert len(node.executor.parked) == side_by_side
    assert node.running("u2") == ["app#0"]
    let_go(node)
    let_go(node)
    assert sorted(pulls(node)) == ["pull_image one:1", "pull_image two:1"]
    assert [node.running(uid) for uid in ("u0", "u1")] == [["app#0"], ["app#0"]]


def test_an_image_is_looked_for_while_its_sandbox_is_made() -> None:
    """When that is there, nothing but the start is left; what is not on the node is fetched then."""
    node = Node()
    node.executor.held = {"run sandbox", "pull"}
    for uid, image in (("u0", "busybox"), ("u1", "other:1"), ("u2", "busybox")):
        policy = PullPolicy.ALWAYS if uid == "u2" else None
        node.lives.put(pod(uid, containers=[attrs.evolve(APP, image=image, image_pull_policy=policy)]))
    node.after(1)
    assert len(node.executor.parked) == 3 + 2
    let_go(node)
    assert node.running("u0") == ["app#0"]
    assert pulls(node) == []
    let_go(node)
    let_go(node)
    assert sorted(pulls(node)) == ["pull_image busybox:latest", "pull_image other:1"]
    assert [node.running(uid) for uid in ("u1", "u2")] == [["app#0"], ["app#0"]]


def test_an_image_that_is_always_fetched_is_not_looked_for() -> None:
    """One pod after the other asks the registry."""
    node = Node()
    wants(node, "busybox", "busybox", policy=PullPolicy.ALWAYS)
    assert len(node.executor.parked) == 1
    let_go(node)
    let_go(node)
    assert pulls(node) == ["pull_image busybox:latest"] * 2


@pytest.mark.parametrize("is_fetched", [False, True])
def test_an_image_that_was_fetched_for_an_older_form_of_a_pod_is_not_used(is_fetched: bool) -> None:
    """The container is edited while its image is being fetched, or before it was started from it."""
    node = Node()
    node.executor.held = {"pull", "start"}
    node.lives.put(pod(containers=[attrs.evolve(APP, image="old:1")]))
    node.after(1)
    let_go(node)
    if is_fetched:
        parked, node.executor.parked = node.executor.parked, []
        for call in parked:
            call()
    node.lives.put(pod(containers=[attrs.evolve(APP, image="new:1")]))
    node.after(1)
    for _ in range(8):
        let_go(node)
        node.after(10)
    runs = [one.record.image for one in node.containers() if one.record.name == "app"]
    assert node.running()
    assert runs[-1] == "sha256:new:1"


def test_the_next_instance_is_fetched_for_though_nobody_heard_of_the_last_start() -> None:
    """Its answer was lost: it ran all the same, from what was fetched for it."""
    node = Node()
    plain = node.runtime.start_container

    def start(container_id: str, /) -> None:
        node.runtime.start_container = plain  # type: ignore[method-assign]
        plain(container_id)
        raise RuntimeUnavailableError("StartContainer", "the answer is lost")

    node.runtime.start_container = start  # type: ignore[method-assign]
    node.lives.put(pod(containers=[attrs.evolve(APP, image_pull_policy=PullPolicy.ALWAYS)]))
    node.after(5)
    assert (node.running(), len(pulls(node))) == (["app#0"], 1)
    node.exit("app", 1)
    node.after(60)
    assert (node.running(), len(pulls(node))) == (["app#1"], 2)


def test_an_image_of_many_gigabytes_takes_its_time() -> None:
    """A fetch that is cut short begins anew, so that one that takes longer each time never ends."""
    assert LifePolicy().pull_s > CriDeadlines().pull_s >= 4 * 3600
    node = Node()
    wants(node, "large:1")
    let_go(node)
    node.after(4 * 3600, step_s=60)
    assert node.lives.failures("u0") == ()
    let_go(node)
    assert pulls(node) == ["pull_image large:1"]
    assert node.running("u0") == ["app#0"]


def test_an_image_is_fetched_for_the_sandbox_of_its_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    """By which a runtime may choose where it is unpacked; where that cannot be said it is fetched so."""
    node, asked = Node(), list[SandboxConfig | None]()
    fetch = node.runtime.pull_image

    def pull(
        name: str, credentials: PullCredentials | None = None, sandbox: SandboxConfig | None = None, /
    ) -> str:
        asked.append(sandbox)
        return fetch(name, credentials, sandbox)

    monkeypatch.setattr(node.runtime, "pull_image", pull)
    node.lives.put(pod(containers=[Container(name="app", image="far")]))
    node.after(5)
    assert node.running() == ["app#0"]
    (sandbox,) = asked
    assert sandbox is not None
    assert (sandbox.pod.uid, sandbox.attempt, sandbox.hostname) == ("u", 0, "web-u")

    configured, made = node.configuring.sandbox, list[int]()

    def once(of: Pod, attempt: int, provided: Mapping[str, object]) -> SandboxConfig:
        made.append(attempt)
        if len(made) > 1:
            raise SandboxConfigError("its name servers cannot be read any more")
        return configured(of, attempt, provided)

    monkeypatch.setattr(node.configuring, "sandbox", once)
    node.lives.put(pod("v", containers=[Container(name="app", image="farther")]))
    node.after(5)
    assert asked[1:] == [None]


@pytest.mark.parametrize("images", [("far:1", "other:1"), ("far:1", "far:1")])
@pytest.mark.parametrize("at_once", [1, None])
def test_two_images_of_a_pod_that_cannot_be_had_wait_both(
    monkeypatch: pytest.MonkeyPatch, images: tuple[str, str], at_once: int | None
) -> None:
    """They share a turn: each failure hid the other, and both were asked for at once, without end."""
    node = Node(policy=LifePolicy(pulls_at_once=at_once))
    asked: list[float] = []

    def pull(*_: object) -> str:
        asked.append(node.clock.monotonic_s() - 1000)
        if len(asked) > 100:
            pytest.fail("they are asked for without end")
        raise RuntimeRefusedError("PullImage", "UNKNOWN", "503")

    monkeypatch.setattr(node.runtime, "pull_image", pull)
    names = zip(("one", "two"), images, strict=True)
    node.lives.put(pod(containers=[Container(name=name, image=image) for name, image in names]))
    node.after(35)
    assert asked == [0.0, 0.0, 10.0, 10.0, 30.0, 30.0]


def test_containers_of_one_image_wait_for_it_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each that failed doubled the delay of all: after half a minute of an outage they waited for minutes."""
    node = Node(policy=LifePolicy(pulls_at_once=1))
    plain = node.runtime.pull_image

    def pull(name: str, *_: object) -> str:
        if node.clock.monotonic_s() < 1025:
            raise RuntimeRefusedError("PullImage", "UNKNOWN", "503")
        return plain(name)

    monkeypatch.setattr(node.runtime, "pull_image", pull)
    names = ("one", "two", "three")
    node.lives.put(pod(containers=[Container(name=name, image="far:1") for name in names]))
    node.after(35)
    assert sorted(node.running()) == ["one#0", "three#0", "two#0"]
