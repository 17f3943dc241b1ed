"""What a plan sees and answers: time, what runs, near records, intents; what is remembered, and when."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError
from pathlib import Path
from typing import TypeAlias

import pytest

from nodealloc.dsw_asw import (
    KEEP,
    BackOff,
    Cancel,
    Cancelled,
    Done,
    Failed,
    Group,
    InlineExecutor,
    Moment,
    Near,
    Outcome,
    Plan,
    Reconciler,
    Remember,
    Running,
    Step,
    Summary,
    View,
    World,
)
from nodealloc.dsw_asw._cancellation import Cancellation
from nodealloc.dsw_asw._moments import _boot_id
from nodealloc.testing.dsw_asw import (
    ManualExecutor,
    MemoryJournal,
    RecordingObserver,
    VirtualClock,
    run_to_rest,
)

WordStep: TypeAlias = Step[str]
WordView: TypeAlias = View[str, str, str, str]


class Words:
    """A domain whose plan and act a test gives; a record is the last result, or what failed."""

    def __init__(self, plan: Callable[[WordView], Plan[str, str]]) -> None:
        self.rule = plan
        self.act: Callable[[WordStep, Cancel], str | Done[str] | Failed[str]] = lambda step, _: step.detail
        self.views: list[WordView] = []

    def plan(self, view: WordView, /) -> Plan[str, str]:
        """As the test says."""
        self.views.append(view)
        return self.rule(view)

    def perform(self, step: WordStep, cancel: Cancel, /) -> str | Done[str] | Failed[str]:
        """As the test says."""
        return self.act(step, cancel)

    def settled(self, have: str | None, step: WordStep, outcome: Outcome[str], /) -> str | None:
        """The result, what is known, or that it was cancelled."""
        match outcome:
            case Done():
                return outcome.result
            case Cancelled():
                return f"{step.verb} cancelled"
            case Failed():
                return outcome.known or have
            case _:
                return have


class Desk:
    """One reconciler of words in the test's hand."""

    def __init__(self, plan: Callable[[WordView], Plan[str, str]], **options: object) -> None:
        self.desired: World[str, str] = World("desired")
        self.actual: World[str, str] = World("actual")
        self.domain = Words(plan)
        self.clock, self.executor, self.observer = VirtualClock(), ManualExecutor(), RecordingObserver()
        self.reconciler = Reconciler(
            self.domain,
            desired=self.desired,
            actual=self.actual,
            executor=self.executor,
            clock=self.clock,
            observer=self.observer,
            resync_s=None,
            **options,  # type: ignore[arg-type]
        )

    def turn(self) -> Summary:
        """Passes, operations, passes."""
        total = self.reconciler.run_until_quiet()
        while self.executor.run_all():
            total += self.reconciler.run_until_quiet()
        return total


def copy(view: WordView) -> Plan[str, str]:
    """Make the record what is wanted."""
    if view.want == view.have:
        return Plan()
    return Plan(steps=[Step(scope=(view.key,), verb="set", detail=view.want or "")])


def probing(view: WordView) -> Plan[str, str]:
    """Ask every ten seconds."""
    step = Step(scope=(view.key,), verb="probe", detail="well", may_change_nothing=True)
    return Plan(steps=[step], again_at_s=view.now_s + 10.0)


def test_who_waits_for_a_scope_is_not_woken_by_ends_elsewhere() -> None:
    """Scopes of two keys begin alike: one that waits for its own call is not planned as the other's ends."""

    def plan(view: WordView) -> Plan[str, str]:
        if view.want == view.have:
            return Plan()
        step = Step(scope=("pod", view.key), verb="set", detail=view.want or "")
        return Plan(steps=[step])

    desk = Desk(plan)
    for key in ("slow", "quick"):
        desk.desired.put(key, "one")
    desk.reconciler.run_until_quiet()
    desk.desired.put("slow", "two")
    assert desk.reconciler.run_until_quiet().blocked == 1
    seen = len(desk.domain.views)
    desk.executor.run(-1)
    desk.reconciler.run_until_quiet()
    assert {view.key for view in desk.domain.views[seen:]} == {"quick"}
    desk.turn()
    assert desk.actual.get("slow") == "two"


def test_a_steady_probe_does_not_back_off() -> None:
    """A thousand successes that change nothing are a thousand calls in a thousand periods, and no failure."""
    desk = Desk(probing)
    desk.desired.put("pod", "probed")
    desk.turn()
    for _ in range(1000):
        desk.clock.advance(10.0)
        summary = desk.turn()
        assert (summary.started, summary.done, summary.held_off) == (1, 1, 0)
    assert desk.reconciler.failures("pod") == ()
    assert len(desk.observer.ends) == 1001
    desk.clock.advance(9.0)
    assert desk.turn().started == 0


def test_a_probe_that_counts_its_successes_is_no_livelock() -> None:
    """A record that changes with each result is planned again at once, and its probe waits for its moment."""

    def counting(view: WordView) -> Plan[str, str]:
        count, due = (view.have or "0 0").split()
        if float(due) > view.now_s:
            return Plan(again_at_s=float(due))
        step = Step(scope=(view.key,), verb="probe", detail=f"{int(count) + 1} {view.now_s + 10.0}")
        return Plan(steps=[step])

    desk = Desk(counting)
    desk.desired.put("pod", "probed")
    desk.turn()
    for _ in range(1000):
        desk.clock.advance(10.0)
        assert desk.turn().started == 1
    assert (desk.actual.get("pod") or "").startswith("1001 ")


@pytest.mark.parametrize("is_remembered", [False, True])
def test_a_period_is_a_period_whatever_its_step_found(is_remembered: bool) -> None:
    """A result that changes the record each time does not shorten it; what others change does."""
    journal: MemoryJournal[str] = MemoryJournal()
    options = {"remember": remembering(journal)} if is_remembered else {}
    desk, counts = Desk(probing, **options), iter(range(10_000))
    desk.domain.act = lambda _step, _cancel: f"{next(counts)} well"
    desk.desired.put("pod", "probed")
    for count in range(50):
        assert desk.turn().started == 1
        assert desk.actual.get("pod") == f"{count} well"
        desk.clock.advance(9.0)
        assert desk.turn().started == 0
        desk.clock.advance(1.0)
    assert desk.turn().started == 1
    desk.desired.put("pod", "probed anew")
    assert desk.turn().started == 1
    if not is_remembered:
        desk.actual.put("pod", "somebody else's", by="somebody else")
        assert desk.turn().started == 1
        desk.actual.drop("pod", by="somebody else")
        assert desk.turn().started == 1


def test_a_step_rests_for_as_long_as_it_says_itself() -> None:
    """Whoever is asked may know when to be asked again; the period of the plan is for those who do not."""
    desk, waits = Desk(probing), iter([3.0, None, 0.5])
    desk.domain.act = lambda _step, _cancel: Done("well", again_after_s=next(waits))
    desk.desired.put("pod", "probed")
    assert desk.turn().started == 1
    for rest_s in (3.0, 10.0, 0.5):
        desk.clock.advance(rest_s - 0.1)
        assert desk.turn().started == 0
        desk.clock.advance(0.1)
        if rest_s > 0.5:
            assert desk.turn().started == 1
    assert desk.reconciler.failures("pod") == ()


def test_what_rests_is_done_again_when_a_record_changes_or_somebody_asks() -> None:
    """A rest ends with its moment, with a change of the key, and with `look_at`."""
    desk = Desk(lambda _: Plan(steps=[Step(scope=("a",), verb="p", detail="x", may_change_nothing=True)]))
    desk.desired.put("pod", "1")
    assert desk.turn().started == 2
    desk.reconciler.look_at(["pod"])
    assert desk.turn().started == 1
    desk.desired.put("pod", "2")
    assert desk.turn().started == 1
    desk.clock.advance(1e6)
    assert desk.turn().started == 0
    desk.domain.rule = lambda _: Plan(
        steps=[Step(scope=("a",), verb="p", detail="y", may_change_nothing=True)]
    )
    desk.actual.put("pod", "z")
    assert desk.turn().started == 2


def test_a_plan_that_another_look_precedes_keeps_the_end_of_the_rest() -> None:
    """A look in the middle of a period shifts no probe."""
    desk = Desk(probing)
    desk.desired.put("pod", "1")
    desk.turn()
    desk.clock.advance(6.0)
    desk.reconciler._bookkeeping.add(["pod"])
    desk.reconciler._wake()
    assert desk.turn().started == 0
    desk.clock.advance(4.0)
    assert desk.turn().started == 1


def test_a_moment_in_the_past_is_looked_at_soon_not_in_a_hot_loop() -> None:
    """Whatever moment a plan names, time has to pass before it is asked again."""
    desk = Desk(lambda _: Plan(again_at_s=-5.0))
    desk.desired.put("a", "1")
    assert desk.turn().planned == 1
    desk.clock.advance(0.001)
    assert desk.turn().planned == 1
    desk.domain.rule = lambda _: Plan()
    desk.clock.advance(0.001)
    desk.turn()
    assert desk.reconciler.seconds_to_next() is None
    with pytest.raises(ValueError, match="again_at_s=inf"):
        Plan[str, str](again_at_s=float("inf"))


def pulling(view: WordView) -> Plan[str, str]:
    """Pull while it is wanted; stop the pull when it is not."""
    if view.want is None:
        gone: str | None = None
        return Plan(cancel=True) if view.running else Plan(have=gone)
    if view.have is None:
        return Plan(steps=[Step(scope=(view.key, "image"), verb="pull", detail=view.want)])
    return Plan()


def test_a_running_step_can_be_asked_to_stop() -> None:
    """It sees that it is asked, stops, and its outcome says so; the key goes."""
    desk, seen = Desk(pulling), list[tuple[Running[str], ...]]()

    def pull(step: WordStep, cancel: Cancel) -> str:
        heard, nobody = list[str](), iter(())
        cancel.on_cancel(lambda: heard.append("early"))
        cancel.on_cancel(lambda: next(nobody))
        desk.desired.drop("pod")
        # A pass from within a call of its own thread would wait for ever; so it does nothing.
        desk.clock.advance(3.0)
        desk.reconciler.reconcile()
        seen.append(desk.domain.views[-1].running)
        assert cancel.is_set()
        assert cancel.wait()
        cancel.on_cancel(lambda: heard.append("late"))
        assert heard == ["early", "late"]
        raise CancelledError

    desk.domain.act = pull
    desk.desired.put("pod", "image")
    desk.turn()
    ((running,),) = seen
    assert (running.verb, running.detail, running.since_s, running.began_s) == ("pull", "image", 0.0, 0.0)
    (outcome,) = [one for _, one in desk.observer.ends]
    assert outcome == Cancelled(asked=True, began_s=0.0, ended_s=3.0)
    assert desk.actual.get("pod") is None
    assert not desk.reconciler.has_work


def test_what_no_worker_took_up_is_cancelled_at_once() -> None:
    """It never begins, and its outcome says that nothing happened."""
    desk = Desk(pulling)
    desk.desired.put("pod", "image")
    desk.reconciler.run_until_quiet()
    desk.desired.drop("pod")
    summary = desk.turn()
    assert summary.cancelled == 1
    assert desk.observer.ends[0][1] == Cancelled(ended_s=0.0)
    assert len(desk.executor) == 0
    assert desk.actual.get("pod") is None


def test_a_plan_may_stop_one_scope_alone() -> None:
    """Others of the key go on."""

    def both(view: WordView) -> Plan[str, str]:
        steps = [Step(scope=(view.key, one), verb=one, detail=one) for one in "ab"]
        return Plan(steps=steps) if view.want == "1" else Plan(cancel=[("pod", "a")])

    desk = Desk(both)
    desk.desired.put("pod", "1")
    desk.reconciler.run_until_quiet()
    desk.desired.put("pod", "2")
    desk.reconciler.run_until_quiet()
    assert [one.verb for one in desk.reconciler.running()] == ["b"]


def test_an_intent_is_the_record_before_its_step_starts() -> None:
    """`Plan.have` is written first; None drops the record, KEEP leaves it."""

    def intending(view: WordView) -> Plan[str, str]:
        if view.have is None:
            return Plan(have="starting", steps=[Step(scope=("s",), verb="start", detail="up")])
        return Plan(have=KEEP if view.want != "gone" else None)

    desk = Desk(intending)
    seen: list[str | None] = []

    def act(step: WordStep, _cancel: Cancel) -> str:
        seen.append(desk.actual.get("pod"))
        return step.detail

    desk.domain.act = act
    desk.desired.put("pod", "1")
    desk.turn()
    assert seen == ["starting"]
    assert desk.actual.get("pod") == "up"
    desk.domain.rule = lambda view: Plan(have=None if view.have else KEEP)
    desk.desired.put("pod", "gone")
    desk.turn()
    assert desk.actual.get("pod") is None


def test_an_intent_that_was_overtaken_starts_nothing() -> None:
    """Somebody wrote the record between the plan and the write: it is planned anew."""
    desk = Desk(copy)

    def hasty(view: WordView) -> Plan[str, str]:
        if view.have == "seen":
            return Plan()
        desk.actual.put("pod", "seen", by="somebody else")
        return Plan(have="mine", steps=[Step(scope=("s",), verb="start", detail="up")])

    desk.domain.rule = hasty
    desk.desired.put("pod", "1")
    assert desk.turn().started == 0
    assert desk.actual.get("pod") == "seen"


def test_a_failure_tells_what_is_known_and_when_to_try_again() -> None:
    """`Failed(known, again_after_s)`: the record takes it, and the domain's own wait is kept."""
    desk = Desk(lambda view: copy(view) if view.have != "all" else Plan())
    answers: list[str | Failed[str]] = [
        "all",
        Failed(OSError("four"), known="three of four", again_after_s=60.0),
    ]
    desk.domain.act = lambda _step, _cancel: answers.pop()
    desk.desired.put("pod", "all")
    desk.turn()
    assert desk.actual.get("pod") == "three of four"
    assert desk.reconciler.failures("pod")[0].due_s == 60.0
    desk.clock.advance(59.9)
    assert desk.turn().started == 0
    desk.clock.advance(0.1)
    desk.turn()
    assert desk.actual.get("pod") == "all"


def test_a_change_elsewhere_wakes_the_keys_that_looked_at_it() -> None:
    """Ready when its mounts are: no wait, no poll; what nobody looked at wakes nobody."""
    mounts: World[tuple[str, int], str] = World("mounts")
    near: Near[str, tuple[str, int], str] = Near(mounts, lambda pod: [(pod, 1), (pod, 2)])

    def ready(view: WordView) -> Plan[str, str]:
        if len(view.of(near)) < 2 or view.want == view.have:
            return Plan()
        return Plan(steps=[Step(scope=(view.key,), verb="start", detail=view.want or "")])

    desk = Desk(ready, near=[near])
    for pod in "ab":
        desk.desired.put(pod, "up")
    assert desk.turn().planned == 2
    mounts.put(("a", 1), "here")
    assert desk.turn().planned == 1
    mounts.put(("elsewhere", 1), "here")
    assert desk.turn().planned == 0
    mounts.put(("a", 2), "here")
    desk.turn()
    assert desk.actual.get("a") == "up"
    assert desk.domain.views[-1].of(near) == {("a", 1): "here", ("a", 2): "here"}
    desk.desired.drop("a")
    desk.actual.drop("a")
    desk.turn()
    mounts.drop(("a", 1))
    assert desk.turn().planned == 0
    other: Near[str, str, str] = Near(desk.desired, lambda pod: [pod])
    with pytest.raises(LookupError, match="desired is no dependency here"):
        desk.domain.views[-1].of(other)
    desk.reconciler.stop()


def remembering(journal: MemoryJournal[str]) -> Remember[str, str, str]:
    """One row a key."""

    def rows(key: str, have: str | None) -> Mapping[str, str | None]:
        if have == "unwritable":
            raise ValueError(have)
        return {key: have}

    return Remember(journal=journal, rows=rows)


def test_an_intent_is_remembered_before_its_step_and_a_result_before_anybody_hears() -> None:
    """Order of one life: intent committed, step performed, result committed, watcher woken."""
    journal: MemoryJournal[str] = MemoryJournal()
    story: list[str] = []

    def intending(view: WordView) -> Plan[str, str]:
        if view.have is None:
            return Plan(have="intended", steps=[Step(scope=("s",), verb="start", detail="done")])
        return Plan()

    desk = Desk(intending, remember=remembering(journal))
    desk.actual.watch(
        lambda: story.append(f"told {desk.actual.get('pod')}, {journal.rows['pod']} remembered")
    )

    def act(step: WordStep, _cancel: Cancel) -> str:
        story.append(f"performed, {journal.rows['pod']} remembered")
        return step.detail

    desk.domain.act = act
    desk.desired.put("pod", "1")
    desk.turn()
    assert story == [
        "told intended, intended remembered",
        "performed, intended remembered",
        "told done, done remembered",
    ]
    assert journal.commits == [{"pod": "intended"}, {"pod": "done"}]


def test_a_remembered_world_has_one_writer() -> None:
    """What others wrote would not be durable, so they are refused, with the way out."""
    desk = Desk(copy, remember=remembering(MemoryJournal()))
    with pytest.raises(ValueError, match="write what was seen into a world of its own"):
        desk.actual.put("a", "1")
    with pytest.raises(ValueError, match="one engine writes a world"):
        desk.actual.remembered_by("another")


def test_a_journal_that_fails_starts_nothing_and_loses_nothing() -> None:
    """Intents are planned anew when it works again, also those of keys that came meanwhile."""
    journal: MemoryJournal[str] = MemoryJournal()

    def intending(view: WordView) -> Plan[str, str]:
        if view.have is None:
            return Plan(have="intended", steps=[Step(scope=(view.key,), verb="start", detail="done")])
        return Plan()

    desk = Desk(intending, remember=remembering(journal), back_off=BackOff(initial_s=8.0))

    def full() -> None:
        raise OSError("no space left on device")

    journal.fault = full
    desk.desired.put("early", "1")
    assert (desk.turn().started, desk.turn().held_off) == (0, 1)
    assert desk.reconciler.failures("early")[0].verb == "remember"
    desk.clock.advance(4.0)
    desk.desired.put("late", "1")
    # The journal is left alone for its back-off: one key more does not ask it again.
    assert desk.turn().started == 0
    journal.fault = lambda: None
    desk.clock.advance(4.0)
    desk.turn()
    assert journal.rows == {"early": "done", "late": "done"}
    assert desk.reconciler.failures("early") == desk.reconciler.failures("late") == ()


def test_a_result_waits_for_the_journal_and_is_told_afterwards() -> None:
    """The step is not done twice; the record appears once it is remembered, and no failure stays listed."""
    journal: MemoryJournal[str] = MemoryJournal()
    desk, tries = Desk(copy, remember=remembering(journal)), list[int]()

    def full() -> None:
        tries.append(1)
        raise OSError("no space left on device")

    journal.fault = full
    desk.desired.put("pod", "1")
    assert desk.turn().done == 1
    assert desk.actual.get("pod") is None
    assert desk.reconciler.failures("pod")
    # A new wish in between sees the result that is not yet remembered.
    desk.desired.put("pod", "2")
    desk.turn()
    assert desk.domain.views[-1].have == "1"
    journal.fault = lambda: None
    run_to_rest(desk.reconciler, desk.executor, desk.clock)
    assert journal.rows == {"pod": "2"}
    assert desk.actual.get("pod") == "2"
    assert desk.reconciler.failures("pod") == ()
    assert len(tries) == 1


def test_a_row_that_cannot_be_made_costs_its_key_alone() -> None:
    """`rows` raised: that key waits, the others are remembered."""
    journal: MemoryJournal[str] = MemoryJournal()
    desk = Desk(copy, remember=remembering(journal))
    desk.desired.put("bad", "unwritable")
    desk.desired.put("good", "1")
    desk.turn()
    assert journal.rows == {"good": "1"}
    assert isinstance(desk.reconciler.failures("bad")[0].error, ValueError)
    desk.domain.rule = lambda view: Plan(have=view.want)
    desk.desired.put("worse", "unwritable")
    desk.desired.put("better", "1")
    desk.turn()
    assert journal.rows == {"good": "1", "better": "1"}


def test_an_engine_that_ends_asks_its_journal_once_more() -> None:
    """What waits is written at the end, though the journal was being left alone."""
    journal: MemoryJournal[str] = MemoryJournal()
    desk = Desk(copy, remember=remembering(journal))

    def full() -> None:
        raise OSError("no space left on device")

    journal.fault = full
    desk.desired.put("pod", "1")
    desk.turn()
    journal.fault = lambda: None
    assert desk.reconciler.stop() == ()
    assert journal.rows == {"pod": "1"}


def test_a_group_commits_once_and_its_worlds_wake_each_other() -> None:
    """Two reconcilers, one journal: rows of a pass are one commit; what one writes the other looks at."""
    journal: MemoryJournal[str] = MemoryJournal()
    clock, executor = VirtualClock(), InlineExecutor()
    wishes: World[str, str] = World("wishes")
    grants, lives = World[str, str]("grants"), World[str, str]("lives")
    near: Near[str, str, str] = Near(grants, lambda pod: [pod])

    def live(view: WordView) -> Plan[str, str]:
        granted = view.of(near).get(view.key)
        return Plan(have=f"{view.want} on {granted}" if granted else "waits")

    def remember(prefix: str) -> Remember[str, str, str]:
        return Remember(journal=journal, rows=lambda key, have: {f"{prefix}.{key}": have})

    first = Reconciler(
        Words(lambda view: Plan(have=f"cpu for {view.want}")),
        desired=wishes,
        actual=grants,
        executor=executor,
        clock=clock,
        remember=remember("grant"),
        resync_s=None,
    )
    second = Reconciler(
        Words(live),
        desired=wishes,
        actual=lives,
        executor=executor,
        clock=clock,
        near=[near],
        remember=remember("life"),
        resync_s=50.0,
    )
    group = Group(Group(first), second)
    heard: list[str] = []
    group.add_listener(lambda: heard.append("work"))
    assert group.reconcile().is_idle
    assert group.seconds_to_next() == 50.0
    wishes.put("pod", "web")
    assert heard == ["work"]
    total = group.run_until_quiet()
    assert journal.commits[0] == {"grant.pod": "cpu for web", "life.pod": "waits"}
    assert journal.commits[1] == {"life.pod": "web on cpu for web"}
    assert len(journal.commits) == 2
    assert lives.get("pod") == "web on cpu for web"
    assert total.next_due_s == 50.0
    assert group.running() == ()
    assert group.stop() == ()


def test_a_group_in_a_group_is_heard_every_time() -> None:
    """Each change of an inner group's member wakes whoever drives the outer one, not the first alone."""
    desk = Desk(copy)
    group = Group(Group(desk.reconciler))
    heard: list[str] = []
    group.add_listener(lambda: heard.append("work"))
    for number in range(3):
        group.run_until_quiet()
        heard.clear()
        desk.desired.put("a", str(number))
        assert heard == ["work"]


def test_a_group_that_is_interrupted_forgets_no_key() -> None:
    """Ctrl-C in the second plan gives up the first one's pass too; both are made again."""
    journal: MemoryJournal[str] = MemoryJournal()
    one, other = Desk(lambda view: Plan(have=view.want)), Desk(lambda view: Plan(have=view.want))
    group = Group(one.reconciler, other.reconciler)
    rule, interrupts = other.domain.rule, [1]

    def interrupted(view: WordView) -> Plan[str, str]:
        if interrupts:
            interrupts.pop()
            raise KeyboardInterrupt
        return rule(view)

    other.domain.rule = interrupted
    one.desired.put("a", "1")
    other.desired.put("b", "2")
    with pytest.raises(KeyboardInterrupt):
        group.run_until_quiet()
    group.run_until_quiet()
    assert (one.actual.get("a"), other.actual.get("b")) == ("1", "2")
    with pytest.raises(RuntimeError, match="ended that had not begun"):
        one.reconciler.end_pass(None)
    assert journal.rows == {}


def test_ctrl_c_in_a_journal_forgets_nothing() -> None:
    """The pass is given up; the next one commits."""
    journal: MemoryJournal[str] = MemoryJournal()
    desk, interrupts = Desk(copy, remember=remembering(journal)), [1]

    def interrupt() -> None:
        if interrupts:
            interrupts.pop()
            raise KeyboardInterrupt

    journal.fault = interrupt
    desk.desired.put("pod", "1")
    with pytest.raises(KeyboardInterrupt):
        desk.turn()
    desk.turn()
    assert journal.rows == {"pod": "1"}


def test_a_cancellation_is_told_once_and_keeps_the_time_of_who_waits() -> None:
    """Asked twice, heard once; a wait ends by itself, or when somebody asks."""
    cancel, heard = Cancellation(threading.Lock()), list[int]()
    cancel.on_cancel(lambda: heard.append(1))
    began_s = time.monotonic()
    assert not cancel.wait(0.01)
    assert time.monotonic() - began_s >= 0.009
    cancel.set()
    cancel.set()
    assert heard == [1]
    assert cancel.wait(0.0)


def test_a_listing_takes_over_what_is_older_than_itself() -> None:
    """`replace(since=)`: what differs is dirty; what was written or dropped since the listing began stays."""
    world: World[str, str] = World("seen")
    for key in "abcd":
        world.put(key, "old")
    dirty = world.watch()
    dirty.take()
    since = world.generation
    world.put("b", "newer")
    world.drop("d")
    assert world.replace({"a": "old", "b": "old", "d": "old", "e": "new"}, since=since) == ("e", "c")
    assert {key: record.value for key, record in world.snapshot().items()} == {
        "a": "old",
        "b": "newer",
        "e": "new",
    }
    assert set(dirty.take()) == {"b", "c", "d", "e"}
    assert world.replace({"a": "old", "b": "newer", "e": "new"}) == ()
    assert not dirty.take()


def test_a_listing_brings_back_nothing_that_was_dropped_long_ago() -> None:
    """Beyond the newest drops that are kept, an absent key counts as dropped just now."""
    world: World[int, str] = World("seen")
    since = world.generation
    for key in range(5000):
        world.put(key, "x")
        world.drop(key)
    assert world.replace({0: "x"}, since=since) == ()
    assert world.replace({0: "x"}, since=world.generation) == (0,)


def test_a_moment_outlives_its_boot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """This machine's boot id where there is one; without, each process counts as a boot of its own."""
    now = Moment.now()
    assert now.monotonic_of(now.at(now.monotonic_s + 5.0)) == now.monotonic_s + 5.0
    boot = tmp_path / "boot_id"
    boot.write_text("one\n")
    monkeypatch.setattr("nodealloc.dsw_asw._moments._BOOT_ID", boot)
    _boot_id.cache_clear()
    assert Moment.now().boot_id == "one"
    boot.unlink()
    assert Moment.now().boot_id == "one"  # no process outlives its boot
    _boot_id.cache_clear()
    assert Moment.now().boot_id.startswith("unknown since ")
    _boot_id.cache_clear()
