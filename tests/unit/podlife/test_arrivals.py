"""Pods as sources say them are told on to whoever runs them, each before it is said that those are all."""

from __future__ import annotations

import pytest

from nodealloc.dsw_asw import InlineExecutor
from nodealloc.podlife._arrivals import Following
from nodealloc.podsources import PodSources, Polling
from nodealloc.podspec import Container, Pod
from nodealloc.testing.dsw_asw import VirtualClock
from nodealloc.testing.podsources import FakeSource


class Taking:
    """Notes what it is told, and raises of one pod as long as a test says."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.fails = "b"

    def put(self, pod: Pod, /) -> None:
        """It is to be here."""
        if pod.uid == self.fails:
            raise OSError("what time it is cannot be told now")
        self.told.append(f"put {pod.uid}")

    def remove(self, uid: str, /) -> bool:
        """No source has it any more."""
        self.told.append(f"remove {uid}")
        return True

    def heard(self) -> None:
        """Every source was heard."""
        self.told.append("heard")

    def is_ending(self, _uid: str, /) -> bool:
        """None of them ends."""
        return False


def test_a_pod_that_cannot_be_told_of_keeps_no_other_waiting_and_is_not_said_to_be_gone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Those behind it were told of by nobody, and ended as pods that no source has, though they ran."""
    clock, taking = VirtualClock(1000.0), Taking()
    source = FakeSource(pods=[Pod(uid=uid, name=uid, containers=(Container(name="app"),)) for uid in "abc"])
    sources = PodSources(
        {"api": source}, polling=Polling(period_s=1.0), executor=InlineExecutor(), clock=clock
    )
    following = Following(sources, taking)
    sources.run_until_quiet()
    assert taking.told == ["put a", "put c"]
    assert "telling of pod b raised" in caplog.text
    taking.fails = ""
    clock.advance(1.0)
    sources.run_until_quiet()
    assert taking.told == ["put a", "put c", "put b", "heard"]
    following.close()
