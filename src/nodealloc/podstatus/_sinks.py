"""Two sinks: a folder of files, and a pair of callables."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

from nodealloc import _attrs as attrs
from nodealloc._arguments import done
from nodealloc._typed import typed, typed_fields, typed_methods
from nodealloc.errors import ConfigurationError
from nodealloc.podfacts import PodStatus, status_to_manifest

__all__ = ["CallSink", "FolderSink"]


@typed_fields
@attrs.frozen
class CallSink:
    """Calls a function with each status, and another one with each end.

    Attributes:
        on_told: Takes a uid and the status that is true now.
        on_gone: Takes a uid.
    """

    on_told: Callable[[str, PodStatus], object]
    on_gone: Callable[[str], object] = lambda _: None

    def told(self, uid: str, status: PodStatus, /) -> None:
        """Hand it over."""
        done("CallSink: on_told", self.on_told, uid, status)

    def gone(self, uid: str, /) -> None:
        """Hand it over."""
        done("CallSink: on_gone", self.on_gone, uid)


@typed_methods
class FolderSink:
    """Keeps a file for each pod: `UID.json`, its uid and its status as the API has it.

    A file is always whole, and on the disk when a call returns. One folder has
    one writer.

    Args:
        folder: Where; made where it is not there.

    Raises:
        ConfigurationError: A file is in its place, or in that of a folder above it, or it cannot be
            made, or rid of what a writer that was killed has left.
    """

    @typed
    def __init__(self, folder: Path | str) -> None:
        self._folder = Path(folder)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            for left in self._folder.glob(".*.new"):  # its writer was killed
                left.unlink(missing_ok=True)
        except (FileExistsError, NotADirectoryError) as error:
            said = f"FolderSink: folder: a file is at {error.filename}; name a folder, or take the file away"
            raise ConfigurationError(said) from error
        except OSError as error:
            said = f"FolderSink: folder: {error.filename}: {error.strerror}; name one that can be written"
            raise ConfigurationError(said) from error

    def path(self, uid: str, /) -> Path:
        """The file of a pod."""
        return self._folder / f"{quote(uid, safe='')}.json"

    def told(self, uid: str, status: PodStatus, /) -> None:
        """Replace the pod's file.

        Raises:
            OSError: It could not be written; the one before is as it was.
        """
        document = {"metadata": {"uid": uid}, "status": status_to_manifest(status)}
        made = f"{self._folder}/.{os.urandom(8).hex()}.new"
        descriptor = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                json.dump(document, file, indent=1)
                file.write("\n")
                file.flush()
                os.fsync(file.fileno())
            os.replace(made, self.path(uid))  # noqa: PTH105 - a Path would be made of it first
        except BaseException as error:
            with contextlib.suppress(OSError):
                os.unlink(made)  # noqa: PTH108 - the same
            if isinstance(error, OSError) and error.errno is not None and error.filename is None:
                error.filename = str(self.path(uid))
            raise
        self._flush()

    def gone(self, uid: str, /) -> None:
        """Remove the pod's file; one that is not there is no error."""
        self.path(uid).unlink(missing_ok=True)
        self._flush()

    def _flush(self) -> None:
        descriptor = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        except OSError as error:
            error.filename = str(self._folder)
            raise
        finally:
            os.close(descriptor)
