"""A pod removed and added again under its uid: every order of events, walked exhaustively."""

from __future__ import annotations

import itertools

from nodealloc.dsw_asw import InlineExecutor
from nodealloc.testing.dsw_asw import ManualExecutor, VirtualClock
from nodealloc.testing.podfacts import FakePods
from nodealloc.testing.volumes import FakeClaims, FakeHost, claiming_pod
from nodealloc.volumes import VolumeManager

EVENTS = ("arrive", "end", "pass", "run", "restart")


def walk(events: tuple[str, ...]) -> None:
    """Do these events, then let things rest, wanted or not; nothing may be left over."""
    host, pods, claims, clock = FakeHost(), FakePods(), FakeClaims(), VirtualClock()
    claims.volumes["disk"] = host.disk("disk")
    executor = ManualExecutor()

    def start(executor: ManualExecutor | InlineExecutor) -> VolumeManager:
        manager = VolumeManager(
            [host], pods=pods, executor=executor, claims=claims, leftovers=host, clock=clock, resync_s=None
        )
        manager.reconstruct()
        manager.pods_changed()
        return manager

    manager = start(executor)
    for event in events:
        if event == "arrive":
            pods.put(claiming_pod("uid", "disk"))
            manager.pod_changed("uid")
        elif event == "end":
            pods.sightings.clear()
            manager.pod_changed("uid")
        elif event == "pass":
            manager.reconcile()
        elif event == "run":
            executor.run_all()
            manager.reconcile()
        else:
            executor = ManualExecutor()
            manager = start(executor)
    for _ in range(30):
        manager.reconcile()
        if not executor.run_all() and not manager.has_work:
            break
    assert set(host.mounted()) == set(pods.uids()), events
    assert bool(host.attached) is bool(pods.sightings), events
    assert host.violations == [], events
    if pods.sightings:
        assert manager.volumes_of("uid")[0].mounted, events
    else:
        assert not len(manager.actual), events


def test_every_order_of_five_events_converges() -> None:
    """3,125 orders of arriving, ending, passing, running and restarting: none forgets the pod."""
    count = 0
    for events in itertools.product(EVENTS, repeat=5):
        walk(events)
        count += 1
    assert count == 5**5


def test_a_pod_that_flaps_many_times_ends_as_it_was_left() -> None:
    """Twenty arrivals and ends, with and without work between them."""
    for between in ("pass", "run"):
        walk(("arrive", between, "end", between) * 20)
        walk(("arrive", "end") * 20 + ("arrive", between))


def test_an_answer_that_comes_late_serves_nobody_else() -> None:
    """A claim that was looked up for a pod that is gone is not mounted for the next one of its uid."""
    host, pods, claims, executor = FakeHost(), FakePods(), FakeClaims(), ManualExecutor()
    for name in ("old", "new"):
        claims.volumes[name] = host.disk(name)
    manager = VolumeManager([host], pods=pods, executor=executor, claims=claims, clock=VirtualClock())
    pods.put(claiming_pod("uid", "old"))
    manager.pod_changed("uid")
    manager.reconcile()
    assert len(executor) == 1, "the old claim is being looked up"
    pods.sightings.clear()
    manager.pod_changed("uid")
    pods.put(claiming_pod("uid", "new"))
    manager.pod_changed("uid")
    for _ in range(30):
        executor.run()
        manager.reconcile()
    assert [call for call in host.calls if "old" in call] == []
    assert host.mounted() == {"uid": {"example.com/disk/new"}}
