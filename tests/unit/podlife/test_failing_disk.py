"""What goes on where the disk does not give the folders of pods: nothing of theirs is removed for that."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nodealloc.podlife.preparers import FolderPreparer


def failing(
    monkeypatch: pytest.MonkeyPatch, number: int, where: Callable[[object], bool]
) -> Callable[[], int]:
    """Let the first listing of such a folder fail, as a disk does now and then; says how many have."""
    real, failed = os.scandir, 0

    def fail(folder: Any = ".") -> Any:
        nonlocal failed
        if where(folder) and not failed:
            failed += 1
            raise OSError(number, os.strerror(number), folder)
        return real(folder)

    monkeypatch.setattr(os, "scandir", fail)
    return lambda: failed


@pytest.mark.parametrize("number", [errno.EIO, errno.EACCES, errno.ESTALE, errno.EMFILE])
@pytest.mark.parametrize("where", ["u/volumes", "u/volumes/kubernetes.io~local"])
def test_a_folder_of_volumes_that_cannot_be_listed_holds_some(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, where: str
) -> None:
    """At the start of an agent, of a pod that nobody knows: what is in there is somebody's data."""
    data = tmp_path / "pods" / "u" / "volumes" / "kubernetes.io~local" / "data" / "file"
    data.parent.mkdir(parents=True)
    data.write_text("precious", encoding="utf-8")
    (tmp_path / "pods" / "other").mkdir()
    folders = FolderPreparer(tmp_path / "pods", lambda _: False, mountinfo=lambda: "")
    failed = failing(monkeypatch, number, lambda folder: str(folder).endswith(f"/{where}"))
    folders.settle(lambda: ())
    assert failed() == 1
    assert data.read_text(encoding="utf-8") == "precious"
    assert not (tmp_path / "pods" / "other").exists()
