"""Config maps and secrets that come after the pod that wants them."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodealloc.dsw_asw import InlineExecutor
from nodealloc.podspec import Container, Json, Pod, Volume, VolumeUse
from nodealloc.testing.dsw_asw import VirtualClock
from nodealloc.testing.podfacts import FakePods
from nodealloc.testing.volume_sources import FakeConfigSource
from nodealloc.testing.volumes import FakeMounter
from nodealloc.volumes import PodsDirectory, SafeRoot, Use, VolumeManager, VolumeSpec
from nodealloc.volumes.plugins import (
    ChangeStrategy,
    ConfigMap,
    ConfigStore,
    PodObjects,
    Projected,
    node_plugins,
)

_ITEMS: Json = [{"key": "k", "path": "k"}]
_MAP: dict[str, Json] = {"name": "o", "items": _ITEMS}


class Life:
    """A manager of a pod's volume, over what an earlier life left."""

    def __init__(self, path: Path, source: FakeConfigSource) -> None:
        self.path, self.source = path, source
        self.root, self.pods, self.clock = SafeRoot(str(path)), FakePods(), VirtualClock()
        self.mounter = FakeMounter(self.root.path)
        plugins = node_plugins(
            self.root,
            self.mounter,
            PodObjects(config_maps=source, secrets=source),
            on_changed=self._changed,
        )
        self.manager = VolumeManager(
            plugins,
            pods=self.pods,
            executor=InlineExecutor(),
            clock=self.clock,
            leftovers=PodsDirectory(self.root, self.mounter),
        )
        self.manager.reconstruct()

    def _changed(self, uid: str) -> None:
        self.manager.refresh(uid)

    def has_volume(self) -> bool:
        """Whether the pod has it, with all done that can be done now."""
        self.manager.run_until_quiet()
        return self.manager.volumes_of("uid")[0].mounted

    def want(self, kind: str = "configMap", spec: dict[str, Json] = _MAP) -> None:
        """Let there be a pod with the volume."""
        container = Container(name="c", volumes=(VolumeUse(name="v", path="/v"),))
        volume = Volume(name="v", kind=kind, spec=spec)
        self.pods.put(Pod(uid="uid", name="pod", volumes=(volume,), containers=(container,)))
        self.manager.pods_changed()

    def wait_long(self) -> None:
        """Until tries are two minutes apart."""
        for _ in range(10):
            self.manager.run_until_quiet()
            self.clock.advance(130.0)
        self.manager.run_until_quiet()


@pytest.mark.parametrize("lacks", ["the object", "a key of it"])
@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        ("configMap", _MAP),
        ("secret", {"secretName": "o", "items": _ITEMS}),
        ("projected", {"sources": [{"configMap": _MAP}]}),
    ],
)
def test_who_waits_for_an_object_has_it_as_soon_as_it_is_written(
    tmp_path: Path, kind: str, spec: dict[str, Json], lacks: str
) -> None:
    """Where the source tells of changes, however long it was missing: no back-off holds that off."""
    life = Life(tmp_path, FakeConfigSource())
    if lacks == "a key of it":
        life.source.put("default", "o", {})
    life.want(kind, spec)
    life.wait_long()
    assert not life.has_volume()
    life.source.put("default", "o", {"k": b"1"})
    assert life.has_volume()


def test_another_life_waits_for_an_object_that_went_meanwhile(tmp_path: Path) -> None:
    """What is known of who waits is known again from the pods."""
    life = Life(tmp_path, FakeConfigSource())
    life.source.put("default", "o", {"k": b"1"})
    life.want()
    assert life.has_volume()
    life.source.put("default", "o", None)
    again = Life(tmp_path, life.source)
    again.want()
    again.wait_long()
    assert not again.has_volume()
    life.source.put("default", "o", {"k": b"2"})
    assert again.has_volume()
    (file,) = tmp_path.glob("pods/uid/volumes/*/v/k")
    assert file.read_bytes() == b"2"


class Watched(FakeConfigSource):
    """Counts who watches."""

    @property
    def watches(self) -> int:
        """How many."""
        return len(self._watchers)


@pytest.mark.parametrize("kind", ["configMap", "projected"])
def test_nobody_follows_an_object_whose_pod_went_before_it_came(tmp_path: Path, kind: str) -> None:
    """Nobody tells a plugin of a pod that never had its volume: what nobody looked at for long is let go."""
    source, clock, told = Watched(), VirtualClock(), list[str]()
    root = SafeRoot(str(tmp_path))
    store = ConfigStore(source, ChangeStrategy.WATCH, clock=clock)
    mounter = FakeMounter(root.path)
    plugin = (
        ConfigMap(root, mounter, store, told.append)
        if kind == "configMap"
        else Projected(root, mounter, config_maps=store, on_changed=told.append)
    )

    def look(uid: str, name: str) -> None:
        of_map: dict[str, Json] = {"name": name, "optional": True}
        of_kind: dict[str, dict[str, Json]] = {
            "configMap": of_map,
            "projected": {"sources": [{"configMap": of_map}]},
        }
        volume = Volume(name="v", kind=kind, spec=of_kind[kind])
        plugin.revision(plugin.spec(Pod(uid=uid, name=uid), volume))

    look("gone", "never comes")
    look("stays", "comes")
    for _ in range(5):
        clock.advance(122.0)
        look("stays", "comes")
    assert source.watches == 1
    source.put("default", "never comes", {})
    assert told == []
    source.put("default", "comes", {})
    assert told == ["stays"]


def test_who_comes_as_the_last_one_leaves_hears_of_changes(tmp_path: Path) -> None:
    """A pod takes over from another, whose watch ends just after it was believed."""
    root, source, told = SafeRoot(str(tmp_path)), FakeConfigSource(), list[str]()
    source.put("default", "o", {"k": b"1"})

    def spec(uid: str) -> VolumeSpec:
        return plugin.spec(Pod(uid=uid, name=uid), Volume(name="v", kind="configMap", spec={"name": "o"}))

    class Slow(ConfigStore):
        """Another pod looks as the last one leaves."""

        def forget(self, namespace: str, name: str, /) -> None:
            plugin.revision(spec("next"))
            super().forget(namespace, name)

    def look_again(uid: str) -> None:
        told.append(uid)
        plugin.revision(spec(uid))

    plugin = ConfigMap(root, FakeMounter(root.path), Slow(source, ChangeStrategy.WATCH), look_again)
    first = spec("first")
    plugin.revision(first)
    plugin.mount(first, Use(pod_uid="first"), "")
    plugin.unmount(first, Use(pod_uid="first"))
    told.clear()
    source.put("default", "o", {"k": b"2"})
    assert told == ["next"]
