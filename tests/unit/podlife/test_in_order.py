"""Pods that come are let in one after the other, in the order in which they came."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from typing import ParamSpec, TypeVar

import pytest

from nodealloc.dsw_asw import Cancel, Group, Step
from nodealloc.dsw_asw._operations import Operation
from nodealloc.errors import ConfigurationError
from nodealloc.podfacts import LifeState
from nodealloc.podlife import KUBELET, PodLives, PodRecord, Preparation, Rules
from nodealloc.podlife._details import MakeReady
from nodealloc.podlife._in_order import InOrder
from nodealloc.podspec import Pod
from nodealloc.runtime import RuntimeWatch
from nodealloc.testing.podlife import PlainConfiguration
from nodealloc.testing.runtime import FakeContainerRuntime
from nodealloc.verdicts import Admitted, NotYet
from tests.unit.podlife_node import pod

COUNT = 6
P = ParamSpec("P")
T = TypeVar("T")


class Door:
    """A `Preparer` that notes who asks; whom it holds up hang until they are let go."""

    def __init__(self, *, hangs: frozenset[str] = frozenset(), waits: frozenset[str] = frozenset()) -> None:
        self.asked: list[str] = []
        self.came = threading.Condition()
        self.opened = threading.Event()
        self.hangs, self.waits = hangs, waits

    def make_ready(self, one: Pod, _cancel: Cancel, /) -> Admitted | NotYet:
        """Note it."""
        with self.came:
            self.asked.append(one.uid)
            self.came.notify_all()
        if one.uid in self.hangs:
            self.opened.wait(10.0)
        if one.uid in self.waits:
            return NotYet(blocker="room", message="none", after_s=60.0)
        return Admitted()

    def take_back(self, _pod: Pod, _cancel: Cancel, /) -> None:
        """Nothing is held."""

    def heard(self, count: int, *, within_s: float = 5.0) -> list[str]:
        """Who asked, once so many have."""
        with self.came:
            assert self.came.wait_for(lambda: len(self.asked) >= count, within_s), self.asked
            return list(self.asked)


@pytest.fixture(autouse=True)
def often() -> Iterator[None]:
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def came_in(
    door: Door,
    uids: list[str],
    *more: Preparation,
    starts_last: bool = False,
    remembered: Mapping[str, PodRecord] | None = None,
) -> Group:
    """Pods that come at once, while the agent runs or before; it has threads of its own."""
    runtime = FakeContainerRuntime()
    watch = RuntimeWatch(runtime)
    first = Preparation(name="admission", why="pods are let in", by=door, in_order=True)
    lives = PodLives(
        runtime,
        watch=watch,
        configuring=PlainConfiguration(),
        preparations=[first, *more],
        remembered=remembered,
        rules=Rules() if remembered is None else KUBELET,
    )
    group = Group(watch, lives)
    if not starts_last:
        group.start()
    for uid in uids:
        lives.put(pod(uid))
    if starts_last:
        group.start()
    return group


@pytest.mark.parametrize("starts_last", [False, True])
def test_pods_that_come_at_once_are_asked_for_in_their_order(starts_last: bool) -> None:
    """Of two that conflict the first comes in, as with a kubelet, whichever thread is the faster."""
    uids = [f"u{number}" for number in range(COUNT)]
    for _ in range(30):
        door = Door()
        group = came_in(door, uids, starts_last=starts_last)
        try:
            assert door.heard(COUNT) == uids
        finally:
            group.stop(1.0)


def test_pods_that_were_here_before_are_asked_for_again_in_their_order() -> None:
    """As they were when they came: of two that do not fit together any more the first stays."""
    uids = [f"u{number}" for number in range(COUNT)]
    was = {uid: PodRecord(pod=pod(uid), life=LifeState.SYNCING, made=("admission",)) for uid in uids}
    for _ in range(30):
        door = Door()
        group = came_in(door, uids, remembered=was)
        try:
            assert door.heard(COUNT) == uids
        finally:
            group.stop(1.0)


def test_who_hangs_or_waits_holds_up_others_for_a_moment_only() -> None:
    """One that has to wait is out of the line; one that does not answer is waited for once, by all."""
    uids = [f"u{number:02}" for number in range(24)]
    door = Door(hangs=frozenset({"u02"}), waits=frozenset({"u00", "u01"}))
    began_s = time.monotonic()
    group = came_in(door, uids)
    try:
        with door.came:
            assert door.came.wait_for(lambda: set(door.asked) == set(uids), 10.0)
        assert time.monotonic() - began_s < 4.0
        # Who waits may be asked again before the next one is asked at all.
        assert list(dict.fromkeys(door.asked))[:3] == uids[:3]
    finally:
        door.opened.set()
        group.stop(1.0)


def test_parts_behind_the_ordered_one_do_not_wait_for_each_other() -> None:
    """A volume that takes long keeps nobody from coming in."""
    door, volumes = Door(), Door(hangs=frozenset({"u0"}))
    uids = [f"u{number}" for number in range(COUNT)]
    group = came_in(door, uids, Preparation(name="volumes", why="they are mounted", by=volumes))
    try:
        assert door.heard(COUNT, within_s=0.9) == uids
        assert sorted(volumes.heard(COUNT, within_s=0.9)) == uids
    finally:
        volumes.opened.set()
        group.stop(1.0)


def test_a_call_that_nobody_takes_up_leaves_the_line() -> None:
    """Whoever lost its thread, or was taken back before it had one, is waited for by nobody."""
    below = Refusing()
    line = InOrder(below, part="admission", patience_s=60.0)
    lost, came = operation("lost"), operation("came")
    with pytest.raises(RuntimeError, match="no threads"):
        line.submit(print, operation("refused"))
    future = line.submit(print, lost)
    line.submit(print, came)
    assert future.cancel()
    with line.turn("came"):
        pass
    with line.turn("lost"):
        pass


def test_who_was_expected_and_does_not_come_is_waited_for_by_nobody() -> None:
    """Its manifest went while no agent ran; one that comes later all the same is the last."""
    line = InOrder(Refusing(count=1), part="admission", patience_s=60.0)
    line.expect(["gone", "first", "second"])
    line.submit(print, again("second"))
    line.submit(print, again("first"))
    line.expect_no_more(["gone"])
    asked: list[str] = []

    def ask(uid: str) -> None:
        with line.turn(uid):
            asked.append(uid)

    second = threading.Thread(target=ask, args=("second",))
    second.start()
    ask("first")
    second.join(10.0)
    line.submit(print, again("gone"))
    ask("gone")
    assert asked == ["first", "second", "gone"]


def again(uid: str) -> Operation[str, MakeReady, None]:
    """A pod that was here before, on its way to admission."""
    detail = MakeReady(("admission",), 0, pod(uid))
    step = Step(scope=("pod", uid, "parts"), verb="make ready", detail=detail)
    return Operation(uid, step, 0, None, threading.Lock())


class Refusing:
    """An executor that has no thread for the first call, and takes up none of the others."""

    def __init__(self, *, count: int = 0) -> None:
        self.count = count

    def submit(self, call: Callable[P, T], /, *_args: P.args, **_kwargs: P.kwargs) -> Future[T]:
        """Refuse it, or keep it."""
        self.count += 1
        if self.count == 1:
            raise RuntimeError("no threads")
        return Future[T]()


def operation(uid: str) -> Operation[str, MakeReady, None]:
    """A pod that comes, on its way to admission."""
    parts = ("admission",)
    detail = MakeReady(parts, 0, pod(uid), parts)
    step = Step(scope=("pod", uid, "parts"), verb="make ready", detail=detail)
    return Operation(uid, step, 0, None, threading.Lock())


def test_one_part_has_an_order() -> None:
    """Two lines of the same pods would wait for each other."""
    parts = [Preparation(name=one, why="", by=Door(), in_order=True) for one in ("one", "two")]
    runtime = FakeContainerRuntime()
    with pytest.raises(ConfigurationError, match="one, two are all `in_order`"):
        PodLives(runtime, watch=RuntimeWatch(runtime), configuring=PlainConfiguration(), preparations=parts)
