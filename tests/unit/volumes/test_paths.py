"""Paths below one root: walked without following links, deleted without crossing what they lead to."""

from __future__ import annotations

import errno
import os
import resource
import stat
from pathlib import Path

import pytest

from nodealloc.volumes import OutsideRootError, SafeRoot
from nodealloc.volumes._removal import _TreeWalk


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


@pytest.mark.parametrize(
    ("name", "words"),
    [("x" * 256, "256 bytes"), ("é" * 128, "256 bytes"), ("\ud800", "cannot be written")],
    ids=["long", "long in bytes", "half of a pair"],
)
def test_a_name_fits_into_a_directory(root: SafeRoot, name: str, words: str) -> None:
    """What no file system takes is refused as what could lead elsewhere is; the message can be printed."""
    with pytest.raises(OutsideRootError, match=words) as caught:
        root.join("pods", name)
    assert len(str(caught.value).encode()) < 500
    assert root.join("x" * 255, "\udcff")


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


def descriptors() -> list[str]:
    """Those that this process has open."""
    return sorted(one.name for one in Path("/proc/self/fd").iterdir())


def deep(top: Path, levels: int) -> None:
    """Directories in each other, deeper than any path may be long, with a file and a link in each."""
    fd = os.open(top, os.O_RDONLY | os.O_DIRECTORY)
    for _ in range(levels):
        os.mkdir("a directory", dir_fd=fd)
        os.symlink("/etc", "link", dir_fd=fd)
        inner = os.open("a directory", os.O_RDONLY | os.O_DIRECTORY, dir_fd=fd)
        os.close(fd)
        fd = inner
    os.close(fd)


def test_the_deepest_tree_is_deleted_with_few_descriptors(root: SafeRoot) -> None:
    """A pod chooses the depth of its directories; neither stack nor descriptors run out."""
    top = Path(root.path) / "tree"
    top.mkdir()
    deep(top, 3000)
    (top / "beside").mkdir()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(descriptors()) + 60, hard))
    try:
        root.remove_tree(str(top))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert not top.exists()


def test_descriptors_are_given_back_when_it_fails(root: SafeRoot, monkeypatch: pytest.MonkeyPatch) -> None:
    """A descriptor of a mount that was forgotten would keep it busy for ever."""

    def refused(*_args: object, **_options: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    path = root.join("a", "b", "c")
    root.make_directory(root.join("a"))
    (Path(root.path) / "a/file").write_text("x")
    before = descriptors()
    with monkeypatch.context() as patch:
        patch.setattr(os, "chmod", refused)
        with pytest.raises(OSError, match=f"Read-only file system: '{path}'"):
            root.make_directory(path)
        patch.setattr(os, "unlink", refused)
        with pytest.raises(OSError, match=f"Read-only file system: '{root.path}/a/file'"):
            root.remove_tree(root.join("a"))
    assert descriptors() == before


def test_what_refuses_to_be_named_is_a_mount(root: SafeRoot, monkeypatch: pytest.MonkeyPatch) -> None:
    """As one of NFS whose directory is gone; anything else that is wrong is no answer."""
    path, real, code = root.join("a", "b"), os.open, errno.ESTALE
    root.make_directory(path)

    def refused(name: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if name == "b":
            raise OSError(code, os.strerror(code))
        return real(name, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", refused)
    assert root.is_mount_point(path)
    code = errno.EACCES
    with pytest.raises(PermissionError):
        root.is_mount_point(path)


def test_a_tree_that_is_moved_while_it_goes_is_left(root: SafeRoot, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever moves a directory elsewhere meanwhile does not lead the deletion there."""
    outside = Path(root.path).parent / "outside"
    inner = Path(root.path) / "tree/inner"
    inner.mkdir(parents=True)
    (inner / "file").write_text("x")
    unlink = os.unlink

    def moving(name: str, *, dir_fd: int) -> None:
        inner.rename(outside / "moved")
        unlink(name, dir_fd=dir_fd)

    monkeypatch.setattr(os, "unlink", moving)
    with pytest.raises(OutsideRootError, match="moved away"):
        root.remove_tree(root.join("tree"))
    assert (outside / "precious").read_text() == "x"


def test_each_level_of_a_tree_costs_the_same(root: SafeRoot, monkeypatch: pytest.MonkeyPatch) -> None:
    """Paths, which grow with depth, are built for messages alone; calls are as many as there are levels."""
    built = 0
    where = _TreeWalk._where

    def counted(descent: _TreeWalk, name: str | None) -> str:
        nonlocal built
        built += 1
        return where(descent, name)

    opened = 0
    real = os.open

    def opening(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        nonlocal opened
        opened += 1
        return real(path, flags, mode, dir_fd=dir_fd)

    top = Path(root.path) / "tree"
    top.mkdir()
    deep(top, 2000)
    with monkeypatch.context() as patch:
        patch.setattr(_TreeWalk, "_where", counted)
        patch.setattr(os, "open", opening)
        root.remove_tree(str(top))
    assert built == 0
    assert opened < 5 * 2000


def test_a_message_about_a_deep_directory_is_short(root: SafeRoot, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of thousands of directories the first and the last are named, and how many are between."""

    def refused(*_args: object, **_options: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    top = Path(root.path) / "tree"
    top.mkdir()
    deep(top, 1000)
    with monkeypatch.context() as patch:
        patch.setattr(os, "rmdir", refused)
        with pytest.raises(OSError, match="Read-only file system") as caught:
            root.remove_tree(str(top))
    root.remove_tree(str(top))
    assert "/(984 more)/" in str(caught.value)
    assert len(str(caught.value)) < 1000
