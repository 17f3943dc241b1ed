"""Where statuses go: a line of JSON for each, in a file that only grows."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path

from nodealloc.podfacts import PodStatus, status_to_manifest
from nodealloc.podspec import Pod

__all__ = ["StatusFile"]


class StatusFile:
    """A `Sink`: a line has the time, the pod's uid, namespace and name, and its status; null for gone.

    Args:
        path: The file; a new agent goes on where the last one ended.
        pod: Finds a pod by its uid.
    """

    def __init__(self, path: Path, pod: Callable[[str], Pod | None]) -> None:
        self._file = path.open("a", buffering=1)
        self._pod, self._lock = pod, threading.Lock()
        self._names: dict[str, Pod] = {}
        self._file.write("\n")  # whoever reads knows by this that the agent is there

    def told(self, uid: str, status: PodStatus, /) -> None:
        """Write a line."""
        self._write(uid, status_to_manifest(status))

    def gone(self, uid: str, /) -> None:
        """Write a last line."""
        self._write(uid, None)
        self._names.pop(uid, None)

    def _write(self, uid: str, status: object) -> None:
        pod = self._pod(uid) or self._names.get(uid)
        if pod is None:
            return
        self._names[uid] = pod
        line = {
            "unix_s": time.time(),
            "uid": uid,
            "namespace": pod.namespace,
            "name": pod.name,
            "status": status,
        }
        with self._lock:
            self._file.write(json.dumps(line) + "\n")
