"""Each guarantee of a simulated node is broken once, by hand: its checker says so, and in which words."""

# ruff: noqa: D103 - what breaks a guarantee has its name

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import attrs
import pytest

from nodealloc.cgroups import CgroupName, Limits
from nodealloc.devices import Capacity, PluginUnavailableError
from nodealloc.idset import CPUSet, NodeSet
from nodealloc.podfacts import (
    ConditionStatus,
    ContainerRunning,
    ContainerStatus,
    ContainerTerminated,
    ContainerWaiting,
    Exited,
    ExitUnknown,
    PodCondition,
    PodIdentity,
    PodPhase,
    PodStatus,
)
from nodealloc.podspec import (
    Container,
    ContainerPort,
    ExecAction,
    Lifecycle,
    LifecycleHandler,
    Pod,
    Probe,
    PullPolicy,
    Quantity,
    RestartPolicy,
    SecurityContext,
    Variable,
    Volume,
    VolumeUse,
)
from nodealloc.runtime import ContainerConfig, HostMount, LinuxResources, SandboxConfig
from nodealloc.testing.simulation.node import GUARANTEES, Ran, What
from nodealloc.testing.simulation.node._behaviour import IMAGE
from nodealloc.testing.simulation.node._environment import API, FILE
from nodealloc.testing.simulation.node._pods import LIVE, POST_START, PRE_STOP, READY, STARTED
from nodealloc.testing.simulation.node._resources import variable_of
from nodealloc.volumes import Use
from tests.unit.node.simulated_scene import APP, Scene

CGROUP = CgroupName.of("kubepods", "burstable", "podu")
GPU = "sim.example/gpu"
OWN = {"cpu": Quantity.of(1), "memory": Quantity.of("11Gi")}
ALONE = attrs.evolve(APP, requests=OWN, limits=OWN)
DEVICE = attrs.evolve(ALONE, requests={**OWN, GPU: Quantity.of(1)}, limits={**OWN, GPU: Quantity.of(1)})
RUNS = ContainerStatus(name="app", state=ContainerRunning())


def probed(command: str, *, passes: int = 1, delay_s: int = 0) -> Probe:
    """A probe that runs a command."""
    return Probe(exec=ExecAction(command=(command,)), success_threshold=passes, initial_delay_seconds=delay_s)


class Broken(NamedTuple):
    """What breaks a guarantee; what is then said; whether that is said when all is quiet, or empty."""

    does: Callable[[Scene], object]
    said: str
    when: str = "heard"


def always_fetched(scene: Scene) -> None:
    scene.wants(container=attrs.evolve(APP, image_pull_policy=PullPolicy.ALWAYS))
    scene.environment.containers.fetch(IMAGE, was_there=True)
    starts_again(scene)


def never_fetched(scene: Scene) -> None:
    scene.wants(container=attrs.evolve(APP, image="own:1", image_pull_policy=PullPolicy.NEVER))
    scene.environment.containers.fetch("own:1", was_there=False)


def fetched_again(scene: Scene) -> None:
    scene.wants()
    scene.environment.containers.fetch(IMAGE, was_there=True)


def unwell_for_long(scene: Scene) -> None:
    scene.environment.only_ends = True
    probe = attrs.evolve(probed(LIVE), failure_threshold=2, timeout_seconds=1)
    scene.wants(container=attrs.evolve(APP, liveness_probe=probe))
    made = scene.runs()
    for _ in range(2):
        scene.happens(What.RAN, uid="u", name="app", id=made, value=Ran(LIVE, "1"))
    scene.clock.advance(20.0)
    scene.wants("v")


def stays_stopped(scene: Scene) -> None:
    """Another image is wanted of it, and it leaves with 0."""
    scene.wants(restart_policy=RestartPolicy.NEVER)
    made = scene.runs()
    other = attrs.evolve(APP, image="busybox:2")
    scene.environment.edit(attrs.evolve(scene.environment.known["u"], containers=(other,)), "app")
    scene.ends(made, 0.0)


def never_comes(scene: Scene) -> None:
    scene.wants()


def never_runs(scene: Scene) -> None:
    scene.wants(restart_policy=RestartPolicy.NEVER)
    scene.runs(starts=False)
    scene.told(containers=(ContainerStatus(name="app", state=ContainerWaiting(reason="ContainerCreating")),))


def ends_for_good(scene: Scene) -> None:
    """With policy OnFailure it does not, where it fails."""
    scene.wants(restart_policy=RestartPolicy.ON_FAILURE)
    scene.crashes(scene.runs())
    ended = ContainerTerminated(exit=Exited(code=7))
    scene.told(containers=(ContainerStatus(name="app", state=ended),))


def two_sandboxes(scene: Scene) -> None:
    scene.wants()
    scene.runs()
    config = SandboxConfig(pod=PodIdentity.of(scene.environment.known["u"]), hostname="u", attempt=1)
    scene.environment.containers.run_sandbox(config)


def made_with(
    path: str, *, host_path: str = "/pods/u/own", env: str = IMAGE, reads: bool = False
) -> Callable[[Scene], None]:
    """With a variable, and a mount; it is to have its image's name, and the pod's own volume."""

    def broken(scene: Scene) -> None:
        own = Variable(name="FROM", value=IMAGE)
        use = VolumeUse(name="own", path="/own", read_only=reads)
        other = attrs.evolve(APP, name="other", volumes=(attrs.evolve(use, path="/other"),))
        scene.wants(containers=(attrs.evolve(APP, variables=(own,), volumes=(use,)), other))
        scene.runs(env={"FROM": env}, mounts=(HostMount(host_path=host_path, container_path=path),))

    return broken


def made_as_another(scene: Scene) -> None:
    its = attrs.evolve(APP, entrypoint=("work",), working_dir="/app")
    scene.wants(container=attrs.evolve(its, security_context=SecurityContext(run_as_user=7)))
    scene.runs()


def boxed(hostname: str, parent: str = "") -> Callable[[Scene], None]:
    """In a sandbox without its port of the node."""

    def broken(scene: Scene) -> None:
        port = ContainerPort(container_port=80, host_port=8080)
        scene.wants(container=attrs.evolve(APP, ports=(port,)))
        pod = PodIdentity.of(scene.environment.known["u"])
        box = SandboxConfig(pod=pod, hostname=hostname, cgroup_parent=parent)
        scene.environment.containers.run_sandbox(box, scene.clock.awake_s)

    return broken


def in_cgroup(scene: Scene, limits: Limits, *, asked_s: float | None = None) -> None:
    """It runs in its cgroup with these limits; nothing else is burstable."""
    amounts = {"cpu": Quantity.of("1"), "memory": Quantity.of("64Mi")}
    scene.wants(container=attrs.evolve(APP, requests=amounts))
    cgroups = scene.environment.cgroups
    cgroups.leave(CGROUP.path())
    cgroups.apply(CGROUP.parent, Limits(cpu_shares=1024))
    cgroups.apply(CGROUP, limits)
    pod = PodIdentity.of(scene.environment.known["u"])
    box = SandboxConfig(pod=pod, hostname="u", cgroup_parent=CGROUP.path())
    made = scene.environment.containers.run_sandbox(box, asked_s)
    config = ContainerConfig(name="app", image=IMAGE)
    scene.environment.containers.start_container(
        scene.environment.containers.create_container(made, config, box)
    )


def cgroup_is_taken(scene: Scene) -> None:
    in_cgroup(scene, Limits())
    scene.environment.cgroups.kill(CGROUP)
    scene.environment.cgroups.remove(CGROUP)


def cgroup_is_missing(scene: Scene) -> None:
    scene.environment.cgroups.leave("/kubepods")
    scene.environment.cgroups.apply(CGROUP.parent, Limits())
    boxed("u", CGROUP.path())(scene)


def cgroup_of_others(scene: Scene) -> None:
    scene.environment.cgroups.apply(CgroupName.of("system.slice"), Limits(cpu_shares=2))


def cgroup_of_nobody(scene: Scene) -> None:
    in_cgroup(scene, Limits(cpu_shares=1024))
    scene.environment.cgroups.kill(CGROUP)
    scene.environment.let_go("u")


def cgroups_differ(scene: Scene) -> None:
    in_cgroup(scene, Limits(cpu_shares=2))


def is_not_limited_yet(scene: Scene) -> None:
    in_cgroup(scene, Limits(cpu_shares=2), asked_s=scene.clock.awake_s)


def class_is_missing(scene: Scene) -> None:
    """After a boot its directory could not be made, so far."""
    scene.environment.cgroups.apply(CgroupName.of("kubepods"), Limits(cpu_shares=2))


def class_differs(scene: Scene) -> None:
    in_cgroup(scene, Limits(cpu_shares=1024))
    scene.environment.cgroups.apply(CGROUP.parent, Limits(cpu_shares=2))


def given_no_quota(scene: Scene) -> None:
    scene.wants(container=ALONE)
    made = scene.runs()
    amounts = LinuxResources(cpu_shares=1024, memory_bytes=11 << 30)
    scene.environment.containers.update_container(made, amounts)


def anothers_probe(scene: Scene) -> None:
    scene.wants()
    ran = Ran.of((READY, "other"), "0")
    scene.happens(What.RAN, uid="u", name="app", id=scene.runs(), value=ran)


def starts_again(scene: Scene, code: int = 7) -> None:
    """A container ends, and there is another one of its name."""
    scene.crashes(scene.runs(), code)
    scene.runs(attempt=1)


def one_copy(scene: Scene) -> None:
    scene.wants()
    scene.runs()
    scene.runs(attempt=1)


def one_of_a_name(scene: Scene) -> None:
    for uid in ("u", "v"):
        scene.wants(uid, name="web")
        scene.runs(uid)


def never_gone(scene: Scene) -> None:
    scene.wants()
    scene.told()
    scene.environment.let_go("u")


def amounts_arrive(scene: Scene) -> None:
    scene.wants(container=sized("1"))
    scene.runs(resources=LinuxResources(cpu_shares=1024))
    scene.environment.edit(attrs.evolve(scene.environment.known["u"], containers=(sized("2"),)), "2 cpu")


def amounts_of_another(scene: Scene) -> None:
    scene.wants(container=sized("1"))
    made = scene.runs(resources=LinuxResources(cpu_shares=1024))
    scene.environment.containers.update_container(made, LinuxResources(cpu_shares=2048))


def edits_take_nothing(scene: Scene) -> None:
    scene.environment.is_aligned = True
    scene.wants(container=sized("1", is_own=True))
    made = scene.runs()
    other = attrs.evolve(sized("2", is_own=True), image="busybox:2")
    scene.environment.edit(attrs.evolve(scene.environment.known["u"], containers=(other,)), "2 cpu")
    scene.ends(made, 10.0)


def sized(cpus: str, *, is_own: bool = False) -> Container:
    amounts = {"cpu": Quantity.parse(cpus), "memory": Quantity.parse("64Mi")}
    return attrs.evolve(APP, requests=amounts, limits=amounts if is_own else {})


def attempts_once(scene: Scene) -> None:
    scene.wants()
    made = scene.runs()
    scene.crashes(made)
    scene.environment.containers.remove_container(made)
    scene.runs()


def finished_stays(scene: Scene) -> None:
    scene.wants(restart_policy=RestartPolicy.NEVER)
    starts_again(scene)


def finished_in_another_sandbox(scene: Scene) -> None:
    scene.wants(restart_policy=RestartPolicy.ON_FAILURE)
    scene.crashes(scene.runs(), 0)
    scene.environment.containers.run_sandbox(
        SandboxConfig(pod=PodIdentity.of(scene.environment.known["u"]), hostname="u", attempt=1)
    )


def failed_calls_wait(scene: Scene) -> None:
    scene.wants()
    for after_s in (0.0, 0.6, 0.6):
        scene.clock.advance(after_s)
        scene.environment.outages.failed("run_sandbox", "u")


def failed_fetches_wait(scene: Scene) -> None:
    scene.wants(container=attrs.evolve(APP, image="busybox:2"))
    for after_s in (0.0, 10.0, 12.0):
        scene.clock.advance(after_s)
        scene.environment.outages.failed("pull_image", "busybox:2")


def init_once(scene: Scene) -> None:
    scene.wants(init_containers=(attrs.evolve(APP, name="init"),))
    scene.crashes(scene.runs(name="init"), 0)
    scene.runs(name="init", attempt=1)


def failed_init_once(scene: Scene) -> None:
    scene.wants(init_containers=(attrs.evolve(APP, name="init"),), restart_policy=RestartPolicy.NEVER)
    scene.crashes(scene.runs(name="init"), 1)
    scene.runs(name="init", attempt=1)


def nothing_without_reason(scene: Scene) -> None:
    scene.wants()
    scene.ends(scene.runs(), 5.0)


def one_deadline(scene: Scene) -> None:
    scene.wants()
    made = scene.runs()
    scene.deleted()
    scene.ends(made, 10.0)
    scene.clock.advance(5.0)
    scene.ends(made, 10.0)


def grace_is_given(scene: Scene) -> None:
    scene.wants(termination_grace_period_seconds=5)
    made = scene.runs()
    scene.deleted()
    scene.ends(made, 0.0)


def hooks_first(scene: Scene) -> None:
    hook = LifecycleHandler(exec=ExecAction(command=("pre-stop",)))
    scene.wants(container=attrs.evolve(APP, lifecycle=Lifecycle(pre_stop=hook)))
    scene.ends(scene.runs(), 5.0)


def sidecars_last(scene: Scene) -> None:
    scene.wants(init_containers=(attrs.evolve(APP, name="proxy", restartable=True),))
    proxy = scene.runs(name="proxy")
    scene.runs()
    scene.deleted()
    scene.ends(proxy, 5.0)


def restarts_wait(scene: Scene) -> None:
    scene.wants()
    starts_again(scene)
    scene.crashes(scene.environment.containers.running[0].record.id)
    scene.runs(attempt=2)


def unwell_go(command: str) -> Callable[[Scene], None]:
    def does(scene: Scene) -> None:
        probe = probed(command)
        scene.wants(container=attrs.evolve(APP, liveness_probe=probe, startup_probe=probe))
        scene.environment.containers.sicken(scene.runs(), command)

    return does


def images_stay(scene: Scene) -> None:
    scene.wants()
    scene.runs()
    scene.environment.containers.remove_image(APP.image)


def newest_stays(scene: Scene) -> None:
    scene.wants()
    made = scene.runs()
    scene.crashes(made)
    scene.environment.containers.remove_container(made)


def terminal_stays(scene: Scene) -> None:
    scene.wants()
    scene.told(PodPhase.SUCCEEDED)
    scene.told(PodPhase.RUNNING)


def phases_go_on(scene: Scene) -> None:
    scene.wants()
    scene.runs()
    scene.told(containers=[RUNS])
    scene.told(PodPhase.PENDING)


def ready_falls_first(scene: Scene) -> None:
    scene.wants()
    made = scene.runs()
    scene.told(ready=True)
    scene.deleted()
    scene.ends(made, 10.0)


def ready_is_earned(scene: Scene) -> None:
    scene.wants(container=attrs.evolve(APP, readiness_probe=probed(READY, passes=2)))
    made = scene.runs()
    scene.happens(What.RAN, uid="u", name="app", id=made, value=Ran(READY, "0"))
    scene.told(ready=True, containers=[RUNS])


def readiness_stands(scene: Scene) -> None:
    scene.wants()
    scene.runs()
    scene.told(ready=True, containers=[RUNS])
    scene.told(ready=False)


def startup_first(scene: Scene) -> None:
    scene.wants(container=attrs.evolve(APP, readiness_probe=probed(READY), startup_probe=probed(STARTED)))
    scene.happens(What.RAN, uid="u", name="app", id=scene.runs(), value=Ran(READY, "0"))


def slow_costs_itself(scene: Scene) -> None:
    scene.environment.only_hangs = True
    scene.wants()
    scene.clock.advance(31.0)
    scene.wants("v")


def hooked(scene: Scene) -> str:
    """A container with a hook runs, and only calls that hang go wrong."""
    scene.environment.only_hangs = True
    hook = LifecycleHandler(exec=ExecAction(command=(PRE_STOP,)))
    scene.wants(container=attrs.evolve(APP, lifecycle=Lifecycle(pre_stop=hook)))
    made = scene.runs()
    scene.deleted()
    scene.reads_end()
    return made


def hooks_have_time(scene: Scene) -> None:
    scene.ends(hooked(scene), 2.0)


def nobody_is_asked(scene: Scene) -> None:
    made = hooked(scene)
    scene.happens(What.RAN, uid="u", name="app", id=made, value=Ran(PRE_STOP, "0"))
    scene.ends(made, 0.0)


def hook_outlives_its_container(scene: Scene) -> None:
    scene.environment.only_ends = True
    scene.wants()
    made = scene.runs()
    scene.crashes(made)
    scene.clock.advance(7.0)
    scene.happens(What.AWAITED, uid="u", name="app", id=made, value=PRE_STOP)


def hook_holds_back_an_end(scene: Scene) -> None:
    scene.environment.only_ends = True
    scene.wants()
    made = scene.runs()
    scene.deleted()
    scene.clock.advance(7.0)
    scene.happens(What.AWAITED, uid="u", name="app", id=made, value=POST_START)


def killed_in_time(scene: Scene) -> None:
    made = hooked(scene)
    scene.happens(What.HUNG, uid="u", id=made, value="stop_container")
    scene.clock.advance(21.0)
    scene.wants("v")


def mounts_in_time(scene: Scene) -> None:
    scene.environment.only_hangs = True
    names = ("own", "shared")
    app = attrs.evolve(APP, volumes=tuple(VolumeUse(name=one, path=f"/{one}") for one in names))
    scene.wants(container=app, volumes=tuple(Volume(name=one, kind="emptyDir") for one in names))
    scene.happens(What.MOUNTED, uid="u", id="disk/u/own")
    scene.clock.advance(61.0)
    scene.wants("v")


def counts_rise(scene: Scene) -> None:
    scene.wants()
    scene.told(containers=[attrs.evolve(RUNS, restart_count=1)])


def exits_are_true(scene: Scene) -> None:
    scene.wants()
    made = scene.runs()
    scene.crashes(made, 7)
    ended = ContainerTerminated(exit=Exited(code=3), container_id=f"sim://{made}")
    scene.told(containers=[attrs.evolve(RUNS, state=ended)])


def ends_are_kept(scene: Scene) -> None:
    scene.wants()
    made = scene.runs()
    scene.crashes(made)
    ended = ContainerTerminated(exit=ExitUnknown(), container_id=f"sim://{made}")
    scene.told(containers=[attrs.evolve(RUNS, state=ended)])


def nothing_afterwards(scene: Scene) -> None:
    scene.wants()
    scene.runs()
    scene.environment.say_gone("u")


def cpus_once(scene: Scene) -> None:
    for uid in ("u", "v"):
        scene.wants(uid, ALONE)
        scene.runs(uid, resources=LinuxResources(cpus=CPUSet.of(1)))


def bytes_once(scene: Scene) -> None:
    for uid in ("u", "v"):
        scene.wants(uid, ALONE)
        scene.runs(uid, resources=LinuxResources(mems=NodeSet.of(0)))


def starts_anywhere(scene: Scene) -> None:
    for uid, mems in (("u", NodeSet.of(0)), ("v", None), ("w", None)):
        scene.wants(uid, ALONE)
        scene.runs(uid, resources=LinuxResources(mems=mems))


def fits_the_node(scene: Scene) -> None:
    four = {"cpu": Quantity.of(4), "memory": Quantity.of("1Gi")}
    for uid in ("u", "v"):
        scene.wants(uid, attrs.evolve(APP, requests=four))
        scene.runs(uid)


def init_first(scene: Scene) -> None:
    scene.wants(init_containers=(attrs.evolve(APP, name="init"),))
    scene.crashes(scene.runs(name="init"), 1)
    scene.runs()


def devices_are_well(scene: Scene) -> None:
    scene.environment.plugins.ill_s["gpu-0"] = scene.clock.awake_s
    scene.clock.advance(1.0)
    scene.wants(container=DEVICE)
    scene.runs(env=given("gpu-0"))


def allocated_again(scene: Scene) -> None:
    scene.environment.only_ends = True
    scene.wants(container=DEVICE)
    scene.environment.plugins.did(What.ALLOCATED, GPU, ["gpu-0"])
    scene.runs(env=given("gpu-0"))
    scene.environment.plugins.did(What.ALLOCATED, GPU, ["gpu-0"])


def reported(there: int, well: int, *, away_s: float = 0.0) -> Callable[[Scene], None]:
    """So many devices are, of a plugin that was heard, and that nobody has followed for so long."""

    def does(scene: Scene) -> None:
        scene.environment.only_ends = True
        plugins = scene.environment.plugins
        plugins.heard_s[GPU] = scene.clock.awake_s
        plugins.reports(lambda: {GPU: Capacity(there, well)})
        if away_s:
            with pytest.raises(PluginUnavailableError):
                next(plugins.connect("/plugins/gpu-1.sock").lists())
            scene.clock.advance(away_s)
            scene.told()

    return does


def cpus_shared(scene: Scene) -> None:
    scene.environment.say_aligned()
    for uid, cpus in (("u", CPUSet.of(1, 2)), ("v", CPUSet.of(1, 2, 3))):
        scene.wants(uid)
        scene.runs(uid, resources=LinuxResources(cpus=cpus))


def placement_stands(scene: Scene) -> None:
    scene.wants(container=ALONE)
    made = scene.runs(resources=LinuxResources(cpus=CPUSet.of(1)))
    scene.environment.containers.update_container(made, LinuxResources(cpus=CPUSet.of(2)))


def aligned(scene: Scene) -> None:
    scene.environment.say_aligned()
    two = {"cpu": Quantity.of(2), "memory": Quantity.of("1Gi")}
    scene.wants(container=attrs.evolve(APP, requests=two, limits=two))
    scene.runs(resources=LinuxResources(cpus=CPUSet.of(1, 5)))


def given(ids: str) -> dict[str, str]:
    """As a plugin tells a container its devices."""
    return {variable_of(GPU): ids}


def devices_once(scene: Scene) -> None:
    scene.environment.plugins.are_asked = True
    for uid in ("u", "v"):
        scene.wants(uid, DEVICE)
        scene.runs(uid, env=given("gpu-0"))


def devices_stand(scene: Scene) -> None:
    scene.wants(container=DEVICE)
    scene.crashes(scene.runs(env=given("gpu-0")))
    scene.runs(attempt=1, env=given("gpu-1"))


def devices_aligned(scene: Scene) -> None:
    scene.environment.say_aligned()
    scene.wants(container=DEVICE)
    scene.runs(env=given("gpu-3"), resources=LinuxResources(cpus=CPUSet.of(1)))


def plugins_asked(scene: Scene) -> None:
    scene.wants(container=DEVICE)
    scene.runs(env=given("gpu-0"))


def mounts_accounted(scene: Scene) -> None:
    app = attrs.evolve(APP, volumes=(VolumeUse(name="own", path="/own"),))
    scene.wants(container=app, volumes=(Volume(name="own", kind="emptyDir"),))
    scene.runs()


def mounted_for_writing(scene: Scene) -> None:
    app = attrs.evolve(APP, volumes=(VolumeUse(name="own", path="/own"),))
    scene.wants(container=app, volumes=(Volume(name="own", kind="csi", spec={"readOnly": True}),))
    scene.environment.volumes.mounts["disk/own", "u"] = Use(pod_uid="u", generation=1)
    scene.runs()


def attached_for_nobody(scene: Scene) -> None:
    scene.environment.volumes.attached.add("data")


def something_runs(scene: Scene) -> None:
    scene.wants()
    scene.runs()


def over_runs(scene: Scene) -> None:
    scene.environment.over.add("u")
    scene.wants()
    scene.runs()


def over_waits(scene: Scene) -> None:
    scene.environment.over.add("u")
    scene.wants()
    scene.told(PodPhase.PENDING)


def rest_waits(scene: Scene) -> None:
    scene.wants("rest-1")
    scene.told(PodPhase.FAILED, uid="rest-1", reason="OutOfcpu")


def refused(scene: Scene, reason: str = "") -> None:
    scene.wants(container=ALONE)
    scene.told(PodPhase.FAILED, reason=reason)


def refused_falsely(scene: Scene) -> None:
    refused(scene, "OutOfcpu")


def edits_are_made(scene: Scene) -> None:
    something_runs(scene)
    scene.wants(container=attrs.evolve(APP, image="busybox:2"))


def deadlines_end(scene: Scene) -> None:
    scene.wants(active_deadline_seconds=20)
    scene.runs()
    scene.clock.advance(100.0)


def deadlines_end_early(scene: Scene) -> None:
    scene.wants(active_deadline_seconds=20)
    scene.told(PodPhase.FAILED, reason="DeadlineExceeded")


def hooks_are_run(scene: Scene) -> None:
    hook = LifecycleHandler(exec=ExecAction(command=("post-start",)))
    scene.wants(container=attrs.evolve(APP, lifecycle=Lifecycle(post_start=hook)))
    scene.runs()


def probes_go_on(scene: Scene) -> None:
    scene.wants(container=attrs.evolve(APP, readiness_probe=probed(READY)))
    scene.runs()
    scene.clock.advance(200.0)


def probes_go_on_early(scene: Scene) -> None:
    scene.wants(container=attrs.evolve(APP, readiness_probe=probed(READY, delay_s=7)))
    scene.happens(What.RAN, uid="u", name="app", id=scene.runs(), value=Ran(READY, "0"))


def deleted_long_ago(scene: Scene, after_s: float = 20.0) -> None:
    """A pod runs, and the agent has read that it had ten seconds to end."""
    scene.environment.only_ends = True
    scene.wants()
    scene.runs()
    scene.clock.advance(100.0)
    scene.reads_end()
    scene.clock.advance(after_s)
    scene.wants("v")


def ends_in_time_overdue(scene: Scene) -> None:
    scene.environment.only_ends = True
    scene.wants(active_deadline_seconds=20)
    scene.runs()
    scene.clock.advance(30.0)
    scene.wants("v")


def ends_in_time_unasked(scene: Scene) -> None:
    scene.environment.only_tells = True
    scene.wants()
    scene.runs()
    scene.clock.advance(20.0)
    scene.deleted(grace_s=60.0)
    scene.reads_end(grace_s=60.0)
    scene.clock.advance(30.0)
    scene.happens(What.EDITED)


def hears_in_time(scene: Scene) -> None:
    scene.environment.only_ends = True
    scene.environment.reads.reading(API)
    scene.environment.reads.changed(API)
    scene.clock.advance(30.0)
    scene.wants()


def hooks_once(scene: Scene) -> None:
    scene.environment.only_ends = True
    scene.wants()
    made = scene.runs()
    for _ in range(2):
        scene.happens(What.RAN, uid="u", name="app", id=made, value=Ran(PRE_STOP, "0"))


def made_as_wanted(scene: Scene) -> None:
    scene.environment.only_ends = True
    scene.wants()
    scene.environment.reads.edited(API, "u", "app", "busybox:2")
    scene.environment.reads.reading(API)()
    scene.clock.advance(10.0)
    scene.runs()


def probes_in_time(scene: Scene) -> None:
    scene.environment.only_ends = True
    scene.wants(container=attrs.evolve(APP, liveness_probe=probed(LIVE)))
    made = scene.runs()
    for _ in range(2):
        scene.happens(What.RAN, uid="u", name="app", id=made, value=Ran(LIVE, "0"))
        scene.clock.advance(60.0)


def answered(scene: Scene, container: Container, ran: Ran, *, times: int, ready: bool = False) -> None:
    """A probe answers again and again, and others were told whether its container is ready."""
    scene.environment.only_ends = True
    scene.wants(container=container)
    made = scene.runs()
    scene.told(containers=[attrs.evolve(RUNS, container_id=f"sim://{made}", ready=ready)])
    for _ in range(times):
        scene.happens(What.RAN, uid="u", name="app", id=made, value=ran)
        scene.clock.advance(5.0)


def failures_count(scene: Scene) -> None:
    answered(scene, attrs.evolve(APP, liveness_probe=probed(LIVE)), Ran(LIVE, "1"), times=4)


def asked_too_rarely(scene: Scene) -> None:
    asked_each(scene, 7.0)


def asked_too_often(scene: Scene) -> None:
    asked_each(scene, 4.0)


def asked_from_answers(scene: Scene) -> None:
    asked_each(scene, 5.15)


def asked_each(scene: Scene, seconds: float) -> None:
    """Eleven times, of a probe with a period of 5 s."""
    scene.environment.only_ends = True
    probe = attrs.evolve(probed(LIVE), period_seconds=5)
    scene.wants(container=attrs.evolve(APP, liveness_probe=probe))
    made = scene.runs()
    for _ in range(11):
        scene.happens(What.RAN, uid="u", name="app", id=made, value=Ran(LIVE, "0"))
        scene.clock.advance(seconds)


def startup_counts(scene: Scene) -> None:
    answered(scene, attrs.evolve(APP, startup_probe=probed(STARTED)), Ran(STARTED, "0"), times=2)


def unready_counts(scene: Scene) -> None:
    probe = probed(READY)
    answered(scene, attrs.evolve(APP, readiness_probe=probe), Ran(READY, "1"), times=4, ready=True)


def ready_counts(scene: Scene) -> None:
    probe = probed(READY, passes=2)
    answered(scene, attrs.evolve(APP, readiness_probe=probe), Ran(READY, "0"), times=3)


def told_nothing(scene: Scene) -> str:
    """A container runs for long, and others were told that it does, or were not."""
    scene.environment.only_tells = True
    scene.wants()
    made = scene.runs()
    scene.clock.advance(60.0)
    return made


def told_in_time(scene: Scene) -> None:
    told_nothing(scene)
    scene.environment.sink.began("u")
    scene.happens(What.EDITED)
    scene.environment.sink.ended("u")
    scene.clock.advance(60.0)
    scene.happens(What.EDITED)


def told_in_time_of_an_end(scene: Scene) -> None:
    made = told_nothing(scene)
    scene.told(containers=[attrs.evolve(RUNS, container_id=f"sim://{made}")])
    scene.crashes(made)
    scene.clock.advance(60.0)
    scene.happens(What.EDITED)


def reasons_stay(scene: Scene) -> None:
    scene.wants()
    scene.told(PodPhase.FAILED, reason="Preempting")
    scene.told(PodPhase.FAILED)


def reasons_of_victims(scene: Scene) -> None:
    scene.wants()
    scene.told(PodPhase.FAILED, victim=True)


def loops(scene: Scene) -> None:
    """A container that was started again has ended again."""
    scene.environment.only_ends = True
    scene.clock.advance(20.0)
    scene.wants()
    starts_again(scene)
    scene.crashes(scene.environment.containers.running[0].record.id)


def waits_untold(scene: Scene) -> None:
    loops(scene)
    scene.told(containers=[attrs.evolve(RUNS, state=ContainerWaiting(reason="ContainerCreating"))])
    scene.clock.advance(8.0)
    scene.wants("v")


def edited_waits(scene: Scene) -> None:
    loops(scene)
    scene.told(containers=[attrs.evolve(RUNS, state=ContainerWaiting(reason="CrashLoopBackOff"))])
    other = attrs.evolve(APP, image="busybox:2")
    scene.environment.edit(attrs.evolve(scene.environment.known["u"], containers=(other,)), "busybox:2")
    scene.environment.reads.edited(API, "u", "app", "busybox:2")
    scene.environment.reads.reading(API)()
    scene.clock.advance(8.0)
    scene.wants("v")


def conditioned(scene: Scene, *true: str, ready: bool = False) -> None:
    """A pod with a sidecar, neither of which is told to run, and conditions that are told to be true."""
    scene.wants(init_containers=(attrs.evolve(APP, name="proxy", restartable=True),))
    waits = [ContainerStatus(name=name, state=ContainerWaiting()) for name in ("proxy", "app")]
    conditions = [PodCondition(type=one, status=ConditionStatus.TRUE) for one in true]
    scene.environment.tell(
        "u",
        PodStatus(
            phase=PodPhase.RUNNING,
            conditions=tuple(conditions),
            init_containers=tuple(waits[:1]),
            containers=(attrs.evolve(waits[1], ready=ready),),
        ),
    )


def sidecar_not_ready(scene: Scene) -> None:
    conditioned(scene, "ContainersReady", ready=True)


def ready_of_nothing(scene: Scene) -> None:
    conditioned(scene, "Ready")


def initialized_early(scene: Scene) -> None:
    conditioned(scene, "Initialized")


def starts_in_nothing(scene: Scene) -> None:
    conditioned(scene, "PodReadyToStartContainers")


def runs_uninitialized(scene: Scene) -> None:
    scene.wants()
    scene.runs()
    scene.told(containers=[RUNS])


def deadlines_end_for_nothing(scene: Scene) -> None:
    scene.environment.only_ends = True
    scene.wants(active_deadline_seconds=20)
    made = scene.runs()
    scene.clock.advance(25.0)
    scene.ends(made, 10.0)
    scene.told(PodPhase.FAILED)


def hook_runs(scene: Scene, after: What, value: object = None) -> None:
    """Of two containers one has a hook that takes its time; something happens to it, and the other starts."""
    scene.environment.only_ends = True
    scene.wants(containers=(APP, attrs.evolve(APP, name="other")))
    made = scene.runs()
    scene.environment.containers.takes_s = lambda container_id, command: 12.0  # type: ignore[method-assign]  # noqa: ARG005
    scene.happens(What.RAN, uid="u", name="app", id=made, value=Ran(POST_START, "0"))
    scene.happens(after, uid="u", name="app", id=made, value=value)
    scene.clock.advance(5.0)
    scene.runs(name="other")


def hooks_hold_back(scene: Scene) -> None:
    hook_runs(scene, What.EDITED)


def strangers_go(scene: Scene) -> None:
    scene.wants()
    scene.environment.containers.intrude(PodIdentity.of(scene.environment.known["u"]), "odd")


def over_and_runs(scene: Scene) -> None:
    scene.wants()
    scene.told(PodPhase.FAILED)
    scene.clock.advance(3600.0)
    scene.environment.containers.start(scene.runs(starts=False), 0.0)


def twin_is_told(scene: Scene) -> None:
    for uid in ("u", "v"):
        scene.environment.want(FILE, Pod(uid=uid, name="web", containers=(APP,)))
    scene.told(uid="u")
    scene.told(uid="v")


def nobody_knows_it(scene: Scene) -> None:
    scene.environment.only_ends = True
    scene.wants()
    scene.clock.advance(40.0)
    scene.happens(What.KILLED)


def phase_is_true(scene: Scene) -> None:
    scene.wants()
    scene.told(PodPhase.SUCCEEDED, containers=[RUNS])


def phase_is_true_of_the_end(scene: Scene) -> None:
    """It waits for its back-off, and its pod is over."""
    scene.wants()
    last = ContainerTerminated(exit=Exited(code=7))
    waits = attrs.evolve(RUNS, state=ContainerWaiting(reason="CrashLoopBackOff"), last_state=last)
    scene.told(PodPhase.FAILED, containers=[waits])


def phase_is_true_of_ready(scene: Scene) -> None:
    scene.wants()
    waits = attrs.evolve(RUNS, state=ContainerWaiting())
    last = ContainerTerminated(exit=Exited(code=0))
    scene.told(ready=True, containers=[attrs.evolve(waits, last_state=last)])


def before_itself(scene: Scene) -> None:
    scene.wants()
    scene.crashes(made := scene.runs())
    ended = ContainerTerminated(exit=Exited(code=7), container_id=f"sim://{made}")
    one = ContainerStatus(name="app", image=IMAGE, container_id=f"sim://{made}")
    scene.told(containers=[attrs.evolve(one, state=ended, last_state=ended)])


def startup_is_earned(scene: Scene) -> None:
    scene.wants(container=attrs.evolve(APP, startup_probe=probed(STARTED)))
    scene.told(containers=[attrs.evolve(RUNS, started=True, container_id=f"sim://{scene.runs()}")])


def startup_of_a_sidecar_is_earned(scene: Scene) -> None:
    sidecar = attrs.evolve(APP, name="side", restartable=True, startup_probe=probed(STARTED))
    scene.wants(init_containers=(sidecar,))
    runs = attrs.evolve(RUNS, name="side", started=True, container_id=f"sim://{scene.runs(name='side')}")
    scene.environment.tell("u", PodStatus(phase=PodPhase.PENDING, init_containers=(runs,)))


def last_end_is_told(scene: Scene) -> None:
    scene.wants()
    starts_again(scene)
    scene.told(containers=[attrs.evolve(RUNS, restart_count=1)])


def lost_end_is_told(scene: Scene, *, is_older: bool = False) -> None:
    scene.wants()
    ids = [scene.runs()]
    scene.crashes(ids[0])
    ids.append(scene.runs(attempt=1))
    told = attrs.evolve(RUNS, image=IMAGE, restart_count=1)
    scene.told(containers=[attrs.evolve(told, container_id=f"sim://{ids[1]}")])
    scene.environment.containers.vanish(ids[1])
    ids.append(scene.runs(attempt=2))
    again = attrs.evolve(told, restart_count=2)
    scene.told(containers=[attrs.evolve(again, container_id=f"sim://{ids[0 if is_older else 2]}")])


def older_end_is_told(scene: Scene) -> None:
    lost_end_is_told(scene, is_older=True)


def starts_are_counted(scene: Scene) -> None:
    scene.wants()
    starts_again(scene)
    scene.told(containers=[RUNS])


def ending_is_awaited(scene: Scene) -> None:
    scene.environment.only_ends = True
    for uid, cpus in (("u", 5), ("v", 4)):
        scene.wants(uid, attrs.evolve(APP, requests={"cpu": Quantity.of(cpus)}))
        scene.deleted(uid) if uid == "u" else None
        scene.clock.advance(10.0)
    scene.told(PodPhase.FAILED, "v", reason="OutOfcpu")


def still_stored(scene: Scene) -> None:
    scene.environment.files = lambda: {"/store/life.u": b""}
    scene.environment.say_gone("u")


def restarts_come(scene: Scene) -> None:
    scene.environment.only_ends = True
    scene.wants()
    scene.crashes(scene.runs())
    scene.clock.advance(11.0)
    scene.wants("v")


def debugged_once(scene: Scene) -> None:
    scene.wants(ephemeral_containers=(attrs.evolve(APP, name="look"),))
    scene.crashes(scene.runs(name="look"), 0)
    scene.runs(name="look", attempt=1)


def never_debugged(scene: Scene) -> None:
    scene.wants(ephemeral_containers=(attrs.evolve(APP, name="look"),))
    scene.runs()
    scene.told()


def ports_once(scene: Scene) -> None:
    for uid in ("u", "v"):
        scene.wants(uid, attrs.evolve(APP, ports=(ContainerPort(container_port=80, host_port=8080),)))
        scene.runs(uid)


def criticals_get_room(scene: Scene, reason: str = "OutOfcpu") -> None:
    """A critical pod of four CPUs finds another one of four, and a third one comes later."""
    scene.environment.only_ends = True
    for uid in ("u", "v"):
        scene.wants(uid, attrs.evolve(APP, requests={"cpu": Quantity.of(4)}))
    scene.environment.pods[FILE]["v"] = scene.environment.pods[API].pop("v")
    scene.happens(What.WANTED, uid="v")
    if reason:
        scene.told(PodPhase.FAILED, "v", reason=reason)
    scene.clock.advance(100.0)
    scene.wants("w")


def criticals_wait(scene: Scene) -> None:
    criticals_get_room(scene, "")


def victims_are_needed(scene: Scene, others: int = 1) -> None:
    """One or more pods of a CPU each end for a critical one that asks for six of seven."""
    scene.environment.only_ends = True
    for cpus, uid in ((1, "u"), *((1, f"v{number}") for number in range(1, others)), (6, "w")):
        scene.clock.advance(5.0)
        scene.wants(uid, attrs.evolve(APP, requests={"cpu": Quantity.of(cpus)}))
    for uid in ("u", *(f"v{number}" for number in range(1, others))):
        scene.told(uid=uid, victim=True)


def victims_are_too_many(scene: Scene) -> None:
    victims_are_needed(scene, others=3)


def more_important_goes_first(scene: Scene) -> None:
    """Of two that leave a critical pod too little by themselves the one goes that has the higher priority."""
    scene.environment.only_ends = True
    for cpus, uid, priority in ((2, "u", 1), (2, "v", 0), (5, "w", None)):
        scene.wants(uid, attrs.evolve(APP, requests={"cpu": Quantity.of(cpus)}), priority=priority)
        if uid != "w":
            scene.runs(uid)
            scene.clock.advance(30.0)
    scene.told(uid="u", victim=True)


def victims_hear_nothing(scene: Scene) -> None:
    scene.wants()
    scene.told(PodPhase.FAILED, reason="Preempting")


def victims_hear_no_reason(scene: Scene) -> None:
    scene.wants()
    scene.told(victim=True)


def starts_at_its_end(scene: Scene) -> None:
    """A call to start something begins long after it was read that its pod is to go."""
    scene.environment.only_ends = True
    scene.wants()
    scene.clock.advance(20.0)
    scene.reads_end()
    scene.clock.advance(5.0)
    scene.happens(What.STARTED, uid="u", name="app", asked_s=scene.clock.awake_s)


def fetches_at_its_end(scene: Scene) -> None:
    scene.environment.only_ends = True
    scene.wants()
    scene.clock.advance(20.0)
    scene.reads_end()
    scene.clock.advance(5.0)
    scene.happens(What.PULLED, id=APP.image, value=False, asked_s=scene.clock.awake_s)


def nothing_moves(scene: Scene) -> None:
    scene.environment.only_ends = True
    scene.wants()
    scene.runs()
    scene.told(containers=[RUNS])
    scene.clock.advance(20.0)
    scene.happens(What.KILLED)
    scene.told(containers=[attrs.evolve(RUNS, restart_count=1)])


def sandbox_stays(scene: Scene) -> None:
    scene.wants()
    scene.crashes(scene.runs())
    (box,) = scene.environment.containers.sandboxes
    scene.environment.containers.stop_sandbox(box.record.id)


def tells_of_another(scene: Scene) -> None:
    for uid in ("u", "v"):
        scene.wants(uid)
    scene.told(containers=[attrs.evolve(RUNS, container_id=f"sim://{scene.runs('v')}")])


def tells_of_another_image(scene: Scene) -> None:
    scene.wants()
    scene.told(containers=[attrs.evolve(RUNS, image="busybox:2", container_id=f"sim://{scene.runs()}")])


def tells_of_another_time(scene: Scene) -> None:
    scene.wants()
    state = ContainerRunning(started_unix_s=5.0)
    scene.told(
        containers=[attrs.evolve(RUNS, state=state, image=IMAGE, container_id=f"sim://{scene.runs()}")]
    )


def tells_of_another_beginning(scene: Scene) -> None:
    scene.wants()
    for began_s in (5.0, 6.0):
        scene.environment.tell("u", PodStatus(phase=PodPhase.PENDING, started_unix_s=began_s))


def scheduled_anew(scene: Scene) -> None:
    scene.environment.only_ends = True
    scene.wants()
    for since_s in (5.0, 6.0):
        one = PodCondition(type="PodScheduled", status=ConditionStatus.TRUE, last_transition_unix_s=since_s)
        scene.environment.tell("u", PodStatus(phase=PodPhase.PENDING, conditions=(one,)))


def grace_is_its_own(scene: Scene) -> None:
    scene.environment.only_ends = True
    scene.wants(container=attrs.evolve(APP, image="busybox:2"), termination_grace_period_seconds=20)
    scene.ends(scene.runs(), 2.0)


def unheard_have_time(scene: Scene) -> None:
    scene.wants(termination_grace_period_seconds=3)
    made = scene.runs()
    scene.environment.outages.failed("stop_container", made)
    scene.environment.containers.ask_to_end(made, 1.0, 0.0)


def tells_no_address(scene: Scene) -> None:
    scene.wants()
    scene.runs()
    scene.told()


def tells_no_address_any_more(scene: Scene) -> None:
    scene.environment.only_ends = True
    scene.wants()
    scene.runs()
    for phase, ips in ((PodPhase.RUNNING, ("10.0.0.1",)), (PodPhase.FAILED, ())):
        scene.environment.tell("u", PodStatus(phase=phase, containers=(RUNS,), pod_ips=ips))


def tells_no_image(scene: Scene) -> None:
    scene.wants()
    made = scene.runs()
    scene.told(
        phase=PodPhase.PENDING, containers=[attrs.evolve(RUNS, image=IMAGE, container_id=f"sim://{made}")]
    )


def records_pile_up(scene: Scene) -> None:
    scene.wants()
    for attempt in range(3):
        scene.crashes(scene.runs(attempt=attempt))


def shares(cpus: CPUSet) -> LinuxResources:
    return LinuxResources(cpus=cpus)


def cpus_lie_idle(scene: Scene) -> None:
    scene.environment.is_aligned = True
    scene.wants()
    scene.runs(resources=shares(CPUSet.of(0, 1, 2, 3)))
    scene.wants("v", ALONE)
    scene.runs("v", resources=shares(CPUSet.of(4)))


def cpus_not_free(scene: Scene) -> None:
    scene.wants()
    scene.runs(resources=shares(CPUSet.of(0, 1, 2, 3)))
    scene.wants("v", ALONE)
    scene.runs("v", resources=shares(CPUSet.of(3)))


def sharers_stay(scene: Scene) -> None:
    scene.environment.only_hangs = True
    for uid, last in (("u", 3), ("v", 2)):
        scene.wants(uid)
        scene.runs(uid, resources=shares(CPUSet(range(last + 1))))
        scene.clock.advance(10.0)
    scene.clock.advance(20.0)
    scene.happens(What.READ, uid="u")


def records_stay(scene: Scene) -> None:
    scene.wants()
    scene.crashes(scene.runs())
    scene.environment.say_gone("u")


def never_forgotten(scene: Scene) -> None:
    scene.environment.forgetting()("v")
    for uid in ("u", "v"):
        scene.wants(uid)
        scene.environment.say_gone(uid)


def file_is_damaged(scene: Scene) -> None:
    scene.environment.files = lambda: {"/store/.nodealloc.damaged-1.life.u": b""}
    scene.happens(What.KILLED)


def commit_is_cut_off(scene: Scene) -> None:
    scene.environment.only_ends = True
    scene.environment.files = lambda: {"state/.nodealloc.new-1.life.u": b""}


BROKEN = {
    "OneCopy": Broken(one_copy, r"u/app runs 2 times"),
    "OneOfAName": Broken(
        one_of_a_name, r"of v, and of u, which had the name web before, there is container-\d+"
    ),
    "OneOfAName when all is quiet": Broken(
        never_gone, r"no source has u any more, and nobody says", "settled"
    ),
    "AttemptsOnce": Broken(attempts_once, r"attempt 0 of u/app starts again"),
    "FinishedStays": Broken(finished_stays, r"u/app starts again under policy Never"),
    "InitOnce": Broken(init_once, r"init container u/init succeeded and starts again"),
    "InitOnce of who failed": Broken(failed_init_once, r"init container u/init failed and starts again"),
    "NothingWithoutReason": Broken(nothing_without_reason, r"u/app is asked to end, and nobody wants"),
    "OneDeadline": Broken(one_deadline, r"gets 10 s to end, and 5\.0 s are left"),
    "GraceIsGiven": Broken(grace_is_given, r"u/app gets 0 s to end, and 5\.0 s"),
    "GraceIsGiven to who ends alone": Broken(grace_is_its_own, r"gets 2 s to end, and 20 s are its own"),
    "UnheardHaveTime": Broken(unheard_have_time, r"gets 1 s to end, of 3 s, and calls that asked it before"),
    "HooksFirst": Broken(hooks_first, r"before its hook was run"),
    "SidecarsLast": Broken(sidecars_last, r"sidecar u/proxy is asked to end while app runs"),
    "RestartsWait": Broken(restarts_wait, r"starts 0\.0 s after it ended again, and not 10 s"),
    "UnwellGo": Broken(unwell_go(LIVE), r"u/app runs, and its liveness probe fails", "settled"),
    "UnwellGo at its start": Broken(unwell_go(STARTED), r"runs, and its startup probe fails", "settled"),
    "ImagesStay": Broken(images_stay, r"u/app runs from it"),
    "NewestStays": Broken(newest_stays, r"the newest record of u/app is removed"),
    "TerminalStays": Broken(terminal_stays, r"was told to be Succeeded and is now Running"),
    "PhasesGoOn": Broken(phases_go_on, r"u was told to run, runs, and is told to wait"),
    "NothingToldAfterwards": Broken(Scene.told, r"u is told of, and nobody ever wanted it"),
    "ReadyFallsFirst": Broken(ready_falls_first, r"after its deletion was read, told to be ready"),
    "ReadyIsEarned": Broken(ready_is_earned, r"told to be ready, and nobody has had an answer of app"),
    "ReadinessStands": Broken(readiness_stands, r"told to be not ready, and its containers run as before"),
    "StartupFirst": Broken(startup_first, r"is asked how it is \(ready\) before it has started"),
    "SlowCostsItself": Broken(slow_costs_itself, r"u is not heard of in time"),
    "HooksHaveTime": Broken(hooks_have_time, r"u/app is asked to end, and its hook was not run in the 10 s"),
    "HooksHaveTime and grace": Broken(nobody_is_asked, r"is killed, and had not been asked to end in the 10"),
    "EndedHooksAreLeft": Broken(hook_outlives_its_container, r"for 7 s its hook pre-stop was waited for"),
    "EndedHooksAreLeft of who is to go": Broken(
        hook_holds_back_an_end, r"u/app is over, or its pod is to go, and for 7 s its hook post-start was"
    ),
    "KilledInTime": Broken(killed_in_time, r"of u runs long after its deadline: one call to end it hangs"),
    "MountsInTime": Broken(mounts_in_time, r"u waits for shared, and no call of its own hangs"),
    "CountsRise": Broken(counts_rise, r"was made 0 times and is told to be restarted 1"),
    "ExitsAreTrue": Broken(exits_are_true, r"told to have ended with 3; it ended with 7"),
    "EndsAreKept": Broken(ends_are_kept, r"told to have ended nobody knows how; the runtime knew"),
    "NothingAfterwards": Broken(nothing_afterwards, r"u is told gone while"),
    "CpusOnce": Broken(cpus_once, r"CPU 1 is .*, each for itself"),
    "CpusOnce of those who share": Broken(cpus_shared, r"share CPUs run on different ones", "settled"),
    "CpusAreSpread": Broken(cpus_lie_idle, r"u/app shares CPUs 0-3, and nobody has 5-7", "settled"),
    "CpusFreeFirst": Broken(cpus_not_free, r"v has a sandbox made while .+ of u runs on 3, which app has"),
    "SharersMove": Broken(sharers_stay, r"which shares them, still runs on 0-3"),
    "RecordsGoFirst": Broken(records_stay, r"u is told gone, and the runtime still has sandbox-"),
    "StoreIsWhole": Broken(file_is_damaged, r"damaged-1\.life\.u was found damaged by the agent"),
    "FitsTheNode": Broken(fits_the_node, r"what runs requests 8000 of cpu, and there is 7000"),
    "InitFirst": Broken(init_first, r"u/app starts, and init comes before it"),
    "DevicesAreWell": Broken(devices_are_well, r"is given gpu-0, which was ill 1\.0 s before"),
    "BytesOnce": Broken(bytes_once, r"bytes are granted of \[0\], which have"),
    "BytesOnce of who starts anywhere": Broken(starts_anywhere, r"v/app starts, and on no memory of its own"),
    "PlacementStands": Broken(placement_stands, r"u/app moves from CPUs 1 to 2"),
    "Aligned": Broken(aligned, r"gets CPUs 1,5 of 2 nodes"),
    "DevicesComeWhole": Broken(
        devices_stand, r"u/app starts with the files \[\], and \['/dev/gpu-0'\] go with its devices"
    ),
    "DevicesOnce": Broken(devices_once, r"gpu-0 is .*, each for itself"),
    "DevicesOnce allocated": Broken(
        allocated_again, r"sim.example/gpu is asked to allocate gpu-0, and u/app runs with it"
    ),
    "DevicesReported": Broken(reported(4, 3), r"3 of 4 .+gpu are reported to be well, .+ so of 4", "settled"),
    "DevicesReported ill": Broken(reported(4, 1, away_s=6.0), r"1 .+gpu .+ well, and no plugin .+ for 6 s"),
    "DevicesReported away": Broken(
        reported(0, 0, away_s=150.0), r"0 .+gpu are reported, of 4, .+ away for 150 s"
    ),
    "DevicesStand": Broken(devices_stand, r"u/app had .*gpu-0.* and is given .*gpu-1"),
    "DevicesAligned": Broken(devices_aligned, r"has CPUs of node \{0\} and gpu-3 of another"),
    "PluginsAsked": Broken(plugins_asked, r"is given \('gpu-0',\), which nobody allocated"),
    "MountsAccounted": Broken(mounts_accounted, r"u/app starts, and own is not mounted"),
    "MountsAccounted to read": Broken(mounted_for_writing, r"u/app starts, and disk/own is mounted for writ"),
    "MountsAccounted of disks": Broken(attached_for_nobody, r"data is attached for nobody", "emptied"),
    "NothingIsLeft": Broken(something_runs, r"the runtime still has u/app", "emptied"),
    "OverStays": Broken(over_runs, r"sandbox made of u, which had ended before"),
    "OverStays told": Broken(over_waits, r"u had succeeded, and is told to be .*PENDING"),
    "RestIsHad": Broken(rest_waits, r"no more CPUs than others leave, does not run: OutOfcpu", "settled"),
    "RefusalsSayWhy": Broken(refused, r"u is told to have failed, never ran, and nobody says why"),
    "RefusalsAreTrue": Broken(refused_falsely, r"nobody else may hold anything"),
    "GoesOn": Broken(refused, r"and its policy is Always"),
    "EditsAreMade": Broken(edits_are_made, r"runs from busybox:0, and busybox:2 is wanted", "settled"),
    "AmountsArrive": Broken(amounts_arrive, r"u: container-\d+ runs with other amounts", "settled"),
    "AmountsArrive of CPU time": Broken(given_no_quota, r"u/app is given 1024 shares .+ never asked for"),
    "AmountsArrive of another": Broken(amounts_of_another, r"u/app is given 2048 shares .+ never asked for"),
    "EditsTakeNothing": Broken(edits_take_nothing, r"u/app is asked to end for an edit that may not come in"),
    "DeadlinesEnd": Broken(deadlines_end, r"u runs 80 s after its deadline", "settled"),
    "DeadlinesEnd too early": Broken(deadlines_end_early, r"told to be overdue, and 20\.0 s are left"),
    "HooksAreRun": Broken(hooks_are_run, r"its post-start hook was not run", "settled"),
    "ProbesGoOn": Broken(probes_go_on, r"nobody has asked it \(ready\) for 200 s", "settled"),
    "ProbesGoOn too early": Broken(probes_go_on_early, r"asked \(ready\) 0\.0 s after its start, and 7 s"),
    "FetchedByPolicy": Broken(always_fetched, r"u/app starts, and busybox:0 was not fetched since"),
    "FetchedByPolicy never": Broken(never_fetched, r"own:1 is fetched, and is to be there or not at all"),
    "FetchedByPolicy once": Broken(fetched_again, r"busybox:0 is fetched, and is there; nobody wants"),
    "MadeOfTheirOwn": Broken(
        made_with("/other"), r"u/app is made with FROM=busybox:0 /other; it is to have FROM=busybox:0 /own"
    ),
    "MadeOfTheirOwn variables": Broken(made_with("/own", env="x"), r"u/app is made with FROM=x /own; it is"),
    "MadeOfTheirOwn command and user": Broken(
        made_as_another, r"u/app is made with nothing; it is to have work in /app as 7"
    ),
    "SandboxesAreTheirs": Broken(
        boxed("u"), r"a sandbox of u has the ports set\(\), and takes \{\(8080, 80\)"
    ),
    "SandboxesAreTheirs name": Broken(boxed("v"), r"a sandbox of u is named 'v', and its pod 'u'"),
    "MadeOfTheirOwn to read": Broken(
        made_with("/own", reads=True), r"is made with FROM=busybox:0 /own; it is to have .* /own to read"
    ),
    "MadeOfTheirOwn volumes": Broken(
        made_with("/own", host_path="/pods/v/own"), r"u/app is made with /pods/v/own, which is another pod's"
    ),
    "StoppedStartAgain": Broken(
        stays_stopped, r"u/app \(container-2\) was asked to end, and does not start again", "settled"
    ),
    "UnwellGoSoon": Broken(unwell_for_long, r"container-2 of u is unwell for long, and nobody asks it"),
    "WantedRuns": Broken(never_comes, r"u is wanted, and never had a sandbox", "settled"),
    "WantedRuns containers": Broken(never_runs, r"u/app is wanted and does not run, and nobody", "settled"),
    "WantedRuns restarts": Broken(ends_for_good, r"u/app is wanted and does not run, and nobody", "settled"),
    "OneSandbox": Broken(two_sandboxes, r"u has several sandboxes that are ready: sandbox-1,", "settled"),
    "OverIsOver": Broken(over_and_runs, r"u was told to be over, and app of it runs", "settled"),
    "TwinsWait": Broken(twin_is_told, r"status told of v, whose name another one has"),
    "TakenUpSoon": Broken(nobody_knows_it, r"u is wanted for long, and nobody was told of it"),
    "CommandsAreTheirs": Broken(anothers_probe, r"ready of other is run in u/app"),
    "RestartsCome": Broken(restarts_come, r"u/app has ended, its wait is over"),
    "EndsInTime": Broken(deleted_long_ago, r"runs, and the grace that was read is long over"),
    "EndsInTime of who is overdue": Broken(ends_in_time_overdue, r"there for longer than it may"),
    "HearsInTime": Broken(hears_in_time, r"a change of api is not read 15 s later"),
    "HooksOnce": Broken(hooks_once, r"u/app: its hook pre-stop is run again"),
    "MadeAsWanted": Broken(made_as_wanted, r"made from busybox:0, and busybox:2 was read 10 s ago"),
    "ToldInTime": Broken(told_in_time, r"u/app runs \(container-\d+\), and that is not told"),
    "ToldInTime of an end": Broken(told_in_time_of_an_end, r"is told to run .*, and ended long ago"),
    "ReasonsStay of a victim": Broken(
        reasons_of_victims, r"made room for another one, .*, and nothing is told"
    ),
    "ReasonsStay": Broken(reasons_stay, r"was told to end because of Preempting, and now because of nothing"),
    "WaitsAreTold": Broken(
        waits_untold, r"u/app waits for its back-off, and ContainerCreating is told of it"
    ),
    "WaitsAreTold of who was edited": Broken(
        edited_waits, r"ended as busybox:0, is to run from busybox:2, and waits"
    ),
    "ConditionsFollow": Broken(sidecar_not_ready, r"are told to be ready, and proxy not to be"),
    "ConditionsFollow of a pod": Broken(ready_of_nothing, r"u is told to be ready, and its containers not"),
    "ConditionsFollow at a start": Broken(initialized_early, r"told to be initialized, and proxy not to be"),
    "ConditionsFollow of a sandbox": Broken(
        starts_in_nothing, r"u has no sandbox, and its containers are told", "settled"
    ),
    "ConditionsFollow of what runs": Broken(
        runs_uninitialized, r"u runs, and PodReadyToStartContainers is told not to be true", "settled"
    ),
    "DeadlinesEnd for nothing": Broken(
        deadlines_end_for_nothing, r"too long, which ended it, and nothing is"
    ),
    "HooksHoldBack": Broken(
        hooks_hold_back, r"u/other starts, and the post-start hook of container-\d+ runs"
    ),
    "EndsInTime unasked": Broken(
        ends_in_time_unasked, r"u is to go, which was read long ago, and nobody asks"
    ),
    "ProbesCount": Broken(failures_count, r"u/app is asked again \(live\), and has failed 3 times in a row"),
    "ProbesCount at a start": Broken(startup_counts, r"asked again whether it has started, and has said so"),
    "ProbesCount of who is not ready": Broken(unready_counts, r"told to be ready, and has failed 3 times"),
    "ProbesCount of who is ready": Broken(ready_counts, r"told not to be ready, and has passed 2 times"),
    "ProbesKeepPace": Broken(asked_too_rarely, r"asked \(live\) each 7.00 s, and 5 s are its period"),
    "ProbesKeepPace a little": Broken(asked_from_answers, r"asked \(live\) each 5.15 s, and 5 s"),
    "ProbesKeepPace the other way": Broken(asked_too_often, r"asked \(live\) each 4.00 s, and 5 s"),
    "ProbesInTime": Broken(probes_in_time, r"u/app was not asked \(live\) for \d+ s"),
    "StrangersGo": Broken(strangers_go, r"which somebody else started, runs on", "settled"),
    "PhaseIsTrue": Broken(phase_is_true, r"told to have succeeded, and app has not"),
    "PhaseIsTrue of the end": Broken(phase_is_true_of_the_end, r"told to be over, and app not to have ended"),
    "PhaseIsTrue of who is ready": Broken(phase_is_true_of_ready, r"told to be ready, and app not to run"),
    "TellsOfThese of the one before": Broken(before_itself, r"is told, and to be the one before itself"),
    "StartupIsEarned": Broken(startup_is_earned, r"told to have started, and nobody has heard that"),
    "StartupIsEarned of a sidecar": Broken(
        startup_of_a_sidecar_is_earned, r"u/side .+ told to have started, and nobody has heard that"
    ),
    "LastEndIsTold": Broken(last_end_is_told, r"ended before, and that is told of None", "settled"),
    "LostEndIsTold": Broken(
        lost_end_is_told, r"u/app was told to run as .+, which vanished; .+ told of None"
    ),
    "LostEndIsTold of an older one": Broken(older_end_is_told, r"vanished, and is told to be container-\d+"),
    "StartsAreCounted": Broken(starts_are_counted, r"started 2 times and is told .* 0", "settled"),
    "EndingIsAwaited": Broken(ending_is_awaited, r"without what ends 4000 are asked of 7000"),
    "NothingIsLeft of what is stored": Broken(still_stored, r"u is gone, and /store/life.u", "emptied"),
    "DebuggedOnce": Broken(debugged_once, r"u/look is ephemeral and starts again"),
    "DebuggedOnce at all": Broken(never_debugged, r"u runs, and look never started in it", "settled"),
    "PortsOnce": Broken(ports_once, r"v/app starts with port 8080 of the node, which is u's"),
    "VictimsAreNeeded": Broken(victims_are_needed, r"u makes room, and with it 7000 m of 7000 CPUs"),
    "VictimsAreNeeded of many": Broken(victims_are_too_many, r"makes room, and with it 7000 m of 7000"),
    "LeastGoFirst": Broken(
        more_important_goes_first, r"u makes room, and v, which is less important, could have"
    ),
    "VictimsHearWhy": Broken(
        victims_hear_nothing, r"u has ended \(Preempting\), and was not told to make room"
    ),
    "VictimsHearWhy of the reason": Broken(
        victims_hear_no_reason, r"u is told to make room, and not for what"
    ),
    "EndsCallOff": Broken(starts_at_its_end, r"u/app: container started, and 5 s before .* is to go"),
    "EndsCallOff of images": Broken(fetches_at_its_end, r"is fetched, and 5 s before .* read that u is to"),
    "CriticalsGetRoom": Broken(
        criticals_get_room, r"v is refused \(OutOfcpu\), and all that is as important"
    ),
    "CriticalsGetRoom in time": Broken(criticals_wait, r"v waits for 100 s, and all that is as important"),
    "NothingMoves": Broken(nothing_moves, r"u: nothing happened for 20 s, and something else is told of it"),
    "SandboxStays": Broken(sandbox_stays, r"u is wanted, well, and has no other"),
    "TimesStand": Broken(scheduled_anew, r"told to be PodScheduled \(True\) since 5\.0, and now since 6\.0"),
    "TellsOfThese": Broken(tells_of_another, r"u/app is told to be container-\d+, which is v/app"),
    "TellsOfThese of images": Broken(tells_of_another_image, r"run from 'busybox:2', and was made from"),
    "TellsOfThese of times": Broken(tells_of_another_time, r"is told the times \(5\.0,\); it started and"),
    "TellsOfThese of pods": Broken(tells_of_another_beginning, r"be there since 5\.0, and now since 6\.0"),
    "TellsOfThese of addresses": Broken(
        tells_no_address, r"u has the addresses .+, and \(\) are told", "settled"
    ),
    "TellsOfThese of addresses at the end": Broken(
        tells_no_address_any_more, r"u has ended, and its addresses .+ are not told any more"
    ),
    "TellsOfThese of what it is made from": Broken(
        tells_no_image, r"u/app runs from .+, and None is told", "settled"
    ),
    "FewRecordsStay": Broken(records_pile_up, r"records of 3 instances of u/app that have ended", "settled"),
    "FinishedStays of sandboxes": Broken(
        finished_in_another_sandbox, r"u gets another sandbox, and all that its policy would start"
    ),
    "FailedCallsWait": Broken(
        failed_calls_wait, r"u: run_sandbox of u failed 2 times in a row.* 0\.60 s later; 1 s are its wait"
    ),
    "FailedFetchesWait": Broken(
        failed_fetches_wait, r"busybox:2 could not be fetched 2 times in a row.* 12\.00 s later; 20 s are its"
    ),
    "CgroupsHold": Broken(cgroup_is_taken, r"/podu is removed while \S+ stands in it"),
    "CgroupsHold of sandboxes": Broken(cgroup_is_missing, r"a sandbox of u is made, and \S+ is not there"),
    "CgroupsHold of limits before it runs": Broken(
        is_not_limited_yet, r"a sandbox of u is made, and cpu_shares of \S+ is 2, not 1024"
    ),
    "CgroupsHold of others": Broken(cgroup_of_others, r"limits are written to /system.slice, which is of no"),
    "CgroupsHold of nobody": Broken(cgroup_of_nobody, r"/podu is there, and nobody wants u", "settled"),
    "CgroupsHold of limits": Broken(
        cgroups_differ, r"cpu_shares of \S+ is 2, and u asks for 1024", "settled"
    ),
    "CgroupsHold of a class that is not there": Broken(
        class_is_missing, r"burstable has None shares, and its pods 2", "settled"
    ),
    "CgroupsHold of classes": Broken(class_differs, r"burstable has 2 shares, and its pods 1024", "settled"),
    "StoreIsWhole of commits": Broken(
        commit_is_cut_off, r"new-1\.life\.u is left of a commit that was cut off", "settled"
    ),
    "EachIsForgotten": Broken(
        never_forgotten, r"^u is gone, and nobody was called that is to hear of it", "emptied"
    ),
    "SameEnd": Broken(Scene.wants, r"nobody was ever told of u", "settled"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_guarantee_that_is_broken_is_found(name: str) -> None:
    """By its own checker, in the event that breaks it or when all is quiet."""
    scene, one = Scene(), BROKEN[name]
    (kind,) = (each for each in GUARANTEES if each.__name__ == name.split(maxsplit=1)[0])
    checker = kind(scene.environment)
    scene.environment.events.listen(checker.heard)
    if one.when == "heard":
        with pytest.raises(AssertionError, match=one.said):
            one.does(scene)
        return
    one.does(scene)
    with pytest.raises(AssertionError, match=one.said):
        (checker.settled if one.when == "settled" else checker.emptied)()


@pytest.mark.parametrize(
    ("after", "value"),
    [
        (What.ENDED, None),
        (What.SIGNALLED, 3.0),
        (What.KILLED, None),
        (What.RAN, Ran(PRE_STOP, "0")),
        (What.RAN, Ran(READY, "0")),
    ],
)
def test_a_hook_that_is_over_or_cut_short_holds_nothing_back(after: What, value: object) -> None:
    """The other container may start; after a mere probe it may not."""
    scene = Scene()
    (kind,) = (each for each in GUARANTEES if each.__name__ == "HooksHoldBack")
    scene.environment.events.listen(kind(scene.environment).heard)
    if value == Ran(READY, "0"):
        with pytest.raises(AssertionError, match="starts, and the post-start hook"):
            hook_runs(scene, after, value)
        return
    hook_runs(scene, after, value)
    assert len(scene.environment.containers.running) == 2


def test_a_pod_in_its_cgroup_with_its_limits_is_right() -> None:
    """Until nobody wants it any more."""
    scene = Scene()
    (kind,) = (each for each in GUARANTEES if each.__name__ == "CgroupsHold")
    checker = kind(scene.environment)
    scene.environment.events.listen(checker.heard)
    in_cgroup(scene, Limits(cpu_shares=1024), asked_s=scene.clock.awake_s)
    checker.settled()
    scene.environment.cgroups.kill(CGROUP)
    for box in scene.environment.containers.sandboxes:
        scene.environment.containers.stop_sandbox(box.record.id)
    scene.environment.cgroups.remove(CGROUP)
    scene.environment.cgroups.apply(CGROUP.parent, Limits(cpu_shares=2))
    scene.environment.let_go("u")
    checker.emptied()


def test_every_guarantee_is_broken_once() -> None:
    """No checker is left out."""
    assert {name.split()[0] for name in BROKEN} == {one.__name__ for one in GUARANTEES}
