"""Files of config maps and secrets, and which pods hear of a change of one."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from nodealloc.errors import ConfigurationError, RetryableError
from nodealloc.podspec import Json
from nodealloc.volumes.plugins._atomic_files import FileContent
from nodealloc.volumes.plugins._config_store import ConfigObject, ConfigStore
from nodealloc.volumes.plugins._files import path_of

__all__ = ["ObjectFiles"]

_LOOKING_S: Final = 300.0
"""How long who looked at an object hears of it: longer than a pod that waits for one goes without looking."""


class ObjectFiles:
    """The files that objects of a store give; thread-safe.

    Args:
        store: Reads objects.
        kind: Of the objects, for messages: `configMap`.
        plugin: Whose store it is, for messages.
        on_changed: Called with a pod's uid when an object that it uses changed.
    """

    def __init__(
        self, store: ConfigStore, kind: str, /, *, plugin: str, on_changed: Callable[[str], None]
    ) -> None:
        if store.on_change is not None:
            raise ConfigurationError(f"this ConfigStore serves another plugin; give {plugin} one of its own")
        self._store, self._kind, self._on_changed = store, kind, on_changed
        self._lock = threading.Lock()
        # Pod and volume, and until when they count: who only looked may never leave.
        self._users: dict[tuple[str, str], dict[tuple[str, str], float]] = {}
        self._sweep_s = -math.inf
        store.on_change = self._changed

    def read(self, namespace: str, name: str, /, *, optional: bool) -> ConfigObject | None:
        """The object; None for one that is absent and may be.

        Raises:
            RetryableError: It is absent and may not be.
        """
        found = self._store.read(namespace, name)
        if found is None and not optional:
            raise RetryableError(
                f"{self._kind} {namespace}/{name} does not exist; create it, or mark the volume optional"
            )
        return found

    def files(
        self, volume: str, namespace: str, asked: Mapping[str, Json], default_mode: int, /
    ) -> dict[str, FileContent]:
        """Which files an object gives; names that lead out of the volume are refused.

        Args:
            volume: The pod's name of it, for messages.
            namespace: Of the object.
            asked: `object`, `optional` and `items`, checked.
            default_mode: Of files for which no item says one.
        """
        optional, name = bool(asked.get("optional")), str(asked.get("object", ""))
        found = self.read(namespace, name, optional=optional)
        data: Mapping[str, bytes] = {} if found is None else found.data
        items = asked.get("items")
        if not isinstance(items, Sequence) or isinstance(items, str):
            return {path_of(volume, key): FileContent(value, default_mode) for key, value in data.items()}
        files: dict[str, FileContent] = {}
        for item in items:
            if not isinstance(item, Mapping):
                continue
            key, mode = str(item["key"]), item["mode"]
            if key in data:
                content = FileContent(data[key], mode if isinstance(mode, int) else default_mode)
                files[str(item["path"])] = content
            elif not optional:
                raise RetryableError(
                    f"volume {volume!r}: key {key!r} is not in {name}; add it, or mark the volume optional"
                )
        return files

    def look(self, namespace: str, name: str, uid: str, volume: str, /) -> None:
        """A pod is about to read an object, which may be absent: it hears of changes for a while."""
        now_s = self._store.clock.monotonic_s()
        with self._lock:
            users = self._users.setdefault((namespace, name), {})
            users[uid, volume] = max(now_s + _LOOKING_S, users.get((uid, volume), 0.0))
            unused = self._unused() if self._sweep(now_s) else []
        self._forget(unused)

    def use(self, namespace: str, name: str, uid: str, volume: str, /) -> None:
        """A volume of a pod has files of an object from now on: the pod hears of its changes."""
        with self._lock:
            self._users.setdefault((namespace, name), {})[uid, volume] = math.inf

    def leave(self, uid: str, volume: str, /) -> None:
        """The volume is gone; an object that nobody uses any more is not followed any more."""
        now_s = self._store.clock.monotonic_s()
        with self._lock:
            for users in self._users.values():
                users.pop((uid, volume), None)
            self._sweep(now_s)
            unused = self._unused()
        self._forget(unused)

    def _sweep(self, now_s: float) -> bool:
        """Count nobody any more who looked long ago; now and then, since that takes a look at all."""
        if now_s < self._sweep_s:
            return False
        self._sweep_s = now_s + _LOOKING_S
        for key, users in self._users.items():
            self._users[key] = {user: until_s for user, until_s in users.items() if until_s > now_s}
        return True

    def _unused(self) -> list[tuple[str, str]]:
        """Objects that nobody uses any more."""
        unused = [key for key, users in self._users.items() if not users]
        for key in unused:
            del self._users[key]
        return unused

    def _forget(self, unused: Sequence[tuple[str, str]]) -> None:
        for key in unused:
            self._store.forget(*key)
            # Who came meanwhile may have read what is not followed any more: it looks again.
            self._changed(*key)

    def _changed(self, namespace: str, name: str) -> None:
        with self._lock:
            uids = dict.fromkeys(uid for uid, _ in self._users.get((namespace, name), ()))
        for uid in uids:
            self._on_changed(uid)
