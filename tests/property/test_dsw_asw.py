"""Laws of the engine: worlds against a dict, scopes against their definition, passes against chaos."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from nodealloc.dsw_asw import (
    BackOff,
    Cancel,
    Done,
    InlineExecutor,
    Outcome,
    Plan,
    Reconciler,
    Step,
    StepScope,
    Uncertain,
    UncertainError,
    View,
    World,
)
from nodealloc.dsw_asw._scopes import Scopes
from nodealloc.testing.dsw_asw import ManualExecutor, VirtualClock, run_to_rest
from nodealloc.testing.strategies.dsw_asw import back_offs, scopes


def becomes(value: int | None) -> Callable[[int | None], int | None]:
    """Whatever it was."""
    return lambda _: value


keys = st.integers(0, 5)
values = st.one_of(st.none(), st.integers(0, 3))


@given(st.lists(st.tuples(keys, values, st.sampled_from(["look", "take", "write"]))))
def test_a_world_is_a_dict_that_remembers_changes(calls: list[tuple[int, int | None, str]]) -> None:
    """Content, dirty set, snapshots and generations agree with a plain model."""
    world: World[int, int] = World("w")
    model: dict[int, int] = {}
    watch = world.watch()
    dirty: set[int] = set()
    seen: list[tuple[dict[int, int], object]] = []
    newest = 0
    for key, value, call in calls:
        if call == "look":
            seen.append((dict(model), world.snapshot()))
        elif call == "take":
            assert set(watch.take()) == dirty
            dirty.clear()
        elif model.get(key) != value:
            world.alter(key, becomes(value))
            dirty.add(key)
            if value is None:
                del model[key]
            else:
                model[key] = value
                record = world.record(key)
                assert record is not None
                assert record.generation > newest
            assert world.generation > newest
            newest = world.generation
        else:
            world.alter(key, becomes(value))
            assert world.generation == newest
    seen.append((dict(model), world.snapshot()))
    for expected, snapshot in seen:
        assert {key: record.value for key, record in snapshot.items()} == expected  # type: ignore[attr-defined]
        assert len(snapshot) == len(expected)  # type: ignore[arg-type]
    assert set(watch.take()) == dirty


@given(st.lists(st.tuples(st.booleans(), scopes())))
def test_no_two_open_scopes_touch(calls: list[tuple[bool, StepScope]]) -> None:
    """A scope is granted exactly when it begins with no held one and no held one begins with it."""
    held: set[StepScope] = set()
    lock = Scopes()
    for take, scope in calls:
        if take:
            touches = any(scope[: len(one)] == one or one[: len(scope)] == scope for one in held)
            assert lock.is_free(scope) is not touches
            assert lock.take(scope) is not touches
            if not touches:
                held.add(scope)
        else:
            lock.release(scope)
            held.discard(scope)
        assert len(lock) == len(held)


@given(back_offs(), st.integers(1, 10**9))
def test_waits_grow_and_end(back_off: BackOff, tries: int) -> None:
    """No wait is shorter than the one before, none is longer than the longest."""
    assert back_off.after(tries) <= back_off.after(tries + 1) <= back_off.max_s


Detail = tuple[str, int | None, int]


class Chaos(RuleBasedStateMachine):
    """Keys with two parts each; the whole key is prepared before its parts are set."""

    def __init__(self) -> None:
        super().__init__()
        self.desired: World[str, tuple[int, ...]] = World("desired")
        self.actual: World[str, tuple[int, ...]] = World("actual")
        self.machine: dict[str, tuple[int, ...]] = {}
        self.clock = VirtualClock()
        self.executor = ManualExecutor()
        self.faults: list[type[Exception]] = []
        self.touched: list[StepScope] = []
        self.overlaps: list[tuple[StepScope, StepScope]] = []
        self.reconciler = Reconciler(
            self,
            desired=self.desired,
            actual=self.actual,
            executor=self.executor,
            clock=self.clock,
            resync_s=None,
        )

    def plan(
        self, view: View[str, tuple[int, ...], tuple[int, ...], Detail], /
    ) -> Plan[tuple[int, ...], Detail]:
        """Make, set each part that differs, remove."""
        key, want, have = view.key, view.want, view.have
        if want is None:
            return Plan(steps=[Step(scope=(key,), verb="remove", detail=(key, None, 0), deadline_s=10.0)])
        if not have:
            return Plan(
                steps=[Step(scope=(key,), verb="make", detail=(key, None, len(want)), deadline_s=10.0)]
            )
        return Plan(
            steps=[
                Step(scope=(key, at), verb="set", detail=(key, at, part), deadline_s=10.0)
                for at, part in enumerate(want)
                if have[at] != part
            ]
        )

    def perform(self, step: Step[Detail], _cancel: Cancel, /) -> None:
        """Do it, unless a fault is laid; a fault may strike after the call."""
        key, at, part = step.detail
        fault = self.faults.pop() if self.faults else None
        if fault is OSError:
            raise OSError(step.verb)
        if step.verb == "remove":
            self.machine.pop(key, None)
        elif at is None:
            self.machine[key] = (-1,) * part
        elif key in self.machine:
            parts = list(self.machine[key])
            parts[at] = part
            self.machine[key] = tuple(parts)
        if fault is not None:
            raise fault(step.verb)

    def settled(
        self, have: tuple[int, ...] | None, step: Step[Detail], outcome: Outcome[None], /
    ) -> tuple[int, ...] | None:
        """Record it; what is uncertain is made anew."""
        _, at, part = step.detail
        match outcome:
            case Uncertain():
                # Empty: perhaps there, perhaps not, so it is made or removed once more.
                return (-1,) * len(have) if have and at is not None else ()
            case Done():
                if step.verb == "remove":
                    return None
                return (-1,) * part if at is None else have and (*have[:at], part, *have[at + 1 :])
            case _:
                return have

    @rule(
        key=st.sampled_from("xyz"),
        parts=st.one_of(st.none(), st.tuples(st.integers(0, 2), st.integers(0, 2))),
    )
    def wish(self, key: str, parts: tuple[int, ...] | None) -> None:
        """Somebody changes their mind."""
        self.desired.alter(key, lambda _: parts)

    @rule(kind=st.sampled_from([OSError, UncertainError]))
    def lay_fault(self, kind: type[Exception]) -> None:
        """A later call fails."""
        self.faults.append(kind)

    @rule(at=st.integers(0, 9))
    def run_one(self, at: int) -> None:
        """An operation runs, in any order."""
        self.executor.run(at)

    @rule()
    def make_a_pass(self) -> None:
        """One pass; no two running scopes touch."""
        self.reconciler.reconcile()
        running = [one.scope for one in self.reconciler.running()]
        for at, one in enumerate(running):
            for other in running[at + 1 :]:
                depth = min(len(one), len(other))
                if one[:depth] == other[:depth]:
                    self.overlaps.append((one, other))

    @rule(seconds=st.sampled_from([0.1, 20.0, 200.0]))
    def let_time_pass(self, seconds: float) -> None:
        """Back-off ends, deadlines pass."""
        self.clock.advance(seconds)

    @invariant()
    def one_at_a_time(self) -> None:
        """Within a scope and what is around it."""
        assert self.overlaps == []

    def teardown(self) -> None:
        """It converges, and a second look finds nothing."""
        self.faults.clear()
        run_to_rest(self.reconciler, self.executor, self.clock)
        wanted = {key: record.value for key, record in self.desired.snapshot().items()}
        assert {key: record.value for key, record in self.actual.snapshot().items()} == wanted
        assert self.machine == wanted
        assert self.reconciler.reconcile().is_idle
        assert self.reconciler.close() == ()


TestChaos = Chaos.TestCase
TestChaos.settings = settings(stateful_step_count=30)


class Twins:
    """Names of one key, each a subject of its own; they share a scope and a verb; each comes in the end."""

    def __init__(self, clock: VirtualClock, fails: tuple[int, ...]) -> None:
        self.clock = clock
        self.fails = fails
        self.tried: dict[int, list[float]] = {name: [] for name in range(len(fails))}

    def plan(self, view: View[str, int, frozenset[int], int], /) -> Plan[frozenset[int], int]:
        """Fetch what is not there."""
        lacking = [name for name in self.tried if name not in (view.have or ())]
        return Plan(
            steps=[Step(scope=("shared",), verb="fetch", detail=name, subject=name) for name in lacking]
        )

    def perform(self, step: Step[int], _cancel: Cancel, /) -> None:
        """Fail as often as it is to."""
        tried = self.tried[step.detail]
        tried.append(self.clock.monotonic_s())
        if len(tried) <= self.fails[step.detail]:
            raise OSError("not yet")

    def settled(
        self, have: frozenset[int] | None, step: Step[int], outcome: Outcome[None], /
    ) -> frozenset[int] | None:
        """What came is there."""
        return (have or frozenset()) | {step.detail} if isinstance(outcome, Done) else have


@given(st.lists(st.integers(0, 4), min_size=1, max_size=5).map(tuple))
def test_what_fails_for_one_subject_is_no_other_ones_wait(fails: tuple[int, ...]) -> None:
    """Each is tried as often as if it were alone, and after each failure waits its own back-off."""
    clock = VirtualClock()
    began_s = clock.monotonic_s()
    twins = Twins(clock, fails)
    wanted: World[str, int] = World("wanted")
    policy = BackOff(initial_s=1.0)
    engine = Reconciler(
        twins,
        desired=wanted,
        actual=World[str, frozenset[int]]("there"),
        executor=InlineExecutor(),
        clock=clock,
        back_off=policy,
        resync_s=None,
    )
    wanted.put("key", 1)
    engine.run_until_quiet()
    while (wait_s := engine.seconds_to_next()) is not None:
        clock.advance(wait_s)
        engine.run_until_quiet()
    for name, times in enumerate(fails):
        waits = [policy.after(tries) for tries in range(1, times + 1)]
        assert [at_s - began_s for at_s in twins.tried[name]] == [sum(waits[:at]) for at in range(times + 1)]
    assert engine.failures("key") == ()
