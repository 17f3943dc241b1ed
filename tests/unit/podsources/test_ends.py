"""Sources end as a whole, whatever one of their parts does as they begin or end."""

from __future__ import annotations

import logging
import threading

import pytest

from nodealloc.dsw_asw import World
from nodealloc.podsources import PodSources
from nodealloc.podsources._answers import FaultLines, SourceAnswer
from nodealloc.podsources._ports import SourceFault
from nodealloc.testing.dirwatch import FakeWatcher
from nodealloc.testing.podsources import FakeSource


class Stuck(FakeWatcher):
    """A waker that cannot be closed."""

    def close(self) -> None:
        """Refuses."""
        super().close()
        raise OSError("no such device")


def test_a_waker_that_cannot_be_closed_keeps_nothing_else_from_ending(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Its error is logged; the other wakers and the engine end."""
    first, second = Stuck(), FakeWatcher()
    sources = PodSources({"a": FakeSource(), "b": FakeSource()}, wakers={"a": first, "b": second})
    sources.start()
    with caplog.at_level(logging.ERROR):
        assert sources.stop() == ()
    assert "a: its waker could not be closed" in caplog.text
    assert second.wait(0.0) is False
    assert not _runs(sources)


def test_sources_whose_waker_gets_no_thread_are_not_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """What had begun by then is ended before the error is raised."""
    starts = threading.Thread.start

    def refused(thread: threading.Thread) -> None:
        if thread.name == "b waker":
            raise RuntimeError("can't start new thread")
        starts(thread)

    monkeypatch.setattr(threading.Thread, "start", refused)
    wakers = {"a": FakeWatcher(), "b": FakeWatcher()}
    sources = PodSources({"a": FakeSource(), "b": FakeSource()}, wakers=wakers)
    with pytest.raises(RuntimeError, match="can't start"):
        sources.start()
    assert not _runs(sources)
    assert sources.stop() == ()


def _runs(sources: PodSources) -> bool:
    """Whether a thread of its own is left: the engine's, or a waker's."""
    names = {"a waker", "b waker"}
    own = sources._thread
    return (own is not None and own.is_alive()) or any(one.name in names for one in threading.enumerate())


def test_a_line_that_cannot_be_told_keeps_no_other_from_being_told(caplog: pytest.LogCaptureFixture) -> None:
    """As where nobody reads what an agent says any more: the lines behind it, and of other sources, come."""
    answers: World[str, SourceAnswer] = World("answers")
    lines: list[str] = []

    def tell(line: str) -> None:
        lines.append(line)
        if line.startswith("one"):
            raise BrokenPipeError

    faults = tuple(SourceFault(where=where, what="wrong") for where in ("one", "two"))
    answers.put("a", SourceAnswer(faults=faults))
    answers.put("b", SourceAnswer(error="away"))
    with caplog.at_level(logging.ERROR):
        FaultLines(answers, tell)
    assert lines == ["one: wrong", "two: wrong", "source b: away"]
    assert "could not be told" in caplog.text
