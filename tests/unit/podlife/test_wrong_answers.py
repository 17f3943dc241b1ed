"""Ports that answer what they never promised: that lets nothing in, and it is said whose answer it was."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import attrs
import pytest

from nodealloc.errors import ConfigurationError
from nodealloc.podlife import LifePolicy, PodLives, Preparation, RestartBackOff
from nodealloc.podlife._answers import heard_of_hook
from nodealloc.podlife._images import ImageFetcher, ImageUnavailableError
from nodealloc.podspec import Container, ExecAction, Lifecycle, LifecycleHandler, Pod
from nodealloc.runtime import RuntimeWatch
from nodealloc.testing.dsw_asw import ManualCancel
from nodealloc.testing.podlife import FakePreparer, PlainConfiguration
from nodealloc.testing.runtime import FakeContainerRuntime
from nodealloc.verdicts import Admitted
from tests.unit.podlife_node import Node, pod

APP = Container(name="app", image="busybox")


def licence(answer: object, taken_back: object = None) -> Preparation:
    """A preparation that answers this."""
    by: Any = FakePreparer(answer=lambda _: answer, blocks=lambda _: taken_back)  # type: ignore[arg-type, return-value]
    return Preparation(name="licence", why="as in this test", by=by)


def failures(node: Node) -> str:
    """What failed of the pod, in words."""
    return "; ".join(map(str, node.lives.failures("u")))


@pytest.mark.parametrize("answer", [None, False, True, "ok", Admitted])
def test_an_answer_that_was_forgotten_lets_nobody_in(answer: object) -> None:
    """A function without a `return` is no agreement."""
    node = Node(preparations=[licence(answer)])
    node.lives.put(pod())
    node.after(3)
    assert node.containers() == []
    assert "preparation licence: make_ready: expected an answer: Admitted()" in failures(node)


def test_a_part_that_is_taken_back_says_so_in_one_way() -> None:
    """None is done; a text is neither done nor a reason to wait."""
    node = Node(preparations=[licence(Admitted(), "later")])
    node.lives.put(pod())
    node.after(3)
    node.lives.remove("u")
    node.after(60)
    assert "preparation licence: take_back: expected None, or NotYet" in failures(node)


@pytest.mark.parametrize(
    ("method", "expected"), [("sandbox", "a SandboxConfig"), ("container", "a ContainerConfig")]
)
def test_what_a_container_is_made_from_is_looked_at(method: str, expected: str) -> None:
    """Before the runtime is given it."""
    plain = PlainConfiguration()
    setattr(plain, method, lambda *_: None)
    node = Node(configuring=plain)
    node.lives.put(pod())
    node.after(3)
    assert f"configuring: {method}: expected {expected}, found None" in failures(node)


@pytest.mark.parametrize(("call", "answer"), [("run_sandbox", ""), ("create_container", None)])
def test_a_runtime_gives_what_it_made_an_id(
    call: str, answer: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next call would be about nothing."""
    node = Node()
    monkeypatch.setattr(node.runtime, call, lambda *_: answer)
    node.lives.put(pod())
    node.after(3)
    assert f"the runtime's {call}: expected the id of what was made" in failures(node)


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        (lambda one: attrs.evolve(one, containers=(APP, APP)), "has containers app twice"),
        (lambda one: attrs.evolve(one, init_containers=(APP,)), "has containers app twice"),
        (lambda one: attrs.evolve(one, containers=(Container(name="", image="b"),)), "without a name"),
        (lambda one: attrs.evolve(one, uid="../../etc"), "would lead a path elsewhere"),
        (lambda one: attrs.evolve(one, containers=(Container(name="a/b", image="b"),)), "lead a path"),
        (lambda one: attrs.evolve(one, uid="a\nb"), r"'a\\nb' is no uid; use up to 128 letters"),
        (lambda one: attrs.evolve(one, uid="x" * 300), "'x{80}' is no uid; use up to 128 letters"),
        (lambda one: attrs.evolve(one, uid="\udcff"), r"'\\udcff' is no uid"),
        (lambda one: attrs.evolve(one, name="a\nb"), r"'a\\nb' is no name; use up to 253 letters"),
        (lambda one: attrs.evolve(one, namespace="x" * 254), "'x{80}' is no name"),
        (
            lambda one: attrs.evolve(one, containers=(Container(name="\udcff", image="b"),)),
            r"'\\udcff' is no name",
        ),
    ],
)
def test_a_pod_of_a_program_is_looked_at_as_one_of_a_manifest(
    changed: Callable[[Pod], Pod], says: str
) -> None:
    """What tells containers apart, and what folders are named after."""
    node = Node()
    with pytest.raises(ConfigurationError, match=says):
        node.lives.put(changed(pod()))


def test_a_poke_at_nothing_is_refused_at_once() -> None:
    """It was remembered, and kept the pod from being planned ever after."""
    runtime = FakeContainerRuntime()
    lives = PodLives(runtime, watch=RuntimeWatch(runtime), configuring=PlainConfiguration())
    lives.put(pod())
    nothing: Any = None
    with pytest.raises(ConfigurationError, match="poke: container: expected a text, found None"):
        lives.poke("u", nothing)


@pytest.mark.parametrize("answer", [None, True, 5])
def test_a_hook_that_says_nothing_has_failed(answer: object) -> None:
    """None passed for success, and True for the words of a failure."""
    hook = Lifecycle(post_start=LifecycleHandler(exec=ExecAction(command=("true",))))
    node = Node()
    node.hooks.answer = lambda _: answer  # type: ignore[assignment, return-value]
    node.lives.put(pod(containers=[attrs.evolve(APP, lifecycle=hook)]))
    node.after(1)
    assert node.running() == []
    nothing: Any = answer
    with pytest.raises(ConfigurationError, match="run_hook: expected a text that says why the hook failed"):
        heard_of_hook(nothing)


@pytest.mark.parametrize("answer", [None, "ann", ["ann"]])
def test_credentials_are_tried_where_they_are_some(answer: Any) -> None:
    """A text was tried letter by letter, and None as nobody."""

    class Credentials:
        def credentials(self, *_: object) -> Any:
            return answer

    app = attrs.evolve(APP, image="other:1")
    fetcher = ImageFetcher(FakeContainerRuntime(), at_once=None, credentials=Credentials())
    with pytest.raises(ImageUnavailableError, match="credentials: expected several PullCredentials"):
        fetcher.fetch(pod(containers=[app]), app, ManualCancel())


def test_an_end_comes_some_day() -> None:
    """Without a last moment nothing of the pod could be planned any more, and it ran on for good."""
    node = Node()
    node.lives.put(pod())
    with pytest.raises(ConfigurationError, match=r"grace_s: expected a finite number 0 or more, found inf"):
        node.lives.remove("u", grace_s=math.inf)
    with pytest.raises(ConfigurationError, match=r"LifePolicy\.late_s: expected a finite number above 0"):
        LifePolicy(late_s=math.inf)
    with pytest.raises(ConfigurationError, match=r"RestartBackOff\.base_s: expected a finite number"):
        RestartBackOff(base_s=math.inf, cap_s=math.inf)
