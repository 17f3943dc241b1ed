"""How pods end: one deadline, hooks within it, a shorter grace at once, nothing twice."""

from __future__ import annotations

from functools import partial

import attrs
import pytest

from nodealloc.dsw_asw import Done, Step, World
from nodealloc.podfacts import LifeState, PodIdentity
from nodealloc.podlife import KUBELET, Ending, EndingKind, LifePolicy, PodRecord, Preparation, Rules
from nodealloc.podlife._details import Acted, Hook, HookKind
from nodealloc.podlife._ending import end
from nodealloc.podlife._look import StartFailure
from nodealloc.podlife._observed import Observed
from nodealloc.podlife._ports import LifeTold
from nodealloc.podlife._record import HookState, Starting
from nodealloc.podlife._settling import settle
from nodealloc.podlife._stops import Due, steps_to_stop
from nodealloc.podspec import Container, ExecAction, Lifecycle, LifecycleHandler, RestartPolicy
from nodealloc.runtime import (
    AnswerLostError,
    ContainerConfig,
    ContainerRecord,
    ContainerReport,
    Listing,
    PodReport,
    RunState,
    RuntimeUnavailableError,
    SandboxConfig,
)
from nodealloc.testing.podlife import FakePreparer
from nodealloc.verdicts import NotYet
from tests.unit.podlife_node import Node, pod

APP = Container(name="app", image="busybox")
HOOK = LifecycleHandler(exec=ExecAction(command=("true",)))
HOOKED = attrs.evolve(APP, lifecycle=Lifecycle(pre_stop=HOOK))


def test_a_hook_runs_before_the_container_hears() -> None:
    """What it took is gone from the grace, and nothing is added."""
    node = Node()
    node.lives.put(pod(containers=[HOOKED], grace_s=30))
    node.after(1)
    node.executor.held.add("pre-stop")
    node.lives.remove("u")
    node.after(4)
    assert node.stops == []
    node.executor.held.clear()
    node.executor.parked.pop()()
    node.after(1)
    ((_, grace_s),) = node.stops
    assert 25 < grace_s <= 26
    assert "u" not in node.lives.pods


def test_a_hook_that_goes_on_leaves_time_to_hear_of_the_end() -> None:
    """Two seconds before the deadline, at most half of the grace, the container is told."""
    node = Node()
    node.lives.put(pod(containers=[HOOKED], grace_s=10))
    node.after(1)
    node.executor.held.add("pre-stop")
    began_s = node.clock.monotonic_s()
    node.lives.remove("u")
    node.after(9)
    ((at_s, grace_s),) = node.stops
    assert (at_s - began_s, grace_s) == (8.0, 2.0)


def test_a_second_delete_with_a_shorter_grace_counts_at_once_in_a_hook() -> None:
    """The hook hangs for ever; the container is told within the new deadline, and gone at it."""
    node = Node()
    node.lives.put(pod(containers=[HOOKED], grace_s=3600))
    node.after(1)
    node.executor.held.add("pre-stop")
    node.lives.remove("u")
    node.after(5)
    assert node.stops == []
    again_s = node.clock.monotonic_s()
    node.lives.remove("u", grace_s=3)
    node.after(4)
    assert [round(at_s + grace_s - again_s, 2) for at_s, grace_s in node.stops] == [3.0]


def test_a_second_delete_counts_at_once_while_a_stop_hangs() -> None:
    """The runtime is busy with the long grace; the short one is a call of its own."""
    node = Node()
    node.lives.put(pod(grace_s=3600))
    node.after(1)
    node.executor.held.add("stop")
    node.lives.remove("u")
    node.after(5)
    node.executor.held.clear()
    again_s = node.clock.monotonic_s()
    node.lives.remove("u", grace_s=3)
    node.after(1)
    assert [round(at_s + grace_s - again_s, 2) for at_s, grace_s in node.stops] == [3.0]
    assert node.running() == []


def test_a_call_that_is_overtaken_by_one_for_a_shorter_grace_leaves_no_more() -> None:
    """It had to wait for a thread, and begins after the other one; a life of a simulated node had it."""
    node = Node()
    node.lives.put(pod(grace_s=3600))
    node.after(1)
    node.executor.held.add("stop")
    node.lives.remove("u")
    node.after(5)
    node.lives.remove("u", grace_s=3)
    node.settle()
    longer, shorter = node.executor.parked
    shorter()
    node.clock.advance(0.5)
    longer()
    assert [round(grace_s, 2) for _, grace_s in node.stops] == [3.0, 2.5]


def test_a_longer_grace_is_not_heard() -> None:
    """It only shrinks, whoever asks."""
    node = Node()
    node.lives.put(pod(grace_s=5))
    node.after(1)
    node.executor.held.add("stop")
    node.lives.remove("u")
    node.after(0.25)
    deadline_s = node.record().deadline_s
    node.lives.remove("u", grace_s=60)
    node.lives.end("u", Ending(kind=EndingKind.EVICTED, grace_s=60))
    node.after(0.25)
    assert node.record().deadline_s == deadline_s


def test_a_container_that_outlives_its_deadline_is_killed_once_more() -> None:
    """The first call hangs; half a second behind the deadline another one does without any grace."""
    node = Node()
    node.lives.put(pod(grace_s=5))
    node.after(1)
    node.executor.held.add("stop")
    node.lives.remove("u")
    node.after(7)
    assert [grace_s for _, grace_s in node.stops] == [0.0]
    assert "u" not in node.lives.pods


@pytest.mark.parametrize("verb", ["pull", "make ready volumes", "run sandbox"])
def test_the_end_waits_for_no_pull_and_no_mount(verb: str) -> None:
    """A pull and a mount that hang keep nothing; a sandbox that is just being made is waited for."""
    parts = [Preparation(name="volumes", why="", by=FakePreparer())]
    node = Node(preparations=parts, policy=LifePolicy(pulls_at_once=None, call_s=20))
    node.executor.held.add(verb)
    node.lives.put(pod(containers=[attrs.evolve(APP, image="other")]))
    node.after(1)
    node.lives.remove("u", grace_s=1)
    node.after(2)
    left = node.lives.pods.get("u")
    if verb == "run sandbox":
        assert left is not None
        assert left.life is LifeState.TERMINATING
        node.after(20)
        left = node.lives.pods.get("u")
    if verb == "make ready volumes":
        # What may be half made is taken back when the call has come back.
        assert left is not None
        assert left.life is LifeState.TERMINATED
        node.executor.held.clear()
        node.executor.parked.pop()()
        node.after(2)
        left = node.lives.pods.get("u")
    assert left is None
    assert node.stops == []


def test_sidecars_end_behind_the_rest_and_within_the_deadline() -> None:
    """Each is told when those behind it are gone."""
    proxy, log = (attrs.evolve(APP, name=name, restartable=True) for name in ("proxy", "log"))
    node = Node()
    node.lives.put(pod(init_containers=(log, proxy)))
    node.after(2)
    assert sorted(node.running()) == ["app#0", "log#0", "proxy#0"]
    order = {node.id_of(name): name for name in ("app", "log", "proxy")}
    node.lives.remove("u")
    node.after(2)
    told = [one.split()[1] for one in node.calls() if one.startswith("stop_container")]
    assert [order[one] for one in told] == ["app", "proxy", "log"]


def test_no_grace_begins_anew_with_the_agent() -> None:
    """Killed and started again it ends the pod when it was to end, with the grace that is left."""
    node = Node()
    node.lives.put(pod(grace_s=30))
    node.after(1)
    node.executor.held.add("stop")
    node.lives.remove("u")
    node.after(10)
    deadline_s = node.record().deadline_s
    node.kill_agent()
    node.after(1)
    ((at_s, grace_s),) = node.stops
    assert deadline_s is not None
    assert round(at_s + grace_s - deadline_s, 2) == 0


def test_after_another_boot_only_the_wall_clock_counts() -> None:
    """The monotonic clock began again, and the deadline is where it was in Unix time."""
    node = Node()
    node.lives.put(pod(grace_s=30, active_deadline_seconds=100))
    node.after(50)
    node.boot_id, node.booted_s = "boot-2", node.clock.monotonic_s()
    node.kill_agent()
    node.lives.put(pod(grace_s=30, active_deadline_seconds=100))
    node.after(45)
    assert node.life() is LifeState.SYNCING
    node.after(6)
    assert node.life() is LifeState.FINISHED


def test_a_pod_is_active_for_so_long_and_no_longer() -> None:
    """The deadline does not begin anew with the agent, and is told as the reason."""
    node = Node()
    node.lives.put(pod(active_deadline_seconds=100))
    node.after(60)
    node.kill_agent()
    node.after(39)
    assert node.running() == ["app#0"]
    node.after(2)
    ending = node.record().ending
    assert ending is not None
    assert (ending.kind, ending.reason) == (EndingKind.DEADLINE, "DeadlineExceeded")
    assert (node.running(), node.life()) == ([], LifeState.FINISHED)


def test_an_evicted_pod_is_told_so_and_never_runs_again() -> None:
    """Its source still has it; the reason stands over a killed agent."""
    node = Node()
    node.lives.put(pod())
    node.after(1)
    evicted = Ending(kind=EndingKind.EVICTED, reason="Evicted", message="short of memory", grace_s=0)
    assert node.lives.end("u", evicted)
    node.kill_agent()
    node.lives.end("u", evicted)
    node.lives.put(pod())
    node.lives.heard()
    node.after(5)
    assert (node.life(), node.record().ending, node.running()) == (LifeState.FINISHED, evicted, [])
    assert not node.lives.end("nobody", evicted)


@pytest.mark.parametrize("kind", EndingKind)
@pytest.mark.parametrize("waits", [False, True])
def test_whatever_the_reason_a_pod_that_is_to_end_ends(kind: EndingKind, *, waits: bool) -> None:
    """Also for one that its state does not come to by itself: one that waits, or is known, is no orphan."""
    node = Node()
    static = {"kubernetes.io/config.source": "file"}
    first, second = (pod(uid, name="web", annotations=static) for uid in ("a", "b"))
    node.lives.put(first)
    node.after(1)
    node.lives.put(second)
    node.after(1)
    assert (node.life("a"), node.life("b")) == (LifeState.SYNCING, LifeState.WAITING)
    uid = "b" if waits else "a"
    assert node.lives.end(uid, Ending(kind=kind, grace_s=1))
    node.after(5)
    assert node.life(uid) is LifeState.FINISHED
    assert node.running("a" if waits else "b") == ["app#0"]


def test_an_eviction_is_remembered_with_its_reason() -> None:
    """Nobody says it again to the next agent, and the source still has the pod."""
    node = Node()
    node.lives.put(pod())
    node.lives.heard()
    node.after(1)
    evicted = Ending(kind=EndingKind.EVICTED, reason="Evicted", message="short of memory", grace_s=20)
    node.lives.end("u", evicted)
    node.executor.held.add("stop")
    node.after(0.5)
    deadline_s = node.record().deadline_s
    node.kill_agent()
    node.lives.put(pod())
    node.lives.heard()
    node.after(5)
    assert (node.life(), node.record().ending, node.running()) == (LifeState.FINISHED, evicted, [])
    assert node.record().deadline_s == deadline_s


def test_a_deleted_pod_ends_with_the_grace_of_its_deletion() -> None:
    """Zero is a grace; for the kubelet it is not set, and becomes a second, and two for the container."""
    for rules, given_s in ((Rules(), 0.0), (KUBELET, 2.0)):
        node = Node(rules=rules)
        node.lives.put(pod())
        node.after(1)
        deleted = attrs.evolve(pod(), deletion_timestamp="now", deletion_grace_period_seconds=0)
        node.lives.put(deleted)
        node.after(1)
        assert [grace_s for _, grace_s in node.stops] == [given_s]


def test_static_pods_of_one_name_wait_for_one_another() -> None:
    """The next one starts when nothing of the one before is left, though the agent is killed meanwhile."""
    marks = {"kubernetes.io/config.source": "file"}
    first, second, third = (pod(uid, name="web", annotations=marks) for uid in "abc")
    node = Node()
    for one in (first, second, third):
        node.lives.put(one)
    node.after(1)
    assert [node.running(uid) for uid in "abc"] == [["app#0"], [], []]
    waits = node.record("b").waits_for
    assert waits is not None
    assert waits.blocker == "a"
    node.executor.held.add("stop")
    node.lives.remove("a")
    node.lives.remove("b")
    node.after(1)
    node.kill_agent()
    node.lives.put(third)
    node.lives.heard()
    node.after(2)
    assert [node.running(uid) for uid in "abc"] == [[], [], ["app#0"]]
    assert "b" not in node.lives.pods


def test_a_static_pod_that_is_done_gives_up_its_name() -> None:
    """Its file may stay: the next pod of its name runs."""
    marks = {"kubernetes.io/config.source": "file"}
    node = Node()
    node.lives.put(pod("a", name="web", annotations=marks, policy=RestartPolicy.NEVER))
    node.after(1)
    node.lives.put(pod("b", name="web", annotations=marks))
    node.exit("app", 0, "a")
    node.after(2)
    assert (node.life("a"), node.running("b")) == (LifeState.FINISHED, ["app#0"])


def test_what_only_the_runtime_knows_ends_once_every_source_was_heard() -> None:
    """Before that nothing is ended; then it gets a grace like any other."""
    node = Node()
    box = SandboxConfig(pod=PodIdentity(uid="x", namespace="default", name="old"), hostname="old")
    sandbox = node.runtime.run_sandbox(box)
    made = node.runtime.create_container(sandbox, ContainerConfig(name="app", image="busybox"), box)
    node.runtime.start_container(made)
    node.after(60)
    assert node.running("x") == ["app#0"]
    node.lives.heard()
    node.after(3)
    assert (node.running("x"), [grace_s > 2 for _, grace_s in node.stops]) == ([], [True])
    assert node.runtime.inspect("x").sandboxes == ()
    assert "x" not in node.lives.wanted


def test_remembered_pods_run_until_every_source_was_heard() -> None:
    """An agent that starts slowly ends nothing; who is wanted no more ends with its own grace and hooks."""
    node = Node()
    node.lives.put(pod(containers=[HOOKED]))
    node.after(1)
    node.kill_agent()
    node.after(30)
    node.exit("app", 1)
    node.after(1)
    assert node.running() == ["app#1"]
    node.lives.heard()
    node.after(1)
    assert len(node.hooks.calls) == 1
    assert "u" not in node.lives.pods


def test_a_pod_that_ended_before_this_node_knew_of_it_is_not_started() -> None:
    """Its phase is final and nothing of it runs."""
    node = Node()
    node.lives.put(attrs.evolve(pod(), status={"phase": "Failed"}))
    node.after(1)
    assert (node.calls(), node.life()) == ([], LifeState.FINISHED)


def test_what_comes_back_under_a_uid_that_ends_does_not_run() -> None:
    """Removed and put again, it goes on ending; when nothing is left it stays finished while it is wanted."""
    node = Node()
    node.lives.put(pod())
    node.after(1)
    node.lives.remove("u")
    node.settle()
    node.lives.put(pod())
    node.after(5)
    assert (node.running(), node.life()) == ([], LifeState.FINISHED)


def test_nothing_starts_in_a_pod_that_ends() -> None:
    """A container that dies while its pod ends stays dead."""
    node = Node()
    node.lives.put(pod(containers=[APP, attrs.evolve(HOOKED, name="slow")]))
    node.after(1)
    node.executor.held.add("pre-stop")
    node.lives.remove("u")
    node.after(1)
    started = [one for one in node.calls() if one.startswith("start_container")]
    node.after(5)
    assert [one for one in node.calls() if one.startswith("start_container")] == started
    assert node.running() == ["slow#0"]


def test_a_part_that_cannot_be_taken_back_yet_is_asked_again() -> None:
    """It shows as what is waited for; the record stays until it is done."""
    busy = NotYet(blocker="cgroup", message="a process is left", after_s=1)
    part = FakePreparer(blocks=lambda _: busy)
    node = Node(preparations=[Preparation(name="cgroup", why="", by=part)])
    node.lives.put(pod())
    node.after(1)
    node.lives.remove("u")
    node.after(5)
    facts = node.lives.facts.get("u")
    assert facts is not None
    assert (facts.life, facts.waits_for) == (LifeState.TERMINATED, busy)
    part.blocks = lambda _: None
    node.after(5)
    assert "u" not in node.lives.pods


def test_a_start_whose_answer_was_lost_has_its_grace_too() -> None:
    """Until a listing shows what came of it the sandbox stays: its end would leave the container no time."""
    node = Node()
    start, listing = node.runtime.start_container, node.runtime.listing

    def lost(container_id: str, /) -> None:
        start(container_id)
        raise AnswerLostError("start_container", "deadline exceeded")

    def away() -> Listing:
        raise RuntimeUnavailableError("listing", "as the test says")

    node.runtime.start_container = lost  # type: ignore[method-assign]
    node.lives.put(pod(grace_s=30))
    node.executor.held.add("start")
    node.after(1)
    node.runtime.listing = away  # type: ignore[method-assign]
    node.executor.held.clear()
    node.executor.parked.pop()()
    node.after(1)
    node.lives.remove("u")
    node.after(5)
    assert node.running() == ["app#0"]
    node.runtime.listing = listing  # type: ignore[method-assign]
    node.after(5)
    ((_, grace_s),) = node.stops
    assert 10 < grace_s <= 26
    assert node.containers() == []


def test_a_start_that_nobody_can_ask_about_keeps_its_pod_until_its_deadline_alone() -> None:
    """Where no listing comes the sandbox goes when the time is over."""
    node = Node()
    node.lives.put(pod(grace_s=10))
    node.executor.held.add("start")
    node.after(1)
    node.runtime.fail("start_container", AnswerLostError("start_container", "deadline exceeded"))
    node.runtime.fail("listing", RuntimeUnavailableError("listing", "as the test says"), times=500)
    node.executor.held.clear()
    node.executor.parked.pop()()
    node.lives.remove("u")
    node.after(8)
    assert not [one for one in node.calls() if one.startswith("stop_sandbox")]
    node.after(4)
    assert [one for one in node.calls() if one.startswith("stop_sandbox")]


@attrs.frozen
class Known:
    """What others were told of a pod."""

    was_told: bool
    is_told_unready: bool
    is_over: bool = False


class Waiting(Node):
    """A node on which others are told of pods."""

    def __init__(self) -> None:
        self.told: World[str, LifeTold] = World("told")
        self.others_told = self.told
        super().__init__()


@pytest.mark.parametrize("before", [None, Known(was_told=False, is_told_unready=False)])
def test_a_pod_of_which_nothing_was_told_waits_as_well(before: Known | None) -> None:
    """Somebody may just be telling that it is ready: it is asked to end after that, or in a second."""
    node = Waiting()
    node.lives.put(pod(grace_s=30))
    node.after(1)
    if before is not None:
        node.told.put("u", before)
    node.lives.remove("u")
    node.after(0.5)
    assert node.stops == []
    node.told.put("u", Known(was_told=True, is_told_unready=True))
    node.after(0.1)
    assert len(node.stops) == 1


@pytest.mark.parametrize("life", [LifeState.SYNCING, LifeState.TERMINATING])
def test_a_hook_that_was_called_off_for_the_end_is_no_reason_to_stop_sooner(life: LifeState) -> None:
    """Its container had been told to be ready, and was asked to end before anybody heard that it is not."""
    record = PodRecord(pod=pod(containers=[APP])).but(life=life)
    step = Step(scope=("pod", "u"), verb="post-start", detail=Hook(HookKind.POST_START, "app", "c"))
    why = StartFailure(reason="PostStartHookError", message="it was called off")
    after = settle(record, step, Done(Acted(failure=why)), rules=Rules(), awaited=0)
    assert after is not None
    assert list(after.stopping) == (["c"] if life is LifeState.SYNCING else [])
    assert after.post_start["c"] is HookState.FAILED


def test_a_hook_goes_on_while_something_else_is_told_of_its_pod() -> None:
    """A sibling has ended, or the agent was started anew: that is on its way, and called the hook off."""
    node = Waiting()
    node.lives.put(pod(containers=[HOOKED], grace_s=30))
    node.after(1)
    node.executor.held.add("pre-stop")
    node.told.put("u", Known(was_told=True, is_told_unready=True))
    node.lives.remove("u")
    node.after(0.2)
    (hook,) = node.executor.hanging
    node.told.put("u", Known(was_told=True, is_told_unready=False))
    node.after(0.2)
    assert not hook.cancel.is_set()
    node.after(10)
    assert not hook.cancel.is_set()
    assert node.stops == []


def test_a_sidecar_waits_for_what_may_have_started() -> None:
    """The answer of the start was lost, and nobody can look: it is told when its own time begins."""
    side = attrs.evolve(APP, name="proxy", restartable=True)
    record = PodRecord(pod=pod(init_containers=(side,)))
    runs = ContainerRecord(
        id="c-1", pod=PodIdentity.of(record.pod), name="proxy", sandbox_id="s", state=RunState.RUNNING
    )
    due = Due(record=runs, deadline_s=100.0, grace_s=30.0, after=("app",))
    asked = partial(steps_to_stop, "u", record, [due], policy=LifePolicy(), rules=Rules())
    assert [one.verb for one in asked(now_s=80.0).steps] == ["stop"]
    waits = asked(now_s=80.0, doubtful=("app",))
    assert (waits.steps, waits.again_at_s) == ((), 98.0)
    assert [one.verb for one in asked(now_s=98.0, doubtful=("app",)).steps] == ["stop"]


def test_a_sidecar_waits_for_a_start_that_is_under_way() -> None:
    """A listing came while the call ran: it shows nothing that runs, and the call may start it yet."""
    side = attrs.evolve(APP, name="proxy", restartable=True)
    starting = Starting(attempt=0, sandbox_id="s")
    record = PodRecord(
        pod=pod(init_containers=(side,)), starting={"app": starting}, deadline_s=100.0, grace_s=30.0
    )
    runs = ContainerRecord(
        id="c-1", pod=PodIdentity.of(record.pod), name="proxy", sandbox_id="s", state=RunState.RUNNING
    )
    report = PodReport(uid="u", containers=(ContainerReport(record=runs),))
    asked = partial(
        end,
        "u",
        record,
        Observed(report=report, is_current=True, is_shown=True),
        waits_until_s=None,
        now_s=80.0,
        policy=LifePolicy(),
        rules=Rules(),
    )
    assert [one.verb for one in asked(is_busy=False).steps] == ["stop"]
    waits = asked(is_busy=True)
    assert (waits.steps, waits.again_at_s) == ((), 98.0)
