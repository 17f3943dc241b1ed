"""What a kubelet asks of a runtime that refuses or is away, and what it tells of that."""

from __future__ import annotations

import attrs
import pytest

from nodealloc.podlife import KUBELET, HookCall, Rules
from nodealloc.podspec import Container, ExecAction, Lifecycle, LifecycleHandler
from nodealloc.runtime import NameReservedError, RunState, RuntimeRefusedError, RuntimeUnavailableError
from tests.unit.podlife_node import Node, Verdicts, pod

RIGHT = Rules()
TWO = (Container(name="one", image="busybox"), Container(name="two", image="busybox"))


def calls_of(node: Node, since: int = 0) -> list[str]:
    """What was asked of the runtime, questions after images among them."""
    calls = [
        one for one in node.runtime.calls[since:] if not one.startswith(("listing", "inspect", "health"))
    ]
    return [one.partition(" ")[0] for one in calls]


def told(node: Node, name: str) -> tuple[str, int]:
    """Why a container waits, "" for not at all, and how often it started again."""
    facts = node.lives.facts.get("u")
    assert facts is not None
    one = facts.containers[name]
    return ("" if one.waiting is None else one.waiting.reason), one.restart_count


def told_in(node: Node, name: str, seconds: float) -> list[tuple[str, int]]:
    """What is told of a container one after the other."""
    found: list[tuple[str, int]] = []
    for _ in range(round(seconds * 4)):
        node.after(0.25)
        if found[-1:] != [told(node, name)]:
            found.append(told(node, name))
    return found


@pytest.mark.parametrize(
    ("rules", "calls"),
    [
        (RIGHT, ["images", "images", "create_container", "create_container"]),
        (KUBELET, ["images", "create_container", "images", "create_container"]),
    ],
)
def test_images_are_looked_for(rules: Rules, calls: list[str]) -> None:
    """Side by side, while the sandbox is made; a kubelet does it as the first thing of each start."""
    node = Node(rules=rules)
    node.lives.put(pod(containers=TWO))
    node.after(2)
    assert node.running() == ["one#0", "two#0"]
    assert [one for one in calls_of(node) if one in {"images", "create_container"}] == calls


@pytest.mark.parametrize(
    ("rules", "reason"), [(RIGHT, "CreateContainerError"), (KUBELET, "ImageInspectError")]
)
def test_a_runtime_that_goes_away_between_two_starts(rules: Rules, reason: str) -> None:
    """The second container cannot be made; a kubelet has not looked for its image yet, and cannot."""
    node = Node(rules=rules)
    start = node.runtime.start_container

    def last(container_id: str, /) -> None:
        start(container_id)
        for call in ("images", "create_container"):
            node.runtime.fail(call, RuntimeUnavailableError(call, "away"), times=500)

    node.runtime.start_container = last  # type: ignore[method-assign]
    node.lives.put(pod(containers=TWO))
    node.after(3)
    assert told(node, "two") == (reason, 0)


@pytest.mark.parametrize(("rules", "looks"), [(RIGHT, 1), (KUBELET, 2)])
def test_the_image_of_a_container_that_could_not_be_made(rules: Rules, looks: int) -> None:
    """It is known to be there; a kubelet looks for it with each try."""
    node = Node(rules=rules)
    node.runtime.fail("create_container", RuntimeRefusedError("create_container", "UNKNOWN", "no"), times=1)
    node.lives.put(pod())
    node.after(16)
    assert node.running() == ["app#0"]
    assert calls_of(node).count("images") == looks


@pytest.mark.parametrize("call", ["create_container", "images"])
@pytest.mark.parametrize("rules", [RIGHT, KUBELET])
def test_a_container_that_ended_and_cannot_be_made_again(rules: Rules, call: str) -> None:
    """It waits for what it lacks; for a kubelet each try counts as a start, and a delay follows."""
    node = Node(rules=rules)
    node.lives.put(pod())
    node.after(2)
    node.runtime.fail(call, RuntimeRefusedError(call, "UNKNOWN", "no"), times=500)
    node.exit("app", 1)
    since = len(node.runtime.calls)
    reason = {"create_container": "CreateContainerError", "images": "ImageInspectError"}[call]
    reasons = [why for why, _ in told_in(node, "app", 70.0)]
    if rules is RIGHT:
        assert reasons[-1:] == [reason]
        assert "CrashLoopBackOff" not in reasons
        return
    assert reasons == ["", reason, "CrashLoopBackOff", reason]
    # 0, 12.5, 25 and 50 s after its end: the delays are 10, 20, 40 and 80 s.
    assert calls_of(node, since).count(call) == 4


@pytest.mark.parametrize(("rules", "count"), [(RIGHT, 1), (KUBELET, 0)])
def test_the_restarts_of_a_container_that_cannot_be_made_again(rules: Rules, count: int) -> None:
    """The next instance counts as it is tried; for a kubelet once the runtime has it."""
    node = Node(rules=rules)
    node.lives.put(pod())
    node.after(2)
    node.runtime.fail("create_container", RuntimeRefusedError("create_container", "UNKNOWN", "no"), times=2)
    node.exit("app", 1)
    assert ("CreateContainerError", count) in told_in(node, "app", 14)
    node.after(15)
    assert node.running() == ["app#1"]
    node.after(2)
    assert told_in(node, "app", 1) == [("", 1)]


@pytest.mark.parametrize(("rules", "times"), [(RIGHT, 8), (KUBELET, 5)])
def test_a_sandbox_that_cannot_be_made(rules: Rules, times: int) -> None:
    """It is tried again soon, and ever later; by a kubelet as late as any sync that failed."""
    node = Node(rules=rules)
    node.runtime.fail("run_sandbox", RuntimeRefusedError("run_sandbox", "UNKNOWN", "no network"), times=500)
    node.lives.put(pod())
    node.after(60)
    assert calls_of(node).count("run_sandbox") == times


@pytest.mark.parametrize(("rules", "count"), [(RIGHT, 0), (KUBELET, 1)])
def test_a_container_that_was_made_and_did_not_start(rules: Rules, count: int) -> None:
    """It is started; a kubelet makes another one, which is a restart."""
    node = Node(rules=rules)
    node.runtime.fail("start_container", RuntimeUnavailableError("start_container", "away"), times=1)
    node.lives.put(pod())
    node.after(16)
    assert node.running() == [f"app#{count}"]
    assert told(node, "app") == ("", count)
    assert calls_of(node).count("create_container") == 1 + count
    first = node.containers()[0].record
    assert (first.attempt, first.state is RunState.CREATED) == (0, bool(count))


@pytest.mark.parametrize(("rules", "running", "stops"), [(RIGHT, ["app#1"], 2), (KUBELET, ["app#0"], 1)])
def test_a_container_whose_hook_failed_and_that_could_not_be_stopped(
    rules: Rules, running: list[str], stops: int
) -> None:
    """It is stopped once the runtime is back; a kubelet finds that it runs, and leaves it so."""
    hook = Lifecycle(post_start=LifecycleHandler(exec=ExecAction(command=("warm",))))
    node = Node(rules=rules)
    node.hooks.answer = lambda call: "no" if call.container_id == "container-2" else ""
    node.runtime.fail("stop_container", RuntimeUnavailableError("stop_container", "away"), times=1)
    node.lives.put(pod(containers=[Container(name="app", image="busybox", lifecycle=hook)]))
    node.after(30)
    assert node.running() == running
    assert len(node.stops) == stops
    assert told(node, "app") == ("", stops - 1)
    node.lives.heard()
    node.lives.remove("u")
    node.after(5)
    assert node.running() == []


@pytest.mark.parametrize(("rules", "hooks", "graces"), [(RIGHT, 1, [7.0, 2.0]), (KUBELET, 5, [7.0, 7.0])])
def test_the_hook_of_a_stop_that_is_tried_again(rules: Rules, hooks: int, graces: list[float]) -> None:
    """It has run; with a kubelet it runs before each try, and the container has what is left of its grace."""
    hook = Lifecycle(pre_stop=LifecycleHandler(exec=ExecAction(command=("drain",))))
    node, begun = Node(rules=rules), list[float]()

    def drain(_call: HookCall) -> str:
        begun.append(node.clock.monotonic_s())
        node.clock.advance(1.0)
        return ""

    node.hooks.answer = drain
    app = Container(name="app", image="busybox", lifecycle=hook)
    node.lives.heard()
    node.lives.put(pod(containers=[app], grace_s=8))
    node.after(2)
    node.runtime.fail("stop_container", RuntimeUnavailableError("stop_container", "away"), times=4)
    node.lives.put(
        attrs.evolve(
            pod(containers=[app], grace_s=8), deletion_timestamp="now", deletion_grace_period_seconds=8
        )
    )
    node.after(90)
    assert node.running() == []
    assert len(begun) == hooks
    assert [node.stops[0][1], node.stops[-1][1]] == graces


def failing_its_probe(rules: Rules) -> Node:
    """A pod of which one container is to start again, and could not be stopped."""
    node = Node(rules=rules)
    node.lives.heard()
    node.lives.put(pod(containers=TWO, grace_s=20, annotations={"kubernetes.io/config.source": "file"}))
    node.after(5)
    node.runtime.fail("stop_container", RuntimeUnavailableError("stop_container", "away"), times=1)
    node.verdicts.put("u", Verdicts(alive={node.id_of("one"): False}))
    while not node.stops:
        node.after(0.25, step_s=0.25)
    return node


def test_a_pod_that_goes_after_a_stop_that_failed() -> None:
    """By a kubelet's rules its sync is over: the container is not started again first."""
    node = failing_its_probe(KUBELET)
    node.after(2)
    node.lives.remove("u")
    node.after(3)
    assert [one.record.name for one in node.containers()] == ["one", "two"]
    assert node.running() == []
    assert [grace_s for _, grace_s in node.stops] == [20.0, 20.0, 20.0]


def test_what_happens_after_a_stop_that_failed_is_told() -> None:
    """By a kubelet's rules it looks at the pod as a listing shows something new."""
    node = failing_its_probe(KUBELET)
    node.after(2)
    node.exit("two", 1)
    node.after(4)
    facts = node.lives.facts.get("u")
    assert facts is not None
    assert facts.report is not None
    states = {one.record.name: one.record.state for one in facts.report.containers}
    assert states["two"] is RunState.EXITED
    node.after(12)
    assert sorted(node.running()) == ["one#1", "two#1"]


@pytest.mark.parametrize("rules", [RIGHT, KUBELET, Rules(keeps_starts=False)])
def test_a_container_that_a_listing_shows_made_while_it_starts(rules: Rules) -> None:
    """It is the one that is started: no other is about to be made, and its end counts as any."""
    node = Node(rules=rules)
    start = node.runtime.start_container

    def slowly(container_id: str, /) -> None:
        node.after(1.5)
        start(container_id)

    node.runtime.start_container = slowly  # type: ignore[method-assign]
    node.lives.put(pod())
    node.after(2)
    assert node.running() == ["app#0"]
    assert dict(node.record().starting) == {}
    assert calls_of(node).count("create_container") == 1


@pytest.mark.parametrize(("rules", "reason"), [(RIGHT, "CrashLoopBackOff"), (KUBELET, "")])
def test_a_container_that_ends_while_another_one_starts(rules: Rules, reason: str) -> None:
    """It waits for its delay as any, of which a kubelet tells later: nothing starts twice by one look."""
    node = Node(rules=rules)
    node.lives.put(pod(containers=TWO))
    node.after(3)
    start = node.runtime.start_container

    def slowly(container_id: str, /) -> None:
        if container_id == node.id_of("two"):
            node.exit("one", 1)
            node.after(1.5)
        start(container_id)

    node.runtime.start_container = slowly  # type: ignore[method-assign]
    node.exit("one", 1)
    node.exit("two", 1)
    node.after(6)
    assert node.running() == ["two#1"]
    assert told(node, "one") == (reason, 1)
    node.after(12)
    assert sorted(node.running()) == ["one#2", "two#1"]


@pytest.mark.parametrize(
    ("rules", "reasons"), [(RIGHT, [("", 0)]), (KUBELET, [("CreateContainerError", 0), ("", 0)])]
)
def test_a_container_whose_name_is_taken(rules: Rules, reasons: list[tuple[str, int]]) -> None:
    """A listing shows whose it is; for a kubelet it is an error as any, and it tries again as late."""
    node = Node(rules=rules)
    taken = NameReservedError("create_container", "container-9", "the name is reserved")
    node.runtime.fail("create_container", taken, times=2)
    node.lives.put(pod())
    node.after(3)
    assert told_in(node, "app", 20) == reasons
    assert node.running() == ["app#0"]
    assert calls_of(node).count("create_container") == 3
