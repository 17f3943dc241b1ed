"""A fake and a check for whoever says when to look at a directory.

>>> watcher = FakeWatcher()
>>> watcher.wait(0.0), watcher.wait(0.0)
(True, False)
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

from nodealloc.dirwatch import Watcher
from nodealloc.testing._wording import in_words
from nodealloc.testing.pluginreg import bare_socket

__all__ = ["FakeWatcher", "check_watcher"]

_SOON_S = 10.0
_TIMES = 1000


class FakeWatcher:
    """A `Watcher` that says so when told. Thread-safe."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._reason = True
        self._closed = False

    def poke(self) -> None:
        """Give a reason to look."""
        with self._changed:
            self._reason = True
            self._changed.notify_all()

    def wait(self, timeout_s: float, /) -> bool:
        """See `Watcher`."""
        with self._changed:
            self._changed.wait_for(lambda: self._reason or self._closed, timeout_s)
            reason, self._reason = self._reason and not self._closed, False
        return reason

    def close(self) -> None:
        """See `Watcher`."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()


@in_words
def check_watcher(
    make: Callable[[Path], Watcher], directory: Path, /, *, nudge: Callable[[Watcher], None] | None = None
) -> None:
    """Hold a `Watcher` to its promises on a real directory.

    Args:
        make: From a directory to a new watcher of it.
        directory: Does not exist yet; its parent does. Is left empty or absent.
        nudge: Called after each change, for a watcher that knows of none by itself.
    """
    directory.mkdir()
    nested = directory / "nested" / "deeper"
    away = directory.with_name(directory.name + "-away")
    watcher = make(directory)
    try:
        watcher.wait(0.05)
        changes: tuple[tuple[str, Callable[[], None]], ...] = (
            ("a new socket", lambda: bare_socket(directory / "a.sock")),
            ("a second one", lambda: bare_socket(directory / "b.sock")),
            ("a removed socket", (directory / "a.sock").unlink),
            ("a socket that was made anew", lambda: _anew(directory / "b.sock")),
            ("a socket that was moved", lambda: _move(directory / "b.sock", directory / "c.sock")),
            ("a nested directory with its socket", lambda: _nested(nested)),
            ("a socket beside it later", lambda: bare_socket(nested / "late.sock")),
            ("a nested directory that goes", lambda: _remove(directory / "nested")),
            ("the directory moved away and made again", lambda: _replace(directory, away)),
            ("a socket in the directory that was made again", lambda: bare_socket(directory / "d.sock")),
            ("the directory removed", lambda: _remove(directory)),
            ("the directory made again", lambda: _made(directory)),
        )
        for name, change in changes:
            change()
            if nudge is not None:
                nudge(watcher)
            assert _told(watcher), f"nobody said to look after: {name}"
            assert any(not watcher.wait(0.05) for _ in range(_TIMES)), (
                f"always a reason to look after: {name}"
            )
        waiting = threading.Thread(target=watcher.wait, args=(_SOON_S * 3,))
        waiting.start()
        watcher.close()
        waiting.join(_SOON_S)
        assert not waiting.is_alive(), "close() ends a wait in another thread"
    finally:
        watcher.close()
        watcher.close()
        _remove(directory)
        _remove(away)
    assert not watcher.wait(0.01), "a closed watcher gives no reason to look"


def _told(watcher: Watcher) -> bool:
    ends = time.monotonic() + _SOON_S
    while time.monotonic() < ends:
        if watcher.wait(0.5):
            return True
    return False


def _anew(path: Path) -> None:
    path.unlink()
    bare_socket(path)


def _move(source: Path, target: Path) -> None:
    source.rename(target)


def _nested(path: Path) -> None:
    path.mkdir(parents=True)
    bare_socket(path / "n.sock")


def _made(path: Path) -> None:
    path.mkdir()
    bare_socket(path / "e.sock")


def _replace(directory: Path, away: Path) -> None:
    directory.rename(away)
    _made(directory)


def _remove(path: Path) -> None:
    if not path.is_dir():
        return
    for entry in path.iterdir():
        if entry.is_dir():
            _remove(entry)
        else:
            entry.unlink()
    path.rmdir()
