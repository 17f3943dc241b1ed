"""A pod's directories: gone with its last volume, and no sooner."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from nodealloc.podspec import Pod, Volume
from nodealloc.testing.volumes import FakeMounter
from nodealloc.volumes import PodsDirectory, SafeRoot, Use, leave_pod, pod_path
from nodealloc.volumes.plugins import EmptyDir

POD = Pod(uid="u", name="pod")


@pytest.fixture
def root(tmp_path: Path) -> SafeRoot:
    """An empty one."""
    return SafeRoot(str(tmp_path))


def test_the_last_volume_takes_its_pods_directory_along(root: SafeRoot) -> None:
    """What somebody else keeps there stays, and so does what holds it."""
    plugin = EmptyDir(root, FakeMounter(root.path))
    specs = [plugin.spec(POD, Volume(name=name, kind="emptyDir")) for name in "ab"]
    use = Use(pod_uid="u", generation=1, volume="v")
    for spec in specs:
        plugin.mount(spec, use, "")
    plugin.unmount(specs[0], use)
    assert Path(plugin.path(specs[1], use)).is_dir()
    note = Path(root.path, "pods", "u", "note")
    note.touch()
    plugin.unmount(specs[1], use)
    assert [*Path(root.path, "pods").rglob("*")] == [note.parent, note]
    note.unlink()
    plugin.unmount(specs[1], use)
    assert [*Path(root.path).rglob("*")] == [Path(root.path, "pods")]


def test_what_a_killed_program_left_empty_is_tidied(root: SafeRoot, tmp_path: Path) -> None:
    """At any depth; files, links and volumes stay, and nothing is followed."""
    outside = tmp_path / "outside" / "volumes" / "p"
    for path in ("a", "b/volumes", "c/volumes/p", "d/volumeDevices/p", "e/volumes/p/kept", "f/other"):
        Path(root.path, "pods", path).mkdir(parents=True)
    outside.mkdir(parents=True)
    Path(root.path, "pods", "link").symlink_to(tmp_path / "outside")
    Path(root.path, "pods", "file").touch()
    leftovers = PodsDirectory(root, FakeMounter(root.path))
    for _ in range(2):
        leftovers.tidy()
        assert sorted(path.name for path in Path(root.path, "pods").iterdir()) == ["e", "f", "file", "link"]
    assert Path(root.path, "pods/e/volumes/p/kept").is_dir()
    assert outside.is_dir()


def test_a_directory_is_made_while_others_are_tidied_away(root: SafeRoot) -> None:
    """One volume of a pod comes while another goes; neither hinders the other."""
    done = threading.Event()
    path, other = (pod_path(root, "p", "u", name) for name in ("a", "b"))

    def tidy() -> None:
        while not done.wait(0.0001):
            leave_pod(root, other)

    tidier = threading.Thread(target=tidy)
    tidier.start()
    try:
        for _ in range(500):
            root.make_directory(path)
            assert Path(path).is_dir()
            root.remove_directory(path)
    finally:
        done.set()
        tidier.join()
