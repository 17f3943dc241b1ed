"""What the example agent says by itself."""

from __future__ import annotations

from examples.agent.build import say_outages
from nodealloc.dsw_asw import InlineExecutor
from nodealloc.runtime import RuntimeWatch
from nodealloc.testing.dsw_asw import VirtualClock
from nodealloc.testing.runtime import FakeContainerRuntime


def test_an_outage_of_the_runtime_is_said_once_and_its_end_too() -> None:
    """Also one from the start: nothing else tells why no pod comes to run."""
    runtime, clock = FakeContainerRuntime(), VirtualClock()
    said: list[str] = []
    watch = RuntimeWatch(runtime, executor=InlineExecutor(), clock=clock)
    say_outages(watch, said.append)

    def listed_twice() -> None:
        for _ in range(2):
            clock.advance(60.0)
            watch.run_until_quiet()

    runtime.go_away("/run/x.sock: nothing is there")
    listed_twice()
    runtime.restart()
    listed_twice()
    runtime.go_away("/run/x.sock: nobody listens there")
    listed_twice()
    (first, back, again) = said
    assert first.startswith("runtime: ")
    assert "/run/x.sock: nothing is there; it is asked again until it answers" in first
    assert back == "runtime: it answers again"
    assert "/run/x.sock: nobody listens there" in again
