"""Where statuses go: a line of JSON for each, in a file that only grows."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path

from nodealloc.errors import RetryableError
from nodealloc.podfacts import PodStatus, status_to_manifest
from nodealloc.podspec import Pod

__all__ = ["StatusFile"]

_SOON_S = 0.05


class StatusFile:
    """A `Sink`: a line has the time, the pod's uid, namespace and name, and its status; null for gone.

    Args:
        path: The file; a new agent goes on where the last one ended.
        pod: Finds a pod by its uid.
        is_early: Says of a pod that nothing is told of it yet; it is asked again soon.
        vanishes: Whether a source that has no pod any more ends what is told of it, as with
            a kubelet's static pods; None where it does not, else whether a source has it.
    """

    def __init__(
        self,
        path: Path,
        pod: Callable[[str], Pod | None],
        vanishes: Callable[[str], bool] | None,
        is_early: Callable[[str, PodStatus], bool],
    ) -> None:
        self._file = path.open("a", buffering=1)
        self._pod, self._has, self._is_early = pod, vanishes, is_early
        self._lock = threading.Lock()
        self._names: dict[str, Pod] = {}
        self._silent: set[str] = set()
        self._file.write("\n")  # whoever reads knows by this that the agent is there

    def told(self, uid: str, status: PodStatus, /) -> None:
        """Write a line, unless the pod has vanished; raises `RetryableError` while it is early."""
        if self._is_early(uid, status):
            raise RetryableError("the pod may not come in", after_s=_SOON_S)
        if self._has is not None and not self._has(uid):
            self.vanish(uid)
            return
        self._silent.discard(uid)
        self._write(uid, status_to_manifest(status))

    def gone(self, uid: str, /) -> None:
        """Write a last line."""
        self.vanish(uid)
        self._silent.discard(uid)
        self._names.pop(uid, None)

    def vanish(self, uid: str, /) -> None:
        """Nothing is told of a pod any more, though it may still end."""
        if uid not in self._silent and (uid in self._names or self._pod(uid) is not None):
            self._silent.add(uid)
            self._write(uid, None)

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
