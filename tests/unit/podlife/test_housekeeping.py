"""What is left of pods that nobody knows: what goes, what holds the rest; no mount is ever crossed."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodealloc.podlife import (
    MountInTheWayError,
    PodFolders,
    Remnant,
    RemnantKind,
    plan_housekeeping,
)
from tests.deep_tree import deepened

FOLDER = Remnant(uid="old", kind=RemnantKind.FOLDER, where="/pods/old")
VOLUME = Remnant(uid="old", kind=RemnantKind.VOLUME, where="/pods/old/volumes/data")
CGROUP = Remnant(uid="old", kind=RemnantKind.CGROUP, where="kubepods/pod-old")


def test_what_nobody_knows_goes_the_inner_first() -> None:
    """Volumes, then the cgroup, then the folder; a pod that is known keeps all of it."""
    known = Remnant(uid="web", kind=RemnantKind.FOLDER, where="/pods/web")
    plan = plan_housekeeping([FOLDER, known, CGROUP, VOLUME], {"web"}, is_ready=True)
    assert (plan.remove, plan.held) == ((VOLUME, CGROUP, FOLDER), ())


def test_nothing_goes_before_every_source_was_heard() -> None:
    """It may be wanted by the one that has not spoken."""
    plan = plan_housekeeping([FOLDER], (), is_ready=False)
    assert plan.remove == ()
    assert "was heard" in plan.held[0].why


def test_a_mount_holds_its_volume_and_its_folder() -> None:
    """The blocker is named, and what does not depend on it goes."""
    mounted = Remnant(uid="old", kind=RemnantKind.VOLUME, where=VOLUME.where, mounts=(VOLUME.where, "/x"))
    plan = plan_housekeeping([FOLDER, CGROUP, mounted], (), is_ready=True)
    assert plan.remove == (CGROUP,)
    assert [one.remnant for one in plan.held] == [mounted, FOLDER]
    assert [one.why for one in plan.held] == [
        f"{VOLUME.where} is a mount point and 1 more; unmount it first",
        f"volume {VOLUME.where} is still there",
    ]


def test_a_process_holds_its_cgroup() -> None:
    """It is said how many there are."""
    busy = Remnant(uid="old", kind=RemnantKind.CGROUP, where=CGROUP.where, processes=3)
    plan = plan_housekeeping([busy], (), is_ready=True)
    assert plan.held[0].why.startswith("3 processes")


def test_folders_are_found_with_what_is_mounted_below(tmp_path: Path) -> None:
    """Files and links beside them are not folders of pods."""
    root = tmp_path.resolve()
    (root / "old").mkdir()
    (root / "file").write_text("")
    (root / "link").symlink_to(root / "old")
    line = f"30 20 0:1 / {root}/old/data rw - tmpfs tmpfs rw\n"
    folders = PodFolders(str(root), mountinfo=lambda: line)
    (found,) = folders.found()
    assert (found.uid, found.mounts) == ("old", (f"{root}/old/data",))
    assert PodFolders(str(root / "absent")).found() == ()


def test_a_folder_has_the_mounts_at_it_and_below_it_alone(tmp_path: Path) -> None:
    """Names that begin alike, and what stands between them in order, are others'."""
    root = tmp_path.resolve()
    for name in ("a", "a-b", "a0", "b"):
        (root / name).mkdir()
    places = ["", "/a", "/a/x", "/a/x/y", "/a-b", "/a-b/x", "/a0", "/a0/x", "/a.b/x"]
    table = "".join(f"{at} 20 0:1 / {root}{place} rw - tmpfs tmpfs rw\n" for at, place in enumerate(places))
    found = {one.uid: one.mounts for one in PodFolders(str(root), mountinfo=lambda: table).found()}
    assert found == {
        "a": tuple(f"{root}{one}" for one in ("/a", "/a/x", "/a/x/y")),
        "a-b": (f"{root}/a-b", f"{root}/a-b/x"),
        "a0": (f"{root}/a0", f"{root}/a0/x"),
        "b": (),
    }


def test_a_folder_goes_with_all_that_is_in_it_and_nothing_else(tmp_path: Path) -> None:
    """A link in it goes as a link; what it leads to stays."""
    root = tmp_path.resolve()
    kept = root / "kept"
    kept.write_text("data")
    inner = root / "pods" / "old" / "plugins" / "x"
    inner.mkdir(parents=True)
    (inner / "link").symlink_to(kept)
    (inner / "file").write_text("a")
    folders = PodFolders(str(root / "pods"))
    (found,) = folders.found()
    folders.remove(found)
    folders.remove(found)
    assert (kept.read_text(), list((root / "pods").iterdir())) == ("data", [])


def test_a_folder_goes_however_deep_it_is(tmp_path: Path) -> None:
    """A pod chooses how deep: neither calls nor descriptors of the agent grow with it."""
    here = tmp_path / "old"
    here.mkdir()
    with deepened(here, 1_100):
        folders = PodFolders(str(tmp_path))
        (found,) = folders.found()
        folders.remove(found)
        assert folders.found() == ()


def test_what_is_not_below_the_root_is_refused(tmp_path: Path) -> None:
    """No path of somebody else's is ever removed."""
    folders = PodFolders(str(tmp_path))
    for where in ("/etc", f"{tmp_path}/..", f"{tmp_path}/a/b"):
        with pytest.raises(ValueError, match="no folder below"):
            folders.remove(Remnant(uid="a", kind=RemnantKind.FOLDER, where=where))


def test_another_mount_is_never_entered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bind mount of the same disk that no table told of holds the folder, and loses nothing."""
    data = tmp_path / "old" / "data"
    data.mkdir(parents=True)
    (data / "precious").write_text("1")
    numbers = {str((tmp_path / "old" / "data").stat().st_ino): "99"}

    def mount_of(folder: int) -> str:
        import os

        return numbers.get(str(os.fstat(folder).st_ino), "7")

    monkeypatch.setattr("nodealloc.volumes._removal.mount_id", mount_of)
    folders = PodFolders(str(tmp_path))
    with pytest.raises(MountInTheWayError, match="old/data"):
        folders.remove(folders.found()[0])
    assert (data / "precious").read_text() == "1"
