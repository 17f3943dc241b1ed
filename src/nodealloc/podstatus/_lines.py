"""A sink that keeps all that was told: a line of JSON for each."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

from nodealloc._arguments import check
from nodealloc._typed import typed
from nodealloc.errors import ConfigurationError
from nodealloc.podfacts import PodStatus, status_to_manifest
from nodealloc.podspec import Pod

__all__ = ["JsonLinesSink"]


class JsonLinesSink:
    """A `Sink`: a line has the time, the pod's uid, namespace and name, and its status; null for gone.

    Thread-safe. The file only grows: whoever reads it follows it, or turns it over. Once it was
    moved away, removed or replaced, the next line goes to what the path leads to, which is made if need be.
    A pod that nobody can name any more, and of which nothing was told, has no line.
    The first line of each sink is empty, as it ends one that a crash cut short: pass over empty lines.

    Args:
        path: The file; what stands in it stays.
        pod: Finds a pod by its uid; None where it is not known.
        unix_s: The time of a line, in seconds.

    Raises:
        OSError: The file cannot be written, or is a pipe that nobody reads.
    """

    @typed
    def __init__(
        self,
        path: Path | str,
        pod: Callable[[str], Pod | None],
        *,
        unix_s: Callable[[], float] = time.time,
    ) -> None:
        self._file = os.fdopen(_opened(path), "ab", buffering=0)
        self._path = path
        self._pod, self._unix_s, self._lock = pod, unix_s, threading.Lock()
        self._names: dict[str, Pod] = {}
        self._is_cut = False
        try:
            self._append(b"\n")  # ends a line that a crash cut short; whoever reads knows that a writer came
        except OSError:
            self._file.close()
            raise

    def told(self, uid: str, status: PodStatus, /) -> None:
        """Write a line."""
        self._write(uid, status_to_manifest(status))

    def gone(self, uid: str, /) -> None:
        """Write a last line."""
        self._write(uid, None)
        self._names.pop(uid, None)

    def close(self) -> None:
        """Let go of the file; nothing can be told any more."""
        self._file.close()

    def _write(self, uid: str, status: object) -> None:
        pod = self._pod(uid) or self._names.get(uid)
        if pod is None:
            return
        self._names[uid] = check(
            f"JsonLinesSink: pod of {uid}", pod, Pod, "a Pod, or None for one that nobody knows"
        )
        line = {
            "unix_s": self._unix_s(),
            "uid": uid,
            "namespace": pod.namespace,
            "name": pod.name,
            "status": status,
        }
        with self._lock:
            if self._file.closed:
                raise ConfigurationError(f"{self._path}: this sink was closed; make another one")
            self._follow()
            self._append(b"\n" * self._is_cut + json.dumps(line).encode() + b"\n")

    def _follow(self) -> None:
        """Open anew what the path leads to where that is another file by now, or none."""
        try:
            there = Path(self._path).stat()
        except FileNotFoundError:
            there = None
        except OSError:
            return  # nobody knows: a disk that does not answer has not moved the file
        if there is None or not os.path.samestat(there, os.fstat(self._file.fileno())):
            file = os.fdopen(_opened(self._path), "ab", buffering=0)
            self._file.close()
            self._file, self._is_cut = file, os.fstat(file.fileno()).st_size > 0

    def _append(self, data: bytes) -> None:
        """All of it, or an error and nothing later: whoever hears of the error tells anew."""
        while data:
            try:
                written = self._file.write(data) or 0
            except OSError as error:
                error.filename = str(self._path)
                raise
            data = data[written:]
            self._is_cut = bool(data)


def _opened(path: Path | str) -> int:
    """A descriptor to append by; a pipe that nobody reads is refused, not waited for."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOCTTY
    descriptor = os.open(path, flags | os.O_NONBLOCK, 0o666)
    os.set_blocking(descriptor, True)
    return descriptor
