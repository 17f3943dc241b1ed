"""A node asks its runtime through whoever watches it."""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import pytest

from nodealloc.dsw_asw import ThreadExecutor
from nodealloc.errors import RetryableError
from nodealloc.node import RunningContainer, WatchedRuntime
from nodealloc.podfacts import Exited, PodIdentity
from nodealloc.runtime import (
    ContainerConfig,
    Listing,
    Oddity,
    Pace,
    RuntimeUnavailableError,
    RuntimeWatch,
    SandboxConfig,
)
from nodealloc.testing.node import check_runtime
from nodealloc.testing.runtime import FakeContainerRuntime
from nodealloc.topology import Owner

SLOW = Pace(period_s=600.0, gap_s=0.0)


@pytest.fixture
def fake() -> FakeContainerRuntime:
    """A runtime in memory."""
    return FakeContainerRuntime()


@pytest.fixture
def watch(fake: FakeContainerRuntime) -> Iterator[RuntimeWatch]:
    """Looks every ten minutes, unless somebody hurries."""
    with RuntimeWatch(fake, pace=SLOW, executor=ThreadExecutor("runtime")) as one:
        WatchedRuntime(one).running()
        yield one


def started(fake: FakeContainerRuntime, owner: Owner) -> str:
    """A container that runs."""
    box = SandboxConfig(pod=PodIdentity(uid=owner.workload, namespace="default", name=owner.workload))
    there = fake.listing().pods.get(owner.workload)
    sandbox = there.sandboxes[0].id if there is not None else fake.run_sandbox(box)
    attempt = 0 if there is None else len(there.containers)
    made = fake.create_container(
        sandbox, ContainerConfig(name=owner.member, image="busybox", attempt=attempt), box
    )
    fake.start_container(made)
    return made


def test_it_keeps_the_promises_of_a_runtime(fake: FakeContainerRuntime, watch: RuntimeWatch) -> None:
    """Who runs is listed from the start on, and no longer when it has ended."""
    check_runtime(
        WatchedRuntime(watch), lambda owner: started(fake, owner), lambda one: fake.stop_container(one, 0.0)
    )


def test_an_answer_is_no_older_than_the_question(fake: FakeContainerRuntime, watch: RuntimeWatch) -> None:
    """Though nobody looks for ten minutes by itself."""
    runtime = WatchedRuntime(watch)
    made = started(fake, Owner("u", "app"))
    assert runtime.running() == [RunningContainer(owner=Owner("u", "app"), container_id=made)]
    fake.exit(made, Exited(code=0))
    assert runtime.running() == []


def test_what_was_only_made_has_not_ended(fake: FakeContainerRuntime, watch: RuntimeWatch) -> None:
    """It may be started at any moment, on what it was made for."""
    box = SandboxConfig(pod=PodIdentity(uid="u", namespace="default", name="u"))
    made = fake.create_container(fake.run_sandbox(box), ContainerConfig(name="app", image="busybox"), box)
    assert [one.container_id for one in WatchedRuntime(watch).running()] == [made]


def test_a_runtime_that_is_away_or_hangs_cannot_tell(fake: FakeContainerRuntime, watch: RuntimeWatch) -> None:
    """Neither is "nothing runs"; and it tells again when it is back."""
    made = started(fake, Owner("u", "app"))
    fake.fail("listing", RuntimeUnavailableError("listing", "connection refused"), times=1)
    with pytest.raises(RetryableError, match="connection refused"):
        WatchedRuntime(watch).running()
    gate = fake.hang("listing")
    with pytest.raises(RetryableError, match="has not been listed within"):
        WatchedRuntime(watch, patience_s=0.05).running()
    gate.set()
    assert [one.container_id for one in WatchedRuntime(watch).running()] == [made]


def test_a_pod_that_makes_no_sense_counts_as_running(
    fake: FakeContainerRuntime, watch: RuntimeWatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it holds is not given to others; nothing else is held up."""
    started(fake, Owner("good", "app"))
    sound = fake.listing

    def odd() -> Listing:
        listing = sound()
        strange = Listing.of((), (), oddities=[Oddity(uid="bad", what="two of them have one id")])
        return attrs.evolve(listing, pods={**listing.pods, **strange.pods})

    monkeypatch.setattr(fake, "listing", odd)
    assert {one.owner.workload for one in WatchedRuntime(watch).running()} == {"good", "bad"}


def test_a_watch_that_nobody_drives_says_nothing(fake: FakeContainerRuntime) -> None:
    """Silence is not "nothing runs"."""
    with pytest.raises(RetryableError, match="has not been listed"):
        WatchedRuntime(RuntimeWatch(fake), patience_s=0.01).running()
