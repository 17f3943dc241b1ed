"""Sources that answer what they never promised: what was said last stays, and what was wrong is said."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nodealloc.dirwatch import InotifyWatcher
from nodealloc.dsw_asw import Cancel
from nodealloc.errors import ConfigurationError
from nodealloc.podsources import FolderSource, HttpSource, PodSources, Polling, Reading
from nodealloc.podspec import Container, Pod
from nodealloc.runtime import Pace
from nodealloc.testing.dirwatch import FakeWatcher
from nodealloc.testing.dsw_asw import ManualExecutor, VirtualClock

WEB = Pod(uid="u", name="web", containers=(Container(name="app", image="web:1"),))


class Answering:
    """A source that answers anything, or raises it."""

    def __init__(self, answer: object) -> None:
        self.answer = answer

    def read(self, _cancel: Cancel, /) -> Any:
        """It."""
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def read_twice(answer: object) -> tuple[str, list[str]]:
    """What is said of a source, and the pods that are left, after one good answer and then this one."""
    clock, executor, source = VirtualClock(), ManualExecutor(), Answering(Reading(pods=[WEB]))
    sources = PodSources({"api": source}, executor=executor, clock=clock)
    for one in (source.answer, answer):
        source.answer = one
        sources.hurry("api")
        clock.advance(1)
        sources.run_until_quiet()
        executor.run_all()
        sources.run_until_quiet()
    told = sources.answers.get("api")
    assert told is not None
    return told.error, sorted(sources.pods.snapshot())


@pytest.mark.parametrize("answer", [None, [WEB], {}, "web"])
def test_an_answer_that_is_no_reading_is_called_so(answer: object) -> None:
    """Not by what it lacks."""
    said, left = read_twice(answer)
    assert said.startswith("read: expected a Reading, found")
    assert left == ["u"]


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (Pod(uid="", name="a", containers=WEB.containers), "needs a uid and a name"),
        (Pod(uid="v", name="a"), "default/a has no containers; a pod runs at least one"),
        (Pod(uid="v", name="a", containers=WEB.containers * 2), "has containers app twice"),
    ],
)
def test_a_pod_that_nobody_could_run_is_named(bad: Pod, says: str) -> None:
    """It went on to whoever runs pods, who refused it and lost whatever had come with it."""
    said, left = read_twice(Reading(pods=[WEB, bad]))
    assert says in said
    assert left == ["u"]


def test_a_key_that_is_not_there_is_told_as_such() -> None:
    """Its own words are the key alone."""
    assert read_twice(KeyError("items"))[0] == "KeyError: 'items'"


@pytest.mark.parametrize(
    "make",
    [
        lambda: Polling(period_s=math.inf),
        lambda: Polling(gap_s=math.inf),
        lambda: Polling(periods={"file": math.inf}),
        lambda: Pace(period_s=math.inf),
        lambda: Pace(health_s=math.inf),
        lambda: HttpSource("http://127.0.0.1/", deadline_s=math.inf),
    ],
)
def test_a_moment_that_never_comes_is_no_time_to_look_again(make: Callable[[], object]) -> None:
    """It was refused at each plan, whose traceback was all that came of it."""
    with pytest.raises(ConfigurationError, match=r"expected (a finite number|seconds that pass)"):
        make()


def test_a_waker_that_returns_at_once_keeps_no_core_busy() -> None:
    """A hundred times a second at most, where it was as often as a core can."""

    class Waker(FakeWatcher):
        waits = 0

        def wait(self, _timeout_s: float, /) -> bool:
            self.waits += 1
            return False

    waker = Waker()
    sources = PodSources({"api": Answering(Reading(pods=[WEB]))}, wakers={"api": waker})
    sources.start()
    time.sleep(0.3)
    sources.stop(1.0)
    assert 1 <= waker.waits <= 31


@pytest.mark.parametrize("make", [FolderSource, InotifyWatcher])
def test_a_path_that_no_system_has_is_refused_when_it_is_given(make: Callable[[str], object]) -> None:
    """Not when it is read the first time."""
    with pytest.raises(ConfigurationError, match="expected a path as text or a Path"):
        make("a\0b")


def test_a_watcher_waits_for_seconds(tmp_path: Path) -> None:
    """Below 0 it waited for good, and what is no number came out of the kernel's own words."""
    watcher = InotifyWatcher(tmp_path)
    for never in (-1.0, math.nan):
        with pytest.raises(
            ConfigurationError, match="wait: timeout_s: expected a number of seconds, 0 or more"
        ):
            watcher.wait(never)
    assert watcher.wait(math.inf)  # the first look
    threading.Timer(0.1, (tmp_path / "web.json").touch).start()
    assert watcher.wait(math.inf)
    watcher.close()


def test_a_pod_that_was_refused_for_its_uid_is_told_of() -> None:
    """It was one of `answers`, which nobody reads, and that was all."""
    clock, executor, lines = VirtualClock(), ManualExecutor(), list[str]()
    source = Answering(Reading(pods=[WEB, Pod(uid="u", name="twin", containers=WEB.containers)]))
    sources = PodSources({"api": source}, executor=executor, clock=clock)
    sources.tell_faults(lines.append)
    for one in (source.answer, Reading(pods=[WEB])):
        source.answer = one
        sources.hurry("api")
        clock.advance(1)
        sources.run_until_quiet()
        executor.run_all()
        sources.run_until_quiet()
    assert lines[0].startswith(
        "pod default/twin (u) of source api: default/twin from api: its uid u is that of"
    )
    assert lines[1:] == ["pod default/twin (u) of source api: no fault any more"]
