"""An agent that is killed at any call does nothing twice; a runtime that lies is seen through."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

import attrs
import pytest

from nodealloc.checkpoint import JsonCheckpoint
from nodealloc.podfacts import LifeState
from nodealloc.podlife import Preparation
from nodealloc.podspec import Container, ExecAction, Lifecycle, LifecycleHandler, RestartPolicy
from nodealloc.runtime import ContainerReport, RunState, RuntimeUnavailableError
from nodealloc.testing.dsw_asw import MemoryJournal
from nodealloc.testing.podlife import FakePreparer
from tests.unit.podlife_node import Node, NotingRuntime, pod

T = TypeVar("T")
HOOK = LifecycleHandler(exec=ExecAction(command=("true",)))
APP = Container(name="app", image="busybox")
POD = pod(
    init_containers=(Container(name="setup", image="busybox"),),
    containers=(attrs.evolve(APP, lifecycle=Lifecycle(pre_stop=HOOK)), attrs.evolve(APP, name="side")),
)
GRACE_S = 30.0


class Killed(BaseException):
    """The process is gone."""


class Counted:
    """Ends the process at one call, before or after it was done.

    Attributes:
        at: Which call, from 1; 0 for none.
        late: Whether it is done first.
        count: Calls so far.
    """

    def __init__(self, at: int = 0, *, late: bool = False) -> None:
        self.at, self.late, self.count = at, late, 0

    def call(self, work: Callable[[], T]) -> T:
        """Do it, unless this is the moment."""
        self.count += 1
        if self.count == self.at and not self.late:
            raise Killed
        answer = work()
        if self.count == self.at:
            raise Killed
        return answer


class Made(dict[str, ContainerReport]):
    """What a runtime has, with a note of all that it ever made; two of one name never run at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.made: list[str] = []

    def __setitem__(self, container_id: str, report: ContainerReport) -> None:
        record = report.record
        name = f"{record.name}#{record.attempt}"
        if container_id not in self:
            self.made.append(name)
        if record.state is RunState.RUNNING:
            others = [
                one
                for one in self.values()
                if one.record.name == record.name
                and one.record.id != record.id
                and one.record.state is RunState.RUNNING
            ]
            assert not others, f"{name} starts while {others[0].record.attempt} runs"
        super().__setitem__(container_id, report)


class KillingRuntime(NotingRuntime):
    """Each call may be the last of whoever calls."""

    def __init__(self, node: Node, counted: Counted) -> None:
        super().__init__(node)
        self.counted = counted
        self.containers = Made()
        self._containers = self.containers

    def _call(self, call: str, about: str, work: Callable[[], T]) -> T:
        return self.counted.call(lambda: super(KillingRuntime, self)._call(call, about, work))


class KillingJournal(MemoryJournal[JsonCheckpoint]):
    """Counts its commits with the calls of the runtime."""

    counted: Counted

    def commit(self, changes: Mapping[str, JsonCheckpoint | None], /) -> None:
        """All of them, or the process is gone."""
        self.counted.call(lambda: super(KillingJournal, self).commit(changes))


class KilledNode(Node):
    """A node whose agent ends at one call, and is started again."""

    def __init__(self, counted: Counted) -> None:
        super().__init__(preparations=[Preparation(name="cgroup", why="", by=FakePreparer())])
        self.counted = counted
        runtime, journal = KillingRuntime(self, counted), KillingJournal()
        journal.counted = counted
        self.made = runtime.containers.made
        self.runtime, self.journal = runtime, journal
        self.start_agent()
        self.kills = 0

    def go(self, say: Callable[[], object], seconds: float) -> None:
        """Say something, and let time pass; who is killed is started again and hears the same."""
        end_s = self.clock.monotonic_s() + seconds
        say()
        while True:
            try:
                self.after(max(0.0, end_s - self.clock.monotonic_s()), step_s=0.5)
            except Killed:
                self.kills += 1
                self.start_agent()
                say()
            else:
                return


def story(node: KilledNode) -> None:
    """A pod comes, its app ends twice, it goes."""

    def there() -> None:
        node.lives.put(POD)
        node.lives.heard()

    node.go(there, 2)
    quiet(node, "setup")
    node.go(there, 2)
    quiet(node, "app")
    node.go(there, 2)
    quiet(node, "app")
    node.go(there, 13)
    assert sorted(quietly(node, node.running)) == ["app#2", "side#0"]
    node.lives.remove("u")

    def heard() -> None:
        node.lives.heard()

    node.go(heard, 5)


def quietly(node: KilledNode, look: Callable[[], T]) -> T:
    """Nobody's call is counted for looking."""
    at, node.counted.at, count = node.counted.at, 0, node.counted.count
    answer = look()
    node.counted.at, node.counted.count = at, count
    return answer


def quiet(node: KilledNode, name: str) -> None:
    """A container ends by itself."""
    quietly(node, lambda: node.exit(name, 0 if name == "setup" else 1))


def calls_of_the_story() -> int:
    """How many calls there are when nobody is killed."""
    counted = Counted()
    story(KilledNode(counted))
    return counted.count


CALLS = calls_of_the_story()


def check_killed(at: int, *, late: bool) -> None:
    """The same containers run in the end; none was made or started twice, and nothing is left behind."""
    node = KilledNode(Counted(at, late=late))
    story(node)
    assert node.kills == 1, f"call {at}"
    assert sorted(node.made) == ["app#0", "app#1", "app#2", "setup#0", "side#0"], f"call {at}"
    assert (node.containers(), node.journal.rows) == ([], {}), f"call {at}"
    assert "u" not in node.lives.pods, f"call {at}"


@pytest.mark.parametrize("late", [False, True], ids=["before", "after"])
def test_killed_at_any_call_it_goes_on_as_if_nothing_had_been(*, late: bool) -> None:
    """At every seventh, from another one each way."""
    for at in range(1 + 3 * late, CALLS + 1, 7):
        check_killed(at, late=late)


@pytest.mark.slow
@pytest.mark.parametrize("late", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("part", range(4))
def test_killed_at_every_call_it_goes_on_as_if_nothing_had_been(part: int, *, late: bool) -> None:
    """At every single one."""
    for at in range(1 + part, CALLS + 1, 4):
        check_killed(at, late=late)


CHANGES = ("run_sandbox", "create_container", "start_container", "stop_container", "stop_sandbox")


@pytest.mark.parametrize("call", [*CHANGES, "pull_image"])
def test_an_answer_that_is_lost_makes_no_second_copy(call: str) -> None:
    """It was done and nobody said so: the runtime is looked at before anything is tried again."""
    node = KilledNode(Counted())
    node.runtime.lose_answer(call)
    node.lives.put(attrs.evolve(POD, init_containers=()))
    node.after(5)
    assert sorted(node.running()) == ["app#0", "side#0"]
    node.lives.heard()
    node.lives.remove("u")
    node.after(5)
    assert sorted(node.made) == ["app#0", "side#0"]
    assert "u" not in node.lives.pods


@pytest.mark.parametrize(
    "call", [*CHANGES, "listing", "inspect", "remove_container", "remove_sandbox", "images"]
)
def test_a_call_that_fails_again_and_again_only_delays(call: str) -> None:
    """Five times in a row; then the pod runs, or is gone, as it should."""
    node = KilledNode(Counted())
    node.runtime.fail(call, RuntimeUnavailableError(call, "as the test says"), times=5)
    node.lives.put(attrs.evolve(POD, init_containers=()))
    node.after(60, step_s=0.5)
    assert sorted(node.running()) == ["app#0", "side#0"]
    node.lives.remove("u")
    node.after(60, step_s=0.5)
    assert sorted(node.made) == ["app#0", "side#0"]
    assert "u" not in node.lives.pods


def test_what_the_runtime_forgot_is_ended_and_counts_go_on() -> None:
    """After a reboot it knows nothing: the pod gets a new sandbox, and its counts do not fall."""
    node = Node()
    node.lives.put(pod())
    node.after(1)
    node.exit("app", 1)
    node.after(1)
    node.runtime.lose_records("sandbox-1", "container-2", "container-3")
    node.boot_id = "boot-2"
    node.kill_agent()
    node.lives.put(pod())
    node.lives.heard()
    node.after(15)
    assert node.running() == ["app#2"]
    facts = node.lives.facts.get("u")
    assert facts is not None
    assert facts.containers["app"].restart_count == 2


def test_a_container_of_which_nobody_knows_how_it_ended_is_not_run_again_under_never() -> None:
    """It ended while the runtime was away; that is neither a success nor a failure, and no reason to run."""
    node = Node()
    node.lives.put(pod(policy=RestartPolicy.NEVER))
    node.after(1)
    node.runtime.go_away()
    node.after(5)
    node.runtime.restart(died=["container-2"])
    node.after(5)
    assert (node.running(), node.life()) == ([], LifeState.FINISHED)


def test_while_the_runtime_is_away_nothing_is_concluded() -> None:
    """No pod is lost, none is started again; when it is back everything is as it was."""
    node = Node()
    node.lives.put(pod())
    node.after(1)
    before = node.calls()
    node.runtime.go_away()
    node.after(120, step_s=1)
    assert node.life() is LifeState.SYNCING
    node.runtime.restart()
    node.after(3)
    assert (node.running(), node.calls()) == (["app#0"], before)


def test_a_pod_whose_inspection_hangs_is_left_alone_and_delays_no_other() -> None:
    """Others start and end meanwhile."""
    node = Node()
    node.lives.put(pod("a"))
    node.after(1)
    node.executor.held.add("inspect")
    node.exit("app", 1, "a")
    node.after(1)
    node.executor.held.clear()
    node.lives.put(pod("b"))
    node.after(5)
    assert (node.running("a"), node.running("b")) == ([], ["app#0"])
    node.executor.parked.pop()()
    node.after(1)
    assert node.running("a") == ["app#1"]


def test_the_journal_that_refuses_keeps_everything_back() -> None:
    """What cannot be remembered is not done; when the disk has room again it goes on."""
    node = Node()

    def full() -> None:
        raise OSError(28, "No space left on device")

    node.journal.fault = full
    node.lives.put(pod())
    node.after(5)
    assert node.calls() == []
    node.journal.fault = lambda: None
    node.after(30)
    assert node.running() == ["app#0"]
