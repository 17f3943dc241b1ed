"""Parts of volumes (`subPath`), without mounts of the kernel's."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from nodealloc.testing.volumes import FakeMounter
from nodealloc.volumes import SafeRoot, SubPaths


class NoRoom(FakeMounter):
    """Cannot mount."""

    def mount(self, source: str, target: str, *, fstype: str = "", options: Sequence[str] = ()) -> None:
        """As a disk that fails."""
        raise OSError(errno.EIO, os.strerror(errno.EIO), target)


def test_what_cannot_be_bound_is_named_by_its_place(tmp_path: Path) -> None:
    """Where it was to be bound is what failed, not the part of the volume, which is fine."""
    (tmp_path / "volume").mkdir()
    parts = SubPaths(SafeRoot(str(tmp_path)), NoRoom(str(tmp_path)))
    with pytest.raises(OSError, match="error") as caught:
        parts.bind("u", "app", 0, volume="v", folder=str(tmp_path / "volume"), path="a/b")
    assert caught.value.filename == str(tmp_path / "pods/u/volume-subpaths/v/app/0")
    (tmp_path / "volume/a/b").rmdir()
    (tmp_path / "volume/a/b").touch()
    with pytest.raises(NotADirectoryError) as caught:
        parts.bind("u", "app", 0, volume="v", folder=str(tmp_path / "volume"), path="a/b/c")
    assert caught.value.filename == f"{tmp_path}/volume/a/b/c"
