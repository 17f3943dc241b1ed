"""Pods on a node from their first word to their last: parts, containers, restarts."""

from __future__ import annotations

import attrs
import pytest

from nodealloc.dsw_asw import Summary, World
from nodealloc.errors import ConfigurationError
from nodealloc.podfacts import Exited, LifeState, PodLife
from nodealloc.podlife import KUBELET, Ending, EndingKind, LifePolicy, PodRecord, Preparation, Rules
from nodealloc.podlife._plan import StopReason
from nodealloc.podspec import (
    Container,
    ExecAction,
    HttpGetAction,
    Lifecycle,
    LifecycleHandler,
    PullPolicy,
    RestartPolicy,
)
from nodealloc.runtime import ContainerConfig, PodReport, RuntimeRefusedError, SandboxConfig
from nodealloc.testing.podlife import FakePreparer, PlainConfiguration
from nodealloc.verdicts import Admitted, NotYet, Refused
from tests.unit.podlife_node import Node, Verdicts, pod

APP = Container(name="app", image="busybox")
HOOK = LifecycleHandler(exec=ExecAction(command=("true",)))


def test_a_pod_is_put_and_runs_and_is_removed() -> None:
    """Sandbox, image, container; then the container, the sandbox, their records, and nothing is left."""
    node = Node()
    node.lives.heard()
    node.lives.put(pod())
    node.after(1)
    assert node.running() == ["app#0"]
    assert node.calls() == ["run_sandbox u", "create_container sandbox-1/app", "start_container container-2"]
    node.lives.remove("u")
    node.after(1)
    assert node.calls()[3:] == [
        "stop_container container-2",
        "stop_sandbox sandbox-1",
        "remove_container container-2",
        "remove_sandbox sandbox-1",
    ]
    assert [len(world) for world in (node.lives.wanted, node.lives.pods, node.lives.facts)] == [0, 0, 0]
    assert node.journal.rows == {}


def test_a_pod_that_runs_is_left_alone() -> None:
    """An hour passes, the runtime is looked at and is not asked for anything."""
    node = Node()
    node.lives.put(pod())
    node.after(2)
    before, planned = node.calls(), len(node.journal.commits)
    node.after(60)
    assert (node.calls(), len(node.journal.commits)) == (before, planned)


def test_parts_are_made_in_their_order_and_taken_back_in_the_reverse() -> None:
    """Nothing runs before all are ready; none is taken back while anything runs."""
    calls: list[str] = []

    class Noted(FakePreparer):
        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

        def make_ready(self, *args: object) -> object:  # type: ignore[override]
            calls.append(f"make {self.name} {len(node.calls())}")
            return super().make_ready(*args)  # type: ignore[arg-type]

        def take_back(self, *args: object) -> object:  # type: ignore[override]
            calls.append(f"back {self.name} {len(node.running())}")
            return super().take_back(*args)  # type: ignore[arg-type]

    parts = [Preparation(name=name, why="a test", by=Noted(name)) for name in ("cgroup", "volumes")]  # type: ignore[arg-type]
    node = Node(preparations=parts)
    node.lives.put(pod())
    node.after(1)
    node.lives.remove("u")
    node.after(1)
    assert calls == ["make cgroup 0", "make volumes 0", "back volumes 0", "back cgroup 0"]


def test_a_part_that_is_not_ready_is_asked_again_and_sooner_when_its_world_changes() -> None:
    """After a time of its own, or at once; until then what is waited for is told."""
    mounted: World[str, object] = World("mounted")
    volumes = FakePreparer(
        answer=lambda one: (
            NotYet(blocker="volumes", message="not mounted", after_s=60)
            if one.uid not in mounted
            else Admitted()
        )
    )
    node = Node(preparations=[Preparation(name="volumes", why="a test", by=volumes, wakes=mounted)])
    node.lives.put(pod())
    node.after(30)
    assert len(volumes.calls) == 2
    facts = node.lives.facts.get("u")
    assert facts is not None
    assert facts.waits_for is not None
    assert facts.waits_for.message == "not mounted"
    mounted.put("u", "here")
    node.after(0.25)
    assert node.running() == ["app#0"]


@pytest.mark.parametrize(("after_s", "least", "most"), [(0.25, 9, 11), (3, 1, 1)])
def test_a_part_is_asked_again_after_the_time_that_it_named(after_s: float, least: int, most: int) -> None:
    """From its first answer on, as it is made ready and as it is taken back."""
    waits = NotYet(blocker="volumes", message="busy", after_s=after_s)
    part = FakePreparer(answer=lambda _: waits, blocks=lambda _: waits)
    node = Node(preparations=[Preparation(name="volumes", why="a test", by=part)])
    node.after(1)
    node.lives.put(pod())
    node.after(2.5)
    made = len(part.calls)
    assert least <= made <= most
    node.lives.remove("u")
    node.after(2.5)
    assert least <= len(part.calls) - made <= most


def test_pods_whose_parts_take_long_are_planned_no_more_often() -> None:
    """Their ends are waited for: many pods that wait for a worker cost nothing meanwhile."""
    node = Node(preparations=[Preparation(name="volumes", why="a test", by=FakePreparer())])

    def planned(seconds: int) -> int:
        plans = 0
        for _ in range(seconds):
            node.clock.advance(1.0)
            plans += node.lives.reconcile().planned
        return plans

    node.executor.held.add("make ready volumes")
    for number in range(5):
        node.lives.put(pod(f"u{number}"))
    node.after(1)
    planned(2)
    assert planned(30) == 0
    node.executor.held.clear()
    for go_on in node.executor.parked:
        go_on()
    node.executor.parked.clear()
    node.after(2)
    assert len([one for one in node.calls() if one.startswith("start_container")]) == 5
    node.executor.held.add("take back volumes")
    for number in range(5):
        node.lives.remove(f"u{number}")
    node.after(2)
    assert len(node.executor.parked) == 5
    planned(2)
    assert planned(30) == 0


def test_a_container_of_a_pod_that_was_found_running_starts_again() -> None:
    """In the sandbox that somebody else made: nothing is remembered of it, so no number of it either."""
    node = Node()
    node.lives.heard()
    node.lives.put(pod())
    node.after(1)
    node.journal.rows.clear()
    node.kill_agent()
    node.lives.put(pod())
    node.lives.heard()
    node.after(1)
    assert node.running() == ["app#0"]
    assert node.record().sandbox_attempt == -1
    node.exit("app", 1)
    node.after(1)
    assert node.running() == ["app#1"]


def test_who_refuses_ends_the_pod() -> None:
    """It never runs, what was made is taken back, and the reason is told until no source wants it."""
    first = FakePreparer()
    no = FakePreparer(answer=lambda _: Refused(reason="OutOfcpu", message="no CPUs are left"))
    parts = [Preparation(name="cgroup", why="", by=first), Preparation(name="admission", why="", by=no)]
    node = Node(preparations=parts)
    node.lives.put(pod())
    node.after(1)
    record = node.record()
    assert (node.calls(), record.life, first.there) == ([], LifeState.FINISHED, set())
    assert record.ending is not None
    assert (record.ending.kind, record.ending.reason) == (EndingKind.REFUSED, "OutOfcpu")


def test_an_ended_container_starts_again_later_each_time() -> None:
    """At once, after ten seconds, after twenty; when the next start is, is told."""
    node = Node()
    node.lives.put(pod())
    node.after(1)
    node.exit("app", 1)
    node.after(1)
    assert node.running() == ["app#1"]
    for waits_s in (10, 20):
        node.exit("app", 1)
        node.after(1)
        facts = node.lives.facts.get("u")
        assert facts is not None
        waiting = facts.containers["app"].waiting
        assert waiting is not None
        assert waiting.reason == "CrashLoopBackOff"
        assert waiting.until_s is not None
        assert waits_s - 2 < waiting.until_s - node.clock.monotonic_s() <= waits_s
        node.after(waits_s - 2.5)
        assert node.running() == []
        node.after(2.5)
        assert len(node.running()) == 1
    assert node.running() == ["app#3"]


def test_a_poke_starts_now_what_waits() -> None:
    """Nobody has to wait for a back-off who has mended what was wrong."""
    node = Node()
    node.lives.put(pod())
    node.after(1)
    for _ in range(2):
        node.exit("app", 1)
        node.after(1)
    assert node.running() == []
    assert node.lives.poke("u", "app")
    node.after(0.5)
    assert node.running() == ["app#2"]
    assert not node.lives.poke("nobody")


def test_back_off_outlives_the_agent() -> None:
    """A crash loop is no faster for the agent being killed, and restarts go on being counted."""
    node = Node()
    node.lives.put(pod())
    node.after(1)
    for _ in range(2):
        node.exit("app", 1)
        node.after(1)
    node.kill_agent()
    node.after(5)
    assert node.running() == []
    node.after(5)
    assert node.running() == ["app#2"]


@pytest.mark.parametrize(("policy", "code"), [(RestartPolicy.ON_FAILURE, 0), (RestartPolicy.NEVER, 3)])
def test_a_pod_that_is_done_finishes_and_stays_finished(policy: RestartPolicy, code: int) -> None:
    """Over a killed agent and over a reboot after which the runtime knows nothing."""
    node = Node()
    node.lives.put(pod(policy=policy))
    node.after(1)
    node.exit("app", code)
    node.after(1)
    assert node.life() is LifeState.FINISHED
    before = node.calls()
    node.kill_agent()
    node.lives.put(pod(policy=policy))
    node.lives.heard()
    node.after(5)
    node.boot_id = "boot-2"
    node.runtime.lose_records("sandbox-1", "container-2")
    node.kill_agent()
    node.lives.put(pod(policy=policy))
    node.after(5)
    assert (node.calls(), node.life()) == (before, LifeState.FINISHED)


def test_init_containers_run_one_after_another_and_once() -> None:
    """Those that succeeded do not run again, though the agent is killed and their records are removed."""
    init = tuple(Container(name=name, image="busybox") for name in ("one", "two"))
    node = Node()
    node.lives.put(pod(init_containers=init))
    node.after(1)
    assert node.running() == ["one#0"]
    node.exit("one")
    node.after(1)
    assert node.running() == ["two#0"]
    node.runtime.lose_records(node.id_of("one"))
    node.kill_agent()
    node.after(2)
    node.exit("two")
    node.after(1)
    assert node.running() == ["app#0"]


def test_an_init_container_that_memory_ran_out_for_is_not_over() -> None:
    """With exit status 0, too: it may have lost a child. The next one has to end well, also after a kill."""
    node = Node()
    node.lives.put(pod(init_containers=(Container(name="init", image="busybox"),)))
    node.after(1)
    node.runtime.exit(node.id_of("init"), Exited(code=0), reason="OOMKilled")
    node.after(2)
    assert node.running() == ["init#1"]
    node.kill_agent()
    node.after(2)
    node.exit("init")
    node.after(2)
    assert node.running() == ["app#0"]


def test_an_edit_makes_a_container_anew() -> None:
    """Another image takes effect: the old instance is stopped, the new one has the next number."""
    node = Node()
    node.lives.put(pod())
    node.after(1)
    node.lives.put(pod(containers=[attrs.evolve(APP, image="other")]))
    node.after(1)
    assert node.running() == ["app#1"]


def test_what_a_source_tells_of_status_changes_nothing() -> None:
    """A status, or a version of the document, is no other form of the pod."""
    node = Node()
    node.lives.put(pod())
    node.after(1)
    said = {"metadata.resourceVersion": "7"}
    node.lives.put(attrs.evolve(pod(), status={"phase": "Running"}, carried=said))
    node.after(1)
    assert node.record().edition == 1


@pytest.mark.parametrize("image", ["busybox:1", "busybox"])
def test_a_pod_that_is_said_again_after_a_kill_is_no_other_pod(image: str) -> None:
    """Whoever says nothing of when its images are fetched says the same as what is remembered of it."""
    node = Node(preparations=[Preparation(name="part", why="", by=FakePreparer())])
    app, setup = attrs.evolve(APP, image=image), Container(name="setup", image=image)
    mine = pod(
        containers=[app], init_containers=(setup,), ephemeral_containers=(attrs.evolve(app, name="look"),)
    )
    node.lives.put(mine)
    node.after(1)
    node.exit("setup")
    node.after(1)
    node.kill_agent()
    node.lives.put(mine)
    node.after(1)
    assert (node.record().edition, sorted(node.running())) == (1, ["app#0", "look#0"])
    assert node.record().pod.containers[0].image_pull_policy is None


def test_a_probe_that_fails_starts_the_container_anew() -> None:
    """It is stopped and started; a verdict on the old instance says nothing of the new one."""
    node = Node()
    node.lives.put(pod())
    node.after(1)
    node.verdicts.put("u", Verdicts(alive={node.id_of("app"): False}))
    node.after(1)
    assert node.running() == ["app#1"]


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_post_start_hook_is_run_though_nobody_heard_of_the_start(is_killed: bool) -> None:
    """The answer was lost, or the agent was killed before it came: the hook is run once, when it is seen."""
    node = Node()
    node.runtime.lose_answer("start_container")
    node.lives.put(pod(containers=[attrs.evolve(APP, lifecycle=Lifecycle(post_start=HOOK))]))
    if is_killed:
        while not node.runtime.inspect("u").containers or not node.running():
            node.group.run_until_quiet()
            node.executor.run_all()
        node.kill_agent()
        node.lives.put(pod(containers=[attrs.evolve(APP, lifecycle=Lifecycle(post_start=HOOK))]))
        node.lives.heard()
    node.after(30)
    assert node.running() == ["app#0"]
    assert len(node.hooks.calls) == 1


def test_a_post_start_hook_holds_back_what_comes_behind() -> None:
    """The next container starts when it has run; its failure stops the container."""
    proxy = attrs.evolve(APP, name="proxy", lifecycle=Lifecycle(post_start=HOOK))
    node = Node()
    node.executor.held.add("post-start")
    node.lives.put(pod(containers=[proxy, APP]))
    node.after(1)
    assert node.running() == ["proxy#0"]
    node.hooks.answer = lambda call: "no" if call.container_id == "container-2" else ""
    node.executor.held.clear()
    node.executor.parked.pop()()
    node.after(1)
    assert sorted(node.running()) == ["app#0", "proxy#1"]
    assert len(node.hooks.calls) == 2


def test_a_hook_that_fails_gives_who_ends_already_no_more_time() -> None:
    """The container was asked to end for an edit: the deadline that it was told stands."""
    node = Node()
    node.executor.held |= {"post-start", "stop"}
    hooked = attrs.evolve(APP, lifecycle=Lifecycle(post_start=HOOK))
    node.lives.put(pod(containers=[hooked]))
    node.after(1)
    node.lives.put(pod(containers=[attrs.evolve(hooked, image="busybox:2")]))
    node.after(1)
    record = node.lives.pods.get("u")
    assert record is not None
    assert [one.reason for one in record.stopping.values()] == [StopReason.NONE]
    node.hooks.answer = lambda _: "no"
    node.executor.parked.pop(0)()
    node.after(1)
    after = node.lives.pods.get("u")
    assert after is not None
    assert after.stopping == record.stopping


@pytest.mark.parametrize("rules", [Rules(), KUBELET], ids=["right", "kubelet"])
@pytest.mark.parametrize("host_network", [False, True])
def test_the_first_container_is_told_its_address(rules: Rules, host_network: bool) -> None:
    """Also where it is made before anybody looked at its sandbox."""
    told: list[tuple[str, ...]] = []

    class Noting(PlainConfiguration):
        """Notes which addresses it is told."""

        def container(
            self, record: PodRecord, container: Container, attempt: int, image_id: str, report: PodReport, /
        ) -> ContainerConfig:
            told.append(report.ips)
            return super().container(record, container, attempt, image_id, report)

    node = Node(rules=rules, configuring=Noting())
    node.lives.put(pod(containers=[APP], host_network=host_network))
    node.after(3)
    assert node.running() == ["app#0"]
    assert told == [() if host_network else ("10.0.0.1",)]
    node.runtime.stop_sandbox("sandbox-1")
    node.after(3)
    assert node.running() == ["app#1"]
    assert told[1:] == [() if host_network else ("10.0.0.2",)]


@pytest.mark.parametrize("rules", [Rules(), KUBELET], ids=["right", "kubelet"])
def test_a_hook_runs_on_whatever_the_runtime_shows_meanwhile(rules: Rules) -> None:
    """Listings and reports come and go; nobody calls a hook off whose container runs."""
    node = Node(rules=rules)
    node.executor.held.add("post-start")
    node.lives.put(pod(containers=[attrs.evolve(APP, lifecycle=Lifecycle(post_start=HOOK))]))
    node.after(20)
    assert node.running() == ["app#0"]
    assert [one.cancel.is_set() for one in node.executor.hanging] == [False]
    node.executor.held.clear()
    node.executor.parked.pop()()
    node.after(20)
    assert node.running() == ["app#0"]
    assert len(node.hooks.calls) == 1


@pytest.mark.parametrize("rules", [Rules(), KUBELET], ids=["right", "kubelet"])
def test_a_request_of_a_hook_is_told_the_pods_address(rules: Rules) -> None:
    """Also where the container has started before anybody looked at its sandbox."""
    request = LifecycleHandler(http_get=HttpGetAction(port=80))
    node = Node(rules=rules)
    node.lives.put(pod(containers=[attrs.evolve(APP, lifecycle=Lifecycle(post_start=request))]))
    node.after(3)
    assert [one.report.ips for one in node.hooks.calls] == [("10.0.0.1",)]


def test_an_image_that_cannot_be_had_is_told_and_tried_again() -> None:
    """The reason stands with the container until it runs."""
    node = Node()
    node.runtime.fail("pull_image", RuntimeRefusedError("pull_image", "NOT_FOUND", "no such image"), times=2)
    node.lives.put(pod(containers=[attrs.evolve(APP, image="private")]))
    node.after(0.2)
    facts = node.lives.facts.get("u")
    assert facts is not None
    waiting = facts.containers["app"].waiting
    assert waiting is not None
    assert (waiting.reason, waiting.message) == ("ErrImagePull", "no such image")
    assert waiting.until_s is not None
    node.after(10.5)
    facts = node.lives.facts.get("u")
    assert facts is not None
    waiting = facts.containers["app"].waiting
    assert waiting is not None
    assert waiting.reason == "ImagePullBackOff"
    assert waiting.message == 'Back-off pulling image "private": ErrImagePull: no such image'
    node.after(20.5)
    assert node.running() == ["app#0"]


def test_an_image_that_is_never_to_be_fetched_is_not() -> None:
    """Policy Never waits until somebody else has brought it."""
    node = Node()
    app = attrs.evolve(APP, image="private", image_pull_policy=PullPolicy.NEVER)
    node.lives.put(pod(containers=[app]))
    node.after(5)
    assert not any(one.startswith("pull_image") for one in node.runtime.calls)
    facts = node.lives.facts.get("u")
    assert facts is not None
    waiting = facts.containers["app"].waiting
    assert waiting is not None
    assert waiting.reason == "ErrImageNeverPull"
    node.runtime.pull_image("private")
    node.after(120)
    assert node.running() == ["app#0"]


def test_a_lost_sandbox_is_made_anew() -> None:
    """Containers go to the new one, and counts do not fall."""
    node = Node()
    node.lives.put(pod())
    node.after(1)
    node.runtime.stop_sandbox("sandbox-1")
    node.after(1)
    assert node.running() == ["app#1"]
    assert [one.record.attempt for one in node.runtime.inspect("u").sandboxes] == [1, 0]


def test_others_are_told_who_is_here() -> None:
    """A pod is wanted until nothing of it runs any more; nothing is sure before sources were heard."""
    node = Node()
    source = node.lives.pod_source()
    node.lives.put(pod(policy=RestartPolicy.NEVER))
    node.after(1)
    assert not source.is_ready()
    node.lives.heard()
    assert source.is_ready()
    found = source.get("u")
    assert found is not None
    assert (list(source.uids()), found.life) == (["u"], PodLife.WANTED)
    node.exit("app")
    node.after(1)
    found = source.get("u")
    assert found is not None
    assert found.life is PodLife.ENDED
    assert source.get("nobody") is None


def test_who_may_run_is_known_from_the_first_listing_on() -> None:
    """Before it anybody may but who was refused; then who is listed with a container that has begun."""
    no = FakePreparer(answer=lambda one: Refused(reason="No", message="no") if one.uid == "r" else Admitted())
    node = Node(preparations=[Preparation(name="admission", why="", by=no)])
    node.lives.put(pod(policy=RestartPolicy.NEVER))
    node.lives.put(pod("r"))
    node.after(1)
    assert [node.lives.may_run(uid) for uid in ("u", "r", "nobody")] == [True, False, False]
    node.kill_agent()
    assert [node.lives.may_run(uid) for uid in ("u", "r", "nobody")] == [True, False, True]
    node.after(1)
    assert [node.lives.may_run(uid) for uid in ("u", "r", "nobody")] == [True, False, False]
    node.exit("app")
    node.after(1)
    assert not node.lives.may_run("u")


def test_one_that_hangs_delays_no_other() -> None:
    """A part of one pod hangs for an hour; the others run, and end."""
    slow = FakePreparer()
    node = Node(preparations=[Preparation(name="volumes", why="", by=slow)])
    node.executor.held.add("make ready volumes")
    node.lives.put(pod("a"))
    node.settle()
    node.executor.held.clear()
    node.lives.put(pod("b"))
    node.after(1)
    assert (node.running("a"), node.running("b")) == ([], ["app#0"])
    node.lives.remove("b")
    node.after(3600, step_s=60)
    assert "b" not in node.lives.pods


def test_whatever_a_pass_has_to_remember_is_one_commit_at_most() -> None:
    """Of the watch and of the lives together, while fifty pods start."""
    node = Node()
    passes: list[int] = []
    reconcile = node.group.reconcile

    def counted() -> Summary:
        before = len(node.journal.commits)
        summary = reconcile()
        passes.append(len(node.journal.commits) - before)
        return summary

    node.group.reconcile = counted  # type: ignore[method-assign]
    for number in range(50):
        node.lives.put(pod(f"u{number}"))
    node.after(3)
    assert node.running("u49") == ["app#0"]
    assert max(passes) == 1
    assert sum(passes) < 50


def test_preparations_have_names_of_their_own() -> None:
    """They are remembered by them."""
    part = Preparation(name="a", why="", by=FakePreparer())
    with pytest.raises(ConfigurationError, match="stand there twice"):
        Node(preparations=[part, part])


def test_a_policy_that_cannot_be_is_refused() -> None:
    """No pull at a time would be none ever."""
    with pytest.raises(ValueError, match="pulls_at_once"):
        LifePolicy(pulls_at_once=0)
    with pytest.raises(ValueError, match="grace_s"):
        Ending(kind=EndingKind.EVICTED, grace_s=-1)
    with pytest.raises(ConfigurationError, match="needs a uid"):
        Node().lives.put(attrs.evolve(pod(), name=""))


def test_containers_start_in_their_order_whoever_is_fetched_first() -> None:
    """A proxy that comes first in the manifest starts first, though its image takes longer."""
    node = Node()
    node.executor.held = {"pull"}
    node.lives.put(pod(containers=[attrs.evolve(APP, name=name, image=name) for name in ("proxy", "app")]))
    node.after(1)
    for look in tuple(node.executor.parked):
        look()
    node.after(1)
    proxy, app = node.executor.parked[2:]
    app()
    node.after(1)
    assert not any(one.startswith("create") for one in node.calls())
    proxy()
    node.after(1)
    assert [one.split("/")[1] for one in node.calls() if one.startswith("create")] == ["proxy", "app"]


def test_an_image_that_cannot_be_had_keeps_nobody_behind_it() -> None:
    """The next container starts while the first one waits for its next try."""
    node = Node()
    missing = attrs.evolve(APP, name="proxy", image="gone", image_pull_policy=PullPolicy.NEVER)
    node.lives.put(pod(containers=[missing, APP]))
    node.after(1)
    assert node.running() == ["app#0"]


def test_a_container_that_cannot_be_made_keeps_nobody_behind_it() -> None:
    """The next one starts while the first waits for its next try, and the first comes once it can be made."""
    node = Node()
    made = node.runtime.create_container
    bad = True

    def create(sandbox_id: str, config: ContainerConfig, sandbox: SandboxConfig, /) -> str:
        if bad and config.name == "bad":
            raise RuntimeRefusedError("create_container", "NOT_FOUND", "no such file")
        return made(sandbox_id, config, sandbox)

    node.runtime.create_container = create  # type: ignore[method-assign]
    node.lives.put(pod(containers=[attrs.evolve(APP, name="bad"), APP]))
    node.after(1)
    assert node.running() == ["app#0"]
    facts = node.lives.facts.get("u")
    assert facts is not None
    assert facts.containers["bad"].waiting is not None
    bad = False
    node.after(20)
    assert sorted(node.running()) == ["app#0", "bad#0"]


@pytest.mark.parametrize("rules", [Rules(), KUBELET], ids=["right", "kubelet"])
@pytest.mark.parametrize("verb", ["post-start", "pre-stop"])
def test_a_hook_is_called_off_when_its_container_has_ended(rules: Rules, verb: str) -> None:
    """Whatever else of the pod is to be done waits for it no longer."""
    node = Node(rules=rules)
    node.executor.held.add(verb)
    lifecycle = Lifecycle(post_start=HOOK) if verb == "post-start" else Lifecycle(pre_stop=HOOK)
    node.lives.put(pod(containers=[attrs.evolve(APP, lifecycle=lifecycle)]))
    node.after(3)
    if verb == "pre-stop":
        node.lives.remove("u")
        node.after(0.5)
    assert [one.cancel.is_set() for one in node.executor.hanging] == [False]
    node.exit("app", code=1)
    node.after(3)
    assert node.executor.hanging[0].cancel.is_set()


def test_a_post_start_hook_is_called_off_when_its_pod_ends() -> None:
    """What is done at the end does not wait for it."""
    node = Node()
    node.executor.held.add("post-start")
    node.lives.put(pod(containers=[attrs.evolve(APP, lifecycle=Lifecycle(post_start=HOOK))]))
    node.after(3)
    node.lives.remove("u")
    node.after(3)
    assert [one.cancel.is_set() for one in node.executor.hanging] == [True]
