"""Which listing shows what our own calls did; pods that wait for none are not woken by any."""

from __future__ import annotations

import threading
from typing import Final

from nodealloc.dsw_asw import World
from nodealloc.podlife._details import Detail, RunSandbox, Start
from nodealloc.podlife._record import PodRecord
from nodealloc.podlife._rules import Rules
from nodealloc.runtime import RuntimeWatch

__all__ = ["Listings", "seen_within_s"]

_ANY: Final = "any"
_ALL_SHOWN: Final = 1 << 62
_WITH_CONTAINERS_S: Final = 1.0
"""A sandbox is listed with its containers, and as soon as a kubelet lists at the latest."""
_ENDS_AT_ONCE_S: Final = 0.2
"""Who starts and ends at once has ended by then, as a kubelet finds it with its next listing."""


class Listings:
    """Numbers of listings, for the pods that wait for one: each is woken by that one alone.

    Args:
        watch: Lists.

    Attributes:
        world: By the uid of a pod that waits or has waited, the number of a listing; and a
            number above all others for pods that wait for none.
    """

    def __init__(self, watch: RuntimeWatch) -> None:
        self.world: World[str, int] = World("listings that are waited for")
        self.world.put(_ANY, _ALL_SHOWN, by="start")
        self._watch = watch
        self._lock = threading.Lock()
        self._awaited: dict[str, int] = {}
        self._answers = watch.answers.watch(self._answered)
        self._answered()

    def hurry(self, uid: str, within_s: float = 0.0, /) -> int:
        """Ask for a listing soon after a call about a pod; the number of the one that shows what it did."""
        number = self._watch.hurry(within_s)
        with self._lock:
            # Another worker may have asked for a later one meanwhile, and noted it.
            self._awaited[uid] = max(number, self._awaited.get(uid, 0))
        return number

    def awaited(self, uid: str, /) -> int:
        """Number of the listing that a pod waits for; 0 where it waits for none."""
        with self._lock:
            return self._awaited.get(uid, 0)

    def keys_of(self, uid: str, /) -> tuple[str, ...]:
        """Which record of the world counts for a pod."""
        with self._lock:
            shown = self._watch.listed().shown
            if shown >= self._awaited.setdefault(uid, 0):
                del self._awaited[uid]
                return (_ANY,)
        if shown >= 0 and uid not in self.world:
            self._show(uid, shown)
        return (uid,)

    def forget(self, uid: str, /) -> None:
        """The pod is gone."""
        with self._lock:
            self._awaited.pop(uid, None)
        self.world.drop(uid, by="forget")

    def close(self) -> None:
        """Follow the listings no longer."""
        self._answers.close()

    def _answered(self) -> None:
        with self._lock:
            shown = self._watch.listed().shown
            due = [uid for uid, number in self._awaited.items() if number <= shown]
        for uid in due:
            self._show(uid, shown)

    def _show(self, uid: str, shown: int) -> None:
        """Never less than another thread has shown it."""
        self.world.alter(uid, lambda before: max(shown, before or 0), by="listing")


def seen_within_s(detail: Detail, record: PodRecord | None, rules: Rules, /) -> float:
    """How long it may take until a listing shows what a call did, in seconds.

    Containers do not wait for that of their sandbox, unless something else is in doubt; their own
    starts are seen at once, by a kubelet's rules a moment later.
    """
    if isinstance(detail, Start) and not rules.tells_meanwhile:
        return _ENDS_AT_ONCE_S
    if not isinstance(detail, RunSandbox) or detail.purges or not rules.tells_meanwhile:
        return 0.0
    return 0.0 if record is None or record.doubt is None else _WITH_CONTAINERS_S
