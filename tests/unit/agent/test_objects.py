"""What an agent makes of config maps, secrets and parts of volumes, in files and in variables."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodealloc.agent import node_volumes, object_variables
from nodealloc.errors import ConfigurationError
from nodealloc.podlife import (
    ContainerConfigError,
    ContainerRunOptions,
    NodeConfiguration,
    NodeSettings,
    PodRecord,
    PodRunOptions,
)
from nodealloc.podspec import Container, Pod, Variable, Volume, VolumeUse
from nodealloc.runtime import PodReport
from nodealloc.testing.devices import wait_until
from nodealloc.testing.podfacts import FakePods
from nodealloc.testing.volume_sources import FakeConfigSource, FakeTokens
from nodealloc.testing.volumes import FakeMounter
from nodealloc.volumes import SafeRoot, SubPaths
from nodealloc.volumes.plugins import PodObjects, node_plugins

NODE = NodeSettings(name="n1", memory_capacity_bytes=1 << 30, pods_directory="")


def kinds(root: Path, objects: PodObjects, *, standalone: bool = False) -> list[str]:
    """Kinds of volumes that a node serves."""
    plugins = node_plugins(SafeRoot(str(root)), FakeMounter(str(root)), objects, standalone=standalone)
    return sorted(kind for one in plugins for kind in one.kinds)


def test_a_node_serves_what_it_has_something_for(tmp_path: Path) -> None:
    """A kubelet without an API server projects nothing; one that has config maps does."""
    maps = FakeConfigSource()
    own = ["downwardAPI", "emptyDir", "hostPath"]
    assert kinds(tmp_path, PodObjects()) == [*own, "projected"]
    assert kinds(tmp_path, PodObjects(), standalone=True) == own
    both = PodObjects(config_maps=maps, secrets=maps, tokens=FakeTokens())
    for standalone in (False, True):
        assert kinds(tmp_path, both, standalone=standalone) == sorted(
            [*own, "projected", "configMap", "secret"]
        )


def test_variables_are_of_the_same_objects() -> None:
    """What a config map writes as text, bytes of a secret; nobody is asked where there is nobody."""
    assert object_variables(PodObjects()) is None
    maps, secrets = FakeConfigSource(), FakeConfigSource()
    written = {"mode": b"fast", "picture": b"\xff", "note": b"of binaryData"}
    maps.put("team", "settings", written, binary=frozenset({"note"}))
    secrets.put("team", "key", {"password": b"\xff"})
    source = object_variables(PodObjects(config_maps=maps, secrets=secrets))
    assert source is not None
    assert source.config_map("team", "settings") == {"mode": "fast"}
    assert source.config_map("team", "none") is None
    assert source.secret("team", "key") == {"password": b"\xff"}
    alone = object_variables(PodObjects(secrets=secrets))
    assert alone is not None
    assert alone.config_map("team", "settings") is None


def parts(root: Path) -> tuple[NodeConfiguration, Container, PodRecord]:
    """A container that mounts a volume and two parts of it, one named by a variable."""
    uses = (
        VolumeUse(name="d", path="/all"),
        VolumeUse(name="d", path="/one", sub_path="logs"),
        VolumeUse(name="d", path="/two", sub_path_expr="$(WHO)/x"),
    )
    app = Container(name="app", image="i", variables=(Variable(name="WHO", value="me"),), volumes=uses)
    pod = Pod(uid="u", name="web", containers=(app,), volumes=(Volume(name="d", kind="emptyDir"),))
    (root / "volume").mkdir()
    safe = SafeRoot(str(root))
    configuration = NodeConfiguration(NODE, sub_paths=SubPaths(safe, FakeMounter(safe.path)))
    options = PodRunOptions(everywhere=ContainerRunOptions(volumes={"d": str(root / "volume")}))
    return configuration, app, PodRecord(pod=pod, provided={"volumes": options})


def test_parts_of_volumes_are_bound_when_a_container_is_made(tmp_path: Path) -> None:
    """Each under the number of its mount; a second time the same."""
    configuration, app, record = parts(tmp_path)
    above = f"{SafeRoot(str(tmp_path)).path}/pods/u/volume-subpaths/d/app"
    for _ in range(2):
        config = configuration.container(record, app, 0, "i", PodReport(uid="u"))
        places = {one.container_path: one.host_path for one in config.mounts}
        assert places == {"/all": str(tmp_path / "volume"), "/one": f"{above}/1", "/two": f"{above}/2"}
    assert (tmp_path / "volume/logs").is_dir()
    assert (tmp_path / "volume/me/x").is_dir()


def test_a_part_that_cannot_be_bound_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The container waits for it; what lies on the node is for who runs it."""
    configuration, app, record = parts(tmp_path)
    (tmp_path / "volume/logs").symlink_to("/etc")
    with pytest.raises(ContainerConfigError) as caught:
        configuration.container(record, app, 0, "i", PodReport(uid="u"))
    assert str(caught.value) == 'failed to prepare subPath for volumeMount "d" of container "app"'
    assert "pod u, path 'logs' of volume d: " in caplog.text
    assert str(tmp_path) in caplog.text


def test_who_mounts_is_given(tmp_path: Path) -> None:
    """An agent without the right to mount, and a test, have their own; half of a machine is none."""
    fake, pods = FakeMounter(str(tmp_path)), FakePods()
    with pytest.raises(ConfigurationError, match="mounter and table, of one machine"):
        node_volumes(tmp_path, pods, allocatable={}, mounter=fake)
    manager = node_volumes(tmp_path, pods, allocatable={}, mounter=fake, table=fake)
    app = Container(name="app", volumes=(VolumeUse(name="fast", path="/fast"),))
    fast = Volume(name="fast", kind="emptyDir", spec={"medium": "Memory"})
    pods.put(Pod(uid="u", name="web", containers=(app,), volumes=(fast,)))
    manager.pods_changed()

    def is_mounted() -> bool:
        manager.reconcile()
        return bool(fake.entries())

    wait_until(is_mounted)
    assert [one.target.rpartition("/")[2] for one in fake.entries()] == ["fast"]
    manager.close(5.0)
