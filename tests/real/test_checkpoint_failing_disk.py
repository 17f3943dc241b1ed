"""A real file system on a disk that loses blocks, or takes none: what was stored stays, and is no damage."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from nodealloc.checkpoint import (
    Checkpoint,
    FileStore,
    Formats,
    JsonCheckpoint,
    SqliteStore,
    StoreFailedError,
    inspect,
)

pytestmark = [pytest.mark.real, pytest.mark.root]

FORMATS: Formats = {"row.*": JsonCheckpoint.unmarshal}
BLOCK = 1024


def row(number: int, size: int = 50) -> JsonCheckpoint:
    """A record of some size."""
    return JsonCheckpoint(kind="row", version=1, value=[number, "x" * size])


OLD: dict[str, Checkpoint] = {f"row.{n}": row(n) for n in range(3)}
OLD["row.3"] = row(3, 60_000)
LARGE: dict[str, Checkpoint] = {f"row.{n}": row(n + 10, 2_000_000) for n in range(3)}


def call(*words: object) -> str:
    """What a program of the machine says."""
    return subprocess.run(list(map(str, words)), check=True, capture_output=True, text=True).stdout.strip()


class Disk:
    """An ext4 without a journal, on a loop device, whose blocks lie in a file on a tmpfs.

    Attributes:
        folder: Where it is mounted.
    """

    def __init__(self, root: Path) -> None:
        self.folder = root / "mounted"
        self._behind = root / "behind"
        self._image, self._ballast = self._behind / "image", self._behind / "ballast"
        self._lost: tuple[int, bytes] = (0, b"")

    def make(self, undone: contextlib.ExitStack) -> None:
        """Make and mount it; `undone` takes it away."""
        for one in (self.folder, self._behind):
            one.mkdir()
        call("mount", "-t", "tmpfs", "-o", "size=40m", "tmpfs", self._behind)
        # The kernel may let go of the loop device a moment after it was told to.
        undone.callback(call, "umount", "--lazy", self._behind)
        with self._image.open("wb") as file:
            file.truncate(32 << 20)
        call("mkfs.ext4", "-q", "-O", "^has_journal", "-b", BLOCK, self._image)
        device = call("losetup", "--find", "--show", self._image)
        undone.callback(call, "losetup", "--detach", device)
        call("mount", "-o", "errors=continue", device, self.folder)
        undone.callback(call, "umount", self.folder)

    def take_nothing(self) -> None:
        """From now on a block that was never written is none: writing it fails, as on a broken disk."""
        os.sync()
        with self._ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(bytes(1 << 16))

    def lose_from(self, file: Path, part: float) -> None:
        """Lose the blocks from some part of a file on, and all that lie behind it."""
        os.sync()
        blocks: list[int] = []
        for line in call("filefrag", "-v", f"-b{BLOCK}", file).splitlines():
            fields = line.split(":")
            if fields[0].strip().isdigit():
                first, last = fields[2].split("..")
                blocks += range(int(first), int(last) + 1)
        at = blocks[int(part * (len(blocks) - 1))] * BLOCK
        with self._image.open("rb") as image:
            image.seek(at)
            self._lost = (at, image.read())
        os.truncate(self._image, at)
        self.take_nothing()
        descriptor = os.open(file, os.O_RDONLY)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)

    def mend(self) -> None:
        """All blocks are there, with what they had."""
        self._ballast.unlink(missing_ok=True)
        at, data = self._lost
        if data:
            with self._image.open("r+b") as image:
                image.seek(at)
                image.write(data)


@pytest.fixture
def disk(tmp_path: Path, as_root: None) -> Iterator[Disk]:
    """One that can be broken."""
    made = Disk(tmp_path)
    for tool in ("losetup", "mkfs.ext4", "filefrag"):
        if shutil.which(tool) is None:
            pytest.skip(f"no {tool}")
    with contextlib.ExitStack() as undone:
        try:
            made.make(undone)
        except subprocess.CalledProcessError as error:
            pytest.skip(f"{error.cmd[0]} refused: {error.stderr.strip()}")
        undone.callback(made.mend)
        yield made


@pytest.mark.parametrize("part", [0.0, 0.1, 0.5, 0.9, 1.0])
def test_a_page_that_the_disk_does_not_give_is_no_damage(disk: Disk, part: float) -> None:
    """SQLite says "malformed" of one; the store would have begun anew, with nothing in it."""
    path = disk.folder / "store"
    with SqliteStore(path, FORMATS) as store:
        store.commit(OLD)
    disk.lose_from(path, part)
    for _ in range(2):
        with pytest.raises(StoreFailedError, match=r"/store: (read|sqlite) failed \(.*I(nput)?/(outp|O)"):
            SqliteStore(path, FORMATS)
        with pytest.raises(StoreFailedError, match=r"read failed \(Input/output error\)"):
            inspect(path)
    assert not list(disk.folder.glob("*damaged*"))
    disk.mend()
    with SqliteStore(path, FORMATS) as store:
        assert store.read().is_whole
        assert store.read().values == OLD


@pytest.mark.parametrize("kind", [FileStore, SqliteStore])
def test_a_disk_that_takes_no_block_refuses_a_commit_and_keeps_what_it_had(
    disk: Disk, kind: type[FileStore | SqliteStore]
) -> None:
    """The error names a file of the store; the next process finds what was there, or the commit whole.

    Whole it may stand in a log that could not be folded when the store was closed.
    """
    path = disk.folder / "store"
    with kind(path, FORMATS) as store:
        store.commit(OLD)
        disk.take_nothing()
        for _ in range(2):
            with pytest.raises(StoreFailedError, match=str(path)) as refused:
                store.commit(LARGE)
            assert refused.value.code & 0xFF in {errno.EIO, errno.ENOSPC, 10}
            assert store.read().values == OLD
    with kind(path, FORMATS) as store:
        assert store.read().is_whole
        assert store.read().values in ([OLD] if kind is FileStore else [OLD, {**OLD, **LARGE}])
        disk.mend()
        store.commit(LARGE)
    with kind(path, FORMATS) as store:
        assert store.read().values == {**OLD, **LARGE}
