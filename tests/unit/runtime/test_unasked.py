"""What of a pod is asked after a listing: what is new of it, and nothing that was told before."""

from __future__ import annotations

import attrs
import pytest

from nodealloc.checkpoint import JsonCheckpoint
from nodealloc.podfacts import Exited, ExitUnknown, PodIdentity
from nodealloc.runtime import (
    ContainerConfig,
    ContainerReport,
    PodListing,
    PodReport,
    RunState,
    RuntimeWatch,
    SandboxConfig,
)
from nodealloc.runtime._unasked import unasked
from nodealloc.testing.dsw_asw import ManualExecutor, MemoryJournal, VirtualClock
from nodealloc.testing.runtime import FakeContainerRuntime


class Asked(FakeContainerRuntime):
    """Notes of what it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: list[str] = []

    def inspect(self, uid: str, listed: PodListing | None = None, /) -> PodReport:
        """See `Looks.inspect`."""
        assert listed is not None
        self.ids += [*(one.id for one in listed.sandboxes), *(one.id for one in listed.containers)]
        return super().inspect(uid, listed)


class Node:
    """A watch of such a runtime, driven by hand."""

    def __init__(self) -> None:
        self.fake, self.clock, self.executor = Asked(), VirtualClock(), ManualExecutor()
        self.journal: MemoryJournal[JsonCheckpoint] = MemoryJournal()
        self.watch = RuntimeWatch(
            self.fake,
            journal=self.journal,
            executor=self.executor,
            clock=self.clock,
        )

    def looked(self) -> list[str]:
        """What was asked until the next listing was taken over."""
        self.clock.advance(1.0)
        self.watch.run_until_quiet()
        while self.executor.run_all():
            self.watch.run_until_quiet()
        asked, self.fake.ids = self.fake.ids, []
        return asked


def _box(uid: str, *, host_network: bool = False) -> SandboxConfig:
    return SandboxConfig(pod=PodIdentity(uid=uid, namespace="default", name=uid), host_network=host_network)


@pytest.mark.parametrize("host_network", [True, False])
def test_a_pod_that_starts_costs_a_question_for_its_sandbox_and_one_for_its_container(
    host_network: bool,
) -> None:
    """One that was made and has not begun is known by its listing; each later state is asked about once."""
    node = Node()
    box = _box("u", host_network=host_network)
    sandbox = node.fake.run_sandbox(box)
    assert node.looked() == [sandbox]
    made = node.fake.create_container(sandbox, ContainerConfig(name="app", image="busybox"), box)
    assert node.looked() == []
    known = node.watch.pods.get("u")
    assert known is not None
    assert known.is_current(node.watch.seen.get("u"))
    assert known.report is not None
    assert [one.record.state for one in known.report.containers] == [RunState.CREATED]
    node.fake.start_container(made)
    assert node.looked() == [made]
    node.fake.exit(made, Exited(code=3))
    assert node.looked() == [made]
    after = node.watch.pods.get("u")
    assert after is not None
    assert after.report == FakeContainerRuntime.inspect(node.fake, "u")
    assert after.ends[made].exit == Exited(code=3)


def test_after_a_restart_all_is_asked_about_once() -> None:
    """Who has no report of a pod knows nothing of it by its listing alone."""
    node, box = Node(), _box("u")
    sandbox = node.fake.run_sandbox(box)
    made = node.fake.create_container(sandbox, ContainerConfig(name="app", image="busybox"), box)
    node.fake.start_container(made)
    assert node.looked() == [sandbox, made]
    assert node.looked() == []


def test_a_row_is_written_when_what_outlives_the_process_changes() -> None:
    """Who runs, and how it ended: not what a report adds to that."""
    node, box = Node(), _box("u")
    sandbox = node.fake.run_sandbox(box)
    made = node.fake.create_container(sandbox, ContainerConfig(name="app", image="busybox"), box)
    node.looked()
    commits = len(node.journal.commits)
    other = node.fake.create_container(sandbox, ContainerConfig(name="other", image="busybox"), box)
    node.looked()
    assert len(node.journal.commits) == commits
    for count, done in enumerate((node.fake.start_container, node.fake.remove_container), 1):
        done(made)
        node.looked()
        assert len(node.journal.commits) == commits + count
    assert other in dict(node.watch.seen.get("u").marks)  # type: ignore[union-attr]


def test_what_may_still_change_is_asked_about_again() -> None:
    """A sandbox without addresses, and a container of which the runtime does not know how it is."""
    pod = PodIdentity(uid="u", namespace="default", name="u")
    fake = FakeContainerRuntime()
    box = _box("u")
    made = fake.create_container(fake.run_sandbox(box), ContainerConfig(name="app", image="busybox"), box)
    fake.start_container(made)
    report = fake.inspect("u")
    assert unasked(fake.listing().pods["u"], report).due is None
    (sandbox,), (run,) = report.sandboxes, report.containers
    for box_before, box_now in (
        (attrs.evolve(sandbox, ips=()), sandbox.record),
        (attrs.evolve(sandbox, ips=None), sandbox.record),
        (sandbox, attrs.evolve(sandbox.record, is_ready=False)),
    ):
        listing = PodListing(uid=pod.uid, sandboxes=(box_now,))
        assert unasked(listing, PodReport.of("u", [box_before], [])).due == listing
    odd = ContainerReport(record=attrs.evolve(run.record, state=RunState.UNKNOWN))
    for before, now in ((odd, odd.record), (run, attrs.evolve(run.record, state=RunState.EXITED))):
        listing = PodListing(uid=pod.uid, containers=(now,))
        assert unasked(listing, PodReport.of("u", [], [before])).due == listing


def test_how_it_ended_is_not_asked_twice() -> None:
    """The first answer stays with the report when something else of the pod changes."""
    node, box = Node(), _box("u")
    sandbox = node.fake.run_sandbox(box)
    app = ContainerConfig(name="app", image="busybox")
    first = node.fake.create_container(sandbox, app, box)
    node.fake.start_container(first)
    node.fake.exit(first, ExitUnknown())
    node.looked()
    second = node.fake.create_container(sandbox, attrs.evolve(app, attempt=1), box)
    node.fake.start_container(second)
    assert node.looked() == [second]
    known = node.watch.pods.get("u")
    assert known is not None
    assert known.report is not None
    assert [one.record.id for one in known.report.containers] == [second, first]
    assert known.report.containers[1].exit == ExitUnknown()
