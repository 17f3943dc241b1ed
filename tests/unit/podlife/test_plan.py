"""What is to be done for a pod next: what is better than recorded, and what it says."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import attrs
import pytest

from nodealloc.podfacts import Exited, ExitUnknown, PodIdentity
from nodealloc.podlife import KUBELET, Held, PodPlan, PodSeen, Rules, Why, explain_plan, plan_pod
from nodealloc.podlife._actions import stops_of
from nodealloc.podlife._definitions import RESOURCES_ANNOTATION, Definitions
from nodealloc.podlife._plan import ContainerPart, StopReason
from nodealloc.podlife._sandbox import sandbox_need
from nodealloc.podspec import HASH_ANNOTATION, Container, Pod, Quantity, RestartPolicy, Variable
from nodealloc.podspec._model import ResizePolicy
from nodealloc.runtime import (
    ContainerEnd,
    ContainerRecord,
    ContainerReport,
    Exit,
    PodReport,
    RunState,
    SandboxRecord,
    SandboxReport,
)
from nodealloc.testing.conformance import Row, read_rows
from nodealloc.testing.conformance._podplan import recorded_pod, recorded_seen

ME = PodIdentity(uid="u", namespace="default", name="web")
RIGHT = Rules()
ROWS = Path(__file__).parents[2] / "vectors" / "pod_actions.jsonl.gz"


@pytest.fixture(scope="module")
def rows() -> dict[int, Row]:
    """Recorded rows by id."""
    return {cast("int", row["id"]): row for row in read_rows(ROWS)}


def planned(row: Row, rules: Rules = RIGHT, *, completed: frozenset[str] = frozenset()) -> PodPlan:
    """The plan of a recorded row."""
    pod = recorded_pod(cast("Row", row["pod"]))
    return plan_pod(pod, attrs.evolve(recorded_seen(row, pod), completed=completed), rules=rules)


def as_recorded(row: Row) -> PodPlan:
    """The kubelet's plan of a recorded row."""
    return planned(row, KUBELET)


def report(*containers: ContainerReport, ready: bool = True, attempt: int = 0) -> PodReport:
    """A pod with one sandbox."""
    box = SandboxRecord(id=f"box{attempt}", pod=ME, attempt=attempt, is_ready=ready)
    return PodReport(
        uid="u", sandboxes=(SandboxReport(record=box, ips=("10.0.0.2",)),), containers=containers
    )


def ran(
    name: str,
    state: RunState = RunState.RUNNING,
    *,
    ended: Exit | None = None,
    box: str = "box0",
    attempt: int = 0,
    made_from: Container | None = None,
) -> ContainerReport:
    """One instance; that it ended says how."""
    marks = {}
    if made_from is not None:
        of = Definitions.of(Pod(uid="u", name="web", containers=(made_from,)))
        marks = {HASH_ANNOTATION: of.ours[name], RESOURCES_ANNOTATION: of.resources[name]}
    record = ContainerRecord(
        id=f"{name}-{attempt}-{box}",
        pod=ME,
        name=name,
        sandbox_id=box,
        attempt=attempt,
        state=RunState.EXITED if ended else state,
        annotations=marks,
    )
    return ContainerReport(record=record, exit=ended)


def pod(*names: str, inits: tuple[Container, ...] = (), policy: str = "Always") -> Pod:
    """A pod of plain containers."""
    return Pod(
        uid="u",
        name="web",
        init_containers=inits,
        containers=tuple(Container(name=one) for one in names),
        restart_policy=RestartPolicy(policy),
    )


OK, BAD, UNSEEN = Exited(code=0), Exited(code=1), ExitUnknown()


@pytest.mark.parametrize("number", [55, 90])
def test_a_sandbox_of_the_wrong_network_is_named(rows: dict[int, Row], number: int) -> None:
    """Whoever carries the plan out knows which sandbox goes; recorded is that it is forgotten."""
    row = rows[number]
    newest = cast("list[Row]", cast("Row", row["runtime_status"])["sandboxes"])[0]
    assert planned(row, KUBELET).sandbox_id == ""
    plan = planned(row)
    assert (plan.makes_sandbox, plan.sandbox_id) == (True, newest["id"])
    assert "network" in plan.sandbox_why


@pytest.mark.parametrize("number", [56, 86, 97])
def test_the_last_container_keeps_the_reason_of_its_stop(rows: dict[int, Row], number: int) -> None:
    """With policy Never a failed probe ends the pod, and is still why the container is stopped."""
    pod = recorded_pod(cast("Row", rows[number]["pod"]))
    seen = recorded_seen(rows[number], pod)
    plan = plan_pod(pod, seen)
    assert plan.ends
    own = {one.container_id: one for one in plan.stops}
    assert own
    ours = {one.container_id: one for one in stops_of(plan, seen.report)}
    kubelet = {one.container_id: one for one in stops_of(plan, seen.report, rules=KUBELET)}
    for id_, stop in own.items():
        assert ours[id_] == stop
        assert stop.reason in {StopReason.LIVENESS_PROBE, StopReason.STARTUP_PROBE}
        assert (kubelet[id_].reason, kubelet[id_].message) == (StopReason.UNKNOWN, "")


@pytest.mark.parametrize("number", [117, 125])
def test_a_pod_that_ends_gets_no_ephemeral_containers(rows: dict[int, Row], number: int) -> None:
    """What is to be stopped at once is not started."""
    kubelet, ours = planned(rows[number], KUBELET), planned(rows[number])
    assert kubelet.ends
    assert ours.ends
    assert kubelet.starts
    assert ours.starts == ()


def test_no_plan_both_starts_and_ends(rows: dict[int, Row]) -> None:
    """Unless a new sandbox follows, in all recorded situations; in some of them the kubelet does."""
    plans = [planned(row) for row in rows.values()]
    assert not [one for one in plans if one.ends and one.starts and not one.makes_sandbox]
    assert any(one.ends and one.starts and not one.makes_sandbox for one in map(as_recorded, rows.values()))


@pytest.mark.parametrize("number", [30, 58, 91, 149, 212, 271])
def test_a_deleted_pod_gets_nothing_new(rows: dict[int, Row], number: int) -> None:
    """Neither sandbox nor init container; it ends."""
    kubelet, ours = planned(rows[number], KUBELET), planned(rows[number])
    assert kubelet.makes_sandbox or kubelet.starts
    assert (ours.ends, ours.makes_sandbox, ours.starts) == (True, False, ())
    assert {one.why for one in ours.steps} == {Why.DELETED}


@pytest.mark.parametrize("number", [121, 211, 374, 52, 59, 155])
def test_init_containers_that_succeeded_do_not_run_again(rows: dict[int, Row], number: int) -> None:
    """With the progress kept, initialization goes on where it was, though the records are gone."""
    row = rows[number]
    pod = recorded_pod(cast("Row", row["pod"]))
    done = frozenset(one.name for one in pod.init_containers if not one.restartable)
    assert done & set(planned(row, KUBELET).starts)
    again = [one.name for one in pod.init_containers if one.name in planned(row, completed=done).starts]
    assert done.isdisjoint(again)


def test_what_ran_in_another_sandbox_does_not_count_as_initialized() -> None:
    """An agent that ends between a new sandbox and its first init container starts there again."""
    setup = Container(name="setup")
    wanted = pod("app", inits=(setup,))
    seen = PodSeen(report=report(ran("app", ended=OK), ran("setup", ended=OK), attempt=1))
    assert plan_pod(wanted, seen, rules=KUBELET).starts == ("app",)
    assert plan_pod(wanted, seen).starts == ("setup",)


def test_a_main_container_of_this_sandbox_shows_that_initialization_is_over() -> None:
    """Nothing is kept of a pod that was taken over; its init container does not run twice."""
    wanted = pod("app", inits=(Container(name="setup"),))
    for one in (ran("app"), ran("app", ended=BAD), ran("app", RunState.CREATED)):
        assert "setup" not in plan_pod(wanted, PodSeen(report=report(one))).starts


@pytest.mark.parametrize("policy", ["Always", "OnFailure", "Never"])
@pytest.mark.parametrize("number", [3, 72, 133])
def test_an_unknown_container_is_stopped_before_another_starts(
    rows: dict[int, Row], number: int, policy: str
) -> None:
    """There is never a second instance beside one that may run; policy Never then starts none."""
    row = rows[number]
    wanted = attrs.evolve(recorded_pod(cast("Row", row["pod"])), restart_policy=RestartPolicy(policy))
    seen = recorded_seen(row, wanted)
    kubelet = plan_pod(wanted, seen, rules=KUBELET)
    both = {one.name for one in kubelet.stops} & set(kubelet.starts)
    assert both
    ours = plan_pod(wanted, seen)
    assert not ours.ends
    assert both <= {one.name for one in ours.stops}
    assert both.isdisjoint(ours.starts)


def test_an_unknown_init_container_of_policy_never_ends_the_pod_by_a_kubelets_rules() -> None:
    """It may have failed; ours ends that instance first, and only then says what became of it."""
    inits = (Container(name="setup"), Container(name="log", restartable=True))
    wanted = pod("app", policy="Never", inits=inits)
    seen = PodSeen(report=report(ran("setup", RunState.UNKNOWN)))
    assert plan_pod(wanted, seen, rules=KUBELET).ends
    ours = plan_pod(wanted, seen)
    assert not ours.ends
    assert ([one.name for one in ours.stops], ours.starts) == (["setup"], ())
    sidecar = PodSeen(report=report(ran("setup", ended=OK), ran("log", RunState.UNKNOWN)))
    for rules in (KUBELET, RIGHT):
        plan = plan_pod(wanted, sidecar, rules=rules)
        assert not plan.ends
        assert [one.name for one in plan.stops] == ["log"]


def test_an_older_instance_that_runs_is_stopped_first() -> None:
    """Two instances of one container: the older goes, and until then nothing starts in its place."""
    seen = PodSeen(report=report(ran("app", ended=BAD, attempt=1), ran("app", attempt=0)))
    plan = plan_pod(pod("app"), seen)
    assert [(one.container_id, one.name) for one in plan.stops] == [("app-0-box0", "app")]
    assert plan.starts == ()
    assert not plan.ends
    assert [(one.part, one.why) for one in plan.steps] == [
        (ContainerPart.MAIN, Why.OLD_COPY_RUNS),
        (ContainerPart.UNWANTED, Why.OLD_COPY),
    ]
    assert plan_pod(pod("app"), seen, rules=KUBELET).starts == ("app",)


@pytest.mark.parametrize("state", [RunState.RUNNING, RunState.UNKNOWN])
@pytest.mark.parametrize("restartable", [True, False])
def test_an_init_container_that_runs_in_a_sandbox_before_is_stopped_first(
    state: RunState, *, restartable: bool
) -> None:
    """Its start came back after that sandbox had to go: in the next one nothing starts beside it."""
    init = Container(name="init", image="img", restartable=restartable)
    wanted = attrs.evolve(pod("app"), init_containers=(init,))
    seen = PodSeen(report=report(ran("init", state), attempt=1))
    plan = plan_pod(wanted, seen)
    assert [(one.container_id, one.name) for one in plan.stops] == [("init-0-box0", "init")]
    assert plan.starts == ()
    assert not plan.ends
    ended = PodSeen(report=report(ran("init", ended=BAD), attempt=1))
    assert plan_pod(wanted, ended).starts == ("init",)


HAD = Container(name="app", image="img:1", variables=(Variable(name="V", value="1"),))
EDITS = {
    "environment": attrs.evolve(HAD, variables=(Variable(name="V", value="2"),)),
    "command": attrs.evolve(HAD, entrypoint=("sleep", "2")),
    "working directory": attrs.evolve(HAD, working_dir="/srv"),
    "image": attrs.evolve(HAD, image="img:2"),
}


@pytest.mark.parametrize("edit", sorted(EDITS))
def test_an_edit_under_the_same_uid_takes_effect(edit: str) -> None:
    """What needs another container gets one, whatever the restart policy says."""
    wanted = attrs.evolve(pod("app", policy="Never"), containers=(EDITS[edit],))
    seen = PodSeen(report=report(ran("app", made_from=HAD)))
    plan = plan_pod(wanted, seen)
    step = plan.step("app")
    assert step is not None
    assert (step.why, step.start, [one.name for one in plan.stops]) == (Why.CHANGED, True, ["app"])
    assert plan_pod(attrs.evolve(wanted, containers=(HAD,)), seen).is_done


def test_an_edited_sidecar_is_made_anew() -> None:
    """Sidecars are compared like main containers; what they serve runs on."""
    had = Container(name="log", restartable=True)
    wanted = pod("app", inits=(attrs.evolve(had, working_dir="/x"),))
    plan = plan_pod(wanted, PodSeen(report=report(ran("app"), ran("log", made_from=had))))
    assert plan.starts == ("log",)
    assert [one.name for one in plan.stops] == ["log"]


def sized(milli: int, *, restarts: bool = False) -> Container:
    """A container that asks for CPU."""
    policy = (ResizePolicy(resource_name="cpu", restart_policy="RestartContainer"),) if restarts else ()
    return Container(name="app", requests={"cpu": Quantity.parse(f"{milli}m")}, resize_policy=policy)


def test_an_annotation_that_is_none_of_ours_says_nothing_of_resources() -> None:
    """Whatever a runtime tells under its name: the container is made anew, as one that is not known."""
    wanted = attrs.evolve(pod("app"), containers=(sized(200, restarts=True),))
    for text in ("{", "[]", "[" * 60_000):
        one = ran("app", made_from=sized(200, restarts=True))
        marks = {**one.record.annotations, RESOURCES_ANNOTATION: text}
        odd = attrs.evolve(one, record=attrs.evolve(one.record, annotations=marks))
        step = plan_pod(wanted, PodSeen(report=report(odd))).step("app")
        assert step is not None
        assert step.stop is not None


def test_other_resources_are_given_to_the_container_that_runs() -> None:
    """No restart, once; the kubelet leaves them as they are."""
    wanted = attrs.evolve(pod("app"), containers=(sized(200),))
    seen = PodSeen(report=report(ran("app", made_from=sized(100))))
    step = plan_pod(wanted, seen).step("app")
    assert step is not None
    assert (step.resize, step.start, step.stop) == (True, False, None)
    given = attrs.evolve(seen, resized={"app-0-box0": Definitions.of(wanted).resources["app"]})
    assert plan_pod(wanted, given).is_done
    assert plan_pod(wanted, seen, rules=KUBELET).is_done


def test_a_resource_that_asks_for_it_restarts_the_container() -> None:
    """A resize policy of RestartContainer holds for its resource alone."""
    wanted = attrs.evolve(pod("app"), containers=(sized(200, restarts=True),))
    plan = plan_pod(wanted, PodSeen(report=report(ran("app", made_from=sized(100, restarts=True)))))
    assert (plan.starts, [one.name for one in plan.stops]) == (("app",), ["app"])
    more = attrs.evolve(sized(100, restarts=True), limits={"memory": Quantity.of(2**20)})
    wanted = attrs.evolve(pod("app"), containers=(more,))
    step = plan_pod(wanted, PodSeen(report=report(ran("app", made_from=sized(100, restarts=True))))).step(
        "app"
    )
    assert step is not None
    assert (step.resize, step.stop) == (True, None)


def test_a_container_that_was_taken_out_is_stopped() -> None:
    """One that the pod does not name any more goes; an ended one stays as it is."""
    seen = PodSeen(report=report(ran("app"), ran("extra"), ran("older", ended=OK)))
    plan = plan_pod(pod("app"), seen)
    assert [(one.name, one.message) for one in plan.stops] == [
        ("extra", "Container extra: the pod does not name it")
    ]
    assert plan_pod(pod("app"), seen, rules=KUBELET).is_done


def test_a_record_of_another_version_restarts_nothing() -> None:
    """An upgrade that writes other hashes compares name and image, as the kubelet's hash has them."""
    kept = Container(name="app", image="img:1")
    wanted = attrs.evolve(pod("app"), containers=(attrs.evolve(kept, working_dir="/x"),))
    base = ran("app")
    record = attrs.evolve(
        base.record,
        annotations={HASH_ANNOTATION: "v9:abc"},
        definition=Definitions.of(wanted).kubelet["app"],
    )
    assert plan_pod(wanted, PodSeen(report=report(attrs.evolve(base, record=record)))).is_done


def test_kept_ends_stand_for_records_that_are_gone() -> None:
    """A container of policy Never that ended does not run again when its record goes."""
    seen = PodSeen(report=report(), ends={"app": ContainerEnd(name="app", exit=OK)})
    assert plan_pod(pod("app", policy="Never"), seen).ends
    assert plan_pod(pod("app", policy="Never"), seen, rules=KUBELET).starts == ("app",)
    assert plan_pod(pod("app"), seen).starts == ("app",)


def test_an_end_whose_record_is_gone_stands_before_records_of_instances_that_were_before_it() -> None:
    """That an earlier one was stopped to start again says nothing of the one that did."""
    ended, lost = ran("app", ended=OK), ContainerEnd(name="app", attempt=1, exit=UNSEEN)
    seen = PodSeen(
        report=report(ended), ends={"app": lost}, end_ids={"app": "gone"}, owed=frozenset({ended.record.id})
    )
    assert plan_pod(pod("app", policy="Never"), seen).ends
    assert plan_pod(pod("app", policy="Never"), attrs.evolve(seen, ends={})).starts == ("app",)
    owed = attrs.evolve(seen, owed=frozenset({"gone"}))
    assert plan_pod(pod("app", policy="Never"), owed).starts == ("app",)


@pytest.mark.parametrize(("policy", "starts"), [("Always", True), ("OnFailure", True), ("Never", False)])
def test_an_end_that_nobody_saw_is_no_success(policy: str, starts: bool) -> None:
    """OnFailure runs it again; Never leaves it."""
    plan = plan_pod(pod("app", policy=policy), PodSeen(report=report(ran("app", ended=UNSEEN))))
    assert (bool(plan.starts), plan.ends) == (starts, not starts)


def test_a_start_that_waits_says_until_when() -> None:
    """It is not started, the pod does not end for it, and the plan says when to look again."""
    held = {
        "a": Held(until_s=30.0, reason="CrashLoopBackOff"),
        "b": Held(until_s=None, reason="ErrImageNeverPull"),
    }
    seen = PodSeen(report=report(ran("a", ended=BAD)), held=held)
    plan = plan_pod(pod("a", "b"), seen)
    assert (plan.starts, plan.ends, plan.again_at_s, plan.is_done) == ((), False, 30.0, True)
    assert plan_pod(pod("a", "b"), attrs.evolve(seen, held={})).starts == ("a", "b")


def test_each_container_has_a_line() -> None:
    """The line says what is done with it and why."""
    inits = (Container(name="setup"), Container(name="log", restartable=True))
    seen = PodSeen(
        report=report(ran("app"), ran("db", ended=BAD), ran("log"), ran("setup", ended=OK), ran("old")),
        alive={"app-0-box0": False},
        held={"db": Held(until_s=12.5, reason="CrashLoopBackOff")},
    )
    wanted = attrs.evolve(pod("app", "db", inits=inits), ephemeral_containers=(Container(name="look"),))
    assert explain_plan(plan_pod(wanted, seen)) == (
        "ephemeral container look: started, it has never run",
        "init container setup: left, it has succeeded (status 0)",
        "sidecar log: left, it runs as it is wanted",
        "container app: stopped and started anew, its liveness probe failed",
        "container db: left, it ended without success (status 1); CrashLoopBackOff holds it until 12.5 s",
        "unwanted container old: stopped, the pod does not name it",
    )


def test_a_new_sandbox_has_a_line() -> None:
    """It says which attempt, and why the one at hand will not do."""
    lines = explain_plan(plan_pod(pod("app"), PodSeen(report=report(ran("app", ended=UNSEEN), ready=False))))
    assert lines == (
        "sandbox: attempt 1 is made, sandbox box0 is not ready",
        "container app: started, the pod gets a new sandbox (an end that nobody saw)",
    )


def test_a_pod_that_ends_has_a_line() -> None:
    """With what becomes of each container."""
    lines = explain_plan(plan_pod(pod("app", policy="Never"), PodSeen(report=report(ran("app", ended=OK)))))
    assert lines == (
        "pod: all that lives of it is stopped",
        "container app: left, it has succeeded (status 0)",
    )


def test_several_ready_sandboxes_are_too_many() -> None:
    """A new one is made in place of all; each reason is told."""
    one = report().sandboxes[0]
    two = attrs.evolve(one, record=attrs.evolve(one.record, id="box1", attempt=1))
    need = sandbox_need(PodReport(uid="u", sandboxes=(two, one)), host_network=False)
    assert (need.changed, need.attempt, need.why) == (True, 2, "several sandboxes of it are ready")
    bare = attrs.evolve(one, ips=())
    assert (
        sandbox_need(PodReport(uid="u", sandboxes=(bare,)), host_network=False).why
        == "sandbox box0 has no address"
    )
    assert not sandbox_need(
        PodReport(uid="u", sandboxes=(attrs.evolve(one, ips=None),)), host_network=False
    ).changed
