"""Which listing shows what our own calls did; pods that wait for none are not woken by any."""

from __future__ import annotations

import threading
from typing import Final

from nodealloc.dsw_asw import World
from nodealloc.runtime import RuntimeWatch

__all__ = ["Listings"]

_LISTING: Final = "listing"
_ANY: Final = "any"
_ALL_SHOWN: Final = 1 << 62


class Listings:
    """Numbers of listings, for the pods that wait for one.

    Args:
        watch: Lists.

    Attributes:
        world: The number of the newest listing, and a number above all others for
            pods that wait for none.
    """

    def __init__(self, watch: RuntimeWatch) -> None:
        self.world: World[str, int] = World("listings that are waited for")
        self.world.put(_ANY, _ALL_SHOWN, by="start")
        self._watch = watch
        self._lock = threading.Lock()
        self._awaited: dict[str, int] = {}
        self._answers = watch.answers.watch(self._answered)
        self._answered()

    def hurry(self, uid: str, /) -> int:
        """A call about a pod has come back; the number of the listing that shows what it did."""
        number = self._watch.hurry()
        with self._lock:
            self._awaited[uid] = number
        return number

    def awaited(self, uid: str, /) -> int:
        """Number of the listing that a pod waits for; 0 where it waits for none."""
        with self._lock:
            return self._awaited.get(uid, 0)

    def keys_of(self, uid: str, /) -> tuple[str, ...]:
        """Which record of the world counts for a pod."""
        shown = self._shown()
        with self._lock:
            if shown >= self._awaited.get(uid, 0):
                self._awaited.pop(uid, None)
                return (_ANY,)
        self._tell(shown)
        return (_LISTING,)

    def close(self) -> None:
        """Follow the listings no longer."""
        self._answers.close()

    def _shown(self) -> int:
        answered = self._watch.answers.get(_LISTING)
        return -1 if answered is None else answered.shown

    def _answered(self) -> None:
        shown = self._shown()
        with self._lock:
            is_awaited = bool(self._awaited) or _LISTING not in self.world
        if is_awaited:
            self._tell(shown)

    def _tell(self, shown: int) -> None:
        if shown >= 0:
            self.world.alter(_LISTING, lambda before: max(shown, before or 0), by="listing")
