"""What was found at start and cannot be rebuilt: kept while it may be wanted, cleaned when not."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import pytest

from nodealloc.dsw_asw import Done, Failed, InlineExecutor
from nodealloc.podspec import Container, Pod, Volume, VolumeUse
from nodealloc.testing.dsw_asw import RecordingObserver, VirtualClock
from nodealloc.testing.podfacts import FakePods
from nodealloc.testing.volume_sources import FakeLeftovers
from nodealloc.testing.volumes import FakeClaims, FakeHost, claiming_pod
from nodealloc.volumes import Found, Use, VolumeManager, VolumeSpec


class Forgetful(FakeHost):
    """A host whose plugin cannot tell what it finds; it unmounts by directory, as real ones do."""

    def reconstruct(self, found: Found, /) -> VolumeSpec | None:
        """Nobody knows."""
        return None

    def unmount(self, spec: VolumeSpec, use: Use, /) -> None:
        """Whatever stands in that directory."""
        self.calls.append(f"unmount {spec.id} {use.pod_uid}")
        for key, uid in list(self.mounts):
            if uid == use.pod_uid and key.endswith(f"/{spec.name}"):
                del self.mounts[key, uid]


@attrs.define
class Heap:
    """Leftovers of a plugin that nobody has, and what was cleaned."""

    items: list[Found] = attrs.field(factory=list[Found])
    cleaned: list[Found] = attrs.field(factory=list[Found])

    def found(self) -> Sequence[Found]:
        """The items."""
        return tuple(self.items)

    def clean(self, found: Found, /) -> None:
        """Remember it."""
        self.cleaned.append(found)


def settle(manager: VolumeManager) -> None:
    """Passes until only time could bring more."""
    while manager.has_work:
        manager.reconcile()


def node() -> tuple[Forgetful, FakePods, FakeClaims]:
    """A forgetful host on which pod `uid` has disk `d`."""
    host, pods, claims = Forgetful(), FakePods(), FakeClaims()
    claims.volumes["d"] = host.disk("d")
    pods.put(claiming_pod("uid", "d"))
    manager = VolumeManager([host], pods=pods, executor=InlineExecutor(), claims=claims)
    manager.pods_changed()
    settle(manager)
    assert host.mounts
    host.calls.clear()
    return host, pods, claims


def restarted(host: Forgetful, pods: FakePods, claims: FakeClaims) -> VolumeManager:
    """A new life on what the last one left."""
    manager = VolumeManager([host], pods=pods, executor=InlineExecutor(), claims=claims, leftovers=host)
    manager.reconstruct()
    manager.pods_changed()
    settle(manager)
    return manager


def test_a_wanted_mount_is_adopted_by_its_directory() -> None:
    """A found directory that a wanted volume of another key stands in is not unmounted."""
    host, pods, claims = node()
    manager = restarted(host, pods, claims)
    assert not any(call.startswith("unmount") for call in host.calls)
    assert manager.volumes_of("uid")[0].mounted
    assert set(manager.actual.snapshot()) == {"example.com/disk/d"}


def test_an_orphan_that_nobody_can_rebuild_is_cleaned() -> None:
    """Mount, stage and attachment go."""
    host, pods, claims = node()
    pods.sightings.clear()
    manager = restarted(host, pods, claims)
    assert not host.mounts
    assert not host.attached - host.staged
    assert not len(manager.actual)


def test_an_orphan_of_an_unknown_plugin_is_cleaned_by_its_path() -> None:
    """For a pod, for the node, as a device: each is handed over as it was found."""
    heap = Heap(
        [
            Found(plugin="gone.example.com/x", name="a", pod_uid="uid"),
            Found(plugin="gone.example.com/x", name="b", pod_uid="uid", block=True),
            Found(plugin="gone.example.com/x", name="c"),
        ]
    )
    pods = FakePods(ready=False)
    manager = VolumeManager([], pods=pods, executor=InlineExecutor(), leftovers=heap)
    manager.reconstruct()
    manager.pods_changed()
    settle(manager)
    assert heap.cleaned == []
    pods.ready = True
    manager.pods_changed()
    settle(manager)
    assert sorted(heap.cleaned, key=lambda one: one.name) == heap.items
    assert not len(manager.actual)


class Odd(FakeHost):
    """A plugin that raises at one volume, and gives nonsense for another."""

    def reconstruct(self, found: Found, /) -> VolumeSpec | None:
        """What a hostile plugin answers."""
        if found.name == "raises":
            raise KeyError(found.name)
        return super().reconstruct(found) if found.name == "d" else "junk"  # type: ignore[return-value]


def test_an_observer_hears_of_what_was_taken_over() -> None:
    """Each piece as an operation, the whole as a pass; a plugin's faults keep nothing from being held."""
    host, observer = Odd(), RecordingObserver()
    host.disk("d")
    found = [Found(plugin=host.name, name=name, pod_uid="uid") for name in ("d", "junk", "raises")]
    found.append(Found(plugin="gone.example.com/x", name="c"))
    manager = VolumeManager(
        [host],
        pods=FakePods(ready=False),
        executor=InlineExecutor(),
        leftovers=FakeLeftovers(found),
        observer=observer,
    )
    assert manager.reconstruct() == tuple(found)
    assert observer.starts == [name for name, _ in observer.ends]
    assert observer.starts == [
        "reconstruct example.com/disk/d/uid",
        "reconstruct example.com/disk/uid/junk/uid",
        "reconstruct example.com/disk/uid/raises/uid",
        "reconstruct gone.example.com/x/c",
    ]
    outcomes = [outcome for _, outcome in observer.ends]
    assert isinstance(outcomes[0], Done)
    said = [str(one.error) for one in outcomes if isinstance(one, Failed)]
    assert "volume 'junk' of pod uid: no plugin 'example.com/disk' that can tell" in said[0]
    assert said[1] == "'raises'"
    assert "volume 'c' staged for the node: no plugin 'gone.example.com/x'" in said[2]
    (summary,) = observer.summaries
    assert (summary.started, summary.done, summary.failed) == (4, 1, 3)
    assert all(record.value.held for record in manager.actual.snapshot().values())


def test_what_cannot_be_looked_for_is_not_taken_for_nothing() -> None:
    """A directory that cannot be listed ends the start: going on would unmount under living pods."""

    class Unreadable(FakeLeftovers):
        def found(self) -> Sequence[Found]:
            raise OSError(24, "Too many open files")

    manager = VolumeManager([], pods=FakePods(), executor=InlineExecutor(), leftovers=Unreadable())
    with pytest.raises(OSError, match="Too many open files"):
        manager.reconstruct()


class Bare:
    """A plugin that can do nothing but name volumes, and promises everything."""

    name = "example.com/bare"
    kinds = ("bare",)

    def spec(self, pod: Pod, volume: Volume, /) -> VolumeSpec:
        """A volume with the needs that the pod asks for."""
        return VolumeSpec(
            plugin=self.name,
            name="v",
            pod_uid=pod.uid,
            needs_attach=volume.spec.get("needs") == "attach",
            needs_stage=volume.spec.get("needs") == "stage",
        )


@pytest.mark.parametrize("needs", ["attach", "stage", "mount"])
def test_an_ability_that_a_plugin_lacks_is_named(needs: str) -> None:
    """The pod's error says what to register; its end leaves nothing."""
    pods, clock = FakePods(), VirtualClock()
    manager = VolumeManager([Bare()], pods=pods, executor=InlineExecutor(), clock=clock)
    pods.put(
        Pod(
            uid="uid",
            volumes=(Volume(name="v", kind="bare", spec={"needs": needs}),),
            containers=(Container(name="c", volumes=(VolumeUse(name="v", path="/v"),)),),
        )
    )
    manager.pods_changed()
    settle(manager)
    assert f"that can {needs} it; register one" in manager.volumes_of("uid")[0].error
    pods.sightings.clear()
    manager.pods_changed()
    settle(manager)
    assert not len(manager.actual)


def test_a_resolver_that_breaks_is_that_volumes_error() -> None:
    """An exception of any kind is named, and the pod's other volumes go on."""
    host, pods, claims = node()

    def broken(_uid: str) -> None:
        raise ZeroDivisionError("oops")

    claims.before = broken
    manager = VolumeManager([host], pods=pods, executor=InlineExecutor(), claims=claims)
    manager.pods_changed()
    settle(manager)
    assert "resolving it raised ZeroDivisionError" in manager.volumes_of("uid")[0].error
    pods.put(Pod(uid="other", volumes=(Volume(name="v", kind="persistentVolumeClaim"),)))
    manager.pods_changed()
    settle(manager)
    assert manager.volumes_of("other") == ()
    assert manager.volumes_of("nobody") == ()
