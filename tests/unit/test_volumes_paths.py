"""Paths below one root: walked without following links, deleted without crossing what they lead to."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from nodealloc.volumes import OutsideRootError, SafeRoot


@pytest.fixture
def root(tmp_path: Path) -> SafeRoot:
    """A root with something precious beside it."""
    (tmp_path / "root").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/precious").write_text("x")
    return SafeRoot(str(tmp_path / "root"))


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "/", "nul\0"])
def test_a_name_is_one_component(root: SafeRoot, name: str) -> None:
    """Anything that could lead elsewhere is no name."""
    with pytest.raises(OutsideRootError, match="is no file name"):
        root.join("pods", name)


@pytest.mark.parametrize("path", ["relative", "/etc", "{root}/../outside", "{root}x/y", "{root}"])
def test_a_path_outside_is_refused(root: SafeRoot, path: str) -> None:
    """Before anything is touched."""
    with pytest.raises(OutsideRootError):
        root.remove_tree(path.format(root=root.path))


def test_links_are_not_followed(root: SafeRoot) -> None:
    """Neither on the way nor at the end; a tree loses the link and keeps its target."""
    outside = Path(root.path).parent / "outside"
    (Path(root.path) / "link").symlink_to(outside)
    for call in (root.make_directory, root.remove_tree, root.remove_directory):
        with pytest.raises(OutsideRootError):
            call(root.join("link", "deep"))
    with pytest.raises(OutsideRootError):
        root.remove_tree(root.join("link"))
    (Path(root.path) / "tree").mkdir()
    (Path(root.path) / "tree/link").symlink_to(outside)
    root.remove_tree(root.join("tree"))
    assert (outside / "precious").read_text() == "x"
    assert not (Path(root.path) / "tree").exists()


def test_modes_do_not_depend_on_the_umask(root: SafeRoot) -> None:
    """A directory has the mode that was asked for; one left half made gets it."""
    before = os.umask(0o077)
    try:
        root.make_directory(root.join("a", "b"), mode=0o777)
    finally:
        os.umask(before)
    inner = Path(root.path) / "a/b"
    assert stat.S_IMODE(inner.stat().st_mode) == 0o777
    assert stat.S_IMODE(inner.parent.stat().st_mode) == 0o750
    inner.chmod(0)
    root.make_directory(str(inner), mode=0o777)
    assert stat.S_IMODE(inner.stat().st_mode) == 0o777
    inner.chmod(0o700)
    root.make_directory(str(inner), mode=0o777)
    assert stat.S_IMODE(inner.stat().st_mode) == 0o700


def test_absent_things_are_no_error(root: SafeRoot) -> None:
    """Deleting, listing and asking may be repeated."""
    path = root.join("absent", "deep")
    root.remove_tree(path)
    root.remove_directory(path)
    assert root.list(path) == []
    assert not root.is_mount_point(path)
    root.make_directory(path)
    assert root.list(root.join("absent")) == ["deep"]
    root.remove_tree(root.join("absent"))
    assert root.list(root.path) == []


def test_a_file_is_no_tree(root: SafeRoot) -> None:
    """What should be a directory and is not stays."""
    file = Path(root.path) / "file"
    file.write_text("x")
    with pytest.raises(OutsideRootError, match="where a directory should"):
        root.remove_tree(str(file))
    assert file.exists()
