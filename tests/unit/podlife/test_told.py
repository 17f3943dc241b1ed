"""Ready falls before the first signal: ends of pods wait, not for ever, until others were told."""

from __future__ import annotations

from typing import cast

import attrs
import pytest

from nodealloc.dsw_asw import World
from nodealloc.errors import ConfigurationError
from nodealloc.podfacts import ConditionStatus, LifeState, PodStatus
from nodealloc.podlife import Ending, EndingKind, LifePolicy, Preparation
from nodealloc.podlife._ports import LifeTold
from nodealloc.podlife.preparers import StatusPreparer
from nodealloc.podspec import Container, ExecAction, Lifecycle, LifecycleHandler, Probe
from nodealloc.podstatus import Told
from nodealloc.testing.podlife import check_preparer
from tests.unit.podlife_node import QUIET, Verdicts, pod
from tests.unit.podstatus.test_with_lives import TellingNode

APP = Container(name="app", image="busybox")
EVICTED = Ending(kind=EndingKind.EVICTED, reason="Evicted", message="low on memory")


def is_ready(status: PodStatus | None) -> bool:
    """Whether a status says that its pod is ready."""
    ready = None if status is None else status.condition("Ready")
    return ready is not None and ready.status is ConditionStatus.TRUE


def up(app: Container = APP, *, policy: LifePolicy | None = None) -> TellingNode:
    """A node on which a pod runs and was told to be ready."""
    node = TellingNode() if policy is None else TellingNode(policy=policy)
    node.heard()
    node.lives.put(pod(containers=(app,)))
    node.after(3.0)
    assert node.running() == ["app#0"]
    assert is_ready(node.sink.statuses["u"])
    return node


def told_at_first_signal(node: TellingNode, begin: float, most_s: float = 10.0) -> tuple[float, bool]:
    """When the first signal came after the decision, in seconds, and whether Ready stood then."""
    while not node.stops and node.clock.monotonic_s() < begin + most_s:
        node.after(0.05, step_s=0.05)
        if node.stops:
            break
    assert node.stops, "nothing was asked to end"
    return round(node.stops[0][0] - begin, 2), is_ready(node.sink.statuses.get("u"))


def test_who_is_told_quickly_costs_nothing() -> None:
    """The first signal comes at the same moment, and behind the call of the sink."""
    node = up()
    order: list[str] = []
    node.sink.before = lambda _: order.append("told")
    begin = node.clock.monotonic_s()
    node.lives.end("u", EVICTED)
    after_s, ready = told_at_first_signal(node, begin)
    assert (after_s, ready) == (0.0, False)
    assert order, "nobody was told before the first signal"


def test_a_slow_sink_is_waited_for() -> None:
    """No signal before it has taken that the pod is not ready."""
    node = up()
    node.executor.held = {"tell"}
    begin = node.clock.monotonic_s()
    node.lives.remove("u")
    node.after(0.5, step_s=0.05)
    assert node.stops == []
    assert node.life() is LifeState.TERMINATING
    node.executor.held = set()
    for call in node.executor.parked:
        call()
    after_s, ready = told_at_first_signal(node, begin)
    assert (after_s, ready) == (0.5, False)


@pytest.mark.parametrize("told_s", [0.0, 0.4, 1.0])
def test_a_sink_that_hangs_costs_what_the_policy_says(told_s: float) -> None:
    """Then the pod ends all the same, and with its whole deadline kept."""
    node = up(policy=LifePolicy(pulls_at_once=None, told_s=told_s))
    node.executor.held = {"tell"}
    begin = node.clock.monotonic_s()
    node.lives.remove("u")
    after_s, _ = told_at_first_signal(node, begin)
    assert told_s <= after_s <= told_s + 0.05
    assert node.stops[0][1] == pytest.approx(30.0 - after_s), "the grace began anew behind the wait"


def test_a_sink_that_fails_costs_no_more() -> None:
    """It is asked again after a back-off, and waited for until the same moment."""
    node = up()
    node.sink.error = OSError("no route to the API")
    begin = node.clock.monotonic_s()
    node.lives.end("u", EVICTED)
    assert 1.0 <= told_at_first_signal(node, begin)[0] <= 1.05
    node.sink.error = None
    node.after(60.0)
    assert node.phases()[-1] == "Failed"


def test_a_sink_that_fails_once_is_waited_for() -> None:
    """The second try is in time."""
    node = up()
    fails = [OSError("once")]

    def fail(_uid: str) -> None:
        if fails:
            raise fails.pop()

    node.sink.before = fail
    begin = node.clock.monotonic_s()
    node.lives.end("u", EVICTED)
    after_s, ready = told_at_first_signal(node, begin)
    assert (0.0 < after_s < 1.0, ready) == (True, False)


@pytest.mark.parametrize(("grace_s", "latest_s"), [(1.0, 0.5), (0.0, 0.0)])
def test_a_short_grace_is_kept(grace_s: float, latest_s: float) -> None:
    """A sink that hangs takes nothing of what is kept for the container; no grace, no wait."""
    node = up()
    node.executor.held = {"tell"}
    begin = node.clock.monotonic_s()
    node.lives.remove("u", grace_s=grace_s)
    assert told_at_first_signal(node, begin)[0] <= latest_s + 0.05


def test_a_grace_that_shrinks_ends_the_wait() -> None:
    """A second wish with no grace is a signal at once, told or not."""
    node = up()
    node.executor.held = {"tell"}
    begin = node.clock.monotonic_s()
    node.lives.remove("u")
    node.after(0.25, step_s=0.05)
    assert node.stops == []
    node.lives.remove("u", grace_s=0.0)
    assert told_at_first_signal(node, begin)[0] == 0.25


def test_hooks_wait_too() -> None:
    """A pre-stop hook is the first that a container hears of its end."""
    hook = Lifecycle(pre_stop=LifecycleHandler(exec=ExecAction(command=("drain",))))
    node = up(attrs.evolve(APP, lifecycle=hook))
    node.executor.held = {"tell"}
    node.lives.remove("u")
    node.after(0.5)
    assert node.hooks.calls == []
    node.after(1.0)
    assert len(node.hooks.calls) == 1


def test_what_was_asked_to_end_before_goes_on() -> None:
    """A hook of a container that failed its probe runs on when its pod has to end."""
    hook = Lifecycle(pre_stop=LifecycleHandler(exec=ExecAction(command=("drain",))))
    probe = Probe(exec=ExecAction(command=("alive",)))
    node = up(attrs.evolve(APP, lifecycle=hook, liveness_probe=probe))
    node.executor.held = {"pre-stop"}
    node.verdicts.put("u", Verdicts(alive={node.id_of("app"): False}))
    node.after(0.5)
    (hanging,) = node.executor.parked
    node.executor.held = {"tell", "pre-stop"}
    node.lives.remove("u")
    node.after(0.5)
    assert node.record().pre_stop, "the hook was given up"
    node.executor.held = {"tell"}
    hanging()
    node.after(0.25)
    assert node.stops, "the container was held up by a sink that its own end has nothing to do with"


def test_nobody_waits_for_who_is_told_of_nothing() -> None:
    """A pod that nobody tells of, such as one that only the runtime knew, ends at once."""
    node = TellingNode()
    node.lives.put(pod())
    node.after(3.0)
    node.journal.rows.clear()
    node.runtime.calls.clear()
    node.kill_agent()
    node.heard()
    begin = node.clock.monotonic_s()
    node.executor.held = {"tell"}
    node.after(1.0, step_s=0.05)
    stops = [one for one in node.runtime.calls if not one.startswith(QUIET)]
    assert stops
    assert node.stops[0][0] - begin < 0.5


def test_an_agent_that_is_killed_while_it_waits_tells_first() -> None:
    """The next one waits as well, for what it tells itself; the deadline stays."""
    node = up()
    node.executor.held = {"tell"}
    begin = node.clock.monotonic_s()
    node.lives.remove("u")
    node.after(0.5, step_s=0.05)
    assert node.stops == []
    node.kill_agent()
    after_s, ready = told_at_first_signal(node, begin)
    assert (after_s < 1.0, ready) == (True, False)
    assert node.stops[0][1] == pytest.approx(30.0 - after_s)


def starting(*, held: bool) -> TellingNode:
    """A node on which nothing of a pod is made before others were told of it."""
    told: World[str, LifeTold] = World("told")
    node = TellingNode()
    preparer, wakes = StatusPreparer(told, clock=node.clock), cast("World[str, object]", told)
    node.preparations = [Preparation(name="status", why="others hear of it first", by=preparer, wakes=wakes)]
    node.told_world = cast("World[str, Told]", told)
    node.start_agent()
    node.heard()
    node.executor.held = {"tell"} if held else set()
    node.lives.put(pod())
    return node


def test_nothing_of_a_pod_is_made_before_others_were_told_of_it() -> None:
    """The sink has it first; without waiting, since the world wakes who waits."""
    node = starting(held=False)
    sandboxes: list[int] = []
    node.sink.before = lambda _: sandboxes.append(len(node.runtime.inspect("u").sandboxes))
    node.after(0.25, step_s=0.05)
    assert sandboxes[0] == 0
    assert node.running() == ["app#0"]


def test_a_sink_that_hangs_holds_up_no_start_for_ever() -> None:
    """It has a second by default."""
    node = starting(held=True)
    node.after(0.75, step_s=0.05)
    assert node.calls() == []
    waits = node.record().waits_for
    assert waits is not None
    assert waits.blocker == "status"
    node.after(2.0, step_s=0.05)
    assert node.running() == ["app#0"]


def test_a_status_preparer_keeps_the_promises_of_preparers() -> None:
    """May be repeated, and has to wait for something."""
    check_preparer(StatusPreparer(World("told"), most_s=1e-9), pod())
    with pytest.raises(ConfigurationError, match="waits for nobody"):
        StatusPreparer(World("told"), most_s=0.0)
