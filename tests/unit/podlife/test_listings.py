"""Which listing a pod waits for: the newest that anybody asked for after a call about it."""

from __future__ import annotations

import pytest
from typing_extensions import override

from nodealloc.dsw_asw import Done, Step, Uncertain, World
from nodealloc.podlife import PodRecord, Rules
from nodealloc.podlife._details import Acted, Detail, Start, StopContainer
from nodealloc.podlife._listings import Listings
from nodealloc.podlife._settling import settle
from nodealloc.runtime import AnswerLostError, RuntimeWatch
from nodealloc.testing.dsw_asw import ManualExecutor, VirtualClock
from nodealloc.testing.runtime import FakeContainerRuntime
from tests.unit.podlife_node import pod


def test_of_two_calls_that_come_back_at_once_the_later_listing_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The one that asked first may be slower to note its number: that listing may lack what the other did."""
    watch = RuntimeWatch(
        FakeContainerRuntime(unix_s=lambda: 0.0), executor=ManualExecutor(), clock=VirtualClock(1000.0)
    )
    listings = Listings(watch)
    plain, later = watch.hurry, list[int]()

    def hurry(within_s: float = 0.0, /) -> int:
        number = plain(within_s)
        if not later:
            later.append(0)
            later[0] = listings.hurry("a")  # another worker, between the question and the note
        return number

    monkeypatch.setattr(watch, "hurry", hurry)
    assert listings.hurry("a") < later[0] == listings.awaited("a")


def test_a_listing_that_comes_as_a_pod_begins_to_wait_is_not_forgotten() -> None:
    """On another thread: the pod was shown the number of the one before, and waited for one more."""
    clock, executor = VirtualClock(1000.0), ManualExecutor()
    watch = RuntimeWatch(FakeContainerRuntime(unix_s=lambda: 0.0), executor=executor, clock=clock)
    listings = Listings(watch)

    def lists() -> None:
        clock.advance(1.0)
        watch.run_until_quiet()
        while executor.run_all():
            watch.run_until_quiet()

    class Meanwhile(World[str, int]):
        """Another thread lists between the look into this world and what is written then."""

        is_first = True

        @override
        def __contains__(self, key: str, /) -> bool:
            found = super().__contains__(key)
            if self.is_first:
                self.is_first = False
                lists()
            return found

    lists()
    listings.world = Meanwhile("listings that are waited for")
    number = listings.hurry("a")
    assert listings.keys_of("a") == ("a",)
    assert listings.world.get("a") == number


def test_a_call_that_asked_for_an_earlier_listing_takes_no_doubt_away() -> None:
    """Whether a start whose answer was lost has made something is shown by the later one alone."""
    start: Step[Detail] = Step(
        scope=("pod", "u", "start", "app"), verb="start", detail=Start("app", 0, "box", "", 1)
    )
    stop: Step[Detail] = Step(
        scope=("pod", "u", "stop", "c"), verb="stop", detail=StopContainer("side", "c", 5.0)
    )
    lost = Uncertain(
        AnswerLostError("start_container", "lost"), known=Acted(listing=11), began_s=1.0, ended_s=2.0
    )
    told = Done(Acted(listing=10), began_s=1.0, ended_s=2.0)
    record = settle(PodRecord(pod=pod()), start, lost, rules=Rules(), awaited=11)
    assert record is not None
    after = settle(record, stop, told, rules=Rules(), awaited=11)
    assert (record.doubt, None if after is None else after.doubt) == (11, 11)
