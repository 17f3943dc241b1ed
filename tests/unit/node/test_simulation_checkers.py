"""Checkers of the simulated node's guarantees: what they refuse, and what they have to let pass."""

from __future__ import annotations

import contextlib
import random

import attrs
import pytest

from nodealloc.podfacts import (
    ConditionStatus,
    ContainerRunning,
    ContainerStatus,
    ContainerTerminated,
    ContainerWaiting,
    Exited,
    PodCondition,
    PodIdentity,
    PodPhase,
    PodStatus,
)
from nodealloc.podspec import (
    Container,
    ExecAction,
    Pod,
    Probe,
    Quantity,
    RestartPolicy,
    Volume,
    VolumeUse,
)
from nodealloc.runtime import RuntimeRefusedError, SandboxConfig
from nodealloc.testing.simulation import SimulatedClock
from nodealloc.testing.simulation.node import Deletion, Environment, Event, Ran, What
from nodealloc.testing.simulation.node._behaviour import Behaviour
from nodealloc.testing.simulation.node._duties import RestartsCome, StoppedStartAgain
from nodealloc.testing.simulation.node._editing import EditsTakeNothing
from nodealloc.testing.simulation.node._ending import GraceIsGiven, UnwellGo
from nodealloc.testing.simulation.node._environment import API, FILE
from nodealloc.testing.simulation.node._hanging import MountsInTime
from nodealloc.testing.simulation.node._in_time import EndsInTime
from nodealloc.testing.simulation.node._names import OneOfAName
from nodealloc.testing.simulation.node._pods import LIVE, POST_START, PRE_STOP, STARTED
from nodealloc.testing.simulation.node._preempting import VictimsAreNeeded
from nodealloc.testing.simulation.node._readiness import ReadinessStands, ReadyFallsFirst
from nodealloc.testing.simulation.node._refusals import GoesOn, RefusalsAreTrue
from nodealloc.testing.simulation.node._running import (
    AttemptsOnce,
    FinishedStays,
    InitOnce,
    NothingWithoutReason,
    OneDeadline,
)
from nodealloc.testing.simulation.node._slowness import StartupFirst
from nodealloc.testing.simulation.node._stated import StartsAreCounted
from nodealloc.testing.simulation.node._when_quiet import OneSandbox
from tests.unit.node.simulated_scene import APP, Scene

GPU = "sim.example/gpu"
RUNS = ContainerStatus(name="app", state=ContainerRunning())
ASKED_TO_END = Event(what=What.SIGNALLED, at_s=0.0, uid="u", name="app", id="c", value=0.0)


def environment(own_s: int) -> Environment:
    """A node with a pod of that grace, whose deletion within 10 s was asked for now."""
    made = Environment(SimulatedClock(), random.Random(1))
    made.known["u"] = Pod(
        uid="u",
        name="u",
        namespace="n",
        containers=(Container(name="app", image="busybox"),),
        termination_grace_period_seconds=own_s,
    )
    made.deletions["u"] = Deletion(at_s=0.0, passed_s=0.0, grace_s=10.0)
    return made


def test_who_is_asked_to_end_has_the_time_that_was_given() -> None:
    """At once is too soon where both the pod and its deletion leave time."""
    with pytest.raises(AssertionError, match=r"u/app gets 0 s to end, and 5\.0 s of the pod's are left"):
        GraceIsGiven(environment(own_s=5)).heard(ASKED_TO_END)
    GraceIsGiven(environment(own_s=5)).heard(attrs.evolve(ASKED_TO_END, value=5.0))


def test_a_pod_that_ended_by_itself_has_its_own_grace_and_no_more() -> None:
    """Its deletion, with a longer one, was asked for before the agent read of it."""
    GraceIsGiven(environment(own_s=0)).heard(ASKED_TO_END)


def test_a_pod_that_ended_while_a_container_was_being_started_leaves_it_less() -> None:
    """What that call took may have passed of the pod's own time; where the call was short, nothing has."""
    ends = attrs.evolve(ASKED_TO_END, value=3.0)
    for asked_s, fits in ((-2.0, True), (0.0, False)):
        checker = GraceIsGiven(environment(own_s=5))
        checker.heard(attrs.evolve(ends, what=What.STARTED, value=None, asked_s=asked_s))
        with contextlib.nullcontext() if fits else pytest.raises(AssertionError, match="gets 3 s to end"):
            checker.heard(ends)


class OneRuns(ReadinessStands):
    """The checker, with one container that runs all the time."""

    def serving(self, uid: str) -> set[str]:
        """Its id."""
        return {"c"} if uid else set()


def told(status: ConditionStatus) -> Event:
    """Somebody is told whether the pod is ready."""
    condition = PodCondition(type="Ready", status=status)
    return Event(what=What.TOLD, at_s=1.0, uid="u", value=PodStatus(conditions=(condition,)))


def ran(came_of_it: str) -> Event:
    """A probe of its container was answered."""
    return Event(what=What.RAN, at_s=1.0, uid="u", name="app", id="c", value=Ran("ready", came_of_it))


def test_readiness_stands_while_probes_pass() -> None:
    """Nothing failed and nothing ended; a probe that passed again counts as one that never failed."""
    checker = OneRuns(environment(own_s=5))
    checker.environment.deletions.clear()
    for event in (ran("1"), ran("0"), told(ConditionStatus.TRUE)):
        checker.heard(event)
    with pytest.raises(AssertionError, match="u is told to be not ready, and its containers run as before"):
        checker.heard(told(ConditionStatus.FALSE))


@pytest.mark.parametrize("comes_first", [True, False])
@pytest.mark.parametrize("why", [What.SIGNALLED, What.DOUBLED, What.SANDBOX_ENDED])
def test_what_was_told_of_who_has_to_end_may_be_taken_back(why: What, *, comes_first: bool) -> None:
    """Its sandbox, or what it was made from, is another one: it runs, and not for long."""
    checker = OneRuns(environment(own_s=5))
    checker.environment.deletions.clear()
    ready, has_to_end = told(ConditionStatus.TRUE), attrs.evolve(ASKED_TO_END, what=why)
    for event in (has_to_end, ready) if comes_first else (ready, has_to_end):
        checker.heard(event)
    checker.heard(told(ConditionStatus.FALSE))


def test_what_was_told_while_a_probe_just_failed_may_be_taken_back() -> None:
    """Whoever told that it is ready had not heard of the failure yet."""
    checker = OneRuns(environment(own_s=5))
    checker.environment.deletions.clear()
    for event in (ran("0"), ran("1"), told(ConditionStatus.TRUE), told(ConditionStatus.FALSE)):
        checker.heard(event)


def test_a_pod_that_restarts_comes_to_no_end_without_a_reason() -> None:
    """With a reason it was refused, or made room; one that was sent away may end in any way."""
    node = environment(own_s=5)
    node.pods[API]["u"] = attrs.evolve(node.known["u"], restart_policy=RestartPolicy.ON_FAILURE)
    failed = Event(what=What.TOLD, at_s=1.0, uid="u", value=PodStatus(phase=PodPhase.FAILED))
    checker = GoesOn(node)
    checker.heard(failed)
    node.deletions.clear()
    checker.heard(attrs.evolve(failed, value=PodStatus(phase=PodPhase.FAILED, reason="Evicted")))
    checker.heard(attrs.evolve(failed, value=PodStatus(phase=PodPhase.SUCCEEDED)))
    with pytest.raises(AssertionError, match=r"u is told to be .*, and its policy is OnFailure"):
        checker.heard(failed)


def vanished(scene: Scene, *between: What) -> AttemptsOnce:
    """What listens, after a start whose record went at once and what happened besides."""
    checker, counts = AttemptsOnce(scene.environment), StartsAreCounted(scene.environment)
    scene.environment.events.listen(checker.heard)
    scene.environment.events.listen(counts.heard)
    scene.wants()
    made = scene.runs()
    happens = {
        What.FORGOT: lambda: scene.environment.containers.vanish(made),
        What.REMOVED: lambda: scene.environment.containers.remove_container(made),
        What.TOLD: lambda: scene.told(containers=[RUNS]),
        What.KILLED: lambda: scene.happens(What.KILLED),
    }
    for what in between:
        happens[what]()
    scene.runs()
    scene.told(containers=[RUNS])
    counts.settled()
    return checker


@pytest.mark.parametrize("between", [(What.FORGOT, What.KILLED), (What.KILLED, What.FORGOT)])
def test_a_start_of_which_nobody_can_know_may_be_made_again(between: tuple[What, ...]) -> None:
    """Its record is gone, and so is the process that made it, before either was told of.

    Seed 2117766606 of the example agent found it, under a checker that asked for another number.
    """
    checker = vanished(Scene(), *between)
    assert len(checker.starts["u", "app"]) == 1


@pytest.mark.parametrize(
    "between",
    [
        (What.FORGOT,),
        (What.KILLED, What.REMOVED),
        (What.TOLD, What.FORGOT, What.KILLED),
        (What.TOLD, What.KILLED, What.FORGOT),
    ],
)
def test_a_start_of_which_somebody_knows_is_not_made_again(between: tuple[What, ...]) -> None:
    """The process that made it lives, it took the record away itself, or it was told of."""
    with pytest.raises(AssertionError, match=r"attempt 0 of u/app starts again"):
        vanished(Scene(), *between)


@pytest.mark.parametrize("is_seen", [False, True])
def test_a_start_before_the_first_agent_is_known_once_an_agent_is_told_of_it(is_seen: bool) -> None:
    """Somebody else started it, and it was gone before that: seed 1179335973 found it."""
    scene = Scene()
    checker = AttemptsOnce(scene.environment)
    scene.environment.events.listen(checker.heard)
    scene.wants()
    containers = scene.environment.containers
    made = scene.runs()
    containers.unseen.add(made)
    if is_seen:
        containers.inspect("u")
    containers.vanish(made)
    with pytest.raises(AssertionError, match="starts again") if is_seen else contextlib.nullcontext():
        scene.runs()


@pytest.mark.parametrize("ended", [0, 1])
def test_the_count_of_one_that_waits_says_nothing_of_whether_it_ran(ended: int) -> None:
    """A restart counts from when it was decided; it ran where its end is told."""
    scene = Scene()
    scene.environment.events.listen(AttemptsOnce(scene.environment).heard)
    scene.wants()
    made = [scene.runs()]
    scene.crashes(made[0])
    made.append(scene.runs(attempt=1))
    last = ContainerTerminated(exit=Exited(code=7), container_id=f"sim://{made[ended]}")
    waits = ContainerStatus(name="app", state=ContainerWaiting(), restart_count=1, last_state=last)
    scene.told(containers=[waits])
    scene.environment.containers.vanish(made[1])
    scene.happens(What.KILLED)
    with pytest.raises(AssertionError, match="starts again") if ended else contextlib.nullcontext():
        scene.runs(attempt=1)


@pytest.mark.parametrize("is_killed", [True, False])
def test_a_restarted_agent_keeps_a_moment_for_who_may_not_have_heard(is_killed: bool) -> None:
    """Two seconds after a call that failed, where 1.6 s are left of what one that was killed had said."""
    scene = Scene()
    scene.environment.events.listen(OneDeadline(scene.environment).heard)
    scene.wants()
    made = scene.runs()
    scene.deleted(grace_s=5.0)
    scene.ends(made, 4.7)
    scene.clock.advance(3.1)
    if is_killed:
        scene.happens(What.KILLED)
        scene.ends(made, 2.0)
        return
    with pytest.raises(AssertionError, match=r"u/app gets 2 s to end, and 1\.6 s are left of what the pod's"):
        scene.ends(made, 2.0)


def test_a_restart_waits_for_the_hook_of_another_container() -> None:
    """Nothing else of a pod starts while a post-start hook runs; ten seconds after that it has to."""
    scene = Scene()
    scene.environment.only_ends = True
    scene.environment.events.listen(RestartsCome(scene.environment).heard)
    scene.wants(containers=(APP, attrs.evolve(APP, name="slow")))
    ended, slow = scene.runs(), scene.runs(name="slow")
    scene.environment.containers._behaviours[slow] = Behaviour(
        runs_s=100.0, code=0, leaves_s=1.0, hooks_s=((POST_START, 20.0),)
    )
    scene.crashes(ended)
    scene.happens(What.RAN, uid="u", name="slow", id=slow, value=Ran(POST_START, "0"))
    scene.clock.advance(29.0)
    scene.wants("v")
    scene.clock.advance(2.0)
    with pytest.raises(AssertionError, match="u/app has ended, its wait is over, and 11 s later it does not"):
        scene.wants("w")


@pytest.mark.parametrize("asked_s", [0.0, 200.0])
def test_a_sandbox_that_nobody_waits_for_any_more_may_come_beside_a_namesake(asked_s: float) -> None:
    """Its call hung for so long that its pod was given up, and another one has the name (seed 1584895182)."""
    scene = Scene()
    scene.environment.events.listen(OneOfAName(scene.environment).heard)
    for uid in ("u", "v"):
        scene.wants(uid, name="web")
    scene.clock.advance(200.0)
    scene.runs("v")
    config = SandboxConfig(pod=PodIdentity.of(scene.environment.known["u"]), hostname="u")
    with pytest.raises(AssertionError, match="had the name web") if asked_s else contextlib.nullcontext():
        scene.environment.containers.run_sandbox(config, asked_s=asked_s)


@pytest.mark.parametrize("phase", [PodPhase.RUNNING, PodPhase.FAILED])
def test_what_others_made_of_a_pod_that_is_over_stays_where_nothing_runs_in_it(phase: PodPhase) -> None:
    """Also beside another sandbox that the runtime has of it (seed 1584895187)."""
    scene = Scene()
    scene.wants()
    scene.told(phase)
    pod = PodIdentity.of(scene.environment.known["u"])
    scene.environment.containers.intrude(pod, "strange")
    scene.environment.containers.run_sandbox(SandboxConfig(pod=pod, hostname="u", attempt=1))
    goes_on = phase is PodPhase.RUNNING
    with pytest.raises(AssertionError, match="several sandboxes") if goes_on else contextlib.nullcontext():
        OneSandbox(scene.environment).settled()


def test_an_overdue_pod_may_have_been_ending_since_an_earlier_life() -> None:
    """That was killed as soon as it had stored so; its time was over by the next one (seed 7770031)."""
    scene = Scene()
    scene.environment.events.listen(ReadyFallsFirst(scene.environment).heard)
    scene.wants(active_deadline_seconds=20)
    made = scene.runs()
    scene.told(ready=True)
    for away_s in (60.0, 8.0):
        scene.clock.advance(0.01)
        killed_s = scene.clock.awake_s
        scene.clock.advance(away_s)
        scene.environment.reads.began_anew(killed_s)
        scene.happens(What.KILLED)
    scene.deleted(grace_s=10.0)
    scene.clock.advance(0.2)
    scene.ends(made, 0.0)


@pytest.mark.parametrize(
    ("over_s", "alive_s", "is_heard"), [(1.5, 99.0, True), (0.5, 99.0, False), (30.0, 0.5, False)]
)
def test_an_end_by_a_pods_own_deadline_begins_before_its_deletion_is_read(
    over_s: float, alive_s: float, is_heard: bool
) -> None:
    """Others may be told for a second from then, or from the agent's start, that it is not ready."""
    scene = Scene()
    scene.environment.events.listen(ReadyFallsFirst(scene.environment).heard)
    scene.wants(active_deadline_seconds=20)
    made = scene.runs()
    scene.told(ready=True)
    scene.clock.advance(20.0 + over_s)
    scene.environment.reads.alive_since_s = max(0.0, scene.clock.awake_s - alive_s)
    scene.deleted(grace_s=30.0)
    with contextlib.nullcontext() if is_heard else pytest.raises(AssertionError, match="told to be ready"):
        scene.ends(made, 29.0)


@pytest.mark.parametrize("was_asked", [True, False])
def test_who_has_made_room_is_asked_again_though_it_is_told_to_be_ready(was_asked: bool) -> None:
    """Whoever is told hangs, the wait for it is over, and its deletion leaves less time."""
    scene = Scene()
    scene.environment.events.listen(ReadyFallsFirst(scene.environment).heard)
    scene.wants()
    made = scene.runs()
    scene.told(ready=True)
    if was_asked:
        scene.ends(made, 29.0)
    scene.deleted(grace_s=20.0)
    scene.clock.advance(0.2)
    with contextlib.nullcontext() if was_asked else pytest.raises(AssertionError, match="told to be ready"):
        scene.ends(made, 19.8)


@pytest.mark.parametrize("comes", ["", "now", "is heard of now"])
def test_who_comes_meanwhile_may_make_another_victim_needed(comes: str) -> None:
    """The first one that was chosen would have stayed, had the second been chosen at once: nobody knew.

    Also where the source is not followed: all that came since it was read comes at once (seed 1031541756).
    """
    scene = Scene()
    scene.environment.only_ends = True
    scene.environment.events.listen(VictimsAreNeeded(scene.environment).heard)
    asked = {"small": "2", "large": "3", "other": "1", "critical": "3"}
    for uid, cpus in asked.items():
        scene.clock.advance(5.0)
        scene.wants(uid, attrs.evolve(APP, requests={"cpu": Quantity.parse(cpus)}))
    if comes == "now":
        scene.told(uid="small", victim=True)
    new = attrs.evolve(APP, requests={"cpu": Quantity.parse("200m")})
    if comes:
        scene.wants("new", new)
    if comes != "now":
        scene.clock.advance(20.0)
        scene.told(uid="small", victim=True)
    if comes == "is heard of now":
        scene.told(uid="critical")
        scene.told(uid="new")
    with contextlib.nullcontext() if comes else pytest.raises(AssertionError, match="makes room, and with"):
        scene.told(uid="large", victim=True)


@pytest.mark.parametrize("was_there", [True, False])
def test_a_refusal_may_be_told_of_when_its_reason_is_gone(was_there: bool) -> None:
    """Whoever told of it waited for a call that hung: what was there since the pod was wanted counts."""
    scene, asks = Scene(), attrs.evolve(APP, requests={"cpu": Quantity.of(5), "memory": Quantity()})
    scene.environment.events.listen(RefusalsAreTrue(scene.environment).heard)
    scene.wants("old", asks)
    scene.clock.advance(5.0)
    if was_there:
        scene.wants("new", asks)
    scene.clock.advance(1.0)
    scene.environment.gone.add("old")
    scene.happens(What.GONE, uid="old")
    scene.clock.advance(5.0)
    if not was_there:
        scene.wants("new", asks)
    with contextlib.nullcontext() if was_there else pytest.raises(AssertionError, match="new is refused"):
        scene.told(PodPhase.FAILED, "new", reason="OutOfcpu")


def asking(devices: int) -> Container:
    """A container without CPUs of its own that has devices."""
    amounts = {GPU: Quantity.of(devices), "memory": Quantity()}
    return attrs.evolve(APP, requests={**amounts, "cpu": Quantity()}, limits={GPU: Quantity.of(devices)})


@pytest.mark.parametrize("asked", [1, 2])
@pytest.mark.parametrize("why", ["none", "held", "ill", "a little ill", "gone", "no cpus"])
def test_devices_that_are_there_are_refused_to_nobody(why: str, asked: int) -> None:
    """What others may hold, or may have been ill, counts; an absence of minutes may be taken for an end."""
    scene = Scene()
    scene.environment.events.listen(RefusalsAreTrue(scene.environment).heard)
    scene.environment.plugins._left_s[GPU] = 0.0
    scene.clock.advance(300.0 if why == "gone" else 100.0)
    for number in range(2 if why == "held" else 0):
        scene.wants(f"old-{number}", asking(2))
    for number in range({"ill": 4, "a little ill": 1}.get(why, 0)):
        scene.happens(What.DEVICE, id=f"gpu-{number}", value="False")
    if why == "ill":
        scene.happens(What.DEVICE, id="gpu-0", value="True")
    scene.wants("new", asking(asked))
    is_right = why in {"held", "ill", "gone", "no cpus"}
    with contextlib.nullcontext() if is_right else pytest.raises(AssertionError, match=f"for {asked} {GPU}"):
        scene.told(PodPhase.FAILED, "new", reason="OutOfcpu" if why == "no cpus" else "TopologyAffinityError")


@pytest.mark.parametrize(("held", "is_right"), [(3, False), (4, True)])
def test_devices_of_an_init_container_that_ended_are_there_for_the_next(*, held: int, is_right: bool) -> None:
    """A pod of three init containers and a main one that ask for a device each comes in with one."""
    scene = Scene()
    scene.environment.events.listen(RefusalsAreTrue(scene.environment).heard)
    scene.environment.plugins._left_s[GPU] = 0.0
    scene.clock.advance(100.0)
    inits = tuple(attrs.evolve(asking(1), name=f"init-{number}") for number in range(3))
    for number in range(held):
        scene.wants(f"old-{number}", asking(1), init_containers=inits)
    scene.wants("new", asking(1), init_containers=inits)
    with contextlib.nullcontext() if is_right else pytest.raises(AssertionError, match=f"for 1 {GPU}"):
        scene.told(PodPhase.FAILED, "new", reason="UnexpectedAdmissionError")


@pytest.mark.parametrize("after_s", [5.0, 7.0])
def test_who_begins_late_is_asked_to_end_soon_after_that(after_s: float) -> None:
    """Its start was asked for before its pod was overdue, and took long."""
    scene = Scene()
    scene.environment.only_ends = True
    scene.environment.events.listen(EndsInTime(scene.environment).heard)
    scene.wants(active_deadline_seconds=20)
    scene.runs()
    scene.clock.advance(25.5)
    scene.happens(What.STARTED, uid="u", name="app", id="late")
    scene.clock.advance(after_s)
    with contextlib.nullcontext() if after_s < 6.0 else pytest.raises(AssertionError, match="longer than"):
        scene.wants("v")


@pytest.mark.parametrize("is_asked", [True, False])
def test_a_sidecar_is_asked_when_what_it_serves_has_ended(*, is_asked: bool) -> None:
    """Until then another one of its pod was asked; where nobody was, somebody is late."""
    scene = Scene()
    scene.environment.only_ends = True
    scene.environment.events.listen(EndsInTime(scene.environment).heard)
    sidecar = attrs.evolve(APP, name="sidecar", restartable=True)
    scene.wants(init_containers=(sidecar,), active_deadline_seconds=20)
    scene.runs(name="sidecar")
    made = scene.runs()
    scene.clock.advance(19.0)
    if is_asked:
        scene.ends(made, 30.0)
    scene.clock.advance(20.0)
    with contextlib.nullcontext() if is_asked else pytest.raises(AssertionError, match="longer than"):
        scene.crashes(made, 0)


@pytest.mark.parametrize("victim", [True, False])
def test_who_makes_room_for_a_critical_pod_starts_no_more(*, victim: bool) -> None:
    """Who does is told so; that somebody critical waits puts off the restarts of no other pod."""
    scene = Scene()
    scene.environment.only_ends = True
    scene.environment.events.listen(RestartsCome(scene.environment).heard)
    scene.wants()
    scene.crashes(scene.runs())
    critical(scene)
    scene.told(victim=victim)
    scene.clock.advance(11.0)
    words = "u/app has ended, its wait is over, and 11 s later it does not"
    with contextlib.nullcontext() if victim else pytest.raises(AssertionError, match=words):
        scene.wants("v")


def critical(scene: Scene) -> None:
    """A static pod is wanted, which others make room for."""
    environment = scene.environment
    environment.want(FILE, Pod(uid="critical", name="critical", namespace="n", containers=(APP,)))


@pytest.mark.parametrize(
    ("only_ends", "victim", "own_s", "after_s", "is_in", "excused"),
    [
        (False, False, 30, 0.0, False, True),
        (True, False, 30, 0.0, False, False),
        (True, True, 30, 0.0, False, True),
        (True, False, 1, 0.0, False, True),
        (False, False, 30, 100.0, True, True),
        (False, False, 30, 130.0, True, False),
        (True, True, 30, 130.0, True, False),
    ],
)
def test_who_may_have_to_make_room(
    only_ends: bool, victim: bool, own_s: int, after_s: float, *, is_in: bool, excused: bool
) -> None:
    """While a critical pod waits for its sandbox, and a while longer; it is told, where that can be told."""
    scene = Scene()
    scene.environment.only_ends = only_ends
    scene.environment.events.listen(NothingWithoutReason(scene.environment).heard)
    scene.wants(termination_grace_period_seconds=own_s)
    made = scene.runs()
    critical(scene)
    if is_in:
        scene.runs("critical")
    scene.told(victim=victim)
    scene.clock.advance(after_s)
    with contextlib.nullcontext() if excused else pytest.raises(AssertionError, match="and nobody wants"):
        scene.ends(made, 1.0)


@pytest.mark.parametrize("ends", ["goes", "is over"])
def test_a_critical_pod_that_is_gone_or_over_waits_no_more(ends: str) -> None:
    """What was decided for it may be done two minutes later, and nothing else."""
    scene = Scene()
    scene.environment.events.listen(NothingWithoutReason(scene.environment).heard)
    scene.wants()
    made = scene.runs()
    critical(scene)
    if ends == "goes":
        scene.environment.let_go("critical")
    else:
        scene.told(PodPhase.FAILED, "critical", reason="OutOfcpu")
    scene.clock.advance(130.0)
    with pytest.raises(AssertionError, match="and nobody wants"):
        scene.ends(made, 1.0)


@pytest.mark.parametrize("hook", ["0", "timed out"])
def test_who_is_unwell_and_has_a_hook_that_failed_ends_for_either(hook: str) -> None:
    """The probe's grace is asked for where the probe alone ends it."""
    scene = Scene()
    scene.environment.events.listen(UnwellGo(scene.environment).heard)
    probe = Probe(exec=ExecAction(command=(LIVE,)), failure_threshold=1, termination_grace_period_seconds=2)
    scene.wants(container=attrs.evolve(APP, liveness_probe=probe))
    made = scene.runs()
    for command, came_of_it in ((POST_START, hook), (LIVE, "1")):
        scene.happens(What.RAN, uid="u", name="app", id=made, value=Ran(command, came_of_it))
    words = r"u/app is unwell and gets 30.0 s to end; its probe gives \[2\] s"
    with pytest.raises(AssertionError, match=words) if hook == "0" else contextlib.nullcontext():
        scene.ends(made, 30.0)


def ends_by_itself(*, main_ends: bool) -> Scene:
    """A pod of two sidecars, of which one was asked to end twenty seconds ago with all of its thirty."""
    scene = Scene()
    scene.environment.events.listen(GraceIsGiven(scene.environment).heard)
    sidecars = tuple(attrs.evolve(APP, name=name, restartable=True) for name in ("first", "last"))
    scene.wants(init_containers=sidecars, termination_grace_period_seconds=30)
    main, last = scene.runs(), scene.runs(name="last")
    if main_ends:
        scene.crashes(main, 0)
    scene.ends(last, 30.0)
    scene.clock.advance(20.0)
    return scene


@pytest.mark.parametrize(("grace_s", "is_heard"), [(10.0, False), (5.0, True)])
def test_a_deletion_gives_no_more_time_to_who_ends_already(grace_s: float, *, is_heard: bool) -> None:
    """Twenty of the thirty seconds are over that a pod had which came to its end by itself."""
    scene = ends_by_itself(main_ends=True)
    first = scene.runs(name="first")
    scene.deleted(grace_s=30.0)
    words = r"u/first gets 5 s to end, and 10\.0 s of the pod's are left"
    with pytest.raises(AssertionError, match=words) if is_heard else contextlib.nullcontext():
        scene.ends(first, grace_s)


@pytest.mark.parametrize("main_ends", [True, False])
def test_a_pod_that_goes_on_has_all_the_time_of_its_deletion(*, main_ends: bool) -> None:
    """Its main container runs, or it has another sandbox since: that one of it was asked to end is no end."""
    scene = ends_by_itself(main_ends=main_ends)
    if main_ends:
        scene.happens(What.SANDBOX_MADE, uid="u")
    first = scene.runs(name="first")
    scene.deleted(grace_s=30.0)
    with pytest.raises(AssertionError, match=r"u/first gets 10 s to end, and 30\.0 s of the pod's are left"):
        scene.ends(first, 10.0)


@pytest.mark.parametrize("strays", [0, 1])
def test_only_a_call_that_was_begun_twice_asks_again_whether_a_container_has_started(strays: int) -> None:
    """An executor that begins a call by itself may do so after the answer of the first was told."""
    scene = Scene()
    checker = StartupFirst(scene.environment)
    scene.environment.strays = lambda: 0
    scene.environment.events.listen(checker.heard)
    scene.wants(container=attrs.evolve(APP, startup_probe=Probe(exec=ExecAction(command=(STARTED,)))))
    made = scene.runs()
    asked = Event(what=What.RAN, at_s=0.0, uid="u", name="app", id=made, value=Ran(STARTED, "0"))
    checker.heard(asked)
    scene.environment.strays = lambda: strays
    up = ContainerStatus(name="app", state=ContainerRunning(), started=True, container_id=f"sim://{made}")
    scene.environment.tell("u", PodStatus(phase=PodPhase.RUNNING, containers=(up,)))
    scene.environment.strays = lambda: 9
    for _ in range(strays):
        checker.heard(asked)
    with pytest.raises(AssertionError, match="is asked whether it has started, and was told to have"):
        checker.heard(asked)


@pytest.mark.parametrize("probe_fails", [True, False])
def test_who_left_with_0_stays_ended_though_its_probe_failed_after_that(*, probe_fails: bool) -> None:
    """Whoever asked had not heard that it had ended, and heard of one failure more: of nobody that ran."""
    scene = Scene()
    scene.environment.events.listen(FinishedStays(scene.environment).heard)
    probe = Probe(exec=ExecAction(command=(LIVE,)), failure_threshold=2)
    container = attrs.evolve(APP, liveness_probe=probe)
    scene.wants(container=container, restart_policy=RestartPolicy.ON_FAILURE)
    made = scene.runs()
    if probe_fails:
        scene.happens(What.RAN, uid="u", name="app", id=made, value=Ran(LIVE, "1"))
    scene.crashes(made, 0)
    with pytest.raises(RuntimeRefusedError):
        scene.environment.containers.run_command(made, (LIVE,), 1.0)
    with pytest.raises(AssertionError, match="after it succeeded"):
        scene.runs(attempt=1)


@pytest.mark.parametrize("code", [0, 7])
def test_what_was_stopped_for_its_probe_is_due_to_start_again_whatever_it_left_with(code: int) -> None:
    """By its policy alone what leaves with 0 would be done."""
    scene = Scene()
    scene.environment.only_ends = True
    scene.environment.events.listen(RestartsCome(scene.environment).heard)
    probe = Probe(exec=ExecAction(command=(LIVE,)), failure_threshold=1)
    container = attrs.evolve(APP, liveness_probe=probe)
    scene.wants(container=container, restart_policy=RestartPolicy.ON_FAILURE)
    made = scene.runs()
    scene.happens(What.RAN, uid="u", name="app", id=made, value=Ran(LIVE, "1"))
    scene.ends(made, 30.0)
    scene.crashes(made, code)
    scene.clock.advance(11.0)
    with pytest.raises(AssertionError, match="u/app has ended, its wait is over, and 11 s later it does not"):
        scene.wants("v")


def test_under_never_nothing_starts_again_once_the_power_went() -> None:
    """Another image is wanted of a container that ended for it, and its sandbox goes before it starts."""
    scene = Scene()
    checker = StoppedStartAgain(scene.environment)
    scene.environment.events.listen(checker.heard)
    scene.wants(restart_policy=RestartPolicy.NEVER)
    made = scene.runs()
    other = attrs.evolve(APP, image="busybox:2")
    scene.environment.edit(attrs.evolve(scene.environment.known["u"], containers=(other,)), "app")
    scene.ends(made, 0.0)
    with pytest.raises(AssertionError, match="does not start again"):
        checker.settled()
    scene.environment.power_cut()
    checker.settled()


@pytest.mark.parametrize(
    ("what", "value"),
    [(What.HUNG, "stop_container"), (What.FAILED, "stop_container"), (What.RAN, Ran(PRE_STOP, "0"))],
)
def test_who_succeeds_while_it_is_about_to_be_stopped_may_start_again(what: What, value: object) -> None:
    """Whoever stopped it to start again had asked for its end before it came by itself."""
    scene = Scene()
    scene.environment.events.listen(FinishedStays(scene.environment).heard)
    scene.wants(restart_policy=RestartPolicy.ON_FAILURE)
    made = scene.runs()
    scene.happens(what, uid="u", name="app", id=made, value=value)
    scene.crashes(made, 0)
    made = scene.runs(attempt=1)
    scene.crashes(made, 0)
    with pytest.raises(AssertionError, match="starts again after it succeeded"):
        scene.runs(attempt=2)


def test_nobody_waits_for_a_volume_that_an_edit_put_in_or_took_out() -> None:
    """It may have been read a moment ago, and what no container uses is never mounted (seed 628620282)."""
    scene = Scene()
    scene.environment.only_hangs = True
    scene.environment.events.listen(MountsInTime(scene.environment).heard)
    shared, own = (VolumeUse(name=one, path=f"/{one}") for one in ("shared", "own"))
    app = attrs.evolve(APP, volumes=(shared,))
    volumes = tuple(Volume(name=one, kind="emptyDir") for one in ("shared", "own"))
    scene.wants(container=app, volumes=volumes[:1])
    scene.happens(What.MOUNTED, uid="u", id="disk/u/shared")
    for uses in ((shared, own), (shared,)):
        changed = attrs.evolve(app, volumes=uses)
        scene.environment.edit(
            attrs.evolve(scene.environment.known["u"], containers=(changed,), volumes=volumes), "a volume"
        )
    scene.clock.advance(61.0)
    scene.wants("v")


@pytest.mark.parametrize("makes_room", [False, True])
def test_who_makes_room_ends_though_its_edit_may_not_come_in(*, makes_room: bool) -> None:
    """A critical pod waits for what it has (seed 2081580038)."""
    scene = Scene()
    scene.environment.is_aligned = True
    scene.environment.events.listen(EditsTakeNothing(scene.environment).heard)
    own = {"cpu": Quantity.of(1), "memory": Quantity.of(1 << 26)}
    scene.wants(container=attrs.evolve(APP, requests=own, limits=own))
    made = scene.runs()
    more = {**own, "cpu": Quantity.of(2)}
    other = attrs.evolve(APP, image="busybox:2", requests=more, limits=more)
    scene.environment.edit(attrs.evolve(scene.environment.known["u"], containers=(other,)), "2 cpu")
    if makes_room:
        critical(scene)
    with contextlib.nullcontext() if makes_room else pytest.raises(AssertionError, match="may not come in"):
        scene.ends(made, 1.0)


@pytest.mark.parametrize("attempt", [0, 1])
def test_a_status_that_tells_of_the_instance_before_says_nothing_of_the_one_that_runs(attempt: int) -> None:
    """The news of its end is on its way (seed 620039)."""
    scene = Scene()
    scene.environment.events.listen(ReadinessStands(scene.environment).heard)
    scene.wants()
    scene.crashes(scene.runs())
    scene.runs(attempt=1)
    scene.told(ready=True, containers=[attrs.evolve(RUNS, restart_count=attempt)])
    with pytest.raises(AssertionError, match="run as before") if attempt else contextlib.nullcontext():
        scene.told(ready=False)


@pytest.mark.parametrize("is_told", [False, True])
def test_an_init_container_whose_end_nobody_heard_may_run_again(*, is_told: bool) -> None:
    """That the one in the sandbox before had succeeded is another matter (seed 520102)."""
    scene = Scene()
    scene.environment.events.listen(InitOnce(scene.environment).heard)
    scene.wants(init_containers=(attrs.evolve(APP, name="init"),))
    made = scene.runs(name="init")
    scene.crashes(made, 0)
    ended = ContainerTerminated(exit=Exited(code=0), container_id=made if is_told else "an-older-one")
    scene.told(PodPhase.PENDING, containers=[ContainerStatus(name="init", state=ended)])
    scene.happens(What.FORGOT, uid="u", name="init", id=made)
    with pytest.raises(AssertionError, match="starts again") if is_told else contextlib.nullcontext():
        scene.runs(name="init", attempt=1)
