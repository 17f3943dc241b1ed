"""What is remembered of an attached block volume, in a file that a crash leaves whole."""

from __future__ import annotations

import contextlib
import json
import os
from typing import Final, cast

from nodealloc import _attrs as attrs
from nodealloc._plain_file import open_plain
from nodealloc.podspec import Json
from nodealloc.volumes._model import VolumeMode, VolumeSpec
from nodealloc.volumes._paths import SafeRoot, naming

__all__ = ["BlockRecord", "BlockRecords"]

_MOST_BYTES: Final = 1 << 16
"""Of a record; a longer file is none."""


@attrs.frozen(kw_only=True)
class BlockRecord:
    """An attached volume.

    Attributes:
        name: Of the volume.
        path: Of its image or device.
        fstype: To make when it is empty.
        mode: File system or raw device.
        read_only: Whether everybody may only read.
        size_bytes: That was asked for, or None.
        formatting: File system that is being made right now, or "".
    """

    name: str
    path: str
    fstype: str
    mode: VolumeMode
    read_only: bool
    size_bytes: int | None
    formatting: str = ""

    @classmethod
    def of(cls, spec: VolumeSpec, /, *, formatting: str = "") -> BlockRecord:
        """The record of a volume."""
        return cls(
            name=spec.name,
            path=str(spec.config.get("path", "")),
            fstype=str(spec.config.get("fsType", "ext4")),
            mode=spec.mode,
            read_only=spec.read_only,
            size_bytes=spec.size_bytes,
            formatting=formatting,
        )


class BlockRecords:
    """Records of a plugin, one file a volume: `plugins/PLUGIN/records/NAME.json`. Thread-safe.

    A file is replaced by rename, so a reader finds the old content or the new.
    """

    def __init__(self, root: SafeRoot, plugin: str, /) -> None:
        self._root = root
        self._folder = root.join("plugins", plugin.replace("/", "~"), "records")

    def write(self, name: str, record: BlockRecord, /) -> None:
        """Remember; durable when this returns."""
        text = json.dumps(attrs.asdict(record) | {"mode": record.mode.value}, sort_keys=True)
        self._root.make_directory(self._folder)
        with self._root.open_directory(self._folder) as fd, naming(f"{self._folder}/{name}.json"):
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            new, final = f".{name}.new", f"{name}.json"
            with contextlib.suppress(FileNotFoundError):
                os.unlink(new, dir_fd=fd)
            with os.fdopen(os.open(new, flags, 0o600, dir_fd=fd), "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.rename(new, final, src_dir_fd=fd, dst_dir_fd=fd)
            folder = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=fd)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)

    def read(self, name: str, /) -> BlockRecord | None:
        """What is remembered; None for nothing, or for a file that is no record.

        Raises:
            OSError: It cannot be read now, so nobody knows.
        """
        try:
            with self._root.open_directory(self._folder) as fd, naming(f"{self._folder}/{name}.json"):
                file = open_plain(f"{name}.json", dir_fd=fd, follow_links=False)
                with os.fdopen(file, "rb") as stream:
                    text = stream.read(_MOST_BYTES)
        except FileNotFoundError:
            return None
        try:
            found = cast("dict[str, Json]", json.loads(text))
            size = found["size_bytes"]
            return BlockRecord(
                name=str(found["name"]),
                path=str(found["path"]),
                fstype=str(found["fstype"]),
                mode=VolumeMode(found["mode"]),
                read_only=bool(found["read_only"]),
                size_bytes=size if isinstance(size, int) else None,
                formatting=str(found["formatting"]),
            )
        except (ValueError, KeyError, TypeError, RecursionError):
            return None

    def drop(self, name: str, /) -> None:
        """Forget; an unknown one is no error."""
        with contextlib.suppress(FileNotFoundError), self._root.open_directory(self._folder) as fd:
            for file in (f".{name}.new", f"{name}.json"):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(file, dir_fd=fd)
