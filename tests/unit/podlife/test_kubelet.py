"""Where lives of pods are told, delayed and cleared away otherwise by a kubelet's rules: both ways."""

from __future__ import annotations

import attrs
import pytest

from nodealloc.dsw_asw import Cancel
from nodealloc.podfacts import LifeState, PodIdentity
from nodealloc.podlife import KUBELET, LifePolicy, PodFacts, PodRecord, Preparation, Rules
from nodealloc.podlife._details import StopContainer
from nodealloc.podlife._record import HookState
from nodealloc.podlife._stops import Due, steps_to_stop
from nodealloc.podspec import (
    Container,
    ExecAction,
    Lifecycle,
    LifecycleHandler,
    Pod,
    Probe,
    PullPolicy,
    RestartPolicy,
)
from nodealloc.runtime import (
    AnswerLostError,
    ContainerRecord,
    RunState,
    RuntimeRefusedError,
    RuntimeUnavailableError,
)
from nodealloc.verdicts import Admitted, Refused
from tests.unit.podlife_node import Node, Verdicts, pod

RIGHT = Rules()


@attrs.define
class Gate:
    """A preparer that refuses until it is open."""

    is_open: bool = False

    def make_ready(self, _pod: Pod, _cancel: Cancel, /) -> Admitted | Refused:
        """See `Preparer.make_ready`."""
        return Admitted() if self.is_open else Refused(reason="Closed", message="not today")

    def take_back(self, _pod: Pod, _cancel: Cancel, /) -> None:
        """There is nothing to take back."""


STATIC = {"kubernetes.io/config.source": "file"}
"""By a kubelet's rules pods of an API server end otherwise when they are no more."""


def facts(node: Node, uid: str = "u") -> PodFacts:
    """What is told of a pod."""
    found = node.lives.facts.get(uid)
    assert found is not None
    return found


def states(node: Node) -> dict[str, list[str]]:
    """`attempt state` of each container that is told of, by name."""
    report, told = facts(node).report, dict[str, list[str]]()
    for one in report.containers if report else ():
        told.setdefault(one.record.name, []).append(f"{one.record.attempt} {one.record.state.value}")
    return told


@pytest.mark.parametrize(
    ("rules", "meanwhile"),
    [(RIGHT, ["0 running", "0 exited", "1 running"]), (KUBELET, ["0 running", "1 running"])],
)
def test_what_is_told_while_a_container_is_stopped_and_started(rules: Rules, meanwhile: list[str]) -> None:
    """As it happens; for a kubelet it runs until the next one does."""
    node = Node(rules=rules)
    node.lives.put(pod())
    node.after(1)
    told = [states(node)["app"][0]]
    node.executor.held.add("start")
    node.verdicts.put("u", Verdicts(alive={node.id_of("app"): False}))
    node.after(1)
    told.append(states(node)["app"][0])
    go_on(node)
    node.after(1)
    told.append(states(node)["app"][0])
    assert list(dict.fromkeys(told)) == meanwhile


TWO = (Container(name="one", image="busybox"), Container(name="two", image="busybox"))


def ending(rules: Rules, *, for_s: float, grace_s: int = 30) -> Node:
    """A node whose static pod went for so long, and a container of it is being stopped."""
    node = Node(rules=rules)
    node.lives.heard()
    node.lives.put(pod(grace_s=grace_s, annotations=STATIC))
    node.after(1)
    node.executor.held.add("stop")
    node.lives.remove("u")
    node.after(for_s)
    return node


def go_on(node: Node) -> None:
    """Let calls that hang go on, and no later ones hang."""
    node.executor.held.clear()
    for one in node.executor.parked:
        one()


@pytest.mark.parametrize(("rules", "stopped"), [(RIGHT, [2, 2]), (KUBELET, [1, 2])])
def test_two_containers_that_are_stopped_at_once(rules: Rules, stopped: list[int]) -> None:
    """Side by side; a kubelet stops one after the other, and the second has all of its grace from then."""
    node = Node(rules=rules)
    node.lives.put(pod(containers=TWO, grace_s=20))
    node.after(1)
    node.executor.held.add("stop")
    node.verdicts.put("u", Verdicts(alive={node.id_of("one"): False, node.id_of("two"): False}))
    node.after(9)
    seen = [len(node.executor.parked)]
    go_on(node)
    node.after(5)
    seen.append(len(node.stops))
    assert seen == stopped
    if rules is KUBELET:
        assert node.stops[1][1] == 20.0
    assert node.running() == ["one#1", "two#1"]


@pytest.mark.parametrize(("rules", "meanwhile"), [(RIGHT, ["one#0", "two#1"]), (KUBELET, ["one#0"])])
def test_a_container_that_exits_while_another_is_stopped(rules: Rules, meanwhile: list[str]) -> None:
    """It starts again; with a kubelet once the other one has been stopped and has started."""
    node = Node(rules=rules)
    node.lives.put(pod(containers=TWO))
    node.after(1)
    node.executor.held.add("stop")
    node.verdicts.put("u", Verdicts(alive={node.id_of("one"): False}))
    node.after(3)
    node.exit("two")
    node.after(10)
    assert node.running() == meanwhile
    go_on(node)
    node.after(5)
    assert sorted(node.running()) == ["one#1", "two#1"]


@pytest.mark.parametrize(("rules", "meanwhile"), [(RIGHT, 1), (KUBELET, 0)])
def test_a_container_that_fails_its_probe_while_a_hook_runs(rules: Rules, meanwhile: int) -> None:
    """It is stopped; with a kubelet once the hook has ended, and what comes after it has started."""
    hook = Lifecycle(post_start=LifecycleHandler(exec=ExecAction(command=("wait",))))
    slow = Container(name="two", image="busybox", lifecycle=hook)
    node = Node(rules=rules)
    node.executor.held.add("post-start")
    node.lives.put(pod(containers=(TWO[0], slow, Container(name="three", image="busybox"))))
    node.after(3)
    node.verdicts.put("u", Verdicts(alive={node.id_of("one"): False}))
    node.after(10)
    assert (len(node.stops), node.executor.parked != []) == (meanwhile, True)
    go_on(node)
    node.after(5)
    assert node.running() == ["two#0", "three#0", "one#1"]
    assert len(node.stops) == 1


@pytest.mark.parametrize(
    ("rules", "told", "then"), [(RIGHT, {"app": ["0 created"]}, "0 running"), (KUBELET, {}, "1 running")]
)
def test_whether_a_container_that_does_not_run_yet_is_told(
    rules: Rules, told: dict[str, list[str]], then: str
) -> None:
    """It was made and waits for its start; for a kubelet it is not there, and another one is made."""
    node = Node(rules=rules)
    begun: list[str] = []
    start = node.runtime.start_container
    node.runtime.start_container = begun.append  # type: ignore[method-assign]
    node.lives.put(pod())
    node.after(0.5)
    assert begun
    assert states(node) == told
    node.runtime.start_container = start  # type: ignore[method-assign]
    node.after(30)
    assert states(node) == {"app": [then]}


@pytest.mark.parametrize(("rules", "boxes"), [(RIGHT, [0, 1, 1]), (KUBELET, [0, 0, 1])])
def test_when_a_sandbox_is_told(rules: Rules, boxes: list[int]) -> None:
    """As soon as it is there; for a kubelet with the look after the one that made it."""
    node = Node(rules=rules)
    told: list[int] = []

    def note() -> None:
        report = facts(node).report
        told.append(len(report.sandboxes) if report else 0)

    node.executor.held |= {"run sandbox", "start"}
    for wait_s in (0.5, 0.5, 5):
        if not told:
            node.lives.put(pod())
        node.after(wait_s)
        note()
        node.executor.held -= {"run sandbox"} if len(told) == 1 else {"start"}
        for go_on in node.executor.parked[len(told) - 1 :]:
            go_on()
    assert told == boxes


@pytest.mark.parametrize(("rules", "attempts"), [(RIGHT, [1, 1, 2]), (KUBELET, [1, 2, 2])])
def test_when_a_container_that_fails_its_probe_starts_again(rules: Rules, attempts: list[int]) -> None:
    """The second failure waits for the delay of 10 s; with a kubelet, one end behind, the third."""
    node = Node(rules=rules)
    node.lives.put(pod())
    node.after(1)
    seen: list[int] = []
    for wait_s in (5, 5, 6):
        newest = node.runtime.inspect("u").newest("app")
        assert newest is not None
        node.verdicts.put("u", Verdicts(alive={newest.record.id: False}))
        node.after(wait_s)
        newest = node.runtime.inspect("u").newest("app")
        assert newest is not None
        seen.append(newest.record.attempt)
    assert seen == attempts


def test_a_sandbox_that_died_is_ended_before_the_next_is_made() -> None:
    """Its network is taken down by that, though none of its processes is left."""
    node = Node()
    node.lives.put(pod())
    node.after(1)
    node.runtime.stop_sandbox("sandbox-1")
    node.after(1)
    calls = [one.partition(" ")[0] for one in node.calls()]
    assert [one for one in calls if one.endswith("sandbox")] == [
        "run_sandbox",
        "stop_sandbox",  # by somebody else
        "stop_sandbox",
        "run_sandbox",
    ]


def test_init_containers_are_removed_once_their_sandbox_was_stopped() -> None:
    """A kubelet ends all of the pod before it clears away what runs anew in the next sandbox."""
    node = Node(rules=KUBELET)
    node.lives.put(pod(init_containers=(Container(name="first", image="busybox"),)))
    node.after(2)
    node.exit("first")
    node.after(3)
    assert node.running() == ["app#0"]
    before = len(node.calls())
    node.runtime.stop_sandbox("sandbox-1")
    node.after(3)
    calls = [one.partition(" ")[0] for one in node.calls()[before + 1 :]]
    assert calls[: calls.index("run_sandbox")] == ["stop_sandbox", "remove_container"]


def test_what_is_left_of_a_pod_that_is_gone() -> None:
    """Nothing; a kubelet leaves containers and sandboxes there, and forgets the pod when it looks next."""
    right, kubelet = Node(), Node(rules=KUBELET)
    for node in (right, kubelet):
        node.lives.heard()
        node.lives.put(pod())
        node.after(1)
        node.lives.remove("u")
        node.after(5)
        assert "u" not in node.lives.pods
    assert right.runtime.inspect("u").sandboxes == ()
    left = kubelet.runtime.inspect("u")
    assert [one.record.is_ready for one in left.sandboxes] == [False]
    assert [one.record.state for one in left.containers] == [RunState.EXITED]


@pytest.mark.parametrize(("rules", "running"), [(RIGHT, []), (KUBELET, ["app#1"])])
def test_a_pod_that_is_put_back_while_it_ends(rules: Rules, running: list[str]) -> None:
    """It stays ended; with a kubelet it runs again once it has, as the next of its containers."""
    node = ending(rules, for_s=1)
    node.lives.put(pod(annotations=STATIC, labels={"edited": "yes"}))
    node.after(1)
    assert node.running() == ["app#0"]
    go_on(node)
    node.after(5)
    assert node.running() == running
    if running:
        assert node.record().pod.labels == {"edited": "yes"}
        assert [one.record.attempt for one in node.runtime.inspect("u").sandboxes] == [1, 0]


def test_a_pod_that_is_put_back_and_taken_away_again_does_not_come() -> None:
    """By a kubelet's rules, too."""
    node = Node(rules=KUBELET)
    node.lives.heard()
    node.lives.put(pod())
    node.after(1)
    node.lives.remove("u")
    node.lives.put(pod())
    node.lives.remove("u")
    node.after(5)
    assert node.running() == []
    assert "u" not in node.lives.pods


def test_a_crash_loop_goes_on_when_its_pod_is_put_back_while_it_ends() -> None:
    """By a kubelet's rules its delay is that of the uid."""
    node = Node(rules=KUBELET)
    node.lives.heard()
    both = (Container(name="app", image="busybox"), Container(name="slow", image="busybox"))
    node.lives.put(pod(containers=both, annotations=STATIC))
    for _ in range(2):
        node.after(1)
        node.exit("app", 1)
    node.after(1)
    node.executor.held.add("stop")
    node.lives.remove("u")
    node.after(1)
    node.lives.put(pod(containers=both, annotations=STATIC))
    go_on(node)
    node.after(6)
    assert node.running() == ["slow#1"]
    node.after(16)
    assert node.running() == ["slow#1", "app#2"]


def test_a_pod_that_comes_back_after_it_was_gone_counts_what_is_left() -> None:
    """By a kubelet's rules its sandbox is the next one; a container that was removed does not count."""
    node = Node(rules=KUBELET)
    node.lives.heard()
    node.lives.put(pod())
    node.after(1)
    node.lives.remove("u")
    node.after(5)
    node.runtime.remove_container(node.id_of("app"))
    node.after(10)
    node.lives.put(pod())
    node.after(2)
    assert node.running() == ["app#0"]
    assert [one.record.attempt for one in node.runtime.inspect("u").sandboxes] == [1, 0]


@pytest.mark.parametrize(
    ("rules", "told", "after_s"),
    [
        (RIGHT, [(0, "CrashLoopBackOff")], (18, 20)),
        (KUBELET, [(0, ""), (12, "CrashLoopBackOff")], (24, 27)),
    ],
)
def test_when_a_crash_loop_is_told_and_goes_on(
    rules: Rules, told: list[tuple[int, str]], after_s: tuple[int, int]
) -> None:
    """At once, after its delay of 20 s; a kubelet tells and tries when it looks, after 12.5 s."""
    node = Node(rules=rules)
    node.lives.put(pod())
    for wait_s in (1, 1, 15):
        node.after(wait_s)
        if wait_s == 1:
            node.exit("app", 1)
    assert node.running() == ["app#2"]
    node.exit("app", 1)
    node.after(1)
    # What is removed meanwhile is no news.
    assert [one.record.attempt for one in node.containers()] == [2]
    seen: list[tuple[int, str]] = []
    for quarter in range(120):
        if node.running():
            assert after_s[0] <= quarter / 4 <= after_s[1]
            break
        one = facts(node).containers["app"].waiting
        seen.append((quarter // 4, "" if one is None else one.reason))
        node.after(0.25)
    assert node.running() == ["app#3"]
    changes = [item for place, item in enumerate(seen) if not place or seen[place - 1][1] != item[1]]
    assert changes == told


def test_a_crash_loop_is_not_told_between_looks() -> None:
    """By a kubelet's rules it has failed until the look after that one, however early the end was listed."""
    node = Node(rules=KUBELET)
    node.lives.put(pod())
    node.after(1)
    node.exit("app", 1)
    while node.running() != ["app#1"]:
        node.after(0.25)
    node.exit("app", 1)
    node.watch.hurry()
    told: list[str] = []
    for _ in range(56):
        node.after(0.25)
        one = facts(node).containers["app"]
        told.append(f"{one.restart_count} {one.waiting.reason if one.waiting else 'ended'}")
    assert list(dict.fromkeys(told)) == ["0 ended", "1 ended", "1 CrashLoopBackOff"]


SIDECARS = pod(
    init_containers=(
        Container(name="one", image="busybox", restartable=True),
        Container(name="two", image="busybox", restartable=True),
    )
)


@pytest.mark.parametrize(
    ("rules", "running"),
    [
        (RIGHT, [["one#0", "two#0", "app#0"]] * 3),
        (KUBELET, [["one#0"], ["one#0", "two#0"], ["one#0", "two#0", "app#0"]]),
    ],
)
def test_what_waits_for_a_start_waits_for_the_listing_that_shows_it(
    rules: Rules, running: list[list[str]]
) -> None:
    """Sidecars start one after the other at once; by a kubelet's rules one with each listing."""
    node = Node(rules=rules)
    node.lives.put(SIDECARS)
    found: list[list[str]] = []
    for wait_s in (0.25, 1, 1):
        node.after(wait_s)
        found.append(node.running())
    assert found == running


def test_a_sidecar_is_told_to_run_while_the_hook_of_another_container_goes_on() -> None:
    """By a kubelet's rules what the listing shows is told before anything is made of it."""
    hook = Lifecycle(post_start=LifecycleHandler(exec=ExecAction(command=("slow",))))
    app = Container(name="app", image="busybox", lifecycle=hook)
    node = Node(rules=KUBELET)
    node.executor.held.add("post-start")
    node.lives.put(attrs.evolve(SIDECARS, init_containers=SIDECARS.init_containers[:1], containers=(app,)))
    node.after(5)
    assert states(node) == {"one": ["0 running"]}


def test_a_probe_is_heard_with_the_listing_after_a_start() -> None:
    """By a kubelet's rules, for what it says is looked at as the runtime shows it then."""
    node = Node(rules=KUBELET)
    node.lives.put(pod())
    node.after(0.125)
    node.verdicts.put("u", Verdicts(alive={node.id_of("app"): False}))
    node.after(0.25)
    assert node.running() == ["app#0"]
    node.after(0.5)
    assert node.running() == ["app#1"]


def test_what_ended_at_once_was_never_told_to_run() -> None:
    """By a kubelet's rules: its listing comes later than the end."""
    node = Node(rules=KUBELET)
    node.lives.put(pod())
    node.after(2)
    node.exit("app", 1)
    while node.running() != ["app#1"]:
        node.after(0.125, step_s=0.125)
    node.after(0.125)
    node.exit("app", 1)
    told: list[str] = []
    for _ in range(20):
        node.after(0.125, step_s=0.125)
        told.append(states(node)["app"][0])
    assert list(dict.fromkeys(told)) == ["0 exited", "1 exited"]


def test_what_ended_at_once_is_seen_with_the_next_listing() -> None:
    """By a kubelet's rules a pod that has done all ends then."""
    node = Node(rules=KUBELET)
    node.lives.put(attrs.evolve(pod(), restart_policy=RestartPolicy.NEVER))
    node.after(0.125)
    node.exit("app", 0)
    node.watch.hurry()
    node.after(0.25)
    assert facts(node).life is LifeState.SYNCING
    node.after(1.5)
    assert facts(node).life.is_ending


def test_what_began_is_told_with_the_next_listing() -> None:
    """A kubelet lists once a second whatever it does: what starts half a second before that is told then."""
    node = Node(rules=KUBELET)
    node.lives.put(pod())
    node.after(1)
    quarters: list[int] = []
    for attempt in (1, 2):
        node.exit("app", 1)
        while node.running() != [f"app#{attempt}"]:
            node.after(0.25)
        quarters.append(0)
        while states(node)["app"][0] != f"{attempt} running":
            quarters[-1] += 1
            node.after(0.25)
    # With the listing after the one that shows the end, and in the middle between two, when that is known.
    assert quarters == [5, 3]


@pytest.mark.parametrize(
    ("rules", "told"),
    [
        (RIGHT, ["ErrImagePull", "ImagePullBackOff"]),
        (KUBELET, ["ErrImagePull", "ImagePullBackOff", "ErrImagePull", "ImagePullBackOff"]),
    ],
)
def test_what_is_told_of_an_image_that_cannot_be_had(rules: Rules, told: list[str]) -> None:
    """The first failure, then that it is waited; a kubelet tells by turns of both, one look behind."""
    node = Node(rules=rules)
    node.runtime.fail("pull_image", RuntimeRefusedError("pull_image", "NOT_FOUND", "no such image"), times=9)
    node.lives.put(pod(containers=[Container(name="app", image="private")]))
    seen: list[str] = []
    for _ in range(60):
        node.after(1)
        one = facts(node).containers.get("app")
        if one is not None and one.waiting is not None and seen[-1:] != [one.waiting.reason]:
            seen.append(one.waiting.reason)
    assert seen[: len(told)] == told


def test_what_a_container_lacks_is_looked_for_with_each_look() -> None:
    """By a kubelet's rules with the second one, too, a second after the first, and 12.5 s after that one."""
    node = Node(rules=KUBELET)
    lacks = Container(name="app", image="private", image_pull_policy=PullPolicy.NEVER)
    node.lives.put(pod(containers=[lacks]))
    node.after(12)
    node.runtime.pull_image("private", None)
    assert facts(node).containers["app"].waiting is not None
    node.after(3)
    assert node.running() == ["app#0"]


@pytest.mark.parametrize("rules", [RIGHT, KUBELET])
def test_the_image_of_an_ephemeral_container_is_named_where_it_is_waited_for(rules: Rules) -> None:
    """As that of any other."""
    node = Node(rules=rules)
    node.lives.put(pod())
    node.after(2)
    node.runtime.fail("pull_image", RuntimeRefusedError("pull_image", "NOT_FOUND", "no such image"), times=9)
    node.lives.put(pod(ephemeral_containers=(Container(name="look", image="private"),)))
    told: set[str] = set()
    for _ in range(40):
        node.after(1)
        one = facts(node).containers.get("look")
        if one is not None and one.waiting is not None:
            told.add(one.waiting.message)
    assert 'Back-off pulling image "private": ErrImagePull: no such image' in told
    assert not any('image ""' in one for one in told)


@pytest.mark.parametrize("rules", [RIGHT, KUBELET])
def test_what_is_told_of_a_long_wait_for_an_image_stays_as_it_was(rules: Rules) -> None:
    """However often a kubelet looks meanwhile, the last failure is named once, by the runtime's own word."""
    node = Node(rules=rules)
    gone = RuntimeRefusedError("pull_image", "UNKNOWN", "RegistryUnavailable: no answer")
    node.runtime.fail("pull_image", gone, times=9)
    node.lives.put(pod(containers=[Container(name="app", image="private")]))
    told: dict[tuple[str, str], None] = {}
    for _ in range(140):
        node.after(1)
        one = facts(node).containers.get("app")
        if one is not None and one.waiting is not None:
            told[one.waiting.reason, one.waiting.message] = None
    failed = "RegistryUnavailable: no answer"
    assert list(told) == [
        ("RegistryUnavailable", failed),
        ("ImagePullBackOff", f'Back-off pulling image "private": RegistryUnavailable: {failed}'),
    ]


@pytest.mark.parametrize("rules", [RIGHT, KUBELET])
@pytest.mark.parametrize(("image", "running"), [("busybox", ["app#0"]), ("private", [])])
def test_another_image_does_not_wait_for_the_delay_of_the_one_before(
    rules: Rules, image: str, running: list[str]
) -> None:
    """It is looked for at once, as an edit is acted upon; by a kubelet's rules it had come 12.5 s later."""
    node = Node(rules=rules)
    private = Container(name="app", image="private", image_pull_policy=PullPolicy.IF_NOT_PRESENT)
    node.runtime.fail("pull_image", RuntimeRefusedError("pull_image", "NOT_FOUND", "no such image"), times=1)
    node.lives.put(pod(containers=[private]))
    node.after(4)
    assert node.running() == []
    edited = attrs.evolve(private, image=image)
    node.lives.put(pod(containers=[edited], labels={"edited": "yes"}))
    node.after(2)
    assert node.running() == running


def test_a_post_start_hook_that_fails_is_told() -> None:
    """Its container is stopped, and why is told of it as of one that did not start."""
    hook = LifecycleHandler(exec=ExecAction(command=("warm",)))
    app = Container(name="app", image="busybox", lifecycle=Lifecycle(post_start=hook))
    node = Node()
    node.hooks.answer = lambda call: "no" if call.container_id == "container-2" else ""
    node.executor.held.add("stop")
    node.lives.put(pod(containers=[app]))
    node.after(1)
    waiting = facts(node).containers["app"].waiting
    assert waiting is not None
    assert (waiting.reason, waiting.message) == ("PostStartHookError", "no")
    go_on(node)
    node.after(5)
    assert node.running() == ["app#1"]
    assert facts(node).containers["app"].waiting is None


@pytest.mark.parametrize(("rules", "is_early"), [(RIGHT, True), (KUBELET, False)])
def test_when_a_pod_starts_whose_name_is_free_again(rules: Rules, is_early: bool) -> None:
    """At once; a kubelet asks again after 12.5 s whether it may."""
    static = {"kubernetes.io/config.source": "file"}
    node = Node(rules=rules)
    node.lives.heard()
    node.lives.put(pod("old", name="web", annotations=static))
    node.after(1)
    node.lives.put(pod("new", name="web", annotations=static))
    node.lives.remove("old")
    node.after(5)
    assert node.running("old") == []
    assert (node.running("new") == ["app#0"]) is is_early
    node.after(8)
    assert node.running("new") == ["app#0"]


@pytest.mark.parametrize(
    ("rules", "source", "asked", "soon"),
    [(RIGHT, "file", 2, True), (KUBELET, "file", 1, False), (KUBELET, "api", 1, True)],
)
def test_the_end_of_a_pod_with_a_container_that_was_taken_out(
    rules: Rules, source: str, asked: int, soon: bool
) -> None:
    """It was stopped with the edit; by a kubelet it ends with the sandbox, its static pod is over late."""
    notes = {"kubernetes.io/config.source": source}
    node = Node(rules=rules)
    node.lives.heard()
    node.lives.put(pod(containers=TWO, annotations=notes))
    node.after(2)
    node.lives.put(pod(containers=TWO[:1], annotations=notes))
    node.after(2)
    assert node.running() == (["one#0"] if rules is RIGHT else ["one#0", "two#0"])
    node.lives.remove("u")
    node.after(6)
    assert node.running() == []
    assert len(node.stops) == asked
    record = node.lives.pods.get("u")
    assert (record is None or record.life is LifeState.FINISHED) is soon
    node.after(14)
    assert "u" not in node.lives.pods


def test_what_was_taken_out_of_a_pod_that_went_while_a_kubelet_was_away() -> None:
    """The runtime knows it: all of its containers are asked to end."""
    node = Node(rules=KUBELET)
    node.lives.heard()
    node.lives.put(pod(containers=TWO, annotations=STATIC))
    node.after(2)
    node.lives.put(pod(containers=TWO[:1], annotations=STATIC))
    node.after(2)
    node.kill_agent()
    node.after(2)
    node.lives.heard()
    node.after(4)
    assert node.running() == []
    assert len(node.stops) == 2


@pytest.mark.parametrize("rules", [RIGHT, KUBELET])
def test_by_whose_probes_a_container_is_asked_after_an_edit(rules: Rules) -> None:
    """By those that it has; with a kubelet by those that it had first, if any, until its pod ends."""
    first, second = (Probe(exec=ExecAction(command=(word,))) for word in ("one", "two"))
    asked, bare = Container(name="asked", image="busybox", readiness_probe=first), TWO[0]
    node = Node(rules=rules)
    node.lives.heard()
    node.lives.put(pod(containers=(asked, bare), annotations=STATIC))
    node.after(2)
    assert facts(node).asked is None
    edited = tuple(attrs.evolve(one, readiness_probe=second, args=("x",)) for one in (asked, bare))
    for number in range(2):
        node.lives.put(pod(containers=edited, annotations={**STATIC, "number": str(number)}))
        node.after(2)
        now = facts(node)
        assert now.pod.containers == edited
        probes = [one.readiness_probe for one in (now.asked or now.pod).containers]
        assert probes == ([second, second] if rules is RIGHT else [first, second])
    if rules is KUBELET:
        node.lives.remove("u")
        node.after(1)
        node.lives.put(pod(containers=edited, annotations=STATIC))
        node.after(60)
        assert facts(node).life is LifeState.SYNCING
        assert facts(node).asked is None


@pytest.mark.parametrize(("rules", "running"), [(RIGHT, ["app#2"]), (KUBELET, [])])
def test_whether_a_delay_outlives_an_edit(rules: Rules, running: list[str]) -> None:
    """What is made from something else begins anew; a kubelet looks at name and image alone."""
    node = Node(rules=rules)
    node.lives.put(pod())
    for _ in range(2):
        node.after(1)
        node.exit("app", 1)
    node.after(2)
    assert node.running() == []
    node.lives.put(pod(containers=(Container(name="app", image="busybox", args=("other",)),)))
    node.after(3)
    assert node.running() == running


@pytest.mark.parametrize(("rules", "running"), [(RIGHT, []), (KUBELET, ["app#2"])])
def test_whether_a_delay_outlives_the_agent(rules: Rules, running: list[str]) -> None:
    """It does; a kubelet that starts again starts what waited."""
    node = Node(rules=rules)
    node.lives.heard()
    node.lives.put(pod())
    for _ in range(2):
        node.after(1)
        node.exit("app", 1)
    node.after(2)
    assert node.running() == []
    node.kill_agent()
    node.lives.put(pod())
    node.after(3)
    assert node.running() == running


@pytest.mark.parametrize(("rules", "running"), [(RIGHT, ["app#1", "side#1"]), (KUBELET, ["app#1", "side#0"])])
def test_what_counts_of_sidecars_in_a_new_sandbox(rules: Rules, running: list[str]) -> None:
    """Every restart; a kubelet forgets init containers but the first, which it counts in the same breath."""
    first = Container(name="first", image="busybox")
    side = Container(name="side", image="busybox", restartable=True)
    app = Container(name="app", image="busybox")
    node = Node(rules=rules)
    node.lives.put(attrs.evolve(pod(containers=[app]), init_containers=(first, side)))
    node.after(3)
    node.exit("first")
    node.after(5)
    assert node.running() == ["side#0", "app#0"]
    node.runtime.stop_sandbox("sandbox-1")
    node.after(5)
    node.exit("first")
    node.after(5)
    assert sorted(node.running()) == running
    assert node.record().attempts["first"] == 1


@pytest.mark.parametrize("rules", [RIGHT, KUBELET])
def test_sidecars_end_last_also_where_their_sandbox_died(rules: Rules) -> None:
    """They serve the others while these end."""
    side = Container(name="side", image="busybox", restartable=True)
    node = Node(rules=rules)
    node.lives.put(attrs.evolve(pod(grace_s=20), init_containers=(side,)))
    node.after(5)
    assert node.running() == ["side#0", "app#0"]
    node.executor.held.add("stop")
    (box,) = node.runtime.inspect("u").sandboxes
    node.runtime.put(attrs.evolve(box, record=attrs.evolve(box.record, is_ready=False)))
    node.after(3)
    (call,) = node.executor.parked
    assert not [one for one in node.calls() if one.startswith("stop_container")]
    call()
    assert node.running() == ["side#0"]
    node.executor.held.clear()
    node.after(3)
    assert "side#0" not in node.running()


@pytest.mark.parametrize(("rules", "life"), [(RIGHT, LifeState.FINISHED), (KUBELET, LifeState.SYNCING)])
def test_whether_a_refusal_outlives_the_agent(rules: Rules, life: LifeState) -> None:
    """It does; a kubelet asks again when it starts."""
    static = {"kubernetes.io/config.source": "file"}
    gate = Gate()
    node = Node(preparations=[Preparation(name="gate", why="it refuses", by=gate)], rules=rules)
    node.lives.put(pod(annotations=static))
    node.after(5)
    assert node.life() is LifeState.FINISHED
    gate.is_open = True
    node.kill_agent()
    node.lives.put(pod(annotations=static))
    node.after(5)
    assert node.life() is life


@pytest.mark.parametrize(("rules", "grace_s"), [(RIGHT, 11), (KUBELET, 2)])
def test_how_a_pod_ends_that_was_ending_as_the_agent_was_killed(rules: Rules, grace_s: int) -> None:
    """By the deadline that it had; a kubelet gives it a second, which comes to two."""
    node = ending(rules, for_s=3, grace_s=14)
    node.executor.held.clear()
    node.kill_agent()
    node.lives.heard()
    node.after(3)
    assert [round(asked_s) for _, asked_s in node.stops] == [grace_s]
    assert node.running() == []


@pytest.mark.parametrize(("rules", "life"), [(RIGHT, LifeState.FINISHED), (KUBELET, LifeState.SYNCING)])
def test_how_long_a_static_pod_is_active_over_an_agents_restart(rules: Rules, life: LifeState) -> None:
    """From its start; with a kubelet from the restart, and what was active for too long starts again."""
    node = Node(rules=rules)
    wanted = [pod(one, annotations=STATIC, active_deadline_seconds=10, grace_s=2) for one in ("u", "v")]
    node.lives.put(wanted[0])
    node.after(6)
    node.lives.put(wanted[1])
    node.after(6)
    assert (node.life("u"), node.life("v")) == (LifeState.FINISHED, LifeState.SYNCING)
    node.kill_agent()
    for one in wanted:
        node.lives.put(one)
    node.lives.heard()
    node.after(6)
    assert (node.life("u"), node.life("v")) == (life, life)
    assert len(node.running("u")) == len(node.running("v")) == (0 if rules is RIGHT else 1)
    node.after(8)
    assert (node.life("u"), node.life("v")) == (LifeState.FINISHED, LifeState.FINISHED)


@pytest.mark.parametrize(("rules", "running"), [(RIGHT, []), (KUBELET, ["app#0"])])
def test_a_static_pod_that_was_put_back_while_the_agent_was_away(rules: Rules, running: list[str]) -> None:
    """It was ending, and does; a kubelet that starts finds a manifest and what runs of it."""
    node = ending(rules, for_s=3)
    node.executor.held.clear()
    node.kill_agent()
    node.lives.put(pod(annotations=STATIC))
    node.lives.heard()
    node.after(40)
    assert node.running() == running


def test_a_pod_that_ended_and_went_while_the_agent_was_away() -> None:
    """By a kubelet's rules nothing of it starts before it is known whether a source has it."""
    node = Node(rules=KUBELET)
    node.lives.heard()
    node.lives.put(pod(annotations=STATIC))
    node.after(1)
    node.exit("app", 1)
    node.kill_agent()
    node.after(5)
    node.lives.heard()
    node.after(5)
    assert len([one for one in node.calls() if one.startswith("create_container")]) == 1


@pytest.mark.parametrize(("rules", "count"), [(RIGHT, 2), (KUBELET, 1)])
def test_whether_a_hook_that_an_agents_end_interrupted_runs_again(rules: Rules, count: int) -> None:
    """It does; a kubelet runs it once."""
    hook = Lifecycle(post_start=LifecycleHandler(exec=ExecAction(command=("wait",))))
    node = Node(rules=rules)
    node.executor.held.add("post-start")
    web = pod(containers=(Container(name="app", image="busybox", lifecycle=hook),))
    node.lives.put(web)
    node.after(3)
    (call,) = node.executor.parked
    node.kill_agent()
    node.lives.put(web)
    node.after(5)
    call()
    assert len(node.hooks.calls) == count


@pytest.mark.parametrize(("rules", "hooks"), [(RIGHT, 1), (KUBELET, 0)])
def test_whether_a_pod_that_went_while_the_agent_was_away_has_its_hooks(rules: Rules, hooks: int) -> None:
    """It has; for a kubelet only the runtime knows it."""
    stop = LifecycleHandler(exec=ExecAction(command=("bye",)))
    node = Node(rules=rules)
    node.lives.heard()
    app = Container(name="app", image="busybox", lifecycle=Lifecycle(pre_stop=stop))
    node.lives.put(pod(containers=[app]))
    node.after(1)
    node.kill_agent()
    node.after(1)
    assert node.running() == ["app#0"]
    node.lives.heard()
    node.after(3)
    assert node.running() == []
    assert len(node.hooks.calls) == hooks


@pytest.mark.parametrize("rules", [RIGHT, KUBELET])
@pytest.mark.parametrize("deleted", ["", "2026-01-01T00:00:00Z"])
def test_what_is_told_first_after_the_agents_start(rules: Rules, deleted: str) -> None:
    """What the runtime says; by a kubelet's rules nothing before it was asked, of a pod that ends neither."""
    node = Node(rules=rules)
    web = pod()
    node.lives.put(web)
    node.after(1)
    web = attrs.evolve(web, deletion_timestamp=deleted)
    if deleted:
        node.executor.held.add("stop")
        node.lives.put(web)
        node.after(1)
    node.kill_agent()
    node.executor.held.add("stop")
    node.lives.put(web)
    node.lives.heard()
    seen: list[object] = []
    for _ in range(8):
        node.group.run_until_quiet()
        told = node.lives.facts.get("u")
        if told is not None and (rules is KUBELET or told.report):
            seen.append([one.record.state.value for one in told.report.containers] if told.report else None)
        node.executor.run_all()
    assert seen
    assert all(one == ["running"] for one in seen)


@pytest.mark.parametrize(
    ("rules", "meanwhile"),
    [
        (RIGHT, {"side": ["0 running"], "app": ["0 exited"]}),
        (KUBELET, {"side": ["0 running"], "app": ["0 running"]}),
    ],
)
@pytest.mark.parametrize("starts_anew", [False, True])
def test_what_is_told_while_a_pod_ends(
    rules: Rules, meanwhile: dict[str, list[str]], *, starts_anew: bool
) -> None:
    """As it happens; by a kubelet's rules once all of it has ended, also after the agent's start."""
    node = Node(rules=rules)
    node.lives.heard()
    web = pod(init_containers=(Container(name="side", image="busybox", restartable=True),))
    going = attrs.evolve(web, deletion_timestamp="2026-01-01T00:00:00Z", deletion_grace_period_seconds=30)
    node.lives.put(web)
    node.after(4)
    assert node.running() == ["side#0", "app#0"]
    if starts_anew:
        node.kill_agent()
    node.executor.held.add("stop")
    node.lives.put(going)
    node.lives.heard()
    node.after(2)
    node.executor.parked.pop(0)()
    node.after(3)
    assert node.running() == ["side#0"]
    assert states(node) == meanwhile
    node.executor.parked.pop(0)()
    node.executor.held.clear()
    node.after(3)
    assert states(node) == {"side": ["0 exited"], "app": ["0 exited"]}


@pytest.mark.parametrize(
    ("rules", "source", "grace_s"), [(RIGHT, "api", 8), (KUBELET, "api", 2), (KUBELET, "file", 8)]
)
def test_how_long_a_pod_has_that_its_source_has_no_more(rules: Rules, source: str, grace_s: int) -> None:
    """Its own grace; by a kubelet one of an API server has a second, which comes to two."""
    node = Node(rules=rules)
    node.lives.heard()
    node.lives.put(pod(grace_s=8, annotations={"kubernetes.io/config.source": source}))
    node.after(1)
    node.lives.remove("u")
    node.after(3)
    assert [round(asked_s) for _, asked_s in node.stops] == [grace_s]


@pytest.mark.parametrize(("rules", "grace_s"), [(RIGHT, 9), (KUBELET, 12)])
def test_how_long_a_deletion_has_that_an_agents_end_interrupted(rules: Rules, grace_s: int) -> None:
    """What is left; by a kubelet all of it once more, from when its source is heard."""
    node = Node(rules=rules)
    node.lives.heard()
    web = pod(grace_s=12)
    node.lives.put(web)
    node.after(1)
    going = attrs.evolve(web, deletion_timestamp="2026-01-01T00:00:00Z", deletion_grace_period_seconds=12)
    node.executor.held.add("stop")
    node.lives.put(going)
    node.after(3)
    node.executor.held.clear()
    node.kill_agent()
    if rules is KUBELET:
        node.after(1)
        assert node.stops == []
    node.lives.put(going)
    node.lives.heard()
    node.after(2)
    assert [round(asked_s) for _, asked_s in node.stops] == [grace_s]


@pytest.mark.parametrize(("rules", "stopped"), [(RIGHT, 0), (KUBELET, 1)])
def test_whether_a_sandbox_that_has_ended_is_stopped_with_its_pod(rules: Rules, stopped: int) -> None:
    """It is not; a kubelet stops every one, once."""
    node = Node(rules=rules)
    node.lives.heard()
    node.lives.put(pod(policy=RestartPolicy.NEVER))
    node.after(1)
    node.exit("app")
    node.runtime.stop_sandbox("sandbox-1")
    before = len(node.calls())
    node.after(5)
    assert node.life() is LifeState.FINISHED
    calls = [one.partition(" ")[0] for one in node.calls()[before:]]
    assert calls.count("stop_sandbox") == stopped


@pytest.mark.parametrize(("rules", "told_s"), [(RIGHT, 3.0), (KUBELET, 5.0)])
def test_when_a_sidecar_is_told_that_waits_for_somebody_who_does_not_listen(
    rules: Rules, told_s: float
) -> None:
    """Two seconds before the pod's deadline; by a kubelet at it, with two seconds on top and no hook."""
    hook = Lifecycle(pre_stop=LifecycleHandler(exec=ExecAction(command=("bye",))))
    side = Container(name="side", image="busybox", restartable=True, lifecycle=hook)
    web = pod(grace_s=5, init_containers=(side,))
    who = PodIdentity.of(web)
    app, beside = (
        Due(
            record=ContainerRecord(
                id=name, pod=who, name=name, sandbox_id="s", attempt=0, state=RunState.RUNNING
            ),
            deadline_s=5.0,
            grace_s=5.0,
            after=after,
        )
        for name, after in (("app", ()), ("side", ("app",)))
    )
    done = PodRecord(pod=web, pre_stop={"side": HookState.DONE})
    seen: list[float] = []
    for now_s in (0.0, 2.5, 3.0, 4.5, 5.0):
        stops = steps_to_stop("u", done, [app, beside], now_s=now_s, policy=LifePolicy(), rules=rules)
        if any(
            isinstance(one.detail, StopContainer) and one.detail.container == "side" for one in stops.steps
        ):
            seen.append(now_s)
    assert seen[0] == told_s
    late = steps_to_stop("u", PodRecord(pod=web), [beside], now_s=5.0, policy=LifePolicy(), rules=rules)
    assert [one.verb for one in late.steps] == ["stop"]


@pytest.mark.parametrize(("rules", "last_s"), [(RIGHT, 2.0), (KUBELET, 5.0)])
def test_the_grace_of_who_could_not_be_told(rules: Rules, last_s: float) -> None:
    """While the runtime is away time passes: 2 s are left to hear of the end, by a kubelet all of them."""
    node = Node(rules=rules)
    node.lives.put(pod(grace_s=5))
    node.after(2)
    node.runtime.fail("stop_container", RuntimeUnavailableError("stop_container", "away"), times=6)
    node.lives.put(attrs.evolve(pod(grace_s=5), deletion_timestamp="now", deletion_grace_period_seconds=5))
    node.after(90)
    assert node.running() == []
    graces = [grace_s for _, grace_s in node.stops]
    assert (graces[0], graces[-1]) == (5.0, last_s)


@pytest.mark.parametrize(("rules", "last_s", "within_s"), [(RIGHT, 4.0, (0, 4)), (KUBELET, 5.0, (12, 14))])
def test_a_stop_that_was_cut_off_is_tried_again(
    rules: Rules, last_s: float, within_s: tuple[int, int]
) -> None:
    """At once with the time that is left; by a kubelet as late as any sync that failed, with all of it."""
    node = Node(rules=rules)
    node.lives.put(pod(grace_s=5))
    node.after(2)
    stop, calls, begun = node.runtime.stop_container, list[float](), node.clock.monotonic_s()

    def once(container_id: str, grace_s: float, /) -> None:
        calls.append(grace_s)
        if len(calls) == 1:
            raise AnswerLostError("stop_container", "the connection was closed")
        stop(container_id, grace_s)

    node.runtime.stop_container = once  # type: ignore[method-assign]
    node.lives.put(attrs.evolve(pod(grace_s=5), deletion_timestamp="now", deletion_grace_period_seconds=5))
    while node.running():
        node.after(0.25)
    assert within_s[0] <= node.clock.monotonic_s() - begun <= within_s[1]
    assert len(calls) == 2
    assert last_s - 1 <= calls[-1] <= last_s


def test_who_heard_of_its_end_gets_no_more_time_as_a_later_call_fails() -> None:
    """One with less time that nobody takes: the call before it was heard, and is under way."""
    node = Node()
    node.lives.put(pod(grace_s=30))
    node.after(2)
    stop, calls = node.runtime.stop_container, list[float]()

    def once(container_id: str, grace_s: float, /) -> None:
        calls.append(grace_s)
        if len(calls) == 1:
            raise AnswerLostError("stop_container", "deadline exceeded")
        if len(calls) < 4:
            raise RuntimeUnavailableError("stop_container", "away")
        stop(container_id, grace_s)

    node.runtime.stop_container = once  # type: ignore[method-assign]
    ends = attrs.evolve(pod(grace_s=30), deletion_timestamp="now", deletion_grace_period_seconds=1)
    node.lives.put(ends)
    node.after(30)
    assert node.running() == []
    assert calls[0] == 1.0
    assert calls[-1] < 0.5


def test_a_pod_that_has_finished_is_known_until_it_was_looked_after_once_more() -> None:
    """For one period of a kubelet's housekeeping, and not for ever."""
    node = Node(rules=KUBELET, policy=LifePolicy(look_after_s=20.0))
    node.lives.heard()
    node.lives.put(pod(grace_s=1))
    node.after(1)
    node.lives.remove("u")
    node.after(5)
    assert node.life() is LifeState.FINISHED
    node.after(40)
    assert "u" not in node.lives.pods
