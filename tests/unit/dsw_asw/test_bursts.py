"""Very many keys at once: larger batches, no rest between passes, and nobody behind thousands."""

from __future__ import annotations

import threading
import time

import pytest

from nodealloc.dsw_asw import Cancel, Group, Outcome, Plan, Reconciler, Step, ThreadExecutor, View, World
from nodealloc.errors import ConfigurationError
from nodealloc.testing.dsw_asw import ManualExecutor
from tests.unit.dsw_asw_sizes import Bench


class Thrice:
    """Three steps for each key, one after the other; notes which keys were begun."""

    def __init__(self) -> None:
        self.begun: list[int] = []
        self.over: list[int] = []

    def plan(self, view: View[int, int, int, int]) -> Plan[int, int]:
        """The next one."""
        have = view.have or 0
        if have == 3 or view.running:
            return Plan()
        return Plan(steps=[Step(scope=(str(view.key),), verb="do", detail=have + 1)])

    def perform(self, step: Step[int], cancel: Cancel) -> int:
        """Note the first and the last."""
        if step.detail == 1:
            self.begun.append(int(str(step.scope[0])))
        if step.detail == 3:
            self.over.append(int(str(step.scope[0])))
        return step.detail

    def settled(self, have: int | None, step: Step[int], outcome: Outcome[int]) -> int | None:
        """So many."""
        return step.detail


class Burst:
    """An engine for which many keys are wanted at once."""

    def __init__(self, *, batch: int, burst: int | None, count: int = 300) -> None:
        self.wanted: World[int, int] = World("wanted")
        self.domain, self.executor = Thrice(), ManualExecutor()
        self.planned: list[int] = []
        self.left: list[int] = []
        self.engine: Reconciler[int, int, int, int, int] = Reconciler(
            self.domain,
            desired=self.wanted,
            actual=World("had"),
            executor=self.executor,
            resync_s=None,
            batch=batch,
            burst=burst,
        )
        for key in range(count):
            self.wanted.put(key, 1)

    def turn(self) -> None:
        """A pass, and the end of what it began."""
        done = self.engine.reconcile()
        assert done.planned <= 16
        self.planned.append(done.planned)
        self.left.append(done.left)
        self.executor.run_all()

    def rest(self) -> None:
        """Until nothing is left to do."""
        while self.engine.has_work or self.executor.run_all():
            self.turn()


def test_a_burst_is_planned_in_larger_batches_while_it_lasts() -> None:
    """An eighth of what is due, at most as many as were said; its end again in small ones."""
    one = Burst(batch=4, burst=16)
    one.rest()
    assert one.planned[0] == 16
    assert one.left[0] == 300 - 16
    assert max(one.planned) == 16
    assert max(one.planned[-3:]) <= 4
    assert one.left[-1] == 0
    assert sorted(one.domain.over) == list(range(300))
    other = Burst(batch=4, burst=None)
    other.rest()
    assert max(other.planned) == 4
    assert len(one.planned) * 2 < len(other.planned)


def test_more_are_begun_only_as_fast_as_those_under_way_end() -> None:
    """What has begun is planned by the pass that settles it, not by a later one."""
    one = Burst(batch=4, burst=16)
    most = 0
    while one.engine.has_work or one.executor.run_all():
        one.turn()
        most = max(most, len(one.domain.begun) - len(one.domain.over))
    assert most <= 2 * 16


def test_who_comes_last_does_not_wait_behind_hundreds() -> None:
    """Behind so long a line one that came last is begun at once; all others keep their order."""
    one = Burst(batch=2, burst=4)
    for _ in range(5):
        one.turn()
    one.wanted.put(1000, 1)
    before = len(one.domain.begun)
    for _ in range(10):
        one.turn()
    assert 1000 in one.domain.begun[before:]
    assert 1000 in one.domain.over
    one.rest()
    assert sorted(one.domain.over) == [*range(300), 1000]
    assert [key for key in one.domain.begun if key != 1000] == list(range(300))


def test_who_comes_last_of_many_that_come_later_does_not_wait_behind_those() -> None:
    """As one more pod that a source has read together with the rest of a flood."""
    one = Burst(batch=2, burst=4)
    one.turn()
    for key in range(1000, 1200):
        one.wanted.put(key, 1)
    for _ in range(10):
        one.turn()
    assert 1199 in one.domain.over
    first = [key for key in one.domain.begun if key < 1000]
    assert first == list(range(len(first)))


def test_many_that_come_one_after_the_other_behind_a_line_all_come_in() -> None:
    """Also where a batch has no room for more than those that came last."""
    for batch, burst in ((1, 2), (4, 16), (8, 9)):
        one = Burst(batch=batch, burst=burst)
        for key in range(1000, 1040):
            one.wanted.put(key, 1)
            one.turn()
        one.rest()
        assert sorted(one.domain.over) == [*range(300), *range(1000, 1040)]


def test_who_comes_last_behind_a_few_waits_its_turn() -> None:
    """And so does everybody without a `burst`."""
    for batch, burst in ((4, None), (8, 16)):
        one = Burst(batch=batch, burst=burst, count=100)
        one.wanted.put(1000, 1)
        one.rest()
        assert one.domain.begun == [*range(100), 1000]


def test_there_is_no_rest_between_passes_while_keys_are_left() -> None:
    """What ends is gathered between passes; what is due needs no gathering."""
    hang = threading.Event()
    bench = Bench(ThreadExecutor(), resync_s=None, batch=1)

    def until_told(_key: str) -> None:
        hang.wait(30.0)

    bench.domain.fault = until_told
    for number in range(30):
        bench.desired.put(f"key {number}", 1)
    with Group(bench.reconciler, gather_s=25.0):
        until_s = time.monotonic() + 20.0
        while len(bench.reconciler.running()) < 30 and time.monotonic() < until_s:
            time.sleep(0.005)
        under_way = len(bench.reconciler.running())
        hang.set()
    assert under_way == 30


@pytest.mark.parametrize("burst", [0, 3])
def test_a_burst_below_the_batch_is_refused(burst: int) -> None:
    """It would plan fewer where there are more."""
    with pytest.raises(ConfigurationError, match="burst"):
        Burst(batch=4, burst=burst)
