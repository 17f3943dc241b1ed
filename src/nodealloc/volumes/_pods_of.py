"""Which pods a world's volumes are for, so that asking about one pod takes no look at all of them."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from nodealloc.dsw_asw import World
from nodealloc.volumes._model import VolumeId

__all__ = ["PodsOf"]

V = TypeVar("V")


class PodsOf(Generic[V]):
    """The pods of a world's volumes, brought up to date when somebody asks; thread-safe.

    Args:
        world: Volumes.
        pods: From a volume to the uids of its pods, each once.
    """

    def __init__(self, world: World[VolumeId, V], pods: Callable[[V], Iterable[str]]) -> None:
        self._world = world
        self._pods = pods
        self._lock = threading.Lock()
        self._changes = world.watch()
        self._counted: dict[VolumeId, tuple[str, ...]] = {}
        self._volumes: Counter[str] = Counter()

    def __contains__(self, uid: str) -> bool:
        with self._lock:
            for key in self._changes.take():
                self._count(key)
            return uid in self._volumes

    def _count(self, key: VolumeId) -> None:
        value = self._world.get(key)
        before, now = self._counted.pop(key, ()), () if value is None else tuple(self._pods(value))
        if now:
            self._counted[key] = now
        self._volumes.update(now)
        for uid in before:
            self._volumes[uid] -= 1
            if not self._volumes[uid]:
                del self._volumes[uid]
