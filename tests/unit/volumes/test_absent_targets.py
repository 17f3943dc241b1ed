"""Mounts on, and binds of, what is not there: the error has the whole path, and is one of a mount."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from nodealloc.volumes import LinuxMounter, MountError, SafeRoot


@pytest.mark.parametrize("below", ["absent", "absent/deeper"])
def test_a_target_that_is_not_there_is_told_as_that(tmp_path: Path, below: str) -> None:
    """It had been an error of the system with the last name of the path alone."""
    target = f"{tmp_path}/{below}"
    with pytest.raises(MountError, match="No such file or directory; make the target first") as caught:
        LinuxMounter(SafeRoot(str(tmp_path))).mount("tmpfs", target, fstype="tmpfs")
    assert (caught.value.action, caught.value.target, caught.value.errno) == ("mount", target, errno.ENOENT)


def test_a_source_below_the_root_that_is_not_there_is_named(tmp_path: Path) -> None:
    """Not the target, which is."""
    target = tmp_path / "target"
    target.mkdir()
    mounter = LinuxMounter(SafeRoot(str(tmp_path)))
    with pytest.raises(MountError, match=f"source {tmp_path}/absent is not there") as caught:
        mounter.mount(f"{tmp_path}/absent", str(target), options=["bind"])
    assert caught.value.target == str(target)
