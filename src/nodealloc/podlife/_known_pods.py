"""What others ask of the pods of a node: which are here, and whether they have ended."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from nodealloc.podfacts import PodLife, PodSighting
from nodealloc.podlife._worlds import Worlds

__all__ = ["KnownPods"]


class KnownPods:
    """A `PodSource` over the pods of this node.

    Args:
        worlds: What is said and remembered of them.
        is_ready: Whether every pod of this node is known by now.
    """

    def __init__(self, worlds: Worlds, is_ready: Callable[[], bool]) -> None:
        self._worlds, self._is_ready = worlds, is_ready

    def uids(self) -> Iterable[str]:
        """Every pod that is known."""
        return tuple(self._worlds.wanted.snapshot())

    def get(self, uid: str, /) -> PodSighting | None:
        """A pod, and whether anything of it may still run."""
        want, record = self._worlds.wanted.get(uid), self._worlds.pods.get(uid)
        if want is None:
            return None
        ended = record is not None and record.life.is_over
        return PodSighting(want.pod, PodLife.ENDED if ended else PodLife.WANTED)

    def is_ready(self) -> bool:
        """Whether every pod of this node is known by now."""
        return self._is_ready()
