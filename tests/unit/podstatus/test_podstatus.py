"""What is told of a pod, decided: phases, conditions, containers, and each rule both ways."""

from __future__ import annotations

import attrs
import pytest

from nodealloc._frozen import thawed
from nodealloc.podfacts import (
    ConditionStatus,
    ContainerRunning,
    ContainerStatus,
    ContainerTerminated,
    ContainerWaiting,
    Exited,
    ExitUnknown,
    LifeState,
    PodCondition,
    PodIdentity,
    PodPhase,
    PodStatus,
    ResourceHealth,
    ResourceHealthState,
    ResourceStatus,
    status_from_manifest,
    status_to_manifest,
)
from nodealloc.podspec import Container, Pod, Probe, ReadinessGate, RestartPolicy, VolumeUse
from nodealloc.podstatus import (
    KUBELET,
    Health,
    Observed,
    Rules,
    StartFailure,
    ToldEnding,
    merge_status,
    same_status,
    status_of,
    take_status,
    with_runtime,
)
from nodealloc.podstatus._merge import oddities_of
from nodealloc.podstatus._phase import phase_of
from nodealloc.podstatus._taking import end_status, with_verdict
from nodealloc.runtime import (
    ContainerEnd,
    ContainerRecord,
    ContainerReport,
    PodKnown,
    PodReport,
    RunState,
    SandboxRecord,
    SandboxReport,
)

WHO = PodIdentity(uid="u", namespace="default", name="web")
APP = Container(name="app", image="web:1")
PROBED = attrs.evolve(APP, readiness_probe=Probe())
WORK = Container(name="work", image="work:1")
DONE, BROKEN = Exited(code=0), Exited(code=1)


def pod(*containers: Container, init: tuple[Container, ...] = (), policy: str = "Always") -> Pod:
    """A pod of these containers."""
    return Pod(
        uid="u",
        name="web",
        containers=containers or (APP,),
        init_containers=init,
        restart_policy=RestartPolicy(policy),
    )


def instance(
    name: str, attempt: int = 0, exit_: Exited | ExitUnknown | None = None, state: RunState = RunState.RUNNING
) -> ContainerReport:
    """One instance: running unless told otherwise, ended where it has an exit."""
    return ContainerReport(
        record=ContainerRecord(
            id=f"{name}-{attempt}",
            pod=WHO,
            name=name,
            sandbox_id="s",
            attempt=attempt,
            state=RunState.EXITED if exit_ else state,
        ),
        exit=exit_,
        reason="Completed" if exit_ == DONE else "Error" if exit_ else "",
        started_unix_s=10.0,
    )


def report(*instances: ContainerReport, ips: tuple[str, ...] = ("10.0.0.7",)) -> PodReport:
    """A ready sandbox with these in it."""
    box = SandboxReport(record=SandboxRecord(id="s", pod=WHO), ips=ips)
    return PodReport.of("u", [box], instances)


def tell(observed: Observed, previous: PodStatus | None = None, rules: Rules = Rules()) -> PodStatus:  # noqa: B008
    """The status."""
    return status_of(observed, previous, rules=rules)


def only(status: PodStatus, name: str = "app") -> ContainerStatus:
    """The status of one container."""
    found = status.container(name)
    assert found is not None
    return found


def ready(status: PodStatus, type_: str = "Ready") -> tuple[str, str]:
    """Whether, and why not."""
    found = status.condition(type_)
    assert found is not None
    return found.status.value, found.reason


def kubelet_with(**rules: bool) -> Rules:
    """As recorded but for these."""
    return attrs.evolve(KUBELET, **rules)


def test_a_pod_that_is_new_waits_for_its_containers() -> None:
    """Nothing is reported yet: pending, each container is being created, and conditions come in order."""
    status = tell(Observed(pod=pod(APP, WORK)))
    assert status.phase is PodPhase.PENDING
    assert [one.state for one in status.containers] == [ContainerWaiting(reason="ContainerCreating")] * 2
    assert [(one.type, one.status.value) for one in status.conditions] == [
        ("PodReadyToStartContainers", "False"),
        ("Initialized", "True"),
        ("Ready", "False"),
        ("ContainersReady", "False"),
        ("PodScheduled", "True"),
    ]
    told = status.condition("Ready")
    assert told is not None
    assert told.message == "containers with unready status: [app work]"


def test_a_pod_that_runs_is_ready_where_nobody_probes() -> None:
    """No probe in the pod means ready as soon as it runs."""
    status = tell(Observed(pod=pod(), report=report(instance("app"))))
    assert status.phase is PodPhase.RUNNING
    assert (only(status).ready, only(status).started, only(status).container_id) == (
        True,
        True,
        "containerd://app-0",
    )
    assert ready(status) == ("True", "")
    assert status.pod_ips == ("10.0.0.7",)


@pytest.mark.parametrize(("verdict", "expected"), [(None, False), (False, False), (True, True)])
def test_a_probe_without_a_result_is_not_passed(verdict: bool | None, *, expected: bool) -> None:
    """No result yet is neither a success nor the absence of a probe."""
    told = tell(
        Observed(pod=pod(PROBED), report=report(instance("app")), health={"app-0": Health(readiness=verdict)})
    )
    assert only(told).ready is expected


def test_a_startup_probe_is_waited_for() -> None:
    """Until it has succeeded the container has not started, and is not ready."""
    app = attrs.evolve(APP, startup_probe=Probe())
    observed = Observed(pod=pod(app), report=report(instance("app")))
    assert (only(tell(observed)).started, only(tell(observed)).ready) == (False, False)
    passed = attrs.evolve(observed, health={"app-0": Health(startup=True)})
    assert (only(tell(passed)).started, only(tell(passed)).ready) == (True, True)


def test_devices_of_a_container_are_told_with_their_health() -> None:
    """As whoever knows the devices says; a container without any has none."""
    sick = ResourceStatus(
        name="vendor.example/gpu",
        resources=(ResourceHealth(id="gpu-1", health=ResourceHealthState.UNHEALTHY),),
    )
    status = tell(Observed(pod=pod(APP, WORK), devices={"app": (sick,)}))
    assert only(status).allocated == (sick,)
    assert only(status, "work").allocated == ()


@pytest.mark.parametrize("rules", [Rules(), KUBELET])
def test_mounts_of_a_container_are_told_as_its_pod_says_them(rules: Rules) -> None:
    """Before it begins and after its end, too; devices are none, and none is read-only all the way down."""
    uses = (
        VolumeUse(name="data", path="/data"),
        VolumeUse(name="raw", path="/dev/raw", block=True),
        VolumeUse(name="conf", path="/conf", read_only=True, recursive_read_only="IfPossible"),
    )
    one = pod(
        attrs.evolve(APP, volumes=uses), WORK, init=(attrs.evolve(APP, name="first", volumes=uses[:1]),)
    )
    data = {"name": "data", "mountPath": "/data"}
    conf = {"name": "conf", "mountPath": "/conf", "readOnly": True, "recursiveReadOnly": "Disabled"}
    status: PodStatus | None = None
    for known in (
        None,
        report(instance("first", 0, DONE)),
        report(instance("app"), instance("work")),
        report(instance("app", 0, BROKEN)),
        report(),
    ):
        status = tell(Observed(pod=one, report=known), status, rules)
        told = {each.name: thawed(dict(each.carried)) for each in status.all_containers}
        assert told == {"first": {"volumeMounts": [data]}, "app": {"volumeMounts": [data, conf]}, "work": {}}
        status = status_from_manifest(status_to_manifest(status), source="a pod's status")


def test_mounts_of_an_instance_are_told_as_it_was_made() -> None:
    """A kubelet may have made one read-only all the way down, and an edit may mount others later."""
    use = VolumeUse(name="data", path="/data", read_only=True, recursive_read_only="IfPossible")
    one = pod(attrs.evolve(APP, volumes=(use,)))
    up = tell(Observed(pod=one, report=report(instance("app"))))
    made = {"volumeMounts": [{"name": "data", "mountPath": "/data", "recursiveReadOnly": "Enabled"}]}
    was = attrs.evolve(up, containers=(attrs.evolve(only(up), carried=made),))
    assert only(tell(Observed(pod=one, report=report(instance("app"))), was)).carried == made
    after = tell(Observed(pod=one, report=report(instance("app", 1))), was)
    assert only(after).carried == only(up).carried != made


def test_mounts_that_were_told_are_nothing_new() -> None:
    """The same status stays the same value, and what else was told of a container before it ended stays."""
    one = pod(attrs.evolve(APP, volumes=(VolumeUse(name="data", path="/data"),)))
    ended = tell(Observed(pod=one, report=report(instance("app", 0, DONE))))
    had = attrs.evolve(only(ended), carried={**only(ended).carried, "user": {"linux": {"uid": 1}}})
    again = tell(Observed(pod=one), attrs.evolve(ended, containers=(had,)))
    assert only(again) is had
    untold = attrs.evolve(ended, containers=(attrs.evolve(had, carried={"user": {}}),))
    assert set(only(tell(Observed(pod=one), untold)).carried) == {"user", "volumeMounts"}


def test_a_pod_that_was_refused_tells_why_and_nothing_else() -> None:
    """Nothing was made of it: no containers, no conditions."""
    ending = ToldEnding(reason="OutOfcpu", message="Node didn't have enough resource: cpu")
    status = tell(Observed(pod=pod(), life=LifeState.FINISHED, ending=ending, refused=True))
    assert (status.phase, status.reason) == (PodPhase.FAILED, ending.reason)
    assert status.message == "Pod was rejected: Node didn't have enough resource: cpu"
    assert (status.conditions, status.containers) == ((), ())


def test_a_runtime_that_cannot_be_asked_changes_nothing() -> None:
    """Without a report nothing is lost: containers and addresses are as they were told."""
    was = tell(Observed(pod=pod(), report=report(instance("app"))))
    now = tell(Observed(pod=pod(), report=None), was)
    assert only(now) == only(was)
    assert now.pod_ips == was.pod_ips
    assert now.conditions == was.conditions
    assert now.phase is PodPhase.RUNNING


def test_who_was_told_to_run_has_not_ended_before_anybody_could_look() -> None:
    """A restarted agent keeps the ends of instances before it, and has no report of the one that runs."""
    end = ContainerEnd(name="app", attempt=0, exit=BROKEN, reason="Error", finished_unix_s=20.0)
    was = tell(Observed(pod=pod(), report=report(instance("app", 1)), ends={"app-0": end}))
    now = tell(Observed(pod=pod(), report=None, ends={"app-0": end}), was)
    assert only(now) == only(was)
    assert now.conditions == was.conditions


def test_ends_that_the_runtime_forgot_are_told() -> None:
    """A record that went keeps its exit: it is the last state of what runs now, or the state itself."""
    end = ContainerEnd(name="app", attempt=0, exit=BROKEN, reason="Error", finished_unix_s=20.0)
    status = tell(Observed(pod=pod(), report=report(instance("app", 1)), ends={"app-0": end}))
    last = only(status).last_state
    assert isinstance(last, ContainerTerminated)
    assert (last.exit, last.container_id) == (BROKEN, "containerd://app-0")
    gone = tell(Observed(pod=pod(policy="Never"), report=report(), ends={"app-0": end}))
    assert isinstance(only(gone).state, ContainerTerminated)


def test_an_instance_whose_record_went_has_not_the_image_of_the_one_before() -> None:
    """After an edit that image is another one; what was told of this very instance stands."""
    was = tell(Observed(pod=pod(), report=report(instance("app"))))
    edited = pod(attrs.evolve(APP, image="web:2"))
    ends = {f"app-{one}": ContainerEnd(name="app", attempt=one, exit=BROKEN) for one in (0, 1)}
    now = tell(Observed(pod=edited, report=report(), ends=ends), was)
    assert (only(now).container_id, only(now).image) == ("containerd://app-1", "web:2")
    kept = tell(Observed(pod=edited, report=report(), ends={"app-0": ends["app-0"]}), was)
    assert (only(kept).container_id, only(kept).image) == ("containerd://app-0", "web:1")
    # The newer one was told meanwhile, and went: of the one before stands what it was made from.
    first = attrs.evolve(ends["app-0"], image="web:1", image_id="sha256:1")
    again = tell(Observed(pod=edited, report=report(), ends={"app-0": first}), now)
    assert (only(again).container_id, only(again).image) == ("containerd://app-0", "web:1")
    assert only(again).image_id == "sha256:1"


def test_an_instance_that_was_made_and_never_started_hides_no_end() -> None:
    """The last state is the end before it, as the runtime has it or as it was told."""
    made, ended = instance("app", 1, state=RunState.CREATED), instance("app", 0, BROKEN)
    before = tell(Observed(pod=pod(), report=report(made, ended)))
    for older in ((made, ended), (made,)):
        now = tell(Observed(pod=pod(), report=report(instance("app", 2), *older)), before)
        last = only(now).last_state
        assert isinstance(last, ContainerTerminated)
        assert last.exit == BROKEN


def test_what_is_known_of_the_runtime_is_taken_over() -> None:
    """Nothing left is a report that is empty; not yet inspected is none."""
    empty = with_runtime(Observed(pod=pod()), PodKnown(uid="u"))
    assert empty.report == PodReport(uid="u")
    unknown = with_runtime(Observed(pod=pod()), PodKnown(uid="u", marks={"a": RunState.RUNNING}))
    assert unknown.report is None


def test_a_lost_container_is_unknown_and_not_restarted() -> None:
    """It ran, and nobody knows how it ended: the exit is unknown, the count is as it was."""
    was = tell(Observed(pod=pod(), report=report(instance("app", 2))))
    now = tell(Observed(pod=pod(), report=report()), was)
    state = only(now).state
    assert isinstance(state, ContainerTerminated)
    assert (state.exit, state.reason) == (ExitUnknown(), "ContainerStatusUnknown")
    assert only(now).restart_count == 2
    theirs = tell(Observed(pod=pod(), report=report()), was, KUBELET)
    assert only(theirs).restart_count == 3


def test_a_start_that_fails_is_what_a_container_waits_for() -> None:
    """Its reason and message are told, and how it ended before."""
    failure = StartFailure(reason="CrashLoopBackOff", message="back-off 10s")
    observed = Observed(pod=pod(), report=report(instance("app", 0, BROKEN)), start_failures={"app": failure})
    status = only(tell(observed))
    assert status.state == ContainerWaiting(reason="CrashLoopBackOff", message="back-off 10s")
    assert isinstance(status.last_state, ContainerTerminated)
    never = attrs.evolve(observed, pod=pod(policy="Never"), life=LifeState.TERMINATED)
    assert isinstance(only(tell(never)).state, ContainerTerminated)


def test_an_init_container_that_waits_again_is_not_ready() -> None:
    """`running_is_ready`: what has to run again has not succeeded; a kubelet keeps it ready."""
    init = Container(name="init", image="i:1")
    was = tell(Observed(pod=pod(init=(init,)), report=report(instance("init", 0, DONE), instance("app"))))
    lost = Observed(
        pod=pod(init=(init,)),
        report=report(),
        start_failures={"init": StartFailure(reason="ErrImagePull")},
    )
    assert not only(tell(lost, was), "init").ready
    assert only(tell(lost, was, KUBELET), "init").ready


def test_what_has_run_is_not_pending_again() -> None:
    """`stays_running`: a container that waits again takes nothing back; for a kubelet it does."""
    observed = Observed(pod=pod(), report=report(instance("app", 0, state=RunState.CREATED)))
    was = PodStatus(phase=PodPhase.RUNNING)
    assert tell(observed, was).phase is PodPhase.RUNNING
    assert tell(observed, was, KUBELET).phase is PodPhase.PENDING
    assert tell(observed, None).phase is PodPhase.PENDING


def test_a_sidecar_that_has_started_keeps_its_pod_running() -> None:
    """`stays_running`: while all others wait to start again; for a kubelet it is Pending then."""
    side = Container(name="side", image="s:1", restartable=True)
    crashed = Observed(
        pod=pod(init=(side,)),
        report=report(instance("side"), instance("app", 0, BROKEN)),
        start_failures={"app": StartFailure(reason="CrashLoopBackOff")},
    )
    was = tell(attrs.evolve(crashed, start_failures={}), rules=KUBELET)
    assert was.phase is PodPhase.RUNNING
    told = tell(crashed, was, KUBELET)
    assert told.phase is PodPhase.PENDING
    assert only(told, "side").started
    assert tell(crashed, was).phase is PodPhase.RUNNING


@pytest.mark.parametrize("known", ["told", "counted"])
def test_restart_counts_never_fall(known: str) -> None:
    """`keeps_past`: not with records cleared away, nor with a runtime that begins at 0; a kubelet's do."""
    was = tell(Observed(pod=pod(), report=report(instance("app", 5))))
    counts = {"app": 5} if known == "counted" else {}
    anew = Observed(pod=pod(), report=report(instance("app", 0)), counts=counts)
    assert only(tell(anew, was if known == "told" else None)).restart_count == 5
    assert only(tell(anew, was, KUBELET)).restart_count == 0


def test_a_probe_is_what_the_pod_says() -> None:
    """`asks_spec`: before anybody probes it a container is not ready; for a kubelet it is."""
    observed = Observed(pod=pod(PROBED), report=report(instance("app")))
    assert not only(status_of(observed, are_probed=False)).ready
    assert only(status_of(observed, are_probed=False, rules=KUBELET)).ready


def test_readiness_stands_until_there_is_another_verdict() -> None:
    """`keeps_health`: of the same instance, and of no other; for a kubelet it falls."""
    observed = Observed(pod=pod(PROBED), report=report(instance("app")))
    was = tell(attrs.evolve(observed, health={"app-0": Health(readiness=True)}))
    assert only(tell(observed, was)).ready
    assert not only(tell(observed, was, KUBELET)).ready
    assert not only(tell(attrs.evolve(observed, health={"app-0": Health(readiness=False)}), was)).ready
    assert not only(tell(attrs.evolve(observed, report=report(instance("app", 1))), was)).ready


def test_a_sidecar_that_starts_again_waits_whatever_the_policy() -> None:
    """`sidecars_restart`: also where the pod's containers never start again; for a kubelet it ended."""
    side = Container(name="side", image="s:1", restartable=True)
    observed = Observed(
        pod=pod(init=(side,), policy="Never"),
        report=report(instance("side", 0, DONE), instance("app")),
        start_failures={"side": StartFailure(reason="CrashLoopBackOff")},
    )
    assert isinstance(only(tell(observed), "side").state, ContainerWaiting)
    assert isinstance(only(tell(observed, None, KUBELET), "side").state, ContainerTerminated)


def test_a_pod_ends_once_nothing_of_it_can_run() -> None:
    """`ends_once_over`: not before, and then always; a kubelet decides by what it sees of containers."""
    ran = Observed(pod=pod(policy="Never"), report=report(instance("app", 0, DONE)))
    assert tell(ran).phase is PodPhase.RUNNING
    assert tell(ran, None, KUBELET).phase is PodPhase.SUCCEEDED
    assert tell(attrs.evolve(ran, life=LifeState.TERMINATED)).phase is PodPhase.SUCCEEDED
    never_began = Observed(pod=pod(), life=LifeState.TERMINATED, report=report())
    assert tell(never_began).phase is PodPhase.FAILED
    assert tell(never_began, None, KUBELET).phase is PodPhase.PENDING


def test_before_its_end_is_certain_a_pod_is_pending_where_nothing_of_it_ran() -> None:
    """Its init container has failed for good; until nothing of it can run, that is no end."""
    init = Container(name="init", image="i:1")
    failed = Observed(pod=pod(init=(init,), policy="Never"), report=report(instance("init", 0, BROKEN)))
    assert tell(failed).phase is PodPhase.PENDING
    assert tell(failed, None, KUBELET).phase is PodPhase.FAILED
    assert tell(attrs.evolve(failed, life=LifeState.TERMINATED)).phase is PodPhase.FAILED


def test_a_pod_without_containers_is_pending() -> None:
    """Nothing runs and nothing has stopped."""
    assert tell(Observed(pod=Pod(uid="u"))).phase is PodPhase.PENDING


def test_a_sidecar_that_has_started_means_that_the_rest_could_begin() -> None:
    """At the end a kubelet takes for lost what never began behind it; here it waits."""
    side = Container(name="side", image="s:1", restartable=True)
    spec = pod(init=(side,))
    was = tell(Observed(pod=spec, report=report(instance("side"))))
    assert only(was, "side").started
    assert isinstance(only(end_status(spec, was)).state, ContainerWaiting)
    theirs = end_status(spec, was, source_status=was, rules=KUBELET)
    assert isinstance(only(theirs).state, ContainerTerminated)


@pytest.mark.parametrize("rules", [Rules(), KUBELET])
def test_a_sidecar_that_was_made_twice_and_never_ran_has_not_begun(rules: Rules) -> None:
    """The instance before did not end either: the pod waits for the sidecar."""
    side = Container(name="side", image="s:1", restartable=True)
    made = ContainerStatus(name="side", state=ContainerWaiting(), last_state=ContainerWaiting())
    app = ContainerStatus(name="app", state=ContainerRunning())
    assert phase_of(pod(init=(side,)), [made, app], rules=rules) is PodPhase.PENDING


def test_a_kubelet_takes_the_instance_that_was_made_last_for_the_newest() -> None:
    """Whatever their attempts are; here the higher attempt is the newest, since clocks go back."""
    first, second = instance("app", 0), instance("app", 1, DONE)
    late = attrs.evolve(first, record=attrs.evolve(first.record, created_unix_s=20.0))
    early = attrs.evolve(second, record=attrs.evolve(second.record, created_unix_s=10.0))
    observed = Observed(pod=pod(), report=report(early, late))
    assert only(tell(observed, rules=KUBELET)).restart_count == 0
    assert only(tell(observed)).restart_count == 1


def test_who_is_ended_has_failed_whatever_its_exit() -> None:
    """An evicted pod that leaves with 0 has failed, with the reason of its eviction, once it is over."""
    ending = ToldEnding(reason="Evicted", message="low on memory", disruption="TerminationByKubelet")
    runs = Observed(pod=pod(), life=LifeState.TERMINATING, report=report(instance("app")), ending=ending)
    was = tell(runs)
    assert was.phase is PodPhase.RUNNING
    victim = was.condition("DisruptionTarget")
    assert victim is not None
    assert (victim.status, victim.reason, victim.message) == (
        ConditionStatus.TRUE,
        "TerminationByKubelet",
        "low on memory",
    )
    over = attrs.evolve(runs, life=LifeState.TERMINATED, report=report(instance("app", 0, DONE)))
    now = tell(over, was)
    assert (now.phase, now.reason, now.message) == (PodPhase.FAILED, "Evicted", "low on memory")


def test_a_victim_that_leaves_with_0_stays_one() -> None:
    """It has failed, with the reason; for a kubelet only until its containers have ended."""
    ending = ToldEnding(reason="Preempting", message="room", disruption="TerminationByKubelet")
    runs = Observed(
        pod=pod(APP), life=LifeState.TERMINATING, ending=ending, report=report(instance("app", 0))
    )
    over = attrs.evolve(runs, life=LifeState.TERMINATED, report=report(instance("app", 0, DONE)))
    for rules, phases in ((Rules(), ["Running", "Failed"]), (KUBELET, ["Failed", "Succeeded"])):
        was = PodStatus(phase=PodPhase.RUNNING)
        told: list[PodStatus] = []
        for one in (runs, over):
            was = tell(one, was, rules)
            told.append(was)
        assert [one.phase and one.phase.value for one in told] == phases
        victim = told[-1].condition("DisruptionTarget")
        assert victim is not None
        assert victim.status is ConditionStatus.TRUE
        assert told[-1].reason == ("Preempting" if phases[-1] == "Failed" else "")


def test_an_end_stands_with_its_reason() -> None:
    """`keeps_end`: whoever wants to end it later finds that it has ended; a kubelet takes his reason."""
    was = PodStatus(phase=PodPhase.SUCCEEDED)
    ending = ToldEnding(reason="DeadlineExceeded", message="too long")
    observed = Observed(
        pod=pod(policy="Never"),
        life=LifeState.TERMINATED,
        report=report(instance("app", 0, DONE)),
        ending=ending,
        source_status=was,
    )
    assert (tell(observed, was).phase, tell(observed, was).reason) == (PodPhase.SUCCEEDED, "")
    theirs = tell(observed, was, KUBELET)
    assert (theirs.phase, theirs.reason) == (PodPhase.SUCCEEDED, "DeadlineExceeded")


def test_a_pod_that_nobody_saw_fail_says_so() -> None:
    """`tells_unknown`: it has failed, and the reason is that nobody knows; one that did fail needs none."""
    observed = Observed(
        pod=pod(APP, WORK, policy="Never"),
        life=LifeState.TERMINATED,
        report=report(instance("app", 0, ExitUnknown()), instance("work", 0, DONE)),
    )
    status = tell(observed)
    assert (status.phase, status.reason) == (PodPhase.FAILED, "ContainerStatusUnknown")
    assert "[app]" in status.message
    assert tell(observed, None, KUBELET).reason == ""
    failed = attrs.evolve(
        observed, report=report(instance("app", 0, ExitUnknown()), instance("work", 0, BROKEN))
    )
    assert (tell(failed).phase, tell(failed).reason) == (PodPhase.FAILED, "")


def test_addresses_stay_while_a_pod_ends() -> None:
    """`keeps_addresses`: they are its own until the end; a kubelet drops them with the sandbox."""
    was = PodStatus(phase=PodPhase.RUNNING, pod_ips=("10.0.0.7",))
    observed = Observed(pod=pod(), life=LifeState.TERMINATING, report=report(ips=()))
    assert tell(observed, was).pod_ips == ("10.0.0.7",)
    assert tell(observed, was, KUBELET).pod_ips == ()
    assert tell(attrs.evolve(observed, life=LifeState.SYNCING), was).pod_ips == ()


def test_a_pod_with_the_nodes_network_has_the_nodes_addresses() -> None:
    """`names_node`: it is reached there; a kubelet without an API server tells of none."""
    observed = Observed(pod=attrs.evolve(pod(), host_network=True), report=report(ips=()))
    node_ips = ("fd00::1", "192.0.2.7")
    assert status_of(observed, node_ips=node_ips).pod_ips == node_ips
    assert status_of(observed, node_ips=node_ips, rules=KUBELET).pod_ips == ()
    assert status_of(observed).pod_ips == ()


def test_addresses_are_told_as_they_are_usually_written() -> None:
    """Whatever form a runtime has for them; what is no address is left out."""
    odd = ("of no use", "::ffff:10.0.0.7", "FD00:0:0::5", "10.0.0.8")
    assert tell(Observed(pod=pod(), report=report(ips=odd))).pod_ips == ("10.0.0.7", "fd00::5")


@pytest.mark.parametrize("rules", [Rules(), KUBELET], ids=["right", "kubelet"])
def test_a_gate_may_name_a_condition_of_the_nodes_own(rules: Rules) -> None:
    """Those that do not follow from it: whether containers can be started, and what comes before them ran."""
    gates = tuple(ReadinessGate(condition_type=one) for one in ("PodReadyToStartContainers", "Initialized"))
    gated = attrs.evolve(pod(), readiness_gates=gates)
    observed = Observed(pod=gated, report=report(instance("app")))
    assert ready(tell(observed, None, rules)) == ("True", "")
    gates = (*gates, ReadinessGate(condition_type="ContainersReady"))
    observed = attrs.evolve(observed, pod=attrs.evolve(gated, readiness_gates=gates))
    assert ready(tell(observed, None, rules)) == ("False", "ReadinessGatesNotReady")


@pytest.mark.parametrize(
    "ends",
    [
        Observed(pod=pod(), life=LifeState.TERMINATING),
        Observed(pod=pod(), ending=ToldEnding(reason="Evicted")),
        Observed(pod=attrs.evolve(pod(), deletion_timestamp="2026-01-01T00:00:00Z")),
    ],
    ids=["life", "ending", "deletion"],
)
def test_ready_falls_with_the_decision_to_end(ends: Observed) -> None:
    """`ready_falls_first`: its containers still serve, which is told as well; for a kubelet it is ready."""
    observed = attrs.evolve(ends, report=report(instance("app")))
    status = tell(observed)
    assert ready(status) == ("False", "PodEnding")
    assert ready(status, "ContainersReady") == ("True", "")
    if observed.ending is None:
        assert ready(tell(observed, None, KUBELET)) == ("True", "")


def test_static_pods_end_like_others() -> None:
    """`ends_static`: one whose file went has failed; a kubelet leaves it as it was."""
    was = PodStatus(phase=PodPhase.RUNNING)
    assert end_status(pod(), was, static=True).phase is PodPhase.FAILED
    assert end_status(pod(), was, static=True, rules=KUBELET).phase is PodPhase.RUNNING
    assert end_status(pod(), was, rules=KUBELET).phase is PodPhase.FAILED


def test_what_did_not_end_is_lost_at_the_end() -> None:
    """`knows_begun`: containers of a pod that had begun are told as lost, by what was told of it."""
    init = Container(name="init", image="i:1")
    spec = pod(init=(init,))
    was = tell(Observed(pod=spec, report=report(instance("init", 0, DONE), instance("app"))))
    now = end_status(spec, was)
    assert isinstance(only(now).state, ContainerTerminated)
    assert isinstance(only(end_status(spec, was, rules=KUBELET)).state, ContainerRunning)
    heard = end_status(spec, was, source_status=was, rules=KUBELET)
    assert isinstance(only(heard).state, ContainerTerminated)


def test_what_never_began_is_not_lost() -> None:
    """`waits_unbegun`: it waits for what it waited for, also at the end; for a kubelet it is lost."""
    init = Container(name="init", image="i:1")
    was = tell(Observed(pod=pod(init=(init,))))
    now = end_status(pod(init=(init,)), was)
    assert isinstance(only(now).state, ContainerWaiting)
    assert isinstance(only(now, "init").state, ContainerWaiting)
    theirs = end_status(pod(init=(init,)), was, rules=KUBELET)
    assert isinstance(only(theirs, "init").state, ContainerTerminated)
    pulls = Observed(
        pod=attrs.evolve(pod(), deletion_timestamp="2026-01-01T00:00:00Z"),
        report=report(),
        start_failures={"app": StartFailure(reason="ErrImagePull")},
    )
    assert only(tell(pulls)).state == ContainerWaiting(reason="ErrImagePull")
    assert only(tell(pulls, None, KUBELET)).state == ContainerWaiting(reason="ContainerCreating")


def test_what_is_lost_is_not_ready() -> None:
    """At the end as well; a kubelet tells it as it was."""
    was = tell(Observed(pod=pod(), report=report(instance("app"))))
    assert (only(end_status(pod(), was)).ready, only(end_status(pod(), was)).started) == (False, False)
    assert only(end_status(pod(), was, rules=KUBELET)).ready


def test_a_condition_that_is_told_no_longer_is_news() -> None:
    """`sees_dropped`: a kubelet keeps what it told."""
    one = PodStatus(conditions=(PodCondition(type="Ready", status=ConditionStatus.TRUE),))
    assert not same_status(one, PodStatus())
    assert same_status(one, PodStatus(), rules=KUBELET)
    assert not same_status(PodStatus(), one, rules=KUBELET)


@pytest.mark.parametrize(("rules", "code"), [(Rules(), None), (KUBELET, 255)])
def test_what_is_told_of_a_container_that_ended_while_its_runtime_was_away(
    rules: Rules, code: int | None
) -> None:
    """That nobody knows; a kubelet says 255 and the runtime's word, as if it had ended so."""
    web = Pod(uid="u", name="web", containers=(Container(name="app"),), restart_policy=RestartPolicy.NEVER)
    record = ContainerRecord(
        id="c", pod=PodIdentity.of(web), name="app", sandbox_id="s", attempt=0, state=RunState.EXITED
    )
    lost = ContainerReport(record=record, exit=ExitUnknown(), reason="Unknown", finished_unix_s=5.0)
    report = PodReport(uid="u", containers=(lost,))
    status = status_of(Observed(pod=web, report=report), rules=rules)
    (state,) = [one.state for one in status.containers]
    assert isinstance(state, ContainerTerminated)
    if code is None:
        assert (state.exit, state.reason) == (ExitUnknown(), "ContainerStatusUnknown")
    else:
        assert (state.exit, state.reason) == (Exited(code=code), "Unknown")


def test_what_cannot_be_is_told_as_unknown() -> None:
    """`resolves_oddities`: ended for good and seen alive; a kubelet drops the whole status."""
    spec = pod(APP, WORK, policy="Never")
    was = tell(Observed(pod=spec, report=report(instance("app", 0, DONE), instance("work"))))
    known = take_status(None, spec, was, now_unix_s=1.0)
    assert known is not None
    odd = tell(
        Observed(pod=spec, report=report(instance("app", 1), instance("work", 0, BROKEN))), known.status
    )
    now = take_status(known, spec, odd, now_unix_s=2.0)
    assert now is not None
    state = only(now.status).state
    assert isinstance(state, ContainerTerminated)
    assert (state.exit, only(now.status).last_state) == (ExitUnknown(), only(was).state)
    assert isinstance(only(now.status, "work").state, ContainerTerminated)
    assert [one.container for one in now.oddities] == ["app"]
    assert ready(now.status, "ContainersReady")[0] == "False"
    assert take_status(known, spec, odd, now_unix_s=2.0, rules=KUBELET) is known


@pytest.mark.parametrize("rules", [Rules(), KUBELET])
def test_an_init_container_that_memory_ran_out_for_is_tried_again(rules: Rules) -> None:
    """Its next instance is no oddity, and its back-off is told; a kubelet takes exit status 0 for its end."""
    spec = pod(init=(Container(name="init"),), policy="OnFailure")
    out = Observed(pod=spec, report=report(attrs.evolve(instance("init", 0, DONE), reason="OOMKilled")))
    waits = attrs.evolve(out, start_failures={"init": StartFailure(reason="CrashLoopBackOff")})
    is_told = isinstance(only(tell(waits, rules=rules), "init").state, ContainerWaiting)
    assert only(tell(out, rules=rules), "init").ready is (rules is KUBELET)
    known = take_status(None, spec, tell(out, rules=rules), now_unix_s=1.0, rules=rules)
    assert known is not None
    again = tell(Observed(pod=spec, report=report(instance("init", 1))), known.status, rules)
    odd = oddities_of(spec, known.status, again, rules=rules)
    assert (is_told, bool(odd)) == ((False, True) if rules is KUBELET else (True, False))


@pytest.mark.parametrize("policy", ["Never", "OnFailure"])
def test_an_init_container_that_runs_again_in_another_sandbox_is_told_to_run(policy: str) -> None:
    """It had succeeded in the one before, and was told as unknown; one instance that lives again is odd."""
    spec = pod(APP, init=(Container(name="init"),), policy=policy)
    was = tell(Observed(pod=spec, report=report(instance("init", 0, DONE))))
    known = take_status(None, spec, was, now_unix_s=1.0)
    assert known is not None
    runs = tell(Observed(pod=spec, report=report(instance("init", 1))), known.status)
    now = take_status(known, spec, runs, now_unix_s=2.0)
    assert now is not None
    assert isinstance(only(now.status, "init").state, ContainerRunning)
    assert take_status(known, spec, runs, now_unix_s=2.0, rules=KUBELET) is known
    lives = tell(Observed(pod=spec, report=report(instance("init", 0))), known.status)
    assert oddities_of(spec, known.status, lives)


def test_what_was_told_to_have_ended_waits_for_no_start_once_its_pod_ends() -> None:
    """Its records are gone, and why it did not start is known still: it was told as unknown."""
    spec = pod(APP, policy="Never")
    was = tell(Observed(pod=spec, report=report(instance("app", 0, DONE))))
    failure = StartFailure(reason="CrashLoopBackOff")
    over = Observed(pod=spec, life=LifeState.TERMINATED, start_failures={"app": failure})
    now = tell(over, was)
    assert only(now).state == only(was).state
    assert not oddities_of(spec, was, now)


def test_seen_again_and_again_what_cannot_be_is_one_change() -> None:
    """The same oddity, told once, says nothing new the next time."""
    spec = pod(policy="Never")
    known = take_status(
        None, spec, tell(Observed(pod=spec, report=report(instance("app", 0, DONE)))), now_unix_s=1.0
    )
    versions = []
    for _ in range(3):
        assert known is not None
        odd = tell(Observed(pod=spec, report=report(instance("app", 1))), known.status)
        known = take_status(known, spec, odd, now_unix_s=2.0)
        assert known is not None
        versions.append((known.version, len(known.oddities)))
    assert versions == [(2, 1)] * 3


def test_statuses_of_other_containers_than_the_pod_has_are_named() -> None:
    """Init containers that do not fit the pod are an oddity, and nothing is made of them."""
    was = PodStatus(init_containers=(ContainerStatus(name="other"),))
    (odd,) = oddities_of(pod(policy="Never"), was, PodStatus())
    assert (odd.container, odd.revived) == ("other", False)
    taken = take_status(None, pod(policy="Never"), PodStatus(), source_status=was, now_unix_s=1.0)
    assert taken is not None
    assert taken.status.init_containers == ()


def test_times_change_with_what_they_are_of() -> None:
    """A condition is as it is since it last changed; the start never moves."""
    spec = pod()
    first = take_status(None, spec, tell(Observed(pod=spec)), now_unix_s=5.5)
    assert first is not None
    assert first.status.started_unix_s == 5.0
    up = tell(Observed(pod=spec, report=report(instance("app"))), first.status)
    second = take_status(first, spec, up, now_unix_s=9.9)
    assert second is not None
    assert (second.version, second.status.started_unix_s) == (2, 5.0)
    times = {one.type: one.last_transition_unix_s for one in second.status.conditions}
    assert times == {
        "PodReadyToStartContainers": 9.0,
        "Initialized": 5.0,
        "Ready": 9.0,
        "ContainersReady": 9.0,
        "PodScheduled": 5.0,
    }
    assert take_status(second, spec, up, now_unix_s=20.0) is second


def test_last_words_share_twelve_kibibytes() -> None:
    """Each container of a pod has its part of them, cut between characters."""
    long = ContainerTerminated(exit=BROKEN, message="é" * 10_000)
    both = tuple(ContainerStatus(name=name, state=long) for name in ("app", "work"))
    taken = take_status(None, pod(APP, WORK), PodStatus(containers=both), now_unix_s=1.0)
    assert taken is not None
    state = only(taken.status).state
    assert isinstance(state, ContainerTerminated)
    assert len(state.message.encode()) == 6 * 1024
    alone = take_status(None, pod(APP, WORK), PodStatus(containers=both[:1]), now_unix_s=1.0)
    assert alone is not None
    assert only(alone.status).state == state


def test_what_is_kept_is_in_the_order_of_names() -> None:
    """Main and ephemeral containers, whoever told of them in which order."""
    main, debug = (
        tuple(ContainerStatus(name=name, state=ContainerWaiting()) for name in names)
        for names in ("ba", "dc")
    )
    status = PodStatus(containers=main, ephemeral_containers=debug)
    taken = take_status(None, pod(), status, now_unix_s=1.0)
    assert taken is not None
    assert "".join(one.name for one in taken.status.all_containers) == "abcd"


def test_a_verdict_changes_what_follows_from_it() -> None:
    """Ready of the container, and both conditions; an instance that is not told of changes nothing."""
    was = tell(Observed(pod=pod(PROBED), report=report(instance("app"))))
    now = with_verdict(pod(PROBED), was, "containerd://app-0", ready=True)
    assert (only(now).ready, ready(now), ready(now, "ContainersReady")) == (True, ("True", ""), ("True", ""))
    assert with_verdict(pod(PROBED), was, "containerd://other", ready=True) == was
    started = with_verdict(pod(PROBED), was, "containerd://app-0", started=False)
    assert (only(started).started, started.conditions) == (False, was.conditions)


def test_an_end_is_held_back_from_others_while_containers_could_run() -> None:
    """Their phase stays, with its reason; once it is let through the pod is not ready."""
    theirs = PodStatus(phase=PodPhase.RUNNING, reason="r")
    up = PodCondition(type="Ready", status=ConditionStatus.TRUE)
    ours = PodStatus(phase=PodPhase.FAILED, reason="Evicted", conditions=(up,))
    held = merge_status(theirs, ours, could_run=True, now_unix_s=1.0)
    assert (held.phase, held.reason, ready(held)) == (PodPhase.RUNNING, "r", ("True", ""))
    told = merge_status(theirs, ours, could_run=False, now_unix_s=1.0)
    assert (told.phase, told.reason, ready(told)) == (PodPhase.FAILED, "Evicted", ("False", "PodFailed"))


def test_conditions_of_others_stay_theirs() -> None:
    """Only the node's own are replaced."""
    gate = PodCondition(type="example.com/lb", status=ConditionStatus.TRUE)
    theirs = PodStatus(conditions=(gate,))
    mine = attrs.evolve(gate, status=ConditionStatus.FALSE)
    ours = PodStatus(
        conditions=(mine, PodCondition(type="Ready", status=ConditionStatus.FALSE)), phase=PodPhase.RUNNING
    )
    sent = merge_status(theirs, ours, could_run=True, now_unix_s=None)
    assert [(one.type, one.status.value) for one in sent.conditions] == [
        ("example.com/lb", "True"),
        ("Ready", "False"),
    ]


def test_each_rule_changes_the_rows_that_it_names() -> None:
    """The kubelet's answer differs from ours there, field by field, and nowhere without a field."""
    assert kubelet_with() == KUBELET
    changed = {name: not getattr(KUBELET, name) for name in attrs.asdict(KUBELET)}
    assert kubelet_with(**changed) == Rules()


def test_values_that_say_nothing_are_refused() -> None:
    """A reason is a word for programs."""
    with pytest.raises(ValueError, match="one word"):
        StartFailure(reason="")
    with pytest.raises(ValueError, match="one word"):
        ToldEnding(reason="")
