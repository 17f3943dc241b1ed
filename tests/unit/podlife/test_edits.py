"""Pods that are edited under their uid while they run."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import attrs
import pytest

from nodealloc.errors import RetryableError
from nodealloc.podfacts import LifeState
from nodealloc.podlife import (
    KUBELET,
    ContainerRunOptions,
    ImageFacts,
    NodeConfiguration,
    NodeSettings,
    PodRunOptions,
    Preparation,
    Provided,
    Rules,
)
from nodealloc.podspec import (
    Container,
    EnvFrom,
    Pod,
    PodSecurityContext,
    Quantity,
    RestartPolicy,
    SecurityContext,
    Variable,
    Volume,
    VolumeUse,
)
from nodealloc.podspec._network import HostAlias
from nodealloc.podspec._variables import NameRef
from nodealloc.runtime import ContainerConfig, LinuxResources, RuntimeUnavailableError
from nodealloc.testing.podlife import FakeEnvironment, FakePreparer
from nodealloc.verdicts import Admitted, NotYet
from tests.unit.podlife_node import Node, pod

SETTINGS = NodeSettings(name="n1", memory_capacity_bytes=16 << 30, pods_directory="")


def sized(milli: int) -> Pod:
    """A pod with one container that may use so much."""
    cpu = {"cpu": Quantity.parse(f"{milli}m")}
    return pod(containers=[Container(name="app", image="busybox", requests=cpu, limits=cpu)])


def node() -> Node:
    """A node whose pods are configured in full, with one that runs."""
    made = Node(configuring=NodeConfiguration(SETTINGS))
    made.lives.put(sized(200))
    made.after(1)
    assert made.running() == ["app#0"]
    return made


def quota(of: Node) -> int | None:
    """CPU time in a period of the newest container."""
    newest = of.runtime.inspect("u").newest("app")
    assert newest is not None
    return of.runtime.limits(newest.record.id).cpu_quota_us


def updates(of: Node) -> int:
    """How often limits were changed."""
    return sum(one.startswith("update_container") for one in of.runtime.calls)


def test_other_resources_reach_the_container_that_runs() -> None:
    """Without a restart, and once, also over a restart of the agent; back again as well."""
    here = node()
    assert quota(here) == 20_000
    here.lives.put(sized(300))
    here.after(1)
    assert (quota(here), here.running(), updates(here)) == (30_000, ["app#0"], 1)
    here.kill_agent()
    here.lives.put(sized(300))
    here.lives.heard()
    here.after(5)
    assert (here.running(), updates(here)) == (["app#0"], 1)
    here.lives.put(sized(200))
    here.after(1)
    assert (quota(here), updates(here)) == (20_000, 2)


def test_a_limit_that_was_taken_out_limits_nothing_any_more() -> None:
    """To a runtime, what an update does not say stays; so do limits that the edit says nothing of."""
    here = Node(configuring=NodeConfiguration(SETTINGS))
    amounts = {"cpu": Quantity.parse("200m"), "memory": Quantity.parse("64Mi")}
    app = Container(name="app", image="busybox", requests=amounts, limits=amounts)
    here.lives.put(pod(containers=[app]))
    here.after(1)

    def limits(of: Container) -> tuple[int | None, int | None, int | None]:
        here.lives.put(pod(containers=[of]))
        here.after(1)
        found = here.runtime.limits(here.id_of("app"))
        return found.cpu_quota_us, found.memory_bytes, found.swap_bytes

    assert limits(app) == (20_000, 64 << 20, 64 << 20)
    assert limits(attrs.evolve(app, limits={"memory": amounts["memory"]})) == (-1, 64 << 20, 64 << 20)
    assert limits(attrs.evolve(app, limits={})) == (-1, -1, -1)
    assert limits(attrs.evolve(app, limits={}, requests={})) == (-1, -1, -1)
    assert limits(app) == (20_000, 64 << 20, 64 << 20)
    assert here.running() == ["app#0"]


def test_limits_are_changed_whatever_else_the_container_was_made_from() -> None:
    """The image's user is not asked for again, nor variables whose object is gone by now."""

    def strict(milli: int) -> Pod:
        (app,) = sized(milli).containers
        asked = SecurityContext(run_as_non_root=True)
        from_map = (EnvFrom(config_map_ref=NameRef(name="settings")),)
        return pod(containers=[attrs.evolve(app, security_context=asked, env_from=from_map)])

    objects = FakeEnvironment(config_maps={("default", "settings"): {"A": "1"}})
    configuring = NodeConfiguration(
        SETTINGS, image=lambda id_: ImageFacts(id=id_, user=7 if id_ else None), source=objects
    )
    here = Node(configuring=configuring)
    here.lives.put(strict(200))
    here.after(1)
    assert (here.running(), quota(here)) == (["app#0"], 20_000)
    objects.config_maps.clear()
    here.lives.put(strict(300))
    here.after(1)
    assert (here.running(), quota(here), updates(here)) == (["app#0"], 30_000, 1)


def test_a_runtime_that_cannot_change_limits_now_is_asked_again() -> None:
    """The container runs on as it is until then."""
    here = node()
    here.runtime.fail(
        "update_container", RuntimeUnavailableError("UpdateContainerResources", "away"), times=2
    )
    here.lives.put(sized(300))
    here.after(30)
    assert (quota(here), here.running()) == (30_000, ["app#0"])


@pytest.mark.parametrize("is_killed", [False, True], ids=["the answer is lost", "the agent is killed"])
def test_limits_that_nobody_knows_to_be_given_are_taken_back_by_another_edit(is_killed: bool) -> None:
    """The container was given more, nobody heard of that, and it is to have what it was made with."""
    here = node()
    update = here.runtime.update_container

    def lost(container_id: str, resources: LinuxResources, /) -> None:
        update(container_id, resources)
        raise RuntimeUnavailableError("UpdateContainerResources", "away")

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(here.runtime, "update_container", lost)
        here.lives.put(sized(300))
        here.after(0.1)
    assert quota(here) == 30_000
    if is_killed:
        here.kill_agent()
    here.lives.put(sized(200))
    here.lives.heard()
    here.after(10)
    assert (quota(here), here.running()) == (20_000, ["app#0"])
    calls = updates(here)
    here.after(10)
    assert updates(here) == calls


def test_another_environment_makes_the_container_anew() -> None:
    """With the new resources at once; what is remembered of the old one goes with it."""
    here = node()
    here.lives.put(sized(300))
    here.after(1)
    assert here.record().resized
    edited = sized(400)
    app = attrs.evolve(edited.containers[0], variables=(Variable(name="V", value="2"),))
    here.lives.put(attrs.evolve(edited, containers=(app,)))
    here.after(40)
    assert (here.running(), quota(here), updates(here)) == (["app#1"], 40_000, 1)
    assert not here.record().resized


MOUNTING = attrs.evolve(
    sized(200),
    containers=(attrs.evolve(sized(200).containers[0], volumes=(VolumeUse(name="v", path="/v"),)),),
    volumes=(Volume(name="v", kind="emptyDir", spec={}), Volume(name="w", kind="emptyDir", spec={})),
)
"""It mounts one of its two volumes."""


def mounting(volumes: tuple[Volume, ...], *, read_only: bool = False) -> Pod:
    """The same with other volumes, or its mount read-only."""
    use = VolumeUse(name="v", path="/v", read_only=read_only)
    app = attrs.evolve(MOUNTING.containers[0], volumes=(use,))
    return attrs.evolve(MOUNTING, containers=(app,), volumes=volumes)


@pytest.mark.parametrize(
    ("before", "after", "instance"),
    [
        (sized(200), MOUNTING, 1),
        (MOUNTING, sized(200), 1),
        (MOUNTING, mounting(MOUNTING.volumes, read_only=True), 1),
        (MOUNTING, mounting((attrs.evolve(MOUNTING.volumes[0], spec={"medium": "Memory"}),)), 1),
        (MOUNTING, mounting(MOUNTING.volumes[:1]), 0),
    ],
)
def test_a_container_is_made_anew_for_other_mounts(before: Pod, after: Pod, instance: int) -> None:
    """Of a volume that it does not mount nothing has to change. Its sandbox stays."""
    options = PodRunOptions(everywhere=ContainerRunOptions(volumes={"v": "/host/v"}))
    mounts = Preparation(name="mounts", why="", by=FakePreparer(answer=lambda _: Provided(value=options)))
    here = Node(configuring=NodeConfiguration(SETTINGS), preparations=[mounts])
    here.lives.put(before)
    here.after(1)
    here.lives.put(after)
    here.after(20)
    assert here.running() == [f"app#{instance}"]
    assert len(here.runtime.inspect("u").sandboxes) == 1
    here.kill_agent()
    here.lives.put(after)
    here.lives.heard()
    here.after(20)
    assert here.running() == [f"app#{instance}"]


@pytest.mark.parametrize(
    "edit",
    [
        {"host_pid": True},
        {"host_aliases": (HostAlias(ip="192.0.2.7", hostnames=("far",)),)},
        {"security_context": PodSecurityContext(run_as_user=5)},
        {"hostname": "other"},
    ],
)
def test_an_edit_of_what_its_sandbox_is_made_from_makes_a_new_one(edit: dict[str, object]) -> None:
    """With all containers, once; not of a pod that never starts again, nor by a kubelet's rules."""
    for policy, rules, sandboxes in (
        (RestartPolicy.ALWAYS, Rules(), 2),
        (RestartPolicy.NEVER, Rules(), 1),
        (RestartPolicy.ALWAYS, KUBELET, 1),
    ):
        here = Node(configuring=NodeConfiguration(SETTINGS), rules=rules)
        of = attrs.evolve(sized(200), restart_policy=policy)
        here.lives.put(of)
        here.after(1)
        here.lives.put(cast("Callable[..., Pod]", attrs.evolve)(of, **edit))
        here.after(60)
        assert here.running() == [f"app#{sandboxes - 1}"]
        assert len({one.record.id for one in here.runtime.inspect("u").sandboxes}) == sandboxes


def test_a_container_that_was_taken_out_ends() -> None:
    """The others run on."""
    here = Node(configuring=NodeConfiguration(SETTINGS))
    both = [Container(name=name, image="busybox") for name in ("app", "extra")]
    here.lives.put(pod(containers=both))
    here.after(1)
    assert sorted(here.running()) == ["app#0", "extra#0"]
    here.lives.put(pod(containers=both[:1]))
    here.after(40)
    assert here.running() == ["app#0"]


def test_a_container_that_is_edited_while_it_starts_is_counted_once() -> None:
    """The instance that comes next has its number already when the one before it has started."""
    here = Node()
    plain = here.runtime.start_container

    def start(container_id: str, /) -> None:
        here.runtime.start_container = plain  # type: ignore[method-assign]
        here.lives.put(pod(containers=[Container(name="app", image="busybox:2")]))
        here.after(2)
        plain(container_id)

    here.runtime.start_container = start  # type: ignore[method-assign]
    here.lives.put(pod())
    here.after(60)
    assert here.running() == ["app#1"]


def test_what_is_edited_before_its_container_is_made_is_made_as_it_is_now() -> None:
    """A start that is still making ready what it asks for begins again: nothing is made that nobody wants."""
    configuring = NodeConfiguration(SETTINGS)
    here = Node(configuring=configuring)
    plain = configuring.container

    def container(*given: object) -> ContainerConfig:
        if not edits:
            edits.append(1)
            here.lives.put(pod(containers=[Container(name="app", image="busybox:2")]))
            here.after(2)
        return plain(*given)  # type: ignore[arg-type]

    edits: list[int] = []
    configuring.container = container  # type: ignore[method-assign]
    here.lives.put(pod())
    here.after(60)
    made = [one for one in here.runtime.calls if one.startswith("create_container")]
    assert (here.running(), len(made), edits) == (["app#0"], 1, [1])
    newest = here.runtime.inspect("u").newest("app")
    assert newest is not None
    assert newest.record.image == "sha256:busybox:2"


class Judged:
    """A node whose first part is ready for forms with these images alone.

    Attributes:
        ready: Which.
        asked: By whose images it was asked, in order.
    """

    def __init__(self) -> None:
        self.ready = {"busybox"}
        self.asked: list[str] = []
        self.node = Node(
            configuring=NodeConfiguration(SETTINGS),
            preparations=[Preparation(name="admission", why="", by=FakePreparer(answer=self._answer))],
        )

    def _answer(self, of: Pod) -> Admitted | NotYet:
        images = sorted({one.image for one in of.containers})
        self.asked.append("+".join(images))
        is_ready = self.ready.issuperset(images)
        return Admitted() if is_ready else NotYet(blocker="admission", message="no room", after_s=5)

    def edited(self, first: Pod, other: Pod) -> Node:
        """The node, on which a pod runs in one form and is wanted in another."""
        self.node.lives.put(first)
        self.node.after(1)
        self.node.lives.put(other)
        return self.node

    def image(self) -> str:
        """Of the newest instance."""
        newest = self.node.runtime.inspect("u").newest("app")
        return "" if newest is None else newest.record.image.removeprefix("sha256:").removesuffix(":latest")


def named(image: str, *others: str, policy: RestartPolicy = RestartPolicy.ALWAYS) -> Pod:
    """A pod whose containers are of one image."""
    names = ("app", *others)
    return pod(containers=[Container(name=name, image=image) for name in names], policy=policy)


def test_a_form_that_is_not_ready_takes_nothing_from_what_runs() -> None:
    """Containers are ended for an edit once its parts are ready, so that the next ones can start at once."""
    judged = Judged()
    here = judged.edited(named("busybox", "side"), named("nginx"))
    here.after(60)
    assert here.running() == ["app#0", "side#0"]
    judged.ready.add("nginx")
    here.after(60)
    assert here.running() == ["app#1"]


def test_what_ends_while_an_edit_waits_starts_again_as_it_was() -> None:
    """Also in an agent that began while it waited."""
    judged = Judged()
    here = judged.edited(named("busybox"), named("nginx"))
    here.after(20)
    here.exit("app", 1)
    here.after(20)
    assert (here.running(), judged.image()) == (["app#1"], "busybox")
    here.kill_agent()
    here.lives.put(named("nginx"))
    here.lives.heard()
    here.exit("app", 1)
    here.after(60)
    assert (here.running(), judged.image()) == (["app#2"], "busybox")
    judged.ready.add("nginx")
    here.after(60)
    assert (here.running(), judged.image()) == (["app#3"], "nginx")


def test_an_edit_that_is_taken_back_while_it_waits_moves_nothing() -> None:
    """All parts are made ready again for what runs, and another edit is judged by itself."""
    judged = Judged()
    here = judged.edited(named("busybox"), named("nginx"))
    here.after(7)
    here.lives.put(named("redis"))
    here.after(7)
    here.lives.put(named("busybox"))
    judged.ready.add("redis")
    here.after(60)
    assert (here.running(), judged.image()) == (["app#0"], "busybox")
    here.lives.put(named("redis"))
    here.after(60)
    assert (here.running(), judged.image()) == (["app#1"], "redis")
    asked = [one for at, one in enumerate(judged.asked) if judged.asked[at - 1 : at] != [one]]
    # For what runs each time that another edit comes to nothing.
    assert asked == ["busybox", "nginx", "redis", "busybox", "redis", "busybox", "redis"]


def test_an_answer_for_a_form_that_came_to_nothing_serves_no_other() -> None:
    """It comes when the edit was taken back: the part is asked for what runs."""
    judged = Judged()
    here = judged.node
    here.lives.put(named("busybox"))
    here.after(1)
    judged.ready.add("nginx")
    here.executor.held = {"make ready admission"}
    here.lives.put(named("nginx"))
    here.after(1)
    here.lives.put(named("busybox"))
    here.after(1)
    here.executor.held = set()
    here.executor.parked.pop()()
    here.after(5)
    assert (here.running(), judged.image()) == (["app#0"], "busybox")
    assert judged.asked == ["busybox", "nginx", "busybox"]


def test_what_has_ended_for_good_goes_on_as_it_was_edited() -> None:
    """An edit that waits for room keeps the pod, as long as its newest form has something to run."""
    judged = Judged()
    here = judged.edited(
        named("busybox", policy=RestartPolicy.NEVER), named("nginx", "side", policy=RestartPolicy.NEVER)
    )
    here.after(7)
    here.exit("app", 1)
    here.after(20)
    assert (here.running(), here.record().life) == ([], LifeState.SYNCING)
    judged.ready.add("nginx")
    here.after(20)
    assert here.running() == ["side#0"]


def test_a_pod_whose_edit_waits_ends_when_it_is_asked_to() -> None:
    """With the grace of its newest form."""
    judged = Judged()
    here = judged.edited(named("busybox"), attrs.evolve(named("nginx"), termination_grace_period_seconds=7))
    here.after(7)
    here.lives.remove("u")
    here.after(20)
    assert (here.running(), [grace for _, grace in here.stops]) == ([], [7.0])


def test_nothing_ends_for_an_edit_that_would_get_no_sandbox() -> None:
    """It was ended first, and its pod had nothing that ran from then on."""
    handlers: dict[str, str] = {}

    def given(of: Pod) -> Provided:
        return Provided(value=PodRunOptions(handler=handlers.get(of.runtime_class_name or "", "")))

    parts = [
        Preparation(name="classes", why="", by=FakePreparer(answer=given)),
        Preparation(name="volumes", why="", by=FakePreparer()),
    ]
    here = Node(configuring=NodeConfiguration(SETTINGS), preparations=parts)
    here.lives.put(sized(200))
    here.after(1)
    here.lives.put(attrs.evolve(sized(200), runtime_class_name="kata"))
    here.after(60)
    assert here.running() == ["app#0"]
    waits = here.lives.facts.snapshot()["u"].value.waits_for
    assert waits is not None
    assert waits.blocker == "sandbox"
    assert waits.message.startswith(
        "as it was edited it gets none: runtimeClassName 'kata': nothing here says"
    )
    here.lives.put(attrs.evolve(sized(200), security_context=PodSecurityContext(run_as_user=5)))
    here.after(60)
    assert here.running() == ["app#1"]  # another edit goes its own way
    here.lives.put(attrs.evolve(sized(200), runtime_class_name="kata"))
    here.after(60)
    assert here.running() == ["app#1"]
    here.lives.put(attrs.evolve(sized(300), security_context=PodSecurityContext(run_as_user=5)))
    here.after(60)
    assert here.running() == ["app#1"]
    assert here.lives.facts.snapshot()["u"].value.waits_for is None
    handlers["kata"] = "kata-qemu"
    here.lives.put(attrs.evolve(sized(300), runtime_class_name="kata"))
    here.after(60)
    assert here.running() == ["app#2"]


def test_nothing_ends_for_a_user_name_space_of_its_own() -> None:
    """Nobody can give it one: that is told, and the pod goes on, its containers restart as it was before."""
    parts = [Preparation(name="volumes", why="", by=FakePreparer())]
    here = Node(configuring=NodeConfiguration(SETTINGS), preparations=parts)
    here.lives.put(sized(200))
    here.after(1)
    here.lives.put(attrs.evolve(sized(200), host_users=False))
    here.after(5)
    here.exit("app", 1)
    here.after(20)
    assert here.running() == ["app#1"]
    waits = here.lives.facts.snapshot()["u"].value.waits_for
    assert waits is not None
    assert (waits.blocker, "hostUsers: false" in waits.message) == ("sandbox", True)
    here.lives.put(attrs.evolve(sized(200), host_users=True))
    here.after(20)
    assert here.running() == ["app#1"]
    assert here.lives.facts.snapshot()["u"].value.waits_for is None


@pytest.mark.parametrize("kind", ["raises", "not yet"])
def test_a_part_that_is_not_ready_is_asked_now_and_then_though_two_forms_wait_for_it(kind: str) -> None:
    """The agent came back when the pod had been edited: each form hid the other's wait, and neither did."""
    asked: list[float] = []
    is_here = True

    def answer(_pod: Pod) -> Admitted | NotYet:
        asked.append(here.clock.monotonic_s())
        if is_here:
            return Admitted()
        if len(asked) > 100:
            pytest.fail("it is asked without end")
        if kind == "raises":
            raise RetryableError("the plugin is away", after_s=1.0)
        return NotYet(blocker="plugin", message="it is away", after_s=5.0)

    part = Preparation(name="devices", why="", by=FakePreparer(answer=answer))
    here = Node(preparations=[part])
    app = Container(name="app", image="busybox")
    here.lives.put(pod(containers=[app]))
    here.after(2)
    here.kill_agent()
    is_here = False
    asked.clear()
    here.lives.put(pod(containers=[attrs.evolve(app, args=("x",))]))
    here.lives.heard()
    here.after(20)
    assert 4 <= len(asked) <= 16
    is_here = True
    here.after(20)
    assert here.running() == ["app#1"]
