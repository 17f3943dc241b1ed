"""A watcher on inotify: the kernel says when; needs the extra `inotify`."""

from __future__ import annotations

import errno
import os
import select
import threading
from pathlib import Path
from types import ModuleType
from typing import Final, Protocol, cast

from nodealloc._typed import typed, typed_methods
from nodealloc._walk import subdirectories

__all__ = ["InotifyWatcher"]

_EVENTS = 0x8 | 0x100 | 0x200 | 0x40 | 0x80 | 0x400 | 0x800 | 0x1000000
"""CLOSE_WRITE, CREATE, DELETE, MOVED_FROM, MOVED_TO, DELETE_SELF, MOVE_SELF; ONLYDIR."""
_MOVED_SELF = 0x800
_BLIND: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})
"""Where nothing is left to look into a directory with, it may hold others that are to be watched."""
_ABSENT_S = 0.2
"""How often to look for a directory that is not there: nothing tells of its coming."""
_LONGEST_S = 1e6
"""Longer than that the kernel counts no milliseconds; whoever waited in vain asks again."""
_SETTLE_MS = 2
"""Events of one burst come together; reading on for a moment makes one look of them."""


class _Event(Protocol):
    wd: int
    mask: int


class _Inotify(Protocol):
    def add_watch(self, path: str, mask: int, /) -> int: ...

    def rm_watch(self, wd: int, /) -> None: ...

    def read(self, timeout: int | None, read_delay: int | None, /) -> list[_Event]: ...

    def fileno(self) -> int: ...

    def close(self) -> None: ...


def _library() -> ModuleType:
    try:
        import inotify_simple  # noqa: PLC0415 - an extra; everything else works without it
    except ImportError as error:
        raise ImportError("InotifyWatcher needs inotify_simple: pip install 'nodealloc[inotify]'") from error
    return cast("ModuleType", inotify_simple)


@typed_methods
class InotifyWatcher:
    """A `Watcher` that the kernel wakes; idle, it costs nothing.

    Directories are watched before the look that follows, so that whatever
    comes into a new directory is either in that look or an event of its own. A
    directory that is removed, moved away and made again is watched again.

    Args:
        directory: What to watch; need not exist.
        below: Whether directories in it are watched as well; never those with a
            dot at start.

    Raises:
        ImportError: The extra `inotify` is not installed.
        OSError: The kernel gives no inotify instance (`fs.inotify.max_user_instances`).
    """

    @typed
    def __init__(self, directory: str | Path, /, *, below: bool = True) -> None:
        self._directory = os.fspath(directory)
        self._below = below
        self._inotify = cast("_Inotify", _library().INotify())
        self._waker, self._wakee = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        # Not `select`: it takes no descriptor beyond 1023, and a hundred plugins have more.
        self._poll = select.poll()
        for descriptor in (self._inotify.fileno(), self._waker):
            self._poll.register(descriptor, select.POLLIN)
        self._lock = threading.Lock()
        self._closed = False
        self._inside = False
        self._root: tuple[int, int] | None = None
        self._watched: dict[int, str] = {}
        self.skipped: str = ""
        """Directories that could not be watched, with the reason; "" for none."""
        self._watch_all()
        self._first = True

    @typed
    def wait(self, timeout_s: float, /) -> bool:
        """See `Watcher`; one thread at a time."""
        with self._lock:
            if self._closed:
                return False
            self._inside = True
        try:
            return self._wait(timeout_s)
        finally:
            with self._lock:
                self._inside = False
                if self._closed:
                    self._give_back()

    def close(self) -> None:
        """See `Watcher`."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            if self._inside:
                os.write(self._wakee, b"x")
            else:
                self._give_back()

    def _wait(self, timeout_s: float) -> bool:
        if self._first:
            self._first = False
            return True
        left_s = min(timeout_s, _LONGEST_S)
        while not self._closed:
            if self._root != _identity(self._directory):
                self._watch_all()
                return True
            slice_s = min(left_s, _ABSENT_S) if self._root is None or self.skipped else left_s
            ready = {descriptor for descriptor, _ in self._poll.poll(max(slice_s, 0.0) * 1000)}
            if self._inotify.fileno() in ready:
                self._drain()
                self._watch_all()
                return True
            if self.skipped:
                self._watch_all()
                return True
            left_s -= slice_s
            if left_s <= 0:
                return False
        return False

    def _give_back(self) -> None:
        self._inotify.close()
        os.close(self._waker)
        os.close(self._wakee)

    def _drain(self) -> None:
        for event in self._inotify.read(0, _SETTLE_MS):
            # Whatever was moved away is no longer below the directory, yet would be watched on.
            if event.mask & _MOVED_SELF:
                self._forget(event.wd)

    def _forget(self, wd: int) -> None:
        if self._watched.pop(wd, None) is not None:
            try:
                self._inotify.rm_watch(wd)
            except OSError:
                return

    def _watch_all(self) -> None:
        """Watch the directory and all below it; asking twice for one costs a system call."""
        self._root = _identity(self._directory)
        skipped: list[str] = []
        watched: dict[int, str] = {}
        paths = subdirectories(self._directory, raises=_BLIND) if self._below else (self._directory,)
        try:
            for path in paths if self._root is not None else ():
                try:
                    watched[self._inotify.add_watch(path, _EVENTS)] = path
                except FileNotFoundError:
                    continue
                except OSError as error:
                    skipped.append(f"{path}: {os.strerror(error.errno or 0)}")
        except OSError as error:  # what is below a directory is not known now
            skipped.append(f"{error.filename}: {os.strerror(error.errno or 0)}")
        self._watched = watched
        self.skipped = "; ".join(skipped[:3])


def _identity(directory: str) -> tuple[int, int] | None:
    try:
        found = Path(directory).stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
