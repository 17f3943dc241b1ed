"""A runtime that answers what it never promised: what it answered is told, and it is asked no faster."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from nodealloc.dsw_asw import Cancel
from nodealloc.errors import ConfigurationError
from nodealloc.podfacts import Exited, PodIdentity
from nodealloc.runtime import (
    ContainerConfig,
    NoSuchRecordError,
    PodReport,
    RunState,
    RuntimeWatch,
    SandboxConfig,
    may_start,
)
from nodealloc.testing.dsw_asw import ManualExecutor, VirtualClock
from nodealloc.testing.runtime import FakeContainerRuntime


class Watched:
    """A watch over a runtime with one sandbox, one of whose calls answers something else."""

    def __init__(self, call: str, answer: Callable[..., object]) -> None:
        self.clock, self.executor, self.runtime = VirtualClock(), ManualExecutor(), FakeContainerRuntime()
        self.runtime.run_sandbox(SandboxConfig(pod=PodIdentity(uid="u", namespace="default", name="web")))
        setattr(self.runtime, call, answer)
        events = self.runtime if call == "follow" else None  # whose own waits for ever
        self.watch = RuntimeWatch(self.runtime, events=events, executor=self.executor, clock=self.clock)

    def after(self, seconds: float) -> None:
        """Let time pass."""
        for _ in range(round(seconds * 20)):
            self.clock.advance(0.05)
            self.watch.run_until_quiet()
            self.executor.run_all()
            self.watch.run_until_quiet()


@pytest.mark.parametrize("answer", [None, [], {}])
def test_what_is_no_listing_is_called_so(answer: object) -> None:
    """And nothing counts as gone for it."""
    node = Watched("listing", lambda: answer)
    node.after(2)
    assert node.watch.heard().error.startswith("listing: expected a Listing; Listing.of makes one, found")


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (None, "inspect: expected a PodReport; PodReport.of makes one, found None"),
        (PodReport(uid="v"), "inspect of pod u: the report is of pod v; report by uid"),
    ],
)
def test_what_is_no_report_of_the_pod_leaves_it_in_doubt(answer: Any, says: str) -> None:
    """A report of another pod said that nothing of this one runs."""
    node = Watched("inspect", lambda *_: answer)
    node.after(2)
    known = node.watch.pods.get("u")
    assert known is not None
    assert (known.report, known.fault) == (None, says)


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (lambda: None, "expected a RuntimeHealth, found None"),
        (lambda: dict[str, str]()["conditions"], "KeyError: 'cond"),
    ],
)
def test_why_nobody_knows_how_the_runtime_is_is_told(answer: Callable[[], object], says: str) -> None:
    """Who waits for it reads the reason."""
    node = Watched("health", answer)
    node.after(2)
    assert says in node.watch.heard().health_error
    waits = may_start(node.watch.heard(), now_s=node.clock.monotonic_s())
    assert waits is not None
    assert says in waits.message


def test_events_that_end_at_once_are_followed_ten_times_a_second_at_most() -> None:
    """They were followed anew as fast as a core can."""
    begun: list[Cancel] = []
    node = Watched("follow", lambda _event, cancel: begun.append(cancel))
    node.after(5)
    assert 25 <= len(begun) <= 51


def test_a_fake_is_told_what_happens_in_its_own_words() -> None:
    """A test with a slip in it tells of that, and does not pass for another reason."""
    runtime: Any = FakeContainerRuntime()
    box = SandboxConfig(pod=PodIdentity(uid="u", namespace="default", name="web"))
    made = runtime.create_container(
        runtime.run_sandbox(box), ContainerConfig(name="app", image="busybox"), box
    )
    runtime.start_container(made)
    with pytest.raises(ConfigurationError, match="exit: exit: expected an Exited or an ExitUnknown, found 0"):
        runtime.exit(made, 0)
    with pytest.raises(NoSuchRecordError, match="exit of container-7"):
        runtime.exit("container-7", Exited(code=0))
    with pytest.raises(ConfigurationError, match="died: expected a list or tuple of text"):
        runtime.restart(died=made)
    with pytest.raises(ConfigurationError, match="images: expected a list or tuple of text"):
        FakeContainerRuntime(images=made)
    with pytest.raises(ConfigurationError, match="run_sandbox: config: expected a SandboxConfig"):
        runtime.run_sandbox({})
    assert runtime.inspect("u").newest("app").record.state is RunState.RUNNING
